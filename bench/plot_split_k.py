#!/usr/bin/env python3
"""Draws what split-K takes over the number of slices, a panel for each shape and kernel and a line for
each tier, from lines of `vkgemm bench --json`.

  python3 plot_split_k.py -o tiers.svg tiers.jsonl
"""

import argparse
import html
import json
import math
import re
import sys

from plot import COLOURS

TIERS = ["two_dispatches", "last_arriver", "device_barrier"]
WIDTH, HEIGHT = 300, 220  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 44, 36
PER_ROW = 3


def read_panels(path):
    """{title: {tier: [(slices, microseconds)]}}, in the order of the file."""
    panels = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            slices = re.search(r",slices=(\d+)", row["config"])
            if not slices or "median_ms" not in row:
                continue
            tier = re.search(r",tier=(\w+)", row["config"])
            tile = re.match(r"\w+:tile=(\w+)", row["config"]).group(1)
            fragment = re.search(r"fma:.*,fragment=(\w+)", row["config"])
            title = (f"{row['m']}×{row['n']}×{row['k']} {row['type']}, tile {tile}"
                     + (f" of {fragment.group(1)}" if fragment else "")
                     + (", B col" if row["layout_b"] == "col_major" else ""))
            lines = panels.setdefault(title, {})
            points = lines.setdefault(tier.group(1) if tier else TIERS[0], [])
            points.append((int(slices.group(1)), row["median_ms"] * 1e3))
    return panels


def draw_panel(title, lines):
    points = [point for line in lines.values() for point in line]
    low, high = (math.log2(pick(point[0] for point in points)) for pick in (min, max))
    top = max(time for _, time in points) * 1.05
    step = 10 ** math.floor(math.log10(top))
    step = next(step * f for f in (0.2, 0.5, 1, 2) if top / (step * f) <= 6)

    def x(slices):
        return LEFT + (math.log2(slices) - low) / max(high - low, 1e-9) * (WIDTH - LEFT - RIGHT)

    def y(time):
        return HEIGHT - BOTTOM - time / top * (HEIGHT - TOP - BOTTOM)

    out = [f'<text x="{LEFT}" y="{TOP - 12}">{html.escape(title)}</text>']
    for i in range(int(top / step) + 1):
        out.append(f'<path d="M{LEFT} {y(i * step):.1f}H{WIDTH - RIGHT}" '
                   f'stroke="{"#444" if i == 0 else "#ddd"}"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y(i * step) + 4:.1f}" text-anchor="end">'
                   f'{i * step:g}</text>')
    for slices in sorted({point[0] for point in points}):
        out.append(f'<text x="{x(slices):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
                   f'{slices}</text>')
    for tier, line in lines.items():
        colour = COLOURS[TIERS.index(tier)]
        places = [(x(slices), y(time)) for slices, time in sorted(line)]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in places]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", help="lines of JSON")
    parser.add_argument("-o", "--output", required=True, help="the SVG")
    arguments = parser.parse_args()
    panels = read_panels(arguments.rows)
    if not panels:
        sys.exit("plot_split_k.py: no row has slices")
    columns = min(PER_ROW, len(panels))
    rows = math.ceil(len(panels) / columns)
    width, height = columns * WIDTH, rows * HEIGHT + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="14">Split-K: µs over slices of K, by who adds them: '
           + ", ".join(f'<tspan fill="{COLOURS[i]}">{tier}</tspan>' for i, tier in enumerate(TIERS))
           + '</text>']
    for i, (title, lines) in enumerate(panels.items()):
        out.append(f'<g transform="translate({i % columns * WIDTH} {i // columns * HEIGHT + 30})">')
        out += draw_panel(title, lines) + ["</g>"]
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write("\n".join(out + ["</svg>", ""]))


if __name__ == "__main__":
    main()
