"""vkgemm on the CUDA devices of torch."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .binding import Error
from .cuda import Cuda, described, devices
from .gpu import Gpu
from .tensors import Tensors
from .vulkan import uuids


def _current_stream(ordinal: int) -> int:
    """The handle of torch's current stream."""
    if torch.cuda.is_current_stream_capturing():
        raise Error("unsupported", "torch's current stream captures a CUDA graph: vkgemm's work "
                                   "is not on the stream, so that no graph can hold it")
    return int(torch._C._cuda_getCurrentRawStream(ordinal))


def on(gpu: Gpu, name: str) -> Tensors:
    """The tensors of the CUDA device that this device is, too."""
    torch.cuda.init()
    cuda = Cuda(name, gpu.uuid)
    try:
        return Tensors(gpu, name, cuda, functools.partial(_current_stream, cuda.ordinal))
    except Error:
        cuda.close()
        raise


def device_index(device: Any) -> int:
    """The index, for vkgemm.Device, of a CUDA device as torch names it: "cuda:1".

    Raises Error if Vulkan does not list the GPU.

    >>> device = vkgemm.Device(device_index("cuda"))
    >>> device.empty(2, dtype=torch.float16).device.type
    'cuda'
    >>> device.close()
    """
    wanted = torch.device(device)
    name, uuid = devices()[wanted.index if wanted.index is not None
                           else torch.cuda.current_device()]
    try:
        return uuids().index(uuid)
    except ValueError:
        raise Error("missing_feature",
                    f"Vulkan does not list {wanted}, {described(name, uuid)}") from None
