#!/usr/bin/env python3
"""Times what CUDA programs have, on the GPU that `vkgemm bench` runs on: cuBLAS through PyTorch, and
torch.compile for fused epilogues. Prints a JSON object a line, with the keys of `vkgemm bench --json`,
so that vkgemm can put both into one table.

Needs PyTorch with CUDA and Triton. Timing is triton.testing.do_bench, which flushes the L2 cache
before each repeat, as `vkgemm bench` does; the warm-up is by time, because an idle GPU's clock is a
fraction of a busy one's. Run it directly before or after `vkgemm bench`, on the same machine.

  python3 peers.py > peers.jsonl
  vkgemm bench --json > vkgemm.jsonl
  vkgemm bench --from vkgemm.jsonl --peers peers.jsonl --markdown

--grouped times products of groups of rows instead, bf16, in the ways that a CUDA program has: one
product where all groups share B, a loop over them, and torch._grouped_mm where each has its own.
--gated times products with a gate, sigmoid(l)·tanh(r) and GEGLU, fused by torch.compile after cuBLAS.
--rows times products whose rows are normalised or reduced, fused by torch.compile where it can.
--quantised times products with weights of 4 and 8 bits, beside cuBLAS on weights of 16.
--commands with one of them prints the same cases as `vkgemm bench` commands.
"""

import argparse
import itertools
import random
import sys
import time

import quantised
import row_reductions
from cases import time_and_print

GPU_SUITE = "512,1024,2048,4096,8192,8192x28672x4096,16x4096x4096,64x8192x8192"


def grouped_suite():
    """Sizes of the groups, N, K, and whether each group has its own B."""
    choice = random.Random(0)
    return [
        ([64, 128, 192, 256], 128, 256, False),
        ([64 * i for i in range(1, 33)], 1024, 1024, False),
        ([choice.randint(0, 1023) for _ in range(64)], 4096, 4096, True),
        ([choice.randint(0, 4) for _ in range(128)], 768, 2048, True),  # experts while decoding
    ]


# Gate, M, N (the columns of the result), K, type.
GATED_SUITE = [
    ("sigmoid_tanh", 1024, 2048, 2048, "f32"),
    ("sigmoid_tanh", 1024, 2048, 2048, "f16"),
    ("geglu_erf", 4096, 14336, 4096, "bf16"),
]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=GPU_SUITE, help="MxNxK or N, separated by commas")
    parser.add_argument("--dtype", nargs="+", default=["f16"], choices=["f16", "bf16", "f32"])
    parser.add_argument("--layout-a", nargs="+", default=["row_major"],
                        choices=["row_major", "col_major"])
    parser.add_argument("--layout-b", nargs="+", default=["row_major"],
                        choices=["row_major", "col_major"])
    parser.add_argument("--epilogue", nargs="+", default=["plain"], choices=["plain", "heavy"])
    parser.add_argument("--warm-up", type=float, default=300.0, metavar="MS")
    parser.add_argument("--repeat-ms", type=int, default=200, metavar="MS",
                        help="time spent on the repeats of a case")
    parser.add_argument("--grouped", action="store_true", help="time groups of rows")
    parser.add_argument("--gated", action="store_true", help="time products with a gate")
    parser.add_argument("--rows", action="store_true", help="time row reductions")
    parser.add_argument("--quantised", action="store_true", help="time quantised weights")
    parser.add_argument("--commands", action="store_true",
                        help="with --grouped, --gated or --rows: print what vkgemm is to be run with")
    return parser.parse_args()


def parse_shapes(text):
    shapes = []
    for one in text.split(","):
        sizes = [int(size) for size in one.split("x")]
        if len(sizes) not in (1, 3) or min(sizes) < 1:
            sys.exit(f"peers.py: --shapes: {one!r} is neither N nor MxNxK")
        shapes.append(tuple(sizes * 3 if len(sizes) == 1 else sizes))
    return shapes


def plain(torch, a, b, dtype):
    """cuBLAS, C = A·B."""
    del torch, dtype
    return lambda: a @ b


def heavy(torch, a, b, dtype):
    """aux = 1.25·A·B + 0.5·C + bias and D = gelu(aux), fused by torch.compile after cuBLAS."""
    m, n = a.shape[0], b.shape[1]
    residual = torch.randn(m, n, device="cuda", dtype=dtype)
    bias = torch.randn(n, device="cuda", dtype=torch.float32)

    def product(a, b, residual, bias):
        pre = (a @ b).float() * 1.25 + residual.float() * 0.5 + bias
        return torch.nn.functional.gelu(pre).to(dtype), pre.to(dtype)

    torch._dynamo.reset()
    compiled = torch.compile(product)
    return lambda: compiled(a, b, residual, bias)


def gated(torch, gate, a, b):
    """gate(l, r) of the halves of A·B."""
    gates = {
        "sigmoid_tanh": lambda l, r: torch.sigmoid(l) * torch.tanh(r),
        "geglu_erf": lambda l, r: l * torch.nn.functional.gelu(r),
    }

    def product(a, b):
        return gates[gate](*torch.tensor_split(a @ b, 2, dim=1))

    torch._dynamo.reset()
    compiled = torch.compile(product)
    return lambda: compiled(a, b)


