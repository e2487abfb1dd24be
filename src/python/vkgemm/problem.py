"""Problems as values that can be compared, and as the structures of the C API."""

from __future__ import annotations

import re
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


def integer(argument: str, value: object) -> int:
    """A signed integer of 32 bits; an exception that names the argument if it is none."""
    if isinstance(value, (int, np.integer)) and -2**31 <= value < 2**31:
        return int(value)
    raise ArgumentError(f"{argument} is {value!r}: it must be an integer of 32 bits")


def real(argument: str, value: Any, hint: str = "") -> float:
    """A number; an exception that names the argument if it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        shown = type(value).__name__ if hasattr(value, "shape") else repr(value)
        raise ArgumentError(f"{argument} is {shown}: it must be a number{hint}") from None
    if number != number:  # the C API's sign of a number that is not set
        raise ArgumentError(f"{argument} is NaN: it must be a number")
    return number


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


def multiplied_as(multiply_as: str | None) -> Part:
    """VkgemmProblem's field of the type in which A and B are multiplied."""
    if multiply_as is not None:
        enumerator("multiply_as", "VkgemmDataType", multiply_as)
    return part(multiply_as=multiply_as)


def structure(kind: str, fields: Part) -> tuple[Any, list[Any]]:
    """The structure of such fields, and what must live as long as it is used."""
    result = initialized(kind)
    kept: list[Any] = []
    for name, value in _values(kind, fields, kept).items():
        setattr(result, name, value)
    return result, kept


def _values(kind: str, fields: Part, kept: list[Any]) -> dict[str, Any]:
    """The values of a structure's fields, as the C API has them.  Structures are added to `kept`."""
    types = dict(ffi.typeof(kind).fields)

    def converted(argument: str, wanted: Any, value: Any) -> Any:
        cname = re.sub("^(enum|struct) ", "", wanted.cname)
        if wanted.kind == "enum":
            return enumerator(argument, cname, value)
        if wanted.kind == "struct":
            return _values(cname, value, kept)
        if wanted.kind == "array":
            return [converted(argument, wanted.item, item) for item in value]
        if wanted.kind == "pointer":
            pointed, parts = structure(re.sub("^struct ", "", wanted.item.cname), value)
            kept.extend([pointed, *parts])
            return pointed
        return value
    return {name: converted(_ARGUMENTS.get((kind, name), name), types[name].type, value)
            for name, value in fields}
