#!/usr/bin/env python3
"""Draws the rows that `vkgemm bench --json`, `vkgemm tune --compare --json` and an example print.

  bars      the fraction of the ceiling, and the speed relative to the peer that a row names:
            vkgemm bench --from rows.jsonl --peers peers.jsonl --json > with_peers.jsonl
  roofline  TFLOP/s over FLOP/byte, with the memory's bandwidth and the ceiling of f16 matrices
  loss      for each problem of tune, the time of the built-in choice over the time of the fastest
            configuration that was tried
  scaling   speed-up over GPUs: rows of tests/examples/tensor_parallel_mlp.py --json
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import geometric_mean
from types import SimpleNamespace

# Colours that everyone can tell apart (Okabe and Ito). A row has the first family that fits.
FAMILIES = {"grouped": "#009e73", "row reduction": "#d55e00", "gated": "#b4649a",
            "epilogue": "#56a5d8", "split-K": "#d99000", "dense": "#0072b2"}
GREY = "#59636e"
MARKERS = {"f16": "o", "bf16": "D", "f32": "^", "s8": "s"}
GATES = {"sigmoid_tanh", "geglu_erf", "geglu_tanh", "swiglu", "reglu", "glu"}
ROW_OPS = set("rms_norm layer_norm softmax l2_normalize logsumexp sum max mean variance quantise amax".split())
NO_EPILOGUE = {"plain", "batch", "bf16x9", "bf16x6", "f16x3"}
LAUNCH_MS = 0.1  # If a peer takes less time, launches by the host may be most of it.
MOST_LOSS = 4  # the end of the axis
TARGETS = 1.05, 1.25  # the losses that a list may have in the mean and at worst

# Members of rows with their defaults. A type instead of a default: the row needs the member.
CASE = {"m": int, "n": int, "k": int, "groups": "", "type": str, "layout_a": "row_major",
        "layout_b": "row_major", "packed": "", "epilogue": str, "l2": "cold"}
ORIGIN = {"device": "", "driver": "", "commit": ""}
BENCH = {**CASE, **ORIGIN, "config": "", "error": "", "median_ms": 0.0, "tflops": 0.0, "bytes": 0.0,
         "ceiling_tflops": 0.0, "bandwidth_gbs": 0.0, "relative_error": -1.0, "verified": False,
         "peer": "", "peer_driver": "", "peer_ms": 0.0}
LOSS = {**ORIGIN, "problem": str, "list": "problems", "label": "", "built_in": {}, "best": {}}
SCALING = {**ORIGIN, "processes": int, "parts": 1, "ms": float, "alone_ms": float,
           "torch_ms": float, "torch_alone_ms": float}
KINDS = {int: "a size", float: "a finite number of at least 0", str: "a string",
         bool: "true or false", dict: "an object"}


def fail(message):
    sys.exit(f"plot.py: {message}")


def checked(row, members, place):
    values = {name: row.get(name, default) for name, default in members.items()}
    for name, value in values.items():
        kind = members[name] if isinstance(members[name], type) else type(members[name])
        if value is kind:
            fail(f"{place}: {name} is missing")
        good = type(value) is kind or (kind is float and type(value) is int)
        if not good or (name in row and kind in (int, float) and not 0 <= value < 1e300):
            fail(f"{place}: {name} is {json.dumps(value)[:40]}, not {KINDS[kind]}")
    return SimpleNamespace(**values)


def read(file):
    """Gives the place and the object of each line, except the events that tune prints."""
    try:
        lines = Path(file).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as problem:
        fail(f"{file} cannot be read: {problem.strerror}")
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line) if line.strip() else {"event": ""}
        except (ValueError, RecursionError) as problem:
            fail(f"{file}:{number}: not JSON: {problem}")
        if not isinstance(row, dict):
            fail(f"{file}:{number}: {json.dumps(row)[:40]} is not an object")
        if "event" not in row:
            yield f"{file}:{number}", row


def bench_rows(lines):
    """The fastest row of each case, by family, without wrong results and impossible speeds."""
    rows = [checked(row, BENCH, place) for place, row in lines]
    rows = [row for row in rows if not row.error and (row.verified or row.relative_error < 0)
            and row.median_ms > 0 and 1e-6 < row.tflops < 1e6]
    rows = {tuple(getattr(row, name) for name in CASE): row
            for row in sorted(rows, key=lambda row: -row.median_ms)}.values()
    for row in rows:
        words = {part.split(":")[0] for part in row.epilogue.split("+")}
        belongs = [row.groups, words & ROW_OPS, words & GATES, words - NO_EPILOGUE,
                   "slices=" in row.config, True]
        row.family = next(family for family, here in zip(FAMILIES, belongs) if here)
        row.color, row.ratio = FAMILIES[row.family], row.peer_ms / row.median_ms
        row.fraction = row.tflops / row.ceiling_tflops if row.ceiling_tflops else 0
        row.intensity = row.tflops * row.median_ms * 1e9 / row.bytes if row.bytes else 0
        row.shape = f"{row.m}³" if row.m == row.n == row.k else f"{row.m}×{row.n}×{row.k}"
        row.label = ", ".join(filter(None, [
            f"{row.shape} {row.type}", row.groups and row.groups.split()[0] + " groups",
            "one B" * row.groups.endswith("b shared"), row.packed and f"packed {row.packed}",
            "A col" * (row.layout_a != "row_major"), "B col" * (row.layout_b != "row_major"),
            row.epilogue * (row.epilogue != "plain"), f"L2 {row.l2}" * (row.l2 != "cold")]))
    return sorted(rows, key=lambda row: (
        -list(FAMILIES).index(row.family), row.epilogue, row.type, row.packed, row.layout_a,
        row.layout_b, row.m * row.n * row.k))


def loss_rows(lines):
    """The rows of each list by loss. A later row replaces an earlier row of the same problem."""
    lists = {}
    for place, row in lines:
        row = checked(row, LOSS, place)
        choice, best = (checked(getattr(row, name), {"us": 0.0}, f"{place}: {name}").us
                        for name in ("built_in", "best"))
        row.loss = choice / best if choice and best else 0
        lists.setdefault(row.list, {})[row.problem] = row
    return {name: sorted(rows.values(), key=lambda row: row.loss) for name, rows in lists.items()}


def check(out):
    """Fails if save() would fail, as far as that can be known before a figure is drawn."""
    if Path(out).suffix not in (".svg", ".png"):
        fail(f"'{out}' is no name of a plot: one that ends in .svg or .png is needed")
    try:
        import matplotlib.figure
    except ImportError:
        fail("matplotlib is not installed (Debian: python3-matplotlib)")


def new_figure(height, title, rows=(), notes=()):
    """An empty figure. The devices of the rows and the notes stand below it."""
    import matplotlib.figure
    matplotlib.rcdefaults()
    matplotlib.rcParams.update({
        "font.size": 8, "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e3e7eb",
        "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "vkgemm"})
    figure = matplotlib.figure.Figure(figsize=(9.4, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", weight="bold", size=11)
    devices = {f"{row.device}, {row.driver}; vkgemm {row.commit or '?'}" for row in rows}
    figure.supxlabel("\n".join([*sorted(devices), *notes]), x=0.01, ha="left", size=7, color=GREY)
    return figure


def save(figure, out):
    metadata = {"Date": None} if out.endswith(".svg") else {}  # The same rows give the same file.
    try:
        figure.savefig(out, dpi=150, metadata=metadata)
    except OSError as problem:
        fail(f"{out} cannot be written: {problem.strerror}")
    print(f"wrote {out}")


def add_legend(axes, rows, types=()):
    for family in dict.fromkeys(row.family for row in rows):
        axes.plot([], [], "s", color=FAMILIES[family], label=family)
    for name in sorted(types):
        axes.plot([], [], MARKERS.get(name, "o"), color=GREY, label=name)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=6, frameon=False)


def draw_roofline(lines):
    rows = [row for row in bench_rows(lines) if 1e-6 < row.intensity < 1e9
            and row.ceiling_tflops < 1e6 and row.bandwidth_gbs < 1e7]
    if not rows:
        fail("nothing to draw: no row has a time and bytes")
    figure = new_figure(5.2, "Speed over arithmetic intensity", rows)
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", ylabel="TFLOP/s",
             xlabel="FLOP per byte, every operand and result counted once")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    for row in rows:
        axes.plot(row.intensity, row.tflops, MARKERS.get(row.type, "o"), color=row.color, mec="w")
    (left, right), bottom = axes.get_xlim(), axes.get_ylim()[0]
    slope = max(row.bandwidth_gbs for row in rows) / 1e3
    ceiling = max(0 if row.config.startswith(("fma", "skinny")) else row.ceiling_tflops
                  for row in rows)  # Path fma has the ceiling of other units.
    ridge = left
    if slope > 1e-6:
        begin, ridge = max(left, bottom / slope), ceiling / slope or right
        axes.plot([begin, ridge], [begin * slope, ridge * slope], "--", color=GREY,
                  label=f"memory {slope:.3g} TB/s")
    if ceiling:
        axes.plot([ridge, max(ridge, right)], [ceiling] * 2, color=GREY,
                  label=f"{ceiling:.3g} TFLOP/s: f16 matrices from registers")
    add_legend(axes, rows, {row.type for row in rows})

    # A name takes the first place where it covers no point and no other name.
    figure.draw_without_rendering()
    boxes = [mark.get_window_extent() for mark in axes.lines[:len(rows)]]
    for row in rows:
        name = f"{row.groups.split()[0]} groups" if row.groups else row.shape
        name += f" {row.epilogue}" * (row.epilogue != "plain")
        for ha, *place in ("left", 6, 0), ("right", -6, 0), ("center", 0, 8), ("center", 0, -8):
            text = axes.annotate(name, (row.intensity, row.tflops), place, ha=ha, va="center",
                                 size=6, textcoords="offset points")
            box = text.get_window_extent()
            if not box.count_overlaps(boxes) and axes.bbox.x0 < box.x0 and box.x1 < axes.bbox.x1:
                boxes.append(box)
                break
            text.remove()
    return figure


def draw_bars(lines):
    rows = [row for row in bench_rows(lines) if row.fraction or row.ratio]
    if not rows:
        fail("nothing to draw: no row has a time, and a ceiling or a peer")
    notes = sorted({f"peer: {row.peer_driver}" for row in rows if row.ratio and row.peer_driver})
    hollow = [row.ratio > 0 and row.peer_ms < LAUNCH_MS for row in rows]
    if any(hollow):
        notes.append(f"hollow: peers of less than {LAUNCH_MS} ms, which may be mostly launches")
    panels = [name for name in ("fraction", "ratio") if any(getattr(row, name) for row in rows)]
    figure = new_figure(0.17 * len(rows) + 1.7, "Speed\n", rows, notes)  # the legend in line 2
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, name in zip(all_axes, panels):
        base, form = {"fraction": (0, "{:.3f}"), "ratio": (1, "{:.2f}×")}[name]
        values = [getattr(row, name) for row in rows]
        ends = [min(max(value, 1e-4), 1e4) if value else base for value in values]
        bars = axes.barh(range(len(rows)), [end - base for end in ends], left=base,
                         edgecolor=[row.color for row in rows],
                         color=["w" if base and own else row.color
                                for own, row in zip(hollow, rows)])
        axes.bar_label(bars, [form.format(value) if value else "" for value in values], size=6,
                       padding=3, in_layout=False)
        axes.set(xlabel="fraction of the ceiling", xlim=(0, 1.15 * max(1, *ends)))
        if base:
            axes.set_xscale("log", base=2)
            axes.set(xlabel="speed relative to the peer",
                     xlim=(min(0.5, *ends) / 1.5, 1.5 * max(2, *ends)))
            axes.xaxis.set_major_formatter("{x:g}×")
            axes.secondary_yaxis("right").set_yticks(range(len(rows)), [row.peer for row in rows])
        axes.axvline(1, color=GREY, lw=1)
        axes.grid(False, axis="y")
    all_axes[0].set_yticks(range(len(rows)), [row.label for row in rows])
    all_axes[0].set_ylim(len(rows) - 0.4, -0.6)
    add_legend(all_axes[0], rows)
    all_axes[0].get_legend().set_in_layout(False)
    return figure


def draw_loss(lines):
    lists = loss_rows(lines)
    rows = [row for rows in lists.values() for row in rows]
    most = max((row.loss for row in rows), default=0)
    if not most:
        fail("nothing to draw: no row has the times of a choice and of the fastest configuration")
    notes = ["dashed: {:g} and {:g}, the limits in the mean and at worst".format(*TARGETS),
             *[f"triangle: a loss above {MOST_LOSS}"] * (most > MOST_LOSS)]
    height = (len(lists) + 1) // 2
    figure = new_figure(2.2 * height + 0.8, "Loss of the built-in choices", rows, notes)
    for place, (name, rows) in enumerate(lists.items(), 1):
        axes = figure.add_subplot(height, 2, place, sharey=figure.axes[0] if place > 1 else None)
        losses = [row.loss for row in rows if row.loss]
        title = f"{name}: {len(losses)} problem" + "s" * (len(losses) != 1)
        if losses:
            title += f", geometric mean {geometric_mean(losses):.3f}, worst {losses[-1]:.3f}"
            axes.text(len(losses) - 1.6, min(losses[-1], MOST_LOSS),
                      rows[-1].label or rows[-1].problem, ha="right", va="center", size=6)
        if len(rows) > len(losses):
            title += f", {len(rows) - len(losses)} not compared"
        axes.set_title(title, loc="left", size=8)
        axes.set(xlim=(-1, len(losses)), xticks=[])
        for target in TARGETS:
            axes.axhline(target, color=GREY, ls="--", lw=1)
        for x, loss in enumerate(losses):
            axes.plot(x, min(loss, MOST_LOSS), "^" if loss > MOST_LOSS else "o", ms=3,
                      color=FAMILIES["dense"])
    return figure


def draw_scaling(lines):
    rows = [checked(row, SCALING, place) for place, row in lines]
    rows = [row for row in rows if row.processes and row.ms and row.torch_ms]
    if not rows:
        fail("nothing to draw: no row has processes and a time")
    figure = new_figure(4, "Speed-up over GPUs", rows)
    axes = figure.subplots()
    most = max(row.processes for row in rows)
    axes.plot([1, most], [1, most], "--", color=GREY, lw=1, label="n times as fast")
    for parts in sorted({row.parts for row in rows}):
        cut = f", rows in {parts} parts" * (parts > 1)
        for name, color, speed in (
                ("vkgemm", FAMILIES["dense"], lambda row: row.alone_ms / row.ms),
                ("torch", FAMILIES["split-K"], lambda row: row.torch_alone_ms / row.torch_ms)):
            points = sorted({1: 1, **{row.processes: speed(row) for row in rows
                                      if row.parts == parts}}.items())
            axes.plot(*zip(*points), "o-" if parts == 1 else "s:", color=color,
                      label=name + cut + ": {1:.2f} at {0}".format(*points[-1]))
    axes.set(xlabel="GPUs", ylabel="times as fast as one", xlim=(0.8, 1.1 * most),
             xticks=sorted({1, *(row.processes for row in rows)}))
    axes.legend(loc="upper left", frameon=False)
    return figure


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+", metavar="FILE", help="JSON lines")
    parser.add_argument("--kind", choices=["bars", "roofline", "loss", "scaling"],
                        help="default: loss for rows of tune, scaling for rows with processes, "
                             "otherwise bars")
    parser.add_argument("--out", required=True, metavar="FILE", help="a name in .svg or .png")
    options = parser.parse_args(arguments)
    check(options.out)
    lines = [line for file in options.rows for line in read(file)]
    first = lines[0][1] if lines else {}
    kind = options.kind or ("loss" if "problem" in first else
                            "scaling" if "processes" in first else "bars")
    draw = {"bars": draw_bars, "roofline": draw_roofline, "loss": draw_loss,
            "scaling": draw_scaling}[kind]
    save(draw(lines), options.out)


if __name__ == "__main__":
    main()
