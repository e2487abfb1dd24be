"""Products with weights of 4 and 8 bits, in the ways that PyTorch has: its own kernels, and cuBLAS on
weights that were never quantised."""

from cases import time_and_print

INT4 = "b int4:group=128"
INT8 = "b int8"
# M, N, K, what `vkgemm bench` prints as `packed`.
SUITE = [
    *((m, 4096, 4096, INT4) for m in (1, 16, 64, 512)),
    *((m, 16384, 16384, kind) for kind in (INT4, INT8) for m in (1, 16)),
    (8192, 8192, 8192, INT4),
    (8192, 8192, 8192, INT8),
]


def int4_weights(torch, a, n, k):
    """torch's int4 kernel: bf16, groups of 128 along K with a scale and a zero point each."""
    codes = torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8)
    packed = torch.ops.aten._convert_weight_to_int4pack(codes, 8)
    scales = torch.rand(k // 128, n, 2, device="cuda", dtype=torch.bfloat16)
    a = a.bfloat16()
    return lambda: torch.ops.aten._weight_int4pack_mm(a, packed, 128, scales)


def int8_weights(torch, a, n, k):
    """torch's int8 kernel: bf16, a scale for each column of B."""
    codes = torch.randint(-128, 128, (n, k), device="cuda", dtype=torch.int8)
    scales = torch.rand(n, device="cuda", dtype=torch.bfloat16)
    a = a.bfloat16()
    return lambda: torch.ops.aten._weight_int8pack_mm(a, codes, scales)


def elements(torch, a, n, k):
    """cuBLAS on elements of f16."""
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    return lambda: a @ b


def int8_both(torch, m, n, k):
    """torch's product of int8 by int8."""
    a = torch.randint(-128, 128, (m, k), device="cuda", dtype=torch.int8)
    b = torch.randint(-128, 128, (n, k), device="cuda", dtype=torch.int8).t()
    return lambda: torch._int_mm(a, b)


def swiglu(torch, a, n, k):
    b = torch.randn(k, 2 * n, device="cuda", dtype=torch.float16)

    def product(a, b):
        l, r = torch.tensor_split(a @ b, 2, dim=1)
        return torch.nn.functional.silu(l) * r

    torch._dynamo.reset()
    compiled = torch.compile(product)
    return lambda: compiled(a, b)


def time_all(torch, time_case):
    for m, n, k, packed in SUITE:
        a = torch.randn(m, k, device="cuda", dtype=torch.float16)
        weights = ((int4_weights, "torch._weight_int4pack_mm, bf16") if packed == INT4 else
                   (int8_weights, "torch._weight_int8pack_mm, bf16"))
        for make, kernel in (weights, (elements, "cublas, f16 elements")):
            time_and_print(torch, time_case, lambda: make(torch, a, n, k), 2 * m * n * k,
                           m, n, k, "f16", "plain", kernel, packed=packed)
    m, n, k = 8, 14336, 4096
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    time_and_print(torch, time_case, lambda: swiglu(torch, a, n, k), 4 * m * n * k, m, n, k, "f16",
                   "swiglu", "torch.compile, f16 elements", packed=INT4)
    time_and_print(torch, time_case, lambda: int8_both(torch, 8192, 8192, 8192), 2 * 8192**3,
                   8192, 8192, 8192, "s8", "plain", "torch._int_mm")
