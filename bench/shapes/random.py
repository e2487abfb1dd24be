#!/usr/bin/env python3
"""Draws the problems of random.txt, the same at every run:

  python3 bench/shapes/random.py > bench/shapes/random.txt
"""

import math
import sys

sys.path.pop(0)  # this file's folder, where `random` is this file
import random

SEED = 1
LARGEST = 16384  # of M, N and K
MOST_FLOPS = 2e12
MOST_ELEMENTS = 2**29 - 1  # of an operand: less than 2 GiB, even of f32

GATES = ["swiglu", "geglu_erf", "geglu_tanh", "reglu", "glu", "sigmoid_tanh"]
FORMS = ["", ":interleaved", ":separate"]
NORMS = ["rms_norm", "layer_norm"]
SCALARS = ["logsumexp", "sum", "max", "mean", "variance"]
ROW_OPS = [*NORMS, "softmax", "l2_normalize", *SCALARS]
ACTIVATIONS = ["relu", "gelu_erf", "gelu_tanh", "silu", "sigmoid", "tanh"]
EPILOGUE = {"bias-mode": ["along_n", "along_n", "along_m"], "activation": ACTIVATIONS,
            "beta": [1, 0.5], "alpha": [0.125, 0.5], "clamp-max": [6]}

HEAD = f"""\
# 200 problems at random that no table knows, and none may: `vkgemm tune --compare --log bench/shapes/random.txt`.
# random.py draws them, of all families: M, N and K from 1 to {LARGEST}, even in their logarithms, at most 2 TFLOP."""

draw = random.Random(SEED)


def chance(of):
    return draw.random() < of


def even_in_logarithms(least, most):
    return round(math.exp(draw.uniform(math.log(least), math.log(most))))


def add_flags(p, of, *flags):
    p.update({flag: True for flag in flags if chance(of)})


def add_batch(p, of):
    if chance(of):
        p["batch"] = even_in_logarithms(2, 64)


def add_epilogue(p, names):
    for name in draw.sample(names, draw.randint(1, min(3, len(names)))):
        p[name] = draw.choice(EPILOGUE[name])
    if "activation" in p:
        add_flags(p, 1 / 5, "with-aux")


def add_groups(p, along):
    ends = sorted(draw.randint(0, p[along]) for _ in range(even_in_logarithms(2, 128) - 1))
    p["groups"] = [end - begin for begin, end in zip([0, *ends], [*ends, p[along]])]
    if along == "k":
        p["group-along"] = "k"
    else:
        add_flags(p, 2 / 3, "b-per-group")


def plain(p, _):
    add_batch(p, 1 / 4)


def epilogue(p, _):
    add_batch(p, 1 / 6)
    add_epilogue(p, list(EPILOGUE))


def grouped(p, i):
    add_groups(p, "k" if i % 5 == 4 else "m")
    if chance(1 / 3):
        add_epilogue(p, list(EPILOGUE))


def rows(p, i):
    add_batch(p, 1 / 6)
    p["row-op"] = ROW_OPS[i % len(ROW_OPS)]
    if p["row-op"] in NORMS:
        add_flags(p, 2 / 3, "with-row-gamma", "with-row-beta")
    if p["row-op"] in SCALARS:
        add_flags(p, 1 / 2, "without-d")
    if chance(1 / 3):
        add_epilogue(p, ["bias-mode", "beta", "alpha"])


def gated(p, i):
    if chance(1 / 6):
        add_groups(p, "m")  # experts
    else:
        add_batch(p, 1 / 6)
    p["gated"] = GATES[i % len(GATES)] + FORMS[i // len(GATES) % len(FORMS)]
    if chance(1 / 3):
        add_epilogue(p, ["bias-mode", "alpha"])
    add_flags(p, 1 / 8, "with-aux")


FAMILIES = [("Plain", plain, 48), ("Epilogues", epilogue, 40), ("Groups", grouped, 40),
            ("Reductions of rows", rows, 36), ("Gates", gated, 36)]


def add_operands(p):
    """Packed operands have 16 bits, and groups cut none. With groups of rows, D is row-major."""
    groups_of_rows = "groups" in p and "group-along" not in p
    packed = []
    if p["dtype"] != "f32":
        if chance(1 / 6):
            p["dtype-d"] = "f32"
        if "group-along" not in p and chance(1 / 4):
            packed = ["b"] if groups_of_rows or chance(1 / 2) else ["a", "b"]
    for name, of in (("a", 1 / 4), ("b", 1 / 2), ("d", 0 if groups_of_rows else 1 / 8)):
        if name not in packed and chance(of):
            p["layout-" + name] = "col_major"
    p.update({"packed-" + name: True for name in packed})


def fits(p):
    m, k, batch, groups = p["m"], p["k"], p.get("batch", 1), len(p.get("groups", []))
    columns = p["n"] * (2 if "gated" in p else 1)
    of_b = groups if "b-per-group" in p else batch
    of_d = groups if "group-along" in p else batch
    elements = max(m * k * batch, k * columns * of_b, m * columns * of_d)
    return 2 * m * columns * k * batch <= MOST_FLOPS and elements <= MOST_ELEMENTS


def problem(add_family, i):
    while True:
        p = {name: even_in_logarithms(1, LARGEST) for name in "mnk"}
        p["dtype"] = draw.choice(["f16", "f16", "bf16", "bf16", "f32"])
        add_family(p, i)
        add_operands(p)
        if fits(p):
            return p


def line(p):
    def words(name, value):
        if value is True:
            return f"--{name}"
        return f"--{name} {','.join(map(str, value)) if isinstance(value, list) else value}"

    return " ".join(["vkgemm run", *(words(*option) for option in p.items())])


def main():
    print(HEAD)
    seen = set()
    for title, add_family, count in FAMILIES:
        print(f"# {title}")
        for i in range(count):
            while (text := line(problem(add_family, i))) in seen:
                pass
            seen.add(text)
            print(text)


if __name__ == "__main__":
    main()
