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


class _Call:
    """A call whose operands have a place in memory: inputs, then outputs, then the workspace.

    bound: the addresses of inputs that are on the device already.
    workspace: a buffer of its own for the workspace.
    """

    def __init__(self, arena: Arena, plan: Plan, request: Request,
                 bound: dict[str, int] | None = None, workspace: Buffer | None = None):
        self.plan, self.request = plan, request
        self._bound = bound or {}
        self._arrays = {name: array for name, array in (request.inputs | request.outputs).items()
                        if name not in self._bound}
        *starts, self._end = _places(list(self._arrays.values()), _ALIGNMENT)
        self._places = dict(zip(self._arrays, starts))
        self._first_output = min(self._places[name] for name in request.outputs)
        own = 0 if workspace is not None else plan.workspace_bytes
        self._device, self._host = arena.reserve(max(self._end + own, 1), max(self._end, 1))
        self._workspace = (self._device.address + self._end if workspace is None
                           else workspace.address)

    def address(self, name: str) -> int:
        """The address of an operand on the device."""
        return self._bound.get(name) or self._device.address + self._places[name]

    def upload(self, gpu: Gpu) -> None:
        """Copies to the host's memory now, and from there to the device by commands."""
        for name, array in self._arrays.items():
            if name in self.request.inputs or self.request.preserved:
                _view(self._host, self._places[name], array)[...] = array
        size = self._end if self.request.preserved else self._first_output
        gpu.copy(self._host, self._device, 0, size)

    def record(self, gpu: Gpu) -> None:
        """Records the product."""
        operands = self.plan.operands(self._workspace)
        for name, array in (self.request.inputs | self.request.outputs).items():
            setattr(operands, name, (self.address(name), array.nbytes))
        self.request.add_packed(operands)
        self.plan.record(gpu.commands, operands)

    def download(self, gpu: Gpu) -> None:
        """Records the copy of the results to the host's memory."""
        gpu.copy(self._device, self._host, self._first_output, self._end - self._first_output)

    def finish(self) -> None:
        """Fills the request's outputs."""
        for name, array in self.request.outputs.items():
            array[...] = _view(self._host, self._places[name], array)


def _is_same(array: Array, other: Array) -> bool:
    """True if both are the same elements of memory, in the same order."""
    return (array.__array_interface__["data"][0] == other.__array_interface__["data"][0]
            and array.shape == other.shape and array.strides == other.strides
            and array.dtype == other.dtype)


class Staging:
    """The memory that one device's calls copy through, and the calls of a batch."""

    def __init__(self, gpu: Gpu):
        self._gpu = gpu
        self._arena = Arena(gpu)
        self._is_batch = False
        self._calls: list[_Call] = []  # recorded, and not run
        self._arenas: list[Arena] = []  # of these calls
        self._workspaces: list[Buffer] = []  # of these calls: the last one is the largest

    def run(self, plan: Plan, request: Request) -> float | None:
        """Computes, and fills the request's outputs.  The milliseconds of the device, if known.

        In a batch it records; flush() computes.
        """
        gpu = self._gpu
        if self._is_batch:
            self._record(plan, request)
            return None
        call = _Call(self._arena, plan, request)
        gpu.begin()
        call.upload(gpu)
        gpu.barrier()
        gpu.stamp(0)
        call.record(gpu)
        gpu.stamp(1)
        gpu.barrier()
        call.download(gpu)
        gpu.barrier()
        gpu.run()
        milliseconds = gpu.milliseconds()
        call.finish()
        return milliseconds

    def begin_batch(self) -> None:
        """Lets calls be recorded until flush() or drop()."""
        self._is_batch = True

    def end_batch(self) -> None:
        """Lets calls run at once again.  flush() or drop() comes before."""
        self._is_batch = False

    def _record(self, plan: Plan, request: Request) -> None:
        """Records a call of a batch.  A barrier orders it after the calls before."""
        gpu = self._gpu
        bound = self._bound(request)
        arena = Arena(gpu)
        try:
            call = _Call(arena, plan, request, bound, self._workspace(plan.workspace_bytes))
            if not self._calls:
                gpu.begin()
            call.upload(gpu)
            gpu.barrier()
            call.record(gpu)
        except BaseException:
            if self._calls:  # the commands name it
                self._arenas.append(arena)
            else:
                arena.close()
            raise
        self._arenas.append(arena)
        self._calls.append(call)

    def _workspace(self, size: int) -> Buffer:
        """Memory that the calls of a batch share, since barriers order them."""
        if not self._workspaces or self._workspaces[-1].size < size:
            rounded = max(4096, 1 << (size - 1).bit_length())
            self._workspaces.append(self._gpu.with_room(
                lambda: Buffer(self._gpu, rounded, host=False)))
        return self._workspaces[-1]

    def _bound(self, request: Request) -> dict[str, int]:
        """The addresses of inputs that are results of the batch.

        If an operand is only a part of such a result, the calls before are run.
        """
        bound = {}
        written = request.outputs if request.preserved else {}
        for name, array in [*request.inputs.items(), *written.items()]:
            source = self._last_writer(array)
            if source is None:
                continue
            call, result = source
            if name in written or not _is_same(array, call.request.outputs[result]):
                self.flush()
                return {}
            bound[name] = call.address(result)
        return bound

    def _last_writer(self, array: Array) -> tuple[_Call, str] | None:
        for call in reversed(self._calls):
            for name, output in call.request.outputs.items():
                if np.may_share_memory(array, output):
                    return call, name
        return None

    def flush(self) -> None:
        """Runs the calls that a batch recorded, and fills their outputs in their order."""
        if not self._calls:
            return
        gpu, calls = self._gpu, self._calls
        try:
            gpu.barrier()
            for call in calls:
                call.download(gpu)
            gpu.barrier()
            gpu.run()
            for call in calls:
                call.finish()
        finally:
            self.drop()

    def drop(self) -> None:
        """Forgets the calls that a batch recorded and did not run."""
        self._calls = []
        self._gpu.settle()
        for memory in (*self._arenas, *self._workspaces):
            memory.close()
        self._arenas, self._workspaces = [], []

    def pack(self, plan: PackPlan, source: dict[str, Array],
             rows: Array | None) -> PackedMatrix:
        """A matrix, packed.

        source: the operands that the plan reads.
        rows: the matrix as it is kept if the device gains nothing; None: it has codes.
        """
        gpu, is_packed = self._gpu, plan.bytes != 0
        self.flush()
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
