"""Calls of torch tensors at known addresses, and the commands that were recorded for them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from .binding import ArgumentError
from .memory import Buffer
from .packed import PackedMatrix
from .pool import Block
from .problem import bits
from .request import Request
from .torch_arrays import New, refuse_gradient


class Call:
    """A problem whose operands are at known addresses, and the commands that were recorded for it.

    It holds no tensor: inputs may die, and their memory serves others.
    """

    def __init__(self, plan: Any, request: Request, workspace: Buffer):
        self.plan = plan
        self.operands = plan.operands(workspace.address)
        self.new = [(name, output) for name, output in request.outputs.items()
                    if isinstance(output, New)]
        self.results = request.results
        self.blocks: list[Block] = []  # of what is given
        self.recorded: OrderedDict[tuple[int, ...], Any] = OrderedDict()


def key_of(arguments: dict[str, Any]) -> tuple[Any, ...]:
    """Return everything that a call's commands depend on.

    Tensors that want a gradient are refused here, because every call comes by.
    """
    key: list[Any] = [tuple(arguments)]
    for name, value in arguments.items():
        if value is None:
            key.append(None)
        elif isinstance(value, torch.Tensor):
            refuse_gradient(name, value)
            try:
                key.append((value.data_ptr(), value.shape, value.stride(), value.dtype))
            except RuntimeError as error:  # it is sparse, or of a compiler
                raise ArgumentError(f"{name} has no address: {error}") from None
        elif isinstance(value, PackedMatrix):
            key.append(value.serial)
        else:
            key.append(bits(value) if type(value).__hash__ is not None else repr(value))
    return tuple(key)
