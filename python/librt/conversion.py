"""From ONNX, or from PyTorch by way of it, to a compiled model: rtconvert as a function."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from . import errors
from ._native import Model, load
from ._programs import environment, path_of

# Options of rtconvert that this function gives itself, or that do something other than to convert.
_RESERVED = {
    "output",
    "json",
    "inspect",
    "list_ops",
    "list_passes",
    "save_adapter",
    "export_onnx",
    "help",
    "version",
}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _save_arrays(folder: str, name: str, arrays: Mapping[str, Any]) -> str:
    import numpy

    path = os.path.join(folder, name + ".npz")
    numpy.savez(path, **{key: numpy.asarray(value) for key, value in arrays.items()})
    return path


def _save_runs(folder: str, name: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """A folder with a file for each run, whose names sort in the order of the runs."""
    path = os.path.join(folder, name)
    os.mkdir(path)
    for i, arrays in enumerate(runs):
        _save_arrays(path, f"{i:09}", arrays)
    return path


def _save_array(folder: str, name: str, array: Any) -> str:
    import numpy

    path = os.path.join(folder, name + ".npy")
    numpy.save(path, numpy.asarray(array))
    return path


def _number(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def _arguments(options: Mapping[str, Any], folder: str) -> list[str]:
    """The command line of rtconvert: NAME=VALUE of a dict, once for each entry of a list, a flag for True."""
    line: list[str] = []
    for name, value in options.items():
        flag = _flag(name)
        if name in _RESERVED:
            raise errors.InvalidArgument(f"convert: the option {name} is not for this function")
        if value is None or value is False:
            continue
        if value is True:
            line.append(flag)
        elif name in ("calibrate", "evaluate") and isinstance(value, Mapping):
            line += [flag, _save_arrays(folder, name, value)]
        elif name in ("calibrate", "evaluate") and isinstance(value, (list, tuple)):
            line += [flag, _save_runs(folder, name, value)]
        elif name == "labels" and (_is_array(value) or isinstance(value, (list, tuple))):
            line += [flag, _save_array(folder, name, value)]
        elif name == "lora" and isinstance(value, Mapping):
            parts = []
            for key, part in value.items():
                parts += [f"{key}={_number(each)}" for each in (part if isinstance(part, (list, tuple)) else [part])]
            line += [flag, ",".join(parts)]
        elif isinstance(value, Mapping):  # dim, constant, input, cache
            for i, (key, entry) in enumerate(value.items()):
                if _is_array(entry):
                    entry = _save_array(folder, f"{name}{i}", entry)
                elif isinstance(entry, (list, tuple)):
                    entry = ",".join(_number(number) for number in entry)
                line += [flag, f"{key}={_number(entry)}"]
        elif isinstance(value, (list, tuple)):
            if name in ("class_weights", "pos_weight", "keep_fp32"):
                line += [flag, ",".join(_number(each) for each in value)]
            else:
                for each in value:
                    line += [flag, _number(each)]
        else:
            line += [flag, os.fspath(value) if isinstance(value, os.PathLike) else _number(value)]
    return line


def _run(command: list[str]) -> tuple[int, bytes, str]:
    """Exit code, stdout and stderr; an interrupt ends the program, too."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(command[0])) as process:
        try:
            out, text = process.communicate()
        except BaseException:
            process.kill()
            process.wait()
            raise
    return process.returncode, out, text.decode(errors="replace").strip()


def _fail(code: int, out: bytes, text: str, hidden: str | None) -> NoReturn:
    """Raises what rtconvert reports. hidden: a temporary file that the user does not know."""
    try:
        report = json.loads(out)
    except ValueError:
        report = {}
    if hidden:
        text = text.replace(hidden, "the model")
    if "error" in report:
        message = report["error"].replace(hidden, "the model") if hidden else report["error"]
        error = errors.of_code(int(report["code"]), message)
        if isinstance(error, errors.Unsupported):
            error.nodes = report.get("unsupported", [])
            for node in error.nodes:
                error.add_note(f"{node['op']} '{node['node']}': {node['reason']}; {node['help']}")
        raise error
    if code == 2:  # the command line
        lines = [line for line in text.splitlines() if not line.startswith("Run with --help")]
        raise errors.InvalidArgument("convert: " + " ".join(lines))
    if code < 0:
        raise errors.InternalError(f"rtconvert was ended by signal {-code}: {text}")
    raise errors.DeviceError(f"rtconvert ended with exit code {code}: {text}")


