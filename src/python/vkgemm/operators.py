"""vkgemm's products as operators of torch, torch.ops.vkgemm, which torch.compile takes whole.

    import vkgemm.operators
    vkgemm.operators.use(device)

    @torch.compile(fullgraph=True)
    def layer(x):
        return vkgemm.operators.gemm(x, weight, bias=bias, activation="gelu") * scale

The functions have the arguments of the Device's methods, except `out` and `bf16`, and compute the
same bits.  A step stores to a new tensor: ("store", dtype).  An operator has no gradient: tensors
that want one are refused.  CUDA graphs cannot hold vkgemm's work: do not compile with
mode="reduce-overhead".
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from typing import Any

import torch

from .arrays import NAMES
from .binding import ArgumentError
from .device import Device
from .epilogues import EpilogueFunction
from .names import arguments_of, require_known, suggests
from .packed import PackedMatrix, packed_matrix
from .problem import Part, part
from .request import product, row_quantisation
from .steps import is_array_name, named, stored
from .torch_arrays import ELEMENTS, Torch

if not hasattr(torch.library, "custom_op"):
    raise ImportError(f"vkgemm.operators needs PyTorch 2.4, and this is {torch.__version__}")

# Tensors are no keyword-only arguments, which torch.library does not take.  A packed matrix is named
# by its handle.
_SCHEMA = """(Tensor a, Tensor? b=None, str? packed_b=None, Tensor? b_right=None,
    str? packed_b_right=None, str? gate=None, str gated_b="halves", Tensor? offsets=None,
    str along="m", str? op=None, float? eps=None, Tensor? gamma=None, Tensor? row_beta=None,
    bool store_d=False, Tensor? row_scales=None, Tensor? column_scales=None, Tensor? bias=None,
    str? activation=None, Tensor? c=None, float alpha=1.0, float? beta=None, bool aux=False,
    float? clamp_min=None, float? clamp_max=None, int zero_point=0, str? steps=None, Tensor? t0=None,
    Tensor? t1=None, Tensor? t2=None, Tensor? t3=None, ScalarType? out_dtype=None, str f32="ieee",
    str? multiply_as=None, int? split_k=None, int? max_workspace_bytes=None, str? config=None,
    bool sum_batch=False, Tensor? sizes=None, Tensor? rows=None, int? gather=None,
    int[]? scatter=None, Tensor? weights=None, Tensor? b_index=None) -> Tensor[]"""

# The operator's tensors of steps, which are JSON: named() of them, in its order.
_TENSORS = ("t0", "t1", "t2", "t3")

_DTYPES = {element: getattr(torch, name) for element, name in NAMES.items()}

_devices: weakref.WeakValueDictionary[torch.device, Device] = weakref.WeakValueDictionary()


class _Shapes(Torch):
    """Tensors that have shapes and no memory, as a compiler has them."""

    def lay_out(self, array: Any) -> tuple[Any, Part]:
        return array, part(layout="row_major")

    def rows(self, array: Any) -> Part:
        return ()


def _arguments(values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments of request.product() for those of the operator; missing ones are defaults."""
    names = (argument.name for argument in torch.ops.vkgemm.product.default._schema.arguments)
    arguments = {name: value for name, value in (*zip(names, values), *named.items())
                 if value is not None}
    for name in ("b", "b_right"):
        handle = arguments.pop(f"packed_{name}", None)
        if handle is not None:
            arguments[name] = packed_matrix(handle)
    clamp = arguments.pop("clamp_min", None), arguments.pop("clamp_max", None)
    if clamp != (None, None):
        arguments["clamp"] = clamp
    if "steps" in arguments:
        arguments["steps"] = tuple(map(tuple, json.loads(arguments["steps"])))
        names_of_arrays = dict.fromkeys(
            item for step in arguments["steps"] for item in step if is_array_name(item))
        for name, tensor in zip(names_of_arrays, _TENSORS):
            arguments[name] = arguments.pop(tensor)
    return arguments


@torch.compiler.assume_constant_result  # a compiler runs it, and does not read it
def _encoded(steps: tuple[tuple[Any, ...], ...]) -> str:
    """Steps, as named() gives them, as the operator's text."""
    for name in stored(steps):
        raise ArgumentError(f"{name} is a tensor: an operator stores to a new one, ('store', dtype)")
    if any(isinstance(item, EpilogueFunction) for step in steps for item in step):
        raise ArgumentError("steps has a function of epilogue(): operators take none, Device.gemm() "
                            "does")
    return json.dumps(steps, default=lambda item: ELEMENTS[item] if item in ELEMENTS else
                      float(item))


