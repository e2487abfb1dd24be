"""Matrix products on one device, of numpy's arrays and torch's tensors."""

from __future__ import annotations

import sys
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from .arrays import INPUTS, Array, Arrays, Numpy, Operand, as_matrix
from .binding import (ArgumentError, Error, Held, check, enumerator_names, ffi, initialized, lib,
                      output, owned, text, value_of, written)
from .packed import PackedMatrix, PackPlan
from .problem import Part, bits, part, structure
from .quantised import Codes, quantised, require_in_f16
from .request import Builder, Request, row_quantisation
from .vulkan import Arena, Buffer, Gpu, Instance

if TYPE_CHECKING:
    from .torch import Tensors

_ALIGNMENT = 256  # of every operand, as a workspace needs it


class _Plan:
    """A plan of a product, and the scratch memory that it needs."""

    def __init__(self, gpu: Gpu, request: Request):
        self._gpu = gpu
        fields, kept = structure("VkgemmProblem", request.problem)
        config = request.config
        text_or_null = ffi.NULL if config is None else ffi.new("char[]", config)
        self.handle = owned(
            "VkgemmPlan",
            lambda out: gpu.calls(lib.vkgemm_plan_create, gpu.context, fields, text_or_null, out),
            lib.vkgemm_plan_destroy)
        self.workspace_bytes = value_of("uint64_t", lib.vkgemm_plan_workspace_bytes, self.handle)

    def operands(self, workspace: int) -> Any:
        """No operand yet but the scratch memory, which is at this address."""
        operands = initialized("VkgemmOperands")
        operands.workspace = (workspace, self.workspace_bytes)
        return operands

    def record(self, commands: Any, operands: Any) -> None:
        """Records it on these operands."""
        self._gpu.calls(lib.vkgemm_plan_record, self.handle, commands, operands, ffi.NULL)


class _QuantisePlan:
    """The same of rows that become codes."""

    workspace_bytes = 0

    def __init__(self, gpu: Gpu, request: Request):
        self._gpu = gpu
        fields, kept = structure("VkgemmRowQuantisation", request.problem)
        self.handle = owned(
            "VkgemmQuantisePlan",
            lambda out: gpu.calls(lib.vkgemm_quantise_plan_create, gpu.context, fields, out),
            lib.vkgemm_quantise_plan_destroy)

    def operands(self, workspace: int) -> Any:
        return initialized("VkgemmQuantiseSpans")

    def record(self, commands: Any, operands: Any) -> None:
        self._gpu.calls(lib.vkgemm_quantise_plan_record, self.handle, commands, operands)


_AnyPlan: TypeAlias = "_Plan | _QuantisePlan"
_Plans: TypeAlias = "OrderedDict[tuple[Part, bytes | None], _AnyPlan]"


def _close(gpu: Gpu, plans: _Plans) -> None:
    if gpu.is_inherited:
        return
    with gpu.lock:
        try:
            gpu.settle()
        finally:  # nobody calls this again
            while gpu.at_close:
                gpu.at_close.pop()()
            for plan in plans.values():
                ffi.release(plan.handle)
            plans.clear()
            gpu.close()


def devices() -> list[str]:
    """The names of this machine's devices, in the order of Device's index."""
    instance = Instance()
    try:
        return [ffi.string(instance.properties(device).deviceName).decode()
                for device in instance.devices]
    finally:
        instance.close()


