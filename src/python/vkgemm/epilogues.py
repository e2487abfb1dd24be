"""Functions of an application for steps of an epilogue, in GLSL."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from .binding import ArgumentError, Error, ffi, lib

_WRAPPER = """#version 460
layout(local_size_x = 1) in;
float sigmoid(float x) {{ return 1.0 / (1.0 + exp(-x)); }}
{function}
void main() {{ vkgemm_epilogue(0.0, uvec2(0), vec4(0.0)); }}
"""

_EXPRESSION = """float vkgemm_epilogue(float value, uvec2 at, vec4 x) {{
    const float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    return
#line 1
        {expression};
}}"""


class EpilogueFunction:
    """A function for ("function", f, x0, …) in `steps`, as epilogue() compiles it.

    name: its name in messages.

    >>> vkgemm.epilogue("value * x0", "scaled")
    EpilogueFunction('scaled')
    """

    def __init__(self, name: str, spirv: bytes, cost: float = 0.0):
        self.name = name
        self._spirv = spirv
        self._cost = cost

    def __repr__(self) -> str:
        return f"EpilogueFunction({self.name!r})"

    def number_in(self, gpu: Any) -> int:
        """The number of this function in the GPU's context."""
        numbers: dict[EpilogueFunction, int] = gpu.functions
        if self not in numbers:
            words, number = ffi.from_buffer("uint32_t[]", self._spirv), ffi.new("uint32_t *")
            gpu.calls(lib.vkgemm_context_add_function, gpu.context, self.name.encode(), words,
                      len(words), self._cost, number)
            numbers[self] = int(number[0])
        return numbers[self]


def _glslang() -> str:
    program = os.environ.get("VKGEMM_GLSLANG") or shutil.which("glslang") or shutil.which(
        "glslangValidator")
    if program is None:
        raise Error("missing_feature", "epilogue() needs glslang: install it, or name it in "
                    "VKGEMM_GLSLANG")
    return program


def epilogue(glsl: str, name: str = "epilogue", cost: float = 0.0) -> EpilogueFunction:
    """Compile a function of GLSL for steps of an epilogue.

    glsl: an expression of these, or code with
        float vkgemm_epilogue(float value, uvec2 at, vec4 x)

            value            the value of the element
            at               its row and column in D
            x0, x1, x2, x3   the arguments of the step; in code x[0] to x[3]

        sigmoid() is there beside GLSL's functions.  Code may have functions and constants of its
        own.  It must not have global variables, nor access memory or other invocations.
    name: the function's name in messages.
    cost: for estimates: its time for an element, divided by that of one more matrix as c.

    A step ("function", f, x0, …) has up to four arguments: numbers, and arrays as those of "add".

    Raises ArgumentError with the compiler's message and the line in `glsl`, and Error with status
    "missing_feature" if there is no glslang.

    >>> f = vkgemm.epilogue("value * sigmoid(1.702 * value) + x0")
    >>> a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    >>> device.gemm(a, b, steps=[("function", f, 10)]).round(3)
    array([[12.982, 12.982],
           [12.982, 12.982]], dtype=float32)
    """
    if not isinstance(glsl, str):
        raise ArgumentError(f"glsl is {glsl!r}: it must be a str")
    is_code = re.search(r"\bvkgemm_epilogue\s*\(", glsl) is not None
    function = f"#line 1\n{glsl}" if is_code else _EXPRESSION.format(expression=glsl)
    with tempfile.TemporaryDirectory() as folder:
        source, words = Path(folder, "epilogue.comp"), Path(folder, "epilogue.spv")
        source.write_text(_WRAPPER.format(function=function), encoding="utf-8")
        done = subprocess.run(
            [_glslang(), "-V", "--target-env", "vulkan1.3", "-o", str(words), str(source)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            at = f"ERROR: {source}:"
            lines = [line.removeprefix(at) for line in done.stdout.splitlines()
                     if line.startswith(at) and not line.endswith("compilation terminated ")]
            raise ArgumentError("glsl is wrong: " + ("; ".join(f"line {line}" for line in lines)
                                                     or done.stdout.strip()))
        return EpilogueFunction(name, words.read_bytes(), cost)