def time_gated(torch, time_case, types):
    for gate, m, n, k, name in GATED_SUITE:
        a = torch.randn(m, k, device="cuda", dtype=types[name])
        b = torch.randn(k, 2 * n, device="cuda", dtype=types[name])
        time_and_print(torch, time_case, lambda: gated(torch, gate, a, b), 4 * m * n * k,
                       m, n, k, name, gate, "torch.compile")


def print_gated_commands():
    """Each beside the plain product of as much work."""
    for gate, m, n, k, name in GATED_SUITE:
        print(f"vkgemm bench --json --dtype {name} --shapes {m}x{n}x{k} --gated {gate}")
        print(f"vkgemm bench --json --dtype {name} --shapes {m}x{2 * n}x{k}")


def print_commands():
    for sizes, n, k, per_group in grouped_suite():
        options = " --b-per-group --layout-b col_major" if per_group else ""
        print(f"vkgemm bench --json --dtype bf16 --shapes {n}x{k}{options} "
              f"--groups {','.join(map(str, sizes))}")


def grouped_ways(torch, a, b, sizes):
    """Name and function of every way to multiply the groups of rows of a. b: one, or one each."""
    ends = list(itertools.accumulate(sizes))
    ranges = [(end - size, end) for size, end in zip(sizes, ends)]
    if b.dim() == 2:
        yield "cublas, one product", lambda: a @ b
        yield "cublas, a loop", lambda: [a[begin:end] @ b for begin, end in ranges]
    else:
        offsets = torch.tensor(ends, device="cuda", dtype=torch.int32)
        yield "torch._grouped_mm", lambda: torch._grouped_mm(a, b, offs=offsets)
        yield "cublas, a loop", lambda: [a[begin:end] @ b[g]
                                         for g, (begin, end) in enumerate(ranges)]


def time_grouped(torch, time_case):
    for sizes, n, k, per_group in grouped_suite():
        m, groups = sum(sizes), len(sizes)
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        # Column-major where there are many: what torch._grouped_mm is fastest with.
        b = (torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
             if per_group else torch.randn(k, n, device="cuda", dtype=torch.bfloat16))
        for kernel, function in grouped_ways(torch, a, b, sizes):
            # Only the matrices B that are used: while decoding they are nearly all that is read.
            used = sum(size > 0 for size in sizes) * k * n * 2 if per_group else None
            time_and_print(
                torch, time_case, lambda: function, 2 * m * n * k, m, n, k, "bf16", "plain", kernel,
                b_bytes=used, layout_b="col_major" if per_group else "row_major",
                groups=f"{groups} groups along m, b {'per_group' if per_group else 'shared'}")


def main():
    arguments = parse_arguments()
    if arguments.commands and arguments.rows:
        return row_reductions.print_commands()
    if arguments.commands:
        return print_gated_commands() if arguments.gated else print_commands()
    shapes = parse_shapes(arguments.shapes)
    try:
        import torch
        from triton.testing import do_bench
    except ImportError as error:
        sys.exit(f"peers.py: {error}: PyTorch with CUDA and Triton is needed")
    if not torch.cuda.is_available():
        sys.exit("peers.py: PyTorch finds no CUDA device")
    torch.manual_seed(0)
    # f32 means IEEE f32 here, as in vkgemm, and f16 sums are not to be cut short.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}

    def time_case(function):
        start = time.monotonic()
        while (time.monotonic() - start) * 1e3 < arguments.warm_up:
            function()
            torch.cuda.synchronize()
        return do_bench(function, warmup=50, rep=arguments.repeat_ms, return_mode="median")

    if arguments.grouped:
        return time_grouped(torch, time_case)
    if arguments.rows:
        return row_reductions.time_all(torch, time_case, types)
    if arguments.gated:
        return time_gated(torch, time_case, types)
    if arguments.quantised:
        return quantised.time_all(torch, time_case)

    for name in arguments.dtype:
        for layout_a, layout_b in itertools.product(arguments.layout_a, arguments.layout_b):
            for m, n, k in shapes:
                a = torch.randn(m, k, device="cuda", dtype=types[name])
                b = torch.randn(k, n, device="cuda", dtype=types[name])
                if layout_a == "col_major":
                    a = a.T.contiguous().T
                if layout_b == "col_major":
                    b = b.T.contiguous().T
                for epilogue in arguments.epilogue:
                    build, kernel = ((plain, "cublas") if epilogue == "plain" else
                                     (heavy, "torch.compile"))
                    time_and_print(torch, time_case, lambda: build(torch, a, b, types[name]),
                                   2 * m * n * k, m, n, k, name, epilogue, kernel,
                                   layout_a=layout_a, layout_b=layout_b)
                del a, b


if __name__ == "__main__":
    main()
