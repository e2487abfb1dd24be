"""Weights of 4 or 8 bits: codes, scales and zero points as numpy arrays."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .binding import ArgumentError, enumerator
from .float8 import FLOATS, from_e4m3, numbers_of, to_e4m3
from .names import suggests
from .problem import Part, part, whole

_DLPACK_HOST = 1

_SCALES = {np.dtype(np.float16): "f16", np.dtype(np.float32): "f32"}

_GROUPS_K = (0, 16, 32, 64, 128, 192, 256)

# Codes that share a scale, of types that have such groups.
_OWN_GROUPS = {"mxfp4": 32, "nvfp4": 16}

# Codes of a block of a ggml file, and its bytes.
_BLOCKS = {"int4": (32, 18), "int8": (32, 34), "mxfp4": (32, 17), "nvfp4": (64, 36),
           "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "q2_k": (256, 84),
           "q3_k": (256, 110), "q4_k": (256, 144), "q5_k": (256, 176), "q6_k": (256, 210),
           "iq4_nl": (32, 18), "iq4_xs": (256, 136), "q1_0": (128, 18), "q2_0": (64, 18),
           "tq2_0": (256, 66)}

def _one_of(argument: str, value: Any, allowed: tuple[int, ...]) -> int:
    if isinstance(value, (int, np.integer)) and value in allowed:
        return int(value)
    raise ArgumentError(f"{argument} is {value!r}: it must be one of "
                        f"{', '.join(map(str, allowed))}")


def _expanded(groups: Any, k: int, n: int, group_k: int, group_n: int) -> Any:
    """A number of each group, for each element."""
    rows = np.arange(k) // group_k if group_k else np.zeros(k, int)
    columns = np.arange(n) // group_n if group_n else np.zeros(n, int)
    return groups[..., rows[:, None], columns]


def _unpacked(name: str, words: Any) -> NDArray[np.uint8]:
    """The eight numbers of 4 bits of each word, in a further dimension."""
    if not isinstance(words, np.ndarray) or words.dtype not in (np.int32, np.uint32) or (
            words.ndim != 2):
        raise ArgumentError(f"{name} is {_kind(words)}: it must be an int32 array of 2 dimensions")
    shifted = words.view(np.uint32)[..., None] >> np.arange(0, 32, 4, dtype=np.uint32)
    return (shifted & 15).astype(np.uint8)


def _kind(value: object) -> str:
    """What messages call a value that is no array."""
    name = builtins.type(value).__name__
    device = getattr(value, "device", None)
    return name if device is None else f"{name} on {device}"


def require_product_element(element: object) -> None:
    """Refuses types that codes are not multiplied as."""
    if element not in ("f16", "bf16", "s8", "e4m3"):
        raise ArgumentError(f"element is {element!r}: it must be 'f16', 'bf16', 's8' or 'e4m3'")


def _require_type(type: str, zeros: bool) -> None:
    """Refuses unknown types, and zero points where a type has none."""
    enumerator("type", "VkgemmCodeType", type)
    if type not in ("int4", "int8", *FLOATS):
        raise ArgumentError(f"type is {type!r}: its codes lie in blocks, see vkgemm.CodeBlocks")
    if zeros and type != "int4":
        raise ArgumentError(f"zeros is given and type is {type!r}: only int4 has zero points")


def _require_finite(b: NDArray[np.float32]) -> None:
    """Refuses numbers that no code stands for."""
    wrong = ~np.isfinite(b)
    if wrong.any():
        at = np.unravel_index(int(wrong.argmax()), b.shape)
        raise ArgumentError(f"b[{', '.join(map(str, at))}] is {b[at]}: it must be finite")


def require_in_f16(b: NDArray[np.float32], codes: Codes) -> None:
    """Refuses numbers whose codes stand for more than float16 holds."""
    if np.abs(b).max(initial=0) <= 16384:  # a code is off by half a step at most
        return
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(codes.elements().astype(np.float16))
    if wrong.any():
        at = np.unravel_index(int(wrong.argmax()), b.shape)
        raise ArgumentError(f"b[{', '.join(map(str, at))}] is {b[at]}: its {codes.type} code and "
                            "scale stand for a number that float16 does not hold")


@dataclass(frozen=True, eq=False)
class Codes:
    """A quantised matrix B.

        element = scale · (code - zero), in float32

    type: "int8", "int4", "e4m3", "e5m2", "mxfp4" or "nvfp4".
    codes: uint8.  8-bit codes are (K, N).  4-bit codes are ((K + 1) // 2, N): the lower half of
        byte i holds row 2i, the upper half row 2i + 1.  A leading dimension is a batch or groups.
        int8 codes are in two's complement.  int4 codes are, too (-8 to 7), but with zeros they are
        unsigned (0 to 15).  e4m3, e5m2, mxfp4 and nvfp4 (e2m1) codes are the bits of OCP's formats.
    scales: float16 or float32, (K / group_k, N / group_n) rounded up.  For mxfp4: uint8, a scale of
        2 ** (byte - 127).  For nvfp4: uint8, the bits of e4m3.
    zeros: for int4, zero points with the shape of scales: uint8 from 0 to 16, or finite numbers of
        scales' dtype.
    group_k: 16, 32, 64, 128, 192, 256, or 0 for all of K.  group_n: 1, 128, or 0 for all columns.
    k: K.  By default K is the number of rows, or twice that for 4-bit codes.

    Raises ArgumentError if an array has a wrong type or shape.

    >>> codes = vkgemm.Codes("int8", np.uint8([[1], [255]]), np.float32([[0.5]]))
    >>> codes.elements()
    array([[ 0.5],
           [-0.5]], dtype=float32)
    """

    type: str
    codes: NDArray[np.uint8]
    scales: NDArray[Any]
    zeros: NDArray[np.uint8] | None = None
    group_k: int = 0
    group_n: int = 1
    k: int | None = None

    def __post_init__(self) -> None:
        _require_type(self.type, self.zeros is not None)
        for name in ("codes", "scales", "zeros"):
            array = getattr(self, name)
            if not (isinstance(array, np.ndarray) or name == "zeros" and array is None):
                raise ArgumentError(f"{name} is {_kind(array)}: it must be a numpy array")
        if self.k is not None:
            object.__setattr__(self, "k", whole("k", self.k, 64))
        object.__setattr__(self, "group_k", _one_of("group_k", self.group_k, _GROUPS_K))
        object.__setattr__(self, "group_n", _one_of("group_n", self.group_n, (0, 1, 128)))
        if self.codes.dtype != np.uint8 or self.codes.ndim not in (2, 3):
            raise ArgumentError(f"codes is {self.codes.dtype} of shape {self.codes.shape}: "
                                "it must be uint8 with 2 or 3 dimensions")
        rows = self.codes.shape[-2] * (2 if self.is_small else 1)
        if self.k is not None and (self.k > rows or rows - self.k >= (2 if self.is_small else 1)):
            raise ArgumentError(f"k is {self.k}: codes of shape {self.codes.shape} are of {rows}")
        if self.type in _OWN_GROUPS:
            object.__setattr__(self, "group_k", _OWN_GROUPS[self.type])
        allowed = [np.dtype(np.uint8)] if self.type in _OWN_GROUPS else list(_SCALES)
        if self.scales.dtype not in allowed:
            raise ArgumentError(f"scales.dtype is {self.scales.dtype}: it must be "
                                f"{' or '.join(map(str, allowed))}")
        k, n = self.shape[-2:]
        groups = self.shape[:-2] + (-(-k // self.group_k) if self.group_k else min(k, 1),
                                    -(-n // self.group_n) if self.group_n else min(n, 1))
        for name, array in (("scales", self.scales), ("zeros", self.zeros)):
            if array is not None and array.shape != groups:
                raise ArgumentError(f"{name}.shape is {array.shape}: it must be {groups}")
        if self.zeros is not None and self.zeros.dtype not in (np.uint8, self.scales.dtype):
            raise ArgumentError(f"zeros.dtype is {self.zeros.dtype}: it must be uint8 or "
                                f"{self.scales.dtype}, as that of scales")

    @classmethod
    def from_gptq(cls, qweight: Any, qzeros: Any, scales: Any, *, v2: bool = False,
                  g_idx: Any = None) -> Codes:
        """Codes of 4 bits from the arrays of a GPTQ checkpoint.

        qweight: int32 (K / 8, N).  qzeros: int32 (groups, N / 8).  scales: float16 (groups, N).
        v2: qzeros hold the zero points (checkpoint_format "gptq_v2"), not one less.

        g_idx: the group of each row, (K,).  With act-order (desc_act) rows of a group are not
            neighbours, and ArgumentError is raised: sort rows by g_idx, and the columns of A alike.

        >>> words = np.full((4, 8), 0x99999999, np.uint32).view(np.int32)
        >>> zeros = np.full((1, 1), 0x77777777, np.int32)
        >>> vkgemm.Codes.from_gptq(words, zeros, np.ones((1, 8), np.float16)).elements()[0, 0]
        1.0
        """
        numbers = _unpacked("qweight", qweight)
        codes = np.moveaxis(numbers, -1, -2).reshape(-1, numbers.shape[-2])
        zeros = _unpacked("qzeros", qzeros).reshape(qzeros.shape[0], -1) + (not v2)
        made = cls._of_words(codes, zeros.astype(np.uint8), scales)
        rows = np.arange(codes.shape[0]) // (made.group_k or codes.shape[0])
        if g_idx is not None and not np.array_equal(g_idx, rows):
            raise ArgumentError("g_idx is not in order: sort the rows of qweight by it, and the "
                                "columns of A alike")
        return made

    @classmethod
    def from_awq(cls, qweight: Any, qzeros: Any, scales: Any) -> Codes:
        """Codes of 4 bits from the arrays of an AWQ checkpoint ("gemm").

        qweight: int32 (K, N / 8).  qzeros: int32 (groups, N / 8).  scales: float16 (groups, N).

        >>> words = np.full((32, 1), 0x99999999, np.uint32).view(np.int32)
        >>> zeros = np.full((1, 1), 0x77777777, np.int32)
        >>> vkgemm.Codes.from_awq(words, zeros, np.ones((1, 8), np.float16)).elements()[0, 0]
        2.0
        """
        order = [0, 4, 1, 5, 2, 6, 3, 7]  # the place of each column in a word
        codes, zeros = (_unpacked(name, words)[..., order].reshape(words.shape[0], -1)
                        for name, words in (("qweight", qweight), ("qzeros", qzeros)))
        return cls._of_words(codes, zeros, scales)

    @classmethod
    def _of_words(cls, codes: Any, zeros: Any, scales: Any) -> Codes:
        if not isinstance(scales, np.ndarray) or scales.ndim != 2 or scales.shape[0] == 0:
            raise ArgumentError(f"scales is {_kind(scales)}: it must be an array of 2 dimensions")
        k, groups = codes.shape[0], scales.shape[0]
        if k % 2 != 0 or k % groups != 0:
            raise ArgumentError(f"scales.shape is {scales.shape} and qweight has {k} rows: its "
                                "groups must have the same, even number of rows")
        return cls("int4", codes[0::2] | codes[1::2] << 4, scales, zeros,
                   0 if groups == 1 else k // groups)

    @property
    def is_small(self) -> bool:
        """True if two codes share a byte.

        >>> vkgemm.quantise(np.ones((64, 2)), "int4").is_small
        True
        """
        return self.type in ("int4", "mxfp4", "nvfp4")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix: (K, N) or (batch, K, N).

        >>> vkgemm.quantise(np.ones((64, 2)), "int4").shape
        (64, 2)
        """
        rows = self.codes.shape[-2] * (2 if self.is_small else 1)
        k = rows if self.k is None else self.k
        return (*self.codes.shape[:-2], k, self.codes.shape[-1])

    def arrays(self) -> dict[str, Any]:
        """What packing reads, by the names of operands.

        >>> [*vkgemm.quantise(np.ones((64, 2)), "int4").arrays()]
        ['codes', 'scales']
        """
        return {name: np.ascontiguousarray(array) for name in ("codes", "scales", "zeros")
                if (array := getattr(self, name)) is not None}

    def quantisation(self) -> Part:
        """The fields of VkgemmQuantisation.

        >>> dict(vkgemm.quantise(np.ones((64, 2)), "int4").quantisation())["group_k"]
        128
        """
        has_own = self.type in _OWN_GROUPS
        zeros = self.zeros is not None
        return part(type=self.type, group_k=self.group_k, group_n=self.group_n,
                    scale_type="f16" if has_own else _SCALES[self.scales.dtype], zeros=zeros,
                    float_zeros=zeros and self.zeros.dtype != np.uint8)

    def elements(self) -> NDArray[np.float32]:
        """The matrix that the codes stand for, (K, N) or (batch, K, N), before it is rounded.

        >>> vkgemm.quantise(np.float32([[2], [1]]), "mxfp4").elements()
        array([[2.],
               [1.]], dtype=float32)
        """
        k, n = self.shape[-2:]
        codes = self.codes
        if self.is_small:
            codes = np.stack([codes & 15, codes >> 4], axis=-2)
            codes = codes.reshape(*self.codes.shape[:-2], -1, n)[..., :k, :]
        numbers = numbers_of(self.type, self.zeros is not None)[codes]
        scales = self.scales
        if self.type == "mxfp4":
            powers = np.ldexp(np.float32(1), scales.astype(int) - 127)
            scales = np.where(scales == 255, np.float32(np.nan), powers)
        if self.type == "nvfp4":
            scales = numbers_of("e4m3", False)[scales]
        if self.zeros is not None:
            numbers = numbers - _expanded(self.zeros, k, n, self.group_k, self.group_n)
        return np.float32(_expanded(scales.astype(np.float32), k, n, self.group_k,
                                    self.group_n)) * numbers.astype(np.float32)


@dataclass(frozen=True, eq=False)
class CodeBlocks:
    """A quantised matrix B in the blocks of ggml files.

    type: "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl",
        "iq4_xs", "q1_0", "q2_0", "tq2_0", "nvfp4" or "mxfp4".  "int4" is q4_0, "int8" q8_0.
    blocks: uint8, (N, bytes of K codes), as gguf's reader returns a tensor.  A leading dimension is
        a batch or groups.

    Raises ArgumentError if the array has a wrong type or shape.

    >>> vkgemm.CodeBlocks("q4_k", np.zeros((8, 144), np.uint8)).shape
    (256, 8)
    """

    type: str
    blocks: NDArray[np.uint8]

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", {"q4_0": "int4", "q8_0": "int8"}.get(self.type, self.type))
        enumerator("type", "VkgemmCodeType", self.type)
        if self.type not in _BLOCKS:
            raise ArgumentError(f"type is {self.type!r}: ggml has no such blocks")
        if not isinstance(self.blocks, np.ndarray):
            raise ArgumentError(f"blocks is {_kind(self.blocks)}: it must be a numpy array")
        if self.blocks.dtype != np.uint8 or self.blocks.ndim not in (2, 3):
            raise ArgumentError(f"blocks is {self.blocks.dtype} of shape {self.blocks.shape}: "
                                "it must be uint8 with 2 or 3 dimensions")
        size = _BLOCKS[self.type][1]
        if self.blocks.shape[-1] % size != 0:
            raise ArgumentError(f"blocks.shape is {self.blocks.shape}: a block of {self.type} has "
                                f"{size} bytes, and a column whole blocks")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix: (K, N) or (batch, K, N).

        >>> vkgemm.CodeBlocks("q6_k", np.zeros((3, 8, 420), np.uint8)).shape
        (3, 512, 8)
        """
        codes, size = _BLOCKS[self.type]
        return (*self.blocks.shape[:-2], self.blocks.shape[-1] // size * codes,
                self.blocks.shape[-2])

    def arrays(self) -> dict[str, Any]:
        """What packing reads, by the names of operands.

        >>> [*vkgemm.CodeBlocks("q6_k", np.zeros((8, 210), np.uint8)).arrays()]
        ['codes']
        """
        return {"codes": np.ascontiguousarray(self.blocks)}

    def quantisation(self) -> Part:
        """The fields of VkgemmQuantisation.

        >>> dict(vkgemm.CodeBlocks("q6_k", np.zeros((8, 210), np.uint8)).quantisation())["type"]
        'q6_k'
        """
        return part(type=self.type, layout="ggml_blocks")


CodeBlocks.__init__ = suggests(CodeBlocks.__init__)  # type: ignore[method-assign]


Codes.__init__ = suggests(Codes.__init__)  # type: ignore[method-assign]


@suggests
def quantise(b: Any, type: str = "int4", *, group_k: int = 128, zeros: bool = False) -> Codes:
    """Quantise a matrix on the host.

        scale = max|group| / largest code
        code  = the code nearest to b / scale

    With zeros, for hi = max(group, 0) and lo = min(group, 0):

        scale = (hi - lo) / 15      zero = rint(-lo / scale)
        code  = rint(b / scale) + zero, from 0 to 15

    b: (K, N) or (batch, K, N), of any real type.
    type: "int8", "int4", "e4m3", "e5m2", "mxfp4" or "nvfp4".
    group_k: a scale serves 16, 32, 64, 128, 192 or 256 rows of a column, or with 0 all.  mxfp4: 32,
        nvfp4: 16.
    zeros: add zero points.  int4 only.

    Returns Codes.  Scales are float16 for int4 and int8, float32 for e4m3 and e5m2.
    The product's A must be float16 or bfloat16 (element= of Device.pack_codes()).
    Raises ArgumentError if an element is not finite.  If b is float16, also if a code represents a
    number beyond float16's range.  Use Device.quantise() for a tensor on a GPU.

    >>> vkgemm.quantise(np.float32([[1], [-7]]), "int4").elements()
    array([[ 1.],
           [-7.]], dtype=float32)
    """
    numbers, codes = quantised(b, type, group_k, zeros)
    if getattr(b, "dtype", None) == np.float16:
        require_in_f16(numbers, codes)
    return codes


def quantised(b: Any, type: str, group_k: int, zeros: bool) -> tuple[NDArray[np.float32], Codes]:
    """A matrix in float32, and its codes."""
    if hasattr(b, "__dlpack_device__") and b.__dlpack_device__()[0] != _DLPACK_HOST:
        raise ArgumentError(f"b is {_kind(b)}: it must be an array on the host")
    b = np.asarray(b, np.float32)
    if b.ndim not in (2, 3):
        raise ArgumentError(f"b.shape is {b.shape}: it must have 2 or 3 dimensions")
    _require_finite(b)
    _require_type(type, zeros)
    group_k = _OWN_GROUPS.get(type) or _one_of("group_k", group_k, _GROUPS_K)
    k, n = b.shape[-2:]
    deep = group_k or max(k, 1)
    groups = -(-k // deep)
    padded = np.zeros((*b.shape[:-2], groups * deep, n), np.float32)
    padded[..., :k, :] = b
    grouped = padded.reshape(*b.shape[:-2], groups, deep, n)
    low, high = np.minimum(grouped.min(-2), 0), np.maximum(grouped.max(-2), 0)
    numbers = numbers_of(type, zeros)
    largest = {"int8": 127.0, "int4": 7.0}.get(type) or FLOATS[type][3]
    span = (high - low) / 15 if zeros else np.maximum(high, -low) / largest
    span = np.where(span > 0, span, 1)
    zero = None
    if type == "mxfp4":
        exponents = np.clip(np.ceil(np.log2(span)), -127, 127)
        scales, factor = (exponents + 127).astype(np.uint8), np.exp2(exponents)
    elif type == "nvfp4":
        scales = to_e4m3(np.minimum(span, 448))
        factor = from_e4m3(scales)
        factor = np.where(factor > 0, factor, 1)
    else:
        with np.errstate(over="ignore"):
            scales = span.astype(np.float32 if type in FLOATS else np.float16)
        if not np.isfinite(scales).all():
            raise ArgumentError(f"b has numbers up to {np.abs(b).max()}: its largest scale is "
                                f"{span.max():.6g}, and scales of {type} codes are float16, whose "
                                "largest is 65504")
        factor = np.where(scales > 0, scales, 1).astype(np.float32)
    wanted = grouped / factor[..., None, :]
    if zeros:
        zero = np.clip(np.rint(-low / factor), 0, 15).astype(np.uint8)
        wanted = wanted + zero[..., None, :]
    # The nearest of the numbers, in their order.
    order = np.argsort(np.where(np.isfinite(numbers), numbers, np.inf), kind="stable")
    order = order[:np.isfinite(numbers).sum()]
    between = (numbers[order][1:] + numbers[order][:-1]) / 2
    codes = order[np.searchsorted(between, wanted)].astype(np.uint8)
    codes = codes.reshape(padded.shape)[..., :k, :]
    if type in ("int4", "mxfp4", "nvfp4"):
        if k % 2 != 0:
            codes = np.concatenate([codes, np.zeros_like(codes[..., :1, :])], axis=-2)
        codes = codes[..., 0::2, :] | codes[..., 1::2, :] << 4
    return b, Codes(type, np.ascontiguousarray(codes), scales, zero, group_k, 1, k)
