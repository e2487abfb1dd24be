"""torch tensors with the CPU in the place of CUDA, on the driver on the CPU."""

import ctypes
import functools
import threading
import time
import unittest
from unittest import mock

import vkgemm
from host_peer import HostPeer, Stream, connect
from vkgemm import tuning, vulkan
from vkgemm.binding import ffi
from vkgemm.memory import Buffer

try:
    import torch
    from batch_suite import TensorBatches
    from operator_suite import Operators
    from torch_suite import Tensors
    from vkgemm.torch import device_index
    from with_tensors import WithTensors, families
    WHY = ""
except ImportError as error:
    if "torch" not in str(error):
        raise
    WHY = str(error)


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

        def test_each_new_problem_is_tuned(self):
            device = connect(vkgemm.Device(tune="first", tune_budget_ms=20))
            self.addCleanup(device.close)
            a, b = device.shared(self.random(24, 32)), device.shared(self.random(32, 48))
            with mock.patch("vkgemm.device.tune", wraps=tuning.tune) as tuned:
                d = device.gemm(a, b)
                self.assertTrue(torch.equal(device.gemm(a, b), d))
                self.assertEqual(tuned.call_count, 1)
                with device.batch():
                    twice = device.gemm(d, b.t())
                    again = device.gemm(twice, b, c=d)
                self.assertEqual(tuned.call_count, 3)
            self.assert_right(again, twice.double() @ b.double() + d.double())

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
                    mock.patch("vkgemm.tensors.require_memory_export", side_effect=refused)):
                cuda.return_value.dlpack_device = (1, 0)
                with vkgemm.Device() as device, self.assertRaises(vkgemm.Error):
                    device.empty(2, dtype=torch.float32)
            cuda.return_value.close.assert_called_once_with()

        def test_tensors_on_the_cpu_are_refused(self):
            with vkgemm.Device() as device, self.assertRaises(vkgemm.ArgumentError) as caught:
                device.gemm(torch.ones(4, 6), torch.ones(6, 8))
            self.assertIn("a is a torch tensor on cpu", caught.exception.message)

    class BatchesOnHost(OnHost, TensorBatches):
        def test_a_stream_that_lags(self):
            """A batch runs after the work that its stream has before, and before what comes on it."""
            device = connect(vkgemm.Device())
            self.addCleanup(device.close)
            peer = device._tensors._peer
            peer.streams[1] = Stream()
            b = device.shared(self.random(32, 32))
            x, source = device.empty(16, 32, dtype=torch.float32), self.random(16, 32)
            result = torch.zeros(16, 32)
            peer.current = 1
            put = peer.streams[1].put
            for _ in range(10):
                put(functools.partial(time.sleep, 1e-3))
                put(functools.partial(ctypes.memmove, x.data_ptr(), source.data_ptr(), 4 * 16 * 32))
                with device.batch():
                    d = device.gemm(device.gemm(x, b), b, c=x)
                put(functools.partial(ctypes.memmove, result.data_ptr(), d.data_ptr(), 4 * 16 * 32))
                put(functools.partial(ctypes.memset, x.data_ptr(), 0, 4 * 16 * 32))
                peer.synchronize()
                self.assert_right(result, source.double() @ b.double() @ b.double() + source)
                result.zero_()

    class OperatorsOnHost(OnHost, Operators):
        pass

    globals().update(families(OnHost))
    del Operators, Tensors, TensorBatches, WithTensors, OnHost
