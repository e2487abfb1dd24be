"""Groups with rows by index, matrices B by index, or sizes in place of offsets: numpy in float64."""

import unittest

import numpy as np
from reference import ACTIVATIONS, GATES, OnDevice, assert_close, factors, values, wide

import vkgemm

M, N, K = 14, 25, 30
OFFSETS = np.array([0, 5, 5, 14], np.int32)
SIZES = np.diff(OFFSETS)


def products(a, b, offsets=OFFSETS, rows=None):
    """The products of groups of rows in float64; `rows`: those of a."""
    gathered = wide(a) if rows is None else wide(a)[rows]
    d = np.zeros((len(gathered), b.shape[-1]))
    for g, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        d[begin:end] = gathered[begin:end] @ wide(b if b.ndim == 2 else b[g])
    return d


def sums(product, rows, shape, weights=None):
    """Row j is the sum over c of weights[j, c] times the row with index j · terms + c."""
    d = np.zeros((shape[0], product.shape[1]))
    for row, index in zip(product, rows):
        j, c = divmod(int(index), shape[1])
        d[j] += row * (1 if weights is None else weights[j, c])
    return d


def shuffled(count, most, seed=1):
    """Different numbers below `most`."""
    return np.random.default_rng(seed).permutation(most)[:count].astype(np.int32)


