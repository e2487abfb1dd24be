"""Rows that become int8 codes with a scale each, against numpy."""

import unittest

import numpy as np
from reference import OnDevice, assert_close, values, wide

import vkgemm

ELEMENTS = ("f16", "bf16", "f32")
SMALLEST = np.float32(2.0**-119)  # the least magnitude of a row that has codes


def numbers(array):
    """An array's values in float32, which holds all of them; uint16 is bf16."""
    return vkgemm.from_bf16(array) if array.dtype == np.uint16 else array.astype(np.float32)


def reference(array):
    """Codes and scales by the definition in matrix.hpp, in float32."""
    x = numbers(array)
    largest = np.abs(x).max(-1, initial=np.float32(0), keepdims=True)
    largest = np.where(largest < SMALLEST, np.float32(0), largest)
    has_codes = np.isfinite(largest) & (largest > 0)
    factor = np.float32(127) / np.where(has_codes, largest, np.float32(1))
    product = np.where(has_codes, x, np.float32(0)) * factor
    scales = largest[..., 0] / np.float32(127)
    assert factor.dtype == product.dtype == scales.dtype == np.float32
    return np.rint(product).astype(np.int8), scales


class QuantiseRows(OnDevice):
    def assert_right(self, array):
        """Every bit is as the definition says."""
        codes, scales = self.device.quantise_rows(array, bf16=array.dtype == np.uint16)
        expected_codes, expected_scales = reference(array)
        self.assertEqual((codes.dtype, codes.shape), (np.int8, array.shape))
        self.assertEqual((scales.dtype, scales.shape), (np.float32, array.shape[:-1]))
        np.testing.assert_array_equal(codes, expected_codes)
        np.testing.assert_array_equal(scales, expected_scales)  # for which NaN is NaN
        return codes, scales

    def test_every_type_and_odd_sizes(self):
        for element in ELEMENTS:
            for shape in ((1, 1), (5, 37), (33, 64), (3, 1000), (2, 7, 19), (1, 4, 16)):
                with self.subTest(element=element, shape=shape):
                    self.assert_right(values(shape, element))

    def test_sizes_from_small_to_large(self):
        for element in ("bf16", "f32"):
            x = values((60, 50)) * np.exp2(np.linspace(-115, 120, 60, dtype=np.float32))[:, None]
            with self.subTest(element=element):
                self.assert_right(vkgemm.to_bf16(x) if element == "bf16" else x)

    def test_halves_go_to_even(self):
        x = np.concatenate([np.arange(-126.5, 127, 1), [127]]).astype(np.float32)[None]
        codes, scales = self.assert_right(x)
        self.assertEqual(scales[0], 1)
        self.assertTrue((codes[0, :-1] % 2 == 0).all())

    def test_zeros_and_what_is_near(self):
        x = np.zeros((6, 21), np.float32)
        x[1] = -0.0
        x[2, 3], x[3, 4] = SMALLEST, np.nextafter(SMALLEST, np.float32(0))
        x[4, 5], x[5, 20] = -SMALLEST, np.float32(1e-45)
        codes, scales = self.assert_right(x)
        self.assertEqual([bool(scale > 0) for scale in scales], [False, False, True, False, True,
                                                                  False])
        self.assertEqual((codes[2, 3], codes[4, 5], np.abs(codes).sum()), (127, -127, 254))

    def test_nan_and_inf(self):
        for element in ELEMENTS:
            x = values((6, 300))
            x[1, 299], x[2, 0], x[3, 150] = np.nan, np.inf, -np.inf
            x[4, 7], x[4, 250] = np.inf, np.nan
            x = vkgemm.to_bf16(x) if element == "bf16" else x.astype(
                {"f16": np.float16, "f32": np.float32}[element])
            with self.subTest(element=element):
                codes, scales = self.assert_right(x)
                self.assertFalse(codes[1:5].any())
                np.testing.assert_array_equal(scales[1:5], [np.nan, np.inf, np.inf, np.nan])
                d = self.device.gemm(codes, np.ones((300, 3), np.int8), row_scales=scales)
                self.assertTrue(np.isnan(d[1:5]).all() and np.isfinite(d[[0, 5]]).all())

    def test_empty(self):
        for shape in ((0, 5), (3, 0), (0, 4, 5), (2, 0, 5), (2, 3, 0)):
            with self.subTest(shape=shape):
                _, scales = self.assert_right(np.ones(shape, np.float16))
                self.assertFalse(scales.any())

    def test_views(self):
        x = values((40, 50))
        for view in (x.T, x[3:, 1::2], x[::-1, 5:42]):
            with self.subTest(strides=view.strides):
                self.assert_right(view)

    def test_a_layer(self):
        """The whole way, against float64: as close as steps of a row and of a column are."""
        for element in ELEMENTS:
            a, b, bias = values((20, 64), element), values((64, 25), element, 1), values((25,))
            bf16 = element == "bf16"
            codes, scales = self.device.quantise_rows(a, bf16=bf16)
            weight, columns = self.device.quantise_rows(b.T, bf16=bf16)
            d = self.device.gemm(codes, weight.T, row_scales=scales, column_scales=columns,
                                 bias=bias, activation="relu")
            left, right = wide(codes) * wide(scales)[:, None], wide(weight).T * wide(columns)
            with self.subTest(element=element):
                assert_close(d, np.maximum(left @ right + wide(bias), 0))
                expected = np.maximum(wide(a) @ wide(b) + wide(bias), 0)
                bound = 0.5 * (wide(scales)[:, None] * np.abs(wide(b)).sum(0)
                               + np.abs(left).sum(1)[:, None] * wide(columns))
                self.assertTrue((np.abs(d - expected) <= bound + 1e-3).all())

    def test_groups_of_floats(self):
        """Scales of groups of columns multiply sums, not elements."""
        a, b = values((20, 200), "f16"), values((200, 24))
        scales = np.abs(values((20, 2))) + np.float32(1)
        weight = vkgemm.quantise(b, "e4m3", group_k=64)
        packed = self.device.pack_codes(weight, element="e4m3")
        left = wide(a) * np.repeat(wide(scales), 128, 1)[:, :200]
        d = self.device.gemm(a, packed, row_scales=scales, out_dtype="f32")
        assert_close(d, left @ wide(weight.elements()))
        with self.assertRaisesRegex(vkgemm.Error, "a_group_k is 128 and a.dtype is f16 and b.dtype is f16 and type is int8"):
            self.device.pack_codes(vkgemm.quantise(b, "int8"), element="e4m3")

    def test_groups_of_columns(self):
        """Codes with a scale for each group, times weights of codes: as their elements."""
        a, b = values((20, 200), "f16"), values((200, 24))
        a[3, 64:128] *= 30
        codes, scales = self.device.quantise_rows(a, group=64)
        self.assertEqual(scales.shape, (20, 4))
        weight = vkgemm.quantise(b, "int4", group_k=32)
        packed = self.device.pack_codes(weight, element="s8")
        left = wide(codes) * np.repeat(wide(scales), 64, 1)[:, :200]
        d = self.device.gemm(codes, packed, row_scales=scales, activation="relu")
        assert_close(d, np.maximum(left @ wide(weight.elements()), 0))
        batch = self.device.gemm(np.stack([codes, codes]), packed, row_scales=np.stack([scales, scales]))
        assert_close(batch[1], left @ wide(weight.elements()))
        codes, scales = self.device.quantise_rows(a)
        left = wide(codes) * wide(scales)[:, None]
        assert_close(self.device.gemm(codes, packed, row_scales=scales), left @ wide(weight.elements()))
        with self.assertRaisesRegex(vkgemm.ArgumentError, "row_scales.shape is .20, 3."):
            self.device.gemm(codes, packed, row_scales=np.ones((20, 3), np.float32))
        with self.assertRaisesRegex(vkgemm.Error, "group_k is 48"):
            self.device.quantise_rows(a, group=48)

    def test_batches(self):
        a, b = values((3, 20, 30), "f16"), values((3, 30, 25), "f16")
        codes, scales = self.device.quantise_rows(a)
        weight, columns = self.device.quantise_rows(b.swapaxes(1, 2))
        self.assertEqual((scales.shape, columns.shape), ((3, 20), (3, 25)))
        d = self.device.gemm(codes, weight.swapaxes(1, 2), row_scales=scales,
                             column_scales=columns)
        left = wide(codes) * wide(scales)[..., None]
        right = wide(weight) * wide(columns)[..., None]
        assert_close(d, left @ right.swapaxes(1, 2))

    def test_a_packed_weight(self):
        a, b = values((20, 64), "f16"), values((64, 32), "f16")
        codes, scales = self.device.quantise_rows(a)
        weight, columns = self.device.quantise_rows(b.T)
        scaled = dict(row_scales=scales, column_scales=columns)
        np.testing.assert_array_equal(
            self.device.gemm(codes, self.device.pack(weight.T), **scaled),
            self.device.gemm(codes, weight.T, **scaled))


