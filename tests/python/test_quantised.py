"""Weights of 4 and 8 bits against numpy."""

from unittest import mock

import numpy as np
from reference import OnDevice, assert_close, values, wide

import vkgemm
from vkgemm.binding import enumerator_names
from vkgemm.quantised import _BLOCKS

KINDS = [("int8", 0, False), ("int4", 32, True), ("e4m3", 0, False), ("e5m2", 64, False),
         ("mxfp4", 32, False), ("nvfp4", 16, False)]


def elements_of_q4_k(blocks):
    """The elements of blocks of ggml's q4_k, (N, K)."""
    blocks = blocks.reshape(blocks.shape[0], -1, 144)
    d, m = (blocks[..., at:at + 2].copy().view(np.float16).astype(np.float32) for at in (0, 2))
    s = blocks[..., 4:16].astype(int)
    low, high = s[..., :4], s[..., 4:8]
    scales = np.concatenate([low & 63, s[..., 8:] & 15 | low >> 6 << 4], -1)
    minima = np.concatenate([high & 63, s[..., 8:] >> 4 | high >> 6 << 4], -1)
    q = blocks[..., 16:].reshape(*blocks.shape[:-1], 4, 1, 32)
    q = np.concatenate([q & 15, q >> 4], -2).reshape(*blocks.shape[:-1], 8, 32)
    return ((d * scales)[..., None] * q - (m * minima)[..., None]).reshape(blocks.shape[0], -1)


class Quantise(OnDevice):
    def test_every_type(self):
        self.assertEqual({kind for kind, _, _ in KINDS} | {*_BLOCKS},
                         set(enumerator_names("VkgemmCodeType")))
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

    def test_blocks_of_ggml(self):
        random = np.random.default_rng(3)
        blocks = random.integers(0, 256, (20, 2, 144), np.uint8)
        blocks[..., :4] = random.uniform(0.001, 0.01, (20, 2, 2)).astype(np.float16).view(np.uint8)
        blocks = blocks.reshape(20, -1)
        weight = self.device.pack_codes(vkgemm.CodeBlocks("q4_k", blocks))
        self.assertEqual(weight.shape, (512, 20))
        a = values((5, 512), "f16")
        elements = elements_of_q4_k(blocks).astype(np.float16).T
        assert_close(self.device.gemm(a, weight, out_dtype="f32"), wide(a) @ wide(elements), "f32")
        self.assertEqual(vkgemm.CodeBlocks("q4_0", blocks[:, :36]).type, "int4")
        for kind, (codes, size) in _BLOCKS.items():
            with self.subTest(kind=kind):
                weight = self.device.pack_codes(
                    vkgemm.CodeBlocks(kind, np.zeros((3, 8, 2 * size), np.uint8)))
                self.assertEqual(weight.shape, (3, 2 * codes, 8))
        for arguments, message in ((("e4m3", blocks), "type is 'e4m3': ggml has no such blocks"),
                                   (("q6_k", blocks), r"blocks.shape is \(20, 288\): a block"),
                                   (("q4_k", blocks.view(np.int8)), "blocks is int8")):
            with self.subTest(message), self.assertRaisesRegex(vkgemm.ArgumentError, message):
                vkgemm.CodeBlocks(*arguments)

    def test_words_of_checkpoints(self):
        random = np.random.default_rng(4)
        codes, zeros = random.integers(0, 16, (64, 16)), random.integers(1, 16, (2, 16))
        scales = random.uniform(0.01, 0.02, (2, 16)).astype(np.float16)
        wanted = (codes - np.repeat(zeros, 32, 0)) * np.repeat(scales, 32, 0).astype(np.float32)
        shifts = 4 * np.arange(8)

        def words(numbers):
            return (numbers << shifts).sum(-1).astype(np.uint32).view(np.int32)

        by_rows = words(codes.reshape(8, 8, 16).swapaxes(1, 2))
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        made = [vkgemm.Codes.from_gptq(by_rows, words(zeros.reshape(2, 2, 8) - 1), scales),
                vkgemm.Codes.from_gptq(by_rows, words(zeros.reshape(2, 2, 8)), scales, v2=True),
                vkgemm.Codes.from_awq(words(codes.reshape(64, 2, 8)[..., order]),
                                      words(zeros.reshape(2, 2, 8)[..., order]), scales)]
        for each in made:
            self.assertEqual(each.group_k, 32)
            np.testing.assert_array_equal(each.elements(), wanted.astype(np.float32))

        made = vkgemm.Codes.from_gptq(by_rows, words(zeros.reshape(2, 2, 8)), scales, v2=True,
                                      g_idx=np.repeat([0, 1], 32))
        self.assertEqual(made.shape, (64, 16))
        with self.assertRaisesRegex(vkgemm.ArgumentError, "g_idx is not in order"):
            vkgemm.Codes.from_gptq(by_rows, words(zeros.reshape(2, 2, 8)), scales,
                                   g_idx=np.tile([0, 1], 32))
        for wrong, message in ((scales[:0], "scales is ndarray"), (np.float16(1), "scales is float16"),
                               (np.ones((3, 16), np.float16), r"scales.shape is \(3, 16\)")):
            with self.subTest(message), self.assertRaisesRegex(vkgemm.ArgumentError, message):
                vkgemm.Codes.from_awq(words(codes.reshape(64, 2, 8)), words(zeros.reshape(2, 2, 8)),
                                      wrong)

    def test_zero_points_of_floats(self):
        codes = vkgemm.quantise(values((64, 20)), group_k=32, zeros=True)
        zeros = codes.zeros.astype(np.float16) + np.float16(0.25)
        codes = vkgemm.Codes("int4", codes.codes, codes.scales, zeros, 32)
        a = values((5, 64), "f16")
        assert_close(self.device.gemm(a, self.device.pack_codes(codes), out_dtype="f32"),
                     wide(a) @ wide(codes.elements().astype(np.float16)), "f32")

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
