"""Tests of torch tensors, on CUDA (test_torch.py) and on the CPU in its place (test_host_tensors.py)."""

import gc
import threading
import warnings

import numpy as np
import test_quantise_rows
import torch
from reference import GATES, ROW_OPS, assert_close
from with_tensors import DTYPES, WithTensors, numbers

import vkgemm


class Tensors(WithTensors):
    """What is particular to tensors."""

    def test_every_family(self):
        for element in DTYPES:
            with self.subTest(element=element), self.nothing_is_copied():
                a, b = self.shared(24, 32, element=element), self.shared(32, 48, element=element)
                bias = self.shared(48)
                product = a.double() @ b.double()
                self.assert_right(self.device.gemm(a, b, bias=bias, activation="relu"),
                                  (product + bias).relu())
                self.assert_right(self.device.gemm(a, b, split_k=2), product)
                self.assert_right(self.device.gemm(a, self.device.pack(b)), product)
                left, right = np.split(numbers(product), 2, axis=1)
                assert_close(numbers(self.device.gated(a, b, "swiglu")),
                             GATES["swiglu"](left, right), element)
                assert_close(numbers(self.device.row_reduction(a, b, "layer_norm")),
                             ROW_OPS["layer_norm"](numbers(product)), element)
                offsets = self.device.shared(torch.tensor([0, 9, 24]).to(self.place))
                self.assert_right(self.device.grouped(a, b, offsets), product)

    def test_steps(self):
        a, b, wide = self.shared(24, 32), self.shared(32, 48), self.shared(40, 100)
        product, out = a.double() @ b.double(), self.device.empty(48, 24, dtype=torch.float16)
        scale = self.shared(100)[7:8]
        steps = [("multiply", wide[3:27, 5:53]), ("add", wide[1, 9:57]), ("store", out.t()),
                 ("divide", scale)]
        before = product * steps[0][1].double() + steps[1][1].double()
        with self.nothing_is_copied():
            for _ in range(2):  # the second by the commands of the first
                self.assert_right(self.device.gemm(a, b, steps=steps), before / scale.double())
                self.assert_right(out.t(), before)
                out.zero_()
                scale.mul_(2)
        results = self.device.gemm(a, b, aux=True, steps=[("store", torch.float16), (
            "add", self.shared(48, 24).t()), ("store", None)])
        self.assertEqual([d.dtype for d in results],
                         [torch.float32, torch.float32, torch.float16, torch.float32])
        self.assertTrue(torch.equal(results[0], results[3]))
        offsets = self.device.shared(torch.tensor([2, 24]).to(self.place))
        _, new = self.device.grouped(a, b, offsets, steps=[("store", None)])
        self.assertFalse(new[:2].any())

    def test_bytes(self):
        if not hasattr(torch, "float8_e4m3fn"):
            self.skipTest("this PyTorch has no 8-bit floats")
        a, b = self.shared(24, 32).round(), self.shared(32, 48).round()
        a, b = self.device.shared(a), self.device.shared(b)
        product = (a.double() @ b.double()).float()  # of integers: exact
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.uint8, torch.int8):
            with self.subTest(dtype=dtype), self.nothing_is_copied():
                d = self.device.gemm(a, b, out_dtype=dtype)
                self.assertEqual(d.dtype, dtype)
                limits = (torch.finfo if dtype.is_floating_point else torch.iinfo)(dtype)
                bounded = product.clamp(limits.min, limits.max)
                self.assertTrue(torch.equal(d.float(), bounded.to(dtype).float()))
                doubled = self.device.gemm(a, b, c=d, out_dtype=torch.float32)
                self.assertTrue(torch.equal(doubled, product + d.float()))
        codes, scales = self.device.row_reduction(a, b, "quantise")
        expected = self.device.quantise_rows(self.device.gemm(a, b))
        self.assertTrue(torch.equal(codes, expected[0]) and torch.equal(scales, expected[1]))

    def test_steps_that_are_copied(self):
        device = self.connected()
        self.addCleanup(device.close)
        a, b = device.shared(self.random(24, 32)), device.shared(self.random(32, 48))
        x, out, count = self.random(24, 48), torch.zeros(24, 48, device=self.place), 0
        product = a.double() @ b.double()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(2):
                count = out._version
                d = device.gemm(a, b, steps=[("add", x), ("store", out), ("multiply", x)])
                self.assert_right(d, (product + x.double()) * x.double())
                self.assert_right(out, product + x.double())
                self.assertGreater(out._version, count)
                out.zero_()
            column = device.shared(self.random(24, 3))[:, 1:2]
            self.assert_right(device.gemm(a, b, steps=[("add", column)]),
                              product + column.double())
        self.assertEqual(dict(device.copies), {"steps[0][1]": 3, "steps[1][1]": 2})
        self.assertIn("steps[0][1] lies in memory that vkgemm did not allocate", str(
            said[0].message))
        self.assertIn("t0: f32 row_major, ld 100", device.explain(
            a, b, steps=[("add", device.shared(self.random(24, 100))[:, :48])]))

    def test_refusals_of_steps(self):
        a, b, c = self.shared(4, 6), self.shared(6, 8), self.shared(4, 8)
        for steps, named, message in (
                ([("add", c[1:])], {}, "steps[0][1].shape is (3, 8): it must broadcast to D, (4, 8)"),
                ([("add", np.ones(8, np.float32))], {},
                 "steps[0][1] is ndarray: it must be a torch tensor"),
                ([("add", c.double())], {}, "steps[0][1].dtype is torch.float64"),
                ([("add", c.clone().requires_grad_())], {}, "steps[0][1].requires_grad is True"),
                ([("add", torch.empty(4, 8, device="meta"))], {}, "steps[0][1] is on meta"),
                ([("store", torch.int8)], {}, "steps[0][1] is torch.int8: it must be torch.float16"),
                ([("store", c), ("add", c)], {}, "steps[1][1] is also steps[0][1]"),
                ([("activate", "elu")], {}, "steps[0].number is 0: elu needs its number")):
            with self.subTest(message=message), self.assertRaises(vkgemm.ArgumentError) as caught:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.device.gemm(a, b, steps=steps, **named)
            self.assertIn(message, caught.exception.message)
        with self.assertRaises(vkgemm.Error) as caught:
            self.device.gemm(a, b, out=c, steps=[("store", c)])
        self.assertEqual(caught.exception.status, "overlapping_operands")

    def test_tuning(self):
        """A call that was recorded is planned anew, also in a batch."""
        a, b = self.shared(24, 32), self.shared(32, 48)
        product = a.double() @ b.double()
        self.assert_right(self.device.gemm(a, b), product)
        with self.device.batch():
            c = self.device.gemm(a, b, alpha=2)
            result = self.device.tune(a, b, budget_ms=50)
            d = self.device.gemm(a, b)
        self.assertIn(result.config, self.device.explain(a, b))
        self.assert_right(c, 2 * product)
        self.assert_right(d, product)
        self.assert_right(self.device.gemm(a, b, alpha=2), 2 * product)

    def test_integers(self):
        generator = torch.Generator().manual_seed(0)
        a, b = (self.device.shared(torch.randint(-128, 128, shape, dtype=torch.int8,
                                                 generator=generator).to(self.place))
                for shape in ((24, 32), (32, 48)))
        rows, columns = self.shared(24), self.shared(48)
        out = self.device.empty(24, 48, dtype=torch.int32)
        with self.nothing_is_copied():
            for _ in range(2):
                d = self.device.gemm(a, b)
                self.device.gemm(a, b, out=out)
                scaled = self.device.gemm(a, b, row_scales=rows, column_scales=columns)
        sums = (numbers(a).astype(int) @ numbers(b)).astype(np.int32)
        for result in (d, out):
            self.assertEqual(result.dtype, torch.int32)
            np.testing.assert_array_equal(numbers(result), sums)
        self.assert_right(scaled, rows.double()[:, None] * columns.double()
                          * torch.from_numpy(sums).to(self.place))
        odd = self.device.empty(33, 48, dtype=torch.int8)
        odd[1:] = b
        with self.nothing_is_copied():  # a view at an address that is not a multiple of 4
            d = self.device.gemm(a[:, 1:], odd.view(-1)[49:49 + 31 * 48].view(31, 48))
        np.testing.assert_array_equal(
            numbers(d), numbers(a)[:, 1:].astype(int)
            @ numbers(odd).reshape(-1)[49:49 + 31 * 48].reshape(31, 48))

    def test_rows_become_codes(self):
        a, weight, wide = (self.shared(20, 64, element="f16"), self.shared(25, 64, element="f16"),
                           self.shared(20, 101))
        with self.nothing_is_copied():
            for view in (a, wide, wide[3:, 5:42], wide[::2], wide.expand(3, 20, 101),
                         wide.view(2, 10, 101)[:, 1:6, 3:], wide[:0], wide[:, :0]):
                for _ in range(2):  # the second by the commands of the first
                    codes, scales = self.device.quantise_rows(view)
                self.assertEqual((codes.dtype, codes.shape), (torch.int8, view.shape))
                self.assertEqual((scales.dtype, scales.shape), (torch.float32, view.shape[:-1]))
                expected = test_quantise_rows.reference(numbers(view))
                np.testing.assert_array_equal(numbers(codes), expected[0])
                np.testing.assert_array_equal(numbers(scales), expected[1])
            codes, rows = self.device.quantise_rows(a)
            right, columns = self.device.quantise_rows(weight)
            d = self.device.gemm(codes, right.t(), row_scales=rows, column_scales=columns)
        self.assert_right(d, (codes.double() * rows.double()[:, None])
                          @ (right.double() * columns.double()[:, None]).t())

    def test_transposed_rows_are_copied_and_it_says_so(self):
        device = self.connected()
        self.addCleanup(device.close)
        b = device.shared(self.random(30, 40))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            codes, scales = device.quantise_rows(b.t())
            device.gemm(b.t(), b)  # which reads it as it lies
        expected = test_quantise_rows.reference(numbers(b).T)
        np.testing.assert_array_equal(numbers(codes), expected[0])
        np.testing.assert_array_equal(numbers(scales), expected[1])
        self.assertEqual([str(one.message).split(":")[0] for one in said],
                         ["a lies with strides (1, 40)"])
        self.assertEqual(said[0].filename, __file__)
        self.assertEqual(dict(device.copies), {"a": 1})

    def test_results_are_tensors_in_shared_memory(self):
        a, b = self.shared(20, 30), self.shared(30, 40)
        with self.nothing_is_copied():
            d, aux = self.device.gemm(a, b, activation="relu", aux=True)
            self.assertEqual((d.device, d.dtype, d.shape), (a.device, a.dtype, (20, 40)))
            again = self.device.gemm(d, b.t())
        self.assert_right(again, aux.double().relu() @ b.double().t())

    def test_views_are_read_as_they_lie(self):
        wide, tall = self.shared(20, 64), self.shared(64, 50)
        with self.nothing_is_copied():
            for a, b in ((wide[:, 3:33], tall[10:40, ::1]), (wide[::2, 8:40], tall[:32, 1:26]),
                         (wide.t()[:20, :], tall[:20]), (wide[3:4, 5:35], tall[30:60, 7:8]),
                         (wide.view(2, 10, 64)[:, 2:7], tall), (wide[:0, :30], tall[:30]),
                         (wide[:8].view(2, 4, 64).transpose(1, 2)[:, :, :3], tall[:3])):
                with self.subTest(a=tuple(a.stride()), b=tuple(b.stride())):
                    self.assert_right(self.device.gemm(a, b), a.double() @ b.double())
            left, right = tall[:30, 1:25], tall[:30, 26:]  # of other alignments
            gated = self.device.gated(wide[:, :30], left, "glu", gated_b="separate", b_right=right)
            a = wide[:, :30].double()
            self.assert_right(gated, (a @ left.double()) * (a @ right.double()).sigmoid())
            out = self.device.empty(20, 64, dtype=torch.float32).zero_()
            returned = self.device.gemm(wide, tall[:, :25], out=out[:, 7:32])
        self.assertEqual(returned.data_ptr(), out[:, 7:32].data_ptr())
        self.assert_right(out[:, 7:32], wide.double() @ tall[:, :25].double())
        self.assertFalse(out[:, :7].any() or out[:, 32:].any())

    def test_other_tensors_are_copied_and_it_says_so(self):
        device = self.connected()
        self.addCleanup(device.close)
        a, b, bias = self.random(20, 30), self.random(30, 40), self.random(40)
        out = self.random(20, 40)
        inner = device.shared(b)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(3):
                d = device.gemm(a, inner, bias=bias, out=out)
                device.gemm(device.shared(a)[:, ::2], inner[::2])
        self.assertIs(d, out)
        self.assert_right(out, a.double() @ b.double() + bias)
        self.assertEqual(dict(device.copies), {"a": 6, "bias": 3, "out": 3})
        self.assertEqual([str(one.message).split(":")[0] for one in said],
                         ["a lies in memory that vkgemm did not allocate",
                          "bias lies in memory that vkgemm did not allocate",
                          "out lies in memory that vkgemm did not allocate",
                          "a lies with strides (30, 2)"])
        self.assertTrue(all(one.filename == __file__ for one in said), said)

    def test_explain_copies_nothing(self):
        with self.nothing_is_copied(), warnings.catch_warnings():
            warnings.simplefilter("error")
            said = self.device.explain(self.random(20, 30), self.random(25, 30).t())
        self.assertIn("b: f32 col_major", said)

    def test_rows_of_no_group(self):
        a, b = self.shared(40, 30), self.shared(30, 25)
        offsets = self.device.shared(torch.tensor([2, 37], dtype=torch.int32).to(self.place))
        for _ in range(3):
            d = self.device.grouped(a, b, offsets)
            self.assertFalse(d[:2].any() or d[37:].any())
            self.assert_right(d[2:37], a[2:37].double() @ b.double())
            d.fill_(7)

    def test_a_cached_call_keeps_its_commands(self):
        a, b = self.shared(20, 30), self.shared(30, 40)
        tensors = self.device._tensors
        for _ in range(3):
            self.device.gemm(a, b, alpha=0.25)
        calls = len(tensors._calls)
        recorded = sum(len(call.recorded) for call in tensors._calls.values())
        for _ in range(100):
            self.device.gemm(a, b, alpha=0.25)
        self.assertEqual(len(tensors._calls), calls)
        self.assertEqual(sum(len(call.recorded) for call in tensors._calls.values()), recorded)

    def test_recordings_are_bounded(self):
        device = self.connected()
        self.addCleanup(device.close)
        tensors = device._tensors or device._shared()
        tensors.max_calls, tensors.max_recordings = 3, 2
        a, b = device.shared(self.random(4, 6)), device.shared(self.random(6, 8))
        for alpha in range(10):
            kept = [device.gemm(a, b, alpha=alpha) for _ in range(5)]
            for d in kept:
                self.assert_right(d, alpha * (a.double() @ b.double()))
        self.assertEqual(len(tensors._calls), 3)
        self.assertLessEqual(max(len(call.recorded) for call in tensors._calls.values()), 2)

    def test_the_last_used_recordings_are_kept(self):
        device = self.connected()
        self.addCleanup(device.close)
        tensors = device._tensors or device._shared()
        tensors.max_recordings = 2
        a, b = device.shared(self.random(4, 6)), device.shared(self.random(6, 8))
        first, second = device.gemm(a, b), device.gemm(a, b)
        kept = {first.data_ptr()}
        del first
        first = device.gemm(a, b)  # where it was, and last used now
        third = device.gemm(a, b)
        self.assertEqual({first.data_ptr()}, kept)
        call, = tensors._calls.values()
        self.assertEqual({address for address, in call.recorded},
                         {first.data_ptr(), third.data_ptr()})
        self.assertNotIn(second.data_ptr(), {first.data_ptr(), third.data_ptr()})

    def test_autograd_sees_what_is_written(self):
        a, b = self.shared(4, 6), self.shared(6, 8)
        x = torch.ones(4, 8, device=self.place, requires_grad=True)
        for out in (self.device.empty(4, 8, dtype=torch.float32).fill_(2),
                    self.device.empty(4, 16, dtype=torch.float32).fill_(2)[:, 3:11],
                    torch.full((4, 8), 2., device=self.place)):
            y = x * out  # which keeps `out` for the gradient
            before = out._version
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.device.gemm(a, b, out=out)
            self.assertGreater(out._version, before)
            self.assert_right(out, a.double() @ b.double())
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                y.sum().backward()
        with torch.inference_mode():  # whose tensors count nothing
            out = self.device.empty(4, 8, dtype=torch.float32)
            self.assertTrue(out.is_inference())
            self.device.gemm(a, b, out=out)
        self.assert_right(out, a.double() @ b.double())

    def test_quantised_tensors_come_by_the_host(self):
        device = self.connected()
        self.addCleanup(device.close)
        a, b = self.random(4, 64, element="f16"), self.random(64, 20)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            weight = device.quantise(b, "int8")
            device.quantise(b, "int8")
        elements = vkgemm.quantise(numbers(b), "int8").elements().astype(np.float16)
        assert_close(numbers(device.gemm(device.shared(a), weight)),
                     numbers(a).astype(float) @ elements, "f16")
        self.assertEqual([str(one.message) for one in said],
                         [f"b lies on {device._tensors.device}: it is copied to the host, in every "
                          "such call"])
        self.assertEqual(said[0].filename, __file__)
        self.assertEqual(dict(device.copies), {"b": 2})
        b[3, 5] = float("nan")
        with self.assertRaisesRegex(vkgemm.ArgumentError, r"b\[3, 5\] is nan"):
            device.quantise(b)

    def test_memory_comes_back(self):
        device = self.connected()
        self.addCleanup(device.close)
        a, b = device.shared(self.random(200, 300)), device.shared(self.random(300, 400))
        kept = device.gemm(a, b)
        before = device._tensors.pool.nbytes
        for _ in range(50):
            d = device.gemm(a, b)
        self.assertLessEqual(device._tensors.pool.nbytes, before + 2.25 * 4 * d.numel())
        expected = kept.clone()
        del d
        device.release_memory()
        self.assertEqual(device._tensors.pool.nbytes, before)
        del kept, a, b
        gc.collect()
        device.release_memory()
        self.assertEqual(device._tensors.pool.nbytes, 0)
        a, b = device.shared(self.random(200, 300)), device.shared(self.random(300, 400))
        self.assert_right(device.gemm(a, b), expected.double())

    def test_packed_matrices_die_in_flight(self):
        a, b = self.shared(20, 32, element="f16"), self.shared(32, 48, element="f16")
        expected = a.double() @ b.double()
        for _ in range(20):
            packed = self.device.pack(b)
            d = self.device.gemm(a, packed)
            del packed
            self.assert_right(d, expected)
        self.device.release_memory()
        self.assertEqual(len(self.device._tensors._submissions._retired), 0)

    def test_arrays_and_tensors_share_a_device(self):
        a, b = self.shared(20, 32, element="f16"), self.shared(32, 48, element="f16")
        packed = self.device.pack(b)
        for _ in range(10):
            d = self.device.gemm(a, packed)
            array = self.device.gemm(numbers(a), packed)
            np.testing.assert_array_equal(array, numbers(d))

    def test_threads(self):
        operands = [(self.shared(20, 30, seed=seed), self.shared(30, 40, seed=seed))
                    for seed in range(4)]
        expected = [self.device.gemm(a, b) for a, b in operands]
        self.synchronize()
        results = [[] for _ in operands]

        def work(index):
            results[index] = [self.device.gemm(*operands[index]) for _ in range(50)]

        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result, wanted in zip(results, expected):
            self.assertEqual(len(result), 50)
            self.assertTrue(all(torch.equal(d, wanted) for d in result))

    def test_tensors_outlive_the_device(self):
        device = self.connected()
        a, b = device.shared(self.random(20, 30)), device.shared(self.random(30, 40))
        d = device.gemm(a, b)
        device.close()
        self.assert_right(d, a.double() @ b.double())
        d += 1
        self.assert_right(d, a.double() @ b.double() + 1)
        with self.assertRaises(vkgemm.Error) as caught:
            device.gemm(a, b)
        self.assertEqual(caught.exception.status, "invalid_handle")

    def test_refusals(self):
        a, b = self.shared(4, 6), self.shared(6, 8)
        gemm, grad = self.device.gemm, self.shared(6, 8).requires_grad_()
        offsets = torch.tensor([0., 4.]).to(self.place)
        for call, message in (
                (lambda: gemm(a, b[1:]), "b.shape is (5, 8): 6 rows are needed"),
                (lambda: gemm(a[0], b), "a.shape is (6,)"),
                (lambda: gemm(a, b.double()), "b.dtype is torch.float64"),
                (lambda: gemm(a, b.half()), "b.dtype is f16: a.dtype is f32"),
                (lambda: gemm(a, b, out_dtype=torch.int32), "out_dtype is torch.int32"),
                (lambda: gemm(a, np.ones((6, 8), np.float32)), "b is ndarray"),
                (lambda: gemm(np.ones((4, 6), np.float32), b), "b is Tensor"),
                (lambda: gemm(a, torch.empty(6, 8, device="meta")),
                 f"b is on meta: it must be on {a.device}, {self.device.name} (UUID "),
                (lambda: gemm(a, b.to_sparse()), "b has no address"),
                (lambda: gemm(a, grad), "b.requires_grad is True"),
                (lambda: gemm(a, b, out=self.shared(4, 8).requires_grad_()),
                 "out.requires_grad is True"),
                (lambda: self.device.quantise(grad), "b.requires_grad is True"),
                (lambda: self.device.quantise_rows(grad), "a.requires_grad is True"),
                (lambda: self.device.quantise_rows(a[0]), "a.shape is (6,)"),
                (lambda: self.device.quantise_rows(a.char()), "a.dtype is torch.int8: it must be "
                 "torch.float16, torch.bfloat16 or torch.float32"),
                (lambda: gemm(a, b, split_k=513), "split_k is 513"),
                (lambda: self.device.grouped(a, b, offsets), "offsets is torch.float32"),
                (lambda: self.device.grouped(a, b, sizes=offsets.int(), rows=offsets.long(),
                                             gather=1), "rows is torch.int64 of shape (2,)"),
                (lambda: gemm(a, b, row_scales=self.shared(8)), "row_scales.shape is (8,)"),
                (lambda: gemm(a, b, column_scales=self.shared(8, element="f16")),
                 "column_scales.dtype is torch.float16: it must be torch.float32"),
                (lambda: gemm(a, b, row_scales=self.shared(4).requires_grad_()),
                 "row_scales.requires_grad is True"),
                (lambda: gemm(a.int(), b.int()), "a.dtype is torch.int32: it must be "
                 "torch.float16, torch.bfloat16, torch.float32 or torch.int8"),
                (lambda: self.device.empty(2, dtype=torch.uint8), "dtype is torch.uint8")):
            with self.subTest(message=message), self.assertRaises(vkgemm.ArgumentError) as caught:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call()
            self.assertIn(message, caught.exception.message)
        with torch.no_grad():
            self.assert_right(gemm(a, grad), a.double() @ grad.double())

    def test_order(self):
        """A producer of torch, a product, a consumer of torch, with no synchronisation."""
        rounds = 1000 if self.place == "cuda" else 50
        for element in ("f16", "f32"):
            source = self.random(rounds, 256, element=element)
            b = self.shared(256, 128, element=element)
            a = self.device.empty(64, 256, dtype=DTYPES[element])
            results = torch.empty(rounds, 64, 128, dtype=DTYPES[element], device=self.place)
            for index in range(rounds):
                torch.mul(source[index], 0.5, out=a[0])
                a[1:] = a[0]
                d = self.device.gemm(a, b, activation="relu")
                torch.add(d, 1, out=results[index])
            for index in range(rounds):  # one by one, each waited for
                torch.mul(source[index], 0.5, out=a[0])
                a[1:] = a[0]
                self.synchronize()
                d = self.device.gemm(a, b, activation="relu")
                self.synchronize()
                self.assertTrue(torch.equal(results[index], d + 1), f"{element}, {index}")

    def synchronize(self):
        if self.place == "cuda":
            torch.cuda.synchronize()