class Calls(OnDevice):
    """What is particular to numpy."""

    def test_the_time_is_kept(self):
        self.device.last_ms = None
        self.device.quantise_rows(values((20, 30)))
        self.assertGreater(self.device.last_ms, 0)

    def test_plans_are_kept(self):
        self.device.quantise_rows(values((7, 30)))
        before = len(self.device._plans)
        self.device.quantise_rows(values((7, 30), seed=1))
        self.assertEqual(len(self.device._plans), before)
        self.device.quantise_rows(values((7, 30), "f16"))
        self.assertEqual(len(self.device._plans), before + 1)

    @unittest.skipIf(vkgemm.arrays._bfloat16 is None, "ml_dtypes is not installed")
    def test_arrays_of_ml_dtypes(self):
        bits = values((5, 30), "bf16")
        expected = self.device.quantise_rows(bits, bf16=True)
        for result, wanted in zip(self.device.quantise_rows(bits.view(vkgemm.arrays._bfloat16)),
                                  expected):
            np.testing.assert_array_equal(result, wanted)

    def test_refusals_name_the_argument(self):
        a = values((4, 6))
        for wrong, message in (
                ([[1.0]], "a is list: it must be a numpy array"),
                (a[0], "a.shape is (6,): it must have 2 or 3 dimensions"),
                (a[None, None], "a.shape is (1, 1, 4, 6)"),
                (a.astype(float), "a.dtype is float64: it must be float16, bfloat16 or float32"),
                (a.astype(np.int8), "a.dtype is int8: it must be float16, bfloat16 or float32"),
                (a.astype(np.uint16), "a.dtype is uint16, which needs bf16=True")):
            with self.subTest(message=message):
                with self.assertRaises(vkgemm.ArgumentError) as caught:
                    self.device.quantise_rows(wrong)
                self.assertIn(message, caught.exception.message)

    def test_a_closed_device(self):
        device = vkgemm.Device()
        device.close()
        with self.assertRaises(vkgemm.Error) as caught:
            device.quantise_rows(values((4, 6)))
        self.assertEqual(caught.exception.status, "invalid_handle")
