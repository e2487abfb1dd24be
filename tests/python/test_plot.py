"""bench/plot.py, on rows that are written here and on the results that are there."""

import contextlib
import importlib.util
import io
import json
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "bench"))
if not importlib.util.find_spec("matplotlib"):
    print("skipped: matplotlib is not installed (Debian: python3-matplotlib)")
    sys.exit(77)

import plot

ROW = {"device": "a <\"GPU\"> & $x$", "driver": "d 1", "commit": "abc1234", "m": 64, "n": 64,
       "k": 64, "type": "f16", "epilogue": "plain", "config": "khr:x", "median_ms": 1.0,
       "tflops": 2.0, "bytes": 1e6, "ceiling_tflops": 8.0, "bandwidth_gbs": 4000.0,
       "relative_error": 1e-4, "verified": True}


def loss(list_, label, choice, best=10.0):
    return {"problem": f"--m {label}", "list": list_, "label": label, "device": "card",
            "built_in": {"config": "a", "us": choice}, "best": {"config": "b", "us": best}}


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_on(self, text, *arguments, out="x.svg"):
        file = self.folder / "rows.jsonl"
        file.write_text(text if isinstance(text, str) else "\n".join(map(json.dumps, text)))
        printed, out = io.StringIO(), str(self.folder / out)
        with contextlib.redirect_stdout(printed):
            plot.main([str(file), *arguments, "--out", out])
        self.assertEqual(printed.getvalue(), f"wrote {out}\n")
        return Path(out)

    def texts(self, *arguments):
        """The texts of the drawing, which is well-formed."""
        root = xml.etree.ElementTree.parse(self.run_on(*arguments)).getroot()
        return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]

    def refused(self, message, *arguments, **options):
        with self.assertRaises(SystemExit) as ended:
            self.run_on(*arguments, **options)
        self.assertRegex(str(ended.exception.code), message)

    def test_bars(self):
        rows = [ROW, {**ROW, "median_ms": 2.0, "tflops": 1.0},  # slower, of the same case
                {**ROW, "m": 32, "packed": "b"}, {**ROW, "epilogue": "geglu_erf", "tflops": 4.0},
                {**ROW, "m": 16, "verified": False}, {**ROW, "m": 8, "error": "no memory"}]
        texts = self.texts(rows)
        for text in ("64³ f16", "32×64×64 f16, packed b", "64³ f16, geglu_erf", "dense", "gated",
                     "fraction of the ceiling", "0.500",
                     "a <\"GPU\"> & $x$, d 1; vkgemm abc1234"):
            self.assertIn(text, texts)
        self.assertEqual(texts.count("0.250"), 2)
        self.assertFalse([text for text in texts
                          for absent in ("16×", "8×", "grouped", "peer") if absent in text])

    def test_bars_beside_peers(self):
        peer = {"peer": "cublas", "peer_ms": 0.5, "peer_driver": "CUDA 13"}
        texts = self.texts([{**ROW, **peer}, {**ROW, "m": 32}])
        for text in ("0.50×", "cublas", "peer: CUDA 13", "speed relative to the peer"):
            self.assertIn(text, texts)
        self.assertFalse([text for text in texts if "hollow" in text])
        texts = self.texts([{**ROW, "median_ms": 0.01, **peer, "peer_ms": 0.02}])
        self.assertIn("2.00×", texts)
        self.assertTrue([text for text in texts if "hollow" in text])

    def test_roofline(self):
        """The roof is that of the matrices alone: rows of path fma have a ceiling of their own."""
        rows = [ROW, {**ROW, "m": 32, "type": "bf16"},
                {**ROW, "m": 8, "config": "fma:x", "ceiling_tflops": 9.0}]
        texts = self.texts(rows, "--kind", "roofline")
        for text in ("8 TFLOP/s: f16 matrices from registers", "memory 4 TB/s", "TFLOP/s", "f16",
                     "bf16", "dense"):
            self.assertIn(text, texts)
        self.assertFalse({"f32", "s8", "gated"} & set(texts))

    def test_loss(self):
        texts = self.texts([{"event": "start"}, loss("dense", "8x8x8 f16", 11.0),
                            loss("dense", "9x8x8 f16", 10.0), loss("dense", "7x8x8", 0.0),
                            loss("gated", "8x8x8", 20.0), loss("gated", "8x8x8", 10.0)])
        for text in ("dense: 2 problems, geometric mean 1.049, worst 1.100, 1 not compared",
                     "gated: 1 problem, geometric mean 1.000, worst 1.000", "8x8x8 f16"):
            self.assertIn(text, texts)
        self.assertFalse([text for text in texts if "triangle" in text])
        texts = self.texts([loss("dense", "8x8x8 f16", 900.0)])  # one point, beyond the axis
        self.assertIn("dense: 1 problem, geometric mean 90.000, worst 90.000", texts)
        self.assertIn("triangle: a loss above 4", texts)

    def test_scaling(self):
        row = {"device": "card", "driver": "d 1", "ms": 15.0, "alone_ms": 30.0, "torch_ms": 10.0,
               "torch_alone_ms": 19.0}
        texts = self.texts([{**row, "processes": 2}, {**row, "processes": 4, "ms": 8.0},
                            {**row, "processes": 2, "parts": 2, "ms": 20.0}])
        for text in ("GPUs", "vkgemm: 3.75 at 4", "torch: 1.90 at 4",
                     "vkgemm, rows in 2 parts: 1.50 at 2", "card, d 1; vkgemm ?"):
            self.assertIn(text, texts)
        self.refused(r"rows\.jsonl:1: ms is missing", [{"processes": 2}])
        self.refused("nothing to draw: no row has processes", [{**row, "processes": 0}])

    def test_the_same_rows_give_the_same_file(self):
        first = self.run_on([ROW], out="first.svg").read_bytes()
        self.assertEqual(first, self.run_on([ROW], out="second.svg").read_bytes())
        self.assertTrue(self.run_on([ROW], out="x.png").read_bytes().startswith(b"\x89PNG"))

    def test_nothing_to_draw(self):
        rows = [{**ROW, "error": "no memory"}]
        self.refused("nothing to draw: no row has a time, and a ceiling or a peer", rows)
        self.refused("nothing to draw: no row has a time and bytes", rows, "--kind", "roofline")
        self.refused("nothing to draw: no row has the times", [loss("dense", "8", 0.0)])
        self.refused("nothing to draw", "")

    def test_refusals_name_file_line_and_field(self):
        without_k = {name: value for name, value in ROW.items() if name != "k"}
        for message, text in (
                (r"rows\.jsonl:3: not JSON", "\n\n{\"m\":"),
                (r"rows\.jsonl:1: \[1\] is not an object", "[1]"),
                (r"rows\.jsonl:2: k is missing", [ROW, without_k]),
                (r"rows\.jsonl:1: m is -1, not a size", [{**ROW, "m": -1}]),
                (r"rows\.jsonl:1: m is true, not a size", [{**ROW, "m": True}]),
                (r"rows\.jsonl:1: type is null, not a string", [{**ROW, "type": None}]),
                (r"rows\.jsonl:1: median_ms is NaN, not a finite number of at least 0",
                 [{**ROW, "median_ms": float("nan")}]),
                (r"rows\.jsonl:1: best is 3, not an object", [{"problem": "--m 1", "best": 3}]),
                (r"rows\.jsonl:1: best: us is -1, not a finite number",
                 [{"problem": "--m 1", "best": {"us": -1}}])):
            self.refused(message, text)
        self.refused("'.*x.gif' is no name of a plot", [ROW], out="x.gif")
        self.refused("none/x.svg cannot be written: No such file", [ROW], out="none/x.svg")
        with self.assertRaises(SystemExit) as ended:
            plot.main(["none.jsonl", "--out", "x.svg"])
        self.assertIn("none.jsonl cannot be read: No such file", ended.exception.code)

    def test_stored_results(self):
        results = ROOT / "bench/results"
        for file, kind in (("h200-2026-11-24-packed", "bars"), ("h200-2026-11-24-in-rows", "roofline")):
            self.assertTrue(self.texts((results / f"{file}.jsonl").read_text(), "--kind", kind))

    def test_names_are_those_of_the_library(self):
        """Families of rows follow from the names of gates and of row operations."""
        for names, file, expression in (
                (plot.ROW_OPS, "row_op.hpp", "row_ops\\[\\].*?};"),
                (plot.GATES, "enumerators.hpp", "enumerator_names<Gate> .*?;")):
            text = re.search(expression, (ROOT / "src/problem" / file).read_text(), re.DOTALL)[0]
            self.assertEqual(names, set(re.findall('"(\\w+)"', text)))


if __name__ == "__main__":
    unittest.main()
