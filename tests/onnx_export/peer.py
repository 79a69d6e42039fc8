#!/usr/bin/env python3
"""peer.py FOLDER [NAME..]: runs each FOLDER/NAME/model.onnx on its input_I.pb in ONNX Runtime and compares with output_I.pb.

The folders are written by onnx_export --write. FOLDER/NAME/tolerance has a relative and an absolute one. Where ONNX Runtime has
no kernel for an operator in a type, the case is counted apart; whatever else it refuses or computes differently fails.
Skips with exit code 77 where onnxruntime is not installed.
"""
import fnmatch
import json
import os
import sys
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import numpy_helper
except ImportError as error:
    print(f"SKIPPED: {error}; name a Python that has onnxruntime and onnx with -DRT_PEER_PYTHON=PYTHON")
    sys.exit(77)

# Where ONNX Runtime's own results are known to be others: name (or its beginning with *), reason.
OTHERWISE = {
    "grid_sample_2d_cubic_border*": "it clamps the coordinate, not the neighbours that the cubic reads",
    "*_lengths": "the last state of an empty sequence is 0, not the initial one",
    "*_without_rows": "it ends the process for an empty batch",
    "*_without_steps": "the last state of no steps is 0, not the initial one",
    "lstm_clip": "with peepholes and a bound its results are others; those of gru_clip and rnn_clip are equal",
    "narrow_float_5": "an overflow without saturation is NaN in float8e5m2, not infinity",
    "non_zero_scalar": "a scalar has one position of one index, not of none",
    "quantize_by_zero": "NaN becomes the smallest value",
    "quantize_corners": "NaN becomes the smallest value",
    "resize_crop_nearest": "of what is outside of the image it fills a part",
    "resize_crop_outside": "of what is outside of the image it fills a part",
    "roi_align_huge*": "regions of huge extents are out of memory",
    "tensor_scatter_*": "positions below 0 are refused",
    "unique_f32": "all NaN are one value",
}


def load(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # activations stay f32
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def difference(found, expected, relative, absolute):
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"is {found.dtype}{list(found.shape)}, expected {expected.dtype}{list(expected.shape)}"
    a, b = found.astype(np.float64), expected.astype(np.float64)
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= absolute + relative * np.abs(b)
    wrong = np.argwhere(~(equal | near))
    if len(wrong) == 0:
        return ""
    at = tuple(wrong[0])
    return f"{len(wrong)} of {a.size} elements differ, the first at {list(map(int, at))}: {a[at]}, expected {b[at]}"


# What ONNX Runtime says where it has no kernel for an operator in a type or rank, and Python's interface to it of bfloat16.
NO_KERNEL = (
    "NOT_IMPLEMENTED", "is not a registered function/op", "Numpy_type 256 can't be converted", "No corresponding Numpy type",
    "Only 4-D or 5-D tensor is supported", "Only support GridSample Cubic mode in 4-D",
    "'Cubic' mode only supports",
)


def check(folder):
    """"": equal; else what is wrong, and whether it is for lack of a kernel."""
    relative, absolute = map(float, (folder / "tolerance").read_text().split())
    try:
        engine = session(folder / "model.onnx")
        feeds = {x.name: load(folder / f"input_{i}.pb") for i, x in enumerate(engine.get_inputs())}
        results = engine.run(None, feeds)
    except Exception as error:  # onnxruntime's own classes have no common base
        message = str(error).replace("\n", " ")
        return message[:900], any(words in message for words in NO_KERNEL)
    for i, found in enumerate(results):
        problem = difference(np.asarray(found), load(folder / f"output_{i}.pb"), relative, absolute)
        if problem:
            return f"output {i}: {problem}", False
    return "", False


def check_apart(folder):
    """check() in a process of its own: some models end ONNX Runtime's."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        problem, no_kernel = check(folder)
        os.write(writing, json.dumps([problem, no_kernel]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        return f"ONNX Runtime's process ended with status {status}", False
    return tuple(json.loads(answer))


def main():
    root = Path(sys.argv[1])
    names = sys.argv[2:] or sorted(path.parent.name for path in root.glob("*/model.onnx"))
    equal, missing, otherwise, failed = 0, [], 0, 0
    for name in names:
        problem, no_kernel = check_apart(root / name)
        if not problem:
            equal += 1
        elif no_kernel:
            missing.append(name)
        elif any(fnmatch.fnmatch(name, pattern) for pattern in OTHERWISE):
            otherwise += 1
        else:
            failed += 1
            print(f"FAILED {name}: {problem}")
    print(f"{equal} cases are equal in ONNX Runtime {onnxruntime.__version__}, it has no kernel for {len(missing)},"
          f" computes {otherwise} otherwise by its rules, {failed} failed")
    print("no kernel: " + " ".join(missing))
    return 1 if failed or not equal else 0


if __name__ == "__main__":
    sys.exit(main())