def _device_of(a: torch.Tensor) -> Device:
    device = _devices.get(a.device)
    if device is None:
        raise ArgumentError(f"a is on {a.device}, which no Device serves: call "
                            "vkgemm.operators.use(device) before")
    return device


def _like(request: Any, a: torch.Tensor) -> list[torch.Tensor]:
    """Tensors with the shapes and types of a request's results."""
    return [torch.empty(new.shape, dtype=_DTYPES[new.element], device=a.device)
            for new in request.outputs.values()]


def _refuse_gradients(names: list[str]) -> Callable[..., None]:
    """The refusal that runs if autograd wants a gradient of an operator with these arguments."""
    def refuse(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        arguments = dict(zip(names, inputs))
        if arguments.get("steps") is not None:
            arguments = _arguments(inputs, {})
        wanted = [name for name, value in arguments.items()
                  if isinstance(value, torch.Tensor) and value.requires_grad]
        raise ArgumentError(f"{wanted[0] if wanted else 'a tensor'}.requires_grad is True, and "
                            "vkgemm computes no gradients: call it under torch.no_grad(), or "
                            "detach()")
    return refuse


def _no_backward(ctx: Any, *gradients: Any) -> None:
    raise AssertionError("the operator is refused before")


@torch.library.custom_op("vkgemm::product", mutates_args=(), schema=_SCHEMA)
def _product(*values: Any, **named: Any) -> list[torch.Tensor]:
    arguments = _arguments(values, named)
    device = _device_of(arguments["a"])
    results = device._call(device._request, bf16=False, **arguments)
    return list(results) if isinstance(results, tuple) else [results]


@_product.register_fake
def _(*values: Any, **named: Any) -> list[torch.Tensor]:
    arguments = _arguments(values, named)
    return _like(product(_Shapes(), **arguments), arguments["a"])


@torch.library.custom_op("vkgemm::quantise_rows", mutates_args=(),
                         schema="(Tensor a) -> (Tensor, Tensor)")
def _quantise_rows(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    codes, scales = _device_of(a).quantise_rows(a)
    return codes, scales


@_quantise_rows.register_fake
def _(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    codes, scales = _like(row_quantisation(_Shapes(), a), a)
    return codes, scales


for _operator, _overload in ((_product, torch.ops.vkgemm.product.default),
                             (_quantise_rows, torch.ops.vkgemm.quantise_rows.default)):
    _operator.register_autograd(_no_backward, setup_context=_refuse_gradients(
        [argument.name for argument in _overload._schema.arguments]))


_ARGUMENTS = {method.__name__: [name for name in arguments_of(method)
                                if name not in ("out", "bf16")]
              for method in (Device.gemm, Device.gated, Device.grouped, Device.row_reduction)}


@torch.compiler.assume_constant_result  # a compiler runs it, and does not read it
def _require_known(function: str, given: tuple[str, ...]) -> None:
    require_known(function, given, _ARGUMENTS[function])


def _call(function: str, a: Any, b: Any, arguments: dict[str, Any]) -> Any:
    """The results of the operator for a function's arguments: a tensor, or several in a tuple."""
    _require_known(function, tuple(arguments))
    if arguments.get("b_right") is not None and isinstance(arguments["b_right"], PackedMatrix):
        arguments["packed_b_right"] = arguments.pop("b_right").handle
    clamp = arguments.pop("clamp", None)
    if clamp is not None:
        arguments["clamp_min"], arguments["clamp_max"] = clamp
    if isinstance(arguments.get("scatter"), int):
        arguments["scatter"] = [arguments["scatter"]]
    arguments = named(arguments)
    if arguments.get("steps") is not None:
        arrays = [name for name in arguments if is_array_name(name)]
        for name, tensor in zip(arrays, _TENSORS):
            arguments[tensor] = arguments.pop(name)
        arguments["steps"] = _encoded(arguments["steps"])
    if isinstance(arguments.get("out_dtype"), str):
        arguments["out_dtype"] = _DTYPES[arguments["out_dtype"]]
    if isinstance(b, PackedMatrix):
        results = torch.ops.vkgemm.product.default(a, None, b.handle, **arguments)
    else:
        results = torch.ops.vkgemm.product.default(a, b, **arguments)
    return results[0] if len(results) == 1 else tuple(results)


@suggests
def use(device: Device) -> None:
    """Let the operators compute on a device, for tensors on the GPU that it is.

    The last device that was given for a GPU serves it, until it is closed or forgotten.

    Raises Error if torch does not compute on this GPU.

    >>> vkgemm.operators.use(device)
    """
    _devices[device._shared().device] = device


def gemm(a: torch.Tensor, b: torch.Tensor | PackedMatrix, **arguments: Any) -> Any:
    """Device.gemm() as an operator: D = clamp(steps(activation(alpha · A·B + beta · C + bias))).

    Arguments and results are those of Device.gemm(), without out and bf16.
    Raises ArgumentError and Error as it does, and ArgumentError without a Device from use().

    >>> vkgemm.operators.use(device)
    >>> a = device.empty(2, 3, dtype=torch.float32).fill_(1)
    >>> vkgemm.operators.gemm(a, a.t(), alpha=-1, clamp=(-2, None)).tolist()
    [[-2.0, -2.0], [-2.0, -2.0]]
    """
    return _call("gemm", a, b, arguments)


def gated(a: torch.Tensor, b: torch.Tensor | PackedMatrix, gate: str, **arguments: Any) -> Any:
    """Device.gated() as an operator: D = clamp(steps(gate(A·B_l, A·B_r))).

    Arguments, results and errors are those of Device.gated(), as in gemm().

    >>> vkgemm.operators.use(device)
    >>> a, b = (device.empty(*shape, dtype=torch.float32).fill_(1) for shape in ((2, 3), (3, 4)))
    >>> vkgemm.operators.gated(a, b, "reglu").tolist()
    [[9.0, 9.0], [9.0, 9.0]]
    """
    arguments["gate"] = gate
    return _call("gated", a, b, arguments)


def grouped(a: torch.Tensor, b: torch.Tensor | PackedMatrix, offsets: torch.Tensor | None = None,
            **arguments: Any) -> Any:
    """Device.grouped() as an operator: a product for each group of rows, or of K.

    Arguments, results and errors are those of Device.grouped(), as in gemm().

    >>> vkgemm.operators.use(device)
    >>> a, b = (device.empty(*shape, dtype=torch.float32).fill_(1) for shape in ((3, 2), (2, 2)))
    >>> offsets = device.empty(2, dtype=torch.int32)
    >>> offsets[0], offsets[1] = 1, 3
    >>> vkgemm.operators.grouped(a, b, offsets).tolist()
    [[0.0, 0.0], [2.0, 2.0], [2.0, 2.0]]
    """
    if offsets is None and arguments.get("sizes") is None:
        raise ArgumentError("offsets is None and sizes is None: one of them must be given")
    arguments["offsets"] = offsets
    return _call("grouped", a, b, arguments)


def row_reduction(a: torch.Tensor, b: torch.Tensor | PackedMatrix, op: str,
                  **arguments: Any) -> Any:
    """Device.row_reduction() as an operator: op of the rows of what gemm() computes.

    Arguments, results and errors are those of Device.row_reduction(), as in gemm().

    >>> vkgemm.operators.use(device)
    >>> a = device.empty(2, 3, dtype=torch.float32).fill_(1)
    >>> vkgemm.operators.row_reduction(a, a.t(), "sum").tolist()
    [6.0, 6.0]
    """
    arguments["op"] = op
    return _call("row_reduction", a, b, arguments)


def quantise_rows(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Device.quantise_rows() as an operator: int8 codes, and a scale for each row.

    Arguments, results and errors are those of Device.quantise_rows(), as in gemm().

    >>> vkgemm.operators.use(device)
    >>> a = device.empty(2, 3, dtype=torch.float32).fill_(254)
    >>> codes, scales = vkgemm.operators.quantise_rows(a)
    >>> codes[0].tolist(), scales.tolist()
    ([127, 127, 127], [2.0, 2.0])
    """
    codes, scales = torch.ops.vkgemm.quantise_rows.default(a)
    return codes, scales
