#!/usr/bin/env python3
"""Nets exported from PyTorch's two exporters or from Keras, with open dimensions, against ONNX Runtime.

    tests/exports/exports.py --bin build/bin [--exporters torchscript,dynamo] [--backends cpu,vulkan] [--only bert,unet] [--report FILE]
    tests/exports/exports.py --bin build/bin --exporters tf2onnx

Makes its own environment with pip (PyTorch, torchvision, transformers or TensorFlow, tf2onnx; ONNX Runtime) and keeps it,
the exported files and the expected outputs in a cache folder, so that a second run only converts and compares. Each net is
run at sets of extents that the exporter did not see. Prints a row for each net and exporter:

    converts    yes, or why not
    cpu, ...    for each set of extents: ok, or what differs or is refused

Ends with 1 when a net that ONNX Runtime runs is not converted or is wrong anywhere.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

PYTORCH = ["torch", "torchvision", "transformers", "onnx", "onnxscript", "onnxruntime"]
# tf2onnx reads graphs of TensorFlow before 2.20 only.
TENSORFLOW = ["tensorflow-cpu<2.20", "tf2onnx", "onnx", "onnxruntime"]
HERE = Path(__file__).resolve().parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", help="folder of rtconvert and rtrun")
    parser.add_argument("--cache", default=os.path.expanduser("~/.cache/librt-exports"))
    parser.add_argument("--venv", help="the environment; default: a folder in the cache folder")
    parser.add_argument("--backends", default="cpu,vulkan")
    parser.add_argument("--exporters", default="torchscript,dynamo", help="or tf2onnx, in a run of its own")
    parser.add_argument("--only", default="", help="names of nets, with commas")
    parser.add_argument("--report", help="also write the table here")
    parser.add_argument("--seconds", type=int, default=600, help="how long a conversion or a run may take")
    parser.add_argument("--export", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = set(options.exporters.split(","))
    if names != {"tf2onnx"} and not names <= {"torchscript", "dynamo"}:
        parser.error(f"--exporters: expected torchscript, dynamo or both, or tf2onnx, found {options.exporters}")
    options.keras = "tf2onnx" in names
    return options


def enter_environment(options):
    """Goes on in the environment's Python; makes the environment first where there is none."""
    folder = Path(options.venv or Path(options.cache) / ("venv_keras" if options.keras else "venv"))
    packages = TENSORFLOW if options.keras else PYTORCH
    python = folder / "bin" / "python"
    if Path(sys.prefix) == folder.resolve():
        return
    if not python.exists():
        print(f"making {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True)
    ready = folder / "packages"
    if not ready.exists() or ready.read_text() != " ".join(packages):
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        ready.write_text(" ".join(packages))
    os.execv(python, [str(python), *sys.argv])


# --- exporting, in a separate process
def export_torchscript(net, model, sample, path):
    import torch

    axes = {
        name: {i: d for i, d in enumerate(dims) if isinstance(d, str)} for name, (_, dims) in net.inputs.items()
    }
    torch.onnx.export(
        model, tuple(sample.values()), path, dynamo=False, opset_version=17, input_names=list(sample),
        output_names=["output"], dynamic_axes=axes,
    )  # fmt: skip


def export_dynamo(net, model, sample, path):
    import torch

    def shapes(dim):
        return tuple(
            {i: dim(d) for i, d in enumerate(dims) if isinstance(d, str)} for _, dims in net.inputs.values()
        )

    named = {d: torch.export.Dim(d) for d in net.export}
    options = dict(dynamo=True, input_names=list(sample), output_names=["output"], verbose=False)
    try:
        torch.onnx.export(model, tuple(sample.values()), path, dynamic_shapes=shapes(named.get), **options)
    except Exception:  # where it wants a say in which dimensions are open
        automatic = shapes(lambda _: torch.export.Dim.AUTO)
        torch.onnx.export(model, tuple(sample.values()), path, dynamic_shapes=automatic, **options)


def export_pytorch(net, exporter, path):
    import torch

    torch.manual_seed(7)
    torch.backends.mha.set_fastpath_enabled(False)  # fused encoder layers have no ONNX form
    model = net.build().eval()
    with torch.no_grad():
        sample = net.tensors(net.export, 1)
        {"torchscript": export_torchscript, "dynamo": export_dynamo}[exporter](net, model, sample, path)


def export_one(net, exporter, folder):
    import numpy
    import onnxruntime

    path = str(folder / "model.onnx")
    if exporter == "tf2onnx":
        net.export(path)
    else:
        export_pytorch(net, exporter, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    taken = {value.name for value in session.get_inputs()}
    for i, extents in enumerate(net.runs):
        run = folder / str(i)
        run.mkdir(exist_ok=True)
        tensors = {k: numpy.asarray(v) for k, v in net.tensors(extents, 100 + i).items() if k in taken}
        try:
            expected = session.run(None, tensors)[0]
        except Exception as error:  # the exporter fixed what should be open
            (run / "refused").write_text(last_words(str(error)))
            continue
        for key, value in tensors.items():
            numpy.save(run / f"{key}.npy", value)
        numpy.save(run / "expected.npy", numpy.asarray(expected, order="C"))
        largest = float(numpy.abs(expected[numpy.isfinite(expected)]).max(initial=0))
        output = session.get_outputs()[0].name
        (run / "run.json").write_text(json.dumps({"inputs": list(tensors), "output": output, "largest": largest}))


def export_all(options):
    """The exports that are not in the cache, one after the other: importing the framework takes longer than most of them."""
    for net, exporter in wanted(options, nets_of(options)):
        folder = folder_of(options, net, exporter)
        if state_of(folder) is not None:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "failed").write_text("the exporter crashed")  # unless it comes back
        try:
            export_one(net, exporter, folder)
            (folder / "done").write_text("")
            (folder / "failed").unlink()
        except Exception as error:
            (folder / "failed").write_text(f"{type(error).__name__}: {error}".splitlines()[0][:300])


def nets_of(options):
    return importlib.import_module("keras_nets" if options.keras else "nets").NETS


def wanted(options, nets):
    only = [name for name in options.only.split(",") if name]
    return [
        (net, exporter)
        for exporter in options.exporters.split(",")
        for net in nets
        if not only or net.name in only
    ]


def folder_of(options, net, exporter):
    return Path(options.cache) / "nets" / f"{net.name}-{exporter}"


def state_of(folder):
    return next((state for state in ("failed", "done") if (folder / state).exists()), None)


def last_words(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"


def run_command(command, seconds, **options):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, **options)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return -1, "", f"took more than {seconds} s"


def prepare(options, net, exporter):
    """The folder of the export, or why there is none."""
    folder = folder_of(options, net, exporter)
    while state_of(folder) is None:  # a crash of the exporter settles one net
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--export"], **quiet)
        if state_of(folder) is None and done.returncode > 0:
            sys.exit(f"the exporter does not start; run {__file__} --export")
    if state_of(folder) == "failed":
        return None, (folder / "failed").read_text()
    return folder, None


# --- comparing
def compare(options, model, folder, backend):
    """A word for each set of extents."""
    words = []
    for run in sorted(path for path in folder.iterdir() if path.is_dir()):
        if (run / "refused").exists():
            words.append("-")  # ONNX Runtime does not run it either
            continue
        facts = json.loads((run / "run.json").read_text())
        command = [f"{options.bin}/rtrun", model, "--backend", backend, "--quiet", "--rtol", "1e-3"]
        command += ["--atol", str(1e-5 + 1e-3 * facts["largest"])]
        for name in facts["inputs"]:
            command += ["--input", f"{name}={run / name}.npy"]
        command += ["--expect", f"{facts['output']}={run / 'expected.npy'}"]
        environment = dict(os.environ, RT_VULKAN_ALLOW_SOFTWARE="1")
        code, out, errors = run_command(command, options.seconds, env=environment)
        words.append("ok" if code == 0 else ("WRONG " if code == 1 else "") + last_words(errors or out))
    return words


def judge(options, net, exporter):
    """A row of the table: state, and text."""
    folder, problem = prepare(options, net, exporter)
    if folder is None:
        return "not exported", [f"not exported: {problem}"]
    model = str(folder / "model.rt")
    source = str(folder / "model.onnx")
    code, out, errors = run_command([f"{options.bin}/rtconvert", source, "-o", model], options.seconds)
    if code != 0:
        return "not converted", [f"not converted: {last_words(errors)}", *out.splitlines()[:12]]
    lines, right = [], True
    for backend in options.backends.split(","):
        words = compare(options, model, folder, backend)
        right = right and all(word in ("ok", "-") for word in words)
        lines.append(f"{backend}: " + " | ".join(words))
    if all(word == "-" for word in words):
        return "not exported", ["ONNX Runtime refuses all extents: the exporter fixed them"]
    return "right" if right else "wrong", lines


def main():
    options = arguments()
    enter_environment(options)
    sys.path.insert(0, str(HERE))
    if options.export:
        return export_all(options)
    counts, report = {}, []

    def say(line):
        print(line, flush=True)
        report.append(line)

    for net, exporter in wanted(options, nets_of(options)):
        state, lines = judge(options, net, exporter)
        counts[state] = counts.get(state, 0) + 1
        say(f"{net.name:20} {exporter:12} {state}")
        if state != "right" or any("-" in line.split(": ", 1)[1].split(" | ") for line in lines):
            for line in lines:
                say(f"    {line}")
    say(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    if options.report:
        Path(options.report).write_text("\n".join(report) + "\n")
    return 1 if counts.get("wrong", 0) + counts.get("not converted", 0) > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
