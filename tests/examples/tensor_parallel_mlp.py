"""A SwiGLU MLP on several GPUs: products by vkgemm, sums by torch.distributed.

    PYTHONPATH=<folder of the package> python3 tensor_parallel_mlp.py [--processes 2] [--json]
    PYTHONPATH=<folder of the package> torchrun --nproc-per-node 4 tensor_parallel_mlp.py

y = (silu(x·G) · (x·U)) · D.  Each process has one GPU and a part of the hidden columns: these
columns of G and U, and these rows of D.  Each process computes a summand of y, and all_reduce adds
the summands.  NCCL reads and writes vkgemm's results in place, because torch and vkgemm share their
memory.  More layers are cut in the same way.  For attention, the heads are columns of q, k and v,
and rows of the output matrix.

The processes must divide the hidden columns.  torchrun also starts processes on several hosts.
Process 0 compares y with the MLP on its own GPU, and prints times.  In 20 more runs every process
must get the same bits.  --cpu tries everything with small f32 matrices, without CUDA.

--parts 2 halves the rows of x: NCCL adds one half while vkgemm multiplies the other.  Streams and
events order the work, and the host does not wait.  Here this is slower: kernels of Vulkan and of
CUDA take turns on a GPU, and each turn costs about 0.3 ms (bench/NOTES.md).

ms for 8192 rows of 8192 → 28672 → 8192, bf16, on H100 80GB HBM3 with NVLink, driver 580.159.04,
PyTorch 2.11, vkgemm d0a0e3d, 2026-11-27:

    GPUs                        1        2        4     times as fast as one
    vkgemm                   28.8    15.57     8.30     1.85    3.48
        its products                 14.65     7.56
        its sum                       0.48     0.62
        --parts 2                    23.48    17.34     1.23    1.66
    torch (cuBLAS)           17.9     9.44     5.03     1.91    3.53
"""

import argparse
import functools
import json
import os
import socket
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

import vkgemm

ROUNDS = 5


def mlp(device, x, gate_up, down, y):
    """Two products in one submission; gate_up has the columns of G before those of U."""
    with device.batch():
        device.gemm(device.gated(x, gate_up, "swiglu"), down, out=y)


def torch_mlp(x, gate_up, down, y):
    """The same, by torch."""
    gate, up = (x @ gate_up).chunk(2, 1)
    torch.mm(torch.nn.functional.silu(gate).mul_(up), down, out=y)


