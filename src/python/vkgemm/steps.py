"""The steps of an epilogue: tuples as users write them, and the fields that they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import ELEMENT_TYPES, Arrays, require_shape, strides
from .binding import ArgumentError, enumerator, enumerator_name, ffi
from .epilogues import EpilogueFunction
from .problem import Part, part, real

#: The most arrays of an epilogue: c, bias, aux, and those of steps.
_MOST_ARRAYS = 4

_MOST_STEPS = dict(ffi.typeof("VkgemmEpilogue").fields)["steps"].type.length

# The values after the operation in a step. Brackets: it may be missing.
_FORMS = {"activate": ("name", "[number]"), "derivative": ("name", "x", "[number]"),
          "store": ("out",), "sum_columns": (), "amax": (), "argument": ("x",)}

#: The most arguments of a function.
_MOST_ARGUMENTS = 4

#: The shape of a new float32 array that a step writes.
_REDUCTIONS = {"sum_columns": "along_n", "amax": "scalar"}

#: The last item of a step whose array has a bit for each element.
_MASK = "mask"


def mask_bytes(columns: int) -> int:
    """The bytes of a mask's row: whole 32-bit words."""
    return (columns + 31) // 32 * 4


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
        is_new = step[0] in _REDUCTIONS or step[0] == "store" and not any(map(_is_array, step))
        count += is_new
        if count + len(arrays) > _MOST_ARRAYS:
            raise ArgumentError(f"steps[{i}] has one array too many: c, bias, aux and the arrays "
                                f"of steps are at most {_MOST_ARRAYS} in all")
    return {**arguments, "steps": tuple(steps), **arrays}


def numbered(steps: tuple[tuple[Any, ...], ...], gpu: Any) -> tuple[tuple[Any, ...], ...]:
    """The steps with the numbers of their functions in the GPU's context."""
    return tuple(tuple(item.number_in(gpu) if isinstance(item, EpilogueFunction) else item
                       for item in step) for step in steps)


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
    is_mask: bool = False
    reduction: str | None = None  # the shape of column sums or amax, which are new


