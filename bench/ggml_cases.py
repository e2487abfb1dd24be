#!/usr/bin/env python3
"""Translates the matrix products that ggml tests into `vkgemm run` commands, and runs them.

  test-backend-ops test -b CPU -o MUL_MAT,MUL_MAT_ID > cases.txt
  python3 bench/ggml_cases.py cases.txt > commands.txt
  python3 bench/ggml_cases.py cases.txt --run build/test/bin/vkgemm

The input is text with cases as ggml's test-backend-ops prints them: MUL_MAT(type_a=q4_0,type_b=f32,m=16,...).
The output has a command for each case, or a comment with the reason why vkgemm cannot compute the case.
`vkgemm tune --log commands.txt` reads the output, too.

ggml's src0, the weights, is B: its m is N. ggml's src1, the activations, is A: its n is M. D is f32.

  type_a, type_b    Types with a codebook (iq1_s to iq3_s) are int8 codes, to which a host converts them
                    exactly. vkgemm multiplies in bf16 if the weights are bf16. It multiplies f32 by f32 in f32, and all
                    others in f16.
  per, k_v,         Permuted, padded and interleaved operands have leading dimensions and strides.
  src_overlap
  bs, nr            Matrices of the batch that share a B become more rows of A if the rows have one step.
                    Otherwise B has a stride of 0. Dimensions of the batch that are contiguous in all operands
                    are merged. If three remain, they become groups of rows, each with a matrix B by index.
  o                 The sum of o products is tested as D = A*B + C.
  MUL_MAT_ID        The rows of an expert are a group. Rows of A are gathered, and rows of D scattered.

The tool generates values and indices, and verifies each result against a double-precision reference.
"""

import argparse
import collections
import concurrent.futures
import random
import re
import shlex
import shutil
import subprocess
import sys

FLOATS = ("f32", "f16", "bf16")
FORMATS = {"q4_0": "int4:ggml", "q8_0": "int8:ggml", "mxfp4": "mxfp4:ggml", "nvfp4": "nvfp4:ggml"} | {
    name: name for name in ("q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
                            "iq4_nl", "iq4_xs", "q1_0", "q2_0", "tq2_0")}
# Types with a codebook, which the host converts exactly: codes of 8 bits with scales of f32.
CONVERTED = {name: f"int8:group={group}:scales=f32" for name, group in (
    ("iq2_xxs", 32), ("iq2_xs", 16), ("iq2_s", 16), ("iq3_xxs", 32), ("iq3_s", 32), ("iq1_s", 32),
    ("iq1_m", 16))}

CASE = re.compile(r"(MUL_MAT(?:_ID)?)\((type_a=[^)]*)\)")
FIELD = re.compile(r"(\w+)=(\[[^]]*\]|[^,]*)")
VERDICTS = {0: "passed", 1: "wrong", 2: "refused"}  # by the tool's exit code; others: failed

# A direction of a product that is neither K nor N: its size, and its steps in elements of A, B and D.
Loop = collections.namedtuple("Loop", "size a b d")


class Unsupported(Exception):
    """The reason why vkgemm cannot compute a case."""


def parse(text):
    case = {}
    for name, value in FIELD.findall(text):
        if name.startswith("type_"):
            case[name] = value.lower()
        else:
            case[name] = [int(x) for x in value[1:-1].split(",")] if value[0] == "[" else int(value)
    return case


def type_options(case):
    weights, activations = case["type_a"], case["type_b"]
    if activations not in ("f32", "f16"):
        raise Unsupported(f"activations in {activations}")
    options = ["--dtype", activations, "--dtype-d", "f32", "--layout-b", "col_major"]
    codes = FORMATS.get(weights) or CONVERTED.get(weights)
    if codes:
        options += ["--quantised-b", codes]
        weights = "f16"
    if weights not in FLOATS:
        raise Unsupported(f"weights in {weights}")
    if weights != activations:
        options += ["--dtype-b", weights, "--multiply-as", "bf16" if weights == "bf16" else "f16"]
    return options


