"""Every family against numpy in float64.

Kernels have tests of their own; these say whether Python asks for what it was asked for.  Operands
are of f32 and of few shapes where nothing depends on it, because each pipeline takes half a second
to compile, of f16 a second, and with a gate several: those run at night.
"""

import numpy as np
from reference import (ACTIVATIONS, GATES, NUMBERED, ROW_CODES, ROW_OPS, ROW_VALUES, OnDevice,
                       assert_close, at_night, by_day, factors, values, wide)

import vkgemm
from vkgemm.binding import enumerator_names


class Gemm(OnDevice):
    def test_types(self):
        for element in ("f16", "bf16", "f32"):
            for out in (None, "f32"):
                with self.subTest(element=element, out=out):
                    a, b = values((20, 30), element), values((30, 25), element)
                    d = self.device.gemm(a, b, out_dtype=out, bf16=True)
                    self.assertEqual(d.dtype, np.float32 if out == "f32" else a.dtype)
                    assert_close(d, wide(a) @ wide(b), out or element)
                    np.testing.assert_array_equal(
                        self.device.gemm(a, b, out_dtype=d.dtype, bf16=True), d)

    def test_shapes(self):
        for m, n, k in ((1, 1, 1), (3, 130, 7), (65, 2, 129), (0, 5, 3), (5, 0, 3), (5, 3, 0)):
            with self.subTest(m=m, n=n, k=k):
                a, b = values((m, k)), values((k, n))
                assert_close(self.device.gemm(a, b), wide(a) @ wide(b))

    def test_transposed_views(self):
        a, b = values((30, 20)), values((25, 30))
        assert_close(self.device.gemm(a.T, b.T), wide(a).T @ wide(b).T)
        self.assertIn("b: f32 col_major", self.device.explain(a.T, b.T))

    def test_strided_views(self):
        a, b = values((40, 60))[::2, ::2], values((30, 75))[:, ::3]
        out = np.full((20, 50), 7, np.float32)
        self.device.gemm(a, b, out=out[:, ::2])
        assert_close(out[:, ::2], wide(a) @ wide(b))
        self.assertTrue((out[:, 1::2] == 7).all())

    def test_batches(self):
        for a_shape, b_shape in (((3, 20, 30), (3, 30, 25)), ((20, 30), (3, 30, 25)),
                                 ((3, 20, 30), (30, 25)), ((0, 20, 30), (30, 25))):
            with self.subTest(a=a_shape, b=b_shape):
                a, b = values(a_shape), values(b_shape)
                assert_close(self.device.gemm(a, b), wide(a) @ wide(b))
        a, b = values((3, 30, 20)), values((3, 25, 30))
        d = self.device.gemm(a.swapaxes(1, 2), b.swapaxes(1, 2))
        assert_close(d, wide(a).swapaxes(1, 2) @ wide(b).swapaxes(1, 2))

    def test_activations(self):
        self.assertEqual([*ACTIVATIONS, *NUMBERED], enumerator_names("VkgemmActivation"))
        a, b = values((20, 30)), values((30, 25))
        product = 0.3 * (wide(a) @ wide(b))
        for name, activation in by_day(ACTIVATIONS.items(), 3):
            with self.subTest(activation=name):
                domain = product >= 0 if name == "sqrt" else product == product
                d = self.device.gemm(a, b, activation=name, alpha=0.3)
                assert_close(d[domain], activation(product[domain]))
                self.assertTrue(np.isnan(d[~domain]).all())

    def test_names_of_pytorch(self):
        a, b = values((20, 30)), values((30, 24))
        np.testing.assert_array_equal(self.device.gemm(a, b, activation="gelu"),
                                      self.device.gemm(a, b, activation="gelu_erf"))
        np.testing.assert_array_equal(self.device.gated(a, b, "geglu"),
                                      self.device.gated(a, b, "geglu_erf"))

    def test_parameters_of_a_gate(self):
        a, b = values((20, 30)), values((30, 24))
        l, r = np.split(wide(a) @ wide(b), 2, axis=1)
        for gate, half, other in (("swiglu", l, r), ("swiglu:swapped", r, l)):
            d = self.device.gated(a, b, f"{gate}:limit=2.5:slope=1.702:offset=1")
            half = np.minimum(half, 2.5)
            expected = half / (1 + np.exp(-1.702 * half)) * (np.clip(other, -2.5, 2.5) + 1)
            assert_close(d, expected)
        with self.assertRaisesRegex(vkgemm.ArgumentError, "'most=3' is no parameter"):
            self.device.gated(a, b, "swiglu:most=3")
        with self.assertRaisesRegex(vkgemm.ArgumentError, "gate is 'glu:limit=x': limit is 'x'"):
            self.device.gated(a, b, "glu:limit=x")
        with self.assertRaisesRegex(vkgemm.ArgumentError, "slope is 0"):
            self.device.gated(a, b, "glu:slope=0")

    def test_bias(self):
        a, b = values((3, 25, 30)), values((30, 25))
        for shape in ((25,), (1, 25), (25, 1), (3, 1, 25), (3, 25, 1)):
            for element in ("f32", "f16") if shape == (25,) else ("f32",):
                with self.subTest(shape=shape, element=element):
                    bias = values(shape, element)
                    d = self.device.gemm(a, b, bias=bias)
                    assert_close(d, wide(a) @ wide(b) + wide(bias))

    def test_c(self):
        a, b = values((3, 20, 30)), values((30, 25))
        for shape in ((20, 25), (3, 20, 25)):
            for beta in (None, 0.5):
                with self.subTest(shape=shape, beta=beta):
                    c = values(shape)
                    d = self.device.gemm(a, b, c=c, beta=beta, alpha=2)
                    expected = 2 * (wide(a) @ wide(b)) + wide(c) * (1 if beta is None else beta)
                    assert_close(d, expected)

    def test_c_that_is_transposed(self):
        a, b, c = values((20, 30)), values((30, 25)), values((25, 20))
        d = self.device.gemm(a, b, c=c.T, alpha=2)
        assert_close(d, 2 * (wide(a) @ wide(b)) + wide(c).T)

    def test_aux_and_clamp(self):
        a, b = values((20, 30)), values((30, 25))
        product = wide(a) @ wide(b)
        d, aux = self.device.gemm(a, b, activation="relu", aux=True, clamp=(None, 2))
        assert_close(d, np.clip(product, 0, 2))
        assert_close(aux, product)
        assert_close(self.device.gemm(a, b, clamp=(-1, None)), np.maximum(product, -1))

    def test_split_k(self):
        a, b = values((16, 2000)), values((2000, 16))
        for slices in (1, 4):
            with self.subTest(slices=slices):
                assert_close(self.device.gemm(a, b, split_k=slices), wide(a) @ wide(b))
                self.assertEqual(slices > 1, f"slices={slices}" in self.device.explain(
                    a, b, split_k=slices))

    def test_config(self):
        a, b = values((20, 30)), values((30, 25))
        config = "fma:tile=16x16x8,fragment=4x4"
        self.assertIn(config, self.device.explain(a, b, config=config))
        assert_close(self.device.gemm(a, b, config=config), wide(a) @ wide(b))

    def test_device_time(self):
        times = []
        for size in (16, 512):
            for _ in range(2):  # the first time the driver compiles
                self.device.gemm(values((size, size)), values((size, size)))
            times.append(self.device.last_ms)
        self.assertGreater(times[0], 0)
        self.assertGreater(times[1], times[0])


