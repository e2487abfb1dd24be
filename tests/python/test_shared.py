"""Memory that another API sees, too: what needs no CUDA, on the driver on the CPU."""

import ctypes
import functools
import gc
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import numpy as np

import vkgemm
from host_peer import HostPeer, Mapping, Stream, connect
from launcher import PYTHON
from vkgemm import cuda, dlpack, gpu, memory, shared, vulkan
from vkgemm.binding import ffi
from vkgemm.memory import Buffer
from vkgemm.pool import Pool
from vkgemm.shared import Submissions, Timeline, require_memory_export

try:
    import torch
    from torch_suite import Tensors, WithTensors, families
    from vkgemm.torch import device_index
    WHY = ""
except ImportError as error:
    if "torch" not in str(error):
        raise
    WHY = str(error)


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


if WHY:
    @unittest.skip(WHY)
    class TensorsOnHost(unittest.TestCase):
        def test_tensors(self):
            pass
else:
    class OnHost(WithTensors):
        place = "cpu"

        @classmethod
        def connected(cls):
            return connect(vkgemm.Device())

    class TensorsOnHost(OnHost, Tensors):
        def test_each_call_signals_and_waits_once(self):
            submissions = self.device._tensors._submissions
            a, b = self.shared(4, 6), self.shared(6, 8)
            self.device.gemm(a, b)
            stream = submissions._streams[0]
            before = stream.imported.signals, submissions._imported.waits, submissions.index
            self.device.gemm(a, b)
            after = stream.imported.signals, submissions._imported.waits, submissions.index
            self.assertEqual(after, tuple(value + 1 for value in before))
            self.assertEqual(stream.arrived.value(), stream.value)
            self.assertEqual(submissions._done.value(), submissions.index)

        def test_the_order_of_streams(self):
            """Two streams that lag; memory is let go while they still have to use it."""
            device = connect(vkgemm.Device())
            self.addCleanup(device.close)
            peer, rounds = device._tensors._peer, 200
            peer.streams.update({1: Stream(), 2: Stream()})
            b = device.shared(self.random(64, 32))
            inputs = {stream: device.empty(16, 64, dtype=torch.float32) for stream in (1, 2)}
            sources = {stream: self.random(rounds, 16, 64, seed=stream) for stream in (1, 2)}
            results = {stream: torch.zeros(rounds, 16, 32) for stream in (1, 2)}

            def copy(target, source, size):
                ctypes.memmove(target, source, size)
            for index in range(rounds):
                for stream in (1, 2):
                    put = peer.streams[stream].put
                    peer.current = stream
                    put(functools.partial(time.sleep, 1e-4 * (index % 3)))
                    put(functools.partial(copy, inputs[stream].data_ptr(),
                                          sources[stream][index].data_ptr(), 4 * 16 * 64))
                    d = device.gemm(inputs[stream], b)
                    put(functools.partial(time.sleep, 1e-4 * (index % 2)))
                    put(functools.partial(copy, results[stream][index].data_ptr(), d.data_ptr(),
                                          4 * 16 * 32))
                    del d
            submissions = device._tensors._submissions
            self.assertEqual(submissions.index, 2 * rounds)
            peer.synchronize()
            peer.current = 0
            for stream in (1, 2):
                for index in range(rounds):
                    inputs[stream].copy_(sources[stream][index])
                    expected = device.gemm(inputs[stream], b)
                    self.assertTrue(torch.equal(results[stream][index], expected),
                                    f"stream {stream}, {index}")

        def test_the_host_does_not_wait(self):
            device = connect(vkgemm.Device())
            self.addCleanup(device.close)
            peer, go = device._tensors._peer, threading.Event()
            self.addCleanup(go.set)
            peer.streams[1] = Stream()
            a, b = device.shared(self.random(4, 6)), device.shared(self.random(6, 8))
            expected = device.gemm(a, b)
            peer.current = 1
            peer.streams[1].put(go.wait)
            results = [device.gemm(a, b) for _ in range(20)]
            packed = device.pack(b)
            results.append(device.gemm(a, packed))
            del packed
            done = device._tensors._submissions._done
            self.assertLess(done.value(), device._tensors._submissions.index - 20)
            go.set()
            peer.synchronize()
            for d in results:
                self.assertTrue(torch.equal(d, expected))

        def test_streams_that_failed_do_not_stop_the_end(self):
            device = connect(vkgemm.Device())
            a, b = device.shared(self.random(4, 6)), device.shared(self.random(6, 8))
            device.gemm(a, b)
            stream = device._tensors._submissions._streams[0]
            lost = mock.Mock(signal=lambda value, stream: None, close=lambda: None)
            with mock.patch.object(stream, "imported", lost), (
                    mock.patch.object(device._tensors._submissions._imported, "wait")):
                device.gemm(a, b)
            failed = vkgemm.Error("driver", "cuCtxSynchronize gave CUDA_ERROR_ASSERT")
            with mock.patch.object(HostPeer, "synchronize", side_effect=failed):
                with self.assertLogs("vkgemm", "ERROR") as logs:
                    device.close()
            self.assertIn("CUDA_ERROR_ASSERT", logs.output[0])

        def test_a_device_that_is_lost(self):
            """The stream goes on, and all but what tensors use is freed."""
            device = connect(vkgemm.Device())
            a, b = device.shared(self.random(4, 6)), device.shared(self.random(6, 8))
            packed = device.pack(b)
            d = device.gemm(a, packed)
            expected = d.clone()
            gpu, tensors = device._gpu, device._tensors
            lost = vulkan.vulkan.VK_ERROR_DEVICE_LOST
            with mock.patch.object(tensors._submissions, "_submit", lambda *_: lost):
                with self.assertRaises(vkgemm.Error) as caught:
                    device.gemm(a, packed)
                self.assertEqual(caught.exception.status, "device_lost")
                self.assertTrue(gpu.is_lost)
                device.close()
            self.assertEqual((gpu.buffers, gpu.device), (set(), ffi.NULL))
            self.assertTrue(torch.equal(d, expected))
            self.assertFalse(tensors._peer.is_closed)
            del a, b, d
            self.assertTrue(tensors._peer.is_closed)

        def test_short_memory_of_workspaces_and_packings(self):
            device = connect(vkgemm.Device())
            self.addCleanup(device.close)
            a, b = device.shared(self.random(8, 2048)), device.shared(self.random(2048, 8))
            expected = device.gemm(a, b)
            device._tensors._workspace.close()
            device._tensors._workspace = None
            device._tensors._forget()
            bind = Buffer._bind
            for call in (lambda: device.gemm(a, b, split_k=4), lambda: device.pack(b)):
                del_me, tries = device.empty(64, 64, dtype=torch.float32), []
                del del_me  # a block that is only kept
                kept = device._tensors.pool.nbytes

                def once(buffer, host, shared):
                    tries.append(buffer)
                    if len(tries) == 1:
                        raise vkgemm.Error("out_of_device_memory", "there is no more")
                    bind(buffer, host, shared)
                with mock.patch.object(Buffer, "_bind", once):
                    result = call()
                self.assertGreater(len(tries), 1)
                self.assertLess(device._tensors.pool.nbytes, kept)
                if isinstance(result, vkgemm.PackedMatrix):
                    result = device.gemm(a, result)
                self.assert_right(result, a.double() @ b.double())
            self.assert_right(expected, a.double() @ b.double())

        def test_memory_that_is_short(self):
            device = connect(vkgemm.Device())
            self.addCleanup(device.close)
            a, b = device.shared(self.random(40, 60)), device.shared(self.random(60, 80))
            device.gemm(a, b)
            peer, calls = device._tensors._peer, []

            def memory(buffer):
                calls.append(buffer)
                if len(calls) == 1:
                    raise vkgemm.Error("out_of_device_memory", "there is no more")
                return HostPeer.memory(peer, buffer)
            with mock.patch.object(peer, "memory", memory):
                kept = [device.gemm(a, b) for _ in range(3)]
            self.assertGreater(len(calls), 1)
            for d in kept:
                self.assert_right(d, a.double() @ b.double())

        def test_the_index_of_a_cuda_device(self):
            name, uuid = self.device.name, self.device._gpu.uuid
            listed = [("another GPU", bytes(16)), (name, uuid)]
            with mock.patch("vkgemm.torch.devices", lambda: listed):
                self.assertEqual(device_index("cuda:1"), 0)
                with self.assertRaises(vkgemm.Error) as caught:
                    device_index("cuda:0")
            self.assertIn("Vulkan does not list cuda:0, another GPU", caught.exception.message)

        def test_a_device_that_shares_nothing_keeps_no_context(self):
            refused = vkgemm.Error("missing_feature", "the device's driver exports no memory")
            with mock.patch("vkgemm.torch.Cuda") as cuda, mock.patch("torch.cuda.init"), (
                    mock.patch("vkgemm.torch.require_memory_export", side_effect=refused)):
                cuda.return_value.dlpack_device = (1, 0)
                with vkgemm.Device() as device, self.assertRaises(vkgemm.Error):
                    device.empty(2, dtype=torch.float32)
            cuda.return_value.close.assert_called_once_with()

        def test_tensors_on_the_cpu_are_refused(self):
            with vkgemm.Device() as device, self.assertRaises(vkgemm.ArgumentError) as caught:
                device.gemm(torch.ones(4, 6), torch.ones(6, 8))
            self.assertIn("a is a torch tensor on cpu", caught.exception.message)

    globals().update(families(OnHost))
    del Tensors, WithTensors, OnHost
