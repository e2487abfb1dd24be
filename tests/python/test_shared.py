"""Memory that another API sees, too: what needs no CUDA, on the driver on the CPU."""

import gc
import subprocess
import sys
import unittest
from unittest import mock

import numpy as np

import vkgemm
from host_peer import HostPeer, Mapping
from launcher import PYTHON
from vkgemm import cuda, dlpack, gpu, memory, shared, vulkan
from vkgemm.memory import Buffer
from vkgemm.pool import Pool
from vkgemm.shared import Submissions, Timeline, require_memory_export


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = vkgemm.Device()
        cls.addClassCleanup(cls.device.close)
        cls.gpu = cls.device._gpu

    def test_memory(self):
        require_memory_export(self.gpu)
        buffer = Buffer(self.gpu, 65536, host=True, shared=True)
        buffer.data[0:4], buffer.data[65532:65536] = b"abcd", b"wxyz"
        mapping = Mapping(buffer)
        seen = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * 65536).from_address(
            mapping.address))
        self.assertEqual(bytes(seen[:4]) + bytes(seen[-4:]), b"abcdwxyz")
        seen[1] = ord("x")
        self.assertEqual(bytes(buffer.data[0:4]), b"axcd")
        buffer.close()
        self.assertEqual(bytes(seen[:2]), b"ax")  # it lives as long as the import
        mapping.close()

    def test_buffers_have_the_usage_that_was_asked_about(self):
        usages = {}

        def structure(kind, **fields):
            if "usage" in fields:
                usages[kind] = fields["usage"]
            return vulkan.structure(kind, **fields)
        with mock.patch.object(shared, "structure", structure):
            require_memory_export(self.gpu)
        made = vulkan.structure
        with mock.patch.object(memory, "structure", lambda kind, **fields: (
                usages.update({kind: fields["usage"]} if "usage" in fields else {}),
                made(kind, **fields))[1]):
            Buffer(self.gpu, 16, host=False, shared=True).close()
        self.assertEqual(set(usages), {"VkPhysicalDeviceExternalBufferInfo", "VkBufferCreateInfo"})
        self.assertEqual(len(set(usages.values())), 1)

    def test_missing_extension(self):
        with mock.patch.object(self.gpu, "missing", ["VK_KHR_external_memory_fd"]):
            with self.assertRaises(vkgemm.Error) as caught:
                require_memory_export(self.gpu)
        self.assertIn("VK_KHR_external_memory_fd", caught.exception.message)
        self.assertEqual(caught.exception.status, "missing_feature")

    def test_timelines(self):
        timeline = Timeline(self.gpu, shared=False)
        timeline.signal(3)
        timeline.wait(2)
        self.assertEqual(timeline.value(), 3)
        timeline.close()
        with self.assertRaises(vkgemm.Error) as caught:
            Timeline(self.gpu, shared=True)
        self.assertIn("exports no timeline semaphores", caught.exception.message)

    def test_no_cuda(self):
        cuda._driver.cache_clear()
        missing = mock.Mock(dlopen=mock.Mock(side_effect=OSError("libcuda.so.1: none")))
        with mock.patch.object(cuda, "ffi", missing):
            with self.assertRaises(vkgemm.Error) as caught:
                cuda.devices()
        self.assertIn("there is no CUDA driver: libcuda.so.1", caught.exception.message)

    def test_another_gpu(self):
        listed = [("GPU one", bytes(range(16)))]
        with mock.patch.object(cuda, "devices", lambda: listed):
            with self.assertRaises(vkgemm.Error) as caught:
                cuda.Cuda("GPU two", bytes(16))
        self.assertIn("GPU two (UUID 00000000000000000000000000000000)", caught.exception.message)
        self.assertIn("GPU one (UUID 000102030405060708090a0b0c0d0e0f)", caught.exception.message)

    def test_no_torch(self):
        with mock.patch.dict(sys.modules, {"torch": None, "vkgemm.torch": None}):
            with self.assertRaises(vkgemm.Error) as caught:
                self.device.empty(3, dtype="f32")
        self.assertIn("torch is missing", caught.exception.message)
        self.assertEqual(caught.exception.status, "missing_feature")


class Lender(dlpack.Lender):
    """numpy's own memory, lent."""

    def __init__(self, array):
        super().__init__(array.ctypes.data, (1, 0))
        self.returns = 0

    def returned(self):
        self.returns += 1


