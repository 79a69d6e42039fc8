"""The code of docs/python.md and README.md, and the notebook of examples/, as they stand there, with their output."""

import contextlib
import io
import json
import os
import re
import shutil
import unittest

from support import ROOT, main, scratch

try:
    import onnx
    import torch
except ImportError:
    torch = None

FRACTION = re.compile(r"-?\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)")
TORCH = "<!-- needs torch -->"


def blocks(path):
    """(line, code, expected output or None, whether it needs PyTorch) of the ```python blocks of a document."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    found = []
    for match in re.finditer(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", text, re.M | re.S):
        line = text.count("\n", 0, match.start()) + 2
        found.append((line, match[1], match[2], text[: match.start()].rstrip().endswith(TORCH)))
    return found


def comparable(line):
    return " ".join(FRACTION.sub("N", line).split())


class Documents(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self.id())
        os.mkdir(self.folder)
        for name in ("digits.rt", "digit.pgm", "custom.onnx"):
            shutil.copy(os.path.join(ROOT, "examples", name), self.folder)
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)

    def execute(self, code, name, first_line, names):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            # Line numbers of the document in a traceback.
            exec(compile("\n" * (first_line - 1) + code, name, "exec"), names)
        return out.getvalue()

    def compare(self, out, expected, where):
        """Every line of `expected` occurs in the output, in this order; fractions may differ, `...` stands for the rest."""
        lines = iter(out.splitlines())
        for wanted in expected.splitlines():
            if wanted == "...":
                continue
            want, is_start = comparable(wanted.removesuffix("...")), wanted.endswith("...")
            for line in lines:
                got = comparable(line)
                if got == want or is_start and got.startswith(want):
                    break
            else:
                self.fail(f"{where}: the line {wanted!r} is not in the output, or not after the line above:\n{out}")

    def run_document(self, path, least):
        names, ran = {"__name__": "guide"}, 0
        for line, code, expected, needs_torch in blocks(path):
            if needs_torch and torch is None:
                print(f"{path}:{line}: left out: PyTorch or onnx is not installed")
                continue
            out = self.execute(code, path, line, names)
            ran += 1
            self.compare(out, expected or "", f"{path}:{line}")
            self.assertEqual(bool(out), bool(expected), f"{path}:{line} prints {out!r}")
        self.assertGreaterEqual(ran, least)

    def test_guide(self):
        self.run_document("docs/python.md", 8)

    def test_readme(self):
        self.run_document("README.md", 1)

    def test_notebook(self):
        """Its cells in order, in one namespace, without Jupyter: they are plain Python, and what they print is stored."""
        path = "examples/digits.ipynb"
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            notebook = json.load(file)
        self.assertEqual(notebook["nbformat"], 4)
        self.assertEqual(notebook["metadata"]["kernelspec"]["name"], "python3")
        names, ran = {"__name__": "notebook"}, 0
        for number, cell in enumerate(notebook["cells"]):
            self.assertEqual(len({other["id"] for other in notebook["cells"]}), len(notebook["cells"]))
            if cell["cell_type"] != "code":
                continue
            code = "".join(cell["source"])
            self.assertNotRegex(code, r"(?m)^\s*[%!]", "magics need Jupyter")
            self.assertTrue(all(output["output_type"] == "stream" for output in cell["outputs"]), cell["outputs"])
            stored = "".join("".join(output["text"]) for output in cell["outputs"])
            out = self.execute(code, f"{path}, cell {number}", 1, names)
            self.assertEqual([comparable(line) for line in out.splitlines()],
                             [comparable(line) for line in stored.splitlines()], f"cell {number}")
            ran += 1
        self.assertGreater(ran, 5)


if __name__ == "__main__":
    main()
