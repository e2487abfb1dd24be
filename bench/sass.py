#!/usr/bin/env python3
"""Shows the loops around matrix products in the machine code of an NVIDIA pipeline: the order of
loads, stores, products and barriers, and which instruction waits for which scoreboard.

The driver keeps machine code in its shader cache. nvcachetools unpack it, nvdisasm is CUDA's:

  __GL_SHADER_DISK_CACHE=1 __GL_SHADER_DISK_CACHE_PATH=$PWD/cache vkgemm bench --config khr:...
  nvcachedec cache/.../*.toc objects
  nvdisasm -hex objects/object00000.nvuc > pipeline.sass
  python3 sass.py pipeline.sass
"""

import argparse
import re
import sys
from typing import NamedTuple

LETTERS = {"HMMA": "H", "LDSM": "L", "LDS": "l", "LDG": "G", "STG": "g", "STS": "S", "BAR": "|",
           "LDL": "!", "STL": "!"}
FIRST = re.compile(r"/\*([0-9a-f]{4,5})\*/\s+(.*?);\s+/\* 0x[0-9a-f]{16} \*/")
SECOND = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")


class Instruction(NamedTuple):
    address: int
    text: str
    stall: int          # cycles until the next instruction may issue
    writes: int | None  # scoreboard that is released when the result is there
    reads: int | None   # scoreboard that is released when the operands have been read
    waits: list[int]

    @property
    def name(self):
        words = self.text.split()
        return words[1 if words[0].startswith("@") else 0].split(".")[0]

    def branch_target(self):
        match = re.search(r"\bBRA (?:\S+, )?(0x[0-9a-f]+)", self.text)
        return int(match.group(1), 16) if match else None


def parse(lines):
    """Control bits as on Volta and later: 105-108 stall, 110-112 and 113-115 scoreboards that are
    set (7: none), 116-121 those that are waited for; here of the upper half of 128 bits."""
    def scoreboard(value):
        return None if value == 7 else value

    for first, second in zip(lines, lines[1:]):
        match, upper = FIRST.search(first), SECOND.search(second)
        if match and upper:
            bits = int(upper.group(1), 16)
            yield Instruction(int(match.group(1), 16), match.group(2).strip(), bits >> 41 & 15,
                              scoreboard(bits >> 46 & 7), scoreboard(bits >> 49 & 7),
                              [i for i in range(6) if bits >> 52 + i & 1])


def loops(instructions, products):
    """Innermost loops with at least `products` matrix products."""
    for last in instructions:
        target = last.branch_target()
        if target is None or target >= last.address:
            continue
        body = [i for i in instructions if target <= i.address <= last.address]
        if sum(i.name == "HMMA" for i in body) >= products:
            yield body


def print_loop(body, every):
    print(f"loop {body[0].address:#x} to {body[-1].address:#x}: {len(body)} instructions, " +
          ", ".join(f"{sum(i.name == name for i in body)} {name}" for name in LETTERS))
    order = "".join(LETTERS.get(i.name, ".") for i in body)
    for begin in range(0, len(order), 100):
        print("  " + order[begin:begin + 100])
    products = 0
    for i in body:
        products += i.name == "HMMA"
        if not every and not i.waits and (i.name == "HMMA" or i.name not in LETTERS):
            continue
        marks = [f"sets {i.writes}"] if i.writes is not None else []
        if i.waits:
            marks.append("waits for " + " ".join(map(str, i.waits)))
        print(f"  {i.address:5x}  {products:4} products  {i.text[:56]:56}  stall {i.stall:2}  " +
              ", ".join(marks))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sass", help="output of nvdisasm -hex")
    parser.add_argument("--products", type=int, default=16, metavar="N",
                        help="only loops with N matrix products or more (default: 16)")
    parser.add_argument("--all", action="store_true",
                        help="every instruction, not only memory, barriers and what waits")
    arguments = parser.parse_args()
    with open(arguments.sass, encoding="utf-8") as file:
        instructions = list(parse(file.read().splitlines()))
    if not instructions:
        sys.exit(f"sass.py: {arguments.sass} is not the output of nvdisasm -hex")
    for body in loops(instructions, arguments.products):
        print_loop(body, arguments.all)


if __name__ == "__main__":
    main()
