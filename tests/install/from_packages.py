"""from_packages.py PREFIX MODEL: the Python package as Debian's packages have it uses the librt and the programs under PREFIX."""

import os
import subprocess
import sys

import numpy

import librt

prefix, model = sys.argv[1:]
assert librt.__file__.startswith(prefix), librt.__file__
session = librt.Session(librt.load(model), backend="cpu")
image = numpy.random.default_rng(1).random((2, 28, 28, 1), dtype=numpy.float32)
(scores,) = session.run({"input": image}).values()
assert numpy.asarray(scores).shape == (2, 10)
with open("/proc/self/maps") as maps:
    loaded = {line.split()[-1] for line in maps if "/librt/" in line and ".so" in line}
assert any(os.path.basename(path).startswith("librt.so") for path in loaded), loaded
assert all(path.startswith(prefix) for path in loaded), loaded
shown = subprocess.run([sys.executable, "-m", "librt.bench", "--version"], check=True, capture_output=True, text=True)
assert shown.stdout.startswith("rtbench "), shown