class Lent:
    """A capsule in the form that numpy asks for."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0


class Dlpack(unittest.TestCase):
    def test_it_comes_back_each_time(self):
        memory = np.arange(24, dtype=np.float32)
        lender = Lender(memory)
        for index, (shape, element, dtype) in enumerate((
                ((4, 6), "f32", np.float32), ((2, 3, 8), "f16", np.float16),
                ((24,), "s32", np.int32), ((96,), "s8", np.int8), ((12,), "int64", np.int64),
                ((0, 5), "f32", np.float32))):
            tensor = np.from_dlpack(Lent(lender.lend(shape, element)))
            self.assertEqual((tensor.shape, tensor.dtype), (shape, dtype))
            self.assertEqual(tensor.ctypes.data, memory.ctypes.data)
            self.assertEqual(bytes(tensor), bytes(memory)[:tensor.nbytes])
            view = tensor[1:]
            del tensor
            gc.collect()
            self.assertEqual(lender.returns, index)
            del view
            gc.collect()
            self.assertEqual(lender.returns, index + 1)
        self.assertNotIn(lender, dlpack._lent)

    def test_a_lent_tensor_keeps_its_lender(self):
        memory = np.arange(4, dtype=np.float32)
        tensor = np.from_dlpack(Lent(Lender(memory).lend((4,), "f32")))
        gc.collect()
        self.assertEqual(tensor.tolist(), [0, 1, 2, 3])

    def test_tensors_may_outlive_python(self):
        """The interpreter ends with a tensor in a module's globals, which goes last."""
        code = ("import numpy as np, test_shared, sys\n"
                "memory = np.arange(4, dtype=np.float32)\n"
                "sys.tensor = np.from_dlpack(test_shared.Lent("
                "test_shared.Lender(memory).lend((4,), 'f32')))\n")
        ended = subprocess.run([*PYTHON, "-c", code], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


class Order(unittest.TestCase):
    """Submissions and memory with the CPU in CUDA's place, and what a call that fails leaves."""

    def setUp(self):
        self.device = vkgemm.Device()
        self.addCleanup(self.device.close)
        self.gpu = self.device._gpu
        self.peer = HostPeer()

    def submissions(self):
        submissions = Submissions(self.gpu, self.peer)
        self.addCleanup(submissions.close)
        self.addCleanup(submissions.finish)
        return submissions

    def semaphores(self, work):
        """How many semaphores are left of what is done."""
        left, created, called = [], shared.created, shared.call

        def create(function, kind, *arguments):
            handle = created(function, kind, *arguments)
            if function == "vkCreateSemaphore":
                left.append(handle)
            return handle

        def call(function, *arguments):
            if function == "vkDestroySemaphore":
                left.remove(arguments[1])
            return called(function, *arguments)
        with mock.patch.object(shared, "created", create), mock.patch.object(shared, "call", call):
            work()
        return len(left)

    def test_imports_that_fail_leave_nothing(self):
        refused = vkgemm.Error("driver", "cuImportExternalSemaphore gave CUDA_ERROR_UNKNOWN")

        def first():
            with mock.patch.object(self.peer, "semaphore", side_effect=refused):
                with self.assertRaises(vkgemm.Error):
                    Submissions(self.gpu, self.peer)

        def second():
            with mock.patch.object(self.peer, "semaphore", side_effect=refused):
                with self.assertRaises(vkgemm.Error):
                    submissions.submit(commands, 0)
        self.assertEqual(self.semaphores(first), 0)
        submissions = self.submissions()
        commands = submissions.record(lambda commands: None, [])
        self.assertEqual(self.semaphores(second), 0)
        submissions.submit(commands, 0)
        self.assertEqual(submissions.index, 1)

    def test_a_submission_that_fails_takes_its_index_back(self):
        submissions = self.submissions()
        commands = submissions.record(lambda commands: None, [])
        submissions.submit(commands, 0)
        no_memory = vulkan.vulkan.VK_ERROR_OUT_OF_DEVICE_MEMORY
        with mock.patch.object(submissions, "_submit", lambda *_: no_memory):
            for _ in range(3):
                with self.assertRaises(vkgemm.Error):
                    submissions.submit(commands, 0)
        self.assertEqual(submissions.index, 1)
        self.assertFalse(self.gpu.is_lost)
        self.assertEqual(submissions.submit(commands, 0), 2)
        submissions._done.wait(2)

    def test_interrupts_around_a_submission(self):
        """No value is signalled twice, and none is waited for in vain."""
        submissions = self.submissions()
        commands = submissions.record(lambda commands: None, [])
        with mock.patch.object(submissions, "_submit", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                submissions.submit(commands, 0)
        submissions.finish()
        index = submissions.index
        with mock.patch.object(submissions._imported, "wait", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                submissions.submit(commands, 0)
        self.assertEqual(submissions.submit(commands, 0), index + 2)
        submissions.finish()
        self.assertEqual(submissions._done.value(), submissions.index)

    def test_shared_buffers_are_passed_on(self):
        """Each command buffer takes them from the other API first, and gives them back at last."""
        buffer = Buffer(self.gpu, 64, host=False, shared=True)
        passed, call = [], vulkan.call

        def record(function, *arguments):
            if function == "vkCmdPipelineBarrier" and arguments[6] > 0:
                barrier = arguments[7][0]
                passed.append((barrier.buffer, barrier.srcQueueFamilyIndex,
                               barrier.dstQueueFamilyIndex))
            elif function == "vkCmdCopyBuffer":
                passed.append("work")
            return call(function, *arguments)
        other = Buffer(self.gpu, 64, host=False)
        submissions = self.submissions()
        with mock.patch.object(gpu, "call", record):
            commands = submissions.record(
                lambda commands: self.gpu.copy_from(commands, buffer, 0, other, 0, 64), [buffer])
        external, own = 0xFFFFFFFE, self.gpu.family
        self.assertEqual(passed, [(buffer.handle, external, own), "work",
                                  (buffer.handle, own, external)])
        submissions.submit(commands, 0)
        submissions.submit(commands, 0)

    def test_the_other_api_is_left_with_the_last_tensor(self):
        for outlives in (False, True):
            with self.subTest(outlives=outlives):
                peer = HostPeer()
                pool = Pool(self.gpu, peer)
                tensor = np.from_dlpack(Lent(pool.take(64, 0).lend((4, 4), "f32")))
                if not outlives:
                    del tensor
                pool.close()
                self.assertFalse(peer.is_closed)
                pool.leave()
                self.assertEqual(peer.is_closed, not outlives)
                if outlives:
                    del tensor
                self.assertTrue(peer.is_closed)
