"""python -m vkgemm info|run|bench: what is there, a product that is verified, and its time."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import Device, Error, __version__, devices, from_bf16, to_bf16
from .binding import enumerator_names


def _operands(options: argparse.Namespace) -> tuple[Any, Any]:
    generator = np.random.default_rng(options.seed)
    shapes = (options.m, options.k), (options.k, options.n)
    if options.dtype == "s8":
        a, b = (generator.integers(-128, 128, shape, np.int8) for shape in shapes)
        return a, b
    numbers = [generator.standard_normal(shape, np.float32) for shape in shapes]
    if options.dtype == "bf16":
        return to_bf16(numbers[0]), to_bf16(numbers[1])
    dtype = {"f16": np.float16, "f32": np.float32}[options.dtype]
    return numbers[0].astype(dtype), numbers[1].astype(dtype)


def _wide(array: Any) -> Any:
    return (from_bf16(array) if array.dtype == np.uint16 else array).astype(np.float64)


def _how(options: argparse.Namespace) -> dict[str, Any]:
    return {"f32": options.f32, "config": options.config, "bf16": True}


def info(options: argparse.Namespace) -> int:
    print(f"vkgemm {__version__}")
    for index in range(len(devices())) if options.device is None else [options.device]:
        with Device(index, self_test="all" if options.self_test else False) as device:
            print(f"{index}: {device.name}, {device.driver}, {device.architecture}")
            for path, reason in device.paths.items():
                print(f"   {path}: {'no: ' + reason if reason else 'yes'}")
    return 0


def run(options: argparse.Namespace) -> int:
    a, b = _operands(options)
    with Device(options.device) as device:
        if options.explain:
            print(device.explain(a, b, **_how(options)))
        d = _wide(device.gemm(a, b, **_how(options)))
    expected, absolute = _wide(a) @ _wide(b), np.abs(_wide(a)) @ np.abs(_wide(b))
    # A rounding to D's type, and one to f32 for each term of the sum; integers are exact.  Products
    # of f32 in parts err, too.
    rounding = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "s8": 0}[options.dtype]
    terms = 0 if options.dtype == "s8" else options.k + 1
    products = {"bf16x6": 2.0**-23, "f16x3": 2.0**-21}.get(options.f32, 0)
    bound = (1.01 * rounding * np.abs(expected) + (terms * 2.0**-24 + products) * absolute
             + 2.0**-24)
    worst = (np.abs(d - expected) / bound).max(initial=0.0)
    right = bool(worst <= 1)
    print(f"{options.m}x{options.n}x{options.k} {options.dtype}: {'right' if right else 'wrong'}, "
          f"at worst {worst:.2f} of the bound")
    return 0 if right else 1


def bench(options: argparse.Namespace) -> int:
    a, b = _operands(options)
    calls, products = [], []
    with Device(options.device) as device:
        device.gemm(a, b, **_how(options))  # plans and compiles
        for _ in range(options.repeat):
            start = time.perf_counter()
            device.gemm(a, b, **_how(options))
            calls.append(1e3 * (time.perf_counter() - start))
            if device.last_ms is not None:
                products.append(device.last_ms)
        print(f"{options.m}x{options.n}x{options.k} {options.dtype} on {device.name}, "
              f"medians of {options.repeat}")
    if products:
        ms = statistics.median(products)
        rate = 2e-9 * options.m * options.n * options.k / ms if ms > 0 else 0.0
        print(f"  device: {ms:9.4f} ms, {rate:.3f} TFLOP/s")
    print(f"  call:   {statistics.median(calls):9.4f} ms, with all copies")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vkgemm", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for command, text in ((info, "devices, and the paths that they can use"),
                          (run, "a product of random matrices, compared with float64"),
                          (bench, "its time, with and without copies")):
        sub = commands.add_parser(command.__name__, help=text)
        sub.set_defaults(command=command)
        sub.add_argument("--device", type=int, help="an index, as `info` prints it")
        if command is info:
            sub.add_argument("--self-test", action="store_true",
                             help="try the kernels first that were not tried yet")
            continue
        for size in ("--m", "--n", "--k"):
            sub.add_argument(size, type=int, default=512)
        sub.add_argument("--dtype", choices=("f16", "bf16", "f32", "s8"), default="f16")
        sub.add_argument("--f32", choices=enumerator_names("VkgemmF32Arithmetic"),
                         default="ieee", help="how f32 is multiplied")
        sub.add_argument("--seed", type=int, default=0)
        sub.add_argument("--config", help="how to compute it, as --explain prints it")
        if command is run:
            sub.add_argument("--explain", action="store_true", help="say why this kernel")
        else:
            sub.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args(arguments)
    try:
        return int(options.command(options))
    except Error as error:
        print(f"vkgemm: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
