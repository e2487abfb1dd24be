"""The calls of CUDA's driver, by Python in its place: what is passed, and what is freed."""

import contextlib
import os
import unittest
from unittest import mock

import vkgemm
from vkgemm import cuda
from vkgemm.binding import ffi
from vkgemm.memory import Buffer

DEVICES = [("GPU zero", bytes(16)), ("GPU one", bytes(range(16)))]
OUT_OF_MEMORY = 2


class Driver:
    """libcuda's functions as cffi calls them, for two devices."""

    def __init__(self):
        self.contexts = []  # that are pushed
        self.retained = []  # devices
        self.imported = {}  # handle to description
        self.mapped = {}  # address to size
        self.on_streams = []
        self.result = 0  # of imports

    def cuInit(self, flags):
        return 0

    def cuGetErrorName(self, error, name):
        self._name = ffi.new("char[]", b"CUDA_ERROR_OUT_OF_MEMORY")
        name[0] = self._name
        return 0

    def cuDeviceGetCount(self, count):
        count[0] = len(DEVICES)
        return 0

    def cuDeviceGet(self, device, ordinal):
        device[0] = ordinal + 10
        return 0

    def cuDeviceGetName(self, name, size, device):
        text = DEVICES[device - 10][0].encode()
        ffi.buffer(name, size)[0:len(text)] = text
        return 0

    def cuDeviceGetUuid(self, uuid, device):
        ffi.buffer(uuid)[:] = DEVICES[device - 10][1]
        return 0

    def cuDevicePrimaryCtxRetain(self, context, device):
        context[0] = ffi.cast("CUcontext", device)
        self.retained.append(device)
        return 0

    def cuDevicePrimaryCtxRelease_v2(self, device):
        self.retained.remove(device)
        return 0

    def cuCtxPushCurrent_v2(self, context):
        self.contexts.append(context)
        return 0

    def cuCtxPopCurrent_v2(self, context):
        context[0] = self.contexts.pop()
        return 0

    def cuCtxSynchronize(self):
        return 0

    def _import(self, handle, kind, description):
        if self.result == 0:
            handle[0] = ffi.cast(kind, len(self.imported) + 1)
            self.imported[handle[0]] = description[0]
            os.close(description.handle.fd)  # it is the driver's now
        return self.result

    def cuImportExternalMemory(self, memory, description):
        return self._import(memory, "CUexternalMemory", description)

    def cuImportExternalSemaphore(self, semaphore, description):
        return self._import(semaphore, "CUexternalSemaphore", description)

    def cuExternalMemoryGetMappedBuffer(self, address, memory, part):
        address[0] = 0x700000000000
        self.mapped[address[0]] = (memory, part.offset, part.size)
        return 0

    def cuMemFree_v2(self, address):
        del self.mapped[address]
        return 0

    def cuDestroyExternalMemory(self, memory):
        del self.imported[memory]
        return 0

    cuDestroyExternalSemaphore = cuDestroyExternalMemory

    def cuSignalExternalSemaphoresAsync(self, semaphores, params, count, stream):
        self.on_streams.append(("signal", semaphores[0], params.value, count, stream))
        return self.result

    def cuWaitExternalSemaphoresAsync(self, semaphores, params, count, stream):
        self.on_streams.append(("wait", semaphores[0], params.value, count, stream))
        return self.result


class Imports(unittest.TestCase):
    def setUp(self):
        self.driver = Driver()
        patch = mock.patch.object(cuda, "_driver", lambda: self.driver)
        patch.start()
        self.addCleanup(patch.stop)
        self.cuda = cuda.Cuda(*DEVICES[1])

    def test_sizes(self):
        """Of the structures, as CUDA has them."""
        for kind, size in (("CUDA_EXTERNAL_MEMORY_HANDLE_DESC", 104),
                           ("CUDA_EXTERNAL_MEMORY_BUFFER_DESC", 88),
                           ("CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC", 96),
                           ("VkgemmSemaphoreParams", 144)):
            self.assertEqual(ffi.sizeof(kind), size, kind)
        self.assertEqual(ffi.offsetof("VkgemmSemaphoreParams", "flags"), 72)

    def test_the_device_is_found_by_its_uuid(self):
        self.assertEqual(cuda.devices(), DEVICES)
        self.assertEqual((self.cuda.ordinal, self.cuda.dlpack_device), (1, (2, 1)))

    def test_its_context_is_current_inside(self):
        with contextlib.suppress(KeyError), self.cuda:
            self.assertEqual(self.driver.contexts, [ffi.cast("CUcontext", 11)])
            raise KeyError
        self.assertEqual(self.driver.contexts, [])

    def test_its_context_is_released(self):
        self.assertEqual(self.driver.retained, [11])
        self.cuda.close()
        self.assertEqual(self.driver.retained, [])

    def test_memory(self):
        with vkgemm.Device() as device:
            buffer = Buffer(device._gpu, 10000, host=False, shared=True)
            memory = self.cuda.memory(buffer)
            description, = self.driver.imported.values()
            self.assertEqual((description.type, description.size, description.flags),
                             (1, buffer.allocated, 0))
            mapped, offset, size = self.driver.mapped[memory.address]
            self.assertEqual((offset, size), (0, 10000))
            self.assertIn(mapped, self.driver.imported)
            memory.close()
            self.assertEqual((self.driver.imported, self.driver.mapped), ({}, {}))
            buffer.dedicated = True
            self.cuda.memory(buffer)
            description, = self.driver.imported.values()
            self.assertEqual(description.flags, 1)

    def test_memory_that_is_refused(self):
        self.driver.result = OUT_OF_MEMORY
        fd = os.open(os.devnull, os.O_RDONLY)
        with self.assertRaises(vkgemm.Error) as caught:
            self.cuda.memory(mock.Mock(fd=lambda: fd, allocated=10, dedicated=False, size=10))
        self.assertEqual(caught.exception.status, "out_of_device_memory")
        self.assertIn("cuImportExternalMemory gave CUDA_ERROR_OUT_OF_MEMORY",
                      caught.exception.message)
        with self.assertRaises(OSError):
            os.fstat(fd)

    def test_semaphores(self):
        timeline = mock.Mock(fd=lambda: os.open(os.devnull, os.O_RDONLY))
        semaphore = self.cuda.semaphore(timeline)
        (handle, description), = self.driver.imported.items()
        self.assertEqual((description.type, description.flags), (9, 0))
        semaphore.signal(2**40, 0)
        semaphore.wait(2**40 + 1, 0x5500)
        self.assertEqual(self.driver.on_streams, [
            ("signal", handle, 2**40, 1, ffi.NULL),
            ("wait", handle, 2**40 + 1, 1, ffi.cast("CUstream", 0x5500))])
        self.driver.result = 700
        for call in (semaphore.signal, semaphore.wait):
            with self.assertRaises(vkgemm.Error):
                call(1, 0)
        semaphore.close()
        self.assertEqual(self.driver.imported, {})

    def test_a_failed_context_does_not_stop_the_end(self):
        semaphore = self.cuda.semaphore(mock.Mock(fd=lambda: os.open(os.devnull, os.O_RDONLY)))
        with mock.patch.object(self.driver, "cuDestroyExternalSemaphore", lambda _: 700):
            with self.assertLogs("vkgemm", "WARNING") as logs:
                semaphore.close()
        self.assertIn("cuDestroyExternalSemaphore", logs.output[0])
