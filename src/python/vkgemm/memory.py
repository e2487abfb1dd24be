"""Memory of a device: buffers, and what the operands of one call are copied to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .binding import ffi
from .vulkan import WHOLE_SIZE, call, created, descriptor, memory_type, structure, vulkan

T = TypeVar("T")

# The usage flags of each buffer.
BUFFER_USAGE = (vulkan.VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT
                | vulkan.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
                | vulkan.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
                | vulkan.VK_BUFFER_USAGE_TRANSFER_DST_BIT)


class Pending(Protocol):
    """Work for which the host did not wait."""

    def retire(self, buffer: Buffer) -> None:
        """Closes the buffer when the submitted work is done."""


class Owner(Protocol):
    """The parts of a Gpu that its buffers use."""

    device: Any
    memory: Any  # VkPhysicalDeviceMemoryProperties
    buffers: set[Buffer]
    pending: Pending | None

    @property
    def is_inherited(self) -> bool:
        """True in a child made by fork()."""

    def with_room(self, allocate: Callable[[], T]) -> T:
        """The result of `allocate`, which is called once more if memory is short."""


class Buffer:
    """Memory of a device: `address` on it and, if it is the host's to see, `data`."""

    def __init__(self, gpu: Owner, size: int, host: bool, shared: bool = False):
        self.size = size
        self.gpu = gpu
        external = ffi.NULL
        if shared:
            external = structure("VkExternalMemoryBufferCreateInfo",
                                 handleTypes=vulkan.VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT)
        info = structure("VkBufferCreateInfo", pNext=external, size=size, usage=BUFFER_USAGE)
        self.handle = created("vkCreateBuffer", "VkBuffer", gpu.device, info, ffi.NULL)
        self.memory = ffi.NULL
        gpu.buffers.add(self)
        try:
            self._bind(host, shared)
        except BaseException:
            self.close()
            raise

    def _bind(self, host: bool, shared: bool) -> None:
        device = self.gpu.device
        dedicated = structure("VkMemoryDedicatedRequirements")
        requirements = structure("VkMemoryRequirements2", pNext=dedicated)
        call("vkGetBufferMemoryRequirements2", device,
             structure("VkBufferMemoryRequirementsInfo2", buffer=self.handle), requirements)
        needs = requirements.memoryRequirements
        self.allocated, self.dedicated = needs.size, bool(dedicated.requiresDedicatedAllocation)
        chain = [structure("VkMemoryAllocateFlagsInfo",
                           flags=vulkan.VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT)]
        if shared:
            handle = vulkan.VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
            chain.append(structure("VkExportMemoryAllocateInfo", pNext=chain[-1],
                                   handleTypes=handle))
        if self.dedicated:
            chain.append(structure("VkMemoryDedicatedAllocateInfo", pNext=chain[-1],
                                   buffer=self.handle))
        info = structure("VkMemoryAllocateInfo", pNext=chain[-1], allocationSize=needs.size,
                         memoryTypeIndex=memory_type(self.gpu.memory, needs.memoryTypeBits, host))
        self.memory = created("vkAllocateMemory", "VkDeviceMemory", device, info, ffi.NULL)
        call("vkBindBufferMemory", device, self.handle, self.memory, 0)
        if host:
            data = ffi.new("void **")
            call("vkMapMemory", device, self.memory, 0, WHOLE_SIZE, 0, data)
            self.data = ffi.buffer(data[0], self.size)
        address = structure("VkBufferDeviceAddressInfo", buffer=self.handle)
        self.address = call("vkGetBufferDeviceAddress", device, address)

    def fd(self) -> int:
        """A new file descriptor of the memory, which is shared.  It is the caller's to close."""
        info = structure("VkMemoryGetFdInfoKHR", memory=self.memory,
                         handleType=vulkan.VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT)
        return descriptor(self.gpu.device, "PFN_vkGetMemoryFdKHR", info)

    def retire(self) -> None:
        """Closes it, once the work that may use it is done."""
        if self.gpu.pending is None:
            self.close()
        else:
            self.gpu.pending.retire(self)

    def close(self) -> None:
        if self not in self.gpu.buffers:
            return
        self.gpu.buffers.remove(self)
        call("vkDestroyBuffer", self.gpu.device, self.handle, ffi.NULL)
        call("vkFreeMemory", self.gpu.device, self.memory, ffi.NULL)


class Arena:
    """Memory for the operands of one call, on the device and, for copies, on the host.

    An operand has the same offset in both.  They grow to what the largest call needs.
    """

    def __init__(self, gpu: Owner):
        self._gpu = gpu
        self.device: Buffer | None = None
        self.host: Buffer | None = None

    def reserve(self, device: int, host: int) -> tuple[Buffer, Buffer]:
        """Buffers of at least so many bytes each."""
        for name, size, on_host in (("device", device, False), ("host", host, True)):
            buffer = getattr(self, name)
            if buffer is not None and buffer.size >= size:
                continue
            setattr(self, name, None)  # should there be no memory for a larger one
            if buffer is not None:
                buffer.close()
            larger = max(4096, 1 << (size - 1).bit_length())
            setattr(self, name, self._gpu.with_room(
                functools.partial(Buffer, self._gpu, larger, on_host)))
        assert self.device is not None and self.host is not None
        return self.device, self.host

    def close(self) -> None:
        """Frees the buffers.  All work on them must be done."""
        for buffer in (self.device, self.host):
            if buffer is not None:
                buffer.close()
        self.device = self.host = None
