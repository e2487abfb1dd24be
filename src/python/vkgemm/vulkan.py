"""Vulkan's functions, called through its loader, and instances."""

from __future__ import annotations

import re
from typing import Any

from .binding import Error, ffi


def _loader(library: str = "libvulkan.so.1") -> Any:
    try:
        return ffi.dlopen(library)
    except OSError as error:
        raise ImportError(f"vkgemm needs the Vulkan loader (Debian: libvulkan1): {error}") from None


vulkan: Any = _loader()

API_VERSION_1_3 = (1 << 22) | (3 << 12)
WHOLE_SIZE = 2**64 - 1
WAIT_FOREVER = 2**64 - 1

_STATUS_OF_RESULT = {
    "VK_ERROR_OUT_OF_HOST_MEMORY": "out_of_host_memory",
    "VK_ERROR_OUT_OF_DEVICE_MEMORY": "out_of_device_memory",
    "VK_ERROR_DEVICE_LOST": "device_lost",
}

# GPUs come before drivers on the CPU, and those with memory of their own come first.
_PREFERENCE = ["DISCRETE_GPU", "INTEGRATED_GPU", "VIRTUAL_GPU", "CPU", "OTHER"]


def call(function: str, *arguments: Any) -> int:
    """Calls one of Vulkan's functions; a result below zero is an exception."""
    return checked(function, getattr(vulkan, function)(*arguments))


def checked(function: str, result: int | None) -> int:
    """What a function returned; a result below zero is an exception."""
    if result is None:
        return 0
    if result < 0:
        name = ffi.typeof("VkResult").elements.get(result, str(result))
        raise Error(_STATUS_OF_RESULT.get(name, "driver"), f"{function} gave {name}", result)
    return result


def created(function: str, kind: str, *arguments: Any) -> Any:
    """The handle that a function writes through its last parameter."""
    handle = ffi.new(kind + " *")
    call(function, *arguments, handle)
    return handle[0]


def listed(function: str, kind: str, *arguments: Any) -> Any:
    """The array that a function writes, which is asked for the length first."""
    count = ffi.new("uint32_t *")
    call(function, *arguments, count, ffi.NULL)
    found = ffi.new(kind + "[]", count[0])
    call(function, *arguments, count, found)
    return found


def descriptor(device: Any, function: str, info: Any) -> int:
    """The file descriptor that an extension's function of this type returns."""
    name = function.removeprefix("PFN_")
    pointer = ffi.cast(function, vulkan.vkGetDeviceProcAddr(device, name.encode()))
    fd = ffi.new("int *")
    checked(name, pointer(device, info, fd))
    return int(fd[0])


def memory_type(memory: Any, allowed: int, host: bool) -> int:
    """The best of the allowed memory types: cached by the host, or the device's own.

    memory: VkPhysicalDeviceMemoryProperties.
    """
    needed = wanted = vulkan.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
    if host:
        needed = (vulkan.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
                  | vulkan.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
        wanted = needed | vulkan.VK_MEMORY_PROPERTY_HOST_CACHED_BIT
    for flags in (wanted, needed):
        for index in range(memory.memoryTypeCount):
            if allowed >> index & 1 and memory.memoryTypes[index].propertyFlags & flags == flags:
                return index
    raise Error("out_of_device_memory", "the device has no memory of the kind that is needed")


def structure(kind: str, **fields: Any) -> Any:
    """A structure with its sType: structure("VkSubmitInfo", pCommandBuffers=commands)."""
    words = re.findall("[A-Z]+(?=[A-Z][a-z]|$)|[A-Z][a-z]+|[0-9]+", kind.removeprefix("Vk"))
    name = "_".join(["VK_STRUCTURE_TYPE", *words]).upper()
    return ffi.new(kind + " *", {"sType": getattr(vulkan, name), **fields})


class Instance:
    """An instance of Vulkan 1.3 and the devices that it lists."""

    def __init__(self) -> None:
        application = structure("VkApplicationInfo", apiVersion=API_VERSION_1_3)
        info = structure("VkInstanceCreateInfo", pApplicationInfo=application)
        self.handle = created("vkCreateInstance", "VkInstance", info, ffi.NULL)
        self.devices = list(listed("vkEnumeratePhysicalDevices", "VkPhysicalDevice", self.handle))

    def properties(self, device: Any) -> Any:
        """VkPhysicalDeviceProperties."""
        properties = ffi.new("VkPhysicalDeviceProperties *")
        call("vkGetPhysicalDeviceProperties", device, properties)
        return properties

    def uuid(self, device: Any) -> bytes:
        """What tells a GPU from others, in every API."""
        identity = structure("VkPhysicalDeviceIDProperties")
        call("vkGetPhysicalDeviceProperties2", device,
             structure("VkPhysicalDeviceProperties2", pNext=identity))
        return bytes(identity.deviceUUID)

    def preferred(self) -> int:
        """The index of the device that is taken if none is named."""
        def rank(index: int) -> int:
            kind = self.properties(self.devices[index]).deviceType
            name = ffi.typeof("VkPhysicalDeviceType").elements[kind]
            return _PREFERENCE.index(name.removeprefix("VK_PHYSICAL_DEVICE_TYPE_"))
        return min(range(len(self.devices)), key=rank)

    def close(self) -> None:
        call("vkDestroyInstance", self.handle, ffi.NULL)


def devices() -> list[str]:
    """The names of this machine's devices, in the order of Device's index.

    >>> device.name in vkgemm.devices()
    True
    """
    instance = Instance()
    try:
        return [ffi.string(instance.properties(device).deviceName).decode()
                for device in instance.devices]
    finally:
        instance.close()


def uuids() -> list[bytes]:
    """What tells this machine's devices apart in every API, in the same order."""
    instance = Instance()
    try:
        return [instance.uuid(device) for device in instance.devices]
    finally:
        instance.close()
