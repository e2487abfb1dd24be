"""A layer of experts (mixture of experts), from the router to the sum: three products by vkgemm.

    PYTHONPATH=<folder of the package> python3 moe_layer.py [--tokens 512] [--json]

    p = softmax(x · router)                   each token chooses the experts with the largest p
    h = silu(x · gate_e) * (x · up_e)         for each choice (token, e)
    y = the sum of w · (h · down_e)           over the choices of a token

The weights w are the chosen p, divided by their sum.  Choice c of token t has the number
t · chosen + c.  torch sorts these numbers by expert.  Tokens are neither copied nor sorted: the
second product gathers rows by these numbers, and the third one adds its rows up.

The script compares y with the layer in float64, and prints times.  torch computes the same with
torch._grouped_mm() of sorted copies of the rows.
"""

import argparse
import json
import statistics

import torch
from torch.nn.functional import silu

import vkgemm
from vkgemm.torch import device_index

ROUNDS = 5
WORKSPACE = 1 << 32  # The third product has its rows there, in float32, before it adds them up.
SIZES = {"tokens": 512, "width": 2048, "hidden": 768, "experts": 128, "chosen": 8}


def choose(p, chosen):
    """Returns each token's weights, the choices sorted by expert, and the choices of each expert."""
    weights, expert = p.topk(chosen)
    expert = expert.flatten()
    sizes = torch.zeros(p.shape[1], dtype=torch.int32, device=p.device)
    sizes.scatter_add_(0, expert, torch.ones_like(expert, dtype=torch.int32))
    return weights / weights.sum(1, keepdim=True), expert.argsort(stable=True).int(), sizes


def moe(device, x, router, gate_up, down, chosen):
    """gate_up: (experts, width, 2 · hidden).  down: (experts, hidden, width)."""
    p = device.row_reduction(x, router, "softmax", out_dtype=torch.float32)
    weights, rows, sizes = map(device.shared, choose(p, chosen))
    with device.batch():  # one submission
        h = device.grouped(x, gate_up, sizes=sizes, rows=rows, gather=chosen, gate="swiglu")
        return device.grouped(h, down, sizes=sizes, rows=rows, scatter=tuple(weights.shape),
                              weights=weights, max_workspace_bytes=WORKSPACE)


def torch_moe(x, router, gate_up, down, chosen):
    """The same, by torch."""
    weights, rows, sizes = choose((x @ router).float().softmax(1), chosen)
    ends, rows = sizes.cumsum(0, dtype=torch.int32), rows.long()
    gate, up = torch._grouped_mm(x[rows // chosen], gate_up, offs=ends).chunk(2, 1)
    terms = torch._grouped_mm(silu(gate) * up, down, offs=ends) * weights.flatten()[rows, None]
    y = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    return y.index_add_(0, rows // chosen, terms).to(x.dtype)


def reference(x, p, gate_up, down, chosen):
    """The layer in float64, of the choices by p."""
    weights, rows, sizes = choose(p, chosen)
    y = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    for expert, of_expert in enumerate(rows.long().split(sizes.tolist())):
        gate, up = (x[of_expert // chosen].double() @ gate_up[expert].double()).chunk(2, 1)
        terms = (silu(gate) * up) @ down[expert].double()
        y.index_add_(0, of_expert // chosen, terms * weights.double().flatten()[of_expert, None])
    return y


def milliseconds(step, repeat):
    """The time of a step among others that follow each other, as layers do."""
    times = []
    for _ in range(1 + ROUNDS):  # the first one warms up
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(repeat):
            step()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / repeat)
    return round(statistics.median(times[1:]), 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, size in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=size, help=f"default: {size}")
    parser.add_argument("--repeat", type=int, default=20, help="steps of a measurement")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not 1 <= options.chosen <= options.experts:
        parser.error(f"--chosen is {options.chosen}: it must be 1 to {options.experts}, --experts")
    tokens, width, hidden, experts, chosen = (getattr(options, name) for name in SIZES)
    device = vkgemm.Device(device_index("cuda"))
    torch.manual_seed(1)

    def random(*shape, size):
        return device.shared((torch.randn(shape, device="cuda") * size).to(torch.bfloat16))
    x, router = random(tokens, width, size=1), random(width, experts, size=width**-0.5)
    matrices = (random(experts, width, 2 * hidden, size=width**-0.5),
                random(experts, hidden, width, size=hidden**-0.5))
    packed = device.pack(matrices[0], gated_b="halves"), device.pack(matrices[1])

    p = device.row_reduction(x, router, "softmax", out_dtype=torch.float32)
    expected = reference(x, p, *matrices, chosen)

    def error_of(y):
        return ((y.double() - expected).norm(dim=1) / expected.norm(dim=1)).max().item()
    error = error_of(moe(device, x, router, *matrices, chosen))
    # bf16 rounds h and y, each by at most 2^-9.
    allowed = 2.0**-8
    times = {"ms": lambda: moe(device, x, router, *matrices, chosen),
             "packed_ms": lambda: moe(device, x, router, *packed, chosen)}
    if hasattr(torch, "_grouped_mm"):
        times["torch_ms"] = lambda: torch_moe(x, router, *matrices, chosen)
    row = {**{name: getattr(options, name) for name in SIZES}, "error": error, "allowed": allowed,
           **({"torch_error": error_of(torch_moe(x, router, *matrices, chosen))}
              if "torch_ms" in times else {}),
           **{name: milliseconds(step, options.repeat) for name, step in times.items()},
           "device": device.name, "driver": device.driver, "torch": torch.__version__}
    print(json.dumps(row) if options.json
          else "\n".join(f"{name:11} {value}" for name, value in row.items()))
    if not error <= allowed:
        raise SystemExit(f"y differs by {error:.1e} from the layer in float64, "
                         f"{allowed:.1e} is allowed")


if __name__ == "__main__":
    main()
