"""A and B of int8, and of f32 in parts, in every family."""

import unittest

import numpy as np
from reference import (ACTIVATIONS, GATES, ROW_OPS, OnDevice, assert_close, at_night, by_day,
                       factors, values, wide)

import vkgemm
from vkgemm.binding import enumerator_names


class Integers(OnDevice):
    """int8 A and B: their sums, which are exact, and what is made of them."""

    def assert_sums(self, d, a, b):
        self.assertEqual(d.dtype, np.int32)
        np.testing.assert_array_equal(d, a.astype(np.int32) @ b.astype(np.int32))

    def test_shapes(self):
        for m, n, k in ((1, 1, 1), (3, 130, 7), (65, 2, 129), (20, 25, 30), (0, 5, 3), (5, 0, 3),
                        (5, 3, 0)):
            with self.subTest(m=m, n=n, k=k):
                a, b = values((m, k), "s8"), values((k, n), "s8")
                self.assert_sums(self.device.gemm(a, b), a, b)

    def test_the_largest_sums(self):
        a, b = np.full((2, 131071), -128, np.int8), np.full((131071, 3), -128, np.int8)
        b[:, 1] = 127
        self.assert_sums(self.device.gemm(a, b), a, b)

    def test_views_and_batches(self):
        a, b = values((30, 20), "s8"), values((25, 30), "s8")
        self.assert_sums(self.device.gemm(a.T, b.T), a.T, b.T)
        out = np.full((20, 50), 7, np.int32)
        self.device.gemm(a.T, b.T, out=out[:, ::2])
        self.assert_sums(out[:, ::2], a.T, b.T)
        self.assertTrue((out[:, 1::2] == 7).all())
        for a_shape, b_shape in (((3, 20, 30), (3, 30, 25)), ((20, 30), (3, 30, 25)),
                                 ((3, 20, 30), (30, 25))):
            with self.subTest(a=a_shape, b=b_shape):
                a, b = values(a_shape, "s8"), values(b_shape, "s8")
                self.assert_sums(self.device.gemm(a, b), a, b)

    def test_split_k(self):
        a, b = values((16, 2000), "s8"), values((2000, 16), "s8")
        for slices in (1, 4):
            self.assert_sums(self.device.gemm(a, b, split_k=slices), a, b)

    @at_night
    def test_packed(self):
        b = values((30, 25), "s8")
        packed = self.device.pack(b)
        self.assertIn("s8", repr(packed))
        for m in (1, 20):
            a = values((m, 30), "s8")
            self.assert_sums(self.device.gemm(a, packed), a, b)
        batch = values((3, 30, 25), "s8")
        self.assert_sums(self.device.gemm(a, self.device.pack(batch)), a, batch)
        offsets = np.array([0, 4, 4, 20])
        d = self.device.grouped(a, self.device.pack(batch), offsets)
        for g in range(3):
            rows = slice(offsets[g], offsets[g + 1])
            self.assert_sums(d[rows], a[rows], batch[g])
        pair, columns = values((30, 48), "s8"), factors((48,))
        d = self.device.gated(a, self.device.pack(pair, gated_b="halves"), "reglu",
                              column_scales=columns)
        product = wide(columns) * (wide(a) @ wide(pair))
        assert_close(d, GATES["reglu"](product[:, :24], product[:, 24:]))

    def test_groups(self):
        a, b, offsets = values((40, 30), "s8"), values((2, 30, 25), "s8"), np.array([0, 15, 40])
        d = self.device.grouped(a, b, offsets)
        self.assert_sums(d[:15], a[:15], b[0])
        self.assert_sums(d[15:], a[15:], b[1])
        a, b = values((20, 40), "s8"), values((40, 25), "s8")
        d = self.device.grouped(a, b, offsets, along="k")
        self.assert_sums(d[0], a[:, :15], b[:15])
        self.assert_sums(d[1], a[:, 15:], b[15:])

    def test_types_of_d(self):
        """int32 by default where D is the sums, else float32."""
        a, b, rows = values((20, 30), "s8"), values((30, 48), "s8"), factors((20,))
        sums, gemm = wide(a) @ wide(b), self.device.gemm
        self.assert_sums(gemm(a, b, alpha=1, activation="none", clamp=(None, None), beta=0), a, b)
        self.assert_sums(gemm(a, b, out_dtype=np.int32), a, b)
        for out_dtype, element in ((np.float32, "f32"), ("f16", "f16")):
            d = gemm(a, b, alpha=0.01, out_dtype=out_dtype)
            self.assertEqual(d.dtype, np.dtype({"f32": np.float32, "f16": np.float16}[element]))
            assert_close(d, 0.01 * sums, element)
        for named, expected in by_day((
                ({"row_scales": rows}, wide(rows)[:, None] * sums),
                ({"activation": "relu"}, np.maximum(sums, 0)),
                ({"alpha": 0.5}, 0.5 * sums),
                ({"bias": values((48,))}, sums + wide(values((48,)))),
                ({"clamp": (0, None)}, np.maximum(sums, 0)),
                ({"c": values((20, 48))}, sums + wide(values((20, 48)))))):
            with self.subTest(named=list(named)):
                d = gemm(a, b, **named)
                self.assertEqual(d.dtype, np.float32)
                assert_close(d, expected)
        for d in (*gemm(a, b, aux=True), self.device.gated(a, b, "reglu"),
                  self.device.row_reduction(a, b, "l2_normalize")):
            self.assertEqual(d.dtype, np.float32)

    def test_a_quantised_layer(self):
        """What it is for: rows and weights of 8 bits, each with a factor for a row."""
        a, b, bias = values((20, 64)), values((64, 25)), values((25,))
        rows, columns = np.abs(a).max(1) / np.float32(127), np.abs(b).max(0) / np.float32(127)
        codes = np.rint(a / rows[:, None]).astype(np.int8), np.rint(b / columns).astype(np.int8)
        d = self.device.gemm(*codes, row_scales=rows, column_scales=columns, bias=bias,
                             activation="silu")
        product = wide(rows)[:, None] * wide(columns) * (wide(codes[0]) @ wide(codes[1]))
        assert_close(d, ACTIVATIONS["silu"](product + wide(bias)))
        self.assertLess(np.abs(product - wide(a) @ wide(b)).max(), 0.3)


