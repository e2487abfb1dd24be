#!/usr/bin/env python3
"""Draws the speed of square products over their size as SVG: several runs of `vkgemm bench --json`
and of peers.py in one picture, as fractions of the ceiling that the first of them measured.

  python3 plot.py -o speed.svg vkgemm=new.jsonl previous=old.jsonl cuBLAS=peers.jsonl
"""

import argparse
import html
import json
import math
import sys

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 48, 52
COLOURS = ["#0072b2", "#999999", "#d55e00", "#009e73", "#cc79a7"]  # told apart by everyone


def read_run(text, dtype):
    """(name, [(size, TFLOP/s)], ceiling or None) of "name=file"."""
    name, _, path = text.partition("=")
    if not path:
        sys.exit(f"plot.py: '{text}' is not name=file")
    best, ceiling = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            ceiling = ceiling or row.get("ceiling_tflops")
            square = row["m"] == row["n"] == row["k"]
            plain = (row["type"], row["epilogue"], row.get("layout_a", "row_major"),
                     row["layout_b"]) == (dtype, "plain", "row_major", "row_major")
            if square and plain and "tflops" in row:
                best[row["m"]] = max(best.get(row["m"], 0.0), row["tflops"])
    return name, sorted(best.items()), ceiling


def draw(runs, ceiling, title):
    sizes = sorted({size for _, points, _ in runs for size, _ in points})
    top = max([ceiling] + [speed for _, points, _ in runs for _, speed in points])
    steps = math.ceil(top / ceiling / 0.2)
    low, high = math.log2(sizes[0]), math.log2(sizes[-1])

    def x(size):
        return LEFT + (math.log2(size) - low) / max(high - low, 1e-9) * (WIDTH - LEFT - RIGHT)

    def y(fraction):
        return HEIGHT - BOTTOM - fraction / (0.2 * steps) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="26" font-size="15">{html.escape(title)}</text>']
    for step in range(steps + 1):
        fraction = 0.2 * step
        colour = "#444" if step in (0, 5) else "#ddd"
        out.append(f'<path d="M{LEFT} {y(fraction):.1f}H{WIDTH - RIGHT}" stroke="{colour}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(fraction) + 4:.1f}" text-anchor="end">'
                   f'{fraction:.1f}</text>')
    for size in sizes:
        out.append(f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">'
                   f'{size}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
               'M = N = K</text>')
    label_y = HEIGHT
    for index, (name, points, _) in sorted(enumerate(runs), key=lambda run: run[1][1][-1][1]):
        colour = COLOURS[index % len(COLOURS)]
        places = [(x(size), y(speed / ceiling)) for size, speed in points]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="{colour}"/>' for px, py in places]
        label_y = min(places[-1][1] + 4, label_y - 16)
        out.append(f'<text x="{places[-1][0] + 10:.1f}" y="{label_y:.1f}" fill="{colour}">'
                   f'{html.escape(name)}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="name=file", help="lines of JSON")
    parser.add_argument("-o", "--output", required=True, help="the SVG")
    parser.add_argument("--dtype", default="f16", help="element type (default: f16)")
    parser.add_argument("--title", default="Fraction of the ceiling of cooperative matrices")
    arguments = parser.parse_args()
    runs = [read_run(text, arguments.dtype) for text in arguments.runs]
    ceiling = next((run[2] for run in runs if run[2]), None)
    if ceiling is None:
        sys.exit("plot.py: no run has measured a ceiling")
    runs = [run for run in runs if run[1]]
    if not runs:
        sys.exit("plot.py: no run has square, plain, row-major products")
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(draw(runs, ceiling, f"{arguments.title} ({ceiling:.0f} TFLOP/s)"))


if __name__ == "__main__":
    main()
