"""torch tensors on the GPU that vkgemm computes on: no copy, and no wait on the host.

Memory is Vulkan's, and CUDA maps it, too.  A product runs between what torch's current stream has
before and what comes on it after.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import graph
from torch.utils.dlpack import from_dlpack

from .arrays import ELEMENT_TYPES, NAMES
from .binding import ArgumentError, Error
from .cuda import described, devices
from .dlpack import nbytes
from .gpu import Gpu
from .memory import Buffer
from .packed import PackedMatrix
from .plans import PackPlan
from .pool import Block, Pool
from .problem import part
from .recordings import Call, key_of
from .request import Request
from .shared import Peer, Submissions, require_memory_export
from .steps import is_array_name, stored
from .torch_arrays import ELEMENTS, New, Torch, as_element, layout_of, refuse_gradient, span

# Autograd has to see what it did not write.  Before PyTorch 2.1 only a write tells it: one of no
# element, here.
_increment_version = getattr(graph, "increment_version",
                             lambda tensor: tensor.narrow(0, 0, 0).zero_())

# Arguments that may be transposed; rows of others lie one behind the other, vectors densely.
_MATRICES = {"a", "b", "b_right"}
_ROWS = {"c", "out"}


class Tensors:
    """A device's products of torch tensors, and the memory that it shares with torch.

    `stream` gives the handle of the stream whose order the next call is to keep.
    """

    #: The most calls that are kept, the last used ones: more than the products of a step of a large
    #: model.  One takes a few kilobytes on the host.
    max_calls = 512

    #: The most recordings that a call keeps, the last used ones: one for each set of addresses of
    #: its results, of which a loop has as many as it keeps results alive, and one more.
    max_recordings = 8

    def __init__(self, gpu: Gpu, name: str, peer: Peer, stream: Callable[[], int]):
        self._gpu = gpu
        self._peer = peer
        self._stream = stream
        kind, ordinal = peer.dlpack_device
        self.device = torch.device({1: "cpu", 2: f"cuda:{ordinal}"}[kind])
        self._described = described(name, gpu.uuid)
        with gpu.lock, peer:
            require_memory_export(gpu)
            self._submissions = Submissions(gpu, peer)
            #: What is shared, to be asked for its `nbytes`.
            self.pool = Pool(gpu, peer)
        self._workspace: Buffer | None = None
        self._kept: list[Any] | None = None  # copies that a batch reads; None: there is no batch
        self._calls: OrderedDict[Any, Call] = OrderedDict()
        self._warned: set[tuple[str, str]] = set()
        self._closed = False
        #: How many tensors were copied, by the names of arguments.
        self.copies: Counter[str] = Counter()
        gpu.at_close.append(self._close)
        gpu.at_shortage.append(self._make_room)

    # Public methods of Device call these.

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A tensor in shared memory, of any values."""
        element = Torch().element("dtype", dtype, tuple(NAMES))
        with self._gpu.lock, self._peer:
            self._require_open()
            return self._fresh(shape, element, self._stream())

    def shared(self, tensor: Any) -> Any:
        """The tensor itself, if it lies in shared memory, else a copy there."""
        with self._gpu.lock, self._peer:
            self._require_open()
            self._require(tensor, "tensor")
            if self._is_shared(tensor):
                return tensor
            return self._copy(tensor, self._stream(), transposed=True)

    def begin_batch(self) -> None:
        """Lets products be collected, until end_batch()."""
        self._kept = []
        self._submissions.hold()

    def end_batch(self, run: bool) -> None:
        """Submits the products that were collected, or forgets them."""
        if self._closed:
            return
        try:
            with self._peer:
                self._submissions.release(run)
        finally:
            self._kept = None

    def release(self) -> None:
        """Frees what no tensor uses."""
        with self._gpu.lock, self._peer:
            self._require_open()
            self._release()

    def settle(self) -> None:
        """Waits until streams and submissions are done, what a batch collected, too."""
        with self._peer:
            self._submissions.flush()
            self._submissions.finish()

    def forget(self) -> None:
        """Lets every call be planned and recorded anew."""
        self._forget()

    def pack(self, tensor: Any, gated_b: str | None, f32: str,
             multiply_as: str | None) -> PackedMatrix:
        """Device.pack() of a tensor, in the stream's order."""
        with self._gpu.lock, self._peer:
            self._require_open()
            self._submissions.flush()
            stream = self._stream()
            arrays = Torch()
            refuse_gradient("b", tensor)
            b = self._local("b", tensor, stream)
            matrix = part(type=arrays.element("b.dtype", b.dtype, ELEMENT_TYPES))
            if b.dim() not in (2, 3):
                raise ArgumentError(f"b.shape is {tuple(b.shape)}: it must have 2 or 3 dimensions")
            plan = PackPlan(self._gpu, b.shape, matrix + arrays.lay_out(b)[1], gated_b, f32=f32,
                            multiply_as=multiply_as)
            if plan.bytes == 0 and not (b.is_contiguous() and self._is_shared(b)):
                b = self._copy(b, stream, transposed=False)
            size = max(plan.bytes or b.numel() * b.element_size(), 1)
            target = self._gpu.with_room(lambda: Buffer(self._gpu, size, host=False))
            packed = plan.packed(target)
            source, offset = self._place(b)

            def record(commands: Any) -> None:
                if plan.bytes == 0:
                    self._gpu.copy_from(commands, source, offset, target, 0, span(b))
                else:
                    operands = plan.operands_to(target)
                    operands.source = (source.address + offset, span(b))
                    plan.record(commands, operands)

            block = self.pool.find(b.data_ptr())
            blocks = [] if block is None else [block]
            commands = self._submissions.record(record, [block.buffer for block in blocks])
            self._submit(commands, stream, blocks)
            self._submissions.recycle(commands)
            self._submissions.flush()
            return packed

    def on_host(self, name: str, tensor: Any) -> Any:
        """A tensor's numbers as an array of f32, for what the host computes."""
        with self._gpu.lock:
            self._require_open()
            self._require(tensor, name)
            refuse_gradient(name, tensor)
            with self._peer:
                self._submissions.flush()
            self._say(name, f"lies on {self.device}: it is copied to the host, in every such call")
            return tensor.detach().float().cpu().numpy()

    def request(self, build: Callable[..., Request], arguments: dict[str, Any]) -> Request:
        """What a call would ask for.  Nothing is copied."""
        with self._peer:
            for name, value in arguments.items():
                if isinstance(value, torch.Tensor):
                    arguments[name] = self._local(name, value, None, _is_gathered(name, arguments))
            return build(Torch(), **arguments)

    def run(self, build: Callable[..., Request], plan: Callable[[Request], Any],
            arguments: dict[str, Any], in_rows: bool = False) -> Any:
        """Submits a product, in the stream's order, and returns its results.

        `in_rows`: a transposed matrix is copied, too.
        A call with the same arguments at the same addresses as before runs the commands that were
        recorded then.
        """
        with self._gpu.lock, self._peer:
            if self._closed:
                self._require_open()
            stream = self._stream()
            written = {name: arguments[name] for name in stored(arguments.get("steps"))}
            out = arguments.get("out")
            if out is not None:
                written["out"] = out
            copied = False
            key = key_of(arguments)
            call = self._calls.get(key)
            if call is None:
                copied = self._localize(arguments, stream, in_rows)
                if copied and self._kept is not None:
                    self._kept.append(list(arguments.values()))
                key = key_of(arguments)
                call = self._calls.get(key)
            if call is None:
                call = self._prepared(build, plan, arguments)
                self._keep(key, call)
            else:
                self._calls.move_to_end(key)
            results = self._execute(call, stream, out)
            if not self._calls:  # they were dropped meanwhile, because memory was short
                self._keep(key, call)
            for name, tensor in written.items():
                if copied and arguments[name] is not tensor:
                    self._submissions.flush()
                    tensor.copy_(arguments[name])
                elif not tensor.is_inference():
                    _increment_version(tensor)
        return results[0] if len(results) == 1 else tuple(results)

    # How it is done.

    def _require_open(self) -> None:
        if self._closed:
            raise Error("invalid_handle", "the device is closed")

    def _require(self, tensor: Any, name: str) -> None:
        """Refuses what can't be computed with."""
        if tensor.device != self.device:
            where = str(tensor.device)
            if tensor.is_cuda:
                where += ", " + described(*devices()[tensor.device.index])
            raise ArgumentError(f"{name} is on {where}: it must be on {self.device}, "
                                f"{self._described}")
        if tensor.layout is not torch.strided:
            raise ArgumentError(f"{name}.layout is {tensor.layout}: it must be torch.strided")

    def _is_shared(self, tensor: Any) -> bool:
        return tensor.numel() == 0 or self.pool.find(tensor.data_ptr()) is not None

    def _fresh(self, shape: tuple[int, ...], element: str, stream: int) -> Any:
        """A tensor that torch may write to on the stream."""
        block = self.pool.take(nbytes(shape, element), stream)
        self._submissions.order(block.index, stream)
        return as_element(from_dlpack(block.lend(tuple(shape), element)), element)

    def _copy(self, tensor: Any, stream: int, transposed: bool) -> Any:
        """A dense copy in shared memory; `transposed`: if that is how the tensor lies."""
        element = ELEMENTS.get(tensor.dtype)
        if element is None:
            raise ArgumentError(f"tensor.dtype is {tensor.dtype}: it must be one of "
                                f"{', '.join(map(str, ELEMENTS))}")
        if transposed and tensor.dim() >= 2 and (
                dict(layout_of(tensor, True) or ()).get("layout") == "col_major"):
            swapped = self._copy(tensor.transpose(-1, -2), stream, transposed=False)
            return swapped.transpose(-1, -2)
        block = self.pool.find(tensor.data_ptr())
        if block is not None and block.index > self._submissions.index:
            self._submissions.flush()  # a result of the batch
        copy = self._fresh(tensor.shape, element, stream)
        copy.copy_(tensor.detach())
        return copy

    def _local(self, name: str, tensor: Any, stream: int | None, in_rows: bool = False) -> Any:
        """The tensor, if vkgemm can use it where it is, else a copy; without a stream, its like."""
        self._require(tensor, name)
        is_matrix = name in _MATRICES or is_array_name(name) and (
            tensor.dim() >= 2 and 1 not in tensor.shape[-2:])
        transposed = is_matrix and not in_rows
        if is_matrix or name in _ROWS:
            readable = tensor.dim() < 2 or layout_of(tensor, transposed) is not None
        else:
            readable = tensor.is_contiguous()
        if (readable and self._is_shared(tensor)) or tensor.dtype not in ELEMENTS:
            return tensor
        if stream is None:
            like = tensor if is_matrix and readable else tensor.contiguous()
            return torch.empty_like(like, device="meta")
        reason = ("in memory that vkgemm did not allocate" if readable else
                  f"with strides {tuple(tensor.stride())}")
        self._say(name, f"lies {reason}: it is copied on the device, in every such call "
                        "(Device.empty() and Device.shared() allocate what is not)")
        return self._copy(tensor, stream, transposed)

    def _say(self, name: str, text: str) -> None:
        """Counts a copy, and warns of the first one of its kind."""
        if (name, text) not in self._warned:
            self._warned.add((name, text))
            warnings.warn(f"{name} {text}", stacklevel=_callers_level())
        self.copies[name] += 1

    def _localize(self, arguments: dict[str, Any], stream: int, in_rows: bool) -> bool:
        """Puts copies in the place of what has to be copied; whether there were any."""
        copied = False
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor):
                arguments[name] = self._local(name, value, stream,
                                              in_rows or _is_gathered(name, arguments))
                copied = copied or arguments[name] is not value
        return copied

    def _place(self, tensor: Any) -> tuple[Buffer, int]:
        """The buffer that a tensor lies in, and its offset there."""
        block = self.pool.find(tensor.data_ptr())
        if block is None:  # it has no element
            return self._scratch(1), 0
        return block.buffer, tensor.data_ptr() - block.address

    def _scratch(self, size: int) -> Buffer:
        """Memory that each submission has for itself, since they follow each other."""
        if self._workspace is None or self._workspace.size < size:
            rounded = max(4096, 1 << (size - 1).bit_length())
            larger = self._gpu.with_room(lambda: Buffer(self._gpu, rounded, host=False))
            self._forget()
            if self._workspace is not None:
                self._workspace.retire()
            self._workspace = larger
        return self._workspace

    def _prepared(self, build: Callable[..., Request], plan: Callable[[Request], Any],
                  arguments: dict[str, Any]) -> Call:
        request = build(Torch(), **arguments)
        planned = plan(request)
        call = Call(planned, request, self._scratch(max(planned.workspace_bytes, 1)))
        for name, tensor in (request.inputs | request.outputs).items():
            if not isinstance(tensor, New):
                buffer, offset = self._place(tensor)
                setattr(call.operands, name, (buffer.address + offset, span(tensor)))
                block = self.pool.find(tensor.data_ptr())
                if block is not None:
                    call.blocks.append(block)
        request.add_packed(call.operands)
        return call

    def _keep(self, key: Any, call: Call) -> None:
        """Keeps a new call, and drops the one that was not used for longest."""
        self._calls[key] = call
        if len(self._calls) > self.max_calls:
            _, oldest = self._calls.popitem(last=False)
            for commands in oldest.recorded.values():
                self._submissions.recycle(commands)

    def _forget(self) -> None:
        """Drops all calls, because addresses or plans in them change."""
        for call in self._calls.values():
            for commands in call.recorded.values():
                self._submissions.recycle(commands)
            call.recorded.clear()
        self._calls.clear()

    def _release(self) -> None:
        self._forget()
        self._submissions.flush()
        self._submissions.finish()
        self.pool.release()

    def _make_room(self) -> None:
        """Frees what no tensor uses, of torch's memory, too."""
        with self._peer:
            self._release()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _execute(self, call: Call, stream: int, out: Any) -> list[Any]:
        blocks, tensors = [], {}
        for name, new in call.new:
            block = self.pool.take(new.nbytes, stream)
            blocks.append(block)
            tensor = from_dlpack(block.lend(new.shape, new.element))
            if new.zero:
                self._submissions.order(block.index, stream)
                tensor.zero_()
            tensors[name] = as_element(tensor, new.element)
        addresses = tuple([block.address for block in blocks])
        commands = call.recorded.get(addresses)
        if commands is None:
            commands = call.recorded[addresses] = self._record(call, blocks)
            if len(call.recorded) > self.max_recordings:
                self._submissions.recycle(call.recorded.popitem(last=False)[1])
        else:
            call.recorded.move_to_end(addresses)
        self._submit(commands, stream, blocks + call.blocks)
        return [tensors.get(name, out) for name in call.results]

    def _record(self, call: Call, blocks: list[Block]) -> Any:
        for (name, new), block in zip(call.new, blocks):
            setattr(call.operands, name, (block.buffer.address, new.nbytes))
        shared = {block.address: block.buffer for block in blocks + call.blocks}

        def record(commands: Any) -> None:
            call.plan.record(commands, call.operands)

        return self._submissions.record(record, list(shared.values()))

    def _submit(self, commands: Any, stream: int, blocks: list[Block]) -> None:
        try:
            self._submissions.submit(commands, stream)
        finally:  # what was submitted uses them, even if the stream could not be told
            index = self._submissions.last
            for block in blocks:
                block.index = index

    def _close(self) -> None:
        self._closed = True
        with self._peer:
            self._submissions.release(run=False)
            try:
                self._submissions.finish()
            except Error as error:
                if error.status != "device_lost":
                    raise
                self._submissions.give_up()
            self._calls.clear()
            self.pool.close()
            self._submissions.close()
        self.pool.leave()


def _is_gathered(name: str, arguments: dict[str, Any]) -> bool:
    """True for a matrix A whose rows are gathered.  It lies in rows alone."""
    return name == "a" and arguments.get("gather") is not None


def _callers_level() -> int:
    """The stacklevel, for whoever calls this, of the first function outside of the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level