def uuids() -> list[bytes]:
    """What tells this machine's devices apart in every API, in the same order."""
    instance = Instance()
    try:
        return [instance.uuid(device) for device in instance.devices]
    finally:
        instance.close()


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


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
        self._arena = Arena(self._gpu)
        self._tensors: Tensors | None = None
        self._plans: _Plans = OrderedDict()
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
        return self._call(
            self._request, a, b=b, row_scales=row_scales, column_scales=column_scales, bias=bias,
            activation=activation, residual=residual, alpha=alpha, beta=beta, aux=aux, clamp=clamp,
            out_dtype=out_dtype, out=out, f32=f32, split_k=split_k,
            max_workspace_bytes=max_workspace_bytes, config=config, bf16=bf16)

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
        return self._call(
            self._request, a, b=b, gate=gate, gated_b=gated_b, b_right=b_right,
            row_scales=row_scales, column_scales=column_scales, bias=bias, alpha=alpha, aux=aux,
            clamp=clamp, out_dtype=out_dtype, out=out, f32=f32, split_k=split_k,
            max_workspace_bytes=max_workspace_bytes, config=config, bf16=bf16)

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
        return self._call(
            self._request, a, b=b, offsets=offsets, along=along, gate=gate, gated_b=gated_b,
            b_right=b_right, row_scales=row_scales, column_scales=column_scales, bias=bias,
            activation=activation, residual=residual, alpha=alpha, beta=beta, aux=aux, clamp=clamp,
            out_dtype=out_dtype, out=out, f32=f32, max_workspace_bytes=max_workspace_bytes,
            config=config, bf16=bf16)

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
        return self._call(
            self._request, a, b=b, op=op, eps=eps, gamma=gamma, row_beta=row_beta,
            store_d=store_d, row_scales=row_scales, column_scales=column_scales, bias=bias,
            activation=activation, residual=residual, alpha=alpha, beta=beta, aux=aux, clamp=clamp,
            out_dtype=out_dtype, out=out, f32=f32, split_k=split_k,
            max_workspace_bytes=max_workspace_bytes, config=config, bf16=bf16)

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
            return self._pack(plan, array, source)

    def _pack(self, plan: PackPlan, array: Array, source: Array) -> PackedMatrix:
        gpu = self._gpu
        device, host = self._arena.reserve(max(source.nbytes, 1), max(source.nbytes, 1))
        size = max(plan.bytes or array.nbytes, 1)
        target = gpu.with_room(lambda: Buffer(gpu, size, host=False))
        try:
            if plan.bytes == 0:
                source = array
            _view(host, 0, source)[...] = source
            gpu.begin()
            if plan.bytes == 0:
                gpu.copy(host, target, 0, source.nbytes)
            else:
                gpu.copy(host, device, 0, source.nbytes)
                gpu.barrier()
                plan.record(gpu.commands, device.address, target)
            gpu.run()
            return plan.packed(target)
        except BaseException:
            gpu.settle()
            target.close()
            raise

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
        arrays = [np.ascontiguousarray(array) for array in (codes.codes, codes.scales, codes.zeros)
                  if array is not None]
        starts = [0]
        for array in arrays:
            starts.append(starts[-1] + -(-array.nbytes // 16) * 16)
        gpu = self._gpu
        with gpu.lock:
            self._require_open()
            gpu.settle()
            plan = PackPlan(gpu, codes.shape, part(type=element), gated_b, codes.part)
            device, host = self._arena.reserve(max(starts[-1], 1), max(starts[-1], 1))
            target = gpu.with_room(lambda: Buffer(gpu, max(plan.bytes, 1), host=False))
            try:
                for start, array in zip(starts, arrays):
                    _view(host, start, array)[...] = array
                gpu.begin()
                if plan.bytes != 0:
                    gpu.copy(host, device, 0, starts[-1])
                    gpu.barrier()
                    spans = [(device.address + start, array.nbytes)
                             for start, array in zip(starts, arrays)]
                    plan.record_codes(gpu.commands, (spans + [(0, 0)])[:3], target)
                gpu.run()
                return plan.packed(target)
            except BaseException:
                gpu.settle()
                target.close()
                raise

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

    def _request(self, arrays: Arrays, a: Any, b: Any, *, gate: str | None = None,
                 gated_b: str = "halves", b_right: Any = None, offsets: Any = None,
                 along: str = "m", op: str | None = None, eps: float | None = None,
                 gamma: Any = None, row_beta: Any = None, store_d: bool = False,
                 row_scales: Any = None, column_scales: Any = None, bias: Any = None,
                 activation: str | None = None, residual: Any = None, alpha: float = 1.0,
                 beta: float | None = None, aux: bool = False, clamp: Any = None,
                 out_dtype: Any = None, out: Any = None, f32: str = "ieee",
                 split_k: int | None = None, max_workspace_bytes: int | None = None,
                 config: str | None = None) -> Request:
        builder = Builder(arrays, a, b, f32, config)
        if gate is not None:
            builder.gated(gate, gated_b, b_right)
        if offsets is not None:
            builder.grouped(offsets, along)
        builder.shapes()
        builder.epilogue(alpha=alpha, row_scales=row_scales, column_scales=column_scales, bias=bias,
                         residual=residual, beta=beta, activation=activation, aux=aux, clamp=clamp)
        if op is not None:
            builder.row_reduction(op, eps=eps, gamma=gamma, row_beta=row_beta, store_d=store_d)
        builder.split(split_k, max_workspace_bytes)
        request = builder.request(out_dtype, out)
        for name, matrix in request.packed.items():
            if matrix.gpu is not self._gpu:
                raise ArgumentError(f"{name} is {matrix!r}, which another device packed")
        return request

    def _plan(self, request: Request) -> _AnyPlan:
        """The request's plan, from those that were kept or new."""
        self._require_open()
        self._gpu.settle()
        key = (bits(request.problem), request.config)
        plan = self._plans.get(key)
        if plan is None:
            plan = (_Plan(self._gpu, request) if request.kind == "VkgemmProblem" else
                    _QuantisePlan(self._gpu, request))
            self._plans[key] = plan
            if len(self._plans) > self.max_plans:
                self._plans.popitem(last=False)
        else:
            self._plans.move_to_end(key)
        return plan

    def _call(self, build: Callable[..., Request], a: Any, *, bf16: bool, in_rows: bool = False,
              **arguments: Any) -> Any:
        """Runs what `build` makes of the arguments; `in_rows`: it takes A in rows alone."""
        if type(a) is not np.ndarray and _is_tensor(a):
            self.last_ms = None
            tensors = self._tensors or self._tensors_of("a", a)
            return tensors.run(build, self._plan, dict(a=a, **arguments), in_rows)
        request = build(Numpy(bf16), a, **arguments)
        with self._gpu.lock:
            self._execute(self._plan(request), request)
        results = tuple(request.outputs.values())
        return results[0] if len(results) == 1 else results

    def _execute(self, plan: _AnyPlan, request: Request) -> None:
        """Copies operands to the device, computes, and copies what was written back.

        Inputs come first in memory, then outputs, then the workspace, which the host has none of.
        """
        gpu, offset = self._gpu, 0
        places: dict[str, int] = {}
        arrays = request.inputs | request.outputs
        for name, array in arrays.items():
            places[name] = offset
            offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        first_output = min(places[name] for name in request.outputs)
        device, host = self._arena.reserve(max(offset + plan.workspace_bytes, 1), max(offset, 1))
        operands = plan.operands(device.address + offset)
        for name, array in arrays.items():
            setattr(operands, name, (device.address + places[name], array.nbytes))
            if name in request.inputs or request.preserved:
                _view(host, places[name], array)[...] = array
        for name, matrix in request.packed.items():
            setattr(operands, name, (matrix.buffer.address, matrix.buffer.size))
            if matrix.fingerprint is not None:
                setattr(operands, f"{name}_fingerprint", matrix.fingerprint[0])
        gpu.begin()
        gpu.copy(host, device, 0, offset if request.preserved else first_output)
        gpu.barrier()
        gpu.stamp(0)
        plan.record(gpu.commands, operands)
        gpu.stamp(1)
        gpu.barrier()
        gpu.copy(device, host, first_output, offset - first_output)
        gpu.barrier()
        gpu.run()
        self.last_ms = gpu.milliseconds()
        for name, array in request.outputs.items():
            array[...] = _view(host, places[name], array)


def _view(buffer: Buffer, offset: int, like: Array) -> Array:
    """The host's memory as a dense array of the shape and type of another."""
    size = like.nbytes
    data = np.frombuffer(buffer.data, np.uint8, size, offset)
    return data.view(like.dtype).reshape(like.shape)
