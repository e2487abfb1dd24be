"""vkgemm in the form that TritonBench takes a backend: a method of an operator.

A method takes its operator object and the inputs, and returns a callable without arguments, which
is what is timed.  Inputs are brought into memory that vkgemm and torch share before that, as a
program that uses vkgemm would allocate them there; results are allocated in the callable.

This file must not hide TritonBench's own package: put bench/ on PYTHONPATH, and not this folder.
A program that adds vkgemm to an operator of TritonBench, with the name that it has there:

    from adapters import tritonbench as methods
    from tritonbench.operators import load_opbench_by_name
    from tritonbench.utils.triton_op import register_benchmark

    Operator = load_opbench_by_name("gemm")
    Operator.vkgemm = register_benchmark("gemm", "vkgemm")(methods.gemm)

In an operator's own file a method does, because TritonBench takes both names from it:

        @register_benchmark()
        def vkgemm(self, a, b, bias=None):
            return methods.gemm(self, a, b, bias)
"""

import vkgemm

_devices = {}


def device_of(operator):
    """The device of vkgemm on the operator's: `operator.device` is torch's name of it."""
    if hasattr(operator, "vkgemm_device"):
        return operator.vkgemm_device
    if operator.device not in _devices:
        from vkgemm.torch import device_index
        _devices[operator.device] = vkgemm.Device(device_index(operator.device))
    return _devices[operator.device]


def ready(operator, *inputs):
    """The device, and the inputs in memory that it shares; None stays None."""
    device = device_of(operator)
    return device, *(None if one is None else device.shared(one) for one in inputs)


def gemm(operator, a, b, bias=None):
    """a·b + bias, of (M, K), (K, N) and (N,)."""
    device, a, b, bias = ready(operator, a, b, bias)
    return lambda: device.gemm(a, b, bias=bias)


def _as_it_lies(device, matrix):
    """A row-major matrix in memory that is shared, with the leading dimension that it has."""
    rows, columns = matrix.shape
    return device.empty(rows, matrix.stride(0), dtype=matrix.dtype)[:, :columns].copy_(matrix)


def gemm_ld(operator, a, b, d):
    """a·b into d.  All keep their leading dimensions."""
    device = device_of(operator)
    a, b, d = (_as_it_lies(device, matrix) for matrix in (a, b, d))
    return lambda: device.gemm(a, b, out=d)


def gemm_packed(operator, a, b, bias=None):
    """gemm() with a weight that was packed before, as inference has it."""
    device, a, b, bias = ready(operator, a, b, bias)
    weight = device.pack(b)
    return lambda: device.gemm(a, weight, bias=bias)


def addmm(operator, c, a, b):
    """c + a·b, of a matrix c or of a row."""
    device, c, a, b = ready(operator, c, a, b)
    if c.ndim == 1:
        return lambda: device.gemm(a, b, bias=c)
    return lambda: device.gemm(a, b, c=c)


def addmm_relu(operator, c, a, b, bias):
    """relu(c + a·b + bias)."""
    device, c, a, b, bias = ready(operator, c, a, b, bias)
    return lambda: device.gemm(a, b, c=c, bias=bias, activation="relu")


def addmm_gelu(operator, c, a, b, bias):
    """gelu(1.25 a·b + 0.5 c + bias), and the value before gelu: (D, aux)."""
    device, c, a, b, bias = ready(operator, c, a, b, bias)
    return lambda: device.gemm(a, b, alpha=1.25, c=c, beta=0.5, bias=bias,
                               activation="gelu_erf", aux=True)


def split_k(operator, a, b, slices):
    """a·b with K in so many slices, which are added in their order."""
    device, a, b = ready(operator, a, b)
    return lambda: device.gemm(a, b, split_k=slices)


def _jagged(operator, schedule, a, b, offsets):
    device, a, b, offsets = ready(operator, a, b, offsets)
    explained = device.explain(a, b, offsets=offsets)
    chosen = explained.split("configuration ")[1].split()[0]
    parts = [part for part in chosen.split(",") if not part.startswith("schedule=")]
    config = ",".join(parts if schedule == "simple" else [*parts, f"schedule={schedule}"])
    return lambda: device.grouped(a, b, offsets, config=config)


def grouped_jagged(operator, a, b, offsets):
    """Rows offsets[g] to offsets[g + 1] of a times b, or b[g]: one workgroup a tile."""
    return _jagged(operator, "simple", a, b, offsets)


def grouped_persistent(operator, a, b, offsets):
    """The same, by as many workgroups as are resident, which take tiles in turn."""
    return _jagged(operator, "persistent", a, b, offsets)


def grouped_gemm(operator, group_a, group_b):
    """The products of two lists of matrices, all of one K and N, as a list.

    The results are the rows of one matrix.  If all B are the same memory, they are one.
    """
    import torch
    sizes = [len(a) for a in group_a]
    offsets = torch.tensor([0, *sizes], device=group_a[0].device).cumsum(0, dtype=torch.int32)
    is_one = len({(b.data_ptr(), b.stride()) for b in group_b}) == 1
    b = group_b[0] if is_one else torch.stack(group_b)
    multiply = grouped_jagged(operator, torch.cat(group_a), b, offsets)
    return lambda: list(multiply().split(sizes))


def _rows(op):
    def method(operator, a, b, gamma=None, beta=None):
        device, a, b, gamma, beta = ready(operator, a, b, gamma, beta)
        return lambda: device.row_reduction(a, b, op, gamma=gamma, row_beta=beta)
    method.__name__ = f"matmul_{op}"
    method.__doc__ = f"{op} of the rows of a·b; gamma and beta are (N,)."
    return method


matmul_layer_norm, matmul_rms_norm = _rows("layer_norm"), _rows("rms_norm")
matmul_softmax, matmul_logsumexp = _rows("softmax"), _rows("logsumexp")
matmul_l2_normalize = _rows("l2_normalize")


def _gated(gate):
    def method(operator, a, b):
        device, a, b = ready(operator, a, b)
        return lambda: device.gated(a, b, gate)
    method.__name__ = gate
    method.__doc__ = f"{gate} of the halves l and r of a·b: b is (K, 2N)."
    return method


swiglu, geglu = _gated("swiglu"), _gated("geglu_erf")
