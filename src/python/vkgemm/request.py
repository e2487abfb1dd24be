"""What a call's arguments ask for: the problem, and the arrays that it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import groups
from .arrays import (ELEMENT_TYPES, FLOATS, FLOATS_8, SUMS, Arrays, as_matrix, require_shape,
                     strides)
from .binding import ArgumentError, encoded, enumerator, enumerator_name, lib
from .packed import PackedMatrix
from .problem import Part, f32_arithmetic, integer, multiplied_as, part, real, whole
from .quantised import Codes
from .steps import Steps

_BETA_HINT = "; the summands of a normalisation are row_beta"


@dataclass
class Request:
    """A problem, or rows to be quantised, and the operands by the names that VkgemmOperands has."""

    problem: Part
    config: bytes | None
    inputs: dict[str, Any] = field(default_factory=dict)
    packed: dict[str, PackedMatrix] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)  # written, in the order of results
    preserved: bool = False  # outputs keep what the product does not write
    kind: str = "VkgemmProblem"  # whose fields `problem` has
    stored: set[str] = field(default_factory=set)  # outputs that are no results: steps store them
    known_offsets: list[int] = field(default_factory=list)  # of groups, if the host knows them

    @property
    def results(self) -> list[str]:
        """The names of the outputs that a call returns."""
        return [name for name in self.outputs if name not in self.stored]

    def add_packed(self, operands: Any) -> None:
        """Fills in the packed matrices, which lie where they are."""
        for name, matrix in self.packed.items():
            setattr(operands, name, (matrix.buffer.address, matrix.buffer.size))
            if matrix.fingerprint is not None:
                setattr(operands, f"{name}_fingerprint", matrix.fingerprint[0])


def row_quantisation(arrays: Arrays, a: Any, group: int = 0) -> Request:
    """Rows that become codes, with a scale each, or one for each group of columns."""
    a = as_matrix("a", arrays.array("a", a))
    shape = tuple(a.shape)
    source = part(type=arrays.element("a.dtype", a.dtype)) + arrays.rows(a)
    fields = part(rows=shape[-2], columns=shape[-1], batch=shape[0] if len(shape) == 3 else None,
                  source=source, group_k=integer("group", group))
    scales = shape[:-1] if group == 0 else (*shape[:-1], -(-shape[-1] // group))
    outputs = {"codes": arrays.new(shape, "s8"), "scales": arrays.new(scales, "f32")}
    return Request(fields, None, {"source": a}, outputs=outputs, kind="VkgemmRowQuantisation")


def _require_no_codes(argument: str, b: Any) -> None:
    if isinstance(b, Codes):
        raise ArgumentError(f"{argument} is vkgemm.Codes: pass what Device.pack_codes() returns")


def _gate(text: str) -> tuple[str, dict[str, Any]]:
    """The name of a gate, and its parameters: "swiglu:swapped:limit=7"."""
    name, *parameters = str(text).split(":")
    found: dict[str, Any] = {}
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if parameter == "swapped":
            found["swapped"] = True
        elif key in ("limit", "slope", "offset"):
            found[key] = real(f"gate is {text!r}: {key}", value)
        else:
            raise ArgumentError(f"gate is {text!r}: {parameter!r} is no parameter; they are "
                                "'swapped', 'limit=7', 'slope=1.702', 'offset=1'")
    return enumerator_name("VkgemmGate", enumerator("gate", "VkgemmGate", name)), found


def _shown(value: Any) -> str:
    """What messages call an argument: a number, or that an array is given."""
    return repr(value) if isinstance(value, (int, tuple, list)) else "given"


class Builder:
    """Reads the arguments of one call.  Each method reads those of one part of the problem."""

    def __init__(self, arrays: Arrays, a: Any, b: Any, f32: str, multiply_as: str | None,
                 config: str | None):
        self.arrays = arrays
        self.config = None if config is None else encoded("config", config)
        self.inputs: dict[str, Any] = {}
        self.packed: dict[str, PackedMatrix] = {}
        self.outputs: dict[str, Any] = {}
        self.a = as_matrix("a", arrays.array("a", a), 4)
        self.b: Any = b
        _require_no_codes("b", b)
        if not isinstance(b, PackedMatrix):
            self.b = as_matrix("b", arrays.array("b", b), 4)
        self.element = arrays.element("a.dtype", self.a.dtype, ELEMENT_TYPES)
        self.f32 = f32
        self.parts: dict[str, Any] = dict(f32_arithmetic(f32, "a.dtype", self.element) +
                                          multiplied_as(multiply_as))
        self.gate: str | None = None
        self.b_is_pair = False
        self.b_right: Any = None
        self.along: str | None = None  # the direction of groups; None: there are none
        self.bounds: dict[str, Any] = {}  # offsets, sizes or both
        self.known_offsets: list[int] = []
        self.by_index: dict[str, Any] = {}  # fields of VkgemmGrouping: rows and matrices by index
        self.rows: Any = None  # the index of each row of the product
        self.gathers = False
        self.d_rows: int | None = None  # of D that has rows of its own
        self.adds_rows = False
        self.b_index: Any = None
        self.steps: Steps | None = None
        self.has_d = True
        self.makes_codes = False  # of rows, which D holds, and their scales
        # D is A·B itself, in integers
        self.is_sum = self.element == "s8" and multiply_as in (None, "s8")

    def _matrix(self, name: str, array: Any, in_rows: bool = False) -> Part:
        if in_rows:
            self.inputs[name], lies = array, self.arrays.rows(array)
        else:
            self.inputs[name], lies = self.arrays.lay_out(array)
        element = self.arrays.element(f"{name}.dtype", array.dtype, ELEMENT_TYPES)
        return part(type=element) + lies + strides(array.shape, self.batch)

    def _b_matrix(self, name: str, b: Any) -> Part:
        if not isinstance(b, PackedMatrix):
            return self._matrix(name, self.arrays.array(name, b))
        self.packed[name] = b
        self.parts["quantised_b"] = b.codes
        return part(type=b.element, packing=b.packing) + strides(b.shape, self.batch)

    def gated(self, gate: str, gated_b: str, b_right: Any) -> None:
        """A gate, and where the halves of B stand."""
        self.gate, parameters = _gate(gate)
        enumerator("gated_b", "VkgemmGatedB", gated_b)
        if (b_right is not None) != (gated_b == "separate"):
            given = "given" if b_right is not None else "None"
            raise ArgumentError(f"b_right is {given} and gated_b is {gated_b!r}: "
                                "two matrices B are 'separate'")
        self.is_sum = False
        self.parts["gated"] = part(gate=self.gate, b=gated_b, **parameters)
        self.b_is_pair = gated_b != "separate"
        _require_no_codes("b_right", b_right)
        self.b_right = b_right

    def grouped(self, offsets: Any, along: str, sizes: Any, **by_index: Any) -> None:
        """Groups of rows of A or, along K, of its columns."""
        enumerator("along", "VkgemmGroupAlong", along)
        for name, value in by_index.items():
            if value is not None and along != "m":
                raise ArgumentError(f"{name} is {_shown(value)} and along is {along!r}: "
                                    "it must be 'm'")
        self.along = along
        self._rows_by_index(**by_index)
        for name, array in (("offsets", offsets), ("sizes", sizes)):
            if array is not None:
                self.bounds[name] = groups.numbers(self.arrays, name, array, sizes is None)
        if not self.bounds:
            raise ArgumentError("offsets is None and sizes is None: one of them must be given")
        ends = "offsets" if sizes is None else "sizes"
        self.groups = self.bounds[ends].shape[0] - (sizes is None)
        self.offset_type = self.arrays.offset_type(self.bounds[ends])
        if len(self.bounds) == 2:
            both = [f"{array.dtype} of shape {tuple(array.shape)}"
                    for array in self.bounds.values()]
            if both[0] != both[1]:
                raise ArgumentError(f"offsets is {both[0]} and sizes is {both[1]}: "
                                    "both must have one type and one value for each group")
        capacity = self.rows.shape[0] if self.gathers else self.a.shape[-2 if along == "m" else -1]
        known = {name: self.arrays.known(array) for name, array in self.bounds.items()}
        self.known_offsets = groups.known_offsets(known, capacity, along.upper())

    def _rows_by_index(self, *, rows: Any, gather: Any, scatter: Any, weights: Any,
                       b_index: Any) -> None:
        """Reads which rows of A are gathered, which rows of D are written, and B's index."""
        for name, value in (("gather", gather), ("scatter", scatter)):
            if value is not None and rows is None:
                raise ArgumentError(f"{name} is {value!r} and rows is None: rows must be given")
        if rows is not None and gather is None and scatter is None:
            raise ArgumentError("rows is given, gather is None and scatter is None: "
                                "one of them must be given")
        is_pair = isinstance(scatter, (tuple, list)) and len(scatter) == 2
        if weights is not None and not is_pair:
            raise ArgumentError(f"weights is given and scatter is {scatter!r}: "
                                "it must be (rows, terms)")
        if b_index is not None:
            self.b_index = groups.index(self.arrays, "b_index", b_index)
        if rows is None:
            return
        self.rows = groups.index(self.arrays, "rows", rows)
        count = self.rows.shape[0]
        a_rows = self.a.shape[-2]
        if gather is None and count != a_rows:
            raise ArgumentError(f"rows.shape is {tuple(self.rows.shape)}: it must be ({a_rows},), "
                                f"because a.shape is {tuple(self.a.shape)} and gather is None")
        if gather is not None:
            self.gathers = True
            terms = groups.terms("gather", gather)
            groups.require_below(self.arrays, "rows", self.rows, a_rows * terms,
                                 f"gather is {terms} and a has {a_rows} rows")
            self.by_index.update(part(a_rows=a_rows or None, a_terms=terms if a_rows else None))
        if scatter is not None:
            self._scatter(scatter, weights)

    def _scatter(self, scatter: Any, weights: Any) -> None:
        """Gives D rows of its own.  Rows of the product are stored to them, or added up."""
        pair = tuple(scatter) if isinstance(scatter, (tuple, list)) else (scatter,)
        if not 1 <= len(pair) <= 2:
            raise ArgumentError(f"scatter is {scatter!r}: it must be rows or (rows, terms)")
        self.d_rows = whole("scatter" if len(pair) == 1 else "scatter[0]", pair[0], 31)
        terms = groups.terms("scatter[1]", pair[1]) if len(pair) == 2 else 1
        groups.require_below(self.arrays, "rows", self.rows, self.d_rows * terms,
                             f"scatter is {scatter!r}")
        self.adds_rows = terms > 1 or weights is not None
        if self.d_rows != 0:
            self.by_index.update(d_rows=self.d_rows, d_terms=terms)
        if self.adds_rows:
            self.is_sum = False
        if weights is not None:
            array = self.arrays.array("weights", weights)
            require_shape("weights", array, (self.d_rows, terms))
            self.arrays.element("weights.dtype", array.dtype, ("f32",))
            if self.d_rows != 0:
                self.inputs["row_weights"] = array
                self.by_index["row_weights"] = 1

    def shapes(self, sum_batch: bool) -> None:
        """M, N, K, batch or groups, and A and B themselves."""
        self.m, self.k = self.a.shape[-2:]
        if self.gathers:
            self.m = self.rows.shape[0]
        rows, columns = self.b.shape[-2:]
        if rows != self.k:
            raise ArgumentError(f"b.shape is {tuple(self.b.shape)}: {self.k} rows are needed, "
                                f"because a.shape is {tuple(self.a.shape)}")
        if self.b_is_pair and columns % 2 != 0:
            raise ArgumentError(f"b.shape is {tuple(self.b.shape)}: "
                                f"two matrices have {columns} columns")
        self.n = columns // 2 if self.b_is_pair else columns
        self.columns = 2 * self.n if self.gate is not None else self.n  # of bias and aux
        if self.along is not None:
            if sum_batch:
                raise ArgumentError("sum_batch is True: groups are not added up")
            self._group_shapes()
            return
        self.lead: tuple[int, ...] = self._batch()
        self.batch = self.lead
        self._read_a_and_b()
        if self.lead:
            self.parts["batch"] = self.lead[-1]
        if len(self.lead) == 2:
            self.parts["outer_batch"] = self.lead[0]
        if sum_batch:
            if len(self.lead) != 1:
                raise ArgumentError(f"sum_batch is True: a or b must have 3 dimensions, the other "
                                    f"one 2 or 3; a has {self.a.ndim}, b has {len(self.b.shape)}")
            self.parts["sum_batch"] = True
            self.lead = ()
        self.each = self.lead

    def _batch(self) -> tuple[int, ...]:
        """The dimensions before those of matrices, to which A and B broadcast."""
        leads = [tuple(array.shape[:-2]) for array in (self.a, self.b)]
        most = max(map(len, leads))
        if most < 2:
            if len({lead for lead in leads if lead}) > 1:
                raise ArgumentError(f"b.shape is {tuple(self.b.shape)}: "
                                    f"a has {self.a.shape[0]} matrices")
            return max(leads, key=len)
        both = [(1,) * (most - len(lead)) + lead for lead in leads]
        for of_a, of_b in zip(*both):
            if of_a != of_b and 1 not in (of_a, of_b):
                raise ArgumentError(f"b.shape is {tuple(self.b.shape)}: it does not broadcast to "
                                    f"a.shape, {tuple(self.a.shape)}")
        return tuple(of_b if of_a == 1 else of_a for of_a, of_b in zip(*both))

    def _group_shapes(self) -> None:
        count = matrices = self.groups
        if self.b_index is not None:
            matrices = self._indexed_matrices()
        for name, array, most in (("a", self.a, 2), ("b", self.b, 3 if self.along == "m" else 2)):
            if len(array.shape) > most or len(array.shape) == 3 and array.shape[0] != matrices:
                raise ArgumentError(f"{name}.shape is {tuple(array.shape)}: {[*self.bounds][-1]} "
                                    f"has {count} groups along {self.along}")
        per_group = "per_group" if len(self.b.shape) == 3 else "shared"
        bounds = {("sizes",): "sizes", ("offsets", "sizes"): "starts_and_sizes"}
        self.parts["grouping"] = part(groups=count, offsets=self.offset_type,
                                      along=self.along, b=per_group,
                                      bounds=bounds.get(tuple(self.bounds)), **self.by_index)
        self.each = (matrices,)
        self.lead = (count,) if self.along == "k" else ()
        self.batch = ()
        self._read_a_and_b()
        for name, array in (("offsets", self.bounds.get("offsets")),
                            ("group_sizes", self.bounds.get("sizes")),
                            ("row_index", self.rows), ("b_index", self.b_index)):
            if array is not None:
                self.inputs[name] = array

    def _indexed_matrices(self) -> int:
        """The number of B's matrices, of which b_index has one for each group."""
        shape: tuple[int, ...] = tuple(self.b.shape)
        if len(shape) != 3:
            raise ArgumentError(f"b.shape is {shape} and b_index is given: "
                                "b must have 3 dimensions")
        if self.b_index.shape[0] != self.groups:
            raise ArgumentError(f"b_index.shape is {tuple(self.b_index.shape)}: it must be "
                                f"({self.groups},), a value for each group")
        groups.require_below(self.arrays, "b_index", self.b_index, shape[0],
                             f"b has {shape[0]} matrices")
        self.by_index.update(part(b_matrices=shape[0] or None))
        return shape[0]

    def _read_a_and_b(self) -> None:
        self.parts["a"] = self._matrix("a", self.a, in_rows=self.gathers)
        self.parts["b"] = self._b_matrix("b", self.b)
        if self.gate is not None and self.b_right is not None:
            packed = [isinstance(b, PackedMatrix) for b in (self.b, self.b_right)]
            if self.b_right.shape != self.b.shape or packed[0] != packed[1]:
                raise ArgumentError(f"b_right.shape is {tuple(self.b_right.shape)}, of "
                                    f"{type(self.b_right).__name__}: it must be as b, "
                                    f"{tuple(self.b.shape)} of {type(self.b).__name__}")
            pair = [self.parts["b"], self._b_matrix("b_right", self.b_right)]
            if packed[0] and not self.b_right.is_packed_like(self.b):
                raise ArgumentError(f"b_right is {self.b_right!r} and b is {self.b!r}: both must be "
                                    "packed alike, with gated_b='separate'")
            if len({tuple(item for item in b if item[0] != "alignment") for b in pair}) > 1:
                raise ArgumentError("b_right lies otherwise than b: both must have one type and "
                                    "one order")
            self.parts["b"] = min(pair, key=lambda b: dict(b).get("alignment", 16))
        types = {self.element, dict(self.parts["b"])["type"]}
        unlike = len(types) > 1 and not types & {*FLOATS_8} and "multiply_as" not in self.parts
        if unlike and self.parts.get("quantised_b"):
            fix = (f"pack it with element={self.element!r}" if self.element in ("f16", "bf16", "s8")
                   else "a must be float16, bfloat16 or int8, or pass multiply_as")
            raise ArgumentError(f"b is {self.b!r}: a.dtype is {self.element}, and {fix}")
        if unlike:
            raise ArgumentError(f"b.dtype is {dict(self.parts['b'])['type']}: a.dtype is "
                                f"{self.element}, and without multiply_as both must be one type")
        for name, matrix in self.packed.items():
            if matrix.f32 != self.f32:
                raise ArgumentError(f"f32 is {self.f32!r}: {name} was packed for {matrix.f32!r}")

    def _bias(self, bias: Any) -> Part:
        array = self.arrays.array("bias", bias)
        along_n: list[tuple[int, ...]] = [(self.columns,), (1, self.columns)]
        along_m: list[tuple[int, ...]] = [(self.m, 1)]
        if self.each:
            along_n.append((*self.each, 1, self.columns))
            along_m.append((*self.each, self.m, 1))
        require_shape("bias", array, *along_n, *along_m)
        self.inputs["bias"] = array
        return part(bias="along_n" if array.shape in along_n else "along_m",
                    bias_type=self.arrays.element("bias.dtype", array.dtype),
                    bias_batch_stride=array.shape[-2] * array.shape[-1] if array.ndim > 2 else None)

    def _scales(self, name: str, scales: Any, length: int, has_many: bool) -> Part:
        array = self.arrays.array(name, scales)
        require_shape(name, array, (length,), *([(*self.each, length)] if has_many else []))
        self.arrays.element(f"{name}.dtype", array.dtype, ("f32",))
        self.inputs[name] = array
        return part(**{name: "shared" if array.ndim == 1 else "per_matrix"})

    def _row_scales(self, scales: Any) -> Part:
        """Scales of rows or, beside codes of B, of groups of their columns."""
        array = self.arrays.array("row_scales", scales)
        m, k = self.a.shape[-2:]
        codes = dict(self.parts.get("quantised_b") or ())
        has_groups = codes and array.ndim > 1 and (self.element == "s8" or
                                                   codes["type"] in FLOATS_8)
        if not has_groups or array.shape[-1] == m and array.ndim == 2 and self.lead:
            return self._scales("row_scales", scales, m, len(self.lead) > 0)
        fitting = [group for group in (128, 64, 32) if -(-k // group) == array.shape[-1]]
        shapes = [(m, -(-k // group)) for group in (32, 64, 128)]
        require_shape("row_scales", array, (m,), *shapes,
                      *([(*self.each, *shape) for shape in shapes] if self.lead else []))
        self.arrays.element("row_scales.dtype", array.dtype, ("f32",))
        self.inputs["row_scales"] = array
        self.parts["a_group_k"] = fitting[0]
        return part(row_scales="shared" if array.ndim == 2 else "per_matrix")

    def epilogue(self, *, alpha: float, row_scales: Any, column_scales: Any, bias: Any,
                 c: Any = None, beta: float | None = None, activation: str | None = None,
                 aux: bool, clamp: Any, zero_point: int = 0) -> None:
        """alpha, scales, beta·C, bias, activation, aux, clamp and zero_point."""
        fields = part(alpha=real("alpha", alpha), aux=int(bool(aux)))
        if row_scales is not None:
            fields += self._row_scales(row_scales)
        if column_scales is not None:
            fields += self._scales("column_scales", column_scales, self.columns,
                                   len(self.each) > 0)
        if activation is not None:
            value = enumerator("activation", "VkgemmActivation", activation)
            name = enumerator_name("VkgemmActivation", value)
            fields += part(activation=None if name == "none" else name)
        if bias is not None:
            fields += self._bias(bias)
        if c is not None:
            array = as_matrix("c", self.arrays.array("c", c), 4)
            shapes = [(*self.lead, self.m, self.n)]
            require_shape("c", array, *shapes, *([(self.m, self.n)] if self.lead else []))
            self.inputs["c"] = array
            beta = 1.0 if beta is None else real("beta", beta, _BETA_HINT)
            fields += part(beta=beta)
            self.parts["c"] = part(
                type=self.arrays.element("c.dtype", array.dtype, ELEMENT_TYPES)
            ) + self.arrays.rows(array)
            self.parts["c"] += strides(array.shape, self.lead)
        elif beta is not None and real("beta", beta, _BETA_HINT) != 0:
            raise ArgumentError(f"beta is {beta}, and c is None")
        if clamp is not None:
            try:
                low, high = clamp
            except (TypeError, ValueError):
                raise ArgumentError(f"clamp is {clamp!r}: it must be (min, max)") from None
            fields += part(clamp_min=None if low is None else real("clamp[0]", low),
                           clamp_max=None if high is None else real("clamp[1]", high))
        if zero_point != 0:
            fields += part(zero_point=integer("zero_point", zero_point))
        self.parts["epilogue"] = fields
        self.has_aux = bool(aux)
        self.is_sum = self.is_sum and fields == part(alpha=1.0, aux=0)

    def read_steps(self, steps: Any, arrays: dict[str, Any]) -> None:
        """Steps after the activation or the gate."""
        self.steps = Steps(self.arrays, steps, arrays)
        fields, matrices, inputs = self.steps.read(self.m, self.n, self.lead, self.each)
        self.parts["epilogue"] += fields
        self.parts.update(matrices)
        self.inputs.update(inputs)
        self.is_sum = False

    def row_reduction(self, op: str, *, eps: float | None, gamma: Any, row_beta: Any,
                      store_d: bool) -> None:
        """A reduction of rows, which gives values or changes D."""
        value = enumerator("op", "VkgemmRowOp", op)
        gives_values = value >= lib.VKGEMM_ROW_OP_LOGSUMEXP
        if self.n == 0:
            raise ArgumentError(f"b.shape is {tuple(self.b.shape)}: op {op!r} needs a column")
        vectors = {}
        for name, vector in (("gamma", gamma), ("row_beta", row_beta)):
            if vector is not None:
                array = self.arrays.array(name, vector)
                require_shape(name, array, (self.n,))
                vectors[name] = self.arrays.element(f"{name}.dtype", array.dtype)
                self.inputs[name.removeprefix("row_")] = array
        if len(set(vectors.values())) > 1:
            raise ArgumentError(f"row_beta.dtype is {vectors['row_beta']}: "
                                f"gamma.dtype is {vectors['gamma']}, and both must be one type")
        self.is_sum = False
        self.has_d = store_d or not gives_values or value == lib.VKGEMM_ROW_OP_QUANTISE
        self.parts["row_reduction"] = part(
            op=op, eps=None if eps is None else real("eps", eps), gamma=int(gamma is not None),
            beta=int(row_beta is not None), vector_type=next(iter(vectors.values()), None),
            store_d=int(self.has_d))
        self.row_values = self.arrays.new((*self.lead, self.m), "f32") if gives_values else None
        self.makes_codes = value == lib.VKGEMM_ROW_OP_QUANTISE
        if gives_values and not self.makes_codes:
            self.outputs["row_values"] = self.row_values

    def split(self, split_k: int | None, max_workspace_bytes: int | None) -> None:
        """Slices of K, and the most that scratch memory may take."""
        if split_k is not None:
            self.parts["split_k"] = part(slices=whole("split_k", split_k, 32))
        if max_workspace_bytes is not None:
            limit = whole("max_workspace_bytes", max_workspace_bytes, 64)
            self.parts["max_workspace_bytes"] = limit

    def request(self, out_dtype: Any, out: Any) -> Request:
        """All of it.  D is `out`, or a new array."""
        of_product = (*self.lead, self.m, self.n)
        shape = of_product if self.d_rows is None else (self.d_rows, self.n)
        element, elements = self.element, ELEMENT_TYPES
        if element == "s8":
            is_sum = self.is_sum and not self.parts.get("quantised_b")
            element, elements = "s32" if is_sum else "f32", SUMS
        elif element not in FLOATS:
            element = "f32"
        beside = element  # of aux and of what steps store, if D has codes
        if self.makes_codes:
            element = "s8"
        if out_dtype is not None:
            element = self.arrays.element("out_dtype", out_dtype, elements)
        elif out is not None:
            dtype = self.arrays.array("out", out).dtype
            element = self.arrays.element("out.dtype", dtype, elements)
        if not self.makes_codes:
            beside = element
        preserved = self.along == "m" or self.m == 0  # rows of no group; sums of no rows
        is_added = self.adds_rows and self.m != 0 and self.groups != 0  # all rows of D are written
        self.parts["d"] = part(type=element)
        if not self.has_d and out is not None:
            raise ArgumentError("out is given and store_d is False: D is not stored")
        if not (self.has_d or self.has_aux) and out_dtype is not None:
            raise ArgumentError(f"out_dtype is {out_dtype!r} and store_d is False: D is not stored, "
                                "and the values are float32")
        if self.has_d and out is None:
            self.outputs["d"] = self.arrays.new(shape, element, zero=preserved and not is_added)
        elif self.has_d:
            array = self.arrays.array("out", out)
            require_shape("out", array, shape)
            own = self.arrays.element("out.dtype", array.dtype, elements)
            if own != element and not (own == "u8" and element in FLOATS_8):
                raise ArgumentError(f"out.dtype is {array.dtype}: out_dtype is {element}")
            self.arrays.require_writeable("out", array)
            self.outputs["d"] = array
            self.parts["d"] += self.arrays.rows(array)
        if self.makes_codes:
            self.outputs["row_values"] = self.row_values
        if self.has_aux:
            self.parts["aux"] = part(type=beside)
            self.outputs["aux"] = self.arrays.new((*self.lead, self.m, self.columns), beside,
                                                  zero=preserved)
        given: set[str] = set()
        if self.steps is not None:
            matrices, outputs, given = self.steps.write(of_product, self.each, beside,
                                                          preserved, out)
            self.parts.update(matrices)
            self.outputs.update(outputs)
        sizes = part(m=self.m, n=self.n, k=self.k)
        return Request(sizes + part(**self.parts), self.config, self.inputs, self.packed,
                       self.outputs, preserved, stored=given, known_offsets=self.known_offsets)


def product(arrays: Arrays, a: Any, b: Any, *, gate: str | None = None, gated_b: str = "halves",
            b_right: Any = None, offsets: Any = None, along: str = "m", sizes: Any = None,
            rows: Any = None, gather: int | None = None, scatter: Any = None, weights: Any = None,
            b_index: Any = None, op: str | None = None,
            eps: float | None = None, gamma: Any = None, row_beta: Any = None,
            store_d: bool = False, row_scales: Any = None, column_scales: Any = None,
            bias: Any = None, activation: str | None = None, c: Any = None,
            alpha: float = 1.0, beta: float | None = None, aux: bool = False, clamp: Any = None,
            zero_point: int = 0, steps: Any = None, out_dtype: Any = None, out: Any = None,
            sum_batch: bool = False, f32: str = "ieee", multiply_as: str | None = None,
            split_k: int | None = None, max_workspace_bytes: int | None = None,
            config: str | None = None, **arrays_of_steps: Any) -> Request:
    """What the arguments of Device's products ask for.  steps.named() names the arrays of steps."""
    builder = Builder(arrays, a, b, f32, multiply_as, config)
    if gate is not None:
        builder.gated(gate, gated_b, b_right)
    by_index = dict(rows=rows, gather=gather, scatter=scatter, weights=weights, b_index=b_index)
    if any(value is not None for value in (offsets, sizes, *by_index.values())):
        builder.grouped(offsets, along, sizes, **by_index)
    builder.shapes(sum_batch)
    builder.epilogue(alpha=alpha, row_scales=row_scales, column_scales=column_scales, bias=bias,
                     c=c, beta=beta, activation=activation, aux=aux, clamp=clamp,
                     zero_point=zero_point)
    if steps:
        builder.read_steps(steps, arrays_of_steps)
    if op is not None:
        builder.row_reduction(op, eps=eps, gamma=gamma, row_beta=row_beta, store_d=store_d)
    builder.split(split_k, max_workspace_bytes)
    return builder.request(out_dtype, out)