def run(multiply, y, options):
    """Multiplies part after part; the sum of one part runs beside the next part's products."""
    sums = []
    for part in range(options.parts):
        rows = slice(*(options.rows * end // options.parts for end in (part, part + 1)))
        multiply(rows)
        if part + 1 < options.parts:
            sums.append(dist.all_reduce(y[rows], async_op=True))
    dist.all_reduce(y[rows])
    for part in sums:
        part.wait()  # On CUDA the stream waits, not the host.


def matrices(options, place):
    """x, G, U and D, the same in every process.  Their products have entries of size 1."""
    generator = torch.Generator(place).manual_seed(1)

    def random(rows, columns, size):
        numbers = torch.randn(rows, columns, generator=generator, device=place)
        return (numbers * size).to(torch.float32 if options.cpu else torch.bfloat16)
    x = random(options.rows, options.width, 1)
    return (x, *(random(options.width, options.hidden, options.width**-0.5) for _ in range(2)),
            random(options.hidden, options.width, options.hidden**-0.5))


def allowed(options):
    """The largest difference between a row of y and that of one GPU, relative to its length.

    The factors are random, so partial sums are at most as long as the whole sum.  Rounding of a
    vector to u adds at most u times its length.  Rounded to the elements' type are: the n summands,
    each 1/√n as long as y; n - 1 sums; y of one GPU; and h, for both.  An error of h grows by at
    most 1 + √(hidden / width): D's largest singular value, times h's length over y's.  In f32 there
    are two sums of `hidden` summands each and, for the two factors of h, four of `width`.
    """
    n, growth = options.processes, 1 + (options.hidden / options.width)**0.5
    of_type = n**0.5 + n + 2 * growth
    of_f32 = 2 * options.hidden + 4 * options.width * growth
    return 2.0**(-24 if options.cpu else -9) * of_type + 2.0**-24 * of_f32


def milliseconds(step, options):
    """The time of a step among others that follow each other, as layers do."""
    def wait():
        if not options.cpu:
            torch.cuda.synchronize()
    times = []
    for _ in range(1 + ROUNDS):  # the first one warms up
        wait()
        dist.barrier()
        start = time.perf_counter()
        for _ in range(options.repeat):
            step()
        wait()
        times.append(1e3 * (time.perf_counter() - start) / options.repeat)
    return round(statistics.median(times[1:]), 4)


def work(rank, options):
    """One process."""
    if options.cpu:
        place, device = "cpu", vkgemm.Device()
        ours, theirs = torch.Tensor.numpy, torch.from_numpy  # vkgemm takes them as arrays.
    else:
        from vkgemm.torch import device_index
        place = f"cuda:{os.environ.get('LOCAL_RANK', rank)}"
        torch.cuda.set_device(place)
        device = vkgemm.Device(device_index(place))
        ours, theirs = device.shared, lambda tensor: tensor
    dist.init_process_group("gloo" if options.cpu else "nccl", rank=rank,
                            world_size=options.processes)
    x, gate, up, down = matrices(options, place)
    hidden = options.hidden // options.processes
    mine = slice(rank * hidden, (rank + 1) * hidden)
    whole = torch.cat([gate, up], 1), down
    part = torch.cat([gate[:, mine], up[:, mine]], 1), down[mine].contiguous()
    packed_whole, packed_part = ((device.pack(ours(gate_up), gated_b="halves"),
                                  device.pack(ours(rows))) for gate_up, rows in (whole, part))
    a, d = ours(x), ours(torch.empty_like(x))
    y, alone = theirs(d), torch.empty_like(x)

    together = functools.partial(run, lambda rows: mlp(device, a[rows], *packed_part, d[rows]), y,
                                 options)
    together()
    first = y.clone()
    equal = True
    for _ in range(20):
        together()
        equal = equal and torch.equal(y, first)
    times = {"ms": milliseconds(together, options),
             "products_ms": milliseconds(lambda: mlp(device, a, *packed_part, d), options),
             "sum_ms": milliseconds(lambda: dist.all_reduce(y), options),
             "alone_ms": milliseconds(lambda: mlp(device, a, *packed_whole, d), options)}
    alone.copy_(y)
    by_torch = functools.partial(run, lambda rows: torch_mlp(x[rows], *part, y[rows]), y, options)
    times["torch_ms"] = milliseconds(by_torch, options)
    times["torch_alone_ms"] = milliseconds(lambda: torch_mlp(x, *whole, y), options)

    lengths = alone.double().norm(dim=1)
    error = ((first.double() - alone.double()).norm(dim=1) / lengths).max().item()
    if rank == 0:
        report({"processes": options.processes, "parts": options.parts, "rows": options.rows,
                "width": options.width, "hidden": options.hidden, **times, "error": error,
                "allowed": allowed(options), "device": device.name, "driver": device.driver,
                "torch": torch.__version__}, options)
    dist.destroy_process_group()
    if not error <= allowed(options):
        raise SystemExit(f"process {rank}: y differs by {error:.1e} from y of one GPU, "
                         f"{allowed(options):.1e} is allowed")
    if not equal:
        raise SystemExit(f"process {rank}: y differs from y of the first run")


def report(row, options):
    """Prints the results as JSON or as a table."""
    if options.json:
        print(json.dumps(row))
        return
    print("{rows} rows, {width} → {hidden} → {width}, rows in {parts} parts; y differs by "
          "{error:.1e} ({allowed:.1e} is allowed), runs by nothing".format(**row))
    print("| GPUs | ms | times as fast as one | products | sum | torch | times as fast as one |\n"
          "|---|---|---|---|---|---|---|\n"
          "| {processes} | {ms:.3f} | {speed:.3f} | {products_ms:.3f} | {sum_ms:.3f} | "
          "{torch_ms:.3f} | {torch_speed:.3f} |".format(
              **row, speed=row["alone_ms"] / row["ms"],
              torch_speed=row["torch_alone_ms"] / row["torch_ms"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, help="2, or what torchrun started")
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--repeat", type=int, default=10, help="steps of a measurement")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    sizes = (48, 64, 192) if options.cpu else (8192, 8192, 28672)
    for name, size in zip(("rows", "width", "hidden"), sizes):
        setattr(options, name, getattr(options, name) or size)
    started = int(os.environ.get("WORLD_SIZE", 0))  # by torchrun
    options.processes = options.processes or started or 2
    if started not in (0, options.processes):
        parser.error(f"--processes is {options.processes}, but torchrun started {started}")
    if options.hidden % options.processes != 0:
        parser.error(f"--hidden is {options.hidden}: {options.processes} processes don't divide it")
    if not 1 <= options.parts <= options.rows:
        parser.error(f"--parts is {options.parts}: it must be 1 to {options.rows}, --rows")
    if started:
        work(int(os.environ["RANK"]), options)
        return
    if not options.cpu and torch.cuda.device_count() < options.processes:
        parser.error(f"{options.processes} processes need as many GPUs: "
                     f"torch finds {torch.cuda.device_count()}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
    torch.multiprocessing.spawn(work, (options,), nprocs=options.processes)


if __name__ == "__main__":
    main()
