"""Plans, and which of them a device keeps."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .binding import (ArgumentError, check, enumerator, ffi, initialized, lib, output, owned,
                      value_of)
from .gpu import Gpu
from .memory import Buffer
from .packed import PackedMatrix
from .problem import Part, bits, f32_arithmetic, multiplied_as, part, structure
from .request import Request


class Plan:
    """A plan that a function of the C API made, and the scratch memory that it needs."""

    def __init__(self, gpu: Gpu, create: Callable[..., int], *arguments: Any):
        self._gpu = gpu
        self.handle = owned("VkgemmPlan",
                            lambda out: gpu.calls(create, gpu.context, *arguments, out),
                            lib.vkgemm_plan_destroy)
        self.workspace_bytes = value_of("uint64_t", lib.vkgemm_plan_workspace_bytes, self.handle)

    @property
    def is_empty(self) -> bool:
        """Whether it computes nothing."""
        return bool(value_of("uint32_t", lib.vkgemm_plan_dispatch_count, self.handle) == 0)

    def operands(self, workspace: int = 0) -> Any:
        """No operand yet but the scratch memory, which is at this address."""
        operands = initialized("VkgemmOperands")
        operands.workspace = (workspace, self.workspace_bytes)
        return operands

    def record(self, commands: Any, operands: Any) -> None:
        """Records it on these operands."""
        self._gpu.calls(lib.vkgemm_plan_record, self.handle, commands, operands, ffi.NULL)


class PackPlan(Plan):
    """How a matrix of this shape, which lies as `matrix` says, is packed.

    bytes: what it takes then; 0: this device gains nothing, and it is to lie there in rows.
    """

    def __init__(self, gpu: Gpu, shape: tuple[int, ...], matrix: Part, gated_b: str | None,
                 codes: Part | None = None, f32: str = "ieee", multiply_as: str | None = None,
                 a_group_k: int | None = None):
        k, n = shape[-2:]
        if gated_b is not None:
            enumerator("gated_b", "VkgemmGatedB", gated_b)
        pair = gated_b is not None and gated_b != "separate"
        if pair and n % 2 != 0:
            raise ArgumentError(f"b.shape is {tuple(shape)}: two matrices have {n} columns")
        self._element = dict(matrix)["type"]
        arithmetic = f32_arithmetic(f32, "b.dtype", self._element)
        problem = part(m=1, n=n // 2 if pair else n, k=k, a=part(type=self._element), b=matrix,
                       batch=shape[0] if len(shape) == 3 else None,
                       gated=None if gated_b is None else part(b=gated_b), quantised_b=codes,
                       a_group_k=a_group_k)
        self._codes, self._f32 = codes, f32
        fields, kept = structure("VkgemmProblem", problem + arithmetic + multiplied_as(multiply_as))
        self._shape = tuple(shape)
        super().__init__(gpu, lib.vkgemm_plan_pack, fields, lib.VKGEMM_PACKED_OPERAND_B)
        self._layout = output("VkgemmPackedLayout")
        check(lib.vkgemm_plan_layout(self.handle, self._layout))
        self.bytes = int(self._layout.bytes)
        if self.bytes != 0 and multiply_as is not None:
            self._element = multiply_as

    def operands_to(self, target: Buffer) -> Any:
        """No operand yet but what is written."""
        operands = self.operands()
        operands.packed = (target.address, self.bytes)
        return operands

    def packed(self, target: Buffer) -> PackedMatrix:
        """What was packed, or lies there in rows."""
        fingerprint = ffi.new("VkgemmFingerprint *", self._layout.fingerprint)
        return PackedMatrix(self._gpu, target, self._shape, self._element,
                            fingerprint if self.bytes != 0 else None, self._codes, self._f32)


def _planned(gpu: Gpu, request: Request) -> Plan:
    fields, kept = structure(request.kind, request.problem)
    if request.kind != "VkgemmProblem":
        return Plan(gpu, lib.vkgemm_plan_quantise_rows, fields)
    config = ffi.NULL if request.config is None else ffi.new("char[]", request.config)
    return Plan(gpu, lib.vkgemm_plan_create, fields, config)


class Plans:
    """The plans that a device keeps: those that were used last."""

    def __init__(self, gpu: Gpu):
        self._gpu = gpu
        self._kept: OrderedDict[tuple[Part, bytes | None], Plan] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, request: Request, most: int,
             tune: Callable[[Request], None] | None = None) -> Plan:
        """The request's plan, kept or new.  At most so many plans are kept.

        tune: is handed the request of a new product before its plan is made.
        """
        key = (bits(request.problem), request.config)
        plan = self._kept.get(key)
        if plan is None:
            plan = self._kept[key] = self._new(request, tune)
            if len(self._kept) > most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return plan

    def _new(self, request: Request, tune: Callable[[Request], None] | None) -> Plan:
        plan = _planned(self._gpu, request)
        if (tune is None or request.kind != "VkgemmProblem" or request.config is not None
                or plan.is_empty):
            return plan
        try:
            tune(request)
        finally:  # an exception's traceback would keep it, beyond the device
            ffi.release(plan.handle)
        return _planned(self._gpu, request)

    def close(self) -> None:
        """Destroys all plans.  Later requests are planned anew."""
        for plan in self._kept.values():
            ffi.release(plan.handle)
        self._kept.clear()
