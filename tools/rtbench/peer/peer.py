"""One other engine that runs one ONNX model, for rtbench study --peer.

argv[1] is JSON: engine, model (path of the ONNX file), inputs and outputs (their names, in order), threads, folder (for what
the engine must convert). Then one command a line on stdin, one answer a line on stdout, both JSON:

  {"do": "open"}                                 -> {"version": "1.16.3"}
  {"do": "batch", "inputs": "in.npz"}            -> {"first_ms": .., "last_ms": ..}   sets inputs, runs twice
  {"do": "outputs", "path": "out.npz"}           -> {"names": [..]}                   of the last run, as output_0, output_1, ..
  {"do": "run", "seconds": 0.2, "least": 1}      -> {"times_ms": [..]}
  {"do": "quit"}

An answer {"error": ".."} says why it cannot; {"missing": ".."} that the engine is not installed. Nothing else is printed on
stdout; what engines print there goes to stderr. Every engine gets all its graph optimizations, the given number of threads, and
fp32.
"""

import json
import os
import sys
import time

config = json.loads(sys.argv[1])
# What C libraries print must not get between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = str(config["threads"])


class Missing(Exception):
    """The engine, or a part of it, is not installed."""


def module(name, package=None):
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(f"the Python package {package or name} is not installed ({error})") from error


def require(name):
    """Before a long import: that of another package, which is needed too."""
    import importlib.util

    if importlib.util.find_spec(name) is None:
        raise Missing(f"the Python package {name} is not installed")


class OnnxRuntime:
    def __init__(self, path, threads, _):
        self.engine = module("onnxruntime")
        self.version = self.engine.__version__
        options = self.engine.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = self.engine.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.session = self.engine.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self.session.get_inputs()]
        self.outputs = [value.name for value in self.session.get_outputs()]

    def feed(self, arrays):
        # Bound once, so that a run copies nothing.
        self.binding = self.session.io_binding()
        self.values = [self.engine.OrtValue.ortvalue_from_numpy(array) for array in arrays]
        for name, value in zip(self.inputs, self.values):
            self.binding.bind_ortvalue_input(name, value)
        for name in self.outputs:
            self.binding.bind_output(name, "cpu")

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def results(self):
        return [value.numpy() for value in self.binding.get_outputs()]


class OpenVino:
    def __init__(self, path, threads, _):
        self.engine = module("openvino")
        self.version = self.engine.__version__.split("-")[0]
        self.core = self.engine.Core()
        self.options = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "NUM_STREAMS": 1,
        }
        self.path = path
        model = self.core.read_model(path)
        self.inputs = [value.get_any_name() for value in model.inputs]
        self.outputs = [value.get_any_name() if value.get_names() else str(i) for i, value in enumerate(model.outputs)]

    def feed(self, arrays):
        # It compiles for the extents that it is given.
        model = self.core.read_model(self.path)
        model.reshape({value: list(array.shape) for value, array in zip(model.inputs, arrays)})
        self.request = self.core.compile_model(model, "CPU", self.options).create_infer_request()
        self.arrays = arrays
        for i, array in enumerate(arrays):
            self.request.set_input_tensor(i, self.engine.Tensor(array, shared_memory=True))

    def run(self):
        self.request.infer(share_outputs=True)

    def results(self):
        return [self.request.get_output_tensor(i).data.copy() for i in range(len(self.outputs))]


class Torch:
    def __init__(self, path, threads, _):
        require("onnx2torch")  # torch itself reads no ONNX
        self.engine = module("torch")
        self.version = self.engine.__version__
        convert = module("onnx2torch").convert
        self.engine.set_num_threads(threads)
        self.model = convert(path).eval()
        self.inputs, self.outputs = config["inputs"], config["outputs"]

    def feed(self, arrays):
        self.arrays = [self.engine.from_numpy(array) for array in arrays]

    def run(self):
        with self.engine.inference_mode():
            self.values = self.model(*self.arrays)

    def results(self):
        values = self.values if isinstance(self.values, (list, tuple)) else [self.values]
        return [value.numpy() for value in values]


class Mnn:
    def __init__(self, path, threads, folder):
        self.engine = module("MNN")
        self.version = self.engine.version() if hasattr(self.engine, "version") else ""
        converted = os.path.join(folder, "model.mnn")
        command(["mnnconvert", "-f", "ONNX", "--modelFile", path, "--MNNModel", converted, "--bizCode", "rtbench"], "MNN")
        self.inputs, self.outputs = config["inputs"], config["outputs"]
        manager = self.engine.nn.create_runtime_manager(
            ({"backend": "CPU", "numThread": threads, "precision": "high", "memory": "normal"},)
        )
        self.model = self.engine.nn.load_module_from_file(converted, self.inputs, self.outputs, runtime_manager=manager)

    def feed(self, arrays):
        expression = module("MNN.expr", "MNN")
        self.values = []
        for array in arrays:
            kind = expression.int if array.dtype.kind in "iu" else expression.float
            value = expression.const(array, list(array.shape), expression.NCHW, kind)
            self.values.append(expression.convert(value, expression.NC4HW4) if array.ndim == 4 else value)

    def run(self):
        expression = module("MNN.expr", "MNN")
        values = self.model.forward(self.values)
        values = values if isinstance(values, (list, tuple)) else [values]
        # Reading ends the run: it computes lazily.
        self.read = [expression.convert(value, expression.NCHW).read() for value in values]

    def results(self):
        return [value.copy() for value in self.read]


