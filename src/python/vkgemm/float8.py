"""8-bit floats on the host: their bits as uint8 arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bits of a code, of its mantissa, the exponent's bias, and the largest number.
FLOATS = {"e4m3": (8, 3, 7, 448.0), "e5m2": (8, 2, 15, 57344.0), "mxfp4": (4, 1, 1, 6.0),
          "nvfp4": (4, 1, 1, 6.0)}


def numbers_of(kind: str, zeros: bool) -> NDArray[np.float32]:
    """What each code stands for."""
    if kind == "int8":
        return np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float32)
    codes = np.arange(16)
    if kind == "int4":
        return (codes if zeros else np.where(codes < 8, codes, codes - 16)).astype(np.float32)
    bits, mantissa, bias, largest = FLOATS[kind]
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


def _rounded(kind: str, values: Any) -> NDArray[np.uint8]:
    numbers = numbers_of(kind, False)[:128].astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]  # in increasing order
    given = np.asarray(values, np.float64)
    magnitudes = np.minimum(np.abs(given), numbers[-1])
    ties = (numbers[1:] + numbers[:-1]) / 2
    codes = np.searchsorted(ties, magnitudes)
    is_tie = magnitudes == ties[np.minimum(codes, len(ties) - 1)]
    codes = codes + (is_tie & (codes % 2 == 1))
    codes = np.where(np.isnan(given), 0x7f, codes)
    return (codes | np.signbit(given).astype(np.int64) << 7).astype(np.uint8)


def to_e4m3(values: Any) -> NDArray[np.uint8]:
    """Round values to e4m3, to nearest even.  Returns their bits, with the same shape.

    Numbers beyond 448 become 448, also infinities.  NaN becomes 0x7f or 0xff.

    >>> vkgemm.to_e4m3([1.0, -1000.0])
    array([ 56, 254], dtype=uint8)
    """
    return _rounded("e4m3", values)


def to_e5m2(values: Any) -> NDArray[np.uint8]:
    """Round values to e5m2, to nearest even.  Returns their bits, with the same shape.

    Numbers beyond 57344 become 57344, also infinities.  NaN becomes 0x7f or 0xff.

    >>> vkgemm.to_e5m2([1.0, -1000000.0])
    array([ 60, 251], dtype=uint8)
    """
    return _rounded("e5m2", values)


def from_e4m3(bits: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Convert bits of e4m3 to float32, with the same shape.

    >>> vkgemm.from_e4m3(np.uint8([56, 254]))
    array([   1., -448.], dtype=float32)
    """
    return numbers_of("e4m3", False)[np.asarray(bits, np.uint8)]


def from_e5m2(bits: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Convert bits of e5m2 to float32, with the same shape.

    >>> vkgemm.from_e5m2(np.uint8([60, 251]))
    array([ 1.0000e+00, -5.7344e+04], dtype=float32)
    """
    return numbers_of("e5m2", False)[np.asarray(bits, np.uint8)]
