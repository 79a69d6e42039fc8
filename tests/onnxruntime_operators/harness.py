"""Runs one-node models, and whole ones, in ONNX Runtime and in rtconvert + rtrun, and compares the results."""
import os
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ONNX_TYPE = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16,
             np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64,
             np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
             np.dtype(np.bool_): TensorProto.BOOL, np.dtype(np.float64): TensorProto.DOUBLE,
             np.dtype(np.int16): TensorProto.INT16, np.dtype(np.uint16): TensorProto.UINT16}


class Case:
    """One node. inputs: arrays, None for absent ones. constants: which of them are initializers. symbols: names
    of extents, for a second model with open dimensions. atol: largest difference."""

    def __init__(self, op, inputs, outputs=1, constants=(), symbols=None, atol=2e-5, rtol=1e-4, domain="com.microsoft",
                 name="", skip_outputs=(), opset=17, valid=None, typed=False, **attributes):
        self.op, self.inputs, self.outputs, self.constants = op, inputs, outputs, set(constants)
        self.symbols, self.atol, self.rtol, self.domain, self.name = symbols, atol, rtol, domain, name
        self.attributes, self.skip_outputs, self.opset = attributes, set(skip_outputs), opset
        self.valid, self.typed = valid, typed  # valid: (output, filter): sets what is unspecified to the same

    def title(self):
        shown = {k: v for k, v in self.attributes.items()}
        shapes = [None if x is None else "x".join(map(str, x.shape)) + ":" + x.dtype.name for x in self.inputs]
        return f"{self.op} {self.name} {shown} {shapes}"

    def model(self, opened):
        names = ["" if x is None else f"i{k}" for k, x in enumerate(self.inputs)]
        while names and not names[-1]:
            names.pop()
        results = ["" if k in self.skip_outputs else f"o{k}" for k in range(self.outputs)]
        node = helper.make_node(self.op, names, results, domain=self.domain, **self.attributes)
        values, initializers = [], []
        for k, x in enumerate(self.inputs):
            if x is None:
                continue
            if k in self.constants:
                initializers.append(numpy_helper.from_array(x, f"i{k}"))
                continue
            shape = [self.symbols.get(n, n) if opened else n for n in x.shape]
            values.append(helper.make_tensor_value_info(f"i{k}", ONNX_TYPE[x.dtype], shape))
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) if self.typed else
                helper.make_empty_tensor_value_info(name) for name in results if name]
        graph = helper.make_graph([node], "case", values, ends, initializers)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=9)

    def feeds(self):
        return {f"i{k}": x for k, x in enumerate(self.inputs) if x is not None and k not in self.constants}


class Failure(Exception):
    pass


def session(path_or_bytes, optimize=False):
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimize else level.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path_or_bytes, options, providers=["CPUExecutionProvider"])


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def compare(binaries, model, feeds, expected, backend, atol, rtol, convert=(), valid=None):
    """model: path of an ONNX file; expected: arrays by output name. Raises Failure with what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = os.path.join(folder, "model.rt")
        code, text = run([os.path.join(binaries, "rtconvert"), model, "-o", compiled, *convert])
        if code != 0:
            raise Failure("rtconvert: " + text)
        command = [os.path.join(binaries, "rtrun"), compiled, "--backend", backend, "--quiet"]
        for name, x in feeds.items():
            path = os.path.join(folder, f"in_{len(command)}.npy")
            np.save(path, np.ascontiguousarray(x).reshape(x.shape))
            command += ["--input", f"{name}={path}"]
        saved = {}
        for name in expected:
            saved[name] = os.path.join(folder, f"out_{len(saved)}.npy")
            command += ["--save", f"{name}={saved[name]}"]
        code, text = run(command)
        if code != 0:
            raise Failure("rtrun: " + text)
        for name, want in expected.items():
            found = np.load(saved[name])
            if found.shape != want.shape or found.dtype != want.dtype:
                raise Failure(f"{name}: expected {want.dtype}{want.shape}, found {found.dtype}{found.shape}")
            if valid is not None:
                found, want = valid(name, found), valid(name, want)
            wide = np.complex128 if np.iscomplexobj(want) else np.float64
            a, b = found.astype(wide), want.astype(wide)
            bad = ~((np.abs(a - b) <= atol + rtol * np.abs(b)) | ((a != a) & (b != b)) | (a == b))
            if bad.any():
                at = tuple(int(i) for i in np.argwhere(bad)[0])
                raise Failure(f"{name}: {int(bad.sum())} of {bad.size} differ, largest by "
                              f"{np.nanmax(np.abs(a - b))}; at {at} found {a[at]}, expected {b[at]}")


def check_case(binaries, case, backend, opened):
    """True, or None where ONNX Runtime cannot run the case."""
    model = case.model(opened)
    try:
        runtime = session(model.SerializeToString())
        names = [o.name for o in runtime.get_outputs()]
        results = dict(zip(names, runtime.run(names, case.feeds())))
    except Exception as error:
        return "ONNX Runtime: " + str(error).splitlines()[0][:200]
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(model.SerializeToString())
        file.flush()
        compare(binaries, file.name, case.feeds(), results, backend, case.atol, case.rtol,
                valid=case.valid)
    return True
