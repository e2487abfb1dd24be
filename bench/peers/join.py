#!/usr/bin/env python3
"""Joins JSON lines of `vkgemm bench --json` with those of peers.py into one Markdown table: a row
for each of vkgemm's, beside the peer's time for the same case.

  python3 join.py vkgemm.jsonl peers.jsonl
"""

import argparse
import json
import sys

CASE = ("m", "n", "k", "groups", "type", "layout_a", "layout_b", "epilogue")


def read_rows(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = {"layout_a": "row_major", "groups": ""} | json.loads(line)  # not always named
                row["case"] = tuple(row[key] for key in CASE)
            except (ValueError, KeyError, TypeError) as error:
                sys.exit(f"join.py: {path}:{number}: not a line of a benchmark ({error!r})")
            rows.append(row)
    return rows


def best_by_case(rows):
    best = {}
    for row in rows:
        if "median_ms" not in row:
            continue
        known = best.get(row["case"])
        if known is None or row["median_ms"] < known["median_ms"]:
            best[row["case"]] = row
    return best


def figure(row, key, pattern):
    return pattern.format(row[key]) if row and key in row else "–"


def print_table(rows, peers):
    columns = ["M×N×K", "type", "A", "B", "epilogue", "vkgemm ms", "TFLOP/s", "of ceiling", "peer",
               "peer ms", "peer TFLOP/s", "vkgemm/peer", "error", "configuration"]
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        peer = peers.get(row["case"])
        speed = "–"
        if peer and "median_ms" in row:
            speed = f"{peer['median_ms'] / row['median_ms']:.2f}×"
        m, n, k, groups, dtype, layout_a, layout_b, epilogue = row["case"]
        shape = f"{m}×{n}×{k}" + (f" in {groups}" if groups else "")
        error = row.get("error") or figure(row, "relative_error", "{:.1e}")
        if row.get("verified") is False:
            error += " WRONG"
        cells = [shape, dtype, layout_a, layout_b, epilogue,
                 figure(row, "median_ms", "{:.4f}"),
                 figure(row, "tflops", "{:.1f}"), figure(row, "fraction", "{:.3f}"),
                 peer["kernel"] if peer else "–", figure(peer, "median_ms", "{:.4f}"),
                 figure(peer, "tflops", "{:.1f}"), speed, error, f"`{row.get('config', '')}`"]
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vkgemm", help="output of `vkgemm bench --json`")
    parser.add_argument("peers", help="output of peers.py")
    parser.add_argument("--best", action="store_true",
                        help="only the fastest configuration of each case")
    arguments = parser.parse_args()
    rows = read_rows(arguments.vkgemm)
    peers = best_by_case(read_rows(arguments.peers))
    if arguments.best:
        rows = list(best_by_case(rows).values())
    for name, found in (("vkgemm", rows), ("peers", list(peers.values()))):
        origins = sorted({(row["device"], row["driver"]) for row in found})
        commits = sorted({row["commit"] for row in found if "commit" in row})
        for device, driver in origins:
            print(f"{name}: {device}, {driver}" + (f", {', '.join(commits)}" if commits else ""))
    print()
    print_table(rows, peers)


if __name__ == "__main__":
    main()
