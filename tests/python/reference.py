"""Products in float64, what tests compare with them, and the device that they share."""

from __future__ import annotations

import math
import os
import unittest
from collections.abc import Iterable
from typing import Any

import numpy as np

import vkgemm

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu_erf": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "softplus": lambda x: np.logaddexp(0, x),
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "exp": np.exp,
    "abs": np.abs,
    "square": np.square,
    "sqrt": np.sqrt,
}

# Activations that take a number, as steps.
NUMBERED = {
    "leaky_relu": lambda x, number: np.where(x < 0, number * x, x),
    "elu": lambda x, number: np.where(x > 0, x, number * np.expm1(x)),
}

GATES = {
    "sigmoid_tanh": lambda l, r: ACTIVATIONS["sigmoid"](l) * np.tanh(r),
    "geglu_erf": lambda l, r: l * ACTIVATIONS["gelu_erf"](r),
    "geglu_tanh": lambda l, r: l * ACTIVATIONS["gelu_tanh"](r),
    "swiglu": lambda l, r: ACTIVATIONS["silu"](l) * r,
    "reglu": lambda l, r: l * ACTIVATIONS["relu"](r),
    "glu": lambda l, r: l * ACTIVATIONS["sigmoid"](r),
}


def _norm(v, eps):
    return v / np.sqrt(eps + np.mean(v**2, -1, keepdims=True))


def _exp(v):
    return np.exp(v - v.max(-1, keepdims=True))


ROW_OPS = {
    "rms_norm": lambda v: _norm(v, 1e-6),
    "layer_norm": lambda v: _norm(v - v.mean(-1, keepdims=True), 1e-5),
    "softmax": lambda v: _exp(v) / _exp(v).sum(-1, keepdims=True),
    "l2_normalize": lambda v: v / np.sqrt((v**2).sum(-1, keepdims=True)),
}

ROW_VALUES = {
    "logsumexp": lambda v: v.max(-1) + np.log(_exp(v).sum(-1)),
    "sum": lambda v: v.sum(-1),
    "max": lambda v: v.max(-1),
    "amax": lambda v: np.abs(v).max(-1),
    "mean": lambda v: v.mean(-1),
    "variance": lambda v: v.var(-1),
}

# Rows that become int8, and their scales.
ROW_CODES = {"quantise": lambda v: np.abs(v).max(-1) / 127}

EPSILON = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}


def values(shape: tuple[int, ...], element: str = "f32", seed: int = 0) -> Any:
    """Normal numbers of an element type, of s8 any; bf16 as uint16.

    f32 by default, whose kernels the driver on the CPU compiles in half the time.
    """
    generator = np.random.default_rng([seed, *shape])
    if element == "s8":
        return generator.integers(-128, 128, shape, np.int8)
    numbers = generator.standard_normal(shape)
    if element == "bf16":
        return vkgemm.to_bf16(numbers)
    return numbers.astype({"f16": np.float16, "f32": np.float32}[element])


def factors(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Numbers of f32 for row_scales and column_scales, of the size of 1 / 100."""
    return values(shape, seed=seed) / np.float32(100)


def wide(array: Any) -> Any:
    """An array's values in float64; uint16 is bf16."""
    return (vkgemm.from_bf16(array) if array.dtype == np.uint16 else array).astype(np.float64)


def assert_close(actual: Any, expected: Any, element: str = "f32") -> None:
    """Compares with what was computed in float64: a rounding to the type, and f32 sums."""
    if actual.shape != expected.shape:
        raise AssertionError(f"shape {actual.shape}, not {expected.shape}")
    size = np.abs(expected)
    bound = 1.01 * EPSILON[element] * size + 2e-5 * (1 + size.max(initial=0))
    error = np.abs(wide(actual) - expected)
    if not (error <= bound).all():
        at = np.unravel_index(np.argmax(error - bound), error.shape)
        raise AssertionError(f"{at} is {wide(actual)[at]}, not {expected[at]}")


NIGHTLY = "VKGEMM_NIGHTLY" in os.environ
at_night = unittest.skipUnless(NIGHTLY, "at night: set VKGEMM_NIGHTLY=1")


def by_day(cases: Iterable[Any], count: int = 2) -> list[Any]:
    """The first ones, and all at night, since each compiles pipelines."""
    return list(cases)[:None if NIGHTLY else count]


class OnDevice(unittest.TestCase):
    """Tests that share a device, and with it its pipelines."""

    @classmethod
    def setUpClass(cls):
        cls.device = vkgemm.Device()
        cls.addClassCleanup(cls.device.close)
