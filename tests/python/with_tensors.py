"""The tests of torch tensors: their base, and the tests of numpy's arrays on tensors."""

import contextlib
import unittest

import numpy as np
import test_quantise_rows
import torch
from reference import assert_close
from test_inputs import F32Arithmetic, Integers
from test_packed import Packed
from test_products import Gated, Gemm, Grouped, RowReduction, Scales
from test_row_index import RowIndex
from test_steps import Steps

import vkgemm

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def numbers(tensor):
    """A tensor as numpy's array, of bits if it is bf16."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.numpy()


def tensor_of(array):
    """numpy's array as a tensor with its strides, on the CPU."""
    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


class NumpyOnTensors:
    """A device that takes numpy's arrays and computes with torch's tensors, in shared memory."""

    def __init__(self, device, place):
        self._device = device
        self._place = place

    def _call(self, method, *arguments, out=None, out_dtype=None, bf16=False, steps=None, **named):
        known = {}  # by their identities: an array in two steps is one tensor

        def moved(value):
            if not isinstance(value, np.ndarray):
                return {"float16": "f16"}.get(value, value) if isinstance(value, str) else value
            return known.setdefault(id(value), (value, self._moved(value)))[1]
        if steps is not None:
            named["steps"] = [tuple(map(moved, step)) for step in steps]
        if out is not None:
            named["out"] = self._moved(out)
        if out_dtype is not None:
            named["out_dtype"] = out_dtype if isinstance(out_dtype, str) else {
                np.dtype(np.float32): torch.float32, np.dtype(np.float16): torch.float16,
                np.dtype(np.uint16): torch.bfloat16,
                np.dtype(np.int32): torch.int32}[np.dtype(out_dtype)]
        result = getattr(self._device, method)(
            *map(moved, arguments), **{name: moved(value) for name, value in named.items()})
        if out is not None:
            out[...] = numbers(named["out"])
        for op, *rest in steps or ():
            if op == "store" and isinstance(rest[0], np.ndarray):
                rest[0][...] = numbers(moved(rest[0]))
        if isinstance(result, tuple):
            return tuple(map(numbers, result))
        return numbers(result) if isinstance(result, torch.Tensor) else result

    def _moved(self, array):
        """The array in shared memory, with its order."""
        tensor = tensor_of(np.ascontiguousarray(array))
        shared = self._device.shared(tensor.to(self._place))
        if array.ndim >= 2 and array.strides[-1] > array.itemsize * 1 and (
                array.swapaxes(-1, -2).flags.c_contiguous):
            swapped = tensor.transpose(-1, -2).contiguous().to(self._place)
            return self._device.shared(swapped).transpose(-1, -2)
        return shared

    def __getattr__(self, name):
        if name in ("gemm", "gated", "grouped", "row_reduction", "explain", "pack",
                    "quantise_rows"):
            return lambda *arguments, **named: self._call(name, *arguments, **named)
        return getattr(self._device, name)


class WithTensors(unittest.TestCase):
    """Tests on a device of connected(), which takes tensors on `place`."""

    place = "cuda"

    @classmethod
    def connected(cls):
        return vkgemm.Device()

    @classmethod
    def setUpClass(cls):
        cls.device = cls.connected()
        cls.addClassCleanup(cls.device.close)

    def random(self, *shape, element="f32", seed=0):
        """Normal numbers in memory of torch's own."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(*shape, generator=generator).to(DTYPES[element]).to(self.place)

    def shared(self, *shape, element="f32", seed=0):
        """Normal numbers in shared memory."""
        return self.device.shared(self.random(*shape, element=element, seed=seed))

    def assert_right(self, actual, expected):
        element = {dtype: name for name, dtype in DTYPES.items()}[actual.dtype]
        assert_close(numbers(actual), numbers(expected), element)

    @contextlib.contextmanager
    def nothing_is_copied(self):
        before = dict(self.device.copies)
        yield
        self.assertEqual(dict(self.device.copies), before)


def families(base):
    """The tests of numpy's arrays, with tensors: by the names of their classes."""
    made = {}
    for tests in (Gemm, Gated, Grouped, RowReduction, Integers, Scales, F32Arithmetic, Packed,
                  RowIndex, Steps, test_quantise_rows.QuantiseRows):
        def set_up(cls):
            base.setUpClass.__func__(cls)
            cls.device = NumpyOnTensors(cls.device, cls.place)
        name = f"{tests.__name__}OfTensors"
        made[name] = type(name, (tests, base), {
            "setUpClass": classmethod(set_up),
            **dict.fromkeys(("test_device_time", "test_memory_is_freed"))})
        if tests is Steps:  # which have tests of arrays alone
            for alone in ("test_a_batch_of_calls", "test_refusals", "test_tuning"):
                setattr(made[name], alone, None)
    return made
