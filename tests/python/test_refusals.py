"""What is refused, by the names and the values of arguments."""

import numpy as np
from reference import OnDevice, values

import vkgemm


class Refusals(OnDevice):
    def test_arguments(self):
        gemm, gated = self.device.gemm, self.device.gated
        grouped, rows, pack = self.device.grouped, self.device.row_reduction, self.device.pack
        a, b, two = values((4, 6), "f16"), values((6, 8), "f16"), values((2, 6, 8), "f16")
        offsets, packed = np.array([0, 4]), pack(b)
        s8, ones = (values((4, 6), "s8"), values((6, 8), "s8")), np.ones(8, np.float32)
        packed_s8, codes = pack(s8[1]), vkgemm.quantise(b)
        f32 = a.astype(np.float32), b.astype(np.float32)
        packed_f32, packed_bf16x9 = pack(f32[1]), pack(f32[1], f32="bf16x9")
        frozen = np.zeros((4, 8), np.float16)
        frozen.flags.writeable = False
        for call, *arguments, keywords, message in (
                (gemm, [[1]], b, {}, "a is list"),
                (gemm, a[0], b, {}, "a.shape is (6,)"),
                (gemm, a.astype(float), b, {}, "a.dtype is float64"),
                (gemm, a.view(np.uint16), b, {}, "a.dtype is uint16, which needs bf16=True"),
                (gemm, a, b.astype(np.float32), {}, "b.dtype is f32: a.dtype is f16"),
                (gemm, a, b[1:], {}, "b.shape is (5, 8): 6 rows are needed"),
                (gemm, np.stack([a] * 3), two, {}, "b.shape is (2, 6, 8): a has 3 matrices"),
                (gemm, a, b, {"bias": b[0, :7]}, "bias.shape is (7,): it must be (8,) or (1, 8)"),
                (gemm, a, b, {"bias": np.ones(8)}, "bias.dtype is float64"),
                (gemm, a, b, {"row_scales": ones}, "row_scales.shape is (8,): it must be (4,)"),
                (gemm, a, b, {"row_scales": np.ones((1, 4), np.float32)},
                 "row_scales.shape is (1, 4): it must be (4,)"),
                (gemm, np.stack([a] * 2), two, {"row_scales": ones},
                 "row_scales.shape is (8,): it must be (4,) or (2, 4)"),
                (gemm, a, b, {"column_scales": ones[1:]}, "column_scales.shape is (7,)"),
                (gemm, a, b, {"column_scales": b[0]},
                 "column_scales.dtype is float16: it must be float32"),
                (gemm, a, b, {"column_scales": 2}, "column_scales is int: it must be a numpy"),
                (gated, a, b, "glu", {"column_scales": ones[4:]},
                 "column_scales.shape is (4,): it must be (8,)"),
                (grouped, a, b, offsets, {"row_scales": np.ones((1, 4), np.float32)},
                 "row_scales.shape is (1, 4): it must be (4,)"),
                (gemm, s8[0], b, {}, "b.dtype is f16: a.dtype is s8"),
                (gemm, a, packed_s8, {}, "b.dtype is s8: a.dtype is f16"),
                (gemm, s8[0].astype(np.int32), s8[1], {},
                 "a.dtype is int32: it must be float16, bfloat16, float32, int8, uint8, float8_e4m3fn or float8_e5m2"),
                (gemm, *s8, {"out_dtype": np.int16},
                 "out_dtype is int16: it must be float16, bfloat16, float32, int8, uint8, "
                 "float8_e4m3fn, float8_e5m2 or int32"),
                (gemm, *s8, {"out_dtype": np.int64}, "out_dtype is int64: it must be float16"),
                (gemm, *s8, {"c": np.ones((4, 8), np.int32)}, "c.dtype is int32"),
                (gemm, *s8, {"bias": np.ones(8, np.int32)}, "bias.dtype is int32"),
                (gemm, a, b, {"out_dtype": "s32"}, "out_dtype is s32: it must be float16, "
                 "bfloat16, float32, int8, uint8, float8_e4m3fn or float8_e5m2"),
                (gemm, a, b, {"out": np.zeros((4, 8), np.int32)}, "out.dtype is int32"),
                (rows, *s8, "rms_norm", {"gamma": s8[1][0]}, "gamma.dtype is int8"),
                (gemm, a, b, {"c": b}, "c.shape is (6, 8): it must be (4, 8)"),
                (gemm, a, b, {"beta": 2}, "beta is 2, and c is None"),
                (gemm, a, b, {"alpha": "x"}, "alpha is 'x'"),
                (gemm, a, b, {"activation": "reluu"}, "activation is 'reluu': it must be one of "
                 "none, relu, gelu_erf, gelu_tanh, silu, sigmoid, tanh"),
                (gemm, a, b, {"clamp": 3}, "clamp is 3"),
                (gemm, a, b, {"clamp": (np.nan, None)}, "clamp[0] is NaN"),
                (gemm, a, b, {"alpha": np.nan}, "alpha is NaN"),
                (rows, a, b, "rms_norm", {"eps": np.nan}, "eps is NaN"),
                (gemm, a, b, {"clamp": (2, 1)}, "clamp[0] is 2, which is more than clamp[1], 1"),
                (rows, a, b, "softmax", {"eps": 1.0}, "eps is 1: softmax has none"),
                (rows, a, b, "layer_norm", {"beta": b[0]}, "beta is ndarray: it must be a number; the "
                 "summands of a normalisation are row_beta"),
                (rows, a, b, "sum", {"out_dtype": "f16"}, "out_dtype is 'f16' and store_d is False"),
                (gemm, a, codes, {}, "b is vkgemm.Codes: pass what Device.pack_codes() returns"),
                (gated, a, b, "glu", {"gated_b": "separate", "b_right": codes}, "b_right is vkgemm.Codes"),
                (self.device.pack_codes, b, {}, "codes is ndarray: it must be vkgemm.Codes"),
                (self.device.pack_codes, codes, {"element": "f32"},
                 "element is 'f32': it must be 'f16', 'bf16', 's8' or 'e4m3'"),
                (self.device.quantise, b, {"element": "float16"}, "element is 'float16': it must be"),
                (self.device.quantise, b, "int8", {"zeros": True},
                 "zeros is given and type is 'int8': only int4 has zero points"),
                (self.device.shared, a, {}, "tensor is ndarray: it must be a torch tensor"),
                (vkgemm.Device, {"self_test": "al"},
                 "self_test is 'al': it must be False, True or 'all'"),
                (gemm, a, b, {"out_dtype": "int16"}, "out_dtype is int16"),
                (gemm, a, b, {"out": b}, "out.shape is (6, 8): it must be (4, 8)"),
                (gemm, a, b, {"out": frozen}, "out.flags.writeable is False"),
                (gemm, a, b, {"out": frozen, "out_dtype": "f32"}, "out.dtype is float16"),
                (gemm, *f32, {"f32": "tf32"},
                 "f32 is 'tf32': it must be one of ieee, bf16x9, bf16x6, f16x3"),
                (gemm, *f32, {"f32": None}, "f32 is None: it must be one of"),
                (gemm, a, b, {"f32": "bf16x9"},
                 "f32 is 'bf16x9' and a.dtype is f16: only f32 is multiplied in parts"),
                (gemm, *s8, {"f32": "f16x3"}, "f32 is 'f16x3' and a.dtype is s8"),
                (gated, a, b, "glu", {"f32": "bf16x6"}, "f32 is 'bf16x6' and a.dtype is f16"),
                (grouped, a, b, offsets, {"f32": "bf16x6"}, "f32 is 'bf16x6' and a.dtype is f16"),
                (rows, a, b, "sum", {"f32": "bf16x6"}, "f32 is 'bf16x6' and a.dtype is f16"),
                (gemm, f32[0], packed_bf16x9, {}, "f32 is 'ieee': b was packed for 'bf16x9'"),
                (gemm, f32[0], packed_bf16x9, {"f32": "bf16x6"},
                 "f32 is 'bf16x6': b was packed for 'bf16x9'"),
                (gemm, f32[0], packed_f32, {"f32": "bf16x9"},
                 "f32 is 'bf16x9': b was packed for 'ieee'"),
                (gemm, a, b, {"split_k": -1}, "split_k is -1"),
                (gemm, a, b, {"split_k": 513}, "split_k is 513"),
                (gemm, a, b, {"max_workspace_bytes": 0.5}, "max_workspace_bytes is 0.5"),
                (gemm, a, b, {"max_workspace_bytes": 2**64}, "it must be a whole number below 2**64"),
                (gemm, a, b, {"config": "abc"}, "abc"),
                (gemm, a, b, {"config": 3}, "config is 3: it must be a str"),
                (gemm, a, b, {"config": "\ud800"}, "config is '\\ud800': it must be UTF-8"),
                (gemm, a, b, {"config": "a\0b"}, "config is 'a\\x00b': it must not contain a NUL"),
                (gemm, a, b, {"activation": "relu\0"}, "activation is 'relu\\x00'"),
                (gemm, a, b, {"activation": "\ud800"}, "activation is '\\ud800'"),
                (gemm, a, b, {"out_dtype": "x"}, "out_dtype is 'x': it must be float16"),
                (gemm, a, b, {"out_dtype": 3}, "out_dtype is 3: it must be float16"),
                (gemm, a.astype(">f2"), b, {}, "a.dtype is >f2"),
                (grouped, a, b, offsets.astype(">i8"), {}, "offsets is >i8"),
                (gated, a, b, "relu", {}, "gate is 'relu': it must be one of sigmoid_tanh"),
                (gated, a, b, "glu", {"gated_b": "x"}, "gated_b is 'x'"),
                (gated, a, b[:, :7], "glu", {}, "b.shape is (6, 7): two matrices"),
                (gated, a, b, "glu", {"b_right": b}, "b_right is given and gated_b is 'halves'"),
                (gated, a, b, "glu", {"gated_b": "separate"}, "b_right is None"),
                (gated, a, b, "glu", {"gated_b": "separate", "b_right": b[:, 1:]},
                 "b_right.shape is (6, 7)"),
                (gated, a, b, "glu", {"gated_b": "separate", "b_right": np.asfortranarray(b)},
                 "b_right lies otherwise"),
                (grouped, a, b, offsets, {"along": "n"}, "along is 'n': it must be one of m, k"),
                (grouped, a, b, offsets.astype(float), {}, "offsets is float64"),
                (grouped, a, b, np.array([0, 3, 2]), {}, "offsets[2] is 2: offsets[1] is 3, "
                 "and offsets must not decrease"),
                (grouped, a, b, np.array([-1, 3]), {}, "offsets[0] is -1: offsets must not be "
                 "negative"),
                (grouped, a, b, np.array([0, 5]), {}, "offsets[1] is 5: M is 4"),
                (grouped, a, two, offsets, {}, "b.shape is (2, 6, 8): offsets has 1 groups"),
                (rows, a, b, "norm", {}, "op is 'norm': it must be one of rms_norm"),
                (rows, a, b[:, :0], "max", {}, "b.shape is (6, 0)"),
                (rows, a, b, "rms_norm", {"gamma": b[0, 1:]}, "gamma.shape is (7,)"),
                (rows, a, b, "layer_norm", {"gamma": b[0], "row_beta": np.ones(8, np.float32)},
                 "row_beta.dtype is f32: gamma.dtype is f16"),
                (rows, a, b, "sum", {"out": np.zeros((4, 8), np.float16)}, "store_d is False"),
                (pack, b[:, :7], {"gated_b": "halves"}, "b.shape is (6, 7)"),
                (pack, b, {"gated_b": "x"}, "gated_b is 'x'"),
                (pack, f32[1], {"f32": "x3"}, "f32 is 'x3': it must be one of ieee"),
                (pack, b, {"f32": "f16x3"}, "f32 is 'f16x3' and b.dtype is f16")):
            with self.subTest(message=message):
                with self.assertRaises(vkgemm.ArgumentError) as caught:
                    call(*arguments, **keywords)
                self.assertIn(message, caught.exception.message)
                self.assertEqual(caught.exception.status, "invalid_argument")
        with vkgemm.Device() as other, self.assertRaises(vkgemm.ArgumentError) as caught:
            other.gemm(a, packed)
        self.assertIn("b is <vkgemm.PackedMatrix (6, 8) f16", caught.exception.message)

    def test_statuses(self):
        a, b = values((4, 6), "f16"), values((6, 8), "f16")
        with self.assertRaises(vkgemm.Error) as caught:
            self.device.grouped(a, self.device.pack(b, gated_b="halves"), np.array([0, 4]))
        self.assertEqual(caught.exception.status, "wrong_fingerprint")
        with self.assertRaises(vkgemm.Error) as caught:
            self.device.row_reduction(a, b, "softmax", gamma=b[0])
        self.assertEqual(caught.exception.status, "unsupported")
        self.assertIn("gamma is true", caught.exception.message)
        for wrong, message in (({"activation": "relu"}, "activation is relu and gate is glu"),
                               ({"c": np.ones((4, 4), np.float16)},
                                "beta is 1 and gate is glu")):
            with self.assertRaises(vkgemm.Error) as caught:
                self.device.grouped(a, b, np.array([0, 4]), gate="glu", **wrong)
            self.assertEqual(caught.exception.status, "unsupported")
            self.assertIn(message, caught.exception.message)
        a8, b8 = values((4, 6), "s8"), values((6, 8), "s8")
        for call, message in (
                (lambda: self.device.gemm(a8, b8, alpha=2, out_dtype="s32"),
                 "out_dtype is s32 and alpha is 2"),
                (lambda: self.device.gated(a8, b8, "glu", out_dtype="s32"),
                 "out_dtype is s32 and gate is glu"),
                (lambda: self.device.row_reduction(a8, b8, "softmax", out_dtype="s32"),
                 "out_dtype is s32 and op is softmax"),
                (lambda: self.device.gemm(np.zeros((1, 131072), np.int8),
                                          np.zeros((131072, 1), np.int8)),
                 "k is 131072 and a.dtype is s8")):
            with self.subTest(message=message), self.assertRaises(vkgemm.Error) as caught:
                call()
            self.assertEqual(caught.exception.status, "unsupported")
            self.assertIn(message, caught.exception.message)
        with self.assertRaises(vkgemm.Error) as caught:
            self.device.gemm(values((4, 6)), values((6, 8)), f32="f16x3", row_scales=values((4,)))
        self.assertEqual(caught.exception.status, "unsupported")
        self.assertIn("f32 is f16x3 and row_scales is shared",
                      caught.exception.message)
        with self.assertRaises(vkgemm.Error) as caught:
            self.device.gemm(a, b, split_k=2, max_workspace_bytes=0)
        self.assertEqual(caught.exception.status, "unsupported")
        self.assertIn("max_workspace_bytes is 0", caught.exception.message)

    def test_names_that_were_probably_meant(self):
        a, b = values((4, 6)), values((6, 8))
        for call, message in (
                (lambda: self.device.gemm(a, b, residual=b), "gemm() got 'residual': did you mean "
                 "'c'? It is added before the activation"),
                (lambda: self.device.gemm(a, b, activaton="relu"),
                 "gemm() got 'activaton': did you mean 'activation'?"),
                (lambda: self.device.gemm(a, b, xyz=1), "gemm() got 'xyz': its arguments are a, b"),
                (lambda: self.device.gated(a, b, "glu", residual=b), "gated() got 'residual': its"),
                (lambda: self.device.explain(a, b, ofsets=b), "explain() got 'ofsets': did you mean "
                 "'offsets'?"),
                (lambda: self.device.pack(b, gated="halves"), "did you mean 'gated_b'?"),
                (lambda: self.device.quantise(b, groupk=64), "did you mean 'group_k'?"),
                (lambda: self.device.quantise_rows(a, bf=True), "did you mean 'bf16'?"),
                (lambda: vkgemm.quantise(b, zero=True), "quantise() got 'zero': did you mean 'zeros'"),
                (lambda: vkgemm.Codes("int8", b, b, groupk=64), "Codes() got 'groupk': did you mean"),
                (lambda: vkgemm.Device(selftest=True), "Device() got 'selftest': did you mean "
                 "'self_test'?")):
            with self.subTest(message=message):
                for kind in (vkgemm.ArgumentError, TypeError):
                    with self.assertRaises(kind) as caught:
                        call()
                self.assertIn(message, caught.exception.message)
        for arguments, message in (({"activation": "gelu_erff"}, "did you mean 'gelu_erf'?"),
                                   ({"f32": "bf16x"}, "; did you mean 'bf16x"),
                                   ({"out_dtype": "flaot32"}, "out_dtype is 'flaot32'")):
            with self.assertRaises(vkgemm.ArgumentError) as caught:
                self.device.gemm(a, b, **arguments)
            self.assertIn(message, caught.exception.message)
        with self.assertRaisesRegex(TypeError, r"^Device\.gemm\(\) missing"):
            self.device.gemm(a)

    def test_devices(self):
        count = len(vkgemm.devices())
        for index in (-1, count):
            with self.assertRaises(vkgemm.Error) as caught:
                vkgemm.Device(index)
            number = "is 1 device" if count == 1 else f"are {count} devices"
            self.assertIn(f"index is {index}: there {number}", caught.exception.message)
        for index in (0.0, "0"):
            with self.assertRaisesRegex(vkgemm.ArgumentError, f"index is {index!r}: it must be"):
                vkgemm.Device(index)
        with vkgemm.Device(np.int64(0)) as device:
            self.assertEqual(repr(device), f"<vkgemm.Device {device.name}>")

    def test_files(self):
        for name in ("tuning_file", "pipeline_cache_file"):
            for path, message in (("a\0b", "must not contain a NUL"), ("\ud800", "must be UTF-8"),
                                  (b"\xff", "must be UTF-8")):
                with self.subTest(name=name, path=path), self.assertRaisesRegex(
                        vkgemm.ArgumentError, f"{name} is .*: it {message}"):
                    vkgemm.Device(**{name: path})
        with self.assertRaisesRegex(vkgemm.ArgumentError, "tuning_file is 3: it must be a path"):
            vkgemm.Device(tuning_file=3)
        with self.assertRaisesRegex(vkgemm.Error, "no-such-file"):
            vkgemm.Device(tuning_file=b"no-such-file")

    def test_quantisation(self):
        b = values((64, 8))
        codes = vkgemm.quantise(b, "int8")
        for group_k in (-1, 2.5, "x", 2**40, 33):
            with self.assertRaisesRegex(vkgemm.ArgumentError, f"group_k is {group_k!r}: it must"):
                vkgemm.quantise(b, "int8", group_k=group_k)
            with self.assertRaisesRegex(vkgemm.ArgumentError, f"group_k is {group_k!r}: it must"):
                vkgemm.Codes("int8", codes.codes, codes.scales, group_k=group_k)
            with self.assertRaisesRegex(vkgemm.ArgumentError, f"group_n is {group_k!r}: it must"):
                vkgemm.Codes("int8", codes.codes, codes.scales, group_n=group_k)
        with self.assertRaisesRegex(vkgemm.ArgumentError, "k is 2.5: it must be"):
            vkgemm.Codes("int8", codes.codes, codes.scales, k=2.5)
        for dtype in (">f2", ">f4", np.float64):
            with self.assertRaisesRegex(vkgemm.ArgumentError, "scales.dtype is .*: it must be"):
                vkgemm.Codes("int8", codes.codes, codes.scales.astype(dtype), group_k=128)

    def test_halves_that_are_packed_otherwise(self):
        """Every pair of matrices that one problem cannot read together."""
        a, b = values((4, 64), "f16"), values((64, 8), "f16")

        def coded(kind, group_k=128, gated_b=None):
            codes = vkgemm.quantise(b, kind, group_k=group_k)
            return (self.device.pack_codes(codes, gated_b=gated_b),
                    codes.elements().astype(np.float16))

        halves = [*((self.device.pack(b, gated_b=how), b) for how in ("separate", None, "halves")),
                  coded("int8"), coded("int8", gated_b="separate"),
                  coded("int8", 64, gated_b="separate"), coded("int4", gated_b="separate")]
        computed = 0
        for left, element in halves:
            for right, _ in halves:
                try:
                    d = self.device.gated(a, left, "glu", gated_b="separate", b_right=right)
                except vkgemm.Error as error:
                    self.assertIn(error.status, ("invalid_argument", "wrong_fingerprint"))
                    continue
                computed += 1
                self.assertTrue(right.is_packed_like(left))
                plain = self.device.gated(a, element, "glu", gated_b="separate", b_right=element,
                                          out_dtype="f32")
                np.testing.assert_allclose(d.astype(np.float32), plain, rtol=2e-3, atol=2e-3)
        self.assertGreaterEqual(computed, 4)

    def test_closed_device(self):
        device = vkgemm.Device()
        packed = device.pack(values((6, 8)))
        device.close()
        device.close()
        with self.assertRaises(vkgemm.Error) as caught:
            device.gemm(values((4, 6)), packed)
        self.assertEqual(caught.exception.status, "invalid_handle")
        with self.assertRaises(vkgemm.Error):
            device.name

    def test_a_call_after_a_refusal(self):
        a, b = values((4, 6)), values((6, 8))
        before = self.device.gemm(a, b)
        with self.assertRaises(vkgemm.Error):
            self.device.gemm(a, b, split_k=513)
        np.testing.assert_array_equal(self.device.gemm(a, b), before)
