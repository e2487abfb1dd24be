"""Work on the GPU in the order of another API's streams, by timeline semaphores that both have."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .binding import Error, ffi
from .gpu import Gpu
from .memory import BUFFER_USAGE, Buffer
from .vulkan import WAIT_FOREVER, call, checked, created, descriptor, structure, vulkan


def require_memory_export(gpu: Gpu) -> None:
    """Refuses a device whose memory no other API can import."""
    if gpu.missing:
        raise Error("missing_feature", f"the device does not offer {' and '.join(gpu.missing)}")
    info = structure("VkPhysicalDeviceExternalBufferInfo",
                     usage=BUFFER_USAGE,
                     handleType=vulkan.VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT)
    properties = structure("VkExternalBufferProperties")
    call("vkGetPhysicalDeviceExternalBufferProperties", gpu.physical, info, properties)
    if not (properties.externalMemoryProperties.externalMemoryFeatures
            & vulkan.VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT):
        raise Error("missing_feature", "the device's driver exports no memory as file descriptors")


class Timeline:
    """A semaphore whose value only grows; one that is `shared` can be exported."""

    def __init__(self, gpu: Gpu, shared: bool):
        self._gpu = gpu
        chain = kind = structure("VkSemaphoreTypeCreateInfo",
                                 semaphoreType=vulkan.VK_SEMAPHORE_TYPE_TIMELINE)
        if shared:
            handle = vulkan.VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT
            self._require_export(kind, handle)
            chain = structure("VkExportSemaphoreCreateInfo", pNext=kind, handleTypes=handle)
        info = structure("VkSemaphoreCreateInfo", pNext=chain)
        self.handle = created("vkCreateSemaphore", "VkSemaphore", gpu.device, info, ffi.NULL)

    def _require_export(self, kind: Any, handle: int) -> None:
        properties = structure("VkExternalSemaphoreProperties")
        info = structure("VkPhysicalDeviceExternalSemaphoreInfo", pNext=kind, handleType=handle)
        call("vkGetPhysicalDeviceExternalSemaphoreProperties", self._gpu.physical, info, properties)
        if not (properties.externalSemaphoreFeatures
                & vulkan.VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT):
            raise Error("missing_feature",
                        "the device's driver exports no timeline semaphores as file descriptors")

    def fd(self) -> int:
        """A new file descriptor of the semaphore.  It is the caller's to close."""
        info = structure("VkSemaphoreGetFdInfoKHR", semaphore=self.handle,
                         handleType=vulkan.VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT)
        return descriptor(self._gpu.device, "PFN_vkGetSemaphoreFdKHR", info)

    def value(self) -> int:
        """The value that it has now."""
        value = ffi.new("uint64_t *")
        self._gpu.ask("vkGetSemaphoreCounterValue", self._gpu.device, self.handle, value)
        return int(value[0])

    def signal(self, value: int) -> None:
        """Sets the value, from the host."""
        info = structure("VkSemaphoreSignalInfo", semaphore=self.handle, value=value)
        call("vkSignalSemaphore", self._gpu.device, info)

    def wait(self, value: int) -> None:
        """Waits on the host until it has this value."""
        semaphores = ffi.new("VkSemaphore *", self.handle)
        values = ffi.new("uint64_t *", value)
        info = structure("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=semaphores,
                         pValues=values)
        self._gpu.ask("vkWaitSemaphores", self._gpu.device, info, WAIT_FOREVER)

    def close(self) -> None:
        call("vkDestroySemaphore", self._gpu.device, self.handle, ffi.NULL)


class Mapping(Protocol):
    """Memory as the other API has it."""

    address: int

    def close(self) -> None:
        """Unmaps it.  Nothing may use it any more."""


class Semaphore(Protocol):
    """A timeline as the other API has it.  Streams are CUDA's handles, as numbers."""

    def signal(self, value: int, stream: int) -> None:
        """Sets the value when all that is on the stream is done."""

    def wait(self, value: int, stream: int) -> None:
        """Lets what comes on the stream wait for the value."""

    def close(self) -> None:
        """Ends the import."""


class Peer(Protocol):
    """The other API on the GPU, for this thread while it is entered."""

    dlpack_device: tuple[int, int]  # type and id
    shares_timelines: bool  # whether it imports what is exported

    def __enter__(self) -> Peer: ...
    def __exit__(self, *exception: object) -> None: ...

    def memory(self, buffer: Buffer) -> Mapping:
        """Imports a buffer's memory."""

    def semaphore(self, timeline: Timeline) -> Semaphore:
        """Imports a timeline."""

    def synchronize(self) -> None:
        """Waits on the host until all streams are done."""

    def close(self) -> None:
        """Lets go of the other API, outside of `with`.  All imports must be gone."""


