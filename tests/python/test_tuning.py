"""Tuning: what tune() returns, what later calls take, and devices that tune each new problem."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
from reference import values

import vkgemm
from vkgemm import tuning


class CacheOfItsOwn(unittest.TestCase):
    """Tests with an empty folder for the user's files."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        environment = mock.patch.dict(os.environ, XDG_CACHE_HOME=folder.name)
        environment.start()
        self.addCleanup(environment.stop)

    def open(self, **options):
        device = vkgemm.Device(**options)
        self.addCleanup(device.close)
        return device


class Tune(CacheOfItsOwn):
    def setUp(self):
        super().setUp()
        self.device = self.open()
        self.a, self.b = values((24, 32)), values((32, 48))

    def test_later_calls_take_the_fastest(self):
        """They do on this device, and by the file on another one."""
        a, b, device = self.a, self.b, self.device
        before = device.explain(a, b)
        d = device.gemm(a, b)
        states = []
        file = Path(device.default_tuning_file)

        def progress(state):
            states.append(state)
            return state.timed < 3
        result = device.tune(a, b, budget_ms=60000, file=file, progress=progress)
        self.assertIn(result.chosen, before)
        self.assertLessEqual(result.microseconds, result.chosen_us)
        self.assertGreaterEqual(result.candidates, result.timed)
        self.assertEqual([state.timed for state in states], [1, 2, 3])
        self.assertEqual(result.timed, 3)
        self.assertGreater(states[-1].elapsed_ms, 0)
        for other in (device, self.open(), self.open(tuning_file=file)):
            text = other.explain(a, b)
            self.assertIn(f"configuration {result.config}\n", text)
            self.assertIn("tuned: this shape, measured", text)
            np.testing.assert_allclose(other.gemm(a, b), d, rtol=1e-5, atol=1e-5)

    def test_a_callback_ends_the_run(self):
        """False does, and an exception, which the caller gets.  The device goes on."""
        calls = []

        def stop(state):
            calls.append(state)
            return False
        result = self.device.tune(self.a, self.b, budget_ms=600000, progress=stop)
        self.assertEqual((len(calls), result.is_complete), (1, False))
        for error in (KeyboardInterrupt(), ZeroDivisionError()):
            with self.assertRaises(type(error)):
                self.device.tune(self.a, self.b, budget_ms=600000,
                                 progress=mock.Mock(side_effect=error))
            self.device.gemm(self.a, self.b)

    def test_every_form(self):
        a, b = self.a.astype(np.float16), self.b.astype(np.float16)
        tune = self.device.tune
        for arguments in (dict(b=self.device.pack(b), bias=np.ones(48, np.float32)),
                          dict(b=b, gate="swiglu"),
                          dict(b=b, offsets=np.array([0, 9, 24]), along="m"),
                          dict(b=b, op="rms_norm", gamma=np.ones(48, np.float32)),
                          dict(b=b, out=np.zeros((48, 24), np.float16).T)):
            with self.subTest(arguments=list(arguments)):
                result = tune(a, budget_ms=1, **arguments)
                self.assertIn(result.config, self.device.explain(a, **arguments))

    def test_in_a_batch(self):
        with self.device.batch():
            d = self.device.gemm(self.a, self.b)
            self.device.tune(self.a, self.b, budget_ms=1)
            e = self.device.gemm(self.a, self.b)
        np.testing.assert_allclose(d, self.a @ self.b, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(e, d, rtol=1e-5, atol=1e-5)

    def test_refusals(self):
        a, b, tune = self.a, self.b, self.device.tune
        for text, call in (
                ("budget_ms is 0", lambda: tune(a, b, budget_ms=0)),
                ("budget_ms is 'long'", lambda: tune(a, b, budget_ms="long")),
                ("file is 3: it must be a path", lambda: tune(a, b, file=3)),
                (r"tune\(\) got 'config'", lambda: tune(a, b, config="fma")),
                (r"tune\(\) got 'biass': did you mean 'bias'", lambda: tune(a, b, biass=b)),
                ("b.shape is", lambda: tune(a, a)),
                ("computes nothing: m is 0", lambda: tune(a[:0], b)),
                ("tune is 'last'", lambda: vkgemm.Device(tune="last")),
                ("tune_budget_ms is 0", lambda: vkgemm.Device(tune="first", tune_budget_ms=0))):
            with self.subTest(text=text), self.assertRaisesRegex(vkgemm.ArgumentError, text):
                call()
        with self.assertRaises(vkgemm.Error) as caught:
            tune(a, b, budget_ms=60000, file=Path(__file__) / "table.json",
                 progress=lambda state: state.timed < 2)
        self.assertEqual(caught.exception.status, "io_error")
        self.device.close()
        with self.assertRaisesRegex(vkgemm.Error, "closed"):
            tune(a, b)


class First(CacheOfItsOwn):
    def runs(self):
        """The results of the runs from now on."""
        results, tune = [], tuning.tune

        def recorded(*arguments, **options):
            results.append(tune(*arguments, **options))
            return results[-1]
        patched = mock.patch("vkgemm.device.tune", recorded)
        patched.start()
        self.addCleanup(patched.stop)
        return results

    def test_each_problem_is_tuned_once(self):
        """That holds for processes that follow, too."""
        a, b = values((24, 32)), values((32, 48))
        results = self.runs()
        device = self.open(tune="first", tune_budget_ms=2000)
        d = device.gemm(a, b)
        self.assertEqual([result.timed >= 1 for result in results], [True])
        device.gemm(a, b)
        self.assertEqual(len(results), 1)
        self.assertIn(results[0].config, device.explain(a, b))
        self.assertTrue(Path(device.default_tuning_file).exists())
        device.gemm(a, b, alpha=2)  # tables do not tell the problems apart
        self.assertEqual([result.timed for result in results[1:]], [0])
        device.gemm(a, b, c=d)
        self.assertGreaterEqual(results[2].timed, 1)
        other = self.open(tune="first", tune_budget_ms=2000)
        np.testing.assert_array_equal(other.gemm(a, b), d)
        other.gemm(a, b, c=d)
        self.assertEqual([result.timed for result in results[3:]], [0, 0])
        self.assertEqual(results[3].config, results[0].config)

    def test_what_is_not_tuned(self):
        a, b = values((24, 32)), values((32, 48))
        results = self.runs()
        device = self.open(tune="first", tune_budget_ms=2000)
        device.gemm(a, b, config="fma:tile=32x32x16,fragment=4x4")
        device.gemm(a[:0], b)
        device.quantise_rows(a)
        device.pack(b)
        self.assertEqual(results, [])

    def test_a_file_that_fails(self):
        """The product is computed all the same, and takes the fastest."""
        a, b = values((24, 32)), values((32, 48))
        device = self.open(tune="first", tune_budget_ms=2000)
        file = Path(device.default_tuning_file)
        file.mkdir(parents=True)
        with self.assertLogs("vkgemm", "WARNING") as logs:
            d = device.gemm(a, b)
        self.assertIn(str(file), logs.output[0])
        np.testing.assert_allclose(d, a @ b, rtol=1e-5, atol=1e-5)
        self.assertIn("tuned: this shape", device.explain(a, b))

    def test_a_device_that_is_forgotten_is_closed(self):
        device = vkgemm.Device(tune="first", tune_budget_ms=1)
        device.gemm(values((24, 32)), values((32, 48)))
        gpu = device._gpu
        del device
        self.assertIsNone(gpu.context)

    def test_a_lost_device(self):
        lost = vkgemm.Error("device_lost", "the device was lost")
        device = self.open(tune="first")
        with mock.patch("vkgemm.device.tune", side_effect=lost):
            with self.assertRaises(vkgemm.Error) as caught:
                device.gemm(values((24, 32)), values((32, 48)))
        self.assertEqual(caught.exception.status, "device_lost")


if __name__ == "__main__":
    unittest.main()
