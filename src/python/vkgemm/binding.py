"""The C API: its library, its structures, and its errors as exceptions."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from . import _declarations
from ._library import LIBRARY

ffi: Any = _declarations.ffi
lib: Any = ffi.dlopen(str((Path(__file__).parent / LIBRARY).resolve()))


T = TypeVar("T")


class Error(Exception):
    """A call that failed.

    status: the name of a VkgemmStatus: "unsupported".  message: the cause, in a sentence.
    vk_result: the driver's VkResult if a call to it failed, otherwise 0.

    >>> try:
    ...     device.gemm(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32), split_k=513)
    ... except vkgemm.Error as error:
    ...     error.status
    'invalid_argument'
    """

    def __init__(self, status: str, message: str, vk_result: int = 0):
        super().__init__(f"{message} ({status})")
        self.status = status
        self.message = message
        self.vk_result = vk_result


class ArgumentError(Error, ValueError):
    """An argument that no device can accept.  The message names the argument and its value.

    >>> try:
    ...     device.gemm(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
    ... except ValueError as error:
    ...     print(error.message)
    b.shape is (2, 3): 3 rows are needed, because a.shape is (2, 3)
    """

    def __init__(self, message: str):
        super().__init__("invalid_argument", message)


def encoded(argument: str, value: object) -> bytes:
    """A text for the library, in UTF-8; an exception that names the argument if it is no text."""
    if not isinstance(value, (str, bytes)):
        raise ArgumentError(f"{argument} is {value!r}: it must be a str")
    try:
        result = value.encode() if isinstance(value, str) else value
        result.decode()
    except UnicodeError:
        raise ArgumentError(f"{argument} is {value!r}: it must be UTF-8") from None
    if b"\0" in result:
        raise ArgumentError(f"{argument} is {value!r}: it must not contain a NUL")
    return result


def encoded_path(argument: str, path: str | bytes | os.PathLike[str]) -> bytes:
    """The name of a file for the library; an exception that names the argument if it is none."""
    try:
        return encoded(argument, os.fspath(path))
    except TypeError:
        raise ArgumentError(f"{argument} is {path!r}: it must be a path") from None


def text(pointer: Any) -> str:
    """A text of the library."""
    return str(ffi.string(pointer), "utf-8")


def enumeration(name: str) -> int:
    """The value of VkgemmEnumeration for an enumeration such as "VkgemmRowOp"."""
    words = re.findall("[A-Z][a-z0-9]*", name.removeprefix("Vkgemm"))
    return int(getattr(lib, "VKGEMM_ENUMERATION_" + "_".join(words).upper()))


def enumerator_name(enum: str, value: int) -> str:
    """The name of an enumerator: enumerator_name("VkgemmDataType", 1) is "f16"."""
    name = ffi.new("char const **")
    if lib.vkgemm_enumerator_name(enumeration(enum), value, name) != 0:
        return str(value)
    return text(name[0])


def enumerator_names(enum: str) -> list[str]:
    """The names of all enumerators, in the order of their values."""
    values = sorted(ffi.typeof(enum).elements)
    return [enumerator_name(enum, value) for value in values if value != 0x7FFFFFFF]


# Names that PyTorch has for an enumerator.
_ALIASES = {"VkgemmActivation": {"gelu": "gelu_erf"}, "VkgemmGate": {"geglu": "geglu_erf"}}


def nearest(name: object, names: Iterable[str]) -> str | None:
    """The name that is most like another one, if any is."""
    found = difflib.get_close_matches(name, list(names), 1) if isinstance(name, str) else []
    return found[0] if found else None


def enumerator(argument: str, enum: str, name: object) -> int:
    """The value of an enumerator; an exception that names the argument if there is none."""
    value, aliases = ffi.new("int32_t *"), _ALIASES.get(enum, {})
    if isinstance(name, str):
        known = aliases.get(name, name)
        if lib.vkgemm_enumerator_parse(enumeration(enum), known.encode(errors="replace").replace(
                b"\0", b"?"), value) == 0:
            return int(value[0])
    names = enumerator_names(enum)
    meant = nearest(name, [*aliases, *names])
    raise ArgumentError(f"{argument} is {name!r}: it must be one of {', '.join(names)}"
                        + (f"; did you mean {meant!r}?" if meant is not None else ""))


def check(status: int) -> None:
    """Raises what a call without a message returned."""
    if status != 0:
        name = enumerator_name("VkgemmStatus", status)
        raise Error(name, f"a call to the library gave {name}")


# Fields of the C API, in its messages, that Python's arguments name otherwise.
_FIELDS = {"epilogue.clamp_min": "clamp[0]", "epilogue.clamp_max": "clamp[1]",
           "epilogue.bias_type": "bias.dtype", "row_reduction.beta": "row_beta",
           "row_reduction.vector_type": "gamma.dtype", "gated.b": "gated_b",
           "grouping.a_rows": "a.shape[0]", "grouping.a_terms": "gather",
           "grouping.b_matrices": "b.shape[0]", "grouping.d_rows": "scatter",
           "grouping.d_terms": "scatter[1]", "grouping.row_weights": "weights",
           "split_k.slices": "split_k", "f32_arithmetic": "f32", "a.type": "a.dtype",
           "b.type": "b.dtype", "c.type": "c.dtype", "d.type": "out_dtype"}

_FIELD = re.compile(r"(?:^|(?<= ))(?:[abcd]\.type|split_k\.slices|f32_arithmetic|"
                    r"(?:epilogue|gated|grouping|quantised_b|row_reduction)\.\w+)(?= is |, )")


def in_arguments(message: str) -> str:
    """The message with the names of Python's arguments instead of the C API's fields."""
    message = message.replace("epilogue.steps[", "steps[")
    return _FIELD.sub(lambda found: _FIELDS.get(found[0], found[0].partition(".")[2]), message)


class Calls:
    """Calls that have a message when they fail.  For one thread at a time."""

    def __init__(self) -> None:
        self._error = owned("VkgemmError", lib.vkgemm_error_create, lib.vkgemm_error_destroy)

    def __call__(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls a function whose last parameter is a VkgemmError."""
        status = function(*arguments, self._error)
        if status == 0:
            return
        message = ffi.new("char const **")
        check(lib.vkgemm_error_message(self._error, message))
        cause = in_arguments(text(message[0]))
        name = enumerator_name("VkgemmStatus", status)
        if name == "invalid_argument":
            raise ArgumentError(cause)
        vk_result = ffi.new("VkResult *")
        check(lib.vkgemm_error_vk_result(self._error, vk_result))
        raise Error(name, cause, vk_result[0])


class Held:
    """An object of this process's device.  It is its own copy, and cannot be pickled."""

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, memo: Any) -> T:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"a vkgemm.{type(self).__name__} is this process's: it cannot be pickled")


