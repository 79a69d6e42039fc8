#!/usr/bin/env python3
"""models.py BIN SHARED SCRATCH GROUP [--peer]: compiled models as ONNX, which compute what the compiled ones do.

GROUP: zoo, large (networks of the zoo), shared (trained models of the folder SHARED/data/models), precisions, external, trained,
cache, control.
Each model is compiled, written as ONNX, and that file is compiled again; rtrun compares the outputs of both. With --peer ONNX
Runtime runs the file instead; skips with exit code 77 where it is not installed.
"""
import json
import struct
import subprocess
import sys
from pathlib import Path

BIN, SHARED, SCRATCH, GROUP = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
PEER = "--peer" in sys.argv[5:]
if PEER:
    try:
        import numpy as np
        import onnx
        import onnxruntime
        from onnx import numpy_helper
    except ImportError as error:
        print(f"SKIPPED: {error}; name a Python that has onnxruntime and onnx with -DRT_PEER_PYTHON=PYTHON")
        sys.exit(77)


def call(program, *arguments, code=0):
    done = subprocess.run([f"{BIN}/{program}", *map(str, arguments)], cwd=SCRATCH, capture_output=True, text=True)
    if done.returncode != code:
        print(f"FAILED: {program} {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        sys.exit(1)
    return done.stdout


def write_npy(path, code, dims, values):
    """code: of NumPy, such as '<f4'."""
    shape = "(" + "".join(f"{extent}, " for extent in dims) + ")"
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values
    (SCRATCH / path).write_bytes(data)


def entry_of(model):
    return json.loads(call("rtrun", model, "--inspect", "--json"))["entries"][0]


def tolerance(rtol, atol):
    return ["--rtol", rtol, "--atol", atol]


def run_peer(path, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # activations stay f32
    session = onnxruntime.InferenceSession(str(SCRATCH / path), options, providers=["CPUExecutionProvider"])
    return session.get_outputs(), session.run(None, feeds)


def peer_input(index, entry, extents):
    """Of random values: whole numbers below 10 for integers."""
    types = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "u8": np.uint8}
    dims = [extents.get(d, 2) if isinstance(d, str) else d for d in entry["dims"]]
    generator = np.random.default_rng(index)
    if entry["dtype"].startswith("f"):
        return generator.normal(size=dims).astype(types[entry["dtype"]])
    return generator.integers(0, 10, size=dims).astype(types[entry["dtype"]])


def compare(name, rt, onnx_file, extents, within, arguments=()):
    """The model rt (run with the arguments) and the ONNX file, on random inputs."""
    entry = entry_of(rt)
    outputs = [output["name"] for output in entry["outputs"]]
    files = {output: f"out{i}.npy" for i, output in enumerate(outputs)}
    given = []
    if PEER:
        feeds = {x["name"]: peer_input(i, x, extents) for i, x in enumerate(entry["inputs"])}
        for i, (key, value) in enumerate(feeds.items()):
            np.save(SCRATCH / f"in{i}.npy", value)
            given += ["--input", f"{key}=in{i}.npy"]
        for described, result in zip(*run_peer(onnx_file, feeds)):
            np.save(SCRATCH / files[described.name], result)
    else:
        given = ["--random-input", "--seed", 3]
        for key, extent in extents.items():
            given += ["--dim", f"{key}={extent}"]
        call("rtconvert", onnx_file, "-o", "back.rt")
        saves = [part for output in outputs for part in ("--save", f"{output}={files[output]}")]
        call("rtrun", "back.rt", "--backend", "cpu", "--quiet", *given, *saves)
    expects = [part for output in outputs for part in ("--expect", f"{output}={files[output]}")]
    call("rtrun", rt, "--backend", "cpu", "--quiet", *given, *expects, *within, *arguments)
    print(f"equal: {name}")


def from_source(name, source, extents, within=(), options=(), more=()):
    call("rtconvert", source, "-o", "model.rt", *options)
    call("rtconvert", "model.rt", "-o", "model.onnx", *more)
    compare(name, "model.rt", "model.onnx", extents, tolerance(*(within or (1e-3, 1e-4))))


def zoo(names):
    for name in names:
        has_length = name in ("bert_layer", "bert_base", "char_transformer", "text_classifier", "gpt2_small")
        extents = {"batch": 2, "sequence": 70} if has_length else {"batch": 2}
        from_source(name, f"zoo:{name}", extents)
        if name in ("lenet5", "char_transformer"):  # as it is published, too
            call("rtconvert", f"zoo:{name}", "-o", "published.onnx")
            compare(f"{name}, published", "model.rt", "published.onnx", extents, tolerance(1e-3, 1e-4))


def shared():
    """Tolerances as the data's README gives them."""
    models = {"mnist_cnn": (1e-3, 1e-3), "gesture_lstm": (0, 0), "squeezenet_fp16": (2e-2, 5e-3), "mnist_cnn_int8": (0, 0.05)}
    root = SHARED / "data" / "models"
    files = sorted(root.glob("**/model.onnx"))
    if not files:
        print(f"SKIPPED: there are no models in {root}")
        sys.exit(77)
    for file in files:
        name = str(file.parent.relative_to(root))
        call("rtconvert", file, "-o", "model.rt")
        call("rtconvert", "model.rt", "-o", "model.onnx")
        if not PEER:
            call("rtconvert", "model.onnx", "-o", "back.rt")
        rtol, atol = models.get(name, (1e-3, 1e-4))
        cases = sorted(file.parent.glob("test_data_set_*"))
        for case in cases:
            if not PEER:
                call("rtrun", "back.rt", "--backend", "cpu", "--quiet", "--test-data", case, *tolerance(rtol, atol))
                continue
            tensor = lambda path: numpy_helper.to_array(onnx.load_tensor(str(path)))
            feeds = {x["name"]: tensor(case / f"input_{i}.pb") for i, x in enumerate(entry_of("model.rt")["inputs"])}
            for i, (described, found) in enumerate(zip(*run_peer("model.onnx", feeds))):
                expected = tensor(case / f"output_{i}.pb")
                if found.shape != expected.shape or not np.allclose(found, expected, rtol, atol):
                    print(f"FAILED: {name}, {case.name}: output {described.name} differs")
                    sys.exit(1)
        print(f"equal: {name}, {len(cases)} cases")


def idx_files():
    """16 images of 28 x 28 bytes, and labels."""
    pixels = bytes((i * 37 + i // 28 * 11) % 256 for i in range(16 * 28 * 28))
    (SCRATCH / "images").write_bytes(struct.pack(">IIII", 0x803, 16, 28, 28) + pixels)
    (SCRATCH / "labels").write_bytes(struct.pack(">II", 0x801, 16) + bytes(i % 4 for i in range(16)))


def calibration_rows():
    """The folder `rows` with 16 rows of the input of zoo:lenet5."""
    (SCRATCH / "rows").mkdir(exist_ok=True)
    values = [((i * 37 + i // 28 * 11) % 256) / 255 for i in range(16 * 28 * 28)]
    write_npy("rows/input.npy", "<f4", (16, 28, 28, 1), struct.pack(f"<{len(values)}f", *values))


def precisions():
    calibration_rows()
    coarse = (3e-2, 3e-2)
    from_source("lenet5, int8 by ranges of data", "zoo:lenet5", {"batch": 2}, coarse,
                ["--precision", "int8", "--calibrate", "rows", "--accuracy", "never"])
    from_source("resnet18_cifar, int8 by ranges of each run", "zoo:resnet18_cifar", {"batch": 2}, coarse,
                ["--precision", "int8", "--accuracy", "never"])
    # With ranges of each run, another rounding in one runtime moves the values that follow by a step.
    steps = (1e-2, 1e-1) if PEER else (1e-2, 1e-3)
    for precision, within in (("int8", steps), ("int8-weights", (1e-2, 1e-3)), ("int4-weights", (1e-2, 1e-3))):
        from_source(f"char_transformer, {precision}", "zoo:char_transformer", {"batch": 2, "sequence": 70}, within,
                    ["--precision", precision, "--accuracy", "never"])
    from_source("lenet5, fp16", "zoo:lenet5", {"batch": 2}, coarse, ["--precision", "fp16", "--accuracy", "never"])
    if not PEER:  # which has no kernels of bfloat16
        from_source("lenet5, bf16", "zoo:lenet5", {"batch": 2}, coarse, ["--precision", "bf16", "--accuracy", "never"])
    call("rtconvert", "zoo:tabular", "-o", "direct.onnx", "--precision", "int8-weights", "--accuracy", "never")
    call("rtconvert", "zoo:tabular", "-o", "model.rt", "--precision", "int8-weights", "--accuracy", "never")
    compare("tabular, int8-weights, without a .rt", "model.rt", "direct.onnx", {"batch": 2}, tolerance(1e-3, 1e-4))


def files_of(folder):
    return sorted(path.name for path in (SCRATCH / folder).iterdir())


def external():
    """Weights in a second file: as it is published, compiled, with trained weights, and taken along to another folder."""
    for folder in ("two", "one", "moved"):
        (SCRATCH / folder).mkdir(exist_ok=True)
        for file in (SCRATCH / folder).iterdir():
            file.unlink()
    near = tolerance(1e-3, 1e-4)
    call("rtconvert", "zoo:lenet5", "-o", "model.rt")
    report = json.loads(call("rtconvert", "zoo:lenet5", "-o", "two/published.onnx", "--external-data", "--json"))
    if report["external_data"] != "two/published.onnx.data" or files_of("two") != ["published.onnx", "published.onnx.data"]:
        print(f"FAILED: {report}, in the folder: {files_of('two')}")
        sys.exit(1)
    compare("lenet5, published", "model.rt", "two/published.onnx", {"batch": 2}, near)
    report = json.loads(call("rtconvert", "model.rt", "-o", "two/compiled.onnx", "--external-data", "--json"))
    size = sum((SCRATCH / "two" / name).stat().st_size for name in ("compiled.onnx", "compiled.onnx.data"))
    if report["external_data"] != "two/compiled.onnx.data" or report["file_bytes"] != size:
        print(f"FAILED: {size} bytes, reported: {report}")
        sys.exit(1)
    compare("lenet5, compiled", "model.rt", "two/compiled.onnx", {"batch": 2}, near)
    call("rtconvert", "two/published.onnx", "--weights", "none.safetensors", "-o", "x.onnx", "--external-data", code=2)
    call("rtconvert", "zoo:lenet5", "-o", "x.rt", "--external-data", code=2)

    # Some weights are trained, the others stay where they are.
    idx_files()
    call("rtconvert", "two/published.onnx", "-o", "train.rt", "--train", "--loss", "cross_entropy", "--optimizer", "sgd",
         "--trainable", "fc*")  # fmt: skip
    call("rttrain", "train.rt", "--data", "images", "--labels", "labels", "--scale", 0.00392157, "--batch", 8, "--epochs", 2,
         "--lr", 0.05, "--backend", "cpu", "--overwrite", "--checkpoint", "train.ckpt")  # fmt: skip
    trained = ["--checkpoint", "train.ckpt"]
    targets = {"two/beside.onnx": [], "moved/inside.onnx": [], "moved/apart.onnx": ["--external-data"]}
    for target, options in targets.items():
        call("rtconvert", "two/published.onnx", *trained, "--export-onnx", target, *options)
    if files_of("moved") != ["apart.onnx", "apart.onnx.data", "inside.onnx"]:
        print(f"FAILED: in the folder: {files_of('moved')}")
        sys.exit(1)
    for target in ("two/beside.onnx", "moved/inside.onnx", "moved/apart.onnx"):
        if target.startswith("moved/"):  # these need nothing of the source
            for file in (SCRATCH / "two").iterdir():
                file.unlink()
        compare(f"lenet5, trained, {target}", "train.rt", target, {"batch": 2}, near, trained)
    before = (SCRATCH / "moved" / "apart.onnx.data").read_bytes()
    call("rtconvert", "moved/apart.onnx", *trained, "--export-onnx", "moved/apart.onnx", "--external-data", code=2)
    if (SCRATCH / "moved" / "apart.onnx.data").read_bytes() != before:
        print("FAILED: a model's own external data was replaced")
        sys.exit(1)


def trained():
    idx_files()
    call("rtconvert", "zoo:lenet5", "-o", "plain.rt")
    for name, options in (("weights", ["--optimizer", "sgd"]), ("adapters", ["--optimizer", "adam", "--lora", "rank=4"])):
        call("rtconvert", "zoo:lenet5", "-o", "train.rt", "--train", "--loss", "cross_entropy", *options)
        call("rttrain", "train.rt", "--data", "images", "--labels", "labels", "--scale", 0.00392157, "--batch", 8, "--epochs", 2,
             "--lr", 0.05, "--backend", "cpu", "--overwrite", "--checkpoint", "train.ckpt")  # fmt: skip
        call("rtconvert", "train.rt", "--checkpoint", "train.ckpt", "-o", "trained.onnx")
        compare(f"lenet5, trained {name}", "train.rt", "trained.onnx", {"batch": 2}, tolerance(1e-3, 1e-4),
                ["--checkpoint", "train.ckpt"])
        if not PEER:  # training changed something
            call("rtrun", "plain.rt", "--backend", "cpu", "--quiet", "--random-input", "--seed", 3, "--dim", "batch=2", "--expect",
                 f"{entry_of('plain.rt')['outputs'][0]['name']}=out0.npy", code=1)
        call("rtconvert", "train.rt", "-o", "untrained.onnx")
        compare(f"lenet5, before it is trained, {name}", "train.rt", "untrained.onnx", {"batch": 2}, tolerance(1e-3, 1e-4))
    call("rtconvert", "train.rt", "--checkpoint", "train.ckpt", "--save-adapter", "adapter")
    call("rtconvert", "zoo:lenet5", "--merge-adapter", "adapter", "-o", "merged.onnx")
    compare("lenet5, adapter merged", "train.rt", "merged.onnx", {"batch": 2}, tolerance(1e-3, 1e-4), ["--checkpoint", "train.ckpt"])


def cache():
    """A decoder whose keys and values are states: inputs and outputs of the ONNX model."""
    file = SHARED / "data" / "models" / "llm_stories260k" / "decode" / "model.onnx"
    if not file.exists():
        print(f"SKIPPED: {file} is not there")
        sys.exit(77)
    call("rtconvert", file, "-o", "cache.rt", "--cache-length", 64)
    report = json.loads(call("rtconvert", "cache.rt", "-o", "cache.onnx", "--json"))
    states = report["onnx"]["states"]
    if not states:
        print(f"FAILED: no states in {report}")
        sys.exit(1)
    ids = json.loads(call("rtrun", "cache.rt", "--backend", "cpu", "--generate", 12, "--json"))["tokens"]
    call("rtconvert", "cache.onnx", "-o", "back.rt")
    inputs = {x["name"]: x for x in entry_of("back.rt")["inputs"]}
    codes = {"f32": ("<f4", 4), "i64": ("<i8", 8), "i32": ("<i4", 4)}
    given = {}
    for i, (key, x) in enumerate(inputs.items()):
        code, size = codes[x["dtype"]]
        count = 1
        for extent in x["dims"]:
            count *= extent
        given[key] = f"state{i}.npy"
        write_npy(given[key], code, x["dims"], bytes(size * count))
    token, found = 1, []
    for position in range(len(ids)):
        write_npy(given["token"], "<i8", [1], struct.pack("<q", token))
        if "pos" in given:
            write_npy(given["pos"], "<i8", [1], struct.pack("<q", position))
        if PEER:
            feeds = {key: np.load(SCRATCH / path) for key, path in given.items()}
            results = {described.name: result for described, result in zip(*run_peer("cache.onnx", feeds))}
            for name in states:
                np.save(SCRATCH / given[name], results[f"{name}.next"])
            logits = results["logits"].reshape(-1).tolist()
        else:
            saves = [part for name in states for part in ("--save", f"{name}.next={given[name]}")]
            feeds = [part for key, path in given.items() for part in ("--input", f"{key}={path}")]
            call("rtrun", "back.rt", "--backend", "cpu", "--quiet", *feeds, *saves, "--save", "logits=logits.npy")
            data = (SCRATCH / "logits.npy").read_bytes()
            logits = struct.unpack("<512f", data[-4 * 512 :])
        token = max(range(len(logits)), key=logits.__getitem__)
        found.append(token)
    if found != ids:
        print(f"FAILED: the decoder with its states outside writes {found}, expected {ids}")
        sys.exit(1)
    print(f"equal: {len(found)} tokens with {len(states)} states as inputs and outputs")


CONTROL = """
<ir_version: 8, opset_import: ["": 17]>
net (float[n] x, int64 trips, bool flag) => (float[n] sum, float[m, n] sums)
<float[2] weight = {0.5, -1.0}> {
   twice = Add(x, x)
   sum, sums = Loop(trips, , x) <body = body (int64 i, bool go, float[n] s) => (bool again, float[n] next, float[n] same) {
      step = If(flag) <then_branch = yes () => (float[n] minus) { minus = Mul(twice, weight) },
                       else_branch = no () => (float[n] plain) { plain = Identity(x) }>
      next = Add(s, step)
      same = Identity(next)
      again = Identity(go)
   }>
}
"""


def control():
    """If and Loop, whose bodies read values around them. The file is made with the onnx package."""
    if not PEER:
        print("SKIPPED: without onnx and onnxruntime; tests/unit/graph_export_test.cpp has the same graph")
        sys.exit(77)
    onnx.save(onnx.parser.parse_model(CONTROL), str(SCRATCH / "control.onnx"))
    call("rtconvert", "control.onnx", "-o", "model.rt")
    call("rtconvert", "model.rt", "-o", "model.onnx")
    x = np.array([1, -2], np.float32)
    for flag in (False, True):
        feeds = {"x": x, "trips": np.array(3, np.int64), "flag": np.array(flag)}
        expected, found = run_peer("control.onnx", feeds)[1], run_peer("model.onnx", feeds)[1]
        if not all(np.array_equal(a, b) for a, b in zip(expected, found)) or len(found) != 2:
            print(f"FAILED: flag {flag}: {found}, expected {expected}")
            sys.exit(1)
    print("equal: If and Loop")


def main():
    SCRATCH.mkdir(parents=True, exist_ok=True)
    small = ("mlp", "tabular", "lenet5", "resnet18", "mobilenet_v2", "bert_layer", "resnet18_mnist", "resnet18_cifar",
             "char_transformer", "text_classifier")  # fmt: skip
    groups = {
        "zoo": lambda: zoo(small), "large": lambda: zoo(("resnet50", "bert_base", "gpt2_small")), "shared": shared,
        "precisions": precisions, "external": external, "trained": trained, "cache": cache, "control": control,
    }  # fmt: skip
    groups[GROUP]()


main()
