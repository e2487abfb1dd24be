"""How a request reads torch's tensors, and how tensors lie in memory."""

from __future__ import annotations

import math
from typing import Any

import torch

from .arrays import FLOATS, FLOATS_8, NAMES, one_of
from .binding import ArgumentError
from .dlpack import nbytes
from .problem import Part, part

# PyTorch before 2.1 has no 8-bit floats.
ELEMENTS = {getattr(torch, name): element for element, name in NAMES.items()
            if hasattr(torch, name)} | {torch.int64: "int64"}
_BYTES = {element: dtype for dtype, element in ELEMENTS.items() if element in FLOATS_8}


def as_element(tensor: Any, element: str) -> Any:
    """A tensor that DLPack has brought, with its type: 8-bit floats come as bytes."""
    return tensor.view(_BYTES[element]) if element in _BYTES else tensor


class New:
    """A tensor that is to be made for each call."""

    def __init__(self, shape: tuple[int, ...], element: str, zero: bool):
        self.shape = tuple(shape)
        self.element = element
        self.zero = zero
        self.nbytes = nbytes(self.shape, element)


def layout_of(tensor: Any, transposed: bool) -> Part | None:
    """How the matrices of a tensor lie, if vkgemm can read them so: the fields of VkgemmMatrix."""
    rows, columns = tensor.shape[-2:]
    down, across = tensor.stride()[-2:]
    if tensor.numel() == 0:
        return part(layout="row_major")
    if (columns == 1 or across == 1) and (rows == 1 or down >= columns):
        layout, length, ld = "row_major", columns, down if rows > 1 else columns
    elif transposed and (rows == 1 or down == 1) and (columns == 1 or across >= rows):
        layout, length, ld = "col_major", rows, across if columns > 1 else rows
    else:
        return None
    address = tensor.data_ptr()
    aligned = min(16, address & -address) if address != 0 else 16
    matrix = ld * (rows if layout == "row_major" else columns)
    lead = tuple(tensor.shape[:-2])
    # The strides of dimensions that are not dense, or which follow one that is not.
    apart = [size != 1 and stride != matrix * math.prod(lead[i + 1:])
             for i, (size, stride) in enumerate(zip(lead, tensor.stride()))]
    named = dict(zip(("batch_stride", "outer_batch_stride"), reversed(range(len(lead)))))
    return part(layout=layout, ld=None if ld == length else ld,
                **{name: tensor.stride(i) if any(apart[i:]) else None for name, i in named.items()},
                alignment=None if aligned == 16 else aligned)


def span(tensor: Any) -> int:
    """The bytes from a tensor's first element to the end of its last."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return int((last + 1) * tensor.element_size())


def refuse_gradient(name: str, tensor: Any) -> None:
    """Refuses a tensor that autograd would want a gradient of."""
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ArgumentError(f"{name}.requires_grad is True, and vkgemm computes no "
                            "gradients: call it under torch.no_grad(), or detach()")


class Torch:
    """torch's tensors as a request reads them: arrays.Arrays.  They lie as they are to lie."""

    def array(self, argument: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            raise ArgumentError(f"{argument} is {type(value).__name__}: it must be a torch tensor")
        return value

    def element(self, argument: str, dtype: Any, elements: tuple[str, ...] = FLOATS) -> str:
        element = dtype if isinstance(dtype, str) else ELEMENTS.get(dtype)
        if element not in elements:
            raise ArgumentError(f"{argument} is {dtype}: it must be {one_of(elements, 'torch.')}")
        return element

    def offset_type(self, offsets: Any) -> str | None:
        return {torch.int32: "int32", torch.int64: "int64"}.get(offsets.dtype)

    def known(self, offsets: Any) -> list[int]:
        """None: offsets stay on the device, which clamps bad ones."""
        return []

    def is_index(self, index: Any) -> bool:
        return index.dtype is torch.int32

    def first_beyond(self, index: Any, count: int) -> tuple[int, int] | None:
        """None: indices stay on the device, too."""
        return None

    def lay_out(self, array: Any) -> tuple[Any, Part]:
        fields = layout_of(array, transposed=True)
        assert fields is not None
        return array, fields

    def rows(self, array: Any) -> Part:
        fields = layout_of(array, transposed=False)
        assert fields is not None
        return fields[1:]  # row-major is the default

    def new(self, shape: tuple[int, ...], element: str, zero: bool = False) -> New:
        return New(shape, element, zero)

    def require_writeable(self, argument: str, array: Any) -> None:
        """Every tensor is."""

    def overlap(self, array: Any, other: Any) -> bool:
        return False
