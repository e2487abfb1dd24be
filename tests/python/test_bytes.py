"""Results and operands of 8 bits, against numpy."""

import unittest

import numpy as np
from reference import OnDevice, values, wide

import vkgemm

FROM = {"e4m3": vkgemm.from_e4m3, "e5m2": vkgemm.from_e5m2}
TO = {"e4m3": vkgemm.to_e4m3, "e5m2": vkgemm.to_e5m2}
LARGEST = {"e4m3": 448, "e5m2": 57344}
CODES = np.arange(256, dtype=np.uint8)


class Conversions(unittest.TestCase):
    def test_every_code(self):
        for kind, to in TO.items():
            numbers = FROM[kind](CODES)
            finite = np.isfinite(numbers)
            np.testing.assert_array_equal(to(numbers)[finite], CODES[finite])
            self.assertEqual(numbers[finite].max(), LARGEST[kind])
            self.assertTrue(np.isnan(FROM[kind](to([np.nan]))).all())
            self.assertEqual(FROM[kind](to([np.inf, -1e9])).tolist(),
                             [LARGEST[kind], -LARGEST[kind]])

    def test_ties_go_to_even(self):
        for kind, to in TO.items():
            numbers = FROM[kind](CODES[:128]).astype(np.float64)
            numbers = numbers[np.isfinite(numbers)]
            ties = (numbers[1:] + numbers[:-1]) / 2
            low = np.arange(len(ties))
            np.testing.assert_array_equal(to(ties), low + low % 2)
            np.testing.assert_array_equal(to(np.nextafter(ties, 0)), low)
            np.testing.assert_array_equal(to(-np.nextafter(ties, np.inf)), low + 1 | 0x80)


class Bytes(OnDevice):
    def setUp(self):
        self.a = np.round(values((20, 30)) * 3).astype(np.float32)
        self.b = np.round(values((30, 25)) * 3).astype(np.float32)
        self.product = wide(self.a) @ wide(self.b)  # integers: exact

    def test_integers(self):
        for name, dtype, zero in (("s8", np.int8, 0), ("u8", np.uint8, 100)):
            limits = np.iinfo(dtype)
            with self.subTest(dtype=dtype):
                d, aux = self.device.gemm(self.a, self.b, out_dtype=dtype, zero_point=zero,
                                          aux=True)
                self.assertEqual((d.dtype, aux.dtype), (dtype, dtype))
                expected = np.clip([self.product + zero, self.product], limits.min, limits.max)
                np.testing.assert_array_equal([d, aux], expected)
                same = self.device.gemm(self.a, self.b, out_dtype=name, zero_point=zero)
                np.testing.assert_array_equal(same, d)

    def test_floats(self):
        for kind, to in TO.items():
            d = self.device.gemm(self.a, self.b, out_dtype=kind)
            self.assertEqual(d.dtype, np.uint8)
            np.testing.assert_array_equal(d, to(self.product + 0.0))
            out = np.empty((20, 25), np.uint8)
            self.assertIs(self.device.gemm(self.a, self.b, out_dtype=kind, out=out), out)
            np.testing.assert_array_equal(out, d)

    def test_operands(self):
        c = np.arange(500, dtype=np.int64).reshape(20, 25).astype(np.uint8)
        x = np.arange(-12, 13).astype(np.int8)
        d = self.device.gemm(self.a, self.b, c=c, steps=[("add", x), ("store", "s8")])
        expected = self.product + c + x
        np.testing.assert_array_equal(d[0], expected)
        np.testing.assert_array_equal(d[1], np.clip(expected, -128, 127))

    def test_refusals(self):
        with self.assertRaisesRegex(vkgemm.ArgumentError, "zero_point is 1 and out_dtype is f32"):
            self.device.gemm(self.a, self.b, zero_point=1)
        with self.assertRaisesRegex(vkgemm.ArgumentError, "zero_point is 0.5"):
            self.device.gemm(self.a, self.b, out_dtype="s8", zero_point=0.5)

    def test_rows_of_codes(self):
        """Codes and scales of a product are those of its D, and the input of the next product."""
        v = self.device.gemm(self.a, self.b, activation="relu")
        codes, scales = self.device.quantise_rows(v)
        d, rows = self.device.row_reduction(self.a, self.b, "quantise", activation="relu")
        self.assertEqual(d.dtype, np.int8)
        np.testing.assert_array_equal(d, codes)
        np.testing.assert_array_equal(rows, scales)
        weight, columns = self.device.quantise_rows(values((7, 25)))
        y = self.device.gemm(d, weight.T, row_scales=rows, column_scales=columns)
        exact = (d.astype(np.int64) @ weight.T.astype(np.int64)) * np.outer(rows, columns)
        np.testing.assert_allclose(y, exact, rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