class RowIndex(OnDevice):
    def test_gather(self):
        """Rows of A have any number; all but its scales have the rows of the product."""
        a, b = values((7, K)), values((3, K, N))
        rows, scales, c = shuffled(M, 21), factors((7,)), values((M, N))
        d = self.device.grouped(a, b, OFFSETS, rows=rows, gather=3)
        assert_close(d, products(a, b, rows=rows // 3))
        d, aux = self.device.grouped(a, b, OFFSETS, rows=rows, gather=3, row_scales=scales, c=c,
                                     bias=values((M, 1)), activation="relu", aux=True)
        before = (wide(scales)[rows // 3, None] * products(a, b, rows=rows // 3) + wide(c)
                  + wide(values((M, 1))))
        assert_close(aux, before)
        assert_close(d, ACTIVATIONS["relu"](before))

    def test_gather_of_a_transposed_matrix(self):
        a, b, rows = values((K, 7)), values((K, N)), shuffled(M, 21)
        d = self.device.grouped(a.T, b, OFFSETS, rows=rows, gather=3)
        assert_close(d, products(a.T, b, rows=rows // 3))

    def test_scatter(self):
        a, b, rows = values((M, K)), values((3, K, N)), shuffled(M, 20)
        expected = np.full((20, N), 7.0)
        expected[rows] = products(a, b)
        out = np.full((20, N), 7, np.float32)
        d = self.device.grouped(a, b, OFFSETS, rows=rows, scatter=20, out=out)
        assert_close(d, expected)
        expected[expected == 7] = 0
        for scatter in (20, (20, 1)):
            assert_close(self.device.grouped(a, b, OFFSETS, rows=rows, scatter=scatter), expected)

    def test_a_permutation(self):
        """Rows that are gathered return to their places."""
        a, b, rows = values((M, K)), values((K, N)), shuffled(M, M)
        d = self.device.grouped(a, b, np.array([0, 14]), rows=rows, gather=1, scatter=M)
        assert_close(d, wide(a) @ wide(b))

    def test_sums(self):
        """A term that no row has is left out.  All rows are written."""
        a, b, rows = values((M, K)), values((3, K, N)), shuffled(M, 20)
        for shape in ((5, 4), (20, 1), (7, 3)):
            for weights in (None, factors(shape)):
                if shape[1] == 1 and weights is None:
                    continue
                with self.subTest(shape=shape, weights=weights is not None):
                    out = np.full((shape[0], N), 7, np.float32)
                    arguments = dict(rows=rows, scatter=shape, weights=weights)
                    expected = sums(products(a, b), rows, shape, weights)
                    assert_close(self.device.grouped(a, b, OFFSETS, out=out, **arguments), expected)
                    assert_close(self.device.grouped(a, b, OFFSETS, **arguments), expected)

    def test_sums_of_rows_with_an_epilogue(self):
        """The sum is of the epilogue's results.  Other results have the rows of the product."""
        a, b, rows, bias = values((M, K)), values((3, K, N)), shuffled(M, 20), values((3, 1, N))
        d, new = self.device.grouped(a, b, OFFSETS, rows=rows, scatter=(10, 2), bias=bias,
                                     activation="relu", steps=[("store", None)])
        product = products(a, b)
        for g, (begin, end) in enumerate(zip(OFFSETS, OFFSETS[1:])):
            product[begin:end] += wide(bias)[g]
        assert_close(new, np.maximum(product, 0))
        assert_close(d, sums(np.maximum(product, 0), rows, (10, 2)))

    def test_a_layer_of_experts(self):
        """Each of 9 tokens goes to 2 of 5 experts."""
        x, up, down = values((9, K)), values((5, K, 24)), values((5, 24, N), seed=1)
        scores = values((9, 5), seed=2)
        chosen = np.argsort(-scores, axis=1)[:, :2]
        weights = np.take_along_axis(scores, chosen, 1)
        rows = np.argsort(chosen, axis=None, kind="stable").astype(np.int32)
        sizes = np.bincount(chosen.ravel(), minlength=5).astype(np.int32)
        h = self.device.grouped(x, up, sizes=sizes, rows=rows, gather=2, activation="silu")
        y = self.device.grouped(h, down, sizes=sizes, rows=rows, scatter=(9, 2), weights=weights)
        expected = np.zeros((9, N))
        for token in range(9):
            for e, weight in zip(chosen[token], weights[token]):
                hidden = ACTIVATIONS["silu"](wide(x[token]) @ wide(up[e]))
                expected[token] += weight * (hidden @ wide(down[e]))
        assert_close(y, expected)

    def test_gates(self):
        a, b, rows = values((7, K)), values((3, K, 48)), shuffled(M, 14)
        d = self.device.grouped(a, b, OFFSETS, rows=rows, gather=2, scatter=(7, 2), gate="swiglu")
        product = products(a, b, rows=rows // 2)
        assert_close(d, sums(GATES["swiglu"](product[:, :24], product[:, 24:]), rows, (7, 2)))

    def test_half_precision(self):
        """D is rounded once."""
        a, b, rows = values((7, K), "f16"), values((3, K, N), "f16"), shuffled(M, 14)
        d = self.device.grouped(a, self.device.pack(b), OFFSETS, rows=rows, gather=2,
                                scatter=(7, 2))
        self.assertEqual(d.dtype, np.float16)
        assert_close(d, sums(products(a, b, rows=rows // 2), rows, (7, 2)), "f16")

    def test_integers(self):
        """Rows that are stored are exact.  Sums are in float32."""
        a, b, rows = values((M, K), "s8"), values((3, K, N), "s8"), shuffled(M, 14)
        d = self.device.grouped(a, b, OFFSETS, rows=rows, scatter=14)
        self.assertEqual(d.dtype, np.int32)
        np.testing.assert_array_equal(d[rows], products(a, b))
        d = self.device.grouped(a, b, OFFSETS, rows=rows, scatter=(7, 2))
        self.assertEqual(d.dtype, np.float32)
        assert_close(d, sums(products(a, b), rows, (7, 2)))

    def test_sizes(self):
        a, bias = values((16, K)), values((3, 1, N))
        for dtype in (np.int32, np.int64):
            b = values((3, K, N) if dtype == np.int32 else (K, N))
            d = self.device.grouped(a, b, sizes=SIZES.astype(dtype))
            assert_close(d, products(a, b))
        columns = values((M, 40))
        groups = [slice(*bounds) for bounds in zip(OFFSETS, OFFSETS[1:])]
        expected = np.stack([wide(columns)[g].T @ wide(a)[:14][g] for g in groups])
        assert_close(self.device.grouped(columns.T, a[:14], sizes=SIZES, along="k"), expected)
        d = self.device.grouped(a, b, sizes=SIZES, bias=bias)
        assert_close(d[:5], wide(a)[:5] @ wide(b) + wide(bias)[0])

    def test_starts_and_sizes(self):
        """Rows in gaps belong to no group."""
        a, b = values((40, K)), values((3, K, N))
        starts, sizes = np.array([2, 19, 25]), np.array([10, 0, 12])
        out = np.full((40, N), 7, np.float32)
        expected = np.full((40, N), 7.0)
        for g, (start, size) in enumerate(zip(starts, sizes)):
            rows = slice(start, start + size)
            expected[rows] = wide(a)[rows] @ wide(b)[g]
        assert_close(self.device.grouped(a, b, starts, sizes=sizes, out=out), expected)
        expected[expected == 7] = 0
        assert_close(self.device.grouped(a, b, starts, sizes=sizes), expected)
        self.assertIn("grouped", self.device.explain(a, b, offsets=starts, sizes=sizes))

    def test_matrices_by_index(self):
        """Vectors along N belong to matrices."""
        a, b, index = values((M, K)), values((5, K, N)), np.array([4, 0, 1], np.int32)
        d = self.device.grouped(a, b, OFFSETS, b_index=index)
        assert_close(d, products(a, b[index]))
        bias, scales, x = values((5, 1, N)), factors((5, N)), values((5, 1, 1))
        d = self.device.grouped(a, b, OFFSETS, b_index=index, bias=bias, column_scales=scales,
                                steps=[("add", x)])
        product = products(a, b[index])
        for g, (begin, end) in enumerate(zip(OFFSETS, OFFSETS[1:])):
            own = index[g]
            product[begin:end] = (wide(scales)[own] * product[begin:end] + wide(bias)[own]
                                  + wide(x)[own])
        assert_close(d, product)

    def test_more_groups_than_matrices(self):
        """The tokens of a sequence share an adapter."""
        a, b, index = values((M, K)), values((2, K, N)), np.array([1, 1, 0, 1], np.int32)
        sizes = np.array([3, 6, 0, 5], np.int32)
        d = self.device.grouped(a, b, sizes=sizes, b_index=index)
        assert_close(d, products(a, b[index], np.cumsum([0, *sizes])))

    def test_everything_by_index(self):
        a, b, index = values((7, K)), values((5, K, N)), np.array([4, 0, 1], np.int32)
        rows, weights = shuffled(M, 14), values((7, 2))
        d = self.device.grouped(a, b, sizes=SIZES, rows=rows, gather=2, scatter=(7, 2),
                                weights=weights, b_index=index)
        product = products(a, b[index], rows=rows // 2)
        assert_close(d, sums(product, rows, (7, 2), wide(weights)))

    def test_sums_of_no_column(self):
        """All rows are written if K is 0, too."""
        a, b, out = values((M, 0)), values((3, 0, N)), np.full((7, N), 7, np.float32)
        d = self.device.grouped(a, b, OFFSETS, rows=shuffled(M, 14), scatter=(7, 2), out=out)
        assert_close(d, np.zeros((7, N)))

    def test_nothing(self):
        """No token, no group."""
        b, rows, sizes = values((3, K, N)), np.zeros(0, np.int32), np.zeros(3, np.int32)
        for r in (0, 4):
            d = self.device.grouped(values((r, K)), b, sizes=sizes, rows=rows, gather=2,
                                    scatter=(r, 2), weights=values((r, 2)))
            assert_close(d, np.zeros((r, N)))
        a = values((4, K))
        d = self.device.grouped(a, values((0, K, N)), sizes=sizes[:0], rows=shuffled(4, 4),
                                scatter=(2, 2), b_index=rows)
        assert_close(d, np.zeros((2, N)))
        d = self.device.grouped(a, b, sizes=sizes, rows=shuffled(4, 4), scatter=(2, 2))
        assert_close(d, np.zeros((2, N)))


class Arguments(OnDevice):
    """What numpy's arrays alone have."""

    def test_unsigned_indices(self):
        a, b = values((7, K)), values((5, K, N))
        rows, index = shuffled(M, 14), np.array([4, 0, 1])
        signed, unsigned = (self.device.grouped(
            a, b, OFFSETS, rows=rows.astype(dtype), gather=2, scatter=(7, 2),
            b_index=index.astype(dtype)) for dtype in (np.int32, np.uint32))
        np.testing.assert_array_equal(signed, unsigned)

    def test_batches(self):
        """A call of a batch takes its rows from an earlier one."""
        x, b, rows = values((7, K)), values((3, K, K)), shuffled(M, 14)

        def calls():
            h = self.device.grouped(x, b, sizes=SIZES, rows=rows, gather=2)
            return self.device.grouped(h, b, sizes=SIZES, rows=rows, scatter=(7, 2))
        expected = calls()
        with self.device.batch():
            d = calls()
        np.testing.assert_array_equal(d, expected)

    def test_tuning(self):
        """Groups without gaps are timed at their sizes."""
        a, b = values((16, K), "f16"), values((2, K, N), "f16")
        int64 = np.int64
        for arguments, known in (
                ({"sizes": np.array([5, 9])}, [0, 5, 14]),
                ({"offsets": np.array([1, 6]), "sizes": np.array([5, 9])}, [1, 6, 15]),
                ({"offsets": np.array([1, 7]), "sizes": np.array([5, 9])}, []),
                ({"sizes": np.zeros(2, int64), "rows": shuffled(9, 16), "gather": 1}, [0, 0, 0])):
            request = self.device._requested(a, b, False, dict(arguments))
            self.assertEqual(request.known_offsets, known)
        rows = shuffled(16, 16)
        arguments = dict(b=b, sizes=np.array([5, 9]), rows=rows, gather=1, scatter=(8, 2))
        result = self.device.tune(a, budget_ms=1, **arguments)
        self.assertIn(result.config, self.device.explain(a, **arguments))

    def test_refusals(self):
        a, b, offsets = values((4, 6)), values((2, 6, 8)), np.array([0, 1, 4])
        rows, sizes, index = np.arange(4, dtype=np.int32), np.array([1, 3]), np.int32([1, 0])
        weights = np.ones((2, 2), np.float32)
        grouped, sum_of = self.device.grouped, dict(rows=rows, scatter=(2, 2))
        for arguments, message in (
                (dict(offsets=None), "offsets is None and sizes is None: one of them must be given"),
                (dict(rows=rows), "rows is given, gather is None and scatter is None: one"),
                (dict(gather=2), "gather is 2 and rows is None: rows must be given"),
                (dict(scatter=(2, 2)), "scatter is (2, 2) and rows is None: rows must be given"),
                (dict(rows=rows, gather=0), "gather is 0: it must be at least 1"),
                (dict(rows=rows, gather=1.5), "gather is 1.5: it must be a whole number"),
                (dict(rows=rows, gather=-1), "gather is -1: it must be a whole number"),
                (dict(rows=rows, scatter=-4), "scatter is -4: it must be a whole number"),
                (dict(rows=rows, scatter="4"), "scatter is '4': it must be a whole number"),
                (dict(rows=rows, scatter=(2, 0)), "scatter[1] is 0: it must be at least 1"),
                (dict(rows=rows, scatter=(2.0, 2)), "scatter[0] is 2.0: it must be a whole number"),
                (dict(rows=rows, scatter=(2, 2, 2)),
                 "scatter is (2, 2, 2): it must be rows or (rows, terms)"),
                (dict(rows=rows, scatter=2**31), "scatter is 2147483648: it must be a whole "
                 "number below 2**31"),
                (dict(rows=rows, gather=1, weights=weights), "weights is given and scatter is None"),
                (dict(rows=rows, scatter=4, weights=weights), "weights is given and scatter is 4: "
                 "it must be (rows, terms)"),
                (dict(weights=weights.T[:1], **sum_of),
                 "weights.shape is (1, 2): it must be (2, 2)"),
                (dict(weights=weights.astype(np.float16), **sum_of),
                 "weights.dtype is float16: it must be float32"),
                (dict(weights=[1], **sum_of), "weights is list: it must be a numpy array"),
                (dict(rows=rows.astype(np.int64), gather=1), "rows is int64 of shape (4,): it must "
                 "be int32 or uint32, of one dimension"),
                (dict(rows=rows.astype(">i4"), gather=1), "rows is >i4 of shape (4,)"),
                (dict(rows=rows[None], gather=1), "rows is int32 of shape (1, 4)"),
                (dict(rows=[0], gather=1), "rows is list: it must be a numpy array"),
                (dict(rows=rows[:3], scatter=4), "rows.shape is (3,): it must be (4,), because "
                 "a.shape is (4, 6) and gather is None"),
                (dict(rows=rows * 3, gather=2),
                 "rows[3] is 9: gather is 2 and a has 4 rows"),
                (dict(rows=rows - 1, gather=2), "rows[0] is -1: gather is 2 and a has 4 rows"),
                (dict(rows=rows, scatter=3), "rows[3] is 3: scatter is 3"),
                (dict(rows=rows + 1, scatter=(2, 2)), "rows[3] is 4: scatter is (2, 2)"),
                (dict(rows=rows, gather=1, c=values((3, 8))),
                 "c.shape is (3, 8): it must be (4, 8)"),
                (dict(rows=rows[[0, 1, 2, 3, 0]], gather=1, row_scales=values((5,))),
                 "row_scales.shape is (5,): it must be (4,)"),
                (dict(out=values((4, 8)), **sum_of), "out.shape is (4, 8): it must be (2, 8)"),
                (dict(sizes=sizes), "offsets is int64 of shape (3,) and sizes is int64 of shape "
                 "(2,): both must have one type and one value for each group"),
                (dict(offsets=offsets[:2], sizes=sizes.astype(np.int32)), "offsets is int64 of "
                 "shape (2,) and sizes is int32 of shape (2,): both must have one type"),
                (dict(sizes=sizes.astype(float), offsets=None), "sizes is float64 of shape (2,): it "
                 "must be int32 or int64, with one value for each group"),
                (dict(sizes=sizes[None], offsets=None), "sizes is int64 of shape (1, 2)"),
                (dict(sizes=sizes - 2, offsets=None),
                 "sizes[0] is -1: sizes must not be negative"),
                (dict(sizes=sizes + 1, offsets=None),
                 "sizes[1] is 4: group 1 begins at 2, and M is 4"),
                (dict(sizes=sizes, offsets=np.array([0, 2])),
                 "sizes[1] is 3: group 1 begins at 2, and M is 4"),
                (dict(sizes=sizes, offsets=np.array([1, 1])), "offsets[1] is 1: group 0 ends at 2, "
                 "and groups must not overlap"),
                (dict(sizes=sizes, offsets=np.array([1, 0])), "offsets[1] is 0: offsets[0] is 1"),
                (dict(sizes=sizes, offsets=np.array([-1, 0])), "offsets[0] is -1: offsets must not "
                 "be negative"),
                (dict(sizes=np.array([1, 2, 1]), offsets=None),
                 "b.shape is (2, 6, 8): sizes has 3 groups along m"),
                (dict(sizes=np.array([5, 1]), rows=np.int32([0, 1, 2, 3, 0]), gather=1,
                      offsets=None), "sizes[1] is 1: group 1 begins at 5, and M is 5"),
                (dict(b_index=index - 1), "b_index[1] is -1: b has 2 matrices"),
                (dict(b_index=index * 2), "b_index[0] is 2: b has 2 matrices"),
                (dict(b_index=index[:1]), "b_index.shape is (1,): it must be (2,)"),
                (dict(b_index=index.astype(np.int64)), "b_index is int64 of shape (2,)"),
                (dict(b_index=index, b=b[0]), "b.shape is (6, 8) and b_index is given: b must have "
                 "3 dimensions"),
                (dict(b_index=index, b=b[:0]), "b_index[0] is 1: b has 0 matrices"),
                (dict(b_index=index, bias=values((3, 1, 8))), "bias.shape is (3, 1, 8)"),
                (dict(rows=rows, gather=1, along="k"), "rows is given and along is 'k'"),
                (dict(gather=1, along="k"), "gather is 1 and along is 'k': it must be 'm'"),
                (dict(b_index=index, along="k"), "b_index is given and along is 'k'")):
            given = dict(a=a, b=b, offsets=offsets) | arguments
            with self.subTest(message=message):
                with self.assertRaises(vkgemm.ArgumentError) as caught:
                    grouped(**given)
                self.assertIn(message, caught.exception.message)
        for arguments, message in (
                (dict(out_dtype="s32", **sum_of), "out_dtype is s32 and rows are added up"),
                (dict(steps=[("sum_columns",)], **sum_of), "a step sums columns")):
            integers = values((4, 6), "s8"), values((6, 8), "s8")
            with self.subTest(message=message), self.assertRaises(vkgemm.Error) as caught:
                grouped(*integers, offsets, **arguments)
            self.assertEqual(caught.exception.status, "unsupported")
            self.assertIn(message, caught.exception.message)
        with self.assertRaisesRegex(vkgemm.ArgumentError, "offsets is None and sizes is None"):
            self.device.explain(a, b[0], **sum_of)
        with self.assertRaisesRegex(TypeError, "gather"):
            self.device.gemm(a, b[0], gather=1)


del OnDevice

if __name__ == "__main__":
    unittest.main()
