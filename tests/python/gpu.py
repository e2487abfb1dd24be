"""Runs test_torch.py on a GPU and prints a summary of at most 60 lines.

    PYTHONPATH=<where the package is> python gpu.py [--seconds S] [test_torch.TensorsOnCuda ...]

Classes that were not begun after S seconds are listed and not run, and a test that hangs ends the
process with what is known until then.  It fails if anything did.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import os
import sys
import threading
import time
import unittest
from collections import Counter

import test_torch

LINES = 60
GRACE = 30  # seconds that what was begun in time may take


class Summary(unittest.TestResult):
    """What is to be said of the tests that were run."""

    def __init__(self):
        super().__init__()
        self.printed = io.StringIO()
        self.passed: Counter[str] = Counter()
        self.times: list[tuple[float, str]] = []
        self.late: list[str] = []
        self.running = ""

    def startTest(self, test):
        super().startTest(test)
        self.running, self._began = test.id(), time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.times.append((time.monotonic() - self._began, test.id()))
        self.running = ""

    def addSuccess(self, test):
        self.passed[type(test).__name__] += 1

    @property
    def wrong(self):
        return self.errors + self.failures

    def print(self):
        lines = [f"{name}: {count} passed" for name, count in self.passed.items()]
        lines += [line for line in self.printed.getvalue().splitlines() if line]
        lines += [f"skipped: {test.id()}: {why}" for test, why in self.skipped]
        lines += [f"slow: {seconds:.1f} s {test}" for seconds, test in sorted(self.times)[-4:]]
        lines += [f"not run: {name}" for name in self.late]
        for test, trace in self.wrong:
            lines += [f"WRONG: {test}", *(f"    {line}" for line in trace.splitlines()[-6:])]
        if len(lines) > LINES - 2:
            lines[LINES - 3:] = [f"... and {len(lines) - LINES + 3} lines more"]
        print("\n".join(lines), file=sys.__stdout__)
        print(f"{self.testsRun} tests run, {len(self.wrong)} wrong, {len(self.skipped)} skipped, "
              f"{len(self.late)} classes not run", file=sys.__stdout__, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("tests", nargs="*", help="by default all, what is special to CUDA first")
    options = parser.parse_args()
    names = options.tests or sorted(
        (f"test_torch.{name}" for name, value in vars(test_torch).items()
         if isinstance(value, type) and issubclass(value, unittest.TestCase)),
        key=lambda name: not name.endswith("OnCuda"))
    result = Summary()

    def hung():
        result.print()
        print(f"HANGS: {result.running or 'between two tests'}", file=sys.__stdout__, flush=True)
        faulthandler.dump_traceback()
        os._exit(2)
    watchdog = threading.Timer(options.seconds + GRACE, hung)
    watchdog.daemon = True
    watchdog.start()
    end = time.monotonic() + options.seconds
    for name in names:
        if time.monotonic() > end:
            result.late.append(name)
            continue
        with contextlib.redirect_stdout(result.printed):
            unittest.defaultTestLoader.loadTestsFromName(name).run(result)
    result.print()
    watchdog.cancel()
    return 1 if result.wrong or result.late else 0


if __name__ == "__main__":
    sys.exit(main())