class Gated(OnDevice):
    def test_gates(self):
        self.assertEqual(list(GATES), enumerator_names("VkgemmGate"))
        a, b, bias = values((20, 30)), values((30, 48)), values((48,))
        left, right = np.split(0.3 * (wide(a) @ wide(b)) + wide(bias), 2, axis=1)
        for name, gate in by_day(GATES.items(), 1):
            with self.subTest(gate=name):
                d = self.device.gated(a, b, name, bias=bias, alpha=0.3)
                assert_close(d, gate(left, right))

    @at_night
    def test_arrangements(self):
        a, b, bias = values((20, 30)), values((30, 48)), values((48,))
        d, aux = self.device.gated(a, b, "swiglu", bias=bias, aux=True)
        product = wide(a) @ wide(b) + wide(bias)
        assert_close(d, GATES["swiglu"](product[:, :24], product[:, 24:]))
        assert_close(aux, product)
        order = np.arange(48).reshape(2, 24).T.reshape(48)
        same = self.device.gated(a, np.ascontiguousarray(b[:, order]), "swiglu",
                                 gated_b="interleaved", bias=bias[order])
        np.testing.assert_array_equal(same, d)
        same = self.device.gated(a, b[:, :24], "swiglu", gated_b="separate", b_right=b[:, 24:],
                                 bias=bias)
        np.testing.assert_array_equal(same, d)


