"""Steps of the epilogue, against numpy in float64."""

import unittest

import numpy as np
from reference import (ACTIVATIONS, GATES, NUMBERED, ROW_OPS, OnDevice, assert_close, by_day,
                       values, wide)

import vkgemm
from vkgemm.binding import enumerator_names

OPERATIONS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply,
              "divide": np.divide, "maximum": np.maximum, "minimum": np.minimum}


def derivative(activation, x):
    return (activation(x + 1e-6) - activation(x - 1e-6)) / 2e-6


class Steps(OnDevice):
    def setUp(self):
        self.a, self.b = values((20, 30)), values((30, 25))
        self.product = wide(self.a) @ wide(self.b)
        self.c = np.abs(values((20, 25), seed=1)) + np.float32(0.5)

    def test_operations(self):
        self.assertEqual(["none", *OPERATIONS, "activate", "derivative", "store", "sum_columns", "amax",
                          "argument", "function"], enumerator_names("VkgemmStepOp"))
        for name, operation in OPERATIONS.items():
            with self.subTest(name=name):
                d = self.device.gemm(self.a, self.b, steps=[(name, self.c), (name, 1.5)])
                assert_close(d, operation(operation(self.product, wide(self.c)), 1.5))

    def test_order_of_the_epilogue(self):
        """Steps are between the activation and the clamp."""
        d, aux = self.device.gemm(self.a, self.b, alpha=0.5, bias=self.c[0], activation="relu",
                                  aux=True, clamp=(-2, 3), steps=[("subtract", self.c)])
        before = 0.5 * self.product + wide(self.c)[0]
        assert_close(aux, before)
        assert_close(d, np.clip(np.maximum(before, 0) - wide(self.c), -2, 3))

    def test_shapes_and_types(self):
        for i, shape in enumerate([(), (1,), (1, 1), (25,), (1, 25), (20, 1), (20, 25)]):
            x = values(shape, ("f16", "bf16", "f32")[i % 3], seed=2)
            x = np.asarray(x)
            with self.subTest(shape=shape, dtype=x.dtype):
                d = self.device.gemm(self.a, self.b, steps=[("add", x)], bf16=True)
                assert_close(d, self.product + wide(x))
        for element in by_day(("f16", "bf16"), 1):
            a, b, x = (values(shape, element) for shape in ((20, 30), (30, 25), (20, 25)))
            d = self.device.gemm(a, b, steps=[("multiply", x)], bf16=True)
            self.assertEqual(d.dtype, a.dtype)
            assert_close(d, wide(a) @ wide(b) * wide(x), element)

    def test_numbers(self):
        for number in (2, True, np.float32(0.1), np.float64(-3), float("inf")):
            with self.subTest(number=number):
                d = self.device.gemm(self.a, self.b, steps=[("minimum", number)])
                assert_close(d, np.minimum(self.product, float(np.float32(number))))

    def test_views(self):
        wider = values((40, 50), seed=3)
        views = (wider.T[:20, :25], values((25, 20), seed=3).T, wider[::2, ::2], wider[:1, ::2],
                 wider[::2, :1], np.broadcast_to(wider[0, :25], (20, 25)), wider[3, 4:29])
        for view in views:
            with self.subTest(shape=view.shape, strides=view.strides):
                d = self.device.gemm(self.a, self.b, steps=[("add", view)])
                assert_close(d, self.product + wide(view))
        self.assertIn("t0: f32 col_major", self.device.explain(
            self.a, self.b, steps=[("add", views[1])]))

    def test_one_row_and_one_column(self):
        for m, n in ((1, 25), (20, 1), (1, 1)):
            a, b = values((m, 30)), values((30, n))
            for shape in ((), (1,), (n,), (1, n), (m, 1), (m, n)):
                with self.subTest(m=m, n=n, shape=shape):
                    x = np.asarray(values(shape, seed=4))
                    d = self.device.gemm(a, b, steps=[("multiply", x), ("store", None)])[0]
                    assert_close(d, wide(a) @ wide(b) * wide(x))

    def test_batches_of_matrices(self):
        a = values((3, 20, 30))
        product = wide(a) @ wide(self.b)
        for shape in ((3, 20, 25), (20, 25), (3, 1, 25), (25,), (3, 20, 1), (20, 1), (3, 1, 1),
                      (1, 20, 25), (1, 1, 25), (1,)):
            with self.subTest(shape=shape):
                x = values(shape, seed=5)
                assert_close(self.device.gemm(a, self.b, steps=[("add", x)]), product + wide(x))

    def test_activations(self):
        steps = [(("activate", name), function) for name, function in ACTIVATIONS.items()
                 if name not in ("none", "sqrt")]
        steps += [(("activate", name, 0.25), lambda x, f=function: f(x, 0.25))
                  for name, function in NUMBERED.items()]
        for step, function in by_day(reversed(steps), 4):
            with self.subTest(step=step):
                d = self.device.gemm(self.a, self.b, alpha=0.3, steps=[step])
                assert_close(d, function(0.3 * self.product))
        np.testing.assert_array_equal(
            self.device.gemm(self.a, self.b, steps=[("activate", "gelu")]),
            self.device.gemm(self.a, self.b, activation="gelu_erf"))

    def test_derivatives(self):
        steps = [(("derivative", name, self.c), function) for name, function in ACTIVATIONS.items()
                 if name != "none"]
        steps += [(("derivative", name, -self.c, 0.25), lambda x, f=function: f(-x, 0.25))
                  for name, function in NUMBERED.items()]
        for step, function in by_day(reversed(steps), 4):
            with self.subTest(name=step[1]):
                sign = -1 if len(step) == 4 else 1
                d = self.device.gemm(self.a, self.b, steps=[step])
                assert_close(d, sign * self.product * derivative(function, wide(self.c)))

    def test_one_array_in_many_steps(self):
        c = self.c
        steps = [("multiply", c), ("add", c), ("maximum", c), ("subtract", c[0]), ("divide", c)]
        d = self.device.gemm(self.a, self.b, steps=steps)
        x = wide(c)
        assert_close(d, (np.maximum(self.product * x + x, x) - x[0]) / x)
        self.assertNotIn("t2:", self.device.explain(self.a, self.b, steps=steps))

    def test_stores(self):
        out, whole = np.zeros((20, 25), np.float16), np.full((20, 50), 7, np.float32)
        d, new, last = self.device.gemm(
            self.a, self.b, activation="relu",
            steps=[("store", out), ("add", 1), ("store", "float16"), ("store", whole[:, ::2]),
                   ("multiply", 2), ("store", None)])
        relu = np.maximum(self.product, 0)
        self.assertEqual((new.dtype, last.dtype), (np.float16, np.float32))
        for actual, expected, element in (
                (d, 2 * (relu + 1), "f32"), (new, relu + 1, "f16"), (last, 2 * (relu + 1), "f32"),
                (out, relu, "f16"), (whole[:, ::2], relu + 1, "f32")):
            assert_close(actual, expected, element)
        self.assertTrue((whole[:, 1::2] == 7).all())

    def test_sums_of_columns(self):
        d, z, sums, last = self.device.gemm(
            self.a, self.b, steps=[("store", None), ("multiply", self.c), ("sum_columns",),
                                   ("add", 1), ("store", "float16")])
        before = self.product
        self.assertEqual((sums.shape, sums.dtype), ((25,), np.float32))
        assert_close(z, before)
        assert_close(sums, (before * wide(self.c)).sum(0))
        assert_close(d, before * wide(self.c) + 1)
        assert_close(last, d, "f16")
        self.assertIn("t1[j] = sum over i of ", self.device.explain(
            self.a, self.b, steps=[("store", None), ("sum_columns",)]))
        with self.assertRaisesRegex(vkgemm.Error, "only one step may be"):
            self.device.gemm(self.a, self.b, steps=[("sum_columns",), ("sum_columns",)])

    def test_sums_of_columns_of_matrices(self):
        a = values((3, 20, 30))
        d, sums = self.device.gemm(a, self.b, steps=[("sum_columns",)])
        self.assertEqual(sums.shape, (3, 25))
        assert_close(sums, (wide(a) @ wide(self.b)).sum(1))
        _, sums = self.device.gemm(self.a[:0], self.b, steps=[("sum_columns",)])
        self.assertFalse(sums.any())
        a, offsets = values((40, 30)), np.array([2, 19, 19, 37])
        _, sums = self.device.grouped(a, self.b, offsets, steps=[("sum_columns",)])
        product = wide(a) @ wide(self.b)
        assert_close(sums, np.stack([product[2:19].sum(0), np.zeros(25), product[19:37].sum(0)]))
        _, sums = self.device.grouped(a.T, values((40, 25)), offsets, along="k",
                                      steps=[("sum_columns",)])
        self.assertEqual(sums.shape, (3, 25))
        rows, sums = self.device.row_reduction(self.a, self.b, "max", steps=[("sum_columns",)])
        assert_close(rows, self.product.max(1))
        assert_close(sums, self.product.sum(0))

    def test_masks(self):
        d, mask = self.device.gemm(self.a, self.b, activation="relu", steps=[("store", "mask")])
        self.assertEqual((mask.shape, mask.dtype), ((20, 4), np.uint8))
        bits = np.unpackbits(mask, axis=-1, bitorder="little")
        np.testing.assert_array_equal(bits[:, :25], d > 0)
        self.assertFalse(bits[:, 25:].any())
        for step, expected in ((("derivative", "relu", mask, "mask"), self.product * (d > 0)),
                               (("multiply", mask, "mask"), self.product * (d > 0)),
                               (("add", mask, "mask"), self.product + (d > 0))):
            with self.subTest(op=step[0]):
                assert_close(self.device.gemm(self.a, self.b, steps=[step]), expected)
        out = np.full((20, 4), 255, np.uint8)
        self.device.gemm(self.a, self.b, steps=[("store", out, "mask")])
        np.testing.assert_array_equal(np.unpackbits(out, axis=-1, bitorder="little")[:, :25],
                                      bits[:, :25])
        a = values((3, 20, 30))
        d, mask = self.device.gemm(a, self.b, steps=[("store", "mask")])
        self.assertEqual(mask.shape, (3, 20, 4))
        back = self.device.gemm(a, self.b, steps=[("multiply", mask, "mask")])
        np.testing.assert_array_equal(back, np.maximum(d, 0))
        for steps, message in (
                ([("multiply", self.c, "mask")], "steps[0][1].shape is (20, 25): a mask of D must "
                 "be (20, 4)"),
                ([("multiply", np.zeros((20, 4), np.int8), "mask")], "steps[0][1].dtype is int8"),
                ([("add", out, "mask"), ("add", out)], "steps[1][1] is also steps[0][1]: an array "
                 "is a mask in all steps or in none"),
                ([("activate", "relu", "mask")], "activate has no array that is a mask"),
                ([("add", 3, "mask")], "steps[0][1] is 3: it must be an array")):
            with self.subTest(message=message):
                with self.assertRaises(vkgemm.ArgumentError) as caught:
                    self.device.gemm(self.a, self.b, steps=steps)
                self.assertIn(message, caught.exception.message)

    def test_amax(self):
        a = values((3, 20, 30))
        d, amax = self.device.gemm(a, self.b, steps=[("multiply", -2), ("amax",), ("add", 1)])
        product = wide(a) @ wide(self.b)
        self.assertEqual((amax.shape, amax.dtype), ((1,), np.float32))
        assert_close(amax, np.abs(2 * product).max(keepdims=True)[0, 0])
        assert_close(d, 1 - 2 * product)
        rows = self.device.row_reduction(self.a, self.b, "amax")
        assert_close(rows, np.abs(self.product).max(1))
        with self.assertRaisesRegex(vkgemm.Error, "only one step may be"):
            self.device.gemm(self.a, self.b, steps=[("amax",), ("amax",)])

    def test_functions(self):
        try:
            f = vkgemm.epilogue("value * sigmoid(1.702 * value) + x0 * x1", "quick_gelu")
        except vkgemm.Error as error:
            if error.status == "missing_feature":
                self.skipTest(error.message)
            raise
        quick = self.product / (1 + np.exp(-1.702 * self.product))
        d = self.device.gemm(self.a, self.b, steps=[("function", f, self.c, 2)])
        assert_close(d, quick + 2 * wide(self.c))
        d = self.device.gemm(self.a, self.b, steps=[("function", f, self.c[0], self.c[:, :1]),
                                                    ("add", 1)])
        assert_close(d, quick + wide(self.c[0]) * wide(self.c[:, :1]) + 1)
        g = vkgemm.epilogue("""
            float half_of(float x) { return 0.5 * x; }
            float vkgemm_epilogue(float value, uvec2 at, vec4 x) {
                return float(at.x) + half_of(float(at.y));
            }""")
        d = self.device.gemm(self.a, self.b, steps=[("function", g)])
        np.testing.assert_array_equal(d, np.arange(20)[:, None] + np.arange(25) / 2)
        with self.assertRaisesRegex(vkgemm.ArgumentError, "line 1: 'values' : undeclared"):
            vkgemm.epilogue("2 * values")
        with self.assertRaisesRegex(vkgemm.ArgumentError, "an epilogue calls one function"):
            self.device.gemm(self.a, self.b, steps=[("function", f), ("function", g)])
        h = vkgemm.epilogue("""
            layout(std430, binding = 0) buffer Memory { float words[]; };
            float vkgemm_epilogue(float value, uvec2 at, vec4 x) { return words[at.x]; }""", "reads")
        with self.assertRaisesRegex(vkgemm.Error, "function reads: it .*storage class"):
            self.device.gemm(self.a, self.b, steps=[("function", h)])

    def test_gradients_of_a_layer(self):
        """y = relu(x·w + bias) before a weight v, against numpy, and torch's autograd if it is there."""
        x, w, bias = values((40, 30)), values((30, 25), seed=1), values((25,), seed=2)
        v, g = values((25, 12), seed=3), values((40, 12), seed=4)
        y, z = self.device.gemm(x, w, bias=bias, activation="relu", aux=True)
        dz, dbias = self.device.gemm(g, v.T, steps=[("derivative", "relu", z), ("sum_columns",)])
        dw = self.device.gemm(x.T, dz)
        assert_close(y, np.maximum(wide(x) @ wide(w) + wide(bias), 0))
        expected = wide(g) @ wide(v).T * (wide(x) @ wide(w) + wide(bias) > 0)
        gradients = [expected.sum(0), wide(x).T @ expected]
        try:
            import torch
        except ImportError:
            pass
        else:
            leaves = [torch.tensor(wide(array), requires_grad=True) for array in (bias, w)]
            layer = torch.relu(torch.tensor(wide(x)) @ leaves[1] + leaves[0])
            (layer @ torch.tensor(wide(v))).backward(torch.tensor(wide(g)))
            for gradient, leaf in zip(gradients, leaves):
                np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=1e-9, atol=1e-9)
        assert_close(dbias, gradients[0])
        assert_close(dw, gradients[1])

    def test_stores_beside_aux_and_transposed(self):
        out = np.zeros((25, 20), np.float32)
        d, aux, new = self.device.gemm(
            self.a, self.b, activation="relu", aux=True, out_dtype=np.float16,
            steps=[("store", out.T), ("add", 1), ("store", None)])
        assert_close(d, np.maximum(self.product, 0) + 1, "f16")
        assert_close(aux, self.product, "f16")
        assert_close(out.T, np.maximum(self.product, 0))
        np.testing.assert_array_equal(new, d)

    def test_a_store_alone_returns_one_array(self):
        out = np.zeros((20, 25), np.float32)
        d = self.device.gemm(self.a, self.b, steps=[("store", out)])
        np.testing.assert_array_equal(d, out)

    def test_gates_with_a_residual(self):
        b, c = values((30, 48)), values((20, 24), "f16")
        d = self.device.gated(self.a, b, "swiglu", steps=[("add", c)])
        left, right = np.split(wide(self.a) @ wide(b), 2, axis=1)
        assert_close(d, GATES["swiglu"](left, right) + wide(c))

    def test_groups_along_m(self):
        a, b, offsets = values((40, 30)), values((3, 30, 25)), np.array([2, 19, 19, 37])
        groups = [slice(2, 19), slice(19, 19), slice(19, 37)]
        product = np.zeros((40, 25))
        for g, rows in enumerate(groups):
            product[rows] = wide(a)[rows] @ wide(b)[g]
        for shape in ((40, 25), (40, 1), (25,), (3, 1, 25), (3, 1, 1), ()):
            x = np.asarray(values(shape, seed=6))
            expected = np.zeros((40, 25))
            for g, rows in enumerate(groups):
                own = wide(x)[g] if x.ndim == 3 else wide(np.broadcast_to(x, (40, 25)))[rows]
                expected[rows] = product[rows] + own
            with self.subTest(shape=shape):
                d, new = self.device.grouped(a, b, offsets, steps=[("store", "f16"), ("add", x)])
                assert_close(d, expected)
                assert_close(new, product, "f16")

    def test_groups_along_k(self):
        a, b = values((20, 50)), values((50, 25))
        product = np.stack([wide(a)[:, g] @ wide(b)[g]
                            for g in (slice(0, 17), slice(17, 17), slice(17, 45))])
        for shape in ((3, 20, 25), (3, 20, 1), (3, 1, 25)):
            with self.subTest(shape=shape):
                x = values(shape, seed=7)
                d = self.device.grouped(a, b, np.array([0, 17, 17, 45]), along="k",
                                        steps=[("subtract", x)])
                assert_close(d, product - wide(x))

    def test_row_reductions(self):
        rows, d, new = self.device.row_reduction(
            self.a, self.b, "sum", store_d=True, steps=[("multiply", self.c), ("store", None)])
        expected = self.product * wide(self.c)
        assert_close(rows, expected.sum(-1))
        assert_close(d, expected)
        assert_close(new, expected)
        d = self.device.row_reduction(self.a, self.b, "rms_norm", steps=[("add", self.c)])
        assert_close(d, ROW_OPS["rms_norm"](self.product + wide(self.c)))

    def test_integers(self):
        a, b = values((20, 30), "s8"), values((30, 25), "s8")
        d = self.device.gemm(a, b, steps=[("multiply", 0.5)])
        self.assertEqual(d.dtype, np.float32)
        assert_close(d, wide(a) @ wide(b) / 2)

    def test_split_k(self):
        a, b = values((16, 2000)), values((2000, 16))
        x = values((16, 16), seed=8)
        d = self.device.gemm(a, b, split_k=4, steps=[("add", x)])
        assert_close(d, wide(a) @ wide(b) + wide(x))

    def test_a_batch_of_calls(self):
        """A stored array and a result are operands of later calls."""
        out = np.zeros((20, 25), np.float32)
        weight = values((25, 25), seed=9) / np.float32(5)

        def calls():
            d = self.device.gemm(self.a, self.b, steps=[("store", out), ("activate", "relu")])
            e = self.device.gemm(d, weight, steps=[("add", d), ("derivative", "relu", out)])
            return d, e, self.device.gemm(out, weight)
        expected = [result.copy() for result in (*calls(), out)]
        out[:] = 0
        with self.device.batch():
            results = calls()
        for result, wanted in zip((*results, out), expected):
            np.testing.assert_array_equal(result, wanted)

    def test_tuning(self):
        steps = [("multiply", self.c), ("store", None)]
        result = self.device.tune(self.a, self.b, steps=steps, budget_ms=50)
        self.assertIn(result.config, self.device.explain(self.a, self.b, steps=steps))

    def test_no_steps(self):
        np.testing.assert_array_equal(self.device.gemm(self.a, self.b, steps=[]),
                                      self.device.gemm(self.a, self.b))

    def test_refusals(self):
        c, one = self.c, np.ones((20, 25), np.float32)
        frozen = np.zeros((20, 25), np.float32)
        frozen.flags.writeable = False
        for steps, message, named in (
                ("silu", "steps is 'silu': it must be a list of tuples", {}),
                (("add", 3), "steps[0] is 'add': it must be a tuple such as ('add', 0.5)", {}),
                ([c], "steps[0] is ndarray: it must be a tuple", {}),
                ([("add", 1), ("multipli", c)], "steps[1][0] is 'multipli': it must be one of none, "
                 "add, subtract, multiply, divide, maximum, minimum, activate, derivative, store, "
                 "sum_columns, amax, argument, function; "
                 "did you mean 'multiply'?", {}),
                ([("multiply",)], "steps[0] is ('multiply',): it must be ('multiply', x)", {}),
                ([("add", c, 3)], "it must be ('add', x)", {}),
                ([("activate",)], "it must be ('activate', name, [number])", {}),
                ([("derivative", "relu")], "it must be ('derivative', name, x, [number])", {}),
                ([("add", "c")], "steps[0][1] is 'c': it must be a number or an array", {}),
                ([("add", None)], "steps[0][1] is None: it must be a number or an array", {}),
                ([("add", np.nan)], "steps[0][1] is NaN", {}),
                ([("add", c[1:])], "steps[0][1].shape is (19, 25): it must broadcast to D, "
                 "(20, 25)", {}),
                ([("add", c.astype(float))], "steps[0][1].dtype is float64", {}),
                ([("add", c.astype(np.int32))], "steps[0][1].dtype is int32", {}),
                ([("activate", "siluu")], "steps[0][1] is 'siluu': it must be one of", {}),
                ([("activate", "elu")], "steps[0].number is 0: elu needs its number", {}),
                ([("activate", "elu", "x")], "steps[0][2] is 'x': it must be a number", {}),
                ([("activate", "relu", 3)], "steps[0].number is 3", {}),
                ([("derivative", "relu", 2)], "steps[0][2] is 2: it must be an array", {}),
                ([("sum_columns", c)], "it must be ('sum_columns',)", {}),
                ([("store", "flaot16")], "steps[0][1] is 'flaot16': it must be float16", {}),
                ([("store", c[1:])], "steps[0][1].shape is (19, 25): it must be (20, 25)", {}),
                ([("store", c.astype(int))], "steps[0][1].dtype is int64", {}),
                ([("store", frozen)], "steps[0][1].flags.writeable is False", {}),
                ([("add", c), ("store", c)], "steps[1][1] is also steps[0][1]", {}),
                ([("store", c), ("store", c)], "steps[1][1] is also steps[0][1]", {}),
                ([("store", one)], "steps[0][1] overlaps another array", {"out": one}),
                ([("store", one), ("store", one[:])], "steps[1][1] overlaps another array", {}),
                ([("add", 1)] * 9, "steps has 9 steps, with the arguments of functions: it must "
                 "have at most 8", {}),
                ([("function", "relu")], "steps[0] is ('function', 'relu'): it must be ('function', "
                 "f, x0, …)", {}),
                ([("add", c + i) for i in range(5)], "steps[4] has one array too many: c, bias, "
                 "aux and the arrays of steps are at most 4 in all", {}),
                ([("add", c), ("store", None)], "steps[1] has one array too many",
                 {"c": c, "aux": True, "bias": c[0]}),
                ([("activate", "none")], "steps[0].activation is none", {}),
                ([("add", self.device.pack(c))], "steps[0][1] is PackedMatrix", {})):
            with self.subTest(message=message):
                with self.assertRaises(vkgemm.ArgumentError) as caught:
                    self.device.gemm(self.a, self.b, steps=steps, **named)
                self.assertIn(message, caught.exception.message)
        with self.assertRaisesRegex(vkgemm.ArgumentError, "activation is elu: it takes a number, "
                                    "so it must be a step"):
            self.device.gemm(self.a, self.b, activation="elu")
        with self.assertRaises(vkgemm.Error) as caught:
            self.device.gemm(*(values(shape, "s8") for shape in ((4, 6), (6, 8))),
                             out_dtype="s32", steps=[("add", 1)])
        self.assertEqual(caught.exception.status, "unsupported")


del OnDevice

if __name__ == "__main__":
    unittest.main()
