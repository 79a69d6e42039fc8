"""Ten training steps of fresh nets, exported by both of PyTorch's exporters, against PyTorch itself.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch onnx onnxscript onnxruntime
    /tmp/venv/bin/python tests/training/pytorch_steps.py --bin build/bin [--net NAME] [--keep FOLDER]

pytorch_steps.sh does both. Every net is new: batch normalizations share zeros and ones, the layers of a
transformer are copies. Each step takes the whole data set, so that its order does not matter. Compared are the
ten losses, and what the trained net answers: PyTorch's in inference mode, and that of the ONNX file with the
trained weights (rtconvert --export-onnx) in ONNX Runtime. Not a part of CI.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnxruntime
import torch
from torch import nn

STEPS, SAMPLES, CLASSES = 10, 16, 5
warnings.filterwarnings("ignore")


class Residual(nn.Module):
    """Convolutions and batch normalizations with a shortcut, as in a ResNet."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.conv1 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        y = torch.relu(self.bn1(self.conv1(x)))
        return self.fc(torch.relu(self.bn2(self.conv2(y)) + x).mean((2, 3)))


class Transformer(nn.Module):
    """nn.TransformerEncoder copies its layer, initial values and all."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.embedding = nn.Embedding(20, 16)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.out(self.encoder(self.embedding(x)).mean(1))


class TiedEmbedding(nn.Module):
    """One weight with two uses, which must stay one; the layers' biases begin equal."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(CLASSES, 16)
        self.hidden1, self.hidden2 = nn.Linear(16, 16), nn.Linear(16, 16)
        nn.init.zeros_(self.hidden1.bias)
        nn.init.zeros_(self.hidden2.bias)
        self.head = nn.Linear(16, CLASSES, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        h = torch.tanh(self.hidden1(self.embedding(x)))
        return self.head(torch.tanh(self.hidden2(h)).mean(1))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 12, 2, batch_first=True)
        self.fc = nn.Linear(12, CLASSES)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 12, bidirectional=True)
        self.fc = nn.Linear(24, CLASSES)

    def forward(self, x):
        return self.fc(self.gru(x.transpose(0, 1))[0].mean(0))


class Unrolled(nn.Module):
    """One cell, one linear layer and one batch normalization, each used three times."""

    def __init__(self):
        super().__init__()
        self.front, self.bn = nn.Linear(8, 8), nn.BatchNorm1d(8)
        self.cell = nn.RNNCell(8, 8)
        self.fc = nn.Linear(8, CLASSES)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 8)
        for i in range(3):
            h = self.cell(self.bn(self.front(x[:, i])), h)
        return self.fc(h)


def floats(*shape):
    return lambda: torch.randn(SAMPLES, *shape)


def tokens(count, length):
    return lambda: torch.randint(0, count, (SAMPLES, length))


NETS = {
    "residual": (Residual, floats(3, 16, 16)),
    "transformer": (Transformer, tokens(20, 7)),
    "tied": (TiedEmbedding, tokens(CLASSES, 7)),
    "lstm": (Lstm, floats(5, 6)),
    "gru": (Gru, floats(5, 6)),
    "unrolled": (Unrolled, floats(3, 8)),
}


def export_torchscript(net, x, path):
    torch.onnx.export(net, (x,), path, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False, input_names=["x"], output_names=["y"], opset_version=17,
                      dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})


def export_torchscript_inference(net, x, path):
    """Equal tensors are stored once here, with an Identity for each other name."""
    net = copy.deepcopy(net).eval()
    torch.onnx.export(net, (x,), path, dynamo=False, do_constant_folding=False, input_names=["x"],
                      output_names=["y"], opset_version=17, dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
                      training=torch.onnx.TrainingMode.PRESERVE)


def export_dynamo(optimize):
    def export(net, x, path):
        torch.onnx.export(net, (x,), path, dynamo=True, optimize=optimize, input_names=["x"], output_names=["y"],
                          dynamic_shapes=({0: torch.export.Dim("batch")},), external_data=False)
    return export


