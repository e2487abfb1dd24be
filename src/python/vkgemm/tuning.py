"""The search for the fastest configuration of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

from .binding import encoded_path, ffi, initialized, lib, output, text
from .gpu import Gpu
from .problem import real, structure
from .request import Request


@dataclass(frozen=True)
class TuneProgress:
    """The state of a tuning run.  Times are medians, 0 as long as there is none.

    timed: the configurations that were timed so far.
    candidates: the most configurations that the run times, with the chosen one.
    elapsed_ms: the milliseconds since the run began.
    best_us: the microseconds of the fastest configuration so far.
    chosen_us: those of the configuration that vkgemm takes without the run.

    >>> a, states = np.ones((2, 3), np.float32), []
    >>> result = device.tune(a, a.T, budget_ms=50, progress=states.append)
    >>> states[0].best_us <= states[0].chosen_us
    True
    """

    timed: int
    candidates: int
    elapsed_ms: float
    best_us: float
    chosen_us: float


@dataclass(frozen=True)
class TuneResult:
    """The result of Device.tune().

    config: the configuration that vkgemm takes from now on.
    microseconds: the median time of config.
    chosen: the configuration that vkgemm took before.
    chosen_us: the median time of chosen in the same run.
    timed: the number of configurations that were timed.
    candidates: the most configurations that the run times, with the chosen one.
    is_complete: True if all candidates were timed.  Otherwise call Device.tune() again with a
        larger budget_ms, and the same `file`.

    >>> a = np.ones((2, 3), np.float32)
    >>> result = device.tune(a, a.T, budget_ms=50)
    >>> result.microseconds <= result.chosen_us
    True
    """

    config: str
    microseconds: float
    chosen: str
    chosen_us: float
    timed: int
    candidates: int
    is_complete: bool


class _Report:
    """Hands on the state of a run.  An exception ends the run; it is kept for the caller."""

    def __init__(self, progress: Callable[[TuneProgress], Any] | None):
        self._progress = progress
        self.error: BaseException | None = None

    def __call__(self, state: Any) -> bool:
        try:
            return self._progress is None or self._progress(TuneProgress(
                state.timed, state.candidates, state.elapsed_ms, state.best_us,
                state.chosen_us)) is not False
        except BaseException as error:
            self.error = error
            return False


@ffi.callback("VkgemmTuneCallback")  # type: ignore[misc]
def _report(state: Any, user_data: Any) -> bool:
    return bool(ffi.from_handle(user_data)(state))


def tune(gpu: Gpu, request: Request, *, budget_ms: float, file: str | PathLike[str] | None = None,
         progress: Callable[[TuneProgress], Any] | None = None, warm_l2: bool = False,
         skip_timed: bool = False) -> TuneResult:
    """Times configurations of the request's problem on the device's queue, which must be idle."""
    info, result = initialized("VkgemmTuneInfo"), output("VkgemmTuneResult")
    info.queue, info.queue_family = gpu.queue, gpu.family
    info.budget_ms = real("budget_ms", budget_ms)
    info.warm_l2, info.skip_timed = bool(warm_l2), bool(skip_timed)
    offsets = ffi.new("uint64_t[]", request.known_offsets)
    if request.known_offsets:
        info.offsets, info.offset_count = offsets, len(request.known_offsets)
    path = None if file is None else ffi.new("char[]", encoded_path("file", file))
    if path is not None:
        info.file = path
    report = _Report(progress)
    user_data = ffi.new_handle(report)
    info.progress, info.progress_user_data = _report, user_data  # without one, Ctrl-C would wait
    problem, kept = structure(request.kind, request.problem)
    try:
        gpu.calls(lib.vkgemm_tune, gpu.context, problem, info, result)
    finally:
        if report.error is not None:
            raise report.error
    return TuneResult(text(result.config), result.microseconds, text(result.chosen),
                      result.chosen_us, result.timed, result.candidates, bool(result.is_complete))