class Grouped(OnDevice):
    def test_along_m(self):
        a, bias = values((40, 30)), values((3, 1, 25))
        offsets = [2, 19, 19, 37]
        for dtype, shape in ((np.int32, (3, 30, 25)), (np.int64, (30, 25))):
            with self.subTest(dtype=dtype, shape=shape):
                b = values(shape)
                out = np.full((40, 25), 7, np.float32)
                self.device.grouped(a, b, np.array(offsets, dtype), bias=bias, out=out)
                expected = np.full((40, 25), 7.0)
                for g in range(3):
                    rows = slice(offsets[g], offsets[g + 1])
                    own = wide(b)[g] if b.ndim == 3 else wide(b)
                    expected[rows] = wide(a)[rows] @ own + wide(bias)[g]
                assert_close(out, expected)

    def test_rows_of_no_group(self):
        d = self.device.grouped(values((40, 30)), values((30, 25)), np.array([2, 37]))
        self.assertFalse(d[:2].any() or d[37:].any())
        self.assertTrue(d[2:37].any(axis=1).all())

    def test_along_k(self):
        a, b = values((20, 50)), values((50, 25))
        d = self.device.grouped(a, b, np.array([0, 17, 17, 45]), along="k")
        groups = (slice(0, 17), slice(17, 17), slice(17, 45))
        assert_close(d, np.stack([wide(a)[:, g] @ wide(b)[g] for g in groups]))

    @at_night
    def test_gates(self):
        a, offsets = values((40, 30)), np.array([0, 17, 17, 40], np.int32)
        groups = (slice(0, 17), slice(17, 17), slice(17, 40))
        for shape in ((3, 30, 48), (30, 48)):
            b, bias = values(shape), values((48,))
            products = np.concatenate([
                wide(a)[rows] @ (wide(b)[g] if b.ndim == 3 else wide(b)) + wide(bias)
                for g, rows in enumerate(groups)])
            expected = GATES["swiglu"](*np.split(products, 2, axis=1))
            with self.subTest(shape=shape):
                d, aux = self.device.grouped(a, b, offsets, gate="swiglu", bias=bias, aux=True)
                assert_close(d, expected)
                assert_close(aux, products)
                left, right = np.split(b, 2, axis=-1)
                same = self.device.grouped(a, left, offsets, gate="swiglu", gated_b="separate",
                                           b_right=right, bias=bias)
                np.testing.assert_array_equal(same, d)
                self.assertIn("swiglu", self.device.explain(a, b, offsets=offsets, gate="swiglu"))

    @at_night
    def test_gates_along_k(self):
        a, b = values((20, 50)), values((50, 48))
        d = self.device.grouped(a, b, np.array([0, 17, 17, 50]), along="k", gate="geglu_erf")
        products = np.stack([wide(a)[:, g] @ wide(b)[g]
                             for g in (slice(0, 17), slice(17, 17), slice(17, 50))])
        assert_close(d, GATES["geglu_erf"](*np.split(products, 2, axis=-1)))


