"""`python -m librt.bench`: rtbench, the benchmark of librt, as the package has it.

    python -m librt.bench model.rt --backend all --batch 1,8,32
    python -m librt.bench study model.rt --budget 5min --html report.html
    python -m librt.bench --help

`python -m librt.bench --call MODEL` instead times what a call from Python costs: a session's call with NumPy arrays
beside the same runs in C++ (inputs set, run, outputs read), and with --onnx FILE beside ONNX Runtime's call of the
same net, in turn.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from . import Session, errors, load
from ._programs import run

_ROUNDS = 20


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


def _repeated(call: Callable[[], Any]) -> Callable[[int], float]:
    def seconds_of(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - start

    return seconds_of


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def in_turn(ways: Mapping[str, Callable[[int], float]], seconds: float) -> dict[str, list[float]]:
    """Seconds of a call in each round, for each way: a function from a number of calls to their seconds.

    Rounds of all ways alternate, so that what else the machine does meets all of them.
    """
    counts = {}
    for name, way in ways.items():
        count = 1
        while way(count) < seconds / _ROUNDS / 2:  # also warms up
            count *= 2
        counts[name] = count
    rounds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_ROUNDS):
        for name, way in ways.items():
            rounds[name].append(way(counts[name]) / counts[name])
    return rounds


def _onnx_runtime(path: str, threads: int, inputs: Mapping[str, Any]) -> Callable[[], Any]:
    """Its call with the arrays of librt's, which must fit by position."""
    try:
        import onnxruntime
    except ImportError:
        raise ImportError("--onnx needs ONNX Runtime: pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    if len(names) != len(inputs):
        raise errors.InvalidArgument(f"{path}: expected {len(inputs)} inputs as in the compiled model, found {names}")
    arrays = dict(zip(names, inputs.values()))
    session.run(None, arrays)
    return lambda: session.run(None, arrays)


def compare_calls(model: str, *, backend: str = "cpu", batch: int = 1, threads: int = 0, seconds: float = 1.0,
                  onnx: str | None = None) -> dict[str, list[float]]:
    """Seconds of a call in each of 20 rounds: "librt from Python", "librt from C++", "ONNX Runtime from Python".

    seconds: to measure each of them.
    """
    if batch < 0 or not seconds > 0:
        raise errors.InvalidArgument(f"expected a batch from 0 and seconds above 0, found {batch} and {seconds}")
    session = Session(load(model), backend=backend, threads=threads)
    inputs = _inputs(session, batch)
    session.run(inputs)
    ways = {
        "librt from Python": _repeated(lambda: session.run(inputs)),
        "librt from C++": lambda count: session._time_runs(inputs, count),
    }
    if onnx is not None:
        ways["ONNX Runtime from Python"] = _repeated(_onnx_runtime(onnx, threads, inputs))
    return in_turn(ways, seconds)


def main(arguments: list[str] | None = None) -> int:
    """What the command line asks for; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not any(each.split("=")[0] == "--call" for each in arguments):
        run("rtbench", arguments)
    parser = argparse.ArgumentParser(prog="python -m librt.bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--call", metavar="MODEL", required=True, help="the compiled model to call")
    parser.add_argument("--onnx", metavar="FILE", help="the same net for ONNX Runtime, where it is installed")
    parser.add_argument("--backend", default="cpu", help="default: cpu")
    parser.add_argument("--batch", type=int, default=1, help="extent of dynamic dimensions; default: 1")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: as many as allowed")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to measure each; default: 1")
    options = parser.parse_args(arguments)
    try:
        rounds = compare_calls(options.call, backend=options.backend, batch=options.batch, threads=options.threads,
                               seconds=options.seconds, onnx=options.onnx)
    except (errors.Error, ImportError) as error:
        print(f"librt.bench: {error}", file=sys.stderr)
        return 3 if isinstance(error, errors.DeviceError) else 2
    base = rounds["librt from C++"]
    for name, row in rounds.items():
        ratio = _median([one / other for one, other in zip(row, base)])
        print(f"{name:<25} {_median(row) * 1e6:10.2f} us {ratio:8.2f}")
    print("(medians of rounds in turn; the last column is the ratio to librt from C++)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
