"""A headless Vulkan device of our own: its queue, its commands, and vkgemm's context on it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from os import PathLike
from typing import Any, TypeVar

import numpy as np

from .binding import (ArgumentError, Calls, Error, check, encoded_path, enumerator_name, ffi,
                      initialized, lib, output, owned, text, value_of, written)
from .memory import Buffer, Pending
from .vulkan import (WAIT_FOREVER, WHOLE_SIZE, Instance, call, created, listed, structure,
                     vulkan)

T = TypeVar("T")

QUEUE_FAMILY_EXTERNAL = 2**32 - 2

# Extensions that share memory and semaphores with another API. The device enables those that it has.
SHARING = ("VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd")


@ffi.callback("VkgemmLogCallback")  # type: ignore[misc]
def _log(level: int, message: Any, user_data: Any) -> None:
    name = enumerator_name("VkgemmLogLevel", level)
    logging.getLogger("vkgemm").log(getattr(logging, name.upper()), "%s", text(message))


def _with_timelines(features: Any) -> list[Any]:
    """The chain of features with timeline semaphores enabled; the head comes first.

    Its structures are copied as far as the one that has this bit, which is in every Vulkan 1.2.
    """
    kinds = {vulkan.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2: "VkPhysicalDeviceFeatures2",
             vulkan.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
                 "VkPhysicalDeviceVulkan11Features",
             vulkan.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
                 "VkPhysicalDeviceVulkan12Features"}
    copies: list[Any] = []
    following = features
    while not copies or not hasattr(copies[-1], "timelineSemaphore"):
        kind = kinds[ffi.cast("VkBaseOutStructure *", following).sType]
        copy = ffi.new(kind + " *", ffi.cast(kind + " *", following)[0])
        if copies:
            copies[-1].pNext = copy
        copies.append(copy)
        following = copy.pNext
    copies[-1].timelineSemaphore = 1
    return copies


def _kernel_kinds(caps: Any) -> list[Any]:
    """The kinds of kernel that a device offers."""
    device = output("VkgemmDeviceCaps")
    check(lib.vkgemm_caps_device(caps, device))
    kinds = [initialized("VkgemmKernelKind") for _ in range(device.kernel_kind_count)]
    for index, kind in enumerate(kinds):
        check(lib.vkgemm_caps_kernel_kind(caps, index, kind))
    return kinds


class Gpu:
    """A device with one queue, one command buffer, and vkgemm's context.

    `lock` is held while the commands are recorded and run, and while buffers come and go.
    """

    def __init__(self, index: int | None, self_test: bool | str, **files: str | PathLike[str] | None):
        if self_test not in (False, True, "all"):
            raise ArgumentError(f"self_test is {self_test!r}: it must be False, True or 'all'")
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._may_run = False  # commands for whose end nobody waited yet
        self.calls = Calls()
        self.buffers: set[Buffer] = set()
        #: Work that nobody waited for.  What it may still use is closed when it is done.
        self.pending: Pending | None = None
        #: What comes before close().
        self.at_close: list[Callable[[], None]] = []
        #: What frees memory that is only kept.
        self.at_shortage: list[Callable[[], None]] = []
        self.context: Any = None
        self.functions: dict[Any, int] = {}  # of epilogues, by their numbers in the context
        self.device = self._pool = self._fence = self._queries = ffi.NULL
        self.instance: Instance | None = Instance()
        try:
            self.physical = self._chosen(self.instance, index)
            self.uuid = self.instance.uuid(self.physical)
            limits = self.instance.properties(self.physical).limits
            self._ns_per_tick = float(limits.timestampPeriod)
            self._open(self.instance.handle, self_test, files)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _chosen(instance: Instance, index: int | None) -> Any:
        count = len(instance.devices)
        if count == 0:
            raise Error("driver", "no Vulkan device")
        if index is None:
            index = instance.preferred()
        if not isinstance(index, (int, np.integer)):
            raise ArgumentError(f"index is {index!r}: it must be a whole number")
        if index not in range(count):
            raise ArgumentError(f"index is {index}: "
                                f"there {'is 1 device' if count == 1 else f'are {count} devices'}")
        return instance.devices[int(index)]

    def _open(self, instance: Any, self_test: bool | str,
              files: dict[str, str | PathLike[str] | None]) -> None:
        """Makes a device with all that vkgemm can use, and vkgemm's context on it."""
        get_instance_proc_addr = ffi.addressof(vulkan, "vkGetInstanceProcAddr")
        needs = owned("VkgemmRequirements",
                      lambda out: self.calls(lib.vkgemm_requirements_query, instance,
                                             self.physical, get_instance_proc_addr, out),
                      lib.vkgemm_requirements_destroy)
        features = value_of("VkPhysicalDeviceFeatures2 const *", lib.vkgemm_requirements_features,
                          needs)
        count, names = ffi.new("uint32_t *"), ffi.new("char const *const **")
        check(lib.vkgemm_requirements_extensions(needs, count, names))
        self._create_device(count[0], names[0], features)

        info = initialized("VkgemmContextCreateInfo")
        info.enabled_extension_count = count[0]
        info.enabled_extensions = names[0]
        info.enabled_features = features
        info.instance = instance
        info.physical_device = self.physical
        info.device = self.device
        info.get_instance_proc_addr = get_instance_proc_addr
        info.log = _log
        paths = {name: ffi.new("char[]", encoded_path(name, path))
                 for name, path in files.items() if path is not None}
        for name, path in paths.items():
            setattr(info, name, path)
        caps = value_of("VkgemmCaps const *", lib.vkgemm_requirements_caps, needs)
        verdicts = ffi.new("char[]", written(lib.vkgemm_default_verdict_file, caps).encode())
        test = initialized("VkgemmSelfTest")
        if len(verdicts) > 1:  # the environment names a folder for it
            test.file = verdicts
        if self_test:
            test.queue, test.queue_family = self.queue, self.family
        kinds = _kernel_kinds(caps) if self_test == "all" else []
        only = ffi.new("VkgemmKernelKind const *[]", kinds)
        test.only, test.only_count = only, len(kinds)
        info.self_test = test
        self.context = owned("VkgemmContext",
                             lambda out: self.calls(lib.vkgemm_context_create, info, out),
                             lib.vkgemm_context_destroy)

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a child made by fork(): the driver's threads are missing there."""
        return os.getpid() != self._process

    def require_own(self) -> None:
        """Refuses a child made by fork()."""
        if self.is_inherited:
            raise Error("invalid_handle", f"the device belongs to process {self._process}: "
                                          "a child made by fork() cannot use it")

    @property
    def lock(self) -> Any:
        """The lock, for this process alone."""
        self.require_own()
        return self._lock

    def settle(self) -> None:
        """Waits for commands that an exception, such as KeyboardInterrupt, kept run() from awaiting.

        Only then may their buffers, plans and fence be used again.
        """
        if self._may_run:
            try:
                self.ask("vkQueueWaitIdle", self.queue)
            except Error as error:
                if error.status != "device_lost":
                    raise
            self._may_run = False

    def with_room(self, allocate: Callable[[], T]) -> T:
        """What `allocate` makes.

        If memory is short, what is only kept is freed, and it tries once more.
        """
        try:
            return allocate()
        except Error as error:
            if error.status != "out_of_device_memory" or not self.at_shortage:
                raise
        for free in self.at_shortage:
            free()
        return allocate()

    def hear(self, error: Error) -> None:
        """Tells the context if an error says that the device is lost."""
        if error.status == "device_lost" and self.context is not None:
            check(lib.vkgemm_context_notify_device_lost(self.context))

    @property
    def is_lost(self) -> bool:
        """Whether the context knows that the device is lost."""
        return bool(self.context is not None and value_of(
            "VkBool32", lib.vkgemm_context_device_lost, self.context))

    def ask(self, function: str, *arguments: Any) -> int:
        """call() of a function that may find the device lost."""
        try:
            return call(function, *arguments)
        except Error as error:
            self.hear(error)
            raise

    def _create_device(self, count: int, extensions: Any, features: Any) -> None:
        self.family, self.has_timestamps = self._queue_family()
        offered = self._offered_extensions()
        self.missing = [name for name in SHARING if name not in offered]
        more = [ffi.new("char[]", name.encode()) for name in SHARING if name in offered]
        names = ffi.new("char const *[]", [*extensions[0:count], *more])
        chain = _with_timelines(features)
        priority = ffi.new("float *", 1.0)
        queue = structure("VkDeviceQueueCreateInfo", queueFamilyIndex=self.family, queueCount=1,
                          pQueuePriorities=priority)
        info = structure("VkDeviceCreateInfo", pNext=chain[0],
                         queueCreateInfoCount=1, pQueueCreateInfos=queue,
                         enabledExtensionCount=len(names), ppEnabledExtensionNames=names)
        self.device = created("vkCreateDevice", "VkDevice", self.physical, info, ffi.NULL)
        self.queue = created("vkGetDeviceQueue", "VkQueue", self.device, self.family, 0)
        pool = structure("VkCommandPoolCreateInfo", queueFamilyIndex=self.family)
        self._pool = created("vkCreateCommandPool", "VkCommandPool", self.device, pool, ffi.NULL)
        allocation = structure("VkCommandBufferAllocateInfo", commandPool=self._pool,
                               commandBufferCount=1)
        self.commands = created("vkAllocateCommandBuffers", "VkCommandBuffer", self.device,
                                allocation)
        fence = structure("VkFenceCreateInfo")
        self._fence = created("vkCreateFence", "VkFence", self.device, fence, ffi.NULL)
        queries = structure("VkQueryPoolCreateInfo", queryType=vulkan.VK_QUERY_TYPE_TIMESTAMP,
                            queryCount=2)
        self._queries = created("vkCreateQueryPool", "VkQueryPool", self.device, queries, ffi.NULL)
        self.memory = created("vkGetPhysicalDeviceMemoryProperties",
                              "VkPhysicalDeviceMemoryProperties", self.physical)

    def _offered_extensions(self) -> set[str]:
        offered = listed("vkEnumerateDeviceExtensionProperties", "VkExtensionProperties",
                         self.physical, ffi.NULL)
        return {text(extension.extensionName) for extension in offered}

    def _queue_family(self) -> tuple[int, bool]:
        families = listed("vkGetPhysicalDeviceQueueFamilyProperties", "VkQueueFamilyProperties",
                          self.physical)
        for index, family in enumerate(families):
            if family.queueFlags & vulkan.VK_QUEUE_COMPUTE_BIT:
                return index, family.timestampValidBits != 0
        raise Error("missing_feature", "the device has no queue that computes")

    def begin(self) -> None:
        """Begins the commands anew."""
        call("vkResetCommandPool", self.device, self._pool, 0)
        call("vkBeginCommandBuffer", self.commands, structure("VkCommandBufferBeginInfo"))
        call("vkCmdResetQueryPool", self.commands, self._queries, 0, 2)

    def stamp(self, index: int) -> None:
        """Notes the time when all before it is done."""
        if self.has_timestamps:
            call("vkCmdWriteTimestamp", self.commands,
                 vulkan.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, self._queries, index)

    def milliseconds(self) -> float | None:
        """The time between the two stamps; None if the queue keeps no time."""
        if not self.has_timestamps:
            return None
        ticks = ffi.new("uint64_t[2]")
        self.ask("vkGetQueryPoolResults", self.device, self._queries, 0, 2, 16, ticks, 8,
                 vulkan.VK_QUERY_RESULT_64_BIT | vulkan.VK_QUERY_RESULT_WAIT_BIT)
        return float(ticks[1] - ticks[0]) * self._ns_per_tick / 1e6

    def copy(self, source: Buffer, target: Buffer, offset: int, size: int) -> None:
        """Copies bytes that stand at the same offset in both."""
        self.copy_from(self.commands, source, offset, target, offset, size)

    def copy_from(self, commands: Any, source: Buffer, offset: int, target: Buffer,
                  target_offset: int, size: int) -> None:
        """Copies bytes from one offset to another."""
        if size != 0:
            region = ffi.new("VkBufferCopy *", (offset, target_offset, size))
            call("vkCmdCopyBuffer", commands, source.handle, target.handle, 1, region)

    def pass_on(self, commands: Any, shared: list[Buffer], acquire: bool) -> None:
        """Takes shared buffers from the other API, or gives them back.

        A buffer belongs to one queue family at a time, and the other API counts as one.  Strictly,
        nobody else may even read it meanwhile, which another stream may do here; on an H200 all was
        right without any transfer.
        """
        if not shared:
            return
        access = vulkan.VK_ACCESS_MEMORY_READ_BIT | vulkan.VK_ACCESS_MEMORY_WRITE_BIT
        barriers = ffi.new("VkBufferMemoryBarrier[]", len(shared))
        for barrier, buffer in zip(barriers, shared):
            barrier.sType = vulkan.VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER
            barrier.buffer, barrier.size = buffer.handle, WHOLE_SIZE
            families = (QUEUE_FAMILY_EXTERNAL, self.family)
            if acquire:
                barrier.dstAccessMask = access
            else:
                barrier.srcAccessMask, families = access, families[::-1]
            barrier.srcQueueFamilyIndex, barrier.dstQueueFamilyIndex = families
        stages = vulkan.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
        call("vkCmdPipelineBarrier", commands, stages, stages, 0, 0, ffi.NULL, len(barriers),
             barriers, 0, ffi.NULL)

    def barrier(self, commands: Any = None) -> None:
        """Makes what was written visible to all that follows, copies and shaders."""
        barrier = structure("VkMemoryBarrier", srcAccessMask=vulkan.VK_ACCESS_MEMORY_WRITE_BIT,
                            dstAccessMask=(vulkan.VK_ACCESS_MEMORY_READ_BIT
                                           | vulkan.VK_ACCESS_MEMORY_WRITE_BIT))
        stages = vulkan.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | vulkan.VK_PIPELINE_STAGE_HOST_BIT
        call("vkCmdPipelineBarrier", commands or self.commands,
             vulkan.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, stages, 0, 1, barrier, 0, ffi.NULL, 0,
             ffi.NULL)

    def run(self) -> None:
        """Runs the commands and waits for their end."""
        call("vkEndCommandBuffer", self.commands)
        commands = ffi.new("VkCommandBuffer *", self.commands)
        submit = structure("VkSubmitInfo", commandBufferCount=1, pCommandBuffers=commands)
        fence = ffi.new("VkFence *", self._fence)
        call("vkResetFences", self.device, 1, fence)
        self._may_run = True
        self.ask("vkQueueSubmit", self.queue, 1, submit, self._fence)
        self._may_run = True  # a finalizer may have waited in between
        self.ask("vkWaitForFences", self.device, 1, fence, 1, WAIT_FOREVER)
        self._may_run = False

    def close(self) -> None:
        """Frees everything.  Plans and packings must be gone, and all work done."""
        self.at_shortage.clear()
        for buffer in list(self.buffers):
            buffer.close()
        if self.context is not None:
            ffi.release(self.context)
            self.context = None
        if self.device != ffi.NULL:
            call("vkDestroyQueryPool", self.device, self._queries, ffi.NULL)
            call("vkDestroyFence", self.device, self._fence, ffi.NULL)
            call("vkDestroyCommandPool", self.device, self._pool, ffi.NULL)
            call("vkDestroyDevice", self.device, ffi.NULL)
            self.device = ffi.NULL
        if self.instance is not None:
            self.instance.close()
            self.instance = None
