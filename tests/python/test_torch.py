"""torch's CUDA tensors, on the GPU that vkgemm computes on.  gpu.py runs them with a summary."""

import doctest
import subprocess
import time
import unittest
from pathlib import Path

import numpy as np

import vkgemm
from launcher import PYTHON

try:
    import torch
    WHY = "" if torch.cuda.is_available() else "torch has no CUDA device"
except ImportError as error:
    WHY = str(error)

EXPERTS = Path(__file__).parents[1] / "examples/moe_layer.py"
HOST_US = 25  # what a cached call may take of the host

# What a process runs that ends with tensors in its hands, and with work in flight.
LEAVES = """
import torch, vkgemm
from vkgemm.torch import device_index
device = vkgemm.Device(device_index("cuda"))
a = device.shared(torch.ones(512, 512, device="cuda"))
kept = [device.gemm(a, a) for _ in range(20)]
print(kept[0][0, 0].item())
kept += [device.gemm(a, a) for _ in range(20)]
"""

if WHY:
    @unittest.skip(WHY)
    class TensorsOnCuda(unittest.TestCase):
        def test_tensors(self):
            pass
else:
    import test_inputs
    from batch_suite import TensorBatches
    from operator_suite import Operators
    from torch_suite import Tensors
    from vkgemm.torch import device_index
    from with_tensors import WithTensors, families

    class OnCuda(WithTensors):
        @classmethod
        def connected(cls):
            device = vkgemm.Device(device_index("cuda"))
            device.release_memory()
            return device

    class TensorsOnCuda(OnCuda, Tensors):
        def test_the_host_does_not_wait(self):
            a, b = self.shared(64, 64), self.shared(64, 64)
            expected = self.device.gemm(a, b).clone()
            torch.cuda.synchronize()
            torch.cuda._sleep(400_000_000)  # cycles: a fifth of a second
            d = self.device.gemm(a, b)
            self.assertFalse(torch.cuda.current_stream().query())
            torch.cuda.synchronize()
            self.assertTrue(torch.equal(d, expected))

        def test_two_streams(self):
            streams = [torch.cuda.Stream() for _ in range(2)]
            rounds, b = 300, self.shared(256, 128, element="f16")
            sources = [self.random(rounds, 256, element="f16", seed=seed) for seed in range(2)]
            inputs = [self.device.empty(64, 256, dtype=torch.float16) for _ in streams]
            results = [torch.empty(rounds, 64, 128, dtype=torch.float16, device="cuda")
                       for _ in streams]
            torch.cuda.synchronize()
            for index in range(rounds):
                for stream, source, a, result in zip(streams, sources, inputs, results):
                    with torch.cuda.stream(stream):
                        a[:] = source[index]
                        result[index] = self.device.gemm(a, b)
            torch.cuda.synchronize()
            for source, result in zip(sources, results):
                for index in range(rounds):
                    inputs[0][:] = source[index]
                    self.assertTrue(torch.equal(result[index], self.device.gemm(inputs[0], b)))

        def test_a_result_that_another_stream_takes(self):
            """A stream that waits for another one sees what vkgemm wrote in its order."""
            a, b = self.shared(256, 256), self.shared(256, 256)
            expected = self.device.gemm(a, b) + 1
            other = torch.cuda.Stream()
            for _ in range(100):
                d = self.device.gemm(a, b)
                other.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(other):
                    seen = d + 1
                torch.cuda.current_stream().wait_stream(other)
                self.assertTrue(torch.equal(seen, expected))

        def test_captures_are_refused(self):
            a, b = self.shared(4, 6), self.shared(6, 8)
            before = self.device.gemm(a, b).clone()
            torch.cuda.synchronize()
            with self.assertRaises(vkgemm.Error) as caught:
                with torch.cuda.graph(torch.cuda.CUDAGraph()):
                    self.device.gemm(a, b)
            self.assertEqual(caught.exception.status, "unsupported")
            self.assertTrue(torch.equal(self.device.gemm(a, b), before))

        def test_the_example_of_device_index(self):
            said = doctest.DocTestRunner(verbose=False)
            for test in doctest.DocTestFinder().find(device_index, globs={
                    "vkgemm": vkgemm, "torch": torch, "device_index": device_index}):
                self.assertEqual(said.run(test).failed, 0)

        def test_other_places_are_refused(self):
            a = self.shared(4, 6)
            with self.assertRaises(vkgemm.ArgumentError) as caught:
                self.device.gemm(a, torch.ones(6, 8))
            self.assertIn("b is on cpu: it must be on cuda:", caught.exception.message)
            if torch.cuda.device_count() > 1:
                with self.assertRaises(vkgemm.ArgumentError) as caught:
                    self.device.gemm(a, torch.ones(6, 8, device="cuda:1"))
                self.assertIn("b is on cuda:1, ", caught.exception.message)

        def test_the_end_with_tensors_alive(self):
            ended = subprocess.run([*PYTHON, "-c", LEAVES], capture_output=True, text=True)
            self.assertEqual((ended.returncode, ended.stderr, ended.stdout), (0, "", "512.0\n"))

        def test_a_layer_of_experts(self):
            """The example compares its results with float64."""
            for sizes in ([], ["--tokens", "37", "--experts", "5", "--chosen", "5", "--hidden", "96"]):
                ended = subprocess.run([*PYTHON, EXPERTS, "--repeat", "1", *sizes],
                                       capture_output=True, text=True)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))

        def test_memory_is_given_back(self):
            device = self.connected()
            self.addCleanup(device.close)
            a = device.shared(self.random(64, 64))
            device.gemm(a, a)
            device.release_memory()
            torch.cuda.synchronize()
            before = torch.cuda.mem_get_info()[0]
            taken = [device.empty(64, 1024, 1024, dtype=torch.float32) for _ in range(4)]
            self.assertLess(torch.cuda.mem_get_info()[0], before - 2**30 + 2**26)
            taken.clear()
            device.release_memory()
            self.assertGreater(torch.cuda.mem_get_info()[0], before - 2**26)

        def test_large_products(self):
            for element in ("f16", "bf16"):
                a, b = self.shared(1024, 2048, element=element), self.shared(2048, 1536,
                                                                            element=element)
                self.assert_right(self.device.gemm(a, b), a.double() @ b.double())

        def test_f32_in_parts(self):
            """Each arithmetic is taken, and errs no more than it says; prints how much."""
            device = vkgemm.Device(device_index("cuda"), self_test=True)
            self.addCleanup(device.close)
            a, b = (device.shared(self.random(1024, 1024, seed=seed)) for seed in range(2))
            exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
            results = []
            for f32, products in test_inputs.F32Arithmetic.ERRORS.items():
                packed = device.pack(b, f32=f32)
                for right in (b, packed):
                    d = device.gemm(a, right, f32=f32)
                    error = ((d.double() - exact).abs() / size).max().item()
                    self.assertLessEqual(error, products + (1024 / 16 + 2) * 2.0**-24, f32)
                if f32 != "ieee":
                    self.assertIn(f"f32 arithmetic: {f32}, ", device.explain(a, b, f32=f32))
                    self.assertIsNotNone(packed.fingerprint)
                self.assertFalse(any(torch.equal(d, other) for other in results), f32)
                results.append(d)
                print(f"1024³ f32, {f32}: errs by at most 2^{np.log2(error):.1f} of |a|·|b|")

        def test_host_time(self):
            """Prints what a cached call takes of the host, and a queue of them of the GPU.

            It judges no time: a busy machine would fail it.
            """
            a, b, bias = self.shared(64, 64), self.shared(64, 64), self.shared(64)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for named in ({}, {"bias": bias, "activation": "relu"}):
                for _ in range(50):
                    self.device.gemm(a, b, **named)
                host, gpu = [], []
                for _ in range(20):
                    torch.cuda.synchronize()
                    start.record()
                    host += self.host_us(50, lambda: self.device.gemm(a, b, **named))
                    end.record()
                    torch.cuda.synchronize()
                    gpu.append(start.elapsed_time(end) / 50 * 1e3)
                print(f"a cached call, 64³ f32{', bias, relu' if named else ''}: host "
                      f"{np.median(host):.1f} us, the median of {len(host)} calls (target: at most "
                      f"{HOST_US}); from one to the next on the GPU {np.median(gpu):.1f} us")
            torch_us = []
            for _ in range(20):
                torch.cuda.synchronize()
                torch_us += self.host_us(50, lambda: torch.addmm(bias, a, b))
            print(f"torch.addmm of the same: host {np.median(torch_us):.1f} us")

        @staticmethod
        def host_us(count, call):
            """What each of so many calls takes of the host."""
            times = []
            for _ in range(count):
                began = time.perf_counter()
                call()
                times.append(1e6 * (time.perf_counter() - began))
            return times

    class BatchesOnCuda(OnCuda, TensorBatches):
        def test_two_streams(self):
            """A batch that two streams share: each result is in the order of its stream."""
            streams = [torch.cuda.Stream() for _ in range(2)]
            a, b = self.shared(64, 256, element="f16"), self.shared(256, 128, element="f16")
            expected = self.device.gemm(a, b).clone()
            torch.cuda.synchronize()
            for _ in range(50):
                results = []
                with self.device.batch():
                    for stream in streams * 2:
                        with torch.cuda.stream(stream):
                            results.append(self.device.gemm(a, b))
                for stream, result in zip(streams * 2, results):
                    with torch.cuda.stream(stream):
                        self.assertTrue(torch.equal(result, expected))

        def test_gpu_time(self):
            """Prints the time of products one by one and in a batch; it judges none."""
            a, b = self.shared(64, 64), self.shared(64, 64)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

            def one_by_one():
                return [self.device.gemm(a, b) for _ in range(8)]

            def in_a_batch():
                with self.device.batch():
                    return one_by_one()
            for calls in (one_by_one, in_a_batch):
                times = []
                for _ in range(30):
                    torch.cuda.synchronize()
                    start.record()
                    calls()
                    end.record()
                    torch.cuda.synchronize()
                    times.append(1e3 * start.elapsed_time(end))
                print(f"8 products of 64³ f32, {calls.__name__}: {np.median(times):.0f} us")

    class OperatorsOnCuda(OnCuda, Operators):
        pass

    globals().update(families(OnCuda))
    del Operators, Tensors, TensorBatches, WithTensors, OnCuda
