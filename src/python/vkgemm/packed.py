"""Matrices that stay on the device, in the order that it loads best."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .binding import Error, Held, enumerator_name, lib, value_of
from .gpu import Gpu
from .memory import Buffer
from .problem import Part

_serials = itertools.count()
_matrices: weakref.WeakValueDictionary[str, PackedMatrix] = weakref.WeakValueDictionary()


def _free(gpu: Gpu, buffer: Buffer) -> None:
    if not gpu.is_inherited:
        with gpu.lock:
            gpu.settle()
            buffer.retire()


class PackedMatrix(Held):
    """A matrix B on its device, made by Device.pack(), quantise() or pack_codes().

    It serves every product with its K and N.  If packing would not make the device faster, the
    matrix keeps its row order.  It never changes.  copy.copy() returns the matrix itself.
    It cannot be stored.  Store the numpy array or the Codes, and pack again.

    >>> device.pack(np.ones((3, 2), np.float16)).shape
    (3, 2)
    """

    def __init__(self, gpu: Gpu, buffer: Buffer, shape: tuple[int, ...], element: str,
                 fingerprint: Any, codes: Part | None = None, f32: str = "ieee"):
        self.shape = shape
        #: The arithmetic that it was packed for, if its elements are f32.
        self.f32 = f32
        #: The fields of VkgemmQuantisation; None: it has elements.
        self.codes = codes
        self.element = element
        self.fingerprint = fingerprint
        #: The name of its VkgemmPacking.
        self.packing = "plain" if fingerprint is None else enumerator_name(
            "VkgemmPacking", value_of("VkgemmPacking", lib.vkgemm_packing_of, fingerprint))
        self.gpu = gpu
        self.buffer = buffer
        #: What no other has.
        self.serial = next(_serials)
        #: The same as a text, which packed_matrix() takes.
        self.handle = str(self.serial)
        _matrices[self.handle] = self
        self._finalizer = weakref.finalize(self, _free, gpu, buffer)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Refuse to become a numpy array: numpy would make an array of one object."""
        raise TypeError("a vkgemm.PackedMatrix cannot be stored or read back: store the numpy "
                        "array or the Codes, and pack again")

    @property
    def nbytes(self) -> int:
        """The bytes that it takes on the device.

        >>> device.pack(np.ones((3, 2), np.float32)).nbytes
        24
        """
        return self.buffer.size

    def is_packed_like(self, other: PackedMatrix) -> bool:
        """Return True if one problem may read both matrices, as b and b_right.

        >>> matrices = [device.pack(np.ones((3, 2), np.float32)) for _ in range(2)]
        >>> matrices[0].is_packed_like(matrices[1])
        True
        """
        def described(matrix: PackedMatrix) -> Any:
            return (matrix.shape, matrix.element, matrix.f32, matrix.codes,
                    matrix.fingerprint is None)
        return bool(described(self) == described(other))

    def __repr__(self) -> str:
        order = "rows" if self.fingerprint is None else "packed"
        if self.codes is not None:
            order = f"{dict(self.codes)['type']} codes"
        if self.f32 != "ieee":
            order += f" for {self.f32}"
        return f"<vkgemm.PackedMatrix {self.shape} {self.element}, {order}>"


def packed_matrix(handle: str) -> PackedMatrix:
    """The matrix that has a handle."""
    matrix = _matrices.get(handle)
    if matrix is None:
        raise Error("invalid_handle", f"the packed matrix {handle} is gone: keep it while a "
                                      "compiled function uses it")
    return matrix
