"""Devices: what they say of themselves, the plans they keep, and threads."""

import contextlib
import copy
import io
import os
import pickle
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
from launcher import PYTHON
from reference import values

import vkgemm
from vkgemm import memory, vulkan
from vkgemm.__main__ import main
from vkgemm.binding import ffi, lib, written
from vkgemm.plans import Plan


class Devices(unittest.TestCase):
    def test_description(self):
        with vkgemm.Device(0) as device:
            self.assertEqual(device.name, vkgemm.devices()[0])
            self.assertEqual(list(device.paths), ["nv", "khr", "fma"])
            self.assertEqual(device.paths["fma"], "")
            self.assertTrue(device.driver)
            self.assertTrue(device.architecture)

    def test_plans_are_kept(self):
        a, b = values((4, 6)), values((6, 8))
        with vkgemm.Device() as device, mock.patch("vkgemm.plans.Plan", wraps=Plan) as made:
            device.max_plans = 2
            for alpha, count in ((1, 1), (1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (2, 4)):
                device.gemm(a, b, alpha=alpha)
                self.assertEqual(made.call_count, count, f"alpha={alpha}")
            device.gemm(values((4, 6), seed=1), b, alpha=2)
            device.explain(a, b, alpha=2)
            self.assertEqual(made.call_count, 4)

    def test_keys_are_bits(self):
        a, b = np.ones((4, 6), np.float32), np.ones((6, 8), np.float32)
        with vkgemm.Device() as device:
            for alpha, sign in ((0.0, False), (-0.0, True), (0.0, False)):
                self.assertEqual(np.signbit(device.gemm(a, b, alpha=alpha)).all(), sign)
            self.assertEqual(len(device._plans), 2)

    def test_copies_are_the_same(self):
        a, b = values((4, 6)), values((6, 8))
        with vkgemm.Device() as device:
            packed = device.pack(b)
            expected = device.gemm(a, packed)
            for of in (copy.copy, copy.deepcopy):
                copied = of(packed)
                packed = None
                np.testing.assert_array_equal(device.gemm(a, copied), expected)
                packed = copied
            for held in (packed, device):
                with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                    pickle.dumps(held)
            self.assertIs(copy.copy(device), device)
            self.assertIs(copy.deepcopy(device), device)

    def test_a_child_made_by_fork(self):
        """Calls raise, and neither close() nor a finalizer waits.

        lavapipe's own exit handlers do: the child ends as multiprocessing's do.
        """
        code = """
import atexit, os, sys
import numpy as np, vkgemm
a, device = np.ones((4, 6), np.float32), vkgemm.Device()
packed = device.pack(a.T)
device.gemm(a, packed)
child = os.fork()
if child != 0:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for call in (lambda: device.gemm(a, packed), lambda: device.pack(a), lambda: device.name):
    try:
        call()
        sys.exit(2)
    except vkgemm.Error as error:
        assert "a child made by fork() cannot use it" in error.message, error
del packed
device.close()
atexit._run_exitfuncs()
os._exit(0)
"""
        done = subprocess.run([*PYTHON, "-c", code], timeout=60)
        self.assertEqual(done.returncode, 0)

    def test_no_loader(self):
        with self.assertRaisesRegex(ImportError, "vkgemm needs the Vulkan loader"):
            vulkan._loader("libno-such-file.so.1")

    def test_a_device_that_is_forgotten_is_closed(self):
        device = vkgemm.Device()
        packed = device.pack(values((6, 8), "f16"))
        device.gemm(values((4, 6), "f16"), packed)
        del device
        self.assertEqual(packed.gpu.buffers, set())
        self.assertIsNone(packed.gpu.context)

    def test_files(self):
        a, b = values((4, 6)), values((6, 8))
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "pipelines"
            with vkgemm.Device(pipeline_cache_file=cache) as device:
                device.gemm(a, b)
            self.assertGreater(cache.stat().st_size, 0)
            cache.write_bytes(b"?")
            with self.assertLogs("vkgemm", "WARNING") as logs:
                vkgemm.Device(pipeline_cache_file=cache).close()
            self.assertIn(str(cache), logs.output[0])
            table = Path(folder) / "table.json"
            table.write_text("[")
            with self.assertRaises(vkgemm.ArgumentError) as caught:
                vkgemm.Device(tuning_file=table)
            self.assertIn(str(table), caught.exception.message)

    def test_verdicts_are_read(self):
        with tempfile.TemporaryDirectory() as folder, (
                mock.patch.dict(os.environ, XDG_CACHE_HOME=folder)):
            with vkgemm.Device() as device:
                file = Path(written(lib.vkgemm_default_verdict_file, device._caps()))
            file.parent.mkdir(parents=True)
            file.write_text("?")
            with self.assertLogs("vkgemm", "WARNING") as logs:
                vkgemm.Device().close()
            self.assertIn(str(file), logs.output[0])

    def test_threads(self):
        operands = [(values((4, 6), seed=i), values((6, 8), seed=i)) for i in range(4)]
        with vkgemm.Device() as device:
            expected = [device.gemm(a, b) for a, b in operands]
            results = [[] for _ in operands]

            def work(index):
                results[index] = [device.gemm(*operands[index]) for _ in range(50)]

            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for result, wanted in zip(results, expected):
            self.assertEqual(len(result), 50)
            for d in result:
                np.testing.assert_array_equal(d, wanted)


class Vulkan:
    """Vulkan, of which some functions give a result, or raise it, and do nothing."""

    def __init__(self, **results):
        self._vulkan, self._results = vulkan.vulkan, results

    def __getattr__(self, name):
        result = self._results.get(name)
        if isinstance(result, BaseException):
            return mock.Mock(side_effect=result)
        if result is not None:
            return lambda *_: result
        return getattr(self._vulkan, name)


class Failures(unittest.TestCase):
    def test_a_device_that_is_lost(self):
        """The context hears of it, and all is freed."""
        device = vkgemm.Device()
        a, b = values((4, 6)), values((6, 8))
        packed = device.pack(b)
        device.gemm(a, packed)
        for function in ("vkQueueSubmit", "vkWaitForFences"):
            with self.subTest(function=function):
                lost = Vulkan(**{function: vulkan.vulkan.VK_ERROR_DEVICE_LOST})
                with mock.patch.object(vulkan, "vulkan", lost):
                    with self.assertRaises(vkgemm.Error) as caught:
                        device.gemm(a, packed)
                    self.assertEqual(caught.exception.status, "device_lost")
                    self.assertTrue(device._gpu.is_lost)
        with self.assertRaises(vkgemm.Error) as caught:
            device.gemm(a, b, alpha=2)
        self.assertEqual(caught.exception.status, "device_lost")
        device.close()
        self.assertEqual((device._gpu.buffers, device._gpu.device), (set(), ffi.NULL))
        self.assertIsNone(device._gpu.instance)

    def test_an_interrupt_while_the_device_works(self):
        """The next call waits for what was submitted.  The layers see that nothing is in use."""
        a, b = values((300, 400)), values((400, 300))
        with vkgemm.Device() as device:
            expected = device.gemm(a, b)
            buffers = len(device._gpu.buffers)
            interrupted = Vulkan(vkWaitForFences=KeyboardInterrupt())
            for call in (lambda: device.gemm(a, b), lambda: device.pack(b),
                         lambda: device.quantise(b), lambda: device.quantise_rows(a)):
                with mock.patch.object(vulkan, "vulkan", interrupted):
                    self.assertRaises(KeyboardInterrupt, call)
                np.testing.assert_array_equal(device.gemm(a, b), expected)
                self.assertEqual(len(device._gpu.buffers), buffers)
            device.max_plans = 1
            with mock.patch.object(vulkan, "vulkan", interrupted):
                self.assertRaises(KeyboardInterrupt, device.gemm, a, b, alpha=2)
            np.testing.assert_array_equal(device.gemm(a, b), expected)
            with mock.patch.object(vulkan, "vulkan", interrupted):
                self.assertRaises(KeyboardInterrupt, device.gemm, a, b)

    def test_memory_that_is_short(self):
        """What is only kept is freed, and a buffer is tried once more."""
        a, b = values((4, 6)), values((6, 8))
        with vkgemm.Device() as device:
            gpu, freed, bind = device._gpu, [], memory.Buffer._bind

            def short(failures):
                """Buffers of which so many find no memory."""
                left = [failures]

                def try_to(buffer, host, shared):
                    left[0] -= 1
                    if left[0] >= 0:
                        raise vkgemm.Error("out_of_device_memory", "there is no more")
                    bind(buffer, host, shared)
                return mock.patch.object(memory.Buffer, "_bind", try_to)

            def gemm():
                device._staging._arena = memory.Arena(gpu)  # the others find theirs
                device.gemm(a, b)
            for call in (gemm, lambda: device.pack(b), lambda: device.quantise(np.zeros((64, 8)))):
                for failures, has_kept, fails in ((1, False, True), (1, True, False),
                                                  (2, True, True)):
                    freed.clear()
                    gpu.at_shortage[:] = [lambda: freed.append(1)] if has_kept else []
                    with short(failures):
                        if fails:
                            with self.assertRaises(vkgemm.Error) as caught:
                                call()
                            self.assertEqual(caught.exception.status, "out_of_device_memory")
                        else:
                            call()
                    self.assertEqual(len(freed), has_kept)


class Bf16(unittest.TestCase):
    def test_rounding(self):
        for value, bits in ((1.0, 0x3F80), (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82),
                            (-2.0, 0xC000), (np.inf, 0x7F80), (3.4e38, 0x7F80)):
            self.assertEqual(vkgemm.to_bf16(value), bits, value)
        self.assertTrue(np.isnan(vkgemm.from_bf16(vkgemm.to_bf16(np.nan))))
        every = np.arange(0x7F80, dtype=np.uint16)
        np.testing.assert_array_equal(vkgemm.to_bf16(vkgemm.from_bf16(every)), every)


class CommandLine(unittest.TestCase):
    def run_main(self, *arguments):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = main(arguments)
        return code, output.getvalue()

    def test_info(self):
        code, output = self.run_main("info")
        self.assertEqual(code, 0)
        self.assertIn(vkgemm.devices()[0], output)
        self.assertIn("fma: yes", output)

    def test_run(self):
        for dtype in ("f16", "bf16", "f32", "s8"):
            code, output = self.run_main("run", "--m", "20", "--n", "25", "--k", "30", "--dtype",
                                         dtype, "--explain")
            self.assertEqual(code, 0, output)
            self.assertIn("m 20, n 25, k 30", output)
            self.assertIn("right", output)

    def test_run_sees_a_wrong_result(self):
        def wrong(device, a, b, **arguments):
            return np.zeros((len(a), b.shape[1]), a.dtype)
        with mock.patch.object(vkgemm.Device, "gemm", wrong):
            code, output = self.run_main("run", "--m", "20", "--n", "25", "--k", "30")
        self.assertEqual(code, 1)
        self.assertIn("wrong", output)

    def test_bench(self):
        code, output = self.run_main("bench", "--m", "20", "--n", "25", "--k", "30", "--repeat",
                                     "3")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"device: +\d+\.\d+ ms, \d+\.\d+ TFLOP/s")

    def test_refusal(self):
        code, output = self.run_main("run", "--config", "abc")
        self.assertEqual(code, 2)
        self.assertIn("abc", output)
