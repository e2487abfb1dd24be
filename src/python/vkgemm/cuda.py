"""CUDA on the GPU that vkgemm computes on, through the driver's API."""

from __future__ import annotations

import functools
import logging
import os
from typing import Any

from .binding import Error, ffi, text
from .memory import Buffer
from .shared import Timeline

_OPAQUE_FD, _TIMELINE_FD, _DEDICATED = 1, 9, 1


@functools.cache
def _driver() -> Any:
    try:
        driver = ffi.dlopen("libcuda.so.1")
    except OSError as error:
        raise Error("missing_feature", f"there is no CUDA driver: {error}") from None
    _check("cuInit", driver.cuInit(0), driver)
    return driver


def _check(function: str, result: int, driver: Any = None) -> None:
    if result != 0:
        name = ffi.new("char const **")
        (driver or _driver()).cuGetErrorName(result, name)
        said = text(name[0]) if name[0] != ffi.NULL else str(result)
        status = "out_of_device_memory" if said.endswith("OUT_OF_MEMORY") else "driver"
        raise Error(status, f"{function} gave {said}")


def _call(function: str, *arguments: Any) -> None:
    _check(function, getattr(_driver(), function)(*arguments))


def _free(function: str, *arguments: Any) -> None:
    """Frees something; where CUDA failed before, it says so again, which is no reason to stop."""
    try:
        _call(function, *arguments)
    except Error as error:
        logging.getLogger("vkgemm").warning("%s", error)


def _created(function: str, kind: str, *arguments: Any) -> Any:
    value = ffi.new(kind + " *")
    _call(function, value, *arguments)
    return value[0]


def devices() -> list[tuple[str, bytes]]:
    """Name and UUID of CUDA's devices, in the order of its ordinals, which are torch's, too."""
    found = []
    for ordinal in range(_created("cuDeviceGetCount", "int")):
        device = _created("cuDeviceGet", "CUdevice", ordinal)
        name = ffi.new("char[]", 256)
        _call("cuDeviceGetName", name, 256, device)
        found.append((text(name), bytes(_created("cuDeviceGetUuid", "CUuuid", device).bytes)))
    return found


class CudaMemory:
    """A buffer's memory, mapped: shared.Mapping."""

    def __init__(self, buffer: Buffer):
        description = ffi.new("CUDA_EXTERNAL_MEMORY_HANDLE_DESC *")
        description.type = _OPAQUE_FD
        description.size = buffer.allocated
        description.flags = _DEDICATED if buffer.dedicated else 0
        self._memory = _imported("cuImportExternalMemory", "CUexternalMemory", buffer.fd(),
                                 description)
        part = ffi.new("CUDA_EXTERNAL_MEMORY_BUFFER_DESC *", {"size": buffer.size})
        try:
            self.address = int(_created("cuExternalMemoryGetMappedBuffer", "CUdeviceptr",
                                        self._memory, part))
        except Error:
            _free("cuDestroyExternalMemory", self._memory)
            raise

    def close(self) -> None:
        _free("cuMemFree_v2", self.address)
        _free("cuDestroyExternalMemory", self._memory)


class CudaSemaphore:
    """A timeline, imported: shared.Semaphore."""

    def __init__(self, timeline: Timeline):
        driver = _driver()
        description = ffi.new("CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *")
        description.type = _TIMELINE_FD
        imported = _imported("cuImportExternalSemaphore", "CUexternalSemaphore", timeline.fd(),
                             description)
        self._semaphores = ffi.new("CUexternalSemaphore *", imported)
        self._params = ffi.new("VkgemmSemaphoreParams *")
        self._signal = driver.cuSignalExternalSemaphoresAsync
        self._wait = driver.cuWaitExternalSemaphoresAsync

    def signal(self, value: int, stream: int) -> None:
        self._params.value = value
        result = self._signal(self._semaphores, self._params, 1, ffi.cast("CUstream", stream))
        if result != 0:
            _check("cuSignalExternalSemaphoresAsync", result)

    def wait(self, value: int, stream: int) -> None:
        self._params.value = value
        result = self._wait(self._semaphores, self._params, 1, ffi.cast("CUstream", stream))
        if result != 0:
            _check("cuWaitExternalSemaphoresAsync", result)

    def close(self) -> None:
        _free("cuDestroyExternalSemaphore", self._semaphores[0])


def _imported(function: str, kind: str, fd: int, description: Any) -> Any:
    """What CUDA makes of a file descriptor, which is its own if it succeeds."""
    description.handle.fd = fd
    try:
        return _created(function, kind, description)
    except Error:
        os.close(fd)
        raise


class Cuda:
    """CUDA's device of a UUID: shared.Peer.  `ordinal` is its index, and torch's."""

    shares_timelines = True

    def __init__(self, name: str, uuid: bytes):
        found = devices()
        ordinals = [ordinal for ordinal, device in enumerate(found) if device[1] == uuid]
        if not ordinals:
            others = ", ".join(described(*device) for device in found) or "none"
            raise Error("missing_feature", f"CUDA does not list the device that vkgemm is on, "
                                           f"{described(name, uuid)}; it lists {others}")
        self.ordinal = ordinals[0]
        self.dlpack_device = (2, self.ordinal)
        self._device = _created("cuDeviceGet", "CUdevice", self.ordinal)
        self._context = _created("cuDevicePrimaryCtxRetain", "CUcontext", self._device)
        self._push = _driver().cuCtxPushCurrent_v2
        self._pop = _driver().cuCtxPopCurrent_v2
        self._popped = ffi.new("CUcontext *")

    def __enter__(self) -> Cuda:
        _check("cuCtxPushCurrent", self._push(self._context))
        return self

    def __exit__(self, *exception: object) -> None:
        _check("cuCtxPopCurrent", self._pop(self._popped))

    def memory(self, buffer: Buffer) -> CudaMemory:
        return CudaMemory(buffer)

    def semaphore(self, timeline: Timeline) -> CudaSemaphore:
        return CudaSemaphore(timeline)

    def synchronize(self) -> None:
        _call("cuCtxSynchronize")

    def close(self) -> None:
        """Releases the context, which is CUDA's own as long as torch has it."""
        _free("cuDevicePrimaryCtxRelease_v2", self._device)


def described(name: str, uuid: bytes) -> str:
    """A device as messages name it."""
    return f"{name} (UUID {uuid.hex()})"
