"""Calls whose operands are numpy's arrays: copied to the device, and results copied back.

Every call waits for the device.  The caller holds the device's lock.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .gpu import Gpu
from .memory import Arena, Buffer
from .packed import PackedMatrix
from .plans import PackPlan, Plan
from .request import Request

_ALIGNMENT = 256  # of every operand, as a workspace needs it
_CODE_ALIGNMENT = 16  # of codes, scales and zero points


def _places(arrays: list[Array], alignment: int) -> list[int]:
    """The offset of each array in memory, and after them the end."""
    places = [0]
    for array in arrays:
        places.append(places[-1] + -(-array.nbytes // alignment) * alignment)
    return places


def _view(buffer: Buffer, offset: int, like: Array) -> Array:
    """The host's memory as a dense array of the shape and type of another."""
    size = like.nbytes
    data = np.frombuffer(buffer.data, np.uint8, size, offset)
    return data.view(like.dtype).reshape(like.shape)


class Staging:
    """The memory that one device's calls copy through."""

    def __init__(self, gpu: Gpu):
        self._gpu = gpu
        self._arena = Arena(gpu)

    def run(self, plan: Plan, request: Request) -> float | None:
        """Computes, and fills the request's outputs.  The milliseconds of the device, if known.

        Inputs come first in memory, then outputs, then the workspace, which the host has none of.
        """
        gpu, arrays = self._gpu, request.inputs | request.outputs
        *starts, end = _places(list(arrays.values()), _ALIGNMENT)
        places = dict(zip(arrays, starts))
        first_output = min(places[name] for name in request.outputs)
        device, host = self._arena.reserve(max(end + plan.workspace_bytes, 1), max(end, 1))
        operands = plan.operands(device.address + end)
        for name, array in arrays.items():
            setattr(operands, name, (device.address + places[name], array.nbytes))
            if name in request.inputs or request.preserved:
                _view(host, places[name], array)[...] = array
        request.add_packed(operands)
        gpu.begin()
        gpu.copy(host, device, 0, end if request.preserved else first_output)
        gpu.barrier()
        gpu.stamp(0)
        plan.record(gpu.commands, operands)
        gpu.stamp(1)
        gpu.barrier()
        gpu.copy(device, host, first_output, end - first_output)
        gpu.barrier()
        gpu.run()
        milliseconds = gpu.milliseconds()
        for name, array in request.outputs.items():
            array[...] = _view(host, places[name], array)
        return milliseconds

    def pack(self, plan: PackPlan, source: dict[str, Array],
             rows: Array | None) -> PackedMatrix:
        """A matrix, packed.

        source: the operands that the plan reads.
        rows: the matrix as it is kept if the device gains nothing; None: it has codes.
        """
        gpu, is_packed = self._gpu, plan.bytes != 0
        if not is_packed:
            source = {} if rows is None else {"source": rows}
        *starts, end = _places(list(source.values()), _CODE_ALIGNMENT)
        kept = plan.bytes or sum(array.nbytes for array in source.values())
        device, host = self._arena.reserve(max(end, 1), max(end, 1))
        target = gpu.with_room(lambda: Buffer(gpu, max(kept, 1), host=False))
        try:
            operands = plan.operands_to(target)
            for start, (name, array) in zip(starts, source.items()):
                _view(host, start, array)[...] = array
                setattr(operands, name, (device.address + start, array.nbytes))
            gpu.begin()
            if is_packed:
                gpu.copy(host, device, 0, end)
                gpu.barrier()
                plan.record(gpu.commands, operands)
            else:
                gpu.copy(host, target, 0, kept)
            gpu.run()
            return plan.packed(target)
        except BaseException:
            gpu.settle()
            target.close()
            raise
