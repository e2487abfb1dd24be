"""What run.py gives to the operators: cases, their inputs, and the same in torch."""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
import tritonbench as adapter
from torch.nn import functional

import vkgemm

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}

# The methods of tritonbench.py for the operators of cases.txt.
METHODS = {
    "gemm": [adapter.gemm, adapter.gemm_packed], "gemm_ld": [adapter.gemm_ld],
    "addmm": [adapter.addmm],
    "addmm_relu": [adapter.addmm_relu], "addmm_gelu": [adapter.addmm_gelu],
    "split_k": [adapter.split_k],
    "grouped": [adapter.grouped_jagged, adapter.grouped_persistent],
    "grouped_gemm": [adapter.grouped_gemm],
    "layer_norm": [adapter.matmul_layer_norm], "rms_norm": [adapter.matmul_rms_norm],
    "softmax": [adapter.matmul_softmax], "logsumexp": [adapter.matmul_logsumexp],
    "l2_normalize": [adapter.matmul_l2_normalize],
    "swiglu": [adapter.swiglu], "geglu": [adapter.geglu],
}

ROWS = {
    "layer_norm": lambda v, gamma, beta: functional.layer_norm(v, v.shape[-1:], gamma, beta),
    "rms_norm": lambda v, gamma: v * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-6) * gamma,
    "softmax": lambda v: v.softmax(-1),
    "logsumexp": lambda v: v.logsumexp(-1),
    "l2_normalize": lambda v: functional.normalize(v, dim=-1),
}


@dataclass
class Case:
    """A line of cases.txt."""

    operator: str
    m: int
    n: int
    k: int
    dtype: str
    more: str

    @property
    def flops(self):
        return 2 * self.m * self.n * self.k * (2 if self.operator in ("swiglu", "geglu") else 1)

    def __str__(self):
        more = self.more
        if self.operator in ("grouped", "grouped_gemm"):
            more = f"{more.count('+') + 1} groups{', a B each' if more.endswith('*') else ''}"
        return f"{self.operator} {self.m}×{self.n}×{self.k} {self.dtype} {more}".rstrip()


def read(file):
    """The cases of a file."""
    for line in Path(file).read_text().splitlines():
        if line and not line.startswith("#"):
            operator, m, n, k, dtype, *more = line.split()
            yield Case(operator, int(m), int(n), int(k), dtype, " ".join(more))


def build(case, device):
    """A case's inputs, and the function of torch that computes the same of them."""
    dtype = TYPES[case.dtype]

    def random(*shape, of=dtype):
        return torch.randn(*shape, device=device, dtype=of)
    m, n, k = case.m, case.n, case.k
    a, b = random(m, k) / math.sqrt(max(k, 1)), random(k, n)
    f32 = torch.float32
    if case.operator == "gemm":
        return (a, b), lambda a, b: a @ b
    if case.operator == "gemm_ld":
        lds = dict(part.split("=") for part in case.more.split())
        a, b, d = (random(rows, int(lds[ld]))[:, :columns] for rows, columns, ld in
                   ((m, k, "lda"), (k, n, "ldb"), (m, n, "ldd")))
        return (a.div_(math.sqrt(k)), b, d), lambda a, b, d: torch.mm(a, b, out=d)
    if case.operator == "split_k":
        return (a, b, int(case.more)), lambda a, b, slices: a @ b
    if case.operator == "addmm":
        return (random(m, n), a, b), lambda c, a, b: torch.addmm(c, a, b)
    if case.operator == "addmm_relu":
        return (random(m, n), a, b, random(n)), lambda c, a, b, bias: (
            torch.addmm(c, a, b) + bias).relu()
    if case.operator == "addmm_gelu":
        def heavy(c, a, b, bias):
            before = 1.25 * (a @ b) + 0.5 * c + bias
            return functional.gelu(before), before
        return (random(m, n), a, b, random(n)), heavy
    if case.operator in ("grouped", "grouped_gemm"):
        return grouped(case, a, random)
    if case.operator in ("swiglu", "geglu"):
        gate = functional.silu if case.operator == "swiglu" else functional.gelu

        def gated(a, b):
            left, right = (a @ b).chunk(2, -1)
            return gate(left) * right if gate is functional.silu else left * gate(right)
        return (a, random(k, 2 * n)), gated
    vectors = {"layer_norm": 2, "rms_norm": 1}.get(case.operator, 0)
    op = ROWS[case.operator]
    result = f32 if case.operator == "logsumexp" else None

    def rows(a, b, *vectors):
        product = (a @ b).to(torch.promote_types(a.dtype, f32))
        return op(product, *vectors).to(a.dtype if result is None else product.dtype)
    return (a, b, *(random(n, of=f32) for _ in range(vectors))), rows


def grouped(case, a, random):
    """Groups of rows, with one B each where the line says `*`."""
    sizes = [int(size) for size in case.more.split()[0].split("+")]
    ends = torch.tensor([0, *sizes]).cumsum(0).to(a.device, torch.int32)
    each = case.more.endswith("*")
    b = random(len(sizes), case.k, case.n) if each else random(case.k, case.n)
    if case.operator == "grouped_gemm":  # which takes lists
        return (a.split(sizes), list(b) if each else [b] * len(sizes)), lambda a, b: [
            part @ other for part, other in zip(a, b)]

    def in_torch(a, b, offsets):
        if not each:
            return a @ b
        return torch.cat([part @ b[g] for g, part in enumerate(a.split(sizes))])
    return (a, b, ends), in_torch


def peers(case):
    """What torch has besides, by name."""
    if case.operator == "grouped" and case.more.endswith("*") and hasattr(torch, "_grouped_mm"):
        return {"torch._grouped_mm": lambda a, b, offsets: torch._grouped_mm(a, b,
                                                                             offs=offsets[1:])}
    return {}


def wide(one):
    """An input in float64; whole numbers stay."""
    if isinstance(one, (list, tuple)):
        return [wide(part) for part in one]
    if isinstance(one, torch.Tensor) and one.is_floating_point():
        return one.double()
    return one


def checked_rows(case):
    """How many rows of a result are compared; float64 of more has no room on a GPU."""
    return case.m if case.m * case.k < 2**31 else 4096


def first_of(tensors, rows):
    """The tensors, and so many rows of what comes first: its first and its last ones."""
    first, *rest = tensors
    if len(first) > rows:
        first = torch.cat([first[:rows // 2], first[rows // 2 - rows:]])
    return first, *rest


def listed(results):
    """One result or several, as a list."""
    return list(results) if isinstance(results, (tuple, list)) else [results]


class Host:
    """A device for tensors on the CPU, through numpy's arrays: for dry runs."""

    def __init__(self):
        self._device = vkgemm.Device()

    def shared(self, tensor):
        return tensor

    def empty(self, *shape, dtype):
        return torch.empty(*shape, dtype=dtype)

    def __getattr__(self, name):
        def call(*arguments, **named):
            result = getattr(self._device, name)(
                *map(_array, arguments), bf16=True,
                **{key: _array(value) for key, value in named.items()})
            return tuple(map(_tensor, result)) if isinstance(result, tuple) else _tensor(result)
        return call


def _array(value):
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype == torch.bfloat16:
        return value.view(torch.int16).numpy().view("uint16")
    return value.numpy()


def _tensor(value):
    if not hasattr(value, "dtype"):
        return value
    if value.dtype == "uint16":
        return torch.from_numpy(value.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(value)