def steps_of(sizes, order):
    """The step of each dimension, in elements, if memory has the dimensions in this order."""
    steps, step = [0] * len(sizes), 1
    for dimension in order:
        steps[dimension] = step
        step *= sizes[dimension]
    return steps


def merge(loops):
    """Joins neighbouring loops that have one step in all operands."""
    out = []
    for loop in loops:
        if out and loop[1:] == tuple(out[-1].size * step for step in out[-1][1:]):
            out[-1] = out[-1]._replace(size=out[-1].size * loop.size)
        elif loop.size != 1:
            out.append(loop)
    return out


def stride_options(name, length, lines, ld, batch, steps):
    """Options of an operand, without those that have their default."""
    options = []
    if lines == 1:
        ld = length
    if ld != length:
        options += [f"--ld-{name}", ld]
    usual = ld * lines
    for option, step in zip(("batch-stride", "outer-batch-stride"), steps):
        if step != usual:
            options += [f"--{option}-{name}", step]
        usual = batch * step or ld * lines
    return options


def mul_mat(case):
    m, n, k, order = case["m"], case["n"], case["k"], case["per"]
    (bs2, bs3), (nr2, nr3) = case["bs"], case["nr"]
    if order[0] != 0:
        raise Unsupported("K is not contiguous in memory")
    depth = 2 * k if case["src_overlap"] else case["k_v"] or k
    lines = max(m, n) if case["src_overlap"] else 0
    a = steps_of([depth, lines or n, bs2 * nr2, bs3 * nr3], order)
    b = steps_of([depth, lines or m, bs2, bs3], order)
    d = steps_of([m, n, bs2 * nr2, bs3 * nr3], (0, 1, 2, 3))
    loops = merge([Loop(n, a[1], 0, d[1]),
                   Loop(nr2, a[2], 0, d[2]), Loop(bs2, nr2 * a[2], b[2], nr2 * d[2]),
                   Loop(nr3, a[3], 0, d[3]), Loop(bs3, nr3 * a[3], b[3], nr3 * d[3])])
    rows = next((loop for loop in loops if loop.b == 0), Loop(1, a[1], 0, d[1]))
    loops = [loop for loop in loops if loop is not rows]
    sizes = [loop.size for loop in loops]
    options = []
    if len(loops) > 2:
        whole = merge(loop._replace(b=0) for loop in [rows, *loops])
        if len(whole) != 1 or b[3] != bs2 * b[2]:
            raise Unsupported("three dimensions of the batch, with strides")
        options = ["--group-count", whole[0].size // rows.size, "--b-per-group", "--b-matrices", bs2 * bs3]
        rows, loops = whole[0], []
    elif loops:
        options = [word for option in zip(("--batch", "--outer-batch"), sizes) for word in option]
    batch = sizes[0] if loops else 1
    options += stride_options("a", k, rows.size, rows.a, batch, [loop.a for loop in loops])
    options += stride_options("b", k, m, b[1], batch, [loop.b for loop in loops])
    options += stride_options("d", m, rows.size, rows.d, batch, [loop.d for loop in loops])
    if case["o"] > 1:
        options += ["--beta", 1]
    return ["--m", rows.size, "--n", m, "--k", k, *options]


def mul_mat_id(case):
    tokens, experts, used = case["n"], case["n_mats"], case["n_used"]
    draw = random.Random(0)
    chosen = collections.Counter(expert for _ in range(tokens) for expert in draw.sample(range(experts), used))
    terms = used if case["b"] else 1  # the experts of a token share a row of A
    rows = tokens * used
    options = ["--groups", ",".join(str(chosen[expert]) for expert in range(experts)), "--b-per-group",
               "--a-rows", rows // terms, "--a-terms", terms, "--d-rows", rows]
    return ["--m", rows, "--n", case["m"], "--k", case["k"], *options]


def options_of(kind, case):
    shape = mul_mat(case) if kind == "MUL_MAT" else mul_mat_id(case)
    return tuple(map(str, shape + type_options(case)))


def run(tool, options, timeout):
    """The verdict, and the reason if it is not "passed"."""
    try:
        done = subprocess.run([*tool, *options], capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return "failed", f"no result after {timeout} s"
    verdict = VERDICTS.get(done.returncode, "failed")
    if verdict == "passed":
        return ("passed", "") if "PASSED" in done.stdout else ("failed", "not verified")
    lines = (done.stdout + done.stderr).splitlines()
    reasons = [line for line in lines if "FAILED" in line or line.startswith(("vkgemm:", "--"))]
    return verdict, reasons[-1] if reasons else f"exit code {done.returncode}"


def run_all(tool, commands, jobs, timeout):
    results, counts = {}, collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(run, tool, options, timeout): options for options in commands}
        for future in concurrent.futures.as_completed(waiting):
            options = waiting[future]
            results[options] = verdict, reason = future.result()
            counts[verdict] += 1
            if verdict != "passed":
                print(f"{verdict}: vkgemm run {' '.join(options)}\n  {reason}", flush=True)
            if len(results) % 50 == 0 or len(results) == len(waiting):
                print(f"{len(results)} of {len(waiting)}: {dict(counts)}", file=sys.stderr)
    return results


def print_table(title, counts):
    """A row for each first key, and a column for each second key."""
    columns = sorted({column for _, column in counts})
    print(f"\n| {title} | cases | {' | '.join(columns)} |\n|---|{'---|' * (len(columns) + 1)}")
    for name in [*dict.fromkeys(row for row, _ in counts), "all"]:
        cells = [sum(n for (row, of), n in counts.items() if name in (row, "all") and of == column)
                 for column in columns]
        print(f"| {name} | {sum(cells)} | {' | '.join(str(cell or '') for cell in cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=argparse.FileType(), default=sys.stdin,
                        help="text with ggml's cases (default: standard input)")
    parser.add_argument("--run", metavar="TOOL",
                        help="run each distinct case; TOOL is vkgemm, or a command like 'vkrun -d lvp vkgemm'")
    parser.add_argument("--device", help="device of the tool: index, or part of the name")
    parser.add_argument("--only", metavar="REGEX", default="", help="only cases that match")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time (default %(default)s)")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="of a run (default %(default)s)")
    parser.add_argument("--summary", action="store_true", help="print only the tables")
    arguments = parser.parse_args()

    cases = []  # type of the weights, options, and the reason if there are none
    for match in CASE.finditer(arguments.file.read()):
        if not re.search(arguments.only, match[0]):
            continue
        case = parse(match[2])
        try:
            options, reason = options_of(match[1], case), ""
        except Unsupported as unsupported:
            options, reason = None, str(unsupported)
        cases.append((case["type_a"], options, reason))
        if not arguments.run and not arguments.summary:
            print(f"vkgemm run {' '.join(options)}" if options else f"# {match[0]}: {reason}")
    if not cases:
        parser.error("the input has no cases of MUL_MAT or MUL_MAT_ID")
    if not arguments.run and not arguments.summary:
        return 0

    results = {}
    if arguments.run:
        tool = [*shlex.split(arguments.run), "run", "--repeat", "0"]
        tool += ["--device", arguments.device] if arguments.device else []
        if not shutil.which(tool[0]):
            parser.error(f"--run: there is no program {tool[0]}")
        commands = dict.fromkeys(options for _, options, _ in cases if options)
        results = run_all(tool, commands, arguments.jobs, arguments.timeout)
    counts, reasons = collections.Counter(), collections.Counter()
    for weights, options, reason in cases:
        verdict, why = ("not expressible", reason) if options is None else results.get(options, ("expressible", ""))
        counts[weights, verdict] += 1
        if why and verdict != "wrong":
            reasons[re.sub(r"\b\d+\b", "*", why), verdict] += 1
    print_table("weights", counts)
    if reasons:
        print_table("reason", reasons)
    return 1 if any(verdict in ("wrong", "failed") for verdict, _ in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
