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
from vkgemm import cuda, dlpack
from vkgemm.shared import Timeline, require_memory_export
from vkgemm.vulkan import Buffer

try:
    import torch
    from host_peer import HostPeer, Mapping, Stream, connect
    from torch_suite import Tensors, WithTensors, families
    from vkgemm.torch import device_index
    WHY = ""
except ImportError as error:
    if "torch" not in str(error):
        raise
    from host_peer import Mapping
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
                ((24,), "int32", np.int32), ((12,), "int64", np.int64),
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
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


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

        def test_tensors_on_the_cpu_are_refused(self):
            with vkgemm.Device() as device, self.assertRaises(vkgemm.ArgumentError) as caught:
                device.gemm(torch.ones(4, 6), torch.ones(6, 8))
            self.assertIn("a is a torch tensor on cpu", caught.exception.message)

    globals().update(families(OnHost))
    del Tensors, WithTensors, OnHost
