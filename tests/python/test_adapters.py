"""The adapters in bench/ and the example of several GPUs, on the CPU."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]

# What Python is to be started with, so that it finds the same Vulkan.
PYTHON = [*os.environ.get("VKGEMM_LAUNCHER", "").split(), sys.executable]


@unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
class OnTheCpu(unittest.TestCase):
    def run_code(self, folder, code, *arguments, expect=0):
        code = f"import sys; sys.path.insert(0, {str(ROOT / folder)!r})\n{code}"
        ended = subprocess.run([*PYTHON, "-c", code, *arguments], capture_output=True, text=True)
        self.assertEqual(ended.returncode, expect, ended.stdout + ended.stderr)
        return ended.stdout

    def test_operators(self):
        with tempfile.TemporaryDirectory() as folder:
            plot = Path(folder) / "speed.svg"
            output = self.run_code("bench/adapters", "import run; sys.exit(run.main())", "--cpu",
                                   "--plot", str(plot))
            self.assertIn("</svg>", plot.read_text())
        for method in ("gemm", "gemm_packed", "addmm_gelu", "grouped_persistent",
                       "matmul_l2_normalize", "swiglu", "geglu_erf"):
            self.assertIn(f"| vkgemm, {method} |", output)
        self.assertIn("none of vkgemm wrong", output)

    def test_lists_of_groups(self):
        self.run_code("bench/adapters", """
import torch, operators, tritonbench
from types import SimpleNamespace
operator = SimpleNamespace(vkgemm_device=operators.Host())
a = [torch.randn(m, 8) for m in (3, 0, 5)]
b = [torch.randn(8, 4) for _ in a]
results = tritonbench.grouped_gemm(operator, a, b)()
assert len(results) == 3
for d, one, other in zip(results, a, b):
    torch.testing.assert_close(d, one @ other)
""")

    def test_a_wrong_result_is_seen(self):
        output = self.run_code("bench/adapters", """
import run, operators
def wrong(operator, a, b): return lambda: a @ b * 1.02
operators.METHODS["gemm"] = [wrong]
sys.exit(run.main())""", "--cpu", "--only", "gemm", expect=1)
        self.assertRegex(output, r"rows, \d+ of vkgemm wrong")

    def test_tensor_parallel_mlp(self):
        with tempfile.TemporaryDirectory() as folder:
            python = Path(folder) / "python"  # what multiprocessing starts its processes with
            python.write_text(f'#!/bin/sh\nexec {" ".join(PYTHON)} "$@"\n')
            python.chmod(0o755)
            output = self.run_code("tests/examples", f"""
import multiprocessing, tensor_parallel_mlp
multiprocessing.set_executable({str(python)!r})
if __name__ == "__main__":
    tensor_parallel_mlp.main()""", "--cpu", "--repeat", "2")
        self.assertRegex(output, r"2 processes .* ms, one .* ms, .* differ by \d\.\de-0[5-9]")