class RowReduction(OnDevice):
    def test_operations_that_change_d(self):
        a, b, bias = values((20, 30)), values((30, 25)), values((25,))
        product = wide(a) @ wide(b) + wide(bias)
        for op, expected in by_day(ROW_OPS.items()):
            with self.subTest(op=op):
                d = self.device.row_reduction(a, b, op, bias=bias)
                assert_close(d, expected(product))

    def test_factors_and_summands(self):
        a, b, c = values((20, 30)), values((30, 25)), values((20, 25))
        gamma, row_beta = values((25,), "f16", seed=1), values((25,), "f16", seed=2)
        d, aux = self.device.row_reduction(a, b, "layer_norm", gamma=gamma, row_beta=row_beta,
                                           c=c, aux=True)
        before = wide(a) @ wide(b) + wide(c)
        assert_close(d, ROW_OPS["layer_norm"](before) * wide(gamma) + wide(row_beta))
        assert_close(aux, before)

    def test_epsilon(self):
        a, b = values((20, 30)), values((30, 25))
        product = wide(a) @ wide(b)
        d = self.device.row_reduction(a, b, "rms_norm", eps=100)
        assert_close(d, product / np.sqrt(np.mean(product**2, -1, keepdims=True) + 100))

    def test_operations_that_give_values(self):
        self.assertEqual({*ROW_OPS, *ROW_VALUES, *ROW_CODES}, {*enumerator_names("VkgemmRowOp")})
        a, b = values((2, 20, 30)), values((30, 25))
        product = wide(a) @ wide(b)
        for op, expected in by_day(ROW_VALUES.items()):
            with self.subTest(op=op):
                assert_close(self.device.row_reduction(a, b, op), expected(product))
        rows, d = self.device.row_reduction(a, b, "sum", store_d=True)
        assert_close(rows, product.sum(-1))
        assert_close(d, product)


