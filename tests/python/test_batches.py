"""Calls that Device.batch() records into one submission, with numpy's arrays."""

import threading
import unittest
from unittest import mock

import numpy as np
from reference import OnDevice, values

import vkgemm


class Batches(OnDevice):
    def submissions(self):
        """Counts the submissions of the device."""
        return mock.patch.object(self.device._gpu, "run", wraps=self.device._gpu.run)

    def test_same_bits(self):
        a, b, bias = values((20, 30)), values((30, 24)), values((24,))
        offsets, packed = np.array([2, 9, 17]), self.device.pack(b)
        calls = (lambda: self.device.gemm(a, b, bias=bias, activation="gelu"),
                 lambda: self.device.gemm(a, packed, split_k=2),
                 lambda: self.device.gemm(a, b, aux=True, activation="relu"),
                 lambda: self.device.gated(a, b, "swiglu"),
                 lambda: self.device.grouped(a, b, offsets),
                 lambda: self.device.row_reduction(a, b, "mean", store_d=True),
                 lambda: self.device.quantise_rows(a))
        expected = [call() for call in calls]
        with self.submissions() as run, self.device.batch():
            results = [call() for call in calls]
        self.assertEqual(run.call_count, 1)
        self.assertIsNone(self.device.last_ms)
        for result, wanted in zip(results, expected):
            for one, other in zip(*(value if isinstance(value, tuple) else (value,)
                                    for value in (result, wanted))):
                np.testing.assert_array_equal(one, other)

    def test_a_chain(self):
        a, b = values((24, 24)), values((24, 24)) / 5
        out = np.zeros((24, 24), np.float32)

        def chain():
            d = self.device.gemm(a, b)
            e = self.device.gemm(d, b, c=d)
            f = self.device.gemm(e.T, d, split_k=2)
            self.device.gemm(f, b, out=out)
            codes, scales = self.device.quantise_rows(out)
            return self.device.gemm(codes, codes.T, row_scales=scales, column_scales=scales)
        expected = chain()
        with self.submissions() as run, self.device.batch():
            result = chain()
        np.testing.assert_array_equal(result, expected)
        self.assertEqual(run.call_count, 1)

    def test_operands_that_overlap_a_result(self):
        """Parts of a result are read after a submission."""
        a, b = values((20, 20)), values((20, 20))
        whole = np.zeros((20, 40), np.float32)

        def calls():
            d = self.device.gemm(a, b)
            self.device.gemm(a, b, out=whole[:, 20:])
            return (self.device.gemm(d[:10], b), self.device.gemm(d[:, 10:], b[10:]),
                    self.device.gemm(whole, np.concatenate([b, b])),
                    self.device.grouped(a, b, np.array([4, 9]), out=d), d)
        expected = [result.copy() for result in calls()]
        whole[:] = 0
        with self.device.batch():
            results = calls()
        for result, wanted in zip(results, expected):
            np.testing.assert_array_equal(result, wanted)

    def test_operands_are_read_at_the_call(self):
        a, b = values((20, 20)), values((20, 20))
        expected = self.device.gemm(a, b)
        with self.device.batch():
            d = self.device.gemm(a, b)
            a[:] = 0
        np.testing.assert_array_equal(d, expected)

    def test_a_result_that_is_written_twice(self):
        a, b = values((20, 20)), values((20, 20))
        expected = self.device.gemm(a, b, alpha=2)
        out = np.zeros((20, 20), np.float32)
        with self.device.batch():
            self.device.gemm(a, b, out=out)
            self.device.gemm(a, b, alpha=2, out=out)
            d = self.device.gemm(out, b)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(d, self.device.gemm(expected, b))

    def test_packing_submits(self):
        a, b = values((20, 20), "f16"), values((20, 20), "f16")
        expected = self.device.gemm(self.device.gemm(a, b), b)
        with self.device.batch():
            d = self.device.gemm(a, b)
            packed = self.device.pack(b)
            e = self.device.gemm(d, packed)
            del packed  # which the commands still read
        np.testing.assert_allclose(e.astype(np.float32), expected.astype(np.float32), rtol=1e-2)

    def test_exceptions(self):
        a, b = values((20, 30)), values((30, 24))
        expected = self.device.gemm(a, b)
        for error in (ZeroDivisionError, KeyboardInterrupt):
            out = np.zeros((20, 24), np.float32)
            with self.submissions() as run, self.assertRaises(error), self.device.batch():
                self.device.gemm(a, b, out=out)
                raise error
            self.assertEqual(run.call_count, 0)
            self.assertFalse(out.any())
            np.testing.assert_array_equal(self.device.gemm(a, b), expected)
        half, offsets = values((20, 30), "f16"), np.array([0, 4])
        packed = self.device.pack(values((30, 24), "f16"), gated_b="halves")
        with self.device.batch():
            for refused in ({"split_k": 513}, {"config": "abc"}):
                with self.assertRaises(vkgemm.Error):
                    self.device.gemm(a, b, **refused)
            with self.assertRaises(vkgemm.Error):  # while it is recorded
                self.device.grouped(half, packed, offsets)
            first = self.device.gemm(a, b)
            with self.assertRaises(vkgemm.Error):
                self.device.grouped(half, packed, offsets)
            second = self.device.gemm(a, b)
        np.testing.assert_array_equal(first, expected)
        np.testing.assert_array_equal(second, expected)

    def test_memory_is_given_back(self):
        a, b = values((20, 30)), values((30, 24))
        self.device.gemm(a, b)
        before = len(self.device._gpu.buffers)
        for _ in range(3):
            with self.device.batch():
                for _ in range(5):
                    self.device.gemm(a, b)
            self.assertEqual(len(self.device._gpu.buffers), before)

    def test_nesting_is_refused(self):
        a, b = values((20, 30)), values((30, 24))
        expected = self.device.gemm(a, b)
        with self.device.batch():
            d = self.device.gemm(a, b)
            with self.assertRaises(vkgemm.Error) as caught, self.device.batch():
                pass
            e = self.device.gemm(a, b)
        self.assertEqual(caught.exception.message, "batch() is inside another batch() of this device")
        self.assertEqual(caught.exception.status, "unsupported")
        for result in (d, e):
            np.testing.assert_array_equal(result, expected)
        with self.device.batch():
            pass

    def test_other_threads_wait(self):
        a, b = values((20, 30)), values((30, 24))
        expected = self.device.gemm(a, b)
        results = []
        thread = threading.Thread(target=lambda: results.append(self.device.gemm(a, b)))
        with self.device.batch():
            d = self.device.gemm(a, b)
            thread.start()
            thread.join(0.2)
            self.assertTrue(thread.is_alive())
        thread.join()
        for result in (d, results[0]):
            np.testing.assert_array_equal(result, expected)

    def test_a_device_that_is_closed_inside(self):
        a, b = values((20, 30)), values((30, 24))
        device = vkgemm.Device()
        with device.batch():
            device.gemm(a, b)
            device.close()
        with self.assertRaises(vkgemm.Error), device.batch():
            pass


del OnDevice

if __name__ == "__main__":
    unittest.main()
