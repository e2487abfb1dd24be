"""Tests of Device.batch() with torch tensors, on CUDA and on the CPU in its place."""

import warnings

import numpy as np
import torch
from with_tensors import WithTensors, numbers

import vkgemm


class TensorBatches(WithTensors):
    def submitted(self):
        return self.device._tensors._submissions.index

    def assert_same(self, results, expected):
        for result, wanted in zip(results, expected):
            np.testing.assert_array_equal(numbers(result), numbers(wanted))

    def test_same_bits(self):
        a, b, bias = self.shared(24, 32), self.shared(32, 48), self.shared(48)
        offsets = self.device.shared(torch.tensor([2, 9, 24]).to(self.place))

        def calls():
            d, aux = self.device.gemm(a, b, bias=bias, activation="gelu", aux=True)
            return (d, aux, self.device.gemm(a, b, split_k=2), self.device.gated(a, b, "swiglu"),
                    self.device.grouped(a, b, offsets), self.device.row_reduction(a, b, "softmax"),
                    *self.device.quantise_rows(a))
        expected = calls()
        before = self.submitted()
        with self.nothing_is_copied(), self.device.batch():
            results = calls()
            self.assertEqual(self.submitted(), before)
        self.assertEqual(self.submitted(), before + 1)
        self.assert_same(results, expected)

    def test_a_chain(self):
        a, b = self.shared(32, 32), self.shared(32, 32)
        out = self.device.empty(32, 32, dtype=torch.float32)

        def chain():
            d = self.device.gemm(a, b, alpha=0.1)
            for index in range(12):  # results that die at once, and whose memory is used again
                d = self.device.gemm(d, b, alpha=0.2, c=d, split_k=1 + index % 2)
            self.device.gemm(d.t(), d, out=out, alpha=0.1)
            return self.device.gemm(out, b)
        expected = chain().clone()
        for _ in range(20):
            before = self.submitted()
            with self.device.batch():
                result = chain()
            self.assertEqual(self.submitted(), before + 1)
            self.assert_same([result], [expected])

    def test_memory_that_torch_writes_to(self):
        """Memory of a result that died in the batch is zeroed or lent only after its last use."""
        a, b = self.shared(24, 24), self.shared(24, 24)
        offsets = self.device.shared(torch.tensor([3, 20]).to(self.place))
        expected = self.device.grouped(a, b, offsets)
        for _ in range(10):
            with self.device.batch():
                for _ in range(3):
                    self.device.gemm(a, b)
                    lent = self.device.empty(24, 24, dtype=torch.float32).fill_(5)
                    kept = self.device.grouped(a, b, offsets)
                    self.device.gemm(a, b)
            self.assert_same([kept], [expected])
            self.assertTrue(bool((lent == 5).all()))

    def test_operands_that_are_copied(self):
        a, b, out = self.random(20, 30), self.random(30, 40), self.random(20, 40)
        inner = self.device.shared(b)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [self.device.gemm(a, b).clone(), self.device.gemm(a, inner).clone()]
            before = self.submitted()
            with self.device.batch():
                results = [self.device.gemm(a, b), self.device.gemm(self.random(20, 30), inner)]
            self.assertEqual(self.submitted(), before + 1)
            self.assert_same(results, expected)
            with self.device.batch():
                d = self.device.gemm(a, inner)
                self.device.gemm(a, b, out=out)  # which is copied back
                wide = self.device.gemm(d[:, ::2], inner[:20])
                again = self.device.gemm(out, self.random(40, 8))
        self.assert_same([out, d], expected[:1] * 2)
        self.assert_right(wide, d[:, ::2].double() @ b[:20].double())
        self.assert_right(again, out.double() @ self.random(40, 8).double())

    def test_packing_submits(self):
        a, b = self.shared(32, 32), self.shared(32, 32)
        expected = self.device.gemm(a, self.device.gemm(a, b)).clone()
        with self.device.batch():
            packed = self.device.pack(self.device.gemm(a, b))
            d = self.device.gemm(a, packed)
            del packed
        self.assert_same([d], [expected])

    def test_exceptions(self):
        a, b = self.shared(20, 30), self.shared(30, 40)
        out = self.device.empty(20, 40, dtype=torch.float32).fill_(3)
        expected = self.device.gemm(a, b).clone()
        for error in (ZeroDivisionError, KeyboardInterrupt):
            before = self.submitted()
            with self.assertRaises(error), self.device.batch():
                self.device.gemm(a, b, out=out)
                self.device.gemm(a, b)
                raise error
            self.assertEqual(self.submitted(), before)
            self.assertTrue(bool((out == 3).all()))
            fresh = self.device.empty(20, 40, dtype=torch.float32).fill_(1)  # its memory
            self.assert_same([self.device.gemm(a, b), self.device.gemm(a, b)], [expected] * 2)
            self.assertTrue(bool((fresh == 1).all()))
        with self.device.batch():
            first = self.device.gemm(a, b)
            for refused in ({"split_k": 513}, {"bias": a}):
                with self.assertRaises(vkgemm.Error):
                    self.device.gemm(a, b, **refused)
            second = self.device.gemm(a, b)
        self.assert_same([first, second], [expected] * 2)
        self.device.release_memory()

    def test_memory_that_is_released(self):
        a, b = self.shared(20, 30), self.shared(30, 40)
        expected = self.device.gemm(a, b).clone()
        with self.device.batch():
            self.device.gemm(a, b)
            self.device.release_memory()
            d = self.device.gemm(a, b)
        self.assert_same([d], [expected])

    def test_a_batch_of_a_new_device(self):
        """The first tensor is seen inside the batch."""
        device = self.connected()
        self.addCleanup(device.close)
        with device.batch():
            a, b = device.shared(self.random(20, 30)), device.shared(self.random(30, 40))
            d = device.gemm(a, b)
        self.assert_right(d, a.double() @ b.double())

    def test_arrays_and_tensors(self):
        a, b = self.shared(20, 30), self.shared(30, 40)
        expected = self.device.gemm(a, b).clone()
        with self.device.batch():
            d = self.device.gemm(a, b)
            array = self.device.gemm(numbers(a), numbers(b))
        self.assert_same([d], [expected])
        np.testing.assert_array_equal(array, numbers(expected))

    def test_a_device_that_is_closed_inside(self):
        device = self.connected()
        a = device.shared(self.random(20, 20))
        with device.batch():
            device.gemm(a, a)
            device.close()
        with self.assertRaises(vkgemm.Error):
            device.gemm(a, a)
