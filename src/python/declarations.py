"""Writes vkgemm/_declarations.py: what vkgemm.h declares, what of Vulkan that needs, and interop.h.

The header is the only place where the C API is written down.  A C preprocessor expands it, cffi
reads the result, and the module that is written loads without either.

    python declarations.py MODULE COMPILER [FLAG ...]
"""

import re
import subprocess
import sys
from pathlib import Path

import cffi

HERE = Path(__file__).parent

# What of Vulkan the package names: functions, their types, structures and enumerators.
VULKAN = {name for file in (HERE / "vkgemm").glob("*.py") for name in
          re.findall(r"\b(?:PFN_vk|[Vv]k|VK_)[A-Z]\w+", file.read_text(encoding="utf-8"))}


def preprocess(command: list[str]) -> tuple[str, str]:
    """The declarations of vkgemm.h and those of Vulkan, without the C library's."""
    output = subprocess.run(
        [*command, "-E", "-x", "c", "-DVKGEMM_STATIC_DEFINE", "-"],
        input="#include <vkgemm/vkgemm.h>\n", text=True, stdout=subprocess.PIPE, check=True).stdout
    texts: dict[str, list[str]] = {"vkgemm": [], "vulkan": []}
    folder = ""
    for line in output.splitlines():
        if marker := re.match(r'#\s*(?:line\s+)?\d+ "(.*?)"', line):
            folder = Path(marker[1]).parent.name
        elif folder in texts:
            texts[folder].append(line)
    return "\n".join(texts["vkgemm"]), "\n".join(texts["vulkan"])


def reachable(vulkan: str, used: set[str]) -> str:
    """Those of Vulkan's declarations that the names `used` lead to, in their order."""
    declarations = re.findall(r"(?:[^;{]|\{[^}]*\})+;", vulkan)
    owners: dict[str, int] = {}
    words = []
    for index, declaration in enumerate(declarations):
        words.append(set(re.findall(r"\w+", declaration)))
        head = re.sub(r"\{[^}]*\}", " ", declaration)
        name = (re.search(r"\*\s*(PFN_\w+)", head)
                or re.search(r"(\w+)\s*\)?\s*\(", head.replace("typedef", ""))
                or re.search(r"(\w+)\W*$", head))
        if name:
            owners[name[1]] = index
        if "enum" in head:
            owners.update(dict.fromkeys(re.findall(r"(\w+) =", declaration), index))
    kept: set[int] = set()
    pending = list(used)
    while pending:
        owner = owners.get(pending.pop())
        if owner is not None and owner not in kept:
            kept.add(owner)
            pending += words[owner]
    return "".join(declarations[index] for index in sorted(kept))


def main() -> None:
    module, *command = sys.argv[1:]
    vkgemm, vulkan = preprocess(command)
    ffi = cffi.FFI()
    ffi.cdef(reachable(vulkan, VULKAN | set(re.findall(r"\w+", vkgemm))) + vkgemm
             + re.sub("//.*", "", (HERE / "interop.h").read_text()))
    ffi.set_source("vkgemm._declarations", None)
    ffi.emit_python_code(module)


if __name__ == "__main__":
    main()
