"""convert: sources, options, reports as data, errors with their nodes, calibration with arrays, Ctrl-C; from_torch."""

import contextlib
import os
import pathlib
import signal
import sys
import threading
import time
import types
import unittest
from unittest import mock

import numpy
from support import FLOAT, INT64, main, onnx, scores, scratch

import librt

try:
    import onnx as onnx_package  # what torch.onnx.export needs
    import torch
except ImportError:
    torch = onnx_package = None


def relu():
    return onnx((("Relu", ("x",), ("y",)),), (("x", FLOAT, ("batch", 3)),), (("y", FLOAT, ("batch", 3)),))


class Sources(unittest.TestCase):
    def test_bytes_path_and_zoo(self):
        path = pathlib.Path(scratch("relu.onnx"))
        path.write_bytes(relu())
        x = numpy.float32([[-1, 0, 2]])
        for source in (relu(), bytearray(relu()), memoryview(relu()), path, str(path)):
            model = librt.convert(source)
            self.assertEqual(scores(librt.Session(model, backend="cpu")(x)).tolist(), [[0, 0, 2]])
        self.assertEqual(librt.convert("zoo:lenet5").entries, ["infer"])

    def test_output(self):
        out = pathlib.Path(scratch("relu.rt"))
        model = librt.convert(relu(), out)
        self.assertEqual((model.path, model.report["output"]), (str(out), str(out)))
        self.assertEqual(out.stat().st_size, model.report["file_bytes"])
        with self.assertRaises(librt.Error):
            librt.convert(relu(), scratch("no such folder/relu.rt"))

    def test_report(self):
        report = librt.convert("zoo:lenet5", dim={"batch": 4}).report
        self.assertEqual((report["parameters"], report["precision"]["asked"]), (61706, "fp32"))
        self.assertGreater(report["flops"], 0)
        self.assertEqual(report["backends"]["cpu"]["host"], 0)
        self.assertEqual((report["warnings"], report["verified"], report["output"]), ([], [], None))
        self.assertTrue(all(line["equal"] for line in librt.convert(relu(), verify=True).report["verified"]))
        self.assertIsNone(librt.load(librt.convert(relu(), scratch("r.rt")).path).report)


class Options(unittest.TestCase):
    def test_precision_and_calibration(self):
        random = numpy.random.default_rng(1)
        rows = {"input": random.random((16, 28, 28, 1), dtype=numpy.float32)}
        exact = scores(librt.Session(librt.convert("zoo:lenet5"), backend="cpu")(rows["input"]))
        for options in ({"precision": "bf16"}, {"precision": "int8", "calibrate": rows},
                        {"precision": "int8-weights", "group_size": 16}):
            with self.subTest(options["precision"]):
                model = librt.convert("zoo:lenet5", **options)
                self.assertEqual(model.report["precision"]["asked"], options["precision"])
                got = scores(librt.Session(model, backend="cpu")(rows["input"]))
                self.assertGreater(numpy.abs(got - exact).max(), 0)
                self.assertLess(numpy.abs(got - exact).max(), 0.2 * numpy.abs(exact).max())
        self.assertEqual(librt.convert("zoo:lenet5", precision="int8", calibrate=rows).report["quantization"]["rows"], 16)
        runs = [{"input": rows["input"][:3]}, {"input": rows["input"][3:]}]
        self.assertEqual(librt.convert("zoo:lenet5", precision="int8", calibrate=runs).report["quantization"]["rows"], 16)

    def test_training_options(self):
        model = librt.convert("zoo:mlp", train=True, loss="mse", optimizer="sgd", momentum=0.5, trainable=["fc3.*"],
                              lora=None)
        self.assertEqual(model.metadata["train.loss"], "mse")
        self.assertEqual(sorted(name for name, kind in model.state_kinds.items() if kind == "parameter"),
                         ["fc3.bias", "fc3.weight"])
        adapters = librt.convert("zoo:mlp", train=True, lora={"rank": 2, "alpha": 4.0, "targets": ["fc1*"]})
        self.assertEqual(adapters.report["adapters"]["weights"], ["fc1.weight"])

    def test_constants(self):
        reshape = onnx((("Reshape", ("x", "to"), ("y",)),), (("x", FLOAT, ("n",)), ("to", INT64, (2,))),
                       (("y", FLOAT, ("a", "b")),))
        for value in ([2, -1], numpy.int64([2, -1])):
            model = librt.convert(reshape, constant={"to": value})
            self.assertEqual(list(model.inputs()), ["x"])
            y = librt.Session(model, backend="cpu")(numpy.arange(6, dtype=numpy.float32))["y"]
            self.assertEqual(y.shape, (2, 3))


