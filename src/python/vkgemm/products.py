"""The products of a device: what users pass, and what they get."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from numpy.typing import DTypeLike

from .arrays import Arrays, Numpy, Operand
from .binding import ArgumentError, Held, lib, written
from .gpu import Gpu
from .names import arguments_of, require_known, suggests
from .packed import PackedMatrix
from .plans import Plan
from .request import Request, product, row_quantisation
from .steps import named, numbered


def is_tensor(value: object) -> bool:
    """True for a tensor of torch.  The check does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _arguments(variables: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a method, of its locals()."""
    return named({name: value for name, value in variables.items() if name != "self"})


class Products(Held):
    """The products of a Device.  All of them share the arguments that gemm() documents."""

    _gpu: Gpu

    def _call(self, build: Callable[..., Request], a: Any, *, bf16: bool, in_rows: bool = False,
              **arguments: Any) -> Any:
        """Runs what `build` makes of the arguments; `in_rows`: it takes A in rows alone."""
        raise NotImplementedError

    def _plan(self, request: Request) -> Plan:
        """The request's plan, from those that were kept or new."""
        raise NotImplementedError

    def _tensors_of(self, argument: str, tensor: Any) -> Any:
        """The part of this device that computes with torch tensors."""
        raise NotImplementedError

    def _request(self, arrays: Arrays, a: Any, b: Any, **arguments: Any) -> Request:
        if arguments.get("steps") is not None:
            arguments["steps"] = numbered(arguments["steps"], self._gpu)
        request = product(arrays, a, b, **arguments)
        for name, matrix in request.packed.items():
            if matrix.gpu is not self._gpu:
                raise ArgumentError(f"{name} is {matrix!r}, which another device packed")
        return request

    @suggests
    def gemm(self, a: Operand, b: Operand | PackedMatrix, *, row_scales: Operand | None = None,
             column_scales: Operand | None = None, bias: Operand | None = None,
             activation: str | None = None, c: Operand | None = None, alpha: float = 1.0,
             beta: float | None = None, aux: bool = False,
             clamp: tuple[float | None, float | None] | None = None,
             zero_point: int = 0,
             steps: list[tuple[Any, ...]] | None = None,
             out_dtype: DTypeLike | str | None = None, out: Operand | None = None,
             sum_batch: bool = False, f32: str = "ieee", multiply_as: str | None = None,
             split_k: int | None = None, max_workspace_bytes: int | None = None,
             config: str | None = None, bf16: bool = False) -> Any:
        """Multiply two matrices, and apply an epilogue to the product.

            pre = alpha · (row_scale · column_scale · (A·B)) + beta · C + bias
            D   = clamp(steps(activation(pre)))

        The epilogue is computed in float32.  D is rounded once, to its type.  Integers and 8-bit
        floats saturate.  NaN becomes 0 in integers.

        a: (M, K), (batch, M, K) or (outer, batch, M, K).
        b: (K, N), (batch, K, N), (outer, batch, K, N) or a PackedMatrix.  One matrix serves the
            whole batch.  In four dimensions a and b broadcast, as in np.matmul().
        row_scales, column_scales: float32 factors, (M,) or (batch, M), and (N,) or (batch, N).
            int8 a and a B of codes (pack_codes(element="s8")): row_scales may be those of
            quantise_rows(group=…), (M, groups) or (batch, M, groups).  So may those of 8-bit floats
            and a B of pack_codes(element="e4m3").
        bias: (N,), (1, N) or (batch, 1, N) for the columns; (M, 1) or (batch, M, 1) for the rows.
            float16, bfloat16 or float32.
        activation: "relu", "gelu_erf" (also "gelu"), "gelu_tanh", "silu", "sigmoid", "tanh",
            "softplus", "hard_swish", "exp", "abs", "square" or "sqrt".
        c: (M, N) or (batch, M, N), of any type of D but int32.  It is added before the activation.
            beta is 1 if c is given.
        aux: also return pre, in D's type: (D, aux).
        clamp: (min, max).  None is no bound.
        zero_point: an integer that is added to the rounded numbers of D in int8 or uint8, which
            then saturate.
        steps: a list of at most eight tuples.  Each changes the value v after the activation:

                ("add", x)               v + x; also "subtract", "multiply", "divide"
                ("maximum", x)           the larger one of v and x; also "minimum"
                ("activate", name)       f(v), where f is an activation
                ("derivative", name, x)  v · f'(x), the gradient before an activation of x
                ("store", out)           v, which is also written to the array out
                ("sum_columns",)         v; also returns its sums over the rows of D, in float32
                ("amax",)                v; also returns its largest magnitude, in float32
                ("function", f, x0, …)   f of v and up to four of x, where f is of epilogue()

            x: a number, or an array that numpy broadcasts to D, of any type of c.  That of
                "derivative" is an array.  A new number compiles a new kernel: pass a number that
                changes often as an array of one element.
            name: as `activation`, or "leaky_relu" or "elu", with its number as the last item:
                ("activate", "elu", 1.0).
            out: an array as D, which overlaps no other one; or a dtype or None (D's type), which
                returns a new array after D and aux.
            The sums of columns, (N,) or (batch, N), are returned after D and aux, too.  They are
                the gradient of a bias.  One step may sum columns, without split_k.
            The largest magnitude, (1,), is of all matrices and groups.  One step may find it.
            With "mask" as the last item of a step, its array has a bit for each element, uint8
                (…, M, 4 · ceil(N / 32)), bit j % 8 of byte j // 8: ("store", "mask") returns the
                bits of v > 0, ("derivative", "relu", x, "mask") reads 1 or 0.
                np.unpackbits(mask, axis=-1, bitorder="little")[..., :N] are the elements.

            c, bias, aux and the arrays of steps are at most four in all.  An array in several steps
            counts once.
        out_dtype: D's type, by default A's: a dtype, or "f16", "bf16", "f32", "s8", "u8", "e4m3"
            or "e5m2".  numpy arrays of the last two are uint8: from_e4m3().  Of 8-bit types the
            default is float32, but of int8 products without an epilogue, scales, a gate or a row
            operation int32, which permits none of these.
        out: an array for D, with any strides.
        sum_batch: add the products of the batch up, before the epilogue: D is (M, N).  a or b has
            three dimensions.
        f32: how float32 is multiplied.  "ieee" uses float32 arithmetic.  The others split an
            element into 16-bit parts for matrix units.  The products of "bf16x9" are exact.  The
            errors of the others are at most 2**-23 ("bf16x6") or 2**-21 ("f16x3") of the sum of
            |a · b|.  The rounding of sums comes on top.  A device without a configuration for them
            uses "ieee".  A packed b must be packed with the same f32.
        multiply_as: "f16" or "bf16": the type in which A and B are multiplied.  Then a and b may be
            float16, bfloat16, float32, int8, uint8 or an 8-bit float, each of its own dtype.
            vkgemm rounds elements of another dtype to nearest even; 8-bit types are exact.  By
            default a and b have one dtype, and 8-bit floats are multiplied as float16.
        split_k: the number of slices of K.  By default vkgemm chooses.
        max_workspace_bytes: the largest scratch memory that vkgemm may choose.
        config: a configuration, as explain() prints it.  By default vkgemm chooses.
        bf16: uint16 arrays hold the bits of bfloat16.

        Returns D, (M, N) or (batch, M, N).
        Raises ArgumentError if an argument has a wrong type, shape or value, and Error with status
        "unsupported" if the device, or vkgemm itself, cannot compute this combination.

        >>> a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
        >>> device.gemm(a, b, c=a[:, :2], alpha=-1, bias=np.float32([1, 4]), activation="relu")
        array([[0., 2.],
               [0., 2.]], dtype=float32)
        >>> device.gemm(a, b, activation="relu", steps=[("multiply", a[:, :2]), ("add", 0.5)])
        array([[3.5, 3.5],
               [3.5, 3.5]], dtype=float32)
        """
        return self._call(self._request, **_arguments(locals()))

    @suggests
    def gated(self, a: Operand, b: Operand | PackedMatrix, gate: str, *, gated_b: str = "halves",
              b_right: Operand | PackedMatrix | None = None, row_scales: Operand | None = None,
              column_scales: Operand | None = None, bias: Operand | None = None,
              alpha: float = 1.0, aux: bool = False,
              clamp: tuple[float | None, float | None] | None = None,
              zero_point: int = 0,
              steps: list[tuple[Any, ...]] | None = None,
              out_dtype: DTypeLike | str | None = None, out: Operand | None = None,
              f32: str = "ieee", multiply_as: str | None = None,
              split_k: int | None = None, max_workspace_bytes: int | None = None,
              config: str | None = None, bf16: bool = False) -> Any:
        """Multiply A by two matrices B, and combine the products by a gate.

            l = alpha · (row_scale · column_scale · (A·B_l)) + bias_l,  r likewise
            D = clamp(steps(gate(l, r)))

        a: (M, K), (batch, M, K) or (outer, batch, M, K).
        gate: "swiglu" (silu(l) · r), "geglu_erf" (also "geglu") and "geglu_tanh" (l · gelu(r)),
            "reglu" (l · relu(r)), "glu" (l · sigmoid(r)) or "sigmoid_tanh" (sigmoid(l) · tanh(r)).
            Parameters may follow: "swiglu:limit=7:slope=1.702:offset=1" is the gate of gpt-oss.
            The activated half is at most limit, the other half within ±limit; slope is a factor of
            sigmoid's argument; offset is added to the other half.  "swapped" exchanges l and r.
        gated_b: "halves": b is (K, 2N), first the columns of l.  "interleaved": b is (K, 2N),
            columns 2j belong to l and columns 2j + 1 to r.  "separate": b and b_right are (K, N).
        column_scales: (2N,) or (batch, 2N), in the order of B's columns.
        bias: (2N,) or (1, 2N), in the order of B's columns, or (M, 1).
        aux: also return l and r, (M, 2N), in the order of B's columns: (D, aux).

        All other arguments and errors are as in gemm().
        Returns D, (M, N) or (batch, M, N).

        >>> a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
        >>> device.gated(a, b, "reglu")
        array([[9., 9.],
               [9., 9.]], dtype=float32)
        """
        return self._call(self._request, **_arguments(locals()))

    @suggests
    def grouped(self, a: Operand, b: Operand | PackedMatrix, offsets: Operand | None = None, *,
                along: str = "m", sizes: Operand | None = None, rows: Operand | None = None,
                gather: int | None = None, scatter: int | tuple[int, int] | None = None,
                weights: Operand | None = None, b_index: Operand | None = None,
                gate: str | None = None, gated_b: str = "halves",
                b_right: Operand | PackedMatrix | None = None,
                row_scales: Operand | None = None,
                column_scales: Operand | None = None, bias: Operand | None = None,
                activation: str | None = None,
                c: Operand | None = None, alpha: float = 1.0, beta: float | None = None,
                aux: bool = False, clamp: tuple[float | None, float | None] | None = None,
                zero_point: int = 0,
                steps: list[tuple[Any, ...]] | None = None,
                out_dtype: DTypeLike | str | None = None, out: Operand | None = None,
                f32: str = "ieee", multiply_as: str | None = None,
                max_workspace_bytes: int | None = None,
                config: str | None = None, bf16: bool = False) -> Any:
        """Multiply groups of rows by matrices of their own, or groups along K.

            along "m":  D[o_g : o_g+1]  = epilogue(A[o_g : o_g+1] · B_g)
            along "k":  D_g             = epilogue(A[:, o_g : o_g+1] · B[o_g : o_g+1])

        The epilogue is that of gemm(), or of gated() if there is a gate.

        a: (M, K).
        offsets: o, (groups + 1,), int32 or int64.  The host does not read the values of a tensor;
            the device clamps bad ones.
        sizes: (groups,), int32 or int64.  Without offsets, the groups follow each other from 0 on.
            With sizes, offsets are the starts of groups, (groups,), of the same dtype.  Groups must
            ascend and must not overlap.  There may be gaps.
        along: "m": b is (K, N) for all groups, or (groups, K, N).  D is (M, N).  Rows of no group
            are as in `out`, or 0.  "k": b is (K, N).  D is (groups, M, N).
        row_scales: (M,) or, along "k", (groups, M).  column_scales: (N,) or (groups, N).
        bias: (N,), (1, N), (M, 1) or (groups, 1, N).  c: as D, or (M, N).
        steps: as in gemm().  Along "m", (groups, 1, N) and (groups, 1, 1) arrays have a row, or a
            number, for each group.
        gate, gated_b, b_right: as in gated().  b, column_scales, bias and aux have 2N columns.  c
            and activation must be None.

        Rows and matrices by index, along "m" alone.  The host does not read the values of a tensor.
        rows: (M,), int32 or uint32 (torch: int32), the index of each row of the product.
        gather: t.  Row i of the product is row rows[i] // t of a, which may have any number of rows.
            row_scales has a value for each row of a.
        scatter: r: D is (r, N), and row i is stored to row rows[i].  D's other rows are as in `out`,
            or 0.  If two rows have one index, either of them remains.
            (r, t): rows are added up.  Row j of D is the sum over c of weights[j, c] times the row
            whose index is j · t + c.  If no row has that index, the term is left out.  All rows of
            D are written.  The sum is in float32, before D is rounded.
        weights: (r, t), float32.  None: 1.  scatter=(r, 1) without weights is scatter=r.
        b_index: (groups,), int32 or uint32 (torch: int32).  Group g is multiplied by b[b_index[g]],
            and b is (matrices, K, N).  column_scales, bias and arrays of steps have a row for each
            matrix, instead of each group.
        c, aux and the arrays of steps have the M rows of the product.

        All other arguments and errors are as in gemm().
        Returns D.

        >>> a, b = np.ones((3, 4), np.float32), np.ones((2, 4, 2), np.float32)
        >>> device.grouped(a, b * np.float32([[[1]], [[2]]]), np.array([0, 1, 3]))
        array([[4., 4.],
               [8., 8.],
               [8., 8.]], dtype=float32)

        Two tokens, each with 2 of 3 experts: token 0 chooses 2 and 0, token 1 chooses 0 and 1.

        >>> chosen = np.array([[2, 0], [0, 1]])
        >>> rows = np.argsort(chosen, axis=None, kind="stable").astype(np.int32)
        >>> sizes = np.bincount(chosen.ravel(), minlength=3).astype(np.int32)
        >>> x, experts = np.float32([[1], [2]]), np.float32([[[1]], [[10]], [[100]]])
        >>> h = device.grouped(x, experts, sizes=sizes, rows=rows, gather=2)
        >>> h.ravel()
        array([  1.,   2.,  20., 100.], dtype=float32)
        >>> device.grouped(h, np.ones((1, 1), np.float32), sizes=sizes, rows=rows, scatter=(2, 2),
        ...                weights=np.float32([[0.5, 0.5], [0.25, 0.75]]))
        array([[50.5],
               [15.5]], dtype=float32)
        """
        if offsets is None and sizes is None:
            raise ArgumentError("offsets is None and sizes is None: one of them must be given")
        return self._call(self._request, **_arguments(locals()))

    @suggests
    def row_reduction(self, a: Operand, b: Operand | PackedMatrix, op: str, *,
                      eps: float | None = None, gamma: Operand | None = None,
                      row_beta: Operand | None = None, store_d: bool = False,
                      row_scales: Operand | None = None, column_scales: Operand | None = None,
                      bias: Operand | None = None, activation: str | None = None,
                      c: Operand | None = None, alpha: float = 1.0,
                      beta: float | None = None, aux: bool = False,
                      clamp: tuple[float | None, float | None] | None = None,
                      zero_point: int = 0,
                      steps: list[tuple[Any, ...]] | None = None,
                      out_dtype: DTypeLike | str | None = None, out: Operand | None = None,
                      f32: str = "ieee", multiply_as: str | None = None,
                      split_k: int | None = None,
                      max_workspace_bytes: int | None = None, config: str | None = None,
                      bf16: bool = False) -> Any:
        """Multiply two matrices, and normalise or reduce the rows of the result.

            v = clamp(steps(activation(pre))), of gemm(), before it is rounded
            D = op(v), or values = op(v)

            rms_norm      v / sqrt(mean(v²) + eps) · gamma + row_beta
            layer_norm    (v - mean(v)) / sqrt(variance(v) + eps) · gamma + row_beta
            softmax       exp(v - max(v)) / sum(exp(v - max(v)))
            l2_normalize  v / max(sqrt(sum(v²)), eps)
            logsumexp     log(sum(exp(v)))
            variance      mean((v - mean(v))²), divided by N, not by N - 1
            amax          max|v|
            quantise      rint(v · (127 / max|v|)) in int8, and the scale max|v| / 127

        The softmax of a row with +inf, or of a row of only -inf, is NaN, as in PyTorch.

        a: (M, K) or (batch, M, K).  b: (K, N), (batch, K, N) or a PackedMatrix.
        op: "rms_norm", "layer_norm", "softmax" and "l2_normalize" return D.  "logsumexp", "sum",
            "max", "mean", "variance" (over N) and "amax" return float32 values, (M,) or (batch, M).
            "quantise" returns (codes, scales) as quantise_rows() of v: a and row_scales of the next
            product.
        store_d: with an op that returns values, also return D = v: (values, D).  Otherwise D is
            returned in any case.
        gamma, row_beta: (N,), factors and summands of rms_norm and layer_norm.
        eps: by default 1e-6 for rms_norm, 1e-5 for layer_norm, 1e-12 for l2_normalize.  Other ops
            have none.
        aux: also return pre of gemm(), after these.

        All other arguments and errors are as in gemm().

        >>> a, b = np.eye(2, dtype=np.float32), np.float32([[1, 2], [3, 4]])
        >>> device.row_reduction(a, b, "sum")
        array([3., 7.], dtype=float32)
        """
        return self._call(self._request, **_arguments(locals()))

    @suggests
    def quantise_rows(self, a: Operand, *, group: int = 0, bf16: bool = False) -> Any:
        """Convert the rows of a matrix to int8 codes with a scale per row, on the device.

            scale = max|row| / 127      code = rint(x · (127 / max|row|)), in float32

        a: (M, K) or (batch, M, K), float16, float32 or bfloat16.
        group: 32, 64 or 128: so many columns of a row share a scale.  0: the whole row does.

        Returns (codes, scales): int8 with the shape of a, and float32, (M,) or (batch, M).  A row
        of zeros has scale 0.  A row with NaN has scale NaN, a row with Inf scale Inf, and both have
        codes 0: their rows of a product are NaN.
        Raises ArgumentError if a has another type or shape.
        With a group, scales are (M, groups) or (batch, M, groups).  They are row_scales of products
        with a B of codes that was packed with element="s8".

        codes and scales are gemm()'s a and row_scales.  For its b and column_scales, of a matrix
        (K, N), pass codes.T and scales of quantise_rows(b.T).

        >>> codes, scales = device.quantise_rows(np.float32([[127, -254, 64]]))
        >>> codes, scales
        (array([[  64, -127,   32]], dtype=int8), array([2.], dtype=float32))
        """
        return self._call(row_quantisation, a, bf16=bf16, in_rows=True, group=group)

    def explain(self, a: Operand, b: Operand | PackedMatrix, **arguments: Any) -> str:
        """Say which kernel computes a product, and why: several lines.

        The product is not computed.  A Device with tune="first" tunes a new problem first.
        "Reading explain()" in bench/TUNING.md describes the lines.
        The arguments are those of gemm().  With `gate` they are those of gated(), with `offsets` or
        `sizes` of grouped(), with `op` of row_reduction(), and errors are theirs.

        >>> a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
        >>> print(device.explain(a, b))  # doctest: +ELLIPSIS
        m 2, n 4, k 3, batch 1, f32 -> f32 on ...
        """
        bf16 = arguments.pop("bf16", False)
        require_known("explain", arguments, EXPLAINED)
        with self._gpu.lock:
            plan = self._plan(self._requested(a, b, bf16, arguments))
            return written(lib.vkgemm_plan_explain, plan.handle)

    def _requested(self, a: Any, b: Any, bf16: bool, arguments: dict[str, Any]) -> Request:
        """What a call with these arguments asks for.  Nothing is copied."""
        if not is_tensor(a):
            return self._request(Numpy(bf16), a, b, **named(arguments))
        tensors = self._tensors_of("a", a)
        request: Request = tensors.request(self._request, dict(a=a, b=b, **named(arguments)))
        return request


#: The arguments of explain().
EXPLAINED = [name for name in arguments_of(product) if not name.startswith("arrays")]
