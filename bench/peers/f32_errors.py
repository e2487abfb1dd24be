#!/usr/bin/env python3
"""Compares errors of f32 products beside double: of each of vkgemm's arithmetics and, where there is
PyTorch with CUDA, of cuBLAS in f32 and in TF32. Prints a Markdown table of the root mean square, and with
--largest another of the largest. Errors are in units of 2^-24, and relative to the sum of |a·b| of an
element.

  PYTHONPATH=build/test/python python3 bench/peers/f32_errors.py [--json errors.jsonl]

An arithmetic that a device has no configuration for is left out, and said so.
"""

import argparse
import json
import sys

import numpy as np
import vkgemm

UNIT = 2.0**-24
ARITHMETICS = ("ieee", "bf16x9", "bf16x6", "f16x3")
MOST_MEGABYTES = 128  # of one matrix
WORKSPACE = 4 * 2**30  # bytes, for what is split


def spread(random, shape, most):
    """Signs, and magnitudes from 2^-most to 2^most whose logarithms are uniform."""
    return np.exp2(random.uniform(-most, most, shape)) * random.choice([-1.0, 1.0], shape)


def uniform(random, m, n, k):
    return random.uniform(-1, 1, (m, k)), random.uniform(-1, 1, (k, n))


def normal(random, m, n, k):
    return random.standard_normal((m, k)), random.standard_normal((k, n))


def log_uniform(most):
    return lambda random, m, n, k: (spread(random, (m, k), most), spread(random, (k, n), 12))


def mixed_rows(random, m, n, k):
    """Rows of A that differ by powers of two, up to 2^20."""
    a, b = uniform(random, m, n, k)
    return a * np.exp2(np.arange(m) % 41 - 20.0)[:, None], b


def cancelling(random, m, n, k):
    """Neighbours along K cancel but for 2^-12 of them, at most."""
    a, b = uniform(random, m, n, k)
    pairs = k // 2 * 2
    a[:, 1:pairs:2] = a[:, 0:pairs:2]
    b[1:pairs:2] *= -(2.0**-12) * b[0:pairs:2]
    b[1:pairs:2] -= b[0:pairs:2]
    return a, b


def hilbert(random, m, n, k):
    return (1.0 / (np.arange(m)[:, None] + np.arange(k) + 1),
            1.0 / (np.arange(k)[:, None] + np.arange(n) + 1))


INPUTS = {
    "uniform": uniform, "normal": normal, "log-uniform 2^±12": log_uniform(12),
    "log-uniform 2^±30": log_uniform(30), "log-uniform 2^±100": log_uniform(100),
    "mixed rows": mixed_rows, "cancelling": cancelling, "hilbert": hilbert,
}


def vkgemm_products(device, a, b):
    """The product by each arithmetic that the device takes."""
    for f32 in ARITHMETICS:
        options = {"f32": f32, "max_workspace_bytes": WORKSPACE}
        if f32 == "ieee" or f"f32 arithmetic: {f32}," in device.explain(a, b, **options):
            yield f32, device.gemm(a, b, **options)


def cublas_products(a, b):
    try:
        import torch
    except ImportError:
        return
    if not torch.cuda.is_available():
        return
    a, b = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    for name, tf32 in (("cuBLAS f32", False), ("cuBLAS TF32", True)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        yield name, (a @ b).cpu().numpy()


def print_table(rows, key, title):
    kinds = list(dict.fromkeys(kind for row in rows for kind in row["errors"]))
    print(f"\n| {title} | K | {' | '.join(kinds)} |\n|---|---|{'---|' * len(kinds)}")
    for row in rows:
        errors = (row["errors"].get(kind) for kind in kinds)
        cells = (f"{error[key] / UNIT:.3g}" if error else "" for error in errors)
        print(f"| {row['inputs']} | {row['k']} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", type=int, nargs="+", metavar="K",
                        default=[1, 2, 5, 16, 256, 4096, 65536, 2**20])
    parser.add_argument("--size", type=int, default=192, help="M and N (default %(default)s)")
    parser.add_argument("--largest", action="store_true", help="print largest errors, too")
    parser.add_argument("--json", metavar="FILE", help="write a JSON object a line")
    parser.add_argument("--device", type=int, help="index of a device; default: the best one")
    arguments = parser.parse_args()
    device = vkgemm.Device(arguments.device, self_test=True)
    rows = []
    for name, make in INPUTS.items():
        for k in arguments.depths:
            size = min(arguments.size, max(16, MOST_MEGABYTES * 2**20 // 4 // k))
            print(f"{name}, {size}x{size}x{k} …", file=sys.stderr)
            a, b = (x.astype(np.float32) for x in make(np.random.default_rng(7), size, size, k))
            exact = a.astype(np.float64) @ b.astype(np.float64)
            sums = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
            errors = {}
            for products in (cublas_products(a, b), vkgemm_products(device, a, b)):
                for kind, d in products:
                    error = np.abs(d - exact) / sums
                    errors[kind] = {"rms": float(np.sqrt(np.mean(error**2))),
                                    "largest": float(error.max())}
            rows.append({"device": device.name, "inputs": name, "m": size, "n": size, "k": k,
                         "errors": errors})
    missing = [f32 for f32 in ARITHMETICS if all(f32 not in row["errors"] for row in rows)]
    if missing:
        print(f"{device.name} has no configuration for {', '.join(missing)}", file=sys.stderr)
    print_table(rows, "rms", "root mean square")
    if arguments.largest:
        print_table(rows, "largest", "largest")
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
