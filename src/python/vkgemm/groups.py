"""The arrays that describe groups: offsets, sizes, and indices of rows and matrices."""

from __future__ import annotations

from typing import Any

from .arrays import Arrays
from .binding import ArgumentError
from .problem import whole


def numbers(arrays: Arrays, name: str, given: Any, has_end: bool) -> Any:
    """Offsets or sizes of groups; `has_end`: the end of the last group, too."""
    array = arrays.array(name, given)
    if array.ndim != 1 or array.shape[0] < has_end or arrays.offset_type(array) is None:
        count = "one value more than groups" if has_end else "one value for each group"
        raise ArgumentError(f"{name} is {array.dtype} of shape {tuple(array.shape)}: "
                            f"it must be int32 or int64, with {count}")
    return array


def known_offsets(known: dict[str, list[int]], capacity: int, direction: str) -> list[int]:
    """The offsets of groups without gaps, if the host sees them.

    known: the values that the host sees of offsets, sizes or both.  Refuses bad ones.
    """
    starts, sizes = known.get("offsets"), known.get("sizes")
    before = 0
    for index, value in enumerate(starts or ()):
        if value > capacity:
            raise ArgumentError(f"offsets[{index}] is {value}: {direction} is {capacity}")
        if value < before:
            limit = (f"offsets[{index - 1}] is {before}, and offsets must not decrease"
                     if index > 0 else "offsets must not be negative")
            raise ArgumentError(f"offsets[{index}] is {value}: {limit}")
        before = value
    if sizes is None:
        return starts or []
    ends = [0]
    for index, size in enumerate(sizes):
        start = starts[index] if starts else ends[-1]
        if size < 0:
            raise ArgumentError(f"sizes[{index}] is {size}: sizes must not be negative")
        if start < ends[-1]:
            raise ArgumentError(f"offsets[{index}] is {start}: group {index - 1} ends at "
                                f"{ends[-1]}, and groups must not overlap")
        if start + size > capacity:
            raise ArgumentError(f"sizes[{index}] is {size}: group {index} begins at {start}, "
                                f"and {direction} is {capacity}")
        ends.append(start + size)
    if not starts:
        return ends if sizes else []
    return [*starts, ends[-1]] if starts[1:] == ends[1:-1] else []


def terms(argument: str, value: Any) -> int:
    """The number of indices that share a row."""
    count = whole(argument, value)
    if count == 0:
        raise ArgumentError(f"{argument} is 0: it must be at least 1")
    return count


def index(arrays: Arrays, name: str, given: Any) -> Any:
    """An array of rows or matrices."""
    array = arrays.array(name, given)
    if array.ndim != 1 or not arrays.is_index(array):
        raise ArgumentError(f"{name} is {array.dtype} of shape {tuple(array.shape)}: "
                            "it must be int32 or uint32, of one dimension")
    return array


def require_below(arrays: Arrays, name: str, array: Any, count: int, limit: str) -> None:
    """Refuses an index that is not below `count`, and every index if `count` is 0."""
    found = arrays.first_beyond(array, count)
    if found is not None:
        raise ArgumentError(f"{name}[{found[0]}] is {found[1]}: {limit}")
    if count == 0 and array.shape[0] != 0:
        raise ArgumentError(f"{name}.shape is {tuple(array.shape)}: {limit}")
