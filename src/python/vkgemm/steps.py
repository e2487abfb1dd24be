"""The steps of an epilogue: tuples as users write them, and the fields that they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import RESULTS, Arrays, require_shape
from .binding import ArgumentError, enumerator, enumerator_name, ffi
from .problem import Part, part, real

#: The most arrays of an epilogue: c, bias, aux, and those of steps.
_MOST_ARRAYS = 4

_MOST_STEPS = dict(ffi.typeof("VkgemmEpilogue").fields)["steps"].type.length

# The values after the operation in a step. Brackets: it may be missing.
_FORMS = {"activate": ("name", "[number]"), "derivative": ("name", "x", "[number]"),
          "store": ("out",), "sum_columns": ()}


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and not isinstance(value, np.generic)


def named(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with each array of `steps` as an argument of its own.

    steps=[("add", x)] becomes {"steps": (("add", "steps[0][1]"),), "steps[0][1]": x}.  An array in
    two steps has the name of its first place.
    """
    if arguments.get("steps") is None:
        return arguments
    if not isinstance(arguments["steps"], (list, tuple)):
        raise ArgumentError(f"steps is {arguments['steps']!r}: it must be a list of tuples")
    arrays: dict[str, Any] = {}
    steps = []
    count = ((arguments.get("bias") is not None) + bool(arguments.get("aux"))
             + (arguments.get("c") is not None and arguments.get("beta") != 0))
    for i, step in enumerate(arguments["steps"]):
        if not isinstance(step, (list, tuple)) or len(step) == 0:
            shown = type(step).__name__ if _is_array(step) else repr(step)
            raise ArgumentError(f"steps[{i}] is {shown}: it must be a tuple such as ('add', 0.5)")
        values = []
        for j, value in enumerate(step):
            if _is_array(value):
                name = f"steps[{i}][{j}]"
                for known, array in arrays.items():
                    if array is value:
                        name = known
                arrays[name] = value
                value = name
            values.append(value)
        steps.append(tuple(values))
        is_new = step[0] == "sum_columns" or step[0] == "store" and not _is_array(step[-1])
        count += is_new
        if count + len(arrays) > _MOST_ARRAYS:
            raise ArgumentError(f"steps[{i}] has one array too many: c, bias, aux and the arrays "
                                f"of steps are at most {_MOST_ARRAYS} in all")
    return {**arguments, "steps": tuple(steps), **arrays}


def is_array_name(item: Any) -> bool:
    """True for a name that named() gave to an array."""
    return isinstance(item, str) and item.startswith("steps[")


def stored(steps: tuple[tuple[Any, ...], ...] | None) -> list[str]:
    """The names, which named() gave, of the arrays that steps write."""
    return [name for op, *rest in steps or () if op == "store" for name in rest
            if is_array_name(name)]


@dataclass
class Tensor:
    """An array that steps read or write."""

    argument: str
    value: Any  # the array; of a new one its type, or None for D's
    is_stored: bool
    is_new: bool
    is_sum: bool = False  # of columns, which is new


