"""Refusals of names that nothing has, with the name that was probably meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from .binding import ArgumentError, nearest

P = ParamSpec("P")
R = TypeVar("R")

# Arguments that had another name, and what the present one means.
_RENAMED = {"residual": ("c", " It is added before the activation; to add it after that, pass it in "
                              "steps"),
            "weight": ("gamma", "")}


class KeywordError(ArgumentError, TypeError):
    """An argument that the function does not have."""


def require_known(function: str, given: Iterable[str], names: list[str]) -> None:
    """Refuses the first argument that the function does not have."""
    for name in given:
        if name in names:
            continue
        meant, hint = _RENAMED.get(name, (nearest(name, names), ""))
        if meant not in names:
            raise KeywordError(f"{function}() got {name!r}: its arguments are {', '.join(names)}")
        raise KeywordError(f"{function}() got {name!r}: did you mean {meant!r}?{hint}")


def arguments_of(function: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments."""
    return [name for name in inspect.signature(function).parameters if name != "self"]


def suggests(function: Callable[P, R]) -> Callable[P, R]:
    """The function; if it is given an unknown keyword, it names the nearest one it has."""
    names = arguments_of(function)
    # Messages of Python name the class that users have.
    function.__qualname__ = function.__qualname__.replace("Products.", "Device.")
    owner, _, called = function.__qualname__.rpartition(".")
    if called == "__init__":
        called = owner

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except TypeError:
            require_known(called, named, names)
            raise
    return call
