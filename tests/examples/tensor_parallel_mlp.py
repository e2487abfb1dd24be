"""A SwiGLU MLP on several GPUs: products by vkgemm, the sum by torch.distributed.

    PYTHONPATH=<where the package is> python3 tensor_parallel_mlp.py [--processes 2]

y = (silu(x·G) · (x·U)) · D.  Each process has one GPU and a part of the hidden columns: these
columns of G and U, these rows of D.  Its product is a summand of y, and one all_reduce adds them.
The memory of vkgemm's results is torch's to see, so NCCL takes it as it is.

It goes on to more GPUs with --processes, as far as they divide the hidden columns and a host holds
them; to more hosts with torchrun, which sets what work() sets here; to more layers by the same two
cuts in each: an attention's heads are columns of q, k and v and rows of its output.  What grows is
the all_reduce, which a program hides by cutting the rows of x in two and computing one half while
the other is added.

Process 0 compares y with the MLP on its GPU alone, and prints both times.  --cpu tries all of it
with small matrices of f32, without CUDA.

Two H200 (driver 580.159.04, PyTorch 2.11, 2026-11-25), 8192 rows of 8192 → 28672 → 8192: 15.4 ms, one
of them 29.0 ms, 1.88 times as fast.
"""

import argparse
import os
import socket
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

import vkgemm


def mlp(device, x, gate_up, down):
    """Two products; gate_up has the columns of G before those of U."""
    return device.gemm(device.gated(x, gate_up, "swiglu"), down)


def weights(options, place):
    """G, U and D, the same in every process."""
    generator = torch.Generator(place).manual_seed(1)

    def random(rows, columns):
        numbers = torch.randn(rows, columns, generator=generator, device=place)
        return (numbers / rows**0.5).to(torch.float32 if options.cpu else torch.bfloat16)
    return (random(options.width, options.hidden), random(options.width, options.hidden),
            random(options.hidden, options.width))


def milliseconds(step, options):
    """The median of some steps that all processes begin together."""
    times = []
    for _ in range(3 + options.repeat):
        if not options.cpu:
            torch.cuda.synchronize()
        dist.barrier()
        start = time.perf_counter()
        step()
        if not options.cpu:
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[3:])


def work(rank, port, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if options.cpu:
        place, device = "cpu", vkgemm.Device()
        ours, theirs = torch.Tensor.numpy, torch.from_numpy  # vkgemm takes them as arrays
    else:
        from vkgemm.torch import device_index
        place = f"cuda:{rank}"
        torch.cuda.set_device(rank)
        device = vkgemm.Device(device_index(place))
        ours, theirs = device.shared, lambda tensor: tensor
    dist.init_process_group("gloo" if options.cpu else "nccl", rank=rank,
                            world_size=options.processes)
    gate, up, down = weights(options, place)
    x = torch.randn(options.rows, options.width, device=place,
                    generator=torch.Generator(place).manual_seed(2)).to(gate.dtype)
    part = options.hidden // options.processes
    mine = slice(rank * part, (rank + 1) * part)
    x = ours(x)
    gate_up = device.pack(ours(torch.cat([gate[:, mine], up[:, mine]], 1)), gated_b="halves")
    rows = device.pack(ours(down[mine].contiguous()))

    def together():
        y = theirs(mlp(device, x, gate_up, rows))
        dist.all_reduce(y)
        return y

    y, ms = together(), milliseconds(together, options)
    whole = (device.pack(ours(torch.cat([gate, up], 1)), gated_b="halves"), device.pack(ours(down)))
    alone, alone_ms = theirs(mlp(device, x, *whole)), milliseconds(
        lambda: mlp(device, x, *whole), options)
    error = ((y.double() - alone.double()).norm() / alone.double().norm()).item()
    allowed = 1e-5 if options.cpu else 1e-2  # of a sum of parts that were rounded to bf16
    if rank == 0:
        print(f"{options.rows} rows, {options.width} → {options.hidden} → {options.width}: "
              f"{options.processes} processes {ms:.3f} ms, one {alone_ms:.3f} ms, "
              f"{alone_ms / ms:.2f} times as fast; they differ by {error:.1e}")
    dist.destroy_process_group()
    if not error <= allowed:
        raise SystemExit(f"process {rank} differs by {error:.1e}: {allowed:.1e} is allowed")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    sizes = (48, 64, 192) if options.cpu else (8192, 8192, 28672)
    for name, size in zip(("rows", "width", "hidden"), sizes):
        setattr(options, name, getattr(options, name) or size)
    if options.hidden % options.processes != 0:
        parser.error(f"--hidden is {options.hidden}: {options.processes} processes don't divide it")
    if not options.cpu and torch.cuda.device_count() < options.processes:
        parser.error(f"{options.processes} processes need as many GPUs: "
                     f"torch finds {torch.cuda.device_count()}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(work, (port, options), nprocs=options.processes)


if __name__ == "__main__":
    main()