class UnlikeTypes(OnDevice):
    """float32 beside 16-bit types: the products of operands that numpy rounds."""

    def test_rounds_as_numpy(self):
        a, b = values((20, 64)), values((64, 24))
        b16 = b.astype(np.float16)
        rounded = self.device.gemm(a.astype(np.float16), b16, out_dtype="f32")
        for right in (b16, b, self.device.pack(b, multiply_as="f16"), self.device.pack(b16)):
            with self.subTest(right=type(right).__name__):
                d = self.device.gemm(a, right, multiply_as="f16")
                self.assertEqual(d.dtype, np.float32)
                np.testing.assert_allclose(d, rounded, rtol=1e-5, atol=1e-5)
        self.assertIn("a is f32: rounded to bf16", self.device.explain(a, b16, multiply_as="bf16"))

    def test_codes(self):
        a, b = values((3, 64)), values((64, 24))
        codes = self.device.quantise(b, "int8", group_k=32)
        rounded = self.device.gemm(a.astype(np.float16), codes, out_dtype="f32")
        d = self.device.gemm(a, codes, multiply_as="f16")
        np.testing.assert_allclose(d, rounded, rtol=1e-4, atol=1e-4)

    def test_bytes(self):
        """Integers of 8 bits beside float16, and both."""
        a, b = np.round(values((20, 64)) * 5), np.round(values((64, 24)) * 5)
        product = wide(a) @ wide(b)  # integers: exact
        for left, right in ((np.int8, np.float16), (np.float16, np.int8), (np.int8, np.int8)):
            operands = a.astype(left), b.astype(right)
            d = self.device.gemm(*operands, multiply_as="f16", out_dtype="f32")
            np.testing.assert_array_equal(d, product)
        self.assertEqual(self.device.gemm(*operands, multiply_as="f16").dtype, np.float32)
        packed = self.device.pack(operands[1], multiply_as="f16")
        d = self.device.gemm(np.abs(a).astype(np.uint8), packed, multiply_as="f16")
        np.testing.assert_array_equal(d, np.abs(wide(a)) @ wide(b))

    @unittest.skipIf(vkgemm.arrays._bfloat16 is None, "ml_dtypes is not installed")
    def test_8_bit_floats(self):
        from ml_dtypes import float8_e4m3fn, float8_e5m2
        a, b = values((20, 64)).astype(float8_e4m3fn), values((64, 24)).astype(float8_e5m2)
        d = self.device.gemm(a, b)
        self.assertEqual(d.dtype, np.float32)
        np.testing.assert_allclose(d, wide(a) @ wide(b), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(d, self.device.gemm(a, self.device.pack(b)))

    def test_refusals(self):
        a, b = values((20, 64)), values((64, 24)).astype(np.float16)
        with self.assertRaisesRegex(vkgemm.Error, "b.dtype is f16: a.dtype is f32, and without multiply_as"):
            self.device.gemm(a, b)
        with self.assertRaisesRegex(vkgemm.Error, "multiply_as is f32: f16 and bf16"):
            self.device.gemm(a, b, multiply_as="f32")
        with self.assertRaisesRegex(vkgemm.ArgumentError, "multiply_as is 'half'"):
            self.device.gemm(a, b, multiply_as="half")


class TwoBatchDimensions(OnDevice):
    """Arrays of four dimensions, of which 1 broadcasts."""

    def test_broadcasts_as_numpy(self):
        for of_a, of_b in (((3, 2), (3, 2)), ((3, 2), (3, 1)), ((1, 2), (3, 1)), ((3, 2), ()),
                           ((3, 2), (2,)), ((), (3, 2)), ((3, 1), (1, 2))):
            with self.subTest(a=of_a, b=of_b):
                a, b = values((*of_a, 5, 40)), values((*of_b, 40, 24))
                assert_close(self.device.gemm(a, b), wide(a) @ wide(b))
                d = self.device.gemm(a, b.swapaxes(-1, -2).copy().swapaxes(-1, -2))
                assert_close(d, wide(a) @ wide(b))

    def test_epilogue(self):
        a, b = values((3, 2, 5, 40)), values((3, 1, 40, 24))
        bias, c, scales = values((3, 2, 1, 24)), values((5, 24)), factors((3, 2, 24))
        product = wide(a) @ wide(b)
        d, aux = self.device.gemm(a, b, bias=bias, c=c, beta=0.5, aux=True, activation="relu")
        assert_close(aux, product + wide(bias) + 0.5 * wide(c))
        assert_close(d, np.maximum(wide(aux), 0))
        assert_close(self.device.gemm(a, b, column_scales=scales),
                     product * wide(scales)[..., None, :])
        t = values((3, 2, 5, 24))
        d, sums = self.device.gemm(a, b, steps=[("multiply", t), ("sum_columns",)])
        assert_close(d, product * wide(t))
        assert_close(sums, (product * wide(t)).sum(-2))
        assert_close(self.device.row_reduction(a, b, op="max"), product.max(-1))

    def test_refusals(self):
        with self.assertRaisesRegex(vkgemm.ArgumentError, "b.shape is .*does not broadcast to a"):
            self.device.gemm(values((3, 2, 5, 40)), values((2, 2, 40, 24)))
        with self.assertRaisesRegex(vkgemm.ArgumentError, "it must have 2 to 4 dimensions"):
            self.device.gemm(values((1, 3, 2, 5, 40)), values((40, 24)))


class SumOfBatch(OnDevice):
    """sum_batch: one matrix for all of a batch."""

    def test_adds_products_up(self):
        c, bias = values((5, 24)), values((24,))
        for of_a, of_b in (((3,), (3,)), ((), (3,)), ((3,), ()), ((1,), (1,))):
            with self.subTest(a=of_a, b=of_b):
                a, b = values((*of_a, 5, 40)), values((*of_b, 40, 24))
                total = (wide(a) @ wide(b)).sum(0)
                assert_close(self.device.gemm(a, b, sum_batch=True), total)
                d = self.device.gemm(a, b, sum_batch=True, c=c, bias=bias, activation="relu")
                assert_close(d, np.maximum(total + wide(c) + wide(bias), 0))

    def test_refusals(self):
        with self.assertRaisesRegex(vkgemm.ArgumentError, "a has 4, b has 2"):
            self.device.gemm(values((3, 2, 5, 40)), values((40, 24)), sum_batch=True)
        with self.assertRaisesRegex(vkgemm.ArgumentError, "must have 3 dimensions"):
            self.device.gemm(values((5, 40)), values((40, 24)), sum_batch=True)


class F32Arithmetic(OnDevice):
    """f32 in 16-bit parts, or, on a device that has no matrix units for these, in f32."""

    # How much products err, of the sum of |a · b|, beside their sums.
    ERRORS = {"ieee": 0.0, "bf16x9": 0.0, "bf16x6": 2.0**-23, "f16x3": 2.0**-21}

    def assert_as_accurate(self, d, a, b, f32):
        bound = (self.ERRORS[f32] + (a.shape[-1] / 16 + 2) * 2.0**-24) * (
            np.abs(wide(a)) @ np.abs(wide(b)))
        self.assertEqual(d.shape, bound.shape)
        self.assertLessEqual((np.abs(wide(d) - wide(a) @ wide(b)) / bound).max(), 1)

    def test_names(self):
        self.assertEqual(list(self.ERRORS), enumerator_names("VkgemmF32Arithmetic"))

    def test_errors(self):
        a, b = values((20, 64)), values((64, 25))
        a[:, ::3] *= np.float32(1e-3)
        for f32 in self.ERRORS:
            with self.subTest(f32=f32):
                d = self.device.gemm(a, b, f32=f32)
                self.assertEqual(d.dtype, np.float32)
                self.assert_as_accurate(d, a, b, f32)
                self.assert_as_accurate(self.device.gemm(a, b.T.copy().T, f32=f32), a, b, f32)

    def test_integers_are_exact(self):
        """Of 20 bits, so that no part may be missing."""
        generator = np.random.default_rng(0)
        a = generator.integers(-2**20, 2**20, (20, 30)).astype(np.float32)
        b = (np.arange(30)[:, None] % 7 == np.arange(25) % 7).astype(np.float32) * 2
        for f32 in self.ERRORS:
            with self.subTest(f32=f32):
                np.testing.assert_array_equal(self.device.gemm(a, b, f32=f32), wide(a) @ wide(b))
                np.testing.assert_array_equal(self.device.gemm(b.T, a.T, f32=f32),
                                              wide(b).T @ wide(a).T)

    def test_it_is_asked_for(self):
        a, b, pair = values((20, 64)), values((64, 25)), values((64, 48))
        calls = {"gemm": (b, {}), "gated": (pair, {"gate": "swiglu"}),
                 "grouped": (b, {"offsets": np.array([0, 20])}),
                 "row_reduction": (b, {"op": "sum"})}
        for name, (right, named) in calls.items():
            with self.subTest(name=name):
                explain = self.device.explain
                self.assertNotIn("f32 arithmetic:", explain(a, right, **named))
                for f32 in list(self.ERRORS)[1:]:
                    line, = (line for line in explain(a, right, f32=f32, **named).splitlines()
                             if "f32 arithmetic:" in line)
                    self.assertIn(f32, line)

    @at_night
    def test_families(self):
        a, b, pair = values((20, 64)), values((64, 25)), values((64, 48))
        product, wide_pair = wide(a) @ wide(b), wide(a) @ wide(pair)
        offsets = np.array([0, 7, 20])
        for f32 in list(self.ERRORS)[1:]:
            with self.subTest(f32=f32):
                assert_close(self.device.gemm(a, b, f32=f32, activation="silu", split_k=2),
                             ACTIVATIONS["silu"](product))
                assert_close(self.device.gated(a, pair, "swiglu", f32=f32),
                             GATES["swiglu"](wide_pair[:, :24], wide_pair[:, 24:]))
                assert_close(self.device.grouped(a, b, offsets, f32=f32), product)
                assert_close(self.device.row_reduction(a, b, "layer_norm", f32=f32),
                             ROW_OPS["layer_norm"](product))

    def test_packed(self):
        b, pair = values((64, 25)), values((64, 48))
        for f32 in list(self.ERRORS)[1:]:
            packed = self.device.pack(b, f32=f32)
            self.assertIn(f"for {f32}", repr(packed))
            for m in (1, 20):
                with self.subTest(f32=f32, m=m):
                    a = values((m, 64))
                    self.assert_as_accurate(self.device.gemm(a, packed, f32=f32), a, b, f32)
            columns = self.device.pack(b.T.copy().T, f32=f32)
            self.assert_as_accurate(self.device.gemm(a, columns, f32=f32), a, b, f32)
            halves = self.device.pack(pair, gated_b="halves", f32=f32)
            product = wide(a) @ wide(pair)
            assert_close(self.device.gated(a, halves, "glu", f32=f32),
                         GATES["glu"](product[:, :24], product[:, 24:]))
