"""Products of a packed B."""

import numpy as np
from reference import OnDevice, assert_close, values, wide


class Packed(OnDevice):
    def test_gemm(self):
        for element in ("f16", "bf16", "f32"):  # f32 stays in rows
            b = values((30, 25), element)
            packed = self.device.pack(b, bf16=True)
            self.assertEqual(packed.shape, (30, 25))
            for m in (1, 20):
                with self.subTest(element=element, m=m):
                    a = values((m, 30), element)
                    d = self.device.gemm(a, packed, bf16=True)
                    assert_close(d, wide(a) @ wide(b), element)

    def test_transposed_view(self):
        for element in ("f16", "f32"):
            with self.subTest(element=element):
                a, b = values((20, 30), element), values((25, 30), element)
                d = self.device.gemm(a, self.device.pack(b.T))
                assert_close(d, wide(a) @ wide(b).T, element)

    def test_batch(self):
        a, b = values((3, 20, 30), "f16"), values((3, 30, 25), "f16")
        d = self.device.gemm(a, self.device.pack(b))
        assert_close(d, wide(a) @ wide(b), "f16")
        d = self.device.gemm(a, self.device.pack(b[0]))
        assert_close(d, wide(a) @ wide(b)[0], "f16")

    def test_groups(self):
        a, b, offsets = values((40, 32), "f16"), values((2, 32, 24), "f16"), np.array([0, 15, 40])
        d = self.device.grouped(a, self.device.pack(b), offsets)
        assert_close(d, np.concatenate([wide(a)[:15] @ wide(b)[0], wide(a)[15:] @ wide(b)[1]]),
                     "f16")

    def test_gates(self):
        a, b = values((20, 30), "f16"), values((30, 48), "f16")
        product = wide(a) @ wide(b)
        expected = product[:, :24] / (1 + np.exp(-product[:, 24:]))
        packed = self.device.pack(b, gated_b="halves")
        assert_close(self.device.gated(a, packed, "glu"), expected, "f16")
        halves = [self.device.pack(half, gated_b="separate") for half in (b[:, :24], b[:, 24:])]
        same = self.device.gated(a, halves[0], "glu", gated_b="separate", b_right=halves[1])
        assert_close(same, expected, "f16")

    def test_memory_is_freed(self):
        before = len(self.device._gpu.buffers)
        packed = self.device.pack(values((30, 48), "f16"))
        self.assertEqual(len(self.device._gpu.buffers), before + 1)
        del packed
        self.assertEqual(len(self.device._gpu.buffers), before)
