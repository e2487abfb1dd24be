#!/usr/bin/env python3
"""Runs the operators of tritonbench.py as TritonBench does, beside torch and torch.compile.

    PYTHONPATH=<where the package is> python3 run.py [--plot speed.svg] [--only swiglu]

Each result is compared with torch in float64.  Times are medians of triton.testing.do_bench, which
flushes the L2 cache.  On a machine without CUDA, --cpu runs small cases through numpy's arrays.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import operators
import torch

sys.path.append(str(Path(__file__).resolve().parents[1]))
import plot


def median_ms(function, cpu, rep):
    if not cpu:
        from triton.testing import do_bench
        return do_bench(function, warmup=25, rep=rep, return_mode="median")
    times = []
    for _ in range(5):
        start = time.perf_counter()
        function()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def off_by(results, expected, name):
    """The largest error, in parts of what is allowed: D's rounding, and sums in f32."""
    worst, rounding = 0.0, {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}[name]
    results, expected = operators.listed(results), operators.listed(expected)
    if len(results) != len(expected):
        return float("inf")
    for d, wanted in zip(results, expected):
        if d.shape != wanted.shape:
            return float("inf")
        if d.numel() == 0:
            continue
        size = wanted.abs()
        allowed = 1.01 * rounding * size + 2e-5 * (1 + size.max())
        error = ((d.double() - wanted).abs() / allowed).max().item()
        worst = max(worst, error if error == error else float("inf"))
    return worst


def measure(case, operator, options):
    """A row for each method; vkgemm's has to be right."""
    inputs, in_torch = operators.build(case, operator.device)
    rows, part = [], operators.checked_rows(case)
    expected = in_torch(*(operators.wide(one) for one in operators.first_of(inputs, part)))
    methods = {"torch": lambda: lambda: in_torch(*inputs)}
    if not options.cpu and not options.no_compile:
        def compiled():
            torch._dynamo.reset()
            function = torch.compile(in_torch)
            return lambda: function(*inputs)
        methods["torch.compile"] = compiled
    for name, function in operators.peers(case).items() if not options.cpu else ():
        methods[name] = lambda function=function: lambda: function(*inputs)
    for method in operators.METHODS[case.operator]:
        methods[f"vkgemm, {method.__name__}"] = lambda method=method: method(operator, *inputs)
    for name, prepare in methods.items():
        try:
            with torch.no_grad():
                function = prepare()
                results = operators.first_of(operators.listed(function()), part)
                error = off_by(results, expected, case.dtype)
                rows.append((str(case), name, median_ms(function, options.cpu, options.rep), error))
        except Exception as problem:  # of torch: out of memory, or not compiled
            said = (str(problem) or repr(problem)).splitlines()[0]
            print(f"{case}, {name}: {said[:120]}", file=sys.stderr)
            rows.append((str(case), name, None, float("inf")))
        function = results = None  # their memory serves the next
    return rows


def table(rows):
    """Markdown: shape, method, latency, speed-up over torch, error in parts of what is allowed."""
    lines = ["| operator, shape | method | ms | × torch | error |", "|---|---|---|---|---|"]
    base = {case: ms for case, name, ms, _ in rows if name == "torch"}
    for case, name, ms, error in rows:
        ratio = f"{base[case] / ms:.2f}" if ms and base.get(case) else "–"
        lines.append(f"| {case} | {name} | {'failed' if ms is None else f'{ms:.4f}'} | {ratio} | "
                     f"{'–' if ms is None else f'{error:.2f}'} |")
    return "\n".join(lines)


def draw(rows, title):
    """A figure with a bar for each method: how many times as fast as torch it is."""
    base = {case: ms for case, name, ms, _ in rows if name == "torch"}
    bars = [(case, name, base[case] / ms) for case, name, ms, _ in rows
            if name != "torch" and ms and base.get(case)]
    figure = plot.new_figure(0.17 * len(bars) + 1, f"Times as fast as torch: {title}")
    axes = figure.subplots()
    drawn = axes.barh(range(len(bars)), [ratio for *_, ratio in bars],
                      color=[plot.GREY if name.startswith("torch") else plot.FAMILIES["dense"]
                             for _, name, _ in bars])
    axes.set_yticks(range(len(bars)), [f"{case}, {name}" for case, name, _ in bars])
    axes.bar_label(drawn, fmt="%.2f", padding=3, size=6)
    axes.axvline(1, color=plot.GREY, lw=1)
    axes.margins(x=0.1, y=0.01)
    axes.invert_yaxis()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=Path(__file__).parent / "cases.txt")
    parser.add_argument("--only", nargs="+", help="operators")
    parser.add_argument("--most-flops", type=float, default=float("inf"))
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="begin no case after these")
    parser.add_argument("--rep", type=int, default=100, metavar="MS", help="of each timing")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--cpu", action="store_true", help="small cases, without CUDA")
    parser.add_argument("--plot", metavar="FILE", help="draw the speed-ups with matplotlib")
    options = parser.parse_args()
    if options.plot:
        plot.check(options.plot)
    if not options.cpu and not torch.cuda.is_available():
        sys.exit("run.py: torch finds no CUDA device: --cpu runs small cases without one")
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False  # f32 means IEEE f32, as in vkgemm
    operator = SimpleNamespace(device="cpu" if options.cpu else "cuda")
    if options.cpu:
        operator.vkgemm_device = operators.Host()
        options.most_flops = min(options.most_flops, 1e8)
    rows, end = [], time.monotonic() + options.seconds
    for case in operators.read(options.cases):
        if case.flops > options.most_flops or options.only and case.operator not in options.only:
            continue
        if time.monotonic() > end:
            print(f"{case}: not run, the time is over", file=sys.stderr)
            continue
        rows += measure(case, operator, options)
    print(table(rows))
    if options.plot:
        device = "a dry run" if options.cpu else torch.cuda.get_device_name()
        plot.save(draw(rows, device), options.plot)
    wrong = [(case, name) for case, name, _, error in rows
             if name.startswith("vkgemm") and error > 1]
    print(f"{len(rows)} rows, {len(wrong)} of vkgemm wrong: {wrong}" if wrong else
          f"{len(rows)} rows, none of vkgemm wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
