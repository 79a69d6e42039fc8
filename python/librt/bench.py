"""`python -m librt.bench`: rtbench, the benchmark of librt, as the package has it.

    python -m librt.bench model.rt --backend all --batch 1,8,32
    python -m librt.bench study model.rt --budget 5min --html report.html
    python -m librt.bench --help

`python -m librt.bench --call model.rt` instead times what a call from Python costs: a session's call with NumPy
arrays beside the same run in the program, which has no Python in it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

from . import Session, load
from ._programs import path_of, run


def _inputs(session: Session, batch: int) -> dict[str, Any]:
    """Random arrays of the declared shapes; dynamic dimensions become `batch`."""
    import numpy

    from ._arrays import _numpy_dtype

    random = numpy.random.default_rng(1)
    arrays = {}
    for name, spec in session.inputs.items():
        shape = [extent if isinstance(extent, int) else batch for extent in spec.shape]
        dtype = _numpy_dtype(spec.dtype)
        arrays[name] = random.standard_normal(shape).astype(dtype) if dtype.kind == "f" else numpy.ones(shape, dtype)
    return arrays


def time_call(call: Any, seconds: float = 1.0) -> float:
    """Median seconds of a call, of rounds that fill `seconds`, after a tenth of that to warm up."""
    end = time.perf_counter() + seconds / 10
    count = 0
    while time.perf_counter() < end or count == 0:
        call()
        count += 1
    inner = max(1, count // 20)  # calls of a round: much longer than reading the clock
    rounds = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(rounds) < 3:
        start = time.perf_counter()
        for _ in range(inner):
            call()
        rounds.append((time.perf_counter() - start) / inner)
    rounds.sort()
    return rounds[len(rounds) // 2]


def _program_seconds(path: str, backend: str, batch: int, threads: int) -> float:
    command = [path_of("rtbench"), path, "--backend", backend, "--batch", str(batch), "--json"]
    if threads > 0:
        command += ["--threads", str(threads)]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return float(report["measurements"][0]["median_ms"]) / 1000


def main(arguments: list[str] | None = None) -> int:
    """What the command line asks for; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if "--call" not in arguments:
        run("rtbench", arguments)
    parser = argparse.ArgumentParser(prog="python -m librt.bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--call", metavar="MODEL", required=True, help="the compiled model to call")
    parser.add_argument("--backend", default="cpu", help="default: cpu")
    parser.add_argument("--batch", type=int, default=1, help="extent of dynamic dimensions; default: 1")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: as many as allowed")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to measure")
    options = parser.parse_args(arguments)
    session = Session(load(options.call), backend=options.backend, threads=options.threads)
    inputs = _inputs(session, options.batch)
    python = time_call(lambda: session.run(inputs), options.seconds)
    program = _program_seconds(options.call, session.device.backend, options.batch, options.threads)
    print(f"session.run from Python  {python * 1e6:10.2f} us")
    print(f"the same run in rtbench  {program * 1e6:10.2f} us")
    print(f"the call itself          {(python - program) * 1e6:10.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
