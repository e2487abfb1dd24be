"""Weights of 4 or 8 bits: codes, scales and zero points as numpy arrays."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .binding import ArgumentError, enumerator
from .names import suggests
from .problem import Part, part, whole

_DLPACK_HOST = 1

_SCALES = {np.dtype(np.float16): "f16", np.dtype(np.float32): "f32"}

_GROUPS_K = (0, 32, 64, 128)

# Bits of a code, of its mantissa, the exponent's bias, and the largest number.
_FLOATS = {"e4m3": (8, 3, 7, 448.0), "e5m2": (8, 2, 15, 57344.0), "mxfp4": (4, 1, 1, 6.0)}


def _one_of(argument: str, value: Any, allowed: tuple[int, ...]) -> int:
    if isinstance(value, (int, np.integer)) and value in allowed:
        return int(value)
    raise ArgumentError(f"{argument} is {value!r}: it must be one of "
                        f"{', '.join(map(str, allowed))}")


def numbers_of(kind: str, zeros: bool) -> NDArray[np.float32]:
    """What each code stands for."""
    if kind == "int8":
        return np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float32)
    codes = np.arange(16)
    if kind == "int4":
        return (codes if zeros else np.where(codes < 8, codes, codes - 16)).astype(np.float32)
    bits, mantissa, bias, largest = _FLOATS[kind]
    codes = np.arange(1 << bits)
    magnitude = codes & ((1 << (bits - 1)) - 1)
    exponent = magnitude >> mantissa
    fraction = (magnitude & ((1 << mantissa) - 1)) + np.where(exponent > 0, 1 << mantissa, 0)
    numbers = np.ldexp(fraction.astype(np.float64), np.maximum(exponent, 1) - bias - mantissa)
    if kind == "e5m2":
        numbers = np.where(magnitude == 0x7c, np.inf, np.where(magnitude > 0x7c, np.nan, numbers))
    if kind == "e4m3":
        numbers = np.where(magnitude == 0x7f, np.nan, numbers)
    return np.where(codes >> (bits - 1) != 0, -numbers, numbers).astype(np.float32)


def _expanded(groups: Any, k: int, n: int, group_k: int, group_n: int) -> Any:
    """A number of each group, for each element."""
    rows = np.arange(k) // group_k if group_k else np.zeros(k, int)
    columns = np.arange(n) // group_n if group_n else np.zeros(n, int)
    return groups[..., rows[:, None], columns]


def _kind(value: object) -> str:
    """What messages call a value that is no array."""
    name = builtins.type(value).__name__
    device = getattr(value, "device", None)
    return name if device is None else f"{name} on {device}"


def require_product_element(element: object) -> None:
    """Refuses types that codes are not multiplied as."""
    if element not in ("f16", "bf16"):
        raise ArgumentError(f"element is {element!r}: it must be 'f16' or 'bf16'")


def _require_type(type: str, zeros: bool) -> None:
    """Refuses unknown types, and zero points where a type has none."""
    enumerator("type", "VkgemmCodeType", type)
    if zeros and type != "int4":
        raise ArgumentError(f"zeros is given and type is {type!r}: only int4 has zero points")


def _require_finite(b: NDArray[np.float32]) -> None:
    """Refuses numbers that no code stands for."""
    wrong = ~np.isfinite(b)
    if wrong.any():
        at = np.unravel_index(int(wrong.argmax()), b.shape)
        raise ArgumentError(f"b[{', '.join(map(str, at))}] is {b[at]}: it must be finite")


def require_in_f16(b: NDArray[np.float32], codes: Codes) -> None:
    """Refuses numbers whose codes stand for more than float16 holds."""
    if np.abs(b).max(initial=0) <= 16384:  # a code is off by half a step at most
        return
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(codes.elements().astype(np.float16))
    if wrong.any():
        at = np.unravel_index(int(wrong.argmax()), b.shape)
        raise ArgumentError(f"b[{', '.join(map(str, at))}] is {b[at]}: its {codes.type} code and "
                            "scale stand for a number that float16 does not hold")


@dataclass(frozen=True, eq=False)
class Codes:
    """A quantised matrix B.

        element = scale · (code - zero), in float32

    type: "int8", "int4", "e4m3", "e5m2" or "mxfp4".
    codes: uint8.  8-bit codes are (K, N).  4-bit codes are ((K + 1) // 2, N): the lower half of
        byte i holds row 2i, the upper half row 2i + 1.  A leading dimension is a batch or groups.
        int8 codes are in two's complement.  int4 codes are, too (-8 to 7), but with zeros they are
        unsigned (0 to 15).  e4m3, e5m2 and mxfp4 (e2m1) codes are the bits of OCP's formats.
    scales: float16 or float32, (K / group_k, N / group_n) rounded up.  For mxfp4: uint8, a scale of
        2 ** (byte - 127).
    zeros: for int4, uint8 zero points with the shape of scales.
    group_k: 32, 64, 128, or 0 for all of K.  group_n: 1, 128, or 0 for all columns.
    k: K.  By default K is the number of rows, or twice that for 4-bit codes.

    Raises ArgumentError if an array has a wrong type or shape.

    >>> codes = vkgemm.Codes("int8", np.uint8([[1], [255]]), np.float32([[0.5]]))
    >>> codes.elements()
    array([[ 0.5],
           [-0.5]], dtype=float32)
    """

    type: str
    codes: NDArray[np.uint8]
    scales: NDArray[Any]
    zeros: NDArray[np.uint8] | None = None
    group_k: int = 0
    group_n: int = 1
    k: int | None = None

    def __post_init__(self) -> None:
        _require_type(self.type, self.zeros is not None)
        for name in ("codes", "scales", "zeros"):
            array = getattr(self, name)
            if not (isinstance(array, np.ndarray) or name == "zeros" and array is None):
                raise ArgumentError(f"{name} is {_kind(array)}: it must be a numpy array")
        if self.k is not None:
            object.__setattr__(self, "k", whole("k", self.k, 64))
        object.__setattr__(self, "group_k", _one_of("group_k", self.group_k, _GROUPS_K))
        object.__setattr__(self, "group_n", _one_of("group_n", self.group_n, (0, 1, 128)))
        if self.codes.dtype != np.uint8 or self.codes.ndim not in (2, 3):
            raise ArgumentError(f"codes is {self.codes.dtype} of shape {self.codes.shape}: "
                                "it must be uint8 with 2 or 3 dimensions")
        rows = self.codes.shape[-2] * (2 if self.is_small else 1)
        if self.k is not None and (self.k > rows or rows - self.k >= (2 if self.is_small else 1)):
            raise ArgumentError(f"k is {self.k}: codes of shape {self.codes.shape} are of {rows}")
        if self.type == "mxfp4":
            object.__setattr__(self, "group_k", 32)
        allowed = [np.dtype(np.uint8)] if self.type == "mxfp4" else list(_SCALES)
        if self.scales.dtype not in allowed:
            raise ArgumentError(f"scales.dtype is {self.scales.dtype}: it must be "
                                f"{' or '.join(map(str, allowed))}")
        k, n = self.shape[-2:]
        groups = self.shape[:-2] + (-(-k // self.group_k) if self.group_k else min(k, 1),
                                    -(-n // self.group_n) if self.group_n else min(n, 1))
        for name, array in (("scales", self.scales), ("zeros", self.zeros)):
            if array is not None and array.shape != groups:
                raise ArgumentError(f"{name}.shape is {array.shape}: it must be {groups}")
        if self.zeros is not None and self.zeros.dtype != np.uint8:
            raise ArgumentError(f"zeros.dtype is {self.zeros.dtype}: it must be uint8")

    @property
    def is_small(self) -> bool:
        """True if two codes share a byte.

        >>> vkgemm.quantise(np.ones((64, 2)), "int4").is_small
        True
        """
        return self.type in ("int4", "mxfp4")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix: (K, N) or (batch, K, N).

        >>> vkgemm.quantise(np.ones((64, 2)), "int4").shape
        (64, 2)
        """
        rows = self.codes.shape[-2] * (2 if self.is_small else 1)
        k = rows if self.k is None else self.k
        return (*self.codes.shape[:-2], k, self.codes.shape[-1])

    def elements(self) -> NDArray[np.float32]:
        """The matrix that the codes stand for, (K, N) or (batch, K, N), before it is rounded.

        >>> vkgemm.quantise(np.float32([[2], [1]]), "mxfp4").elements()
        array([[2.],
               [1.]], dtype=float32)
        """
        k, n = self.shape[-2:]
        codes = self.codes
        if self.is_small:
            codes = np.stack([codes & 15, codes >> 4], axis=-2)
            codes = codes.reshape(*self.codes.shape[:-2], -1, n)[..., :k, :]
        numbers = numbers_of(self.type, self.zeros is not None)[codes]
        scales = self.scales
        if self.type == "mxfp4":
            powers = np.ldexp(np.float32(1), scales.astype(int) - 127)
            scales = np.where(scales == 255, np.float32(np.nan), powers)
        if self.zeros is not None:
            numbers = numbers - _expanded(self.zeros, k, n, self.group_k, self.group_n)
        return np.float32(_expanded(scales.astype(np.float32), k, n, self.group_k,
                                    self.group_n)) * numbers.astype(np.float32)


def quantisation(codes: Codes) -> Part:
    """The fields of VkgemmQuantisation."""
    scales = "f16" if codes.type == "mxfp4" else _SCALES[codes.scales.dtype]
    return part(type=codes.type, group_k=codes.group_k, group_n=codes.group_n, scale_type=scales,
                zeros=codes.zeros is not None)


Codes.__init__ = suggests(Codes.__init__)  # type: ignore[method-assign]


@suggests
def quantise(b: Any, type: str = "int4", *, group_k: int = 128, zeros: bool = False) -> Codes:
    """Quantise a matrix on the host.

        scale = max|group| / largest code
        code  = the code nearest to b / scale

    With zeros, for hi = max(group, 0) and lo = min(group, 0):

        scale = (hi - lo) / 15      zero = rint(-lo / scale)
        code  = rint(b / scale) + zero, from 0 to 15

    b: (K, N) or (batch, K, N), of any real type.
    type: "int8", "int4", "e4m3", "e5m2" or "mxfp4".
    group_k: a scale serves 32, 64 or 128 rows of a column, or with 0 all.  mxfp4: 32.
    zeros: add zero points.  int4 only.

    Returns Codes.  Scales are float16 for int4 and int8, float32 for e4m3 and e5m2.
    The product's A must be float16 or bfloat16 (element= of Device.pack_codes()).
    Raises ArgumentError if an element is not finite.  If b is float16, also if a code represents a
    number beyond float16's range.  Use Device.quantise() for a tensor on a GPU.

    >>> vkgemm.quantise(np.float32([[1], [-7]]), "int4").elements()
    array([[ 1.],
           [-7.]], dtype=float32)
    """
    numbers, codes = quantised(b, type, group_k, zeros)
    if getattr(b, "dtype", None) == np.float16:
        require_in_f16(numbers, codes)
    return codes


def quantised(b: Any, type: str, group_k: int, zeros: bool) -> tuple[NDArray[np.float32], Codes]:
    """A matrix in float32, and its codes."""
    if hasattr(b, "__dlpack_device__") and b.__dlpack_device__()[0] != _DLPACK_HOST:
        raise ArgumentError(f"b is {_kind(b)}: it must be an array on the host")
    b = np.asarray(b, np.float32)
    if b.ndim not in (2, 3):
        raise ArgumentError(f"b.shape is {b.shape}: it must have 2 or 3 dimensions")
    _require_finite(b)
    _require_type(type, zeros)
    group_k = 32 if type == "mxfp4" else _one_of("group_k", group_k, _GROUPS_K)
    k, n = b.shape[-2:]
    deep = group_k or max(k, 1)
    groups = -(-k // deep)
    padded = np.zeros((*b.shape[:-2], groups * deep, n), np.float32)
    padded[..., :k, :] = b
    grouped = padded.reshape(*b.shape[:-2], groups, deep, n)
    low, high = np.minimum(grouped.min(-2), 0), np.maximum(grouped.max(-2), 0)
    numbers = numbers_of(type, zeros)
    largest = {"int8": 127.0, "int4": 7.0}.get(type) or _FLOATS[type][3]
    span = (high - low) / 15 if zeros else np.maximum(high, -low) / largest
    span = np.where(span > 0, span, 1)
    zero = None
    if type == "mxfp4":
        exponents = np.clip(np.ceil(np.log2(span)), -127, 127)
        scales, factor = (exponents + 127).astype(np.uint8), np.exp2(exponents)
    else:
        with np.errstate(over="ignore"):
            scales = span.astype(np.float32 if type in _FLOATS else np.float16)
        if not np.isfinite(scales).all():
            raise ArgumentError(f"b has numbers up to {np.abs(b).max()}: its largest scale is "
                                f"{span.max():.6g}, and scales of {type} codes are float16, whose "
                                "largest is 65504")
        factor = np.where(scales > 0, scales, 1).astype(np.float32)
    wanted = grouped / factor[..., None, :]
    if zeros:
        zero = np.clip(np.rint(-low / factor), 0, 15).astype(np.uint8)
        wanted = wanted + zero[..., None, :]
    # The nearest of the numbers, in their order.
    order = np.argsort(np.where(np.isfinite(numbers), numbers, np.inf), kind="stable")
    order = order[:np.isfinite(numbers).sum()]
    between = (numbers[order][1:] + numbers[order][:-1]) / 2
    codes = order[np.searchsorted(between, wanted)].astype(np.uint8)
    codes = codes.reshape(padded.shape)[..., :k, :]
    if type in ("int4", "mxfp4"):
        if k % 2 != 0:
            codes = np.concatenate([codes, np.zeros_like(codes[..., :1, :])], axis=-2)
        codes = codes[..., 0::2, :] | codes[..., 1::2, :] << 4
    return b, Codes(type, np.ascontiguousarray(codes), scales, zero, group_k, 1, k)
