"""Matrices that stay on the device, in the order that it loads best."""

from __future__ import annotations

import weakref
from typing import Any

from .vulkan import Buffer, Gpu


def _free(gpu: Gpu, buffer: Buffer) -> None:
    with gpu.lock:
        buffer.close()


class PackedMatrix:
    """A matrix B on its device, made by Device.pack().

    It serves every product with this K and N.  Where the device gains nothing by another order, it
    lies there in rows.
    """

    def __init__(self, gpu: Gpu, buffer: Buffer, shape: tuple[int, ...], element: str,
                 fingerprint: Any):
        self.shape = shape
        self.element = element
        self.fingerprint = fingerprint
        self.gpu = gpu
        self.buffer = buffer
        self._finalizer = weakref.finalize(self, _free, gpu, buffer)

    @property
    def nbytes(self) -> int:
        """The bytes that it takes on the device."""
        return self.buffer.size

    def __repr__(self) -> str:
        order = "rows" if self.fingerprint is None else "packed"
        return f"<vkgemm.PackedMatrix {self.shape} {self.element}, {order}>"
