"""The examples in docstrings are run: every public name has one. The README's is run, too."""

import doctest
import inspect
import unittest
from pathlib import Path

import numpy as np
from reference import OnDevice

import vkgemm

try:
    import torch
    from host_peer import connect
except ImportError:
    torch = connect = None

try:
    from vkgemm import operators
except ImportError:
    operators = None

_SHARED = ("empty", "shared")  # examples that need torch


def public(owner):
    """The public functions, classes and members of a module or class."""
    names = getattr(owner, "__all__", None) or vars(owner) | vars(getattr(owner, "__base__", owner))
    for name in names:
        value = inspect.getattr_static(owner, name)
        if not name.startswith("_") and (callable(value) or isinstance(value, property)):
            yield name, value


class Examples(OnDevice):
    def run_examples(self, name, value):
        names = {"np": np, "vkgemm": vkgemm, "device": self.device, "torch": torch}
        tests = doctest.DocTestFinder(recurse=False).find(value, name, globs=names)
        self.assertTrue(any(test.examples for test in tests), f"{name} has no example")
        said = []
        for test in tests:
            doctest.DocTestRunner().run(test, out=said.append)
        self.assertEqual("".join(said), "")

    def test_every_public_name(self):
        if torch is not None and self.device._tensors is None:
            connect(self.device)
        found = dict(public(vkgemm))
        for kind in (vkgemm.Device, vkgemm.Codes, vkgemm.PackedMatrix):
            found |= {f"{kind.__name__}.{name}": value for name, value in public(kind)}
        for name, value in found.items():
            if torch is None and name.endswith(_SHARED):
                continue
            with self.subTest(name=name):
                self.run_examples(name, value)
        self.assertGreater(len(found), 25)

    @unittest.skipIf(operators is None, "torch has no custom operators")
    def test_operators(self):
        if self.device._tensors is None:
            connect(self.device)
        for name in ("use", "gemm", "gated", "grouped", "row_reduction", "quantise_rows"):
            with self.subTest(name=name):
                self.run_examples(name, getattr(operators, name))

    def test_readme(self):
        page = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
        code = page.split("```python\n")[1].split("```")[0]
        a, b, bias = (np.ones(shape, np.float16) for shape in ((3, 4), (4, 5), (5,)))
        names = {"vkgemm": vkgemm, "a": a, "b": b, "bias": bias.astype(np.float32)}
        exec(code, names)
        self.assertEqual(names["d"].tolist(), [[5.0] * 5] * 3)  # gelu(4 + 1) in f16

    def test_signatures_are_kept(self):
        self.assertIn("activation", inspect.signature(vkgemm.Device.gemm).parameters)
        self.assertIn("index", inspect.signature(vkgemm.Device).parameters)


del OnDevice

if __name__ == "__main__":
    unittest.main()
