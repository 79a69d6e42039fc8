"""Runs one ONNX model in ONNX Runtime and, compiled, on librt's backends, and compares all outputs."""
import json
import os
import subprocess
import tempfile

import numpy as np
import onnxruntime


class Different(Exception):
    pass


def as_arrays(value):
    """What ONNX Runtime gives as an array: a ZipMap's list of maps becomes a matrix."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return np.array([list(row.values()) for row in value], np.float32)
    return np.asarray(value)


def run_program(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        text = (done.stdout + done.stderr).strip().splitlines()
        raise Different(f"{os.path.basename(arguments[0])} ended with {done.returncode}: " + " | ".join(text[-4:]))
    return done.stdout + done.stderr


def string_lists(model):
    """Names of classes in the file, for outputs that are strings in ONNX."""
    lists = []
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name in ("classlabels_strings", "values_strings"):
                lists.append([text.decode() for text in attribute.strings])
    for tensor in model.graph.initializer:
        if tensor.data_type == 8:
            lists.append([text.decode() for text in tensor.string_data])
    return lists


def compare_output(name, got, want, lists, rtol, atol):
    if want.dtype.kind in "OUS":
        want = want.astype(str)
        texts = [np.array(names)[got].reshape(want.shape) for names in lists if got.size and got.max() < len(names)]
        if got.dtype != np.int64 or not any((text == want).all() for text in texts):
            raise Different(f"{name}: strings differ: {got.ravel()[:4]} for {want.ravel()[:4]}")
        return 0.0
    if got.shape != want.shape or got.dtype != want.dtype:
        raise Different(f"{name}: {got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}")
    if want.dtype.kind in "iub":
        if not (got == want).all():
            raise Different(f"{name}: {int((got != want).sum())} of {want.size} labels differ")
        return 0.0
    with np.errstate(invalid="ignore"):
        error = np.abs(got - want)
    error[(got == want) | (np.isnan(got) & np.isnan(want))] = 0
    if not (error <= atol + rtol * np.abs(np.nan_to_num(want))).all():
        worst = np.unravel_index(np.nanargmax(np.where(np.isnan(error), np.inf, error)), error.shape)
        raise Different(f"{name}: {got[worst]} for {want[worst]} at {list(map(int, worst))}")
    return float(error.max()) if error.size else 0.0


def compare(model, inputs, build, backends, rtol=1e-4, atol=1e-5):
    """inputs: a list of {name: array}, one for each batch size. Returns the largest error and what was warned."""
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in reference.get_outputs()]
    lists = string_lists(model)
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = os.path.join(folder, "m.onnx"), os.path.join(folder, "m.rt")
        with open(source, "wb") as file:
            file.write(model.SerializeToString())
        told = run_program([f"{build}/bin/rtconvert", source, "-o", compiled])
        for feed in inputs:
            wanted = dict(zip(names, map(as_arrays, reference.run(names, feed))))
            for backend in backends:
                arguments = [f"{build}/bin/rtrun", compiled, "--backend", backend, "--quiet"]
                for name, array in feed.items():
                    np.save(os.path.join(folder, f"in_{name}.npy"), array)
                    arguments += ["--input", f"{name}={folder}/in_{name}.npy"]
                for i, name in enumerate(names):
                    arguments += ["--save", f"{name}={folder}/out_{i}.npy"]
                run_program(arguments)
                rows = next(iter(feed.values())).shape[0]
                for i, name in enumerate(names):
                    got = np.load(f"{folder}/out_{i}.npy")
                    worst = max(worst, compare_output(f"{backend}, {rows} rows, {name}", got, wanted[name], lists, rtol, atol))
    return worst, told
