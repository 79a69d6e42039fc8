"""`python -m librt.bench`: rtbench by the package, and what a call from Python costs."""

import re
import subprocess
import sys
import unittest

from support import DIGITS, main, scratch

import librt
from librt import bench
from librt._programs import path_of

try:
    import onnxruntime
except ImportError:
    onnxruntime = None


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "librt.bench", *arguments], capture_output=True, text=True)


class Bench(unittest.TestCase):
    def test_is_rtbench(self):
        out = command("--devices")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertRegex(out.stdout, r"(?m)^cpu +0")
        self.assertIn("rtbench study", command("--help").stdout)
        self.assertEqual(command("missing.rt", "--backend", "cpu").returncode, 2)
        out = command(DIGITS, "--backend", "cpu", "--batch", "1", "--json")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn('"median_ms"', out.stdout)

    def test_calls(self):
        out = command("--call", DIGITS, "--seconds", "0.2", "--threads", "1")
        self.assertEqual(out.returncode, 0, out.stderr)
        rows = re.findall(r"(?m)^(librt from \S+) +([0-9.]+) us +([0-9.]+)$", out.stdout)
        self.assertEqual([name for name, _, _ in rows], ["librt from Python", "librt from C++"])
        python, native = (float(time) for _, time, _ in rows)
        self.assertGreater(native, 1)
        self.assertLess(native, 20 * python)
        self.assertEqual(rows[1][2], "1.00")

    def test_errors(self):
        for arguments, code, text in ((["--call", "missing.rt"], 2, "missing.rt"),
                                      (["--call", DIGITS, "--backend", "abacus"], 2, "abacus"),
                                      (["--call", DIGITS, "--batch", "-1"], 2, "found -1"),
                                      (["--call", DIGITS, "--seconds", "nan"], 2, "found 1 and nan"),
                                      (["--call"], 2, "expected one argument")):
            out = command(*arguments)
            self.assertEqual(out.returncode, code, out.stderr)
            self.assertIn(text, out.stderr)
            self.assertNotIn("Traceback", out.stderr)

    def test_rounds_in_turn(self):
        order = []

        def way(name, seconds):
            return lambda count: order.append(name) or seconds * count

        rounds = bench.in_turn({"slow": way("slow", 4.0), "fast": way("fast", 1.0)}, seconds=1.0)
        self.assertEqual((rounds["slow"], rounds["fast"]), ([4.0] * 20, [1.0] * 20))
        self.assertEqual(order[-4:], ["slow", "fast", "slow", "fast"])

    @unittest.skipIf(onnxruntime is None, "ONNX Runtime is not installed")
    def test_onnx_runtime(self):
        model = librt.convert("zoo:mlp", scratch("mlp.rt"))
        subprocess.run([path_of("rtconvert"), "zoo:mlp", "-o", scratch("mlp.onnx")], check=True, capture_output=True)
        out = command("--call", model.path, "--onnx", scratch("mlp.onnx"), "--seconds", "0.2", "--threads", "1")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertRegex(out.stdout, r"(?m)^ONNX Runtime from Python +[0-9.]+ us")


if __name__ == "__main__":
    main()
