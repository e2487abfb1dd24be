"""Weights of 4 and 8 bits against numpy."""

from unittest import mock

import numpy as np
from reference import OnDevice, assert_close, values, wide

import vkgemm
from vkgemm.binding import enumerator_names

KINDS = [("int8", 0, False), ("int4", 32, True), ("e4m3", 0, False), ("e5m2", 64, False),
         ("mxfp4", 32, False)]


class Quantise(OnDevice):
    def test_every_type(self):
        self.assertEqual({kind for kind, _, _ in KINDS}, set(enumerator_names("VkgemmCodeType")))
        a, b = values((5, 70), "f16"), values((70, 33))
        for kind, group_k, zeros in KINDS:
            with self.subTest(kind=kind, group_k=group_k, zeros=zeros):
                codes = vkgemm.quantise(b, kind, group_k=group_k, zeros=zeros)
                weight = self.device.pack_codes(codes)
                self.assertEqual(weight.shape, b.shape)
                self.assertIn(kind, repr(weight))
                elements = codes.elements().astype(np.float16)
                assert_close(self.device.gemm(a, weight, out_dtype="f32"), wide(a) @ wide(elements),
                             "f32")
                steps = np.abs(elements - b).max() / np.abs(b).max()
                self.assertLess(steps, {"int8": 0.005, "e4m3": 0.04}.get(kind, 0.2))

    def test_batches_gates_and_groups(self):
        codes = vkgemm.quantise(values((3, 64, 20)))
        weight, elements = self.device.pack_codes(codes), codes.elements().astype(np.float16)
        a = values((3, 4, 64), "f16")
        assert_close(self.device.gemm(a, weight), wide(a) @ wide(elements), "f16")
        tokens, offsets = values((9, 64), "f16"), np.array([0, 2, 2, 9], np.int32)
        d = self.device.grouped(tokens, weight, offsets)
        for group, (begin, end) in enumerate(zip(offsets, offsets[1:])):
            assert_close(d[begin:end], wide(tokens[begin:end]) @ wide(elements[group]), "f16")
        pair = self.device.quantise(elements[0], gated_b="halves")
        again = vkgemm.quantise(elements[0]).elements().astype(np.float16)
        both = wide(a[0]) @ wide(again)
        assert_close(self.device.gated(a[0], pair, "reglu"),
                     both[:, :10] * np.maximum(both[:, 10:], 0), "f16")

    def test_bf16(self):
        codes = vkgemm.quantise(values((64, 20)), "int8", group_k=64)
        weight = self.device.pack_codes(codes, element="bf16")
        a = values((4, 64), "bf16")
        elements = vkgemm.from_bf16(vkgemm.to_bf16(codes.elements()))
        assert_close(self.device.gemm(a, weight, bf16=True, out_dtype="f32"),
                     wide(a) @ wide(elements), "f32")

    def test_gates_of_groups(self):
        codes = vkgemm.quantise(values((2, 64, 20)), "int8", group_k=64)
        weight, elements = self.device.pack_codes(codes, gated_b="halves"), codes.elements()
        tokens, offsets = values((9, 64), "f16"), np.array([0, 4, 9])
        d = self.device.grouped(tokens, weight, offsets, gate="reglu")
        for group, (begin, end) in enumerate(zip(offsets, offsets[1:])):
            both = wide(tokens[begin:end]) @ wide(elements[group].astype(np.float16))
            assert_close(d[begin:end], both[:, :10] * np.maximum(both[:, 10:], 0), "f16")

    def test_numbers_that_have_no_code(self):
        for kind, _, _ in KINDS:
            for number in (np.nan, np.inf, -np.inf):
                b = values((3, 40, 5))
                b[1, 33, 2] = number
                with self.subTest(kind=kind, number=number), self.assertRaisesRegex(
                        vkgemm.ArgumentError, rf"b\[1, 33, 2\] is {number}: it must be finite"):
                    self.device.quantise(b, kind)
        with self.assertRaisesRegex(vkgemm.ArgumentError, r"b has numbers up to 100000000\.0: its largest scale is 1\.42857e\+07"):
            vkgemm.quantise(np.full((4, 5), 1e8))
        vkgemm.quantise(np.full((4, 5), 1e8), "e4m3")  # whose scales are float32

    def test_refusals_and_empty_matrices(self):
        weight = self.device.quantise(values((64, 8)))
        with self.assertRaisesRegex(vkgemm.ArgumentError, r"b is <vkgemm.PackedMatrix \(64, 8\) f16, "
                                    "int4 codes>: a.dtype is f32, and a must be float16"):
            self.device.gemm(values((4, 64)), weight)
        for shape in ((0, 8), (64, 0)):
            with self.subTest(shape=shape):
                empty = self.device.quantise(np.zeros(shape))
                d = self.device.gemm(np.ones((4, shape[0]), np.float16), empty)
                np.testing.assert_array_equal(d, np.zeros((4, shape[1]), np.float16))

    def test_codes_that_float16_does_not_hold(self):
        """127 · 516 is Inf in float16: the tool and both functions refuse it alike."""
        b = values((40, 5), "f16")
        b[33, 2] = 65504
        message = r"b\[33, 2\] is 65504.0: its int8 code and scale stand for a number"
        with self.assertRaisesRegex(vkgemm.ArgumentError, message):
            vkgemm.quantise(b, "int8")
        for element in (b, b.astype(np.float32)):
            with self.assertRaisesRegex(vkgemm.ArgumentError, message):
                self.device.quantise(element, "int8")
        for matrix in (b, b.astype(np.float32)):
            self.device.quantise(matrix, "int8", element="bf16")
        self.assertTrue(np.isfinite(vkgemm.quantise(b.astype(np.float32), "int8").elements()).all())

    def test_tensors_on_a_gpu_are_refused(self):
        tensor = mock.Mock(spec=["device", "__dlpack_device__"], device="cuda:0")
        tensor.__dlpack_device__ = lambda: (2, 0)
        with self.assertRaisesRegex(vkgemm.ArgumentError, "b is Mock on cuda:0"):
            vkgemm.quantise(tensor)
        codes, scales = np.zeros((32, 10), np.uint8), np.ones((1, 10), np.float16)
        for name in ("codes", "scales", "zeros"):
            given = {"codes": codes, "scales": scales} | {name: tensor}
            with self.assertRaisesRegex(vkgemm.ArgumentError, f"{name} is Mock on cuda:0"):
                vkgemm.Codes("int4", **given)

    def test_refusals_name_the_argument(self):
        codes = np.zeros((32, 10), np.uint8)
        for arguments, message in (
                ({"type": "int5"}, "type is 'int5'"),
                ({"codes": codes.astype(np.int8)}, "codes is int8"),
                ({"scales": np.ones((1, 10))}, "scales.dtype is float64"),
                ({"scales": np.ones((2, 10), np.float16)}, r"scales.shape is \(2, 10\)"),
                ({"zeros": np.zeros((1, 9), np.uint8)}, r"zeros.shape is \(1, 9\)"),
                ({"k": 62}, "k is 62")):
            given = {"type": "int4", "codes": codes, "scales": np.ones((1, 10), np.float16)}
            with self.subTest(message), self.assertRaisesRegex(vkgemm.ArgumentError, message):
                vkgemm.Codes(**(given | arguments))
        with self.assertRaisesRegex(vkgemm.Error, "zeros is given and type is 'int8'"):
            self.device.pack_codes(vkgemm.Codes("int8", codes, np.ones((1, 10), np.float16),
                                                np.zeros((1, 10), np.uint8)))