def _imported(peer: Peer, timeline: Timeline) -> Semaphore:
    """The timeline as the other API has it; closed if that refuses it."""
    try:
        return peer.semaphore(timeline)
    except BaseException:
        timeline.close()
        raise


@dataclass
class _Stream:
    """What a stream has told: `arrived` has its values, of which `value` is the last."""

    arrived: Timeline
    imported: Semaphore
    value: int = 0
    waited: int = 0  # the last submission that it waits for


class Submissions:
    """Commands that run between what a stream has before and what comes on it after.

    No call waits on the host.  A stream tells by a timeline of its own how far it is; `done` has
    the index of the last submission that is done, of all streams, because they run on one queue.

    Between hold() and release() commands are collected, and flush() submits them at once.
    """

    def __init__(self, gpu: Gpu, peer: Peer):
        self._gpu = gpu
        self._peer = peer
        self.index = 0  # of the last submission
        self._held: list[Any] | None = None  # commands that are collected
        self._held_stream = 0
        self._streams: dict[int, _Stream] = {}
        self._idle: deque[tuple[int, Any]] = deque()  # command buffers, and who used them last
        self._retired: deque[tuple[int, Buffer]] = deque()
        self._done = Timeline(gpu, peer.shares_timelines)
        self._imported = _imported(peer, self._done)
        pool = structure("VkCommandPoolCreateInfo", queueFamilyIndex=gpu.family,
                         flags=vulkan.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT)
        self._pool = ffi.NULL
        try:
            self._pool = created("vkCreateCommandPool", "VkCommandPool", gpu.device, pool, ffi.NULL)
        except BaseException:
            self.close()
            raise
        # One submission's structures, which only change their values.
        self._wait, self._wait_value = ffi.new("VkSemaphore[1]"), ffi.new("uint64_t[1]")
        self._commands, self._signal_value = ffi.new("VkCommandBuffer[1]"), ffi.new("uint64_t[1]")
        self._stage = ffi.new("VkPipelineStageFlags *",
                              vulkan.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT)
        self._signal = ffi.new("VkSemaphore *", self._done.handle)
        self._values = structure(
            "VkTimelineSemaphoreSubmitInfo", waitSemaphoreValueCount=1,
            pWaitSemaphoreValues=self._wait_value, signalSemaphoreValueCount=1,
            pSignalSemaphoreValues=self._signal_value)
        self._info = structure(
            "VkSubmitInfo", pNext=self._values, waitSemaphoreCount=1, pWaitSemaphores=self._wait,
            pWaitDstStageMask=self._stage, commandBufferCount=1, pCommandBuffers=self._commands,
            signalSemaphoreCount=1, pSignalSemaphores=self._signal)
        self._submit = vulkan.vkQueueSubmit
        gpu.pending = self

    def _stream(self, stream: int) -> _Stream:
        state = self._streams.get(stream)
        if state is None:
            arrived = Timeline(self._gpu, self._peer.shares_timelines)
            state = self._streams[stream] = _Stream(arrived, _imported(self._peer, arrived))
        return state

    def record(self, write: Callable[[Any], None], shared: list[Buffer]) -> Any:
        """A command buffer with what is written to it, which follows all that was submitted before.

        It may be submitted any number of times, until it is recycled.  `shared` are the buffers in
        it that the other API sees.
        """
        device = self._gpu.device
        if self._idle and self._idle[0][0] <= self._done.value():
            commands = self._idle.popleft()[1]
        else:
            info = structure("VkCommandBufferAllocateInfo", commandPool=self._pool,
                             commandBufferCount=1)
            commands = created("vkAllocateCommandBuffers", "VkCommandBuffer", device, info)
        flags = vulkan.VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
        call("vkBeginCommandBuffer", commands, structure("VkCommandBufferBeginInfo", flags=flags))
        self._gpu.barrier(commands)
        try:
            self._gpu.pass_on(commands, shared, acquire=True)
            write(commands)
            self._gpu.pass_on(commands, shared, acquire=False)
        except BaseException:
            self.recycle(commands)
            raise
        finally:
            call("vkEndCommandBuffer", commands)
        return commands

    def recycle(self, commands: Any) -> None:
        """Lets the commands be used again, once what was submitted is done."""
        self._idle.append((self.last, commands))

    @property
    def last(self) -> int:
        """The index of the last submission, or of the next one if commands are collected for it."""
        return self.index + 1 if self._held else self.index

    def hold(self) -> None:
        """Collects commands from now on."""
        self._held = []

    def release(self, run: bool) -> None:
        """Submits what was collected, or forgets it, and collects no more."""
        try:
            if run:
                self.flush()
        finally:
            self._held = None

    def flush(self) -> None:
        """Submits what was collected."""
        if not self._held:
            return
        held, self._held = self._held, []
        commands = ffi.new("VkCommandBuffer[]", held)
        self._info.commandBufferCount, self._info.pCommandBuffers = len(held), commands
        try:
            self._run(self._held_stream)
        finally:
            self._info.commandBufferCount, self._info.pCommandBuffers = 1, self._commands

    def submit(self, commands: Any, stream: int) -> int:
        """Runs the commands in the stream's order, or collects them; the index of the submission."""
        if self._held is None:
            self._commands[0] = commands
            return self._run(stream)
        if stream != self._held_stream:
            self.flush()
        self._held_stream = stream
        self._held.append(commands)
        return self.last

    def _run(self, stream: int) -> int:
        """Submits the commands that `_info` names; the index of this submission."""
        state = self._streams.get(stream) or self._stream(stream)
        state.value += 1
        state.imported.signal(state.value, stream)
        index = self.index + 1
        self._wait[0] = state.arrived.handle
        self._wait_value[0] = state.value
        self._signal_value[0] = index
        # No value is signalled twice, wherever Ctrl-C comes; finish() signals one that never was.
        self.index = index
        result = self._submit(self._gpu.queue, 1, self._info, ffi.NULL)
        if result != 0:
            self._refused(result)
        self._imported.wait(index, stream)
        state.waited = index
        return index

    def _refused(self, result: int) -> None:
        """Takes back the index of what was not submitted, and says why."""
        self.index -= 1
        try:
            checked("vkQueueSubmit", result)
        except Error as error:
            self._gpu.hear(error)
            raise

    def order(self, index: int, stream: int) -> None:
        """Lets what comes on the stream wait for a submission."""
        if index > self.index:
            self.flush()
        state = self._stream(stream)
        index = min(index, self.index)  # commands that were collected may have been dropped
        if state.waited < index:
            self._imported.wait(index, stream)
            state.waited = index

    def retire(self, buffer: Buffer) -> None:
        """Closes the buffer when what was submitted is done.  It never fails."""
        self._retired.append((self.last, buffer))
        try:
            self._sweep()
        except Error as error:
            logging.getLogger("vkgemm").warning("%s", error)

    def _sweep(self) -> None:
        done = self._done.value()
        while self._retired and self._retired[0][0] <= done:
            self._retired.popleft()[1].close()

    def finish(self) -> None:
        """Waits on the host until streams and submissions are done."""
        self._signal_last()
        try:
            self._peer.synchronize()
        except Error as error:  # streams that failed tell nothing any more
            logging.getLogger("vkgemm").error("%s: what waits for it is let go", error)
            for state in self._streams.values():
                if state.arrived.value() < state.value:
                    state.arrived.signal(state.value)
        self._done.wait(self.index)
        self._sweep()

    def _signal_last(self) -> None:
        """Gives `done` a value behind all that was submitted."""
        value = ffi.new("uint64_t *", self.index + 1)
        values = structure("VkTimelineSemaphoreSubmitInfo", signalSemaphoreValueCount=1,
                           pSignalSemaphoreValues=value)
        info = structure("VkSubmitInfo", pNext=values, signalSemaphoreCount=1,
                         pSignalSemaphores=self._signal)
        self.index += 1
        result = self._submit(self._gpu.queue, 1, info, ffi.NULL)
        if result != 0:
            self._refused(result)

    def give_up(self) -> None:
        """finish() of a device that is lost: streams that wait for it go on."""
        self.index += 1
        for step in (lambda: self._done.signal(self.index), self._peer.synchronize):
            try:
                step()
            except Error as error:
                logging.getLogger("vkgemm").error("%s", error)

    def close(self) -> None:
        """Frees everything.  finish() or give_up() comes before."""
        self._gpu.pending = None
        for state in self._streams.values():
            state.imported.close()
            state.arrived.close()
        self._streams.clear()
        self._imported.close()
        self._done.close()
        call("vkDestroyCommandPool", self._gpu.device, self._pool, ffi.NULL)
