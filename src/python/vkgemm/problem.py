"""Problems as values that can be compared, and as the structures of the C API."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from .binding import ArgumentError, enumerator, ffi, initialized

# A structure's fields that are not at their defaults, by name: a part of a problem is one, too, and
# an enumerator is its name.
Part = tuple[tuple[str, Any], ...]

# Fields that Python's arguments name otherwise.
_ARGUMENTS = {("VkgemmGated", "b"): "gated_b"}


def part(**fields: Any) -> Part:
    """The fields that are not None."""
    return tuple((name, value) for name, value in fields.items() if value is not None)


def whole(argument: str, value: object, bits: int = 32) -> int:
    """A whole number of so many bits; an exception that names the argument if it is none."""
    if isinstance(value, (int, np.integer)) and 0 <= value < 2**bits:
        return int(value)
    raise ArgumentError(f"{argument} is {value!r}: it must be a whole number below 2**{bits}, "
                        "and not below 0")


def bits(value: Any) -> Any:
    """The value as a key: floats by their bits, so that -0.0 is not 0.0, and NaN is itself."""
    if isinstance(value, (float, np.floating)):
        return struct.pack("d", float(value))
    return tuple(map(bits, value)) if isinstance(value, tuple) else value


def f32_arithmetic(f32: str, argument: str, element: str) -> Part:
    """VkgemmProblem's field of how f32 is multiplied, where the element type is f32."""
    enumerator("f32", "VkgemmF32Arithmetic", f32)
    if f32 != "ieee" and element != "f32":
        raise ArgumentError(f"f32 is {f32!r} and {argument} is {element}: only f32 is multiplied in parts")
    return part(f32_arithmetic=None if f32 == "ieee" else f32)


def structure(kind: str, fields: Part) -> tuple[Any, list[Any]]:
    """The structure of such fields, and what must live as long as it is used."""
    result = initialized(kind)
    types = dict(ffi.typeof(kind).fields)
    kept = []
    for name, value in fields:
        wanted = types[name].type
        if wanted.kind == "enum":
            argument = _ARGUMENTS.get((kind, name), name)
            value = enumerator(argument, wanted.cname.removeprefix("enum "), value)
        elif wanted.kind == "pointer":
            value, parts = structure(wanted.item.cname.removeprefix("struct "), value)
            kept += [value, *parts]
        setattr(result, name, value)
    return result, kept
