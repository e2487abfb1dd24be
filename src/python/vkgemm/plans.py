"""Plans of products and of quantisations, and which of them a device keeps."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeAlias

from .binding import ffi, initialized, lib, owned, value_of
from .gpu import Gpu
from .problem import Part, bits, structure
from .request import Request


class Plan:
    """A plan of a product, and the scratch memory that it needs."""

    def __init__(self, gpu: Gpu, request: Request):
        self._gpu = gpu
        fields, kept = structure("VkgemmProblem", request.problem)
        config = request.config
        text_or_null = ffi.NULL if config is None else ffi.new("char[]", config)
        self.handle = owned(
            "VkgemmPlan",
            lambda out: gpu.calls(lib.vkgemm_plan_create, gpu.context, fields, text_or_null, out),
            lib.vkgemm_plan_destroy)
        self.workspace_bytes = value_of("uint64_t", lib.vkgemm_plan_workspace_bytes, self.handle)

    def operands(self, workspace: int) -> Any:
        """No operand yet but the scratch memory, which is at this address."""
        operands = initialized("VkgemmOperands")
        operands.workspace = (workspace, self.workspace_bytes)
        return operands

    def record(self, commands: Any, operands: Any) -> None:
        """Records it on these operands."""
        self._gpu.calls(lib.vkgemm_plan_record, self.handle, commands, operands, ffi.NULL)


class QuantisePlan:
    """A plan that makes codes of rows."""

    workspace_bytes = 0

    def __init__(self, gpu: Gpu, request: Request):
        self._gpu = gpu
        fields, kept = structure("VkgemmRowQuantisation", request.problem)
        self.handle = owned(
            "VkgemmQuantisePlan",
            lambda out: gpu.calls(lib.vkgemm_quantise_plan_create, gpu.context, fields, out),
            lib.vkgemm_quantise_plan_destroy)

    def operands(self, workspace: int) -> Any:
        return initialized("VkgemmQuantiseSpans")

    def record(self, commands: Any, operands: Any) -> None:
        self._gpu.calls(lib.vkgemm_quantise_plan_record, self.handle, commands, operands)


AnyPlan: TypeAlias = "Plan | QuantisePlan"


class Plans:
    """The plans that a device keeps: those that were used last."""

    def __init__(self, gpu: Gpu):
        self._gpu = gpu
        self._kept: OrderedDict[tuple[Part, bytes | None], AnyPlan] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, request: Request, most: int) -> AnyPlan:
        """The request's plan, kept or new.  At most so many plans are kept."""
        key = (bits(request.problem), request.config)
        plan = self._kept.get(key)
        if plan is None:
            plan = (Plan(self._gpu, request) if request.kind == "VkgemmProblem" else
                    QuantisePlan(self._gpu, request))
            self._kept[key] = plan
            if len(self._kept) > most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return plan

    def close(self) -> None:
        for plan in self._kept.values():
            ffi.release(plan.handle)
        self._kept.clear()
