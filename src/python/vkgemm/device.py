"""Matrix products on one device, of numpy's arrays and torch's tensors."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .arrays import INPUTS, Arrays, Numpy, Operand, as_matrix
from .binding import (ArgumentError, Error, Held, check, enumerator_names, ffi, lib, output, text,
                      value_of, written)
from .gpu import Gpu
from .packed import PackedMatrix
from .plans import PackPlan, Plan, Plans
from .problem import part
from .quantised import Codes, quantised, require_in_f16
from .request import Request, product, row_quantisation
from .staging import Staging

if TYPE_CHECKING:
    from .torch import Tensors


def _close(gpu: Gpu, plans: Plans) -> None:
    if gpu.is_inherited:
        return
    with gpu.lock:
        try:
            gpu.settle()
        finally:  # nobody calls this again
            while gpu.at_close:
                gpu.at_close.pop()()
            plans.close()
            gpu.close()


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _arguments(variables: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a method, of its locals()."""
    return {name: value for name, value in variables.items() if name != "self"}


class Device(Held):
    """A Vulkan device that multiplies matrices.

    `index` counts devices(); None takes the best, a GPU if there is one.  It makes a Vulkan
    instance, a device and a queue of its own.  Every call copies its operands to the device, waits
    for the result and copies it back.  Any thread may call; calls follow each other.

    Arrays are float16, float32 or bfloat16 (of ml_dtypes); with bf16=True, uint16 arrays hold the
    bits of bf16, and bf16 results are such arrays.  A and B share one type, which may also be int8.
    f32 is multiplied in IEEE f32, if the argument `f32` says nothing else; f16 and bf16 are
    accumulated in f32, int8 in int32: exactly.  Transposed views are read as they lie.

    A child made by fork() cannot use the device: calls raise Error.  It must end by os._exit(), as
    multiprocessing does, because exit handlers of drivers may hang there.

    torch tensors on the same GPU are taken, too, and give tensors.  Such a call does not wait on
    the host: it runs in the order of torch's current stream.  Tensors of empty() and shared(), and
    results, lie in memory that torch and the device see both; others are copied on the device, with
    a warning the first time, and counted in `copies`.  No gradient is computed.  As with memory of
    torch's own, a tensor that another stream still reads must live until that is waited for.

    self_test: whether to try, before anything else, each kind of kernel that the device offers and
    that has no verdict yet, and to keep the verdicts where `vkgemm info --self-test` keeps them.
    They are read in any case: a kind that failed is not used, and some kinds only if they passed.
    pipeline_cache_file: where compiled kernels are kept from one run to the next; nobody else may
    be able to write there.  tuning_file: a table that `vkgemm tune` wrote; it comes before those
    that are built in.

    Failures are vkgemm.Error, with a status and a message.  Messages that are not errors go to the logger
    "vkgemm" of the module logging.
    """

    #: The most plans that are kept.
    max_plans = 512

    def __init__(self, index: int | None = None, *, self_test: bool = False,
                 pipeline_cache_file: str | PathLike[str] | None = None,
                 tuning_file: str | PathLike[str] | None = None):
        self._gpu = Gpu(index, self_test, pipeline_cache_file=pipeline_cache_file,
                        tuning_file=tuning_file)
        self._staging = Staging(self._gpu)
        self._tensors: Tensors | None = None
        self._plans = Plans(self._gpu)
        self._closing = weakref.finalize(self, _close, self._gpu, self._plans)
        #: The milliseconds that the device took for the last product or quantise_rows(), without
        #: copies; None if it keeps no time.
        self.last_ms: float | None = None

    def close(self) -> None:
        """Frees all that the device holds, packed matrices too, even if the device is lost.

        It must not be used again.  In a child made by fork() it does nothing.
        """
        self._closing()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _caps(self) -> Any:
        self._require_open()
        return value_of("VkgemmCaps const *", lib.vkgemm_context_caps, self._gpu.context)

    def _require_open(self) -> None:
        self._gpu.require_own()
        if self._gpu.context is None:
            raise Error("invalid_handle", "the device is closed")

    def _tensors_of(self, argument: str, tensor: Any) -> Tensors:
        """What this device does with tensors, of which this is one."""
        if self._tensors is None and not tensor.is_cuda:
            raise ArgumentError(f"{argument} is a torch tensor on {tensor.device}: "
                                "it must be on the GPU, or a numpy array")
        return self._shared()

    def _shared(self) -> Tensors:
        with self._gpu.lock:
            self._require_open()
            if self._tensors is None:
                try:
                    from .torch import on
                except ImportError as error:
                    raise Error("missing_feature", f"torch is missing: {error}") from None
                self._tensors = on(self._gpu, self.name)
            return self._tensors

    def _described(self) -> Any:
        device = output("VkgemmDeviceCaps")
        check(lib.vkgemm_caps_device(self._caps(), device))
        return device

    @property
    def name(self) -> str:
        """The device's name, as its driver has it."""
        return text(self._described().name)

    @property
    def driver(self) -> str:
        """The driver's name and version."""
        device = self._described()
        return f"{text(device.driver_name)} {text(device.driver_info)}".rstrip()

    @property
    def architecture(self) -> str:
        """The key of the device's tuning table: "nvidia_sm90"."""
        return text(self._described().architecture)

    @property
    def paths(self) -> dict[str, str]:
        """The paths, each with the reason why it cannot be used: empty if it can."""
        caps, result = self._caps(), {}
        available, reason = ffi.new("VkBool32 *"), ffi.new("char const **")
        for path, name in enumerate(enumerator_names("VkgemmPath")):
            check(lib.vkgemm_caps_path(caps, path, available, reason))
            result[name] = "" if available[0] else text(reason[0])
        return result

    def gemm(self, a: Operand, b: Operand | PackedMatrix, *, row_scales: Operand | None = None,
             column_scales: Operand | None = None, bias: Operand | None = None,
             activation: str | None = None, residual: Operand | None = None, alpha: float = 1.0,
             beta: float | None = None, aux: bool = False,
             clamp: tuple[float | None, float | None] | None = None,
             out_dtype: DTypeLike | str | None = None, out: Operand | None = None,
             f32: str = "ieee", split_k: int | None = None, max_workspace_bytes: int | None = None,
             config: str | None = None, bf16: bool = False) -> Any:
        """D = clamp(activation(alpha · row_scale·column_scale · A·B + beta · residual + bias)).

        a: (M, K) or (batch, M, K).  b: (K, N), (batch, K, N) or packed.  A matrix that is alone
        serves the whole batch.
        row_scales: (M,) or (batch, M), float32.  column_scales: (N,) or (batch, N), float32.
        bias: (N,), (1, N) or (M, 1), or (batch, 1, N) or (batch, M, 1).
        activation: "relu", "gelu_erf", "gelu_tanh", "silu", "sigmoid" or "tanh".
        residual: (M, N) or (batch, M, N).  beta is 1 if it is given.
        aux: whether to return the value before the activation, too: (D, aux).
        clamp: (min, max); None is no bound.
        out_dtype: D's type, by default A's.  Of int8 A it is int32, or float32 where D is not A·B
        itself but anything more; int32 holds nothing more.  out: an array for D, of any strides.
        f32: how float32 inputs are multiplied.  "ieee": by f32 arithmetic.  The others split each
        element into 16-bit parts for matrix units, which is faster where these are: "bf16x9" takes
        exact products, "bf16x6" errs by 2**-23 of the sum of |a · b|, "f16x3" by 2**-21, beside
        roundings of sums.  A device without a configuration for them takes "ieee" instead.  A packed b was packed with the same f32.
        split_k: the slices of K that are multiplied apart; by default vkgemm chooses.
        max_workspace_bytes: the most scratch memory that vkgemm may choose.
        config: how to compute it, as explain() prints it; by default vkgemm chooses.

        Returns D: (M, N) or (batch, M, N).
        """
        return self._call(self._request, **_arguments(locals()))

    def gated(self, a: Operand, b: Operand | PackedMatrix, gate: str, *, gated_b: str = "halves",
              b_right: Operand | PackedMatrix | None = None, row_scales: Operand | None = None,
              column_scales: Operand | None = None, bias: Operand | None = None,
              alpha: float = 1.0, aux: bool = False,
              clamp: tuple[float | None, float | None] | None = None,
              out_dtype: DTypeLike | str | None = None, out: Operand | None = None,
              f32: str = "ieee", split_k: int | None = None, max_workspace_bytes: int | None = None,
              config: str | None = None, bf16: bool = False) -> Any:
        """D = clamp(gate(l, r)), where l and r are what gemm() computes with two matrices B.

        a: (M, K) or (batch, M, K).
        gate: "swiglu" (silu(l) · r), "geglu_erf", "geglu_tanh" (l · gelu(r)), "reglu", "glu"
        (l · sigmoid(r)) or "sigmoid_tanh" (sigmoid(l) · tanh(r)).
        gated_b: "halves": b is (K, 2N), the N columns of l before those of r; "interleaved": b is
        (K, 2N), columns 2j and 2j + 1 are of l and r; "separate": b and b_right are (K, N).
        column_scales: (2N,) or (batch, 2N), as B's columns.
        bias: (2N,) or (1, 2N), as B's columns, or (M, 1).
        aux: whether to return l and r, too, (M, 2N), as B's columns.
        All else is as in gemm().

        Returns D: (M, N) or (batch, M, N), or (D, aux).
        """
        return self._call(self._request, **_arguments(locals()))

    def grouped(self, a: Operand, b: Operand | PackedMatrix, offsets: Operand, *, along: str = "m",
                gate: str | None = None, gated_b: str = "halves",
                b_right: Operand | PackedMatrix | None = None,
                row_scales: Operand | None = None,
                column_scales: Operand | None = None, bias: Operand | None = None,
                activation: str | None = None,
                residual: Operand | None = None, alpha: float = 1.0, beta: float | None = None,
                aux: bool = False, clamp: tuple[float | None, float | None] | None = None,
                out_dtype: DTypeLike | str | None = None, out: Operand | None = None,
                f32: str = "ieee", max_workspace_bytes: int | None = None,
                config: str | None = None, bf16: bool = False) -> Any:
        """A product for each group: group g is [offsets[g], offsets[g + 1]) of M or of K.

        a: (M, K).  offsets: (groups + 1,), int32 or int64; the host does not read those that are a
        tensor, and the device clamps bad ones.
        along "m": groups are rows of A and of D.  b: (K, N) for all groups, or (groups, K, N).
        Returns D: (M, N); rows of no group are as in `out`, or 0.
        along "k": groups are columns of A and rows of B.  b: (K, N).
        Returns D: (groups, M, N).
        row_scales: (M,) or, along "k", (groups, M).  column_scales: (N,) or (groups, N).
        bias: (N,), (1, N), (M, 1) or (groups, 1, N).  residual: as D, or (M, N).
        gate, gated_b, b_right: as in gated(): b has 2N columns for D's N, or there are two matrices
        B; column_scales, bias and aux have 2N columns, and there is neither activation nor
        residual.
        All else is as in gemm().
        """
        return self._call(self._request, **_arguments(locals()))

    def row_reduction(self, a: Operand, b: Operand | PackedMatrix, op: str, *,
                      eps: float | None = None, gamma: Operand | None = None,
                      row_beta: Operand | None = None, store_d: bool = False,
                      row_scales: Operand | None = None, column_scales: Operand | None = None,
                      bias: Operand | None = None, activation: str | None = None,
                      residual: Operand | None = None, alpha: float = 1.0,
                      beta: float | None = None, aux: bool = False,
                      clamp: tuple[float | None, float | None] | None = None,
                      out_dtype: DTypeLike | str | None = None, out: Operand | None = None,
                      f32: str = "ieee", split_k: int | None = None,
                      max_workspace_bytes: int | None = None, config: str | None = None,
                      bf16: bool = False) -> Any:
        """A reduction of the rows of what gemm() computes, before the cast to D's type.

        a: (M, K) or (batch, M, K).  b: (K, N), (batch, K, N) or packed.
        op: "rms_norm", "layer_norm", "softmax" and "l2_normalize" change D, and return it.
        "logsumexp", "sum", "max", "mean" and "variance" (over N) return values in f32: (M,) or
        (batch, M); with store_d=True, (values, D).
        gamma, row_beta: (N,), the factors and summands of rms_norm and layer_norm.
        eps: by default 1e-6 of rms_norm, 1e-5 of layer_norm, 1e-12 of l2_normalize.
        aux: whether to return the value before activation and reduction, too, at the end.
        All else is as in gemm().
        """
        return self._call(self._request, **_arguments(locals()))

    def explain(self, a: Operand, b: Operand | PackedMatrix, **arguments: Any) -> str:
        """Why this kernel: for people; several lines.

        The arguments are those of gemm() or, with `gate`, of gated(), with `offsets`, of grouped(),
        which may have a gate, too, with `op`, of row_reduction().
        """
        with self._gpu.lock:
            if _is_tensor(a):
                arguments.pop("bf16", None)
                tensors = self._tensors_of("a", a)
                request = tensors.request(self._request, dict(a=a, b=b, **arguments))
            else:
                request = self._request(Numpy(arguments.pop("bf16", False)), a, b, **arguments)
            return written(lib.vkgemm_plan_explain, self._plan(request).handle)

    def pack(self, b: Operand, *, gated_b: str | None = None, f32: str = "ieee",
             bf16: bool = False) -> PackedMatrix:
        """B as the device loads it best, kept there for any number of products.

        b: (K, N), or (batch, K, N) for a batch or for groups.
        gated_b: for a product with a gate, how B's columns stand, as in gated().
        f32: how a float32 b is multiplied, as in gemm().
        """
        if _is_tensor(b):
            return self._tensors_of("b", b).pack(b, gated_b, f32)
        arrays = Numpy(bf16)
        array = as_matrix("b", arrays.array("b", b))
        source, lies = arrays.lay_out(array)
        matrix = part(type=arrays.element("b.dtype", array.dtype, INPUTS)) + lies
        with self._gpu.lock:
            self._require_open()
            self._gpu.settle()
            plan = PackPlan(self._gpu, array.shape, matrix, gated_b, f32=f32)
            return self._staging.pack(plan, {"source": source}, array)

    def quantise(self, b: Operand, type: str = "int4", *, group_k: int = 128, zeros: bool = False,
                 element: str = "f16", gated_b: str | None = None) -> PackedMatrix:
        """B as codes, kept on the device: pack_codes() of what vkgemm.quantise() makes of it.

        The host makes the codes: a torch tensor is copied there, with a warning, and counted in
        `copies`.
        """
        if _is_tensor(b):
            b = self._tensors_of("b", b).on_host("b", b)
        numbers, codes = quantised(b, type, group_k, zeros)
        if element == "f16":
            require_in_f16(numbers, codes)
        return self.pack_codes(codes, element=element, gated_b=gated_b)

    def pack_codes(self, codes: Codes, *, element: str = "f16",
                   gated_b: str | None = None) -> PackedMatrix:
        """A quantised B as the device loads it best, kept there for any number of products.

        codes: of numpy arrays; a Codes takes no torch tensors.
        element: the type that it is multiplied as, "f16" or "bf16": A's.
        gated_b: for a product with a gate, how B's columns stand, as in gated().
        """
        arrays = {name: np.ascontiguousarray(array) for name in ("codes", "scales", "zeros")
                  if (array := getattr(codes, name)) is not None}
        with self._gpu.lock:
            self._require_open()
            self._gpu.settle()
            plan = PackPlan(self._gpu, codes.shape, part(type=element), gated_b, codes.part)
            return self._staging.pack(plan, arrays, None)

    def quantise_rows(self, a: Operand, *, bf16: bool = False) -> Any:
        """The rows of a matrix as int8 codes, with a scale each, made on the device.

        a: (M, K) or (batch, M, K), float16, float32 or bfloat16.

        Returns (codes, scales): int8 as a, and float32, (M,) or (batch, M).  In float32 a row's
        scale is max|row| / 127, and a code rint(x · (127 / max|row|)).  Zeros have codes and scale
        0, a row with NaN has the scale NaN, one with Inf the scale Inf, and both have codes 0:
        their rows of a product are NaN.

        They are gemm()'s a and row_scales.  Its b and column_scales are, of a matrix (K, N), what
        quantise_rows(b.T) gives: codes.T, whose columns lie one behind the other, and scales.
        """
        return self._call(row_quantisation, a, bf16=bf16, in_rows=True)

    def empty(self, *shape: int, dtype: Any) -> Any:
        """A torch tensor of any values, in memory that this device and torch see both.

        dtype: torch.float16, torch.bfloat16, torch.float32, torch.int8 or torch.int32.
        """
        return self._shared().empty(shape, dtype)

    def shared(self, tensor: Any) -> Any:
        """A torch tensor as it is, if it lies in memory of empty(), else a copy there.

        A copy has no gradient.  It is transposed if that is how the tensor lies.
        """
        return self._tensors_of("tensor", tensor).shared(tensor)

    @property
    def copies(self) -> Counter[str]:
        """How many torch tensors calls had to copy, by the names of their arguments."""
        return Counter() if self._tensors is None else self._tensors.copies

    def release_memory(self) -> None:
        """Frees what the device keeps for torch tensors to come, as torch.cuda.empty_cache() does.

        It waits until the GPU is done.
        """
        if self._tensors is not None:
            self._tensors.release()

    def _request(self, arrays: Arrays, a: Any, b: Any, **arguments: Any) -> Request:
        request = product(arrays, a, b, **arguments)
        for name, matrix in request.packed.items():
            if matrix.gpu is not self._gpu:
                raise ArgumentError(f"{name} is {matrix!r}, which another device packed")
        return request

    def _plan(self, request: Request) -> Plan:
        """The request's plan, from those that were kept or new."""
        self._require_open()
        self._gpu.settle()
        return self._plans.find(request, self.max_plans)

    def _call(self, build: Callable[..., Request], a: Any, *, bf16: bool, in_rows: bool = False,
              **arguments: Any) -> Any:
        """Runs what `build` makes of the arguments; `in_rows`: it takes A in rows alone."""
        if type(a) is not np.ndarray and _is_tensor(a):
            self.last_ms = None
            tensors = self._tensors or self._tensors_of("a", a)
            return tensors.run(build, self._plan, dict(a=a, **arguments), in_rows)
        request = build(Numpy(bf16), a, **arguments)
        with self._gpu.lock:
            self.last_ms = self._staging.run(self._plan(request), request)
        results = tuple(request.outputs.values())
        return results[0] if len(results) == 1 else results