def owned(kind: str, create: Callable[..., Any], destroy: Callable[[Any], int]) -> Any:
    """The handle that `create` writes, destroyed when Python forgets it.

    A child made by fork() does not destroy it: the drivers' threads are missing there.
    """
    handle, process = ffi.new(kind + " **"), os.getpid()
    create(handle)
    return ffi.gc(handle[0], lambda own: destroy(own) if os.getpid() == process else None)


def initialized(kind: str) -> Any:
    """A structure at its defaults: initialized("VkgemmMatrix")."""
    structure = ffi.new(kind + " *")
    name = "_".join(re.findall("[A-Z][a-z0-9]*", kind)).lower()
    check(getattr(lib, name + "_init")(structure, ffi.sizeof(kind)))
    return structure


def output(kind: str) -> Any:
    """A structure for the library to fill in."""
    return ffi.new(kind + " *", {"struct_size": ffi.sizeof(kind)})


def written(function: Callable[..., int], *arguments: Any) -> str:
    """The text that a function writes into a buffer."""
    size = ffi.new("size_t *")
    check(function(*arguments, ffi.NULL, size))
    buffer = ffi.new("char[]", size[0])
    check(function(*arguments, buffer, size))
    return text(buffer)


def value_of(kind: str, function: Callable[..., int], handle: Any) -> Any:
    """The value that a function writes, of a number or a pointer."""
    value = ffi.new(kind + " *")
    check(function(handle, value))
    return value[0]


def version() -> str:
    """The version of the library: "0.1.0"."""
    numbers = [ffi.new("uint32_t *") for _ in range(3)]
    check(lib.vkgemm_version(*numbers))
    return ".".join(str(value[0]) for value in numbers)
