"""Element types, and how numpy's arrays lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .binding import ArgumentError
from .problem import Part, part

try:
    from ml_dtypes import bfloat16 as _bfloat16, float8_e4m3fn as _e4m3, float8_e5m2 as _e5m2
except ImportError:
    _bfloat16 = _e4m3 = _e5m2 = None

if TYPE_CHECKING:
    import torch

# What numpy and torch call each element type.
NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "s8": "int8", "s32": "int32",
         "u8": "uint8", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}

FLOATS = ("f16", "bf16", "f32")
ELEMENT_TYPES = (*FLOATS, "s8", "u8", "e4m3", "e5m2")  # of all matrices
SUMS = (*ELEMENT_TYPES, "s32")  # of D where A and B are s8
FLOATS_8 = ("e4m3", "e5m2")

_ELEMENTS = {np.dtype(name): element for element, name in NAMES.items()
             if element not in ("bf16", *FLOATS_8)}
if _bfloat16 is not None:
    _ELEMENTS |= {np.dtype(_bfloat16): "bf16", np.dtype(_e4m3): "e4m3", np.dtype(_e5m2): "e5m2"}

Array = NDArray[Any]
Operand: TypeAlias = "Array | torch.Tensor"


def to_bf16(values: Any) -> NDArray[np.uint16]:
    """Round values to bfloat16, to nearest even.  Returns their bits, with the same shape.

    >>> vkgemm.to_bf16([1.0, -2.0])
    array([16256, 49152], dtype=uint16)
    """
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    quiet_nan = bits >> 16 | 0x40
    return np.where(np.isnan(values), quiet_nan, rounded).astype(np.uint16)


def from_bf16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Convert bits of bfloat16 to float32, with the same shape.

    >>> vkgemm.from_bf16(np.uint16([16256, 49152]))
    array([ 1., -2.], dtype=float32)
    """
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def bf16_dtype(bits: bool) -> np.dtype[Any]:
    """The dtype of bf16 arrays: uint16 for bits, else that of ml_dtypes."""
    if bits:
        return np.dtype(np.uint16)
    if _bfloat16 is None:
        raise ArgumentError("bf16 is False and ml_dtypes is not installed: "
                            "pass bf16=True for bf16 values as uint16 arrays")
    return np.dtype(_bfloat16)


def dtype_of(element: str, bf16: bool) -> np.dtype[Any]:
    """The dtype of arrays of an element type: "f16".  8-bit floats are uint8."""
    if element == "bf16":
        return bf16_dtype(bf16)
    return np.dtype(np.uint8 if element in FLOATS_8 else NAMES[element])


def one_of(elements: tuple[str, ...], prefix: str = "") -> str:
    """What messages call element types: "float16 or float32"."""
    names = [prefix + NAMES[element] for element in elements]
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def element_of(argument: str, dtype: DTypeLike, bf16: bool, elements: tuple[str, ...]) -> str:
    """The element type of a dtype or of its name, "f16", which must be one of `elements`."""
    if isinstance(dtype, str) and dtype in NAMES:
        found: Any = dtype
        element = dtype
    else:
        try:
            found = np.dtype(dtype)
        except TypeError:
            found = repr(dtype)
        element = "bf16" if bf16 and found == np.uint16 else _ELEMENTS.get(found, "")
    if element in elements:
        return element
    needs_bf16 = not bf16 and found == np.uint16 and "bf16" in elements
    hint = ", which needs bf16=True" if needs_bf16 else ""
    raise ArgumentError(f"{argument} is {found}{hint}: it must be {one_of(elements)}")


def as_matrix(argument: str, array: Any, most: int = 3) -> Any:
    """An array of one matrix, or of several: of so many dimensions at most."""
    if not 2 <= array.ndim <= most:
        raise ArgumentError(f"{argument}.shape is {tuple(array.shape)}: it must have "
                            f"{'2 or 3' if most == 3 else '2 to 4'} dimensions")
    return array


