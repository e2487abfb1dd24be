"""Memory over many calls.  A process of its own, without the layers, which keep memory."""

import importlib.util
import unittest
import warnings
from pathlib import Path

import numpy as np
from reference import values

import vkgemm

CALLS = 5_000  # in each of ROUNDS
DEVICES = 20  # in each of ROUNDS
ROUNDS = 4


def resident_bytes():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def least_growth(calls, count=CALLS):
    """Bytes by which the process grows in a round of `count` calls.  A leak grows in each; an allocator
    takes a megabyte now and then."""
    calls(count)  # the driver's lists grow to their size
    sizes = [resident_bytes()]
    for _ in range(ROUNDS):
        calls(count)
        sizes.append(resident_bytes())
    return min(after - before for before, after in zip(sizes, sizes[1:]))


class Leaks(unittest.TestCase):
    def test_memory_is_bounded(self):
        a, b, bias = values((4, 6), "f16"), values((6, 8), "f16"), values((8,))
        with vkgemm.Device() as device:
            def calls(count):
                for index in range(count):
                    device.gemm(a, b, bias=bias, activation="relu")
                    if index % 10 == 0:
                        device.gemm(a, device.pack(b))
                        with self.assertRaises(vkgemm.Error):
                            device.gemm(a, b, split_k=513)
            self.assertLess(least_growth(calls), 40 * CALLS)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_memory_of_tensors_is_bounded(self):
        import torch
        from host_peer import connect
        with connect(vkgemm.Device()) as device:
            a, b = device.shared(torch.ones(4, 6)), device.shared(torch.ones(6, 8))

            def calls(count):
                for index in range(count):
                    device.gemm(a, b, activation="relu")
                    if index % 10 == 0:
                        device.gemm(a.clone(), device.pack(b), alpha=index)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertLess(least_growth(calls), 40 * CALLS)

    def test_devices_are_freed(self):
        def open_files():
            return len(list(Path("/proc/self/fd").iterdir()))

        def use_devices(count):
            for _ in range(count):
                with vkgemm.Device() as device:
                    device.pack(np.ones((512, 512), np.float16))
                    device.pack(np.ones((512, 512), np.float32))
        use_devices(1)
        files = open_files()
        self.assertLess(least_growth(use_devices, DEVICES), DEVICES * 256 * 1024)
        self.assertLessEqual(open_files(), files)