def convert(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview,
    output: str | os.PathLike[str] | None = None,
    *,
    precision: str = "fp32",
    train: bool = False,
    calibrate: str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    **options: Any,
) -> Model:
    """Compiles an ONNX model.

    source: the file, its bytes, or "zoo:NAME". A model of several files (external data) must be a file.
    output: where to write the .rt file; None: the model is in memory only (see Model.save).
    precision: "fp32", "fp16", "bf16", "int8", "int8-weights" or "int4-weights".
    train: add the entry train_step, for librt.Trainer; then loss=, optimizer= and others.
    calibrate: data for "int8": arrays by input name whose first axis counts the rows, a list of such dicts, each with the
        inputs of one run, or a file or folder.
    options: every other option of rtconvert, with _ for -: dim={"batch": 8}, constant={"axis": 1}, verify=True,
        loss="mse", optimizer="adam", trainable=["head.*"], lora={"rank": 8, "alpha": 16}, memory="256MiB".
        `rtconvert --help-all` describes them. Arrays may stand where it takes files.

    What it did is in the model's `report`: a dict with nodes, flops, bytes, precision, coverage, warnings.
    Raises librt.Unsupported, with the nodes that cannot be converted in `nodes`, librt.InvalidModel,
    librt.InvalidArgument. Ctrl-C ends the conversion.
    """
    program = path_of("rtconvert")
    if output is not None and os.fsdecode(output).endswith(".onnx"):
        raise errors.InvalidArgument(
            f"convert: output: expected a .rt file, found {os.fsdecode(output)}; `rtconvert zoo:NAME -o MODEL.onnx` writes "
            "ONNX"
        )
    with tempfile.TemporaryDirectory(prefix="librt-") as folder:
        if isinstance(source, (bytes, bytearray, memoryview)):
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(source)
        else:
            path = os.fspath(source)
        written = os.path.join(folder, "model.rt") if output is None else os.fspath(output)
        given = {"precision": precision, "train": train, "calibrate": calibrate, **options}
        command = [program, *_arguments(given, folder), "--json", "-o", written, path]
        code, out, text = _run(command)
        if code not in (0, 1):  # 1: verified, and different; the report says where
            _fail(code, out, text, path if path.startswith(folder) else None)
        report = json.loads(out)
        if output is None:
            with open(written, "rb") as file:
                model = load(file.read())
            report["output"] = None
        else:
            model = load(written)
        if path.startswith(folder):
            report["model"] = None
    model.report = report
    for line in report.get("warnings", []):
        warnings.warn(line, stacklevel=2)
    if code == 1:
        different = [line["output"] for line in report.get("verified", []) if not line["equal"]]
        raise errors.Error(f"verify: outputs differ from the original's: {', '.join(different)}")
    return model


def from_torch(
    module: Any,
    example_inputs: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    input_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
    dynamic_batch: bool = True,
    export: Mapping[str, Any] | None = None,
    **options: Any,
) -> Model:
    """Exports a torch.nn.Module with torch.onnx.export and compiles it. Needs torch and onnx.

    example_inputs: a tensor, or a tuple of them. dynamic_batch: the first axis of every input is the dynamic
    dimension "batch". export: further options of torch.onnx.export. options: those of librt.convert; with
    train=True the module is exported in training mode, with its batch norms and dropouts.
    """
    try:
        import torch
    except ImportError:
        raise ImportError("librt.from_torch needs PyTorch: pip install torch onnx") from None
    inputs = tuple(example_inputs) if isinstance(example_inputs, (list, tuple)) else (example_inputs,)
    names = list(input_names) if input_names is not None else [f"input{i}" if i else "input" for i in range(len(inputs))]
    outputs = list(output_names) if output_names is not None else ["output"]
    if len(names) != len(inputs):
        raise errors.InvalidArgument(f"from_torch: {len(inputs)} inputs, but {len(names)} input_names")
    settings: dict[str, Any] = {"input_names": names, "output_names": outputs, "dynamo": False}
    if dynamic_batch:
        settings["dynamic_axes"] = {
            name: {0: "batch"} for name, value in zip(names, inputs) if isinstance(value, torch.Tensor) and value.dim()
        }
    trains = bool(options.get("train"))
    if trains:
        settings["training"] = torch.onnx.TrainingMode.TRAINING
        settings["do_constant_folding"] = False
    settings.update(export or {})
    was_training = module.training
    buffer = io.BytesIO()
    try:
        module.train(trains)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.onnx.export(module, inputs, buffer, **settings)
    finally:
        module.train(was_training)
    return convert(buffer.getvalue(), output, **options)
