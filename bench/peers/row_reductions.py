"""Products whose rows are reduced, as torch.compile fuses what it can behind cuBLAS. Part of peers.py
(--rows)."""

from cases import time_and_print

# Operation, M, N, K, type. Where a number is wanted of each row, D is not.
SUITE = [
    ("layer_norm", 131072, 512, 512, "bf16"),
    ("layer_norm", 131072, 2048, 512, "bf16"),
    ("layer_norm", 131072, 4096, 512, "bf16"),
    ("layer_norm", 131072, 2048, 4096, "bf16"),
    ("layer_norm", 512, 512, 512, "bf16"),
    ("layer_norm", 1024, 1024, 1024, "bf16"),
    ("layer_norm", 131072, 512, 512, "f32"),
    ("layer_norm", 1024, 1024, 1024, "f32"),
    ("rms_norm", 131072, 4096, 512, "bf16"),
    ("rms_norm", 131072, 2048, 8192, "bf16"),
    ("rms_norm", 1024, 1024, 1024, "bf16"),
    ("rms_norm", 131072, 256, 256, "bf16"),
    ("softmax", 131072, 2048, 2048, "bf16"),
    ("softmax", 131072, 2048, 512, "f32"),
    ("softmax", 1024, 1024, 1024, "f32"),
    ("l2_normalize", 131072, 4096, 512, "bf16"),
    ("l2_normalize", 2048, 2048, 2048, "bf16"),
    ("l2_normalize", 131072, 1024, 6144, "bf16"),
    ("logsumexp", 131072, 4096, 512, "bf16"),
    ("logsumexp", 1024, 1024, 1024, "bf16"),
    ("logsumexp", 131072, 2048, 3072, "bf16"),
]


def print_commands():
    for op, m, n, k, name in SUITE:
        extra = f" --without-d --dtype-row-values {name}" if op == "logsumexp" else ""
        print(f"vkgemm bench --json --dtype {name} --shapes {m}x{n}x{k} --row-op {op}{extra}")


def build(torch, op, a, b, dtype):
    functional = torch.nn.functional
    reductions = {
        "layer_norm": lambda v: functional.layer_norm(v, v.shape[-1:]),
        "rms_norm": lambda v: v * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-6),
        "softmax": lambda v: v.softmax(-1),
        "l2_normalize": lambda v: functional.normalize(v, dim=-1),
        "logsumexp": lambda v: v.logsumexp(-1),
    }

    def product(a, b):
        return reductions[op]((a @ b).float()).to(dtype)

    torch._dynamo.reset()
    compiled = torch.compile(product)
    return lambda: compiled(a, b)


def time_all(torch, time_case, types):
    for op, m, n, k, name in SUITE:
        a = torch.randn(m, k, device="cuda", dtype=types[name])
        b = torch.randn(k, n, device="cuda", dtype=types[name])
        epilogue = f"{op}+values:{name}" if op == "logsumexp" else op  # as vkgemm bench calls it
        time_and_print(torch, time_case, lambda: build(torch, op, a, b, types[name]),
                       2 * m * n * k, m, n, k, name, epilogue, "torch.compile")
        del a, b