class Errors(unittest.TestCase):
    def test_unsupported_nodes(self):
        strange = onnx((("Relu", ("x",), ("t",)), ("Frobnicate", ("t",), ("y",))), (("x", FLOAT, (3,)),), (("y", FLOAT, (3,)),))
        with self.assertRaisesRegex(librt.Unsupported, "Frobnicate") as caught:
            librt.convert(strange)
        self.assertEqual([node["op"] for node in caught.exception.nodes], ["Frobnicate"])
        self.assertEqual(caught.exception.status, "unsupported")

    def test_what_is_wrong(self):
        for call, kind, text in (
            (lambda: librt.convert(b"not an ONNX file"), librt.InvalidModel, "^the model: "),
            (lambda: librt.convert("missing.onnx"), librt.NotFound, "missing.onnx"),
            (lambda: librt.convert("zoo:nothing"), librt.NotFound, "nothing"),
            (lambda: librt.convert(relu(), precision="fp8"), librt.InvalidArgument, "fp8"),
            (lambda: librt.convert(relu(), colour=1), librt.InvalidArgument, "colour"),
            (lambda: librt.convert(relu(), loss="mse"), librt.InvalidArgument, "is for --train"),
            (lambda: librt.convert(relu(), calibrate={}), librt.InvalidArgument, "int8"),
            (lambda: librt.convert(relu(), dim={"rows": 2}), librt.InvalidModel, "the model has batch"),
            (lambda: librt.convert(relu(), json=True), librt.InvalidArgument, "json"),
            (lambda: librt.convert("zoo:mlp", "mlp.onnx"), librt.InvalidArgument, "expected a .rt file, found mlp.onnx"),
            (lambda: librt.convert(5), TypeError, "int"),
        ):
            with self.assertRaisesRegex(kind, text):
                call()

    def test_ctrl_c(self):
        """The program is ended with the call, and leaves no files."""
        before = set(os.listdir(os.path.dirname(scratch(""))))
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            librt.convert("zoo:resnet50", verify=True)  # a minute
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(set(os.listdir(os.path.dirname(scratch("")))), before)


class FromTorchArguments(unittest.TestCase):
    """What is asked of torch.onnx.export, with a stand-in for PyTorch; FromTorch has PyTorch itself."""

    def setUp(self):
        self.calls = []

        class Tensor:
            def dim(self):
                return 2

        class Module:
            training = True

            def train(self, mode):
                self.training = mode

        def export(module, inputs, file, **settings):
            self.calls.append((module.training, inputs, settings))
            if settings.get("fails"):
                raise RuntimeError("no export")
            file.write(relu())

        self.torch = types.ModuleType("torch")
        self.torch.Tensor, self.torch.no_grad = Tensor, contextlib.nullcontext
        self.torch.onnx = types.SimpleNamespace(export=export, TrainingMode=types.SimpleNamespace(TRAINING="training"))
        self.module, self.tensor = Module(), Tensor()
        patch = mock.patch.dict(sys.modules, torch=self.torch)
        patch.start()
        self.addCleanup(patch.stop)

    def test_settings(self):
        model = librt.from_torch(self.module, self.tensor, input_names=["x"], output_names=["y"])
        self.assertEqual((model.entries, list(model.inputs())), (["infer"], ["x"]))
        (training, inputs, settings), = self.calls
        self.assertEqual((training, inputs, self.module.training), (False, (self.tensor,), True))
        self.assertEqual(settings["dynamic_axes"], {"x": {0: "batch"}})
        self.assertEqual((settings["input_names"], settings["output_names"]), (["x"], ["y"]))
        self.assertNotIn("training", settings)

        librt.from_torch(self.module, (self.tensor,), scratch("torch.rt"), dynamic_batch=False,
                         export={"opset_version": 17})
        self.assertEqual((self.calls[1][2]["opset_version"], self.calls[1][2]["input_names"]), (17, ["input"]))
        self.assertNotIn("dynamic_axes", self.calls[1][2])
        self.assertTrue(os.path.exists(scratch("torch.rt")))

    def test_errors(self):
        with self.assertRaisesRegex(librt.InvalidArgument, "1 inputs, but 2 input_names"):
            librt.from_torch(self.module, self.tensor, input_names=["a", "b"])
        with self.assertRaisesRegex(RuntimeError, "no export"):
            librt.from_torch(self.module, self.tensor, train=True, export={"fails": True})
        self.assertEqual((self.calls[0][0], self.calls[0][2]["training"]), (True, "training"))
        self.module.training = False
        with self.assertRaisesRegex(RuntimeError, "no export"):
            librt.from_torch(self.module, self.tensor, train=True, export={"fails": True})
        self.assertFalse(self.module.training)
        with mock.patch.dict(sys.modules, torch=None), self.assertRaisesRegex(ImportError, "pip install torch onnx"):
            librt.from_torch(self.module, self.tensor)


