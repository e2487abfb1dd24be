"""DLPack: how memory is handed to another library as a tensor, and comes back."""

from __future__ import annotations

import atexit
import ctypes
import math
from typing import Any

from .binding import ffi

# Code and bits of an element type.
_TYPES = {"f16": (2, 16), "bf16": (4, 16), "f32": (2, 32), "s8": (0, 8), "s32": (0, 32),
          "u8": (1, 8), "int64": (0, 64)}
_TYPES |= {"e4m3": _TYPES["u8"], "e5m2": _TYPES["u8"]}  # bytes: few readers know 8-bit floats

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_NAME = b"dltensor"  # the capsule keeps a pointer to it

# What is lent: it must live until it is back, whoever forgets it before.
_lent: set[Lender] = set()


def nbytes(shape: tuple[int, ...], element: str) -> int:
    """The bytes of a dense tensor."""
    return math.prod(shape) * _TYPES[element][1] // 8


class Lender:
    """Memory at an address of a device, which is DLPack's type and id."""

    def __init__(self, address: int, device: tuple[int, int]):
        self.address = address
        self._described: tuple[tuple[int, ...], str] | None = None
        self._self = ffi.new_handle(self)
        self._tensor = ffi.new("DLManagedTensor *", {"manager_ctx": self._self,
                                                     "deleter": _delete})
        self._tensor.dl_tensor.data = ffi.cast("void *", address)
        self._tensor.dl_tensor.device = device
        self._pointer = int(ffi.cast("uintptr_t", self._tensor))

    def lend(self, shape: tuple[int, ...], element: str) -> Any:
        """A capsule, to be consumed at once, of a dense tensor in this memory.

        `returned` is called when that is forgotten, by whatever thread does.
        """
        if self._described != (shape, element):
            self._describe(shape, element)
        capsule = _new_capsule(self._pointer, _NAME, None)
        _lent.add(self)
        return capsule

    def _describe(self, shape: tuple[int, ...], element: str) -> None:
        self._shape = ffi.new("int64_t[]", shape)
        code, bits = _TYPES[element]
        tensor = self._tensor.dl_tensor
        tensor.shape, tensor.ndim = self._shape, len(shape)
        tensor.dtype = (code, bits, 1)
        self._described = (shape, element)

    def returned(self) -> None:
        """Called when the tensor is forgotten."""
        raise NotImplementedError

    def let_go(self) -> None:
        """Makes whoever has the tensor forget it without a word."""
        self._tensor.deleter = ffi.NULL


@ffi.callback("void(DLManagedTensor *)")  # type: ignore[misc]
def _delete(tensor: Any) -> None:
    lender = ffi.from_handle(tensor.manager_ctx)
    _lent.discard(lender)
    lender.returned()


@atexit.register
def _leave() -> None:
    """Tensors that outlive Python find their structure, and no function of Python's to call."""
    for lender in _lent:
        lender.let_go()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_lent))