def strides(shape: tuple[int, ...], lead: tuple[int, ...]) -> Part:
    """The strides that make an array of this shape, of matrices, one for each index of `lead`."""
    own = (1,) * (len(lead) + 2 - len(shape)) + tuple(shape[:-2])
    names = ("outer_batch_stride", "batch_stride")[2 - len(lead):]
    return part(**{name: 0 for name, size, all in zip(names, own, lead)
                   if size == 1 and (all != 1 or len(shape) == 2)})


def require_shape(argument: str, array: Any, *shapes: tuple[int, ...]) -> None:
    """Refuses an array that has none of the shapes."""
    if array.shape not in shapes:
        wanted = " or ".join(str(shape) for shape in shapes)
        raise ArgumentError(f"{argument}.shape is {tuple(array.shape)}: it must be {wanted}")


class Arrays(Protocol):
    """How a request reads arrays and makes new ones: numpy's, or another library's."""

    def array(self, argument: str, value: Any) -> Any:
        """The array itself: nothing is converted in silence."""

    def element(self, argument: str, dtype: Any, elements: tuple[str, ...] = FLOATS) -> str:
        """The element type of a dtype or of its name, "f16", which must be one of `elements`."""

    def offset_type(self, offsets: Any) -> str | None:
        """"int32" or "int64"; None if they have another type."""

    def known(self, offsets: Any) -> list[int]:
        """The values that the host can see; they are checked."""

    def is_index(self, index: Any) -> bool:
        """True if the values are integers of 32 bits."""

    def first_beyond(self, index: Any, count: int) -> tuple[int, int] | None:
        """The first value that is not below `count`, after its place; None if the host sees none."""

    def lay_out(self, array: Any) -> tuple[Any, Part]:
        """The array in the order of its memory, and the fields of VkgemmMatrix that say it."""

    def rows(self, array: Any) -> Part:
        """The fields of a row-major matrix."""

    def new(self, shape: tuple[int, ...], element: str, zero: bool = False) -> Any:
        """An array to be written."""

    def require_writeable(self, argument: str, array: Any) -> None:
        """Refuses an array that can't be written."""

    def overlap(self, array: Any, other: Any) -> bool:
        """True if a call can't write both.  A plan refuses tensors that overlap."""


class Numpy:
    """numpy's arrays, which are copied densely to the device."""

    def __init__(self, bf16: bool):
        self._bf16 = bf16

    def array(self, argument: str, value: Any) -> Array:
        if not isinstance(value, np.ndarray):
            raise ArgumentError(f"{argument} is {type(value).__name__}: it must be a numpy array")
        return value

    def element(self, argument: str, dtype: Any, elements: tuple[str, ...] = FLOATS) -> str:
        return element_of(argument, dtype, self._bf16, elements)

    def offset_type(self, offsets: Array) -> str | None:
        return {np.dtype(np.int32): "int32", np.dtype(np.int64): "int64"}.get(offsets.dtype)

    def known(self, offsets: Array) -> list[int]:
        values: list[int] = offsets.tolist()
        return values

    def is_index(self, index: Array) -> bool:
        return index.dtype in (np.int32, np.uint32)

    def first_beyond(self, index: Array, count: int) -> tuple[int, int] | None:
        beyond = np.flatnonzero((index < 0) | (index >= count))
        return (int(beyond[0]), int(index[beyond[0]])) if beyond.size > 0 else None

    def lay_out(self, array: Array) -> tuple[Array, Part]:
        """A transposed view is column-major; what is neither is copied row by row."""
        transposed = array.swapaxes(-1, -2)
        if transposed.flags.c_contiguous and not array.flags.c_contiguous:
            return transposed, part(layout="col_major")
        return array, part(layout="row_major")

    def rows(self, array: Array) -> Part:
        return ()

    def new(self, shape: tuple[int, ...], element: str, zero: bool = False) -> Array:
        return (np.zeros if zero else np.empty)(shape, dtype_of(element, self._bf16))

    def require_writeable(self, argument: str, array: Array) -> None:
        if not array.flags.writeable:
            raise ArgumentError(f"{argument}.flags.writeable is False: it must be True")

    def overlap(self, array: Array, other: Array) -> bool:
        return np.shares_memory(array, other)