class Steps:
    """Reads the steps of one call, as named() gives them, and their arrays by their names."""

    def __init__(self, arrays: Arrays, steps: tuple[tuple[Any, ...], ...],
                 given: dict[str, Any]):
        if len(steps) > _MOST_STEPS:
            raise ArgumentError(f"steps has {len(steps)} steps: it must have at most {_MOST_STEPS}")
        self._arrays = arrays
        self._given = given
        self.tensors: list[Tensor] = []
        self.fields = tuple([self._step(i, *step) for i, step in enumerate(steps)])

    def _step(self, i: int, op: Any, *rest: Any) -> Part:
        """The fields of VkgemmEpilogueStep."""
        at = f"steps[{i}]"
        op = enumerator_name("VkgemmStepOp", enumerator(f"{at}[0]", "VkgemmStepOp", op))
        form = _FORMS.get(op, ("x",))
        if not len(form) - ("[number]" in form) <= len(rest) <= len(form):
            wanted = f"({op!r}, {', '.join(form)})" if form else repr((op,))
            raise ArgumentError(f"{at} is {(op, *rest)!r}: it must be {wanted}")
        fields: dict[str, Any] = {}
        if op == "sum_columns":
            fields["operand"] = f"t{len(self.tensors)}"
            self.tensors.append(Tensor(at, None, is_stored=True, is_new=True, is_sum=True))
        for j, (kind, value) in enumerate(zip(form, rest), 1):
            argument = f"{at}[{j}]"
            if kind == "name":
                activation = enumerator(argument, "VkgemmActivation", value)
                fields["activation"] = enumerator_name("VkgemmActivation", activation)
            elif kind == "[number]":
                fields["number"] = real(argument, value)
            elif kind == "out" or isinstance(value, str) and value in self._given:
                fields["operand"] = self._operand(argument, value, is_stored=kind == "out")
            elif op == "derivative":
                raise ArgumentError(f"{argument} is {value!r}: it must be an array")
            else:
                fields["number"] = real(argument, value, " or an array")
        return part(op=op, **fields)

    def _operand(self, argument: str, value: Any, is_stored: bool) -> str:
        """The name of the tensor in the C API."""
        is_new = not (isinstance(value, str) and value in self._given)
        for index, tensor in enumerate(self.tensors):
            if not is_new and not tensor.is_new and tensor.argument == value:
                if is_stored or tensor.is_stored:
                    raise ArgumentError(f"{argument} is also {value}: an array that a step stores "
                                        "to can't be in another step")
                return f"t{index}"
        if not is_new:
            argument, value = value, self._arrays.array(value, self._given[value])
        self.tensors.append(Tensor(argument, value, is_stored, is_new))
        return f"t{len(self.tensors) - 1}"

    def read(self, m: int, n: int, lead: tuple[int, ...],
             count: int | None) -> tuple[Part, dict[str, Part], dict[str, Any]]:
        """The epilogue's fields, and the matrices and arrays of the tensors that steps read."""
        each: tuple[int, ...] = () if count is None else (count,)
        kinds: list[tuple[str, list[tuple[int, ...]]]] = [  # lists: a compiler's sizes have no hash
            ("scalar", [(), (1,), (1, 1), (*each, 1, 1)]),
            ("along_n", [(n,), (1, n), (*each, 1, n)]),
            ("along_m", [(m, 1), (*lead, m, 1)]),
            ("matrix", [(m, n), (*lead, m, n)])]
        shapes, matrices, inputs = [], {}, {}
        for index, tensor in enumerate(self.tensors):
            array, name = tensor.value, f"t{index}"
            if tensor.is_stored:
                shapes.append("along_n" if tensor.is_sum else "matrix")
                continue
            if lead and array.ndim == 3 and array.shape[0] == 1 != lead[0]:
                array = array[0]
            shape = tuple(array.shape)
            kind = next((kind for kind, allowed in kinds if shape in allowed), None)
            if kind is None:
                raise ArgumentError(f"{tensor.argument}.shape is {shape}: it must broadcast to D, "
                                    f"{(*lead, m, n)}")
            element = part(type=self._arrays.element(f"{tensor.argument}.dtype", array.dtype,
                                                     RESULTS))
            if kind == "matrix":
                shared = 0 if lead and array.ndim == 2 else None
                inputs[name], lies = self._arrays.lay_out(array)
                matrices[name] = element + lies + part(batch_stride=shared)
            else:
                inputs[name] = array
                stride = shape[-2] * shape[-1] if array.ndim == 3 else None
                matrices[name] = element + part(batch_stride=stride)
            shapes.append(kind)
        return part(tensors=tuple(shapes), steps=self.fields), matrices, inputs

    def write(self, shape: tuple[int, ...], count: int | None, element: str, preserved: bool,
              out: Any) -> tuple[dict[str, Part], dict[str, Any], set[str]]:
        """The matrices and arrays of the tensors that steps write, and which the caller gave.

        shape, element: those of D.  count: of matrices or groups.  preserved: new arrays are zero.
        out: the caller's D, or None.
        """
        matrices, outputs, given = {}, {}, set()
        for index, tensor in enumerate(self.tensors):
            array, name = tensor.value, f"t{index}"
            if not tensor.is_stored:
                continue
            if tensor.is_sum:
                each = () if count is None else (count,)
                outputs[name] = self._arrays.new((*each, shape[-1]), "f32", zero=shape[-2] == 0)
                matrices[name] = part(type="f32")
                continue
            if tensor.is_new:
                own = element if array is None else self._arrays.element(
                    tensor.argument, array, RESULTS)
                outputs[name] = self._arrays.new(shape, own, zero=preserved)
                matrices[name] = part(type=own)
                continue
            require_shape(tensor.argument, array, shape)
            self._arrays.require_writeable(tensor.argument, array)
            for other in (out, *outputs.values()):
                if other is not None and self._arrays.overlap(array, other):
                    raise ArgumentError(f"{tensor.argument} overlaps another array that the call "
                                        "writes")
            own = self._arrays.element(f"{tensor.argument}.dtype", array.dtype, RESULTS)
            outputs[name], lies = self._arrays.lay_out(array)
            matrices[name] = part(type=own) + lies
            given.add(name)
        return matrices, outputs, given
