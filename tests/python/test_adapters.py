"""The adapters in bench/ and the example of several GPUs, on the CPU."""

import importlib.util
import json
import os
import socket
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from launcher import PYTHON

ROOT = Path(__file__).parents[2]
GLOO = {"USE_LIBUV": "0"}  # Debian builds torch without libuv.

# TritonBench's decorator in short.  It keeps the names of an operator and of a method, which is to be
# found in the operator's class.
TRITON_OP = """
METHODS = []

def register_benchmark(operator_name=None, func_name=None):
    def decorator(function):
        name = operator_name or function.__module__.split("tritonbench.operators.")[1].split(".")[0]
        METHODS.append((name, func_name or function.__name__))
        return lambda self, *arguments: function(self, *arguments)
    return decorator
"""

OPERATOR = """
from adapters import tritonbench as methods
from tritonbench.utils.triton_op import register_benchmark

class Operator:
    @register_benchmark()
    def vkgemm_here(self, a, b, bias=None):
        return methods.gemm(self, a, b, bias)
"""


LOADER = """
def load_opbench_by_name(name):
    from importlib import import_module
    return import_module(f"tritonbench.operators.{name}.operator").Operator
"""


class InTritonBench(unittest.TestCase):
    """The two ways that tritonbench.py tells, with a package in TritonBench's place."""

    def test_methods_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "tritonbench"
            for file, text in (("__init__.py", ""), ("utils/__init__.py", ""),
                               ("utils/triton_op.py", TRITON_OP), ("operators/__init__.py", LOADER),
                               ("operators/gemm/__init__.py", ""),
                               ("operators/gemm/operator.py", OPERATOR)):
                (package / file).parent.mkdir(parents=True, exist_ok=True)
                (package / file).write_text(text)
            ended = subprocess.run([*PYTHON, "-c", f"""
import sys, textwrap
sys.path[:0] = [{str(ROOT / "bench")!r}, {folder!r}]
from types import SimpleNamespace
from adapters import tritonbench as methods
from tritonbench.operators.gemm.operator import Operator
from tritonbench.utils.triton_op import METHODS, register_benchmark
recipe = methods.__doc__.split("has there:\\n")[1].split("\\nIn an")[0]
exec(textwrap.dedent(recipe))
operator = Operator()
operator.vkgemm_device = SimpleNamespace(
    shared=lambda value: value, gemm=lambda a, b, bias: (a, b, bias))
assert METHODS == [("gemm", "vkgemm_here"), ("gemm", "vkgemm")], METHODS
for _, name in METHODS:
    assert getattr(operator, name)("a", "b", None)() == ("a", "b", None)
"""], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


@unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
class OnTheCpu(unittest.TestCase):
    def run_code(self, folder, code, *arguments, expect=0, cwd=None, env=None):
        code = f"import sys; sys.path.insert(0, {str(ROOT / folder)!r})\n{code}"
        ended = subprocess.run([*PYTHON, "-c", code, *arguments], capture_output=True, text=True,
                               cwd=cwd, env={**os.environ, **(env or {})})
        self.assertEqual(ended.returncode, expect, ended.stdout + ended.stderr)
        return ended.stdout

    def test_operators(self):
        with tempfile.TemporaryDirectory() as folder:
            plot = Path(folder) / "speed.svg"
            draw = ["--plot", str(plot)] if importlib.util.find_spec("matplotlib") else []
            output = self.run_code("bench/adapters", "import run; sys.exit(run.main())", "--cpu",
                                   *draw)
            if draw:
                self.assertIn("</svg>", plot.read_text())
        for method in ("gemm", "gemm_packed", "addmm_gelu", "grouped_persistent",
                       "matmul_l2_normalize", "swiglu", "geglu_erf", "grouped_gemm"):
            self.assertIn(f"| vkgemm, {method} |", output)
        self.assertIn("none of vkgemm wrong", output)

    def test_every_method_is_run(self):
        self.run_code("bench/adapters", """
import operators, tritonbench
methods = {method for methods in operators.METHODS.values() for method in methods}
public = {value for name, value in vars(tritonbench).items() if callable(value)
          and name[0] != "_" and name not in ("device_of", "ready")}
assert methods == public, methods ^ public
missing = operators.METHODS.keys() - {case.operator for case in operators.read("cases.txt")}
assert not missing, missing
""", cwd=ROOT / "bench/adapters")

    def test_leading_dimensions(self):
        with tempfile.TemporaryDirectory() as folder:
            output = self.run_code("bench/adapters", """
import run, operators
case, = (case for case in operators.read("cases.txt") if case.operator == "gemm_ld")
(a, b, d), _ = operators.build(case, "cpu")
assert [one.stride() for one in (a, b, d)] == [(503, 1), (604, 1), (505, 1)]
from pathlib import Path
Path(sys.argv[-1]).write_text("gemm_ld 50 51 52 f16 lda=53 ldb=64 ldd=55")
sys.exit(run.main())""", "--cpu", "--cases", str(Path(folder) / "cases.txt"),
                                   cwd=ROOT / "bench/adapters")
        self.assertIn("| gemm_ld 50×51×52 f16 lda=53 ldb=64 ldd=55 | vkgemm, gemm_ld |", output)
        self.assertIn("none of vkgemm wrong", output)

    def test_lists_of_groups(self):
        self.run_code("bench/adapters", """
import torch, operators, tritonbench
from types import SimpleNamespace
operator = SimpleNamespace(vkgemm_device=operators.Host())
a = [torch.randn(m, 8) for m in (3, 0, 5)]
b = [torch.randn(8, 4) for _ in a]
for b in (b, b[:1] * 3):
    d = tritonbench.grouped_gemm(operator, a, b)()
    torch.testing.assert_close(d, [one @ other for one, other in zip(a, b)])
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
    tensor_parallel_mlp.main()""", "--cpu", "--repeat", "2", env=GLOO)
        self.assertRegex(output, r"y differs by \d\.\de-0[5-9] \(\d\.\de-05 is allowed\)")
        self.assertRegex(output, r"\n\| 2 \|( \d+\.\d{3} \|){6}\n$")

    def test_tensor_parallel_mlp_by_torchrun(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
        code = "import tensor_parallel_mlp; tensor_parallel_mlp.main()"
        arguments = "--cpu", "--repeat", "1", "--parts", "2", "--json"
        with ThreadPoolExecutor() as pool:
            first, *others = pool.map(
                lambda rank: self.run_code("tests/examples", code, *arguments, env={
                    **GLOO, **where, "RANK": str(rank), "WORLD_SIZE": "3"}), range(3))
        row = json.loads(first)
        self.assertEqual((others, row["processes"], row["parts"]), (["", ""], 3, 2))
        self.assertLess(row["error"], row["allowed"])
        self.run_code("tests/examples", code, "--cpu", "--processes", "5", expect=2)
        self.run_code("tests/examples", code, "--cpu", "--parts", "49", expect=2)
        self.run_code("tests/examples", code, "--cpu", "--processes", "2",
                      env={"WORLD_SIZE": "3"}, expect=2)