class Scales(OnDevice):
    """row_scales and column_scales, with every type and family."""

    def test_types(self):
        rows, columns = factors((20,)), factors((25,), seed=1)
        for element in ("f16", "bf16", "f32", "s8"):
            a, b = values((20, 30), element), values((30, 25), element)
            product = wide(a) @ wide(b)
            for named, expected in by_day((
                    ({"row_scales": rows, "column_scales": columns},
                     wide(rows)[:, None] * product * wide(columns)),
                    ({"row_scales": rows}, wide(rows)[:, None] * product),
                    ({"column_scales": columns}, product * wide(columns))), 1):
                with self.subTest(element=element, named=list(named)):
                    d = self.device.gemm(a, b, out_dtype="f32", bf16=True, **named)
                    assert_close(d, expected)

    def test_order_of_the_epilogue(self):
        """Scales are of A·B alone, before alpha and all that is added."""
        a, b, c, bias = values((20, 30)), values((30, 25)), values((20, 25)), values((25,))
        rows, columns = factors((20,)), factors((25,), seed=1)
        d, aux = self.device.gemm(a, b, row_scales=rows, column_scales=columns, alpha=30,
                                  c=c, beta=0.5, bias=bias, activation="relu", aux=True)
        before = (30 * wide(rows)[:, None] * wide(columns) * (wide(a) @ wide(b)) + 0.5 * wide(c)
                  + wide(bias))
        assert_close(aux, before)
        assert_close(d, np.maximum(before, 0))

    def test_batches(self):
        a, b = values((3, 20, 30)), values((30, 25))
        product = wide(a) @ wide(b)
        for rows, columns in (((20,), (3, 25)), ((3, 20), (25,)), ((3, 20), (3, 25))):
            with self.subTest(rows=rows, columns=columns):
                rows, columns = factors(rows), factors(columns, seed=1)
                d = self.device.gemm(a, b, row_scales=rows, column_scales=columns)
                assert_close(d, wide(rows)[..., None] * product * wide(columns)[..., None, :])

    def test_strided_views(self):
        a, b = values((20, 30)), values((30, 25))
        rows, columns = factors((40,))[::2], factors((75,), seed=1)[::3]
        d = self.device.gemm(a, b, row_scales=rows, column_scales=columns)
        assert_close(d, wide(rows)[:, None] * wide(columns) * (wide(a) @ wide(b)))

    def test_split_k(self):
        for element in ("f32", "s8"):
            a, b = values((16, 2000), element), values((2000, 16), element)
            rows, columns = factors((16,)), factors((16,), seed=1)
            d = self.device.gemm(a, b, row_scales=rows, column_scales=columns, split_k=4)
            assert_close(d, wide(rows)[:, None] * wide(columns) * (wide(a) @ wide(b)))

    def test_groups_along_m(self):
        a, b, offsets = values((40, 30)), values((3, 30, 25)), np.array([2, 19, 19, 37])
        rows = factors((40,))
        for shape in ((25,), (3, 25)):
            columns = factors(shape, seed=1)
            d = self.device.grouped(a, b, offsets, row_scales=rows, column_scales=columns)
            expected = np.zeros((40, 25))
            for g, part in enumerate((slice(2, 19), slice(19, 19), slice(19, 37))):
                own = columns[g] if columns.ndim == 2 else columns
                expected[part] = wide(rows)[part, None] * wide(own) * (wide(a)[part] @ wide(b)[g])
            with self.subTest(columns=shape):
                assert_close(d, expected)

    def test_groups_along_k(self):
        a, b, offsets = values((20, 50)), values((50, 25)), np.array([0, 17, 17, 45])
        products = np.stack([wide(a)[:, g] @ wide(b)[g]
                             for g in (slice(0, 17), slice(17, 17), slice(17, 45))])
        for rows, columns in (((20,), (25,)), ((3, 20), (3, 25))):
            rows, columns = factors(rows), factors(columns, seed=1)
            d = self.device.grouped(a, b, offsets, along="k", row_scales=rows,
                                    column_scales=columns)
            with self.subTest(rows=rows.shape):
                assert_close(d, wide(rows)[..., None] * products * wide(columns)[..., None, :])

    @at_night
    def test_gates(self):
        rows, columns, bias = factors((20,)), factors((48,), seed=1), values((48,))
        order = np.arange(48).reshape(2, 24).T.reshape(48)
        for element in ("f32", "s8"):
            a, b = values((20, 30), element), values((30, 48), element)
            product = wide(rows)[:, None] * wide(columns) * (wide(a) @ wide(b)) + wide(bias)
            with self.subTest(element=element):
                d = self.device.gated(a, b, "swiglu", row_scales=rows, column_scales=columns,
                                      bias=bias)
                assert_close(d, GATES["swiglu"](product[:, :24], product[:, 24:]))
                same = self.device.gated(
                    a, np.ascontiguousarray(b[:, order]), "swiglu", gated_b="interleaved",
                    row_scales=rows, column_scales=columns[order], bias=bias[order])
                np.testing.assert_array_equal(same, d)
                same = self.device.gated(a, b[:, :24], "swiglu", gated_b="separate",
                                         b_right=b[:, 24:], row_scales=rows,
                                         column_scales=columns, bias=bias)
                np.testing.assert_array_equal(same, d)

    @at_night
    def test_gates_of_groups(self):
        a, b, offsets = values((40, 30)), values((2, 30, 48)), np.array([0, 15, 40])
        rows, columns = factors((40,)), factors((2, 48), seed=1)
        d = self.device.grouped(a, b, offsets, gate="glu", row_scales=rows, column_scales=columns)
        for g, part in enumerate((slice(0, 15), slice(15, 40))):
            product = wide(rows)[part, None] * wide(columns)[g] * (wide(a)[part] @ wide(b)[g])
            assert_close(d[part], GATES["glu"](product[:, :24], product[:, 24:]))

    @at_night
    def test_row_reductions(self):
        rows, columns = factors((20,)), factors((25,), seed=1)
        for element in ("f32", "s8"):
            a, b = values((20, 30), element), values((30, 25), element)
            product = wide(rows)[:, None] * wide(columns) * (wide(a) @ wide(b))
            for op, expected in (("softmax", ROW_OPS["softmax"]), ("max", ROW_VALUES["max"])):
                with self.subTest(element=element, op=op):
                    d = self.device.row_reduction(a, b, op, row_scales=rows, column_scales=columns)
                    assert_close(d, expected(product))
