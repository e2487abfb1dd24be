"""Matrix products with fused epilogues on Vulkan devices, of numpy arrays.

    device = vkgemm.Device()
    d = device.gemm(a, b, bias=bias, activation="gelu_erf")
"""

from .arrays import from_bf16, to_bf16
from .binding import ArgumentError, Error, version
from .device import Device
from .epilogues import EpilogueFunction, epilogue
from .float8 import from_e4m3, from_e5m2, to_e4m3, to_e5m2
from .packed import PackedMatrix
from .quantised import CodeBlocks, Codes, quantise
from .tuning import TuneProgress, TuneResult
from .vulkan import devices

__version__ = version()
__all__ = ["ArgumentError", "CodeBlocks", "Codes", "Device", "EpilogueFunction", "Error", "PackedMatrix",
           "TuneProgress", "TuneResult", "devices", "epilogue", "from_bf16", "from_e4m3",
           "from_e5m2", "quantise", "to_bf16", "to_e4m3", "to_e5m2"]