# The parameters that a net's optimized export removes (batch normalizations, zero biases) cannot be trained.
EXPORTERS = {
    "torchscript": (export_torchscript, {}),
    "torchscript_inference": (export_torchscript_inference, {}),
    "dynamo": (export_dynamo(False), {}),
    "dynamo_optimized": (export_dynamo(True), {"residual": "batch normalizations are folded",
                                               "transformer": "biases of zeros are left out"}),
}


def train_in_pytorch(net, x, labels):
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        return losses, net.eval()(x).numpy()


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def train_in_librt(binaries, folder, backend, x):
    """The losses, and the trained net's answers in ONNX Runtime."""
    said = run(binaries / "rtconvert", folder / "net.onnx", "-o", folder / "net.rt", "--train", "--optimizer", "sgd",
               "--momentum", "0.9", "--batch-norm-unbiased")
    run(binaries / "rttrain", folder / "net.rt", "--data", folder / "data.npz", "--batch", SAMPLES, "--epochs", STEPS,
        "--lr", "0.05", "--backend", backend, "--log", folder / "log.jsonl", "--log-every", 1, "--checkpoint",
        folder / "net.ckpt", "--overwrite")
    run(binaries / "rtconvert", folder / "net.onnx", "--checkpoint", folder / "net.ckpt", "--export-onnx",
        folder / "trained.onnx")
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in records if record.get("kind") == "step"]
    # The export of a net in training mode would still normalize by batch statistics: use librt's own file for the answers.
    run(binaries / "rtconvert", folder / "net.rt", "--checkpoint", folder / "net.ckpt", "-o", folder / "trained.rt")
    np.save(folder / "x.npy", x.numpy())
    run(binaries / "rtrun", folder / "trained.rt", "--input", f"x={folder / 'x.npy'}", "--save",
        f"y={folder / 'y.npy'}", "--backend", backend)
    return losses, np.load(folder / "y.npy"), said


def onnx_runtime(path, x):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x.numpy()})[0]


def check(name, exporter, arguments):
    torch.manual_seed(7)
    make, data = NETS[name]
    net, x = make(), data()
    labels = torch.randint(0, CLASSES, (SAMPLES,))
    folder = pathlib.Path(arguments.keep or tempfile.mkdtemp()) / f"{name}-{exporter}"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "data.npz", x=x.numpy(), labels=labels.numpy())
    # An export in training mode runs the net, which updates its running statistics: training starts with those.
    net.train()
    EXPORTERS[exporter][0](net, x, str(folder / "net.onnx"))
    want, answers = train_in_pytorch(net, x, labels)
    got, mine, said = train_in_librt(arguments.bin, folder, arguments.backend, x)
    loss_error = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(got, want)) if len(got) == STEPS else np.inf
    answer_error = np.abs(mine - answers).max() / np.abs(answers).max()
    exported = "-"
    if not any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in net.modules()):
        exported = np.abs(onnx_runtime(folder / "trained.onnx", x) - answers).max() / np.abs(answers).max()
    fine = loss_error < 2e-4 and answer_error < 2e-3 and (exported == "-" or exported < 2e-3)
    exported = exported if exported == "-" else f"{exported:.1e}"
    print(f"{'ok    ' if fine else 'FAILED'} {name:12} {exporter:22} loss {want[0]:.4f} -> {want[-1]:.4f}, "
          f"off by {loss_error:.1e}, answers by {answer_error:.1e}, exported {exported}")
    if not fine:
        print(f"  PyTorch {want}\n  librt   {got}\n{said}")
    return fine


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--net", choices=NETS, action="append")
    parser.add_argument("--exporter", choices=EXPORTERS, action="append")
    parser.add_argument("--keep", help="a folder to leave the files in")
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.net or NETS:
        for exporter in arguments.exporter or EXPORTERS:
            if reason := EXPORTERS[exporter][1].get(name):
                print(f"left   {name:12} {exporter:22} {reason}")
                continue
            try:
                failed += not check(name, exporter, arguments)
            except Exception as error:
                failed += 1
                print(f"FAILED {name:12} {exporter:22} {error}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
