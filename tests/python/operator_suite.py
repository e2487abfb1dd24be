"""Tests of vkgemm.operators, on CUDA and on the CPU in its place."""

import functools
import unittest
import warnings

import torch
from with_tensors import WithTensors

import vkgemm

try:
    from vkgemm import operators
    WHY = ""
except ImportError as error:
    WHY = str(error)


@functools.cache
def backends(place):
    """torch's own compiler comes last, if it has what it needs on this machine."""
    try:
        torch.compile(lambda x: torch.sin(x) + 1, backend="inductor")(torch.ones(64, device=place))
    except torch._dynamo.exc.TorchDynamoException as error:
        print(f"inductor is not tested: {str(error).splitlines()[0]}")
        return "eager", "aot_eager"
    return "eager", "aot_eager", "inductor"


@unittest.skipIf(WHY, WHY)
class Operators(WithTensors):
    def setUp(self):
        operators.use(self.device)
        torch._dynamo.reset()
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore")  # copies of what torch computed

    def operands(self, element="f32"):
        a, b = self.shared(24, 32, element=element), self.shared(32, 48, element=element)
        offsets = self.device.shared(torch.tensor([2, 9, 24]).to(self.place))
        return a, b, self.shared(48), offsets

    def calls(self, a, b, bias, offsets):
        """Each function's name, its arguments by place and by name."""
        c, gamma = self.shared(24, 48), self.shared(48)
        left, right = b[:, :24], b[:, 24:]
        packed = self.device.pack(b)
        halves = [self.device.pack(half.contiguous(), gated_b="separate") for half in (left, right)]
        coded = self.device.quantise(self.random(32, 48), "int8", group_k=32,
                                     element="bf16" if a.dtype == torch.bfloat16 else "f16")
        yield "gemm", (a, b), {}
        yield "gemm", (a, packed), {"bias": bias, "activation": "gelu", "clamp": (None, 2)}
        yield "gemm", (a, b), {"c": c, "beta": 0.5, "alpha": 2, "aux": True, "split_k": 2,
                               "out_dtype": torch.float32, "max_workspace_bytes": 1 << 24}
        yield "gemm", (a.expand(3, 24, 32), b), {"out_dtype": "f32", "activation": None}
        if a.dtype != torch.float32:
            yield "gemm", (a, coded), {}
        yield "gemm", (a, b), {"activation": "silu", "steps": [
            ("multiply", c), ("derivative", "leaky_relu", c, 0.1), ("add", 0.1), ("maximum", gamma),
            ("store", torch.float32), ("activate", "gelu"), ("store", None)]}
        yield "gated", (a, left, "reglu"), {"steps": [("add", c[:, :12].contiguous()), (
            "store", "f16"), ("sum_columns",)]}
        yield "gated", (a, b, "swiglu"), {"bias": bias, "aux": True}
        yield "gated", (a, left, "geglu"), {"gated_b": "separate", "b_right": right}
        yield "gated", (a, halves[0], "glu"), {"gated_b": "separate", "b_right": halves[1]}
        yield "grouped", (a, b, offsets), {"bias": bias}
        yield "grouped", (a, b.expand(2, 32, 48), offsets), {"gate": "reglu"}
        yield "grouped", (a.t(), a.new_empty(24, 8).copy_(b[:24, :8]), offsets), {"along": "k"}
        rows = self.device.shared(torch.arange(24, dtype=torch.int32).flip(0).to(self.place))
        sizes = offsets[1:] - offsets[:-1]
        yield "grouped", (a[:12], b), {"sizes": sizes, "rows": rows, "gather": 2, "scatter": 30}
        yield "grouped", (a, b.expand(2, 32, 48)), {
            "sizes": sizes, "rows": rows, "scatter": (12, 2), "weights": self.shared(12, 2),
            "b_index": rows[-2:]}
        yield "row_reduction", (a, b, "rms_norm"), {"gamma": gamma, "eps": 1e-3, "c": c}
        yield "row_reduction", (a, b, "logsumexp"), {"store_d": True, "aux": True}
        yield "row_reduction", (a, b, "quantise"), {"bias": bias}
        yield "gemm", (a, b), {"out_dtype": torch.int8, "zero_point": 3, "alpha": 8}
        yield "quantise_rows", (a,), {}

    def assert_same(self, result, expected, name=""):
        many = [value if isinstance(value, tuple) else (value,) for value in (result, expected)]
        self.assertEqual(*map(len, many))
        for one, other in zip(*many):
            self.assertEqual((one.dtype, one.shape, one.device),
                             (other.dtype, other.shape, other.device), name)
            self.assertTrue(torch.equal(one, other), name)

    def test_they_compute_the_same_bits(self):
        for element in ("f32", "f16", "bf16"):
            for name, values, named in self.calls(*self.operands(element)):
                with self.subTest(element=element, name=name, named=list(named)):
                    self.assert_same(getattr(operators, name)(*values, **named),
                                     getattr(self.device, name)(*values, **named))

    def test_torch_compile_takes_them_whole(self):
        for name, values, named in self.calls(*self.operands()):
            def call(name=name, values=values, named=named):
                return getattr(operators, name)(*values, **named)
            expected = call()
            for backend in ("eager", "aot_eager"):
                with self.subTest(name=name, named=list(named), backend=backend):
                    torch._dynamo.reset()
                    compiled = torch.compile(call, fullgraph=True, backend=backend)
                    self.assert_same(compiled(), expected)

    def layer(self):
        weight, bias = self.device.pack(self.shared(32, 32)), self.shared(32)

        def layer(x):
            h = operators.gemm(torch.sin(x), weight, bias=bias, activation="gelu",
                               steps=[("add", x)])
            return torch.cos(h) * operators.row_reduction(h, weight, "mean").unsqueeze(1) + 1
        return layer

    def test_a_function_of_torch_and_operators(self):
        layer, x = self.layer(), self.random(24, 32)
        expected = layer(x)
        for backend in backends(self.place):
            with self.subTest(backend=backend):
                torch._dynamo.reset()
                compiled = torch.compile(layer, fullgraph=True, backend=backend)
                for _ in range(3):
                    torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)

    def test_shapes_that_change(self):
        layer = self.layer()
        for backend in backends(self.place):
            torch._dynamo.reset()
            compiled = torch.compile(layer, fullgraph=True, backend=backend, dynamic=True)
            for rows in (24, 7, 50):
                with self.subTest(backend=backend, rows=rows):
                    x = self.random(rows, 32)
                    torch.testing.assert_close(compiled(x), layer(x), rtol=1e-4, atol=1e-4)

    def test_modules_and_export(self):
        """A packed matrix is an argument, or belongs to a module, and may change."""
        x, bias = self.shared(24, 32), torch.nn.Parameter(self.shared(48), requires_grad=False)
        weights = [self.device.pack(self.shared(32, 48, seed=seed)) for seed in range(2)]

        class Linear(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.bias = weights[0], bias

            def forward(self, x):
                return operators.gemm(x, self.weight, bias=self.bias, activation="silu")
        module = Linear()
        expected = module(x)
        self.assert_same(torch.compile(module, fullgraph=True, backend="aot_eager")(x), expected)
        self.assert_same(torch.export.export(module, (x,)).module()(x), expected)
        compiled = torch.compile(lambda x, weight: operators.gemm(x, weight), fullgraph=True,
                                 backend="aot_eager")
        for weight in (*weights, *weights):
            self.assert_same(compiled(x, weight), self.device.gemm(x, weight))

    def test_opcheck(self):
        a, b, bias, offsets = self.operands()
        weight = self.device.pack(b)
        product = torch.ops.vkgemm.product.default
        for values, named in (((a, b), {}), ((a, b), {"bias": bias, "aux": True, "gate": "glu"}),
                              ((a, None, weight.handle), {"activation": "relu"}),
                              ((a, b), {"offsets": offsets}),
                              ((a, b), {"offsets": offsets, "scatter": [30],
                                        "rows": torch.arange(24, dtype=torch.int32).to(self.place)}),
                              ((a, b), {"op": "max", "store_d": True}),
                              ((a, b), {"steps": '[["add", "steps[0][1]"], ["store", null]]',
                                        "t0": bias})):
            with self.subTest(named=list(named)):
                torch.library.opcheck(product, values, named)
        torch.library.opcheck(torch.ops.vkgemm.quantise_rows.default, (a,))

    def test_gradients_are_refused(self):
        a, b, bias, _ = self.operands()
        parameter = torch.nn.Parameter(bias)
        for call, name in ((lambda: operators.gemm(a, b, bias=parameter), "bias"),
                           (lambda: operators.quantise_rows(a.clone().requires_grad_()), "a")):
            with self.assertRaises(vkgemm.ArgumentError) as caught:
                call()
            self.assertIn(f"{name}.requires_grad is True, and vkgemm computes no gradients",
                          caught.exception.message)
        with self.assertRaisesRegex(Exception, "vkgemm computes no gradients"):
            torch.compile(lambda: operators.gemm(a, b, bias=parameter), fullgraph=True,
                          backend="aot_eager")()
        with self.assertRaisesRegex(vkgemm.ArgumentError, r"steps\[1\]\[1\].requires_grad is True"):
            operators.gemm(a, b, steps=[("add", 1), ("add", parameter)])
        for context in (torch.no_grad, torch.inference_mode):
            with context():
                self.assert_same(operators.gemm(a, b, bias=parameter),
                                 self.device.gemm(a, b, bias=bias))

    def test_refusals(self):
        a, b, _, _ = self.operands()
        packed = self.device.pack(b)
        handle = packed.handle
        for call, message in (
                (lambda: operators.gemm(a, b, out=a), "gemm() got 'out': its arguments are a, b, "),
                (lambda: operators.gemm(a, b, residual=b), "did you mean 'c'?"),
                (lambda: operators.gemm(a, b[1:]), "b.shape is (31, 48): 32 rows are needed"),
                (lambda: operators.gemm(a, b, steps=[("add", 1), ("store", a)]), "steps[1][1] is a "
                 "tensor: an operator stores to a new one, ('store', dtype)"),
                (lambda: operators.gemm(a, b, steps=[("ad", 1)]), "did you mean 'add'?"),
                (lambda: operators.gemm(a, b, activation="gelo"), "did you mean 'gelu"),
                (lambda: operators.gemm(torch.empty(4, 6, device="meta"), b), "b.shape is (32, 48)")):
            with self.subTest(message=message), self.assertRaises(vkgemm.ArgumentError) as caught:
                call()
            self.assertIn(message, caught.exception.message)
        with self.assertRaisesRegex(Exception, "32 rows are needed"):
            torch.compile(lambda: operators.gemm(a, b[1:]), fullgraph=True, backend="eager")()
        with self.assertRaisesRegex(Exception, "did you mean 'activation'"):
            torch.compile(lambda: operators.gemm(a, b, activaton="relu"), fullgraph=True,
                          backend="eager")()
        del packed
        with self.assertRaisesRegex(vkgemm.Error, "the packed matrix .* is gone"):
            torch.ops.vkgemm.product.default(a, None, handle)
        del operators._devices[a.device]
        with self.assertRaisesRegex(vkgemm.ArgumentError, "which no Device serves: call"):
            operators.gemm(a, b)