class Steps:
    """Reads the steps of one call, as named() gives them, and their arrays by their names."""

    def __init__(self, arrays: Arrays, steps: tuple[tuple[Any, ...], ...],
                 given: dict[str, Any]):
        self._arrays = arrays
        self._given = given
        self.tensors: list[Tensor] = []
        self._function = 0
        self.fields = tuple([fields for i, step in enumerate(steps)
                             for fields in self._steps(i, *step)])
        if len(self.fields) > _MOST_STEPS:
            raise ArgumentError(f"steps has {len(self.fields)} steps, with the arguments of "
                                f"functions: it must have at most {_MOST_STEPS}")

    def _steps(self, i: int, op: Any, *rest: Any) -> list[Part]:
        """The fields of the steps that a tuple means: a function has its arguments before it."""
        at = f"steps[{i}]"
        if op != "function":
            return [self._step(at, op, *rest)]
        if not rest or not isinstance(rest[0], int) or len(rest) > 1 + _MOST_ARGUMENTS:
            raise ArgumentError(f"{at} is {(op, *rest)!r}: it must be ('function', f, x0, …) with a "
                                f"function of epilogue() and at most {_MOST_ARGUMENTS} arguments")
        if self._function not in (0, rest[0]):
            raise ArgumentError(f"{at} calls another function than the step before: an epilogue "
                                "calls one function")
        self._function = rest[0]
        return [*(self._step(at, "argument", x, first=j) for j, x in enumerate(rest[1:], 2)),
                part(op="function")]

    def _step(self, at: str, op: Any, *rest: Any, first: int = 1) -> Part:
        """The fields of VkgemmEpilogueStep."""
        op = enumerator_name("VkgemmStepOp", enumerator(f"{at}[0]", "VkgemmStepOp", op))
        form = _FORMS.get(op, ("x",))
        is_mask = len(rest) > 0 and isinstance(rest[-1], str) and rest[-1] == _MASK
        if is_mask:
            if form in (("name", "[number]"), ()):
                raise ArgumentError(f"{at} is {(op, *rest)!r}: {op} has no array that is a mask")
            rest = rest[:-1] or (None,)
        if not len(form) - ("[number]" in form) <= len(rest) <= len(form):
            wanted = f"({op!r}, {', '.join(form)})" if form else repr((op,))
            raise ArgumentError(f"{at} is {(op, *rest)!r}: it must be {wanted}")
        fields: dict[str, Any] = {}
        if op in _REDUCTIONS:
            fields["operand"] = f"t{len(self.tensors)}"
            self.tensors.append(Tensor(at, None, is_stored=True, is_new=True,
                                       reduction=_REDUCTIONS[op]))
        for j, (kind, value) in enumerate(zip(form, rest), first):
            argument = f"{at}[{j}]"
            if kind == "name":
                activation = enumerator(argument, "VkgemmActivation", value)
                fields["activation"] = enumerator_name("VkgemmActivation", activation)
            elif kind == "[number]":
                fields["number"] = real(argument, value)
            elif kind == "out" or isinstance(value, str) and value in self._given:
                fields["operand"] = self._operand(argument, value, kind == "out", is_mask)
            elif op == "derivative" or is_mask:
                raise ArgumentError(f"{argument} is {value!r}: it must be an array")
            else:
                fields["number"] = real(argument, value, " or an array")
        return part(op=op, **fields)

    def _operand(self, argument: str, value: Any, is_stored: bool, is_mask: bool) -> str:
        """The name of the tensor in the C API."""
        is_new = not (isinstance(value, str) and value in self._given)
        if is_mask and is_new and value is not None:
            raise ArgumentError(f"{argument} is {value!r}: a mask must be an array, or nothing")
        for index, tensor in enumerate(self.tensors):
            if not is_new and not tensor.is_new and tensor.argument == value:
                if is_mask != tensor.is_mask:
                    raise ArgumentError(f"{argument} is also {value}: an array is a mask in all "
                                        "steps or in none")
                if is_stored or tensor.is_stored:
                    raise ArgumentError(f"{argument} is also {value}: an array that a step stores "
                                        "to can't be in another step")
                return f"t{index}"
        if not is_new:
            argument, value = value, self._arrays.array(value, self._given[value])
        self.tensors.append(Tensor(argument, value, is_stored, is_new, is_mask))
        return f"t{len(self.tensors) - 1}"

    def read(self, m: int, n: int, lead: tuple[int, ...],
             each: tuple[int, ...]) -> tuple[Part, dict[str, Part], dict[str, Any]]:
        """The epilogue's fields, and the matrices and arrays of the tensors that steps read."""
        kinds: list[tuple[str, list[tuple[int, ...]]]] = [  # lists: a compiler's sizes have no hash
            ("scalar", [(), (1,), (1, 1), (*each, 1, 1)]),
            ("along_n", [(n,), (1, n), (*each, 1, n)]),
            ("along_m", [(m, 1), (*lead, m, 1)]),
            ("matrix", [(m, n), (*lead, m, n)])]
        shapes, matrices, inputs = [], {}, {}
        for index, tensor in enumerate(self.tensors):
            array, name = tensor.value, f"t{index}"
            if tensor.is_stored:
                shapes.append(tensor.reduction or ("mask" if tensor.is_mask else "matrix"))
                continue
            if lead and array.ndim == 3 and array.shape[0] == 1 != lead[0]:
                array = array[0]
            shape = tuple(array.shape)
            if tensor.is_mask:
                wanted = (m, mask_bytes(n))
                if shape not in (wanted, (*lead, *wanted)):
                    raise ArgumentError(f"{tensor.argument}.shape is {shape}: a mask of D must be "
                                        f"{(*lead, *wanted)}")
                inputs[name], matrices[name] = self._mask(tensor.argument, array)
                matrices[name] += strides(shape, lead)
                shapes.append("mask")
                continue
            kind = next((kind for kind, allowed in kinds if shape in allowed), None)
            if kind is None:
                raise ArgumentError(f"{tensor.argument}.shape is {shape}: it must broadcast to D, "
                                    f"{(*lead, m, n)}")
            element = part(type=self._arrays.element(f"{tensor.argument}.dtype", array.dtype,
                                                     ELEMENT_TYPES))
            if kind == "matrix":
                inputs[name], lies = self._arrays.lay_out(array)
                matrices[name] = element + lies + strides(shape, lead)
            else:
                inputs[name] = array
                stride = shape[-2] * shape[-1] if array.ndim > 2 else None
                matrices[name] = element + part(batch_stride=stride)
            shapes.append(kind)
        function = self._function or None
        fields = part(tensors=tuple(shapes), steps=self.fields, function=function)
        return fields, matrices, inputs

    def _mask(self, argument: str, array: Any) -> tuple[Any, Part]:
        """A mask, and its matrix."""
        self._arrays.element(f"{argument}.dtype", array.dtype, ("u8",))
        return array, part(type="u8") + self._arrays.rows(array)

    def write(self, shape: tuple[int, ...], each: tuple[int, ...], element: str, preserved: bool,
              out: Any) -> tuple[dict[str, Part], dict[str, Any], set[str]]:
        """The matrices and arrays of the tensors that steps write, and which the caller gave.

        shape, element: those of D.  each: the numbers of matrices, or groups.  preserved: new arrays are zero.
        out: the caller's D, or None.
        """
        matrices, outputs, given = {}, {}, set()
        for index, tensor in enumerate(self.tensors):
            array, name = tensor.value, f"t{index}"
            if not tensor.is_stored:
                continue
            if tensor.reduction is not None:
                own = (1,) if tensor.reduction == "scalar" else (*each, shape[-1])
                outputs[name] = self._arrays.new(own, "f32", zero=0 in shape)
                matrices[name] = part(type="f32")
                continue
            own_shape = (*shape[:-1], mask_bytes(shape[-1])) if tensor.is_mask else shape
            if tensor.is_mask and tensor.is_new:
                outputs[name] = self._arrays.new(own_shape, "u8", zero=True)
                matrices[name] = part(type="u8")
                continue
            if tensor.is_new:
                own = element if array is None else self._arrays.element(
                    tensor.argument, array, ELEMENT_TYPES)
                outputs[name] = self._arrays.new(shape, own, zero=preserved)
                matrices[name] = part(type=own)
                continue
            require_shape(tensor.argument, array, own_shape)
            self._arrays.require_writeable(tensor.argument, array)
            for other in (out, *outputs.values()):
                if other is not None and self._arrays.overlap(array, other):
                    raise ArgumentError(f"{tensor.argument} overlaps another array that the call "
                                        "writes")
            if tensor.is_mask:
                outputs[name], matrices[name] = self._mask(tensor.argument, array)
            else:
                own = self._arrays.element(f"{tensor.argument}.dtype", array.dtype, ELEMENT_TYPES)
                outputs[name], lies = self._arrays.lay_out(array)
                matrices[name] = part(type=own) + lies
            given.add(name)
        return matrices, outputs, given