@unittest.skipIf(torch is None, "PyTorch or onnx is not installed")
class FromTorch(unittest.TestCase):
    def test_inference_and_training(self):
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        example = torch.randn(2, 4)
        net.train()
        model = librt.from_torch(net, example, input_names=["x"])
        self.assertTrue(net.training)
        x = torch.randn(7, 4)
        net.eval()
        got = torch.from_dlpack(librt.Session(model, backend="cpu")(x)["output"])
        torch.testing.assert_close(got, net(x).detach(), rtol=1e-4, atol=1e-5)

        model = librt.from_torch(net, example, input_names=["x"], train=True, loss="cross_entropy", optimizer="sgd",
                                 momentum=0.0, batch_norm_unbiased=True)
        trainer = librt.Trainer(model, backend="cpu", learning_rate=0.1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        labels = torch.randint(0, 3, (7,))
        net.train()
        for _ in range(5):
            loss = torch.nn.functional.cross_entropy(net(x), labels)
            self.assertAlmostEqual(trainer.step((x, labels)), float(loss), places=4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def test_the_newer_exporter(self):
        """And several inputs, one of them with integers; a convolution."""
        try:
            import onnxscript  # noqa: F401
        except ImportError:
            self.skipTest("onnxscript is not installed")

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.conv = torch.nn.Embedding(5, 3), torch.nn.Conv2d(3, 4, 3, stride=2)

            def forward(self, image, kind):
                return torch.relu(self.conv(image + self.table(kind)[:, :, None, None])).mean((2, 3))

        net = Net().eval()
        example = torch.randn(2, 3, 8, 8), torch.tensor([1, 4])
        images, kinds = torch.randn(5, 3, 8, 8), torch.tensor([0, 1, 2, 3, 4])
        for export in (None, {"dynamo": True, "verbose": False}):
            model = librt.from_torch(net, example, input_names=["image", "kind"], export=export)
            got = librt.Session(model, backend="cpu")(image=images, kind=kinds)["output"]
            torch.testing.assert_close(torch.from_dlpack(got), net(images, kinds).detach(), rtol=1e-4, atol=1e-5)

    def test_a_data_loader(self):
        net = torch.nn.Linear(4, 2)
        model = librt.from_torch(net, torch.randn(1, 4), train=True, loss="cross_entropy")
        torch.manual_seed(2)
        x = torch.randn(64, 4)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long()), batch_size=16)
        trainer = librt.Trainer(model, backend="cpu", learning_rate=0.5)
        rows = trainer.fit(loader, epochs=5, validation=loader)
        self.assertLess(rows[-1]["loss"], rows[0]["loss"])
        self.assertGreater(rows[-1]["validation_accuracy"], 0.9)


if __name__ == "__main__":
    main()