class Ncnn:
    def __init__(self, path, threads, folder):
        self.engine = module("ncnn")
        self.version = self.engine.__version__
        self.path, self.threads, self.folder = path, threads, folder
        self.inputs, self.outputs = config["inputs"], config["outputs"]

    def feed(self, arrays):
        if arrays[0].shape[0] != 1:
            raise ValueError("ncnn runs a batch of 1 only")
        shapes = ",".join(f"[{','.join(map(str, array.shape))}]" + ("i64" if array.dtype.kind == "i" else "f32") for array in arrays)
        target = os.path.join(self.folder, "model.onnx")
        if not os.path.exists(target):
            os.symlink(os.path.abspath(self.path), target)  # pnnx writes beside the model
        command(["pnnx", target, f"inputshape={shapes}", "fp16=0"], "pnnx")
        self.net = self.engine.Net()
        options = self.net.opt
        options.num_threads = self.threads
        options.use_vulkan_compute = False
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        options.use_bf16_storage = False
        self.net.load_param(os.path.join(self.folder, "model.ncnn.param"))
        self.net.load_model(os.path.join(self.folder, "model.ncnn.bin"))
        self.values = [self.engine.Mat(array[0]).clone() for array in arrays]

    def run(self):
        extractor = self.net.create_extractor()
        for i, value in enumerate(self.values):
            extractor.input(f"in{i}", value)
        self.read = [extractor.extract(f"out{i}")[1] for i in range(len(self.outputs))]

    def results(self):
        import numpy

        return [numpy.array(value)[None] for value in self.read]


def command(arguments, package):
    """Runs a program of a Python package, beside this interpreter or in PATH."""
    import shutil
    import subprocess

    folder = os.path.dirname(sys.executable)
    program = shutil.which(arguments[0], path=folder + os.pathsep + os.environ.get("PATH", ""))
    if program is None:
        raise Missing(f"the program {arguments[0]} of the Python package {package} is not installed")
    done = subprocess.run([program] + arguments[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or [""]
        raise RuntimeError(f"{arguments[0]} ended with {done.returncode}: {lines[-1][:200]}")


ENGINES = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "torch": Torch, "mnn": Mnn, "ncnn": Ncnn}


class Worker:
    def open(self, _):
        module("numpy")
        self.engine = ENGINES[config["engine"]](config["model"], config["threads"], config["folder"])
        return {"version": self.engine.version}

    def timed(self):
        start = time.perf_counter()
        self.engine.run()
        return 1e3 * (time.perf_counter() - start)

    def batch(self, request):
        import numpy

        start = time.perf_counter()
        with numpy.load(request["inputs"]) as file:
            given = dict(file)
        # By name, else in order: converters may rename.
        names = self.engine.inputs
        if set(names) <= set(given):
            arrays = [given[name] for name in names]
        elif len(names) == len(given):
            arrays = list(given.values())
        else:
            raise ValueError(f"it has the inputs {', '.join(names)}, and not {', '.join(given)}")
        # ascontiguousarray makes a scalar an array of one element.
        self.engine.feed([numpy.ascontiguousarray(array).reshape(array.shape) for array in arrays])
        self.engine.run()
        first = 1e3 * (time.perf_counter() - start)
        return {"first_ms": first, "last_ms": self.timed()}

    def outputs(self, request):
        import numpy

        names = self.engine.outputs
        numpy.savez(request["path"], **{f"output_{i}": value for i, value in enumerate(self.engine.results())})
        return {"names": names}

    def run(self, request):
        times, start, last = [], time.perf_counter(), 0.0
        # Short runs are warmed up: others ran in between.
        if request.get("last_ms", 0) < 100:
            self.timed(), self.timed()
            start = time.perf_counter()
        while len(times) < request["least"] or (
            time.perf_counter() - start + 1e-3 * last < request["seconds"] and len(times) < 20000
        ):
            last = self.timed()
            times.append(last)
        return {"times_ms": times}


worker = Worker()
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "quit":
        break
    try:
        answer = getattr(worker, request["do"])(request)
    except Missing as problem:
        answer = {"missing": str(problem)}
    except Exception as problem:  # whatever an engine throws is an answer
        text = str(problem).strip().splitlines() or [""]
        answer = {"error": f"{type(problem).__name__}: {text[0][:300]}"}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
# Some engines crash when they are taken apart.
os._exit(0)
