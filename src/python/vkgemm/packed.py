"""Matrices that stay on the device, in the order that it loads best."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .binding import (ArgumentError, Held, check, enumerator, ffi, lib, output, owned, value_of)
from .gpu import Gpu
from .memory import Buffer
from .problem import Part, f32_arithmetic, part, structure

_serials = itertools.count()


def _free(gpu: Gpu, buffer: Buffer) -> None:
    if not gpu.is_inherited:
        with gpu.lock:
            gpu.settle()
            buffer.retire()


class PackedMatrix(Held):
    """A matrix B on its device, made by Device.pack() or Device.pack_codes().

    It serves every product with this K and N.  If the device gains nothing from another order, the
    matrix stays in rows.  It does not change, and is its own copy.
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
        self.gpu = gpu
        self.buffer = buffer
        #: What no other has.
        self.serial = next(_serials)
        self._finalizer = weakref.finalize(self, _free, gpu, buffer)

    @property
    def nbytes(self) -> int:
        """The bytes that it takes on the device."""
        return self.buffer.size

    def is_packed_like(self, other: PackedMatrix) -> bool:
        """Whether one problem may read both matrices.  record() compares the fingerprints."""
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


class PackPlan:
    """How a matrix of this shape, which lies as `matrix` says, is packed.

    bytes: what it takes then; 0: this device gains nothing, and it is to lie there in rows.
    """

    def __init__(self, gpu: Gpu, shape: tuple[int, ...], matrix: Part, gated_b: str | None,
                 codes: Part | None = None, f32: str = "ieee"):
        k, n = shape[-2:]
        if gated_b is not None:
            enumerator("gated_b", "VkgemmGatedB", gated_b)
        pair = gated_b is not None and gated_b != "separate"
        if pair and n % 2 != 0:
            raise ArgumentError(f"b.shape is {tuple(shape)}: two matrices have {n} columns")
        self._element = dict(matrix)["type"]
        arithmetic = f32_arithmetic(f32, "b.dtype", self._element)
        problem = part(m=1, n=n // 2 if pair else n, k=k, a=part(type=self._element), b=matrix,
                       batch=shape[0] if len(shape) == 3 else None,
                       gated=None if gated_b is None else part(b=gated_b), quantised_b=codes)
        self._codes, self._f32 = codes, f32
        fields, kept = structure("VkgemmProblem", problem + arithmetic)
        self._gpu, self._shape = gpu, tuple(shape)
        self._handle = owned(
            "VkgemmPackPlan",
            lambda out: gpu.calls(lib.vkgemm_pack_plan_create, gpu.context, fields,
                                  lib.VKGEMM_PACKED_OPERAND_B, out),
            lib.vkgemm_pack_plan_destroy)
        self._layout = output("VkgemmPackedLayout")
        check(lib.vkgemm_pack_plan_layout(self._handle, self._layout))
        self.bytes = int(self._layout.bytes)
        self.source_bytes = int(value_of("uint64_t", lib.vkgemm_pack_plan_source_bytes,
                                         self._handle))

    def record(self, commands: Any, source: int, target: Buffer) -> None:
        """Records the packing of what lies at an address of the device."""
        self._gpu.calls(lib.vkgemm_pack_plan_record, self._handle, commands,
                        (source, self.source_bytes), (target.address, self.bytes))

    def record_codes(self, commands: Any, spans: list[tuple[int, int]], target: Buffer) -> None:
        """The same of codes, scales and zero points."""
        self._gpu.calls(lib.vkgemm_pack_plan_record_codes, self._handle, commands, *spans,
                        (target.address, self.bytes))

    def packed(self, target: Buffer) -> PackedMatrix:
        """What was packed, or lies there in rows."""
        fingerprint = ffi.new("VkgemmFingerprint *", self._layout.fingerprint)
        return PackedMatrix(self._gpu, target, self._shape, self._element,
                            fingerprint if self.bytes != 0 else None, self._codes, self._f32)
