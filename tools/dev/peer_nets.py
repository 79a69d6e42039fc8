#!/usr/bin/env python3
"""The nets of compare_peers with random weights, written as ONNX, and their inputs.

    peer_nets.py FOLDER NET BATCH KIND   writes FOLDER/NET.onnx (KIND int8: also NET-int8.onnx) and NET-BATCH.npz, where they are missing
    peer_nets.py --list                  their names
"""
import os
import sys
import warnings

VISION = ["resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny",
          "vit_b_16", "squeezenet1_1", "densenet121", "shufflenet_v2_x1_0", "swin_t"]
# Own nets: the input without the batch; a number is the count of token ids.
OWN = {"unet": (3, 256, 256), "yolo": (3, 320, 320), "speech": (1, 80, 200), "gru": (100, 64), "perceptron": (1000,),
       "resnet18_cifar": (3, 32, 32), "gpt_6x384": 256, "bert_layer": 128, "bert_base": 128, "gpt2_small": 64}


def own_net(name):
    import torch
    from torch import nn
    from torch.nn import functional

    def unit(inputs, outputs, kernel=1, stride=1, activation=nn.SiLU):
        return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs),
                             activation())

    class UNet(nn.Module):
        def __init__(self, width=32):
            super().__init__()

            def block(inputs, outputs):
                return nn.Sequential(unit(inputs, outputs, 3, 1, nn.ReLU), unit(outputs, outputs, 3, 1, nn.ReLU))

            sizes = [width << level for level in range(4)]
            self.down = nn.ModuleList(block(3 if i == 0 else sizes[i - 1], sizes[i]) for i in range(4))
            self.up = nn.ModuleList(nn.ConvTranspose2d(sizes[i + 1], sizes[i], 2, 2) for i in range(3))
            self.merge = nn.ModuleList(block(2 * sizes[i], sizes[i]) for i in range(3))
            self.last = nn.Conv2d(width, 2, 1)

        def forward(self, x):
            kept = []
            for level, block in enumerate(self.down):
                x = block(functional.max_pool2d(x, 2) if level else x)
                kept.append(x)
            for level in (2, 1, 0):
                x = self.merge[level](torch.cat([self.up[level](x), kept[level]], 1))
            return self.last(x)

    class Split(nn.Module):
        """Two halves, one of which goes through convolutions; all of it is joined."""

        def __init__(self, inputs, outputs, depth=1, residual=True):
            super().__init__()
            self.half, self.residual = outputs // 2, residual
            self.first, self.last = unit(inputs, outputs), unit((2 + depth) * self.half, outputs)
            self.steps = nn.ModuleList(nn.Sequential(unit(self.half, self.half, 3), unit(self.half, self.half, 3))
                                       for _ in range(depth))

        def forward(self, x):
            parts = list(self.first(x).split((self.half, self.half), 1))
            for step in self.steps:
                parts.append(step(parts[-1]) + parts[-1] if self.residual else step(parts[-1]))
            return self.last(torch.cat(parts, 1))

    class Yolo(nn.Module):
        """A detector in the manner of YOLOv8n: three scales, a top-down and a bottom-up path."""

        def __init__(self):
            super().__init__()
            self.fine = nn.Sequential(unit(3, 16, 3, 2), unit(16, 32, 3, 2), Split(32, 32), unit(32, 64, 3, 2), Split(64, 64, 2))
            self.middle = nn.Sequential(unit(64, 128, 3, 2), Split(128, 128, 2))
            self.coarse = nn.Sequential(unit(128, 256, 3, 2), Split(256, 256))
            self.squeeze, self.pooled = unit(256, 128), unit(512, 256)
            self.top = nn.ModuleList([Split(384, 128, 1, False), Split(192, 64, 1, False)])
            self.stride = nn.ModuleList([unit(64, 64, 3, 2), unit(128, 128, 3, 2)])
            self.bottom = nn.ModuleList([Split(192, 128, 1, False), Split(384, 256, 1, False)])
            self.heads = nn.ModuleList(nn.Sequential(unit(width, 80, 3), unit(80, 80, 3), nn.Conv2d(80, 144, 1))
                                       for width in (64, 128, 256))

        def forward(self, x):
            fine = self.fine(x)
            middle = self.middle(fine)
            pools = [self.squeeze(self.coarse(middle))]
            for _ in range(3):
                pools.append(functional.max_pool2d(pools[-1], 5, 1, 2))
            coarse = self.pooled(torch.cat(pools, 1))
            middle = self.top[0](torch.cat([functional.interpolate(coarse, scale_factor=2.0), middle], 1))
            fine = self.top[1](torch.cat([functional.interpolate(middle, scale_factor=2.0), fine], 1))
            middle = self.bottom[0](torch.cat([self.stride[0](fine), middle], 1))
            coarse = self.bottom[1](torch.cat([self.stride[1](middle), coarse], 1))
            scales = (fine, middle, coarse)
            return torch.cat([head(scale).flatten(2) for head, scale in zip(self.heads, scales)], 2).sigmoid()

    class Speech(nn.Module):
        """A convolutional front end, three bidirectional LSTMs, scores of letters."""

        def __init__(self, units=256):
            super().__init__()
            self.front = nn.Sequential(nn.Conv2d(1, 32, (11, 5), (2, 2), (5, 2)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20),
                                       nn.Conv2d(32, 32, (11, 5), (2, 1), (5, 2)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20))
            self.layers = nn.LSTM(32 * 20, units, 3, bidirectional=True)
            self.last = nn.Linear(2 * units, 29)

        def forward(self, x):
            x = self.front(x).flatten(1, 2).permute(2, 0, 1)
            return self.last(self.layers(x)[0]).log_softmax(-1).transpose(0, 1)

    class Gru(nn.Module):
        def __init__(self, units=256):
            super().__init__()
            self.layers, self.last = nn.GRU(64, units, 2, batch_first=True), nn.Linear(units, 64)

        def forward(self, x):
            return self.last(self.layers(x)[0])

    class Layer(nn.Module):
        def __init__(self, width, heads, norm_first):
            super().__init__()
            self.heads, self.norm_first = heads, norm_first
            self.query_key_value, self.attended = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attention(self, x, mask):
            batch, length, width = x.shape
            parts = self.query_key_value(x).split(width, 2)
            query, key, value = (part.reshape(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
            scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5
            scores = scores if mask is None else scores + mask[:length, :length]
            return self.attended((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width))

        def forward(self, x, mask):
            perceptron = lambda each: self.narrow(functional.gelu(self.wide(each)))
            if self.norm_first:
                x = x + self.attention(self.norms[0](x), mask)
                return x + perceptron(self.norms[1](x))
            x = self.norms[0](x + self.attention(x, mask))
            return self.norms[1](x + perceptron(x))

    class Transformer(nn.Module):
        def __init__(self, layers, width, heads, vocabulary, longest, causal):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Parameter(torch.randn(longest, width) * 0.02)
            self.layers = nn.ModuleList(Layer(width, heads, causal) for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            self.last = nn.Linear(width, vocabulary, bias=False) if causal else None
            self.register_buffer("mask", torch.full((longest, longest), -1e9).triu(1) if causal else None)

        def forward(self, ids):
            x = self.tokens(ids) + self.positions[: ids.shape[1]]
            x = x if self.last is not None else self.norm(x)
            for layer in self.layers:
                x = layer(x, self.mask)
            return x if self.last is None else self.last(self.norm(x))

    if name == "resnet18_cifar":
        import torchvision
        net = torchvision.models.resnet18(num_classes=10)
        net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        return net
    return {"unet": UNet, "yolo": Yolo, "speech": Speech, "gru": Gru,
            "perceptron": lambda: nn.Sequential(nn.Linear(1000, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 2)),
            "gpt_6x384": lambda: Transformer(6, 384, 6, 256, 256, True),
            "bert_layer": lambda: Transformer(1, 768, 12, 30522, 512, False),
            "bert_base": lambda: Transformer(12, 768, 12, 30522, 512, False),
            "gpt2_small": lambda: Transformer(12, 768, 12, 50257, 1024, True)}[name]()


def write_net(name, path):
    import torch
    warnings.filterwarnings("ignore")  # of traces
    torch.manual_seed(0)
    if name in VISION:
        import torchvision
        net, shape = getattr(torchvision.models, name)(weights=None), (3, 224, 224)
    else:
        net, shape = own_net(name), OWN[name]
    example = torch.randint(0, 256, (1, shape)) if isinstance(shape, int) else torch.randn(1, *shape)
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        torch.onnx.export(net.eval(), (example,), path, input_names=["x"], output_names=["y"], opset_version=17, dynamo=False,
                          dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})


def write_inputs(name, batch, path):
    import numpy
    random, shape = numpy.random.default_rng(0), OWN.get(name, (3, 224, 224))
    x = random.integers(0, 256, (batch, shape)) if isinstance(shape, int) else random.standard_normal((batch, *shape), numpy.float32)
    numpy.savez(path, x=x)


def quantize(name, source, path):
    import numpy
    from onnxruntime import quantization

    class Samples(quantization.CalibrationDataReader):
        def __init__(self):
            random, shape = numpy.random.default_rng(1), OWN.get(name, (3, 224, 224))
            ids = isinstance(shape, int)
            self.left = [random.integers(0, 256, (1, shape)) if ids else random.standard_normal((1, *shape), numpy.float32)
                         for _ in range(8)]

        def get_next(self):
            return {"x": self.left.pop()} if self.left else None

    quantization.quantize_static(source, path, Samples(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(VISION + list(OWN)))
        return 0
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    folder, name, batch, kind = sys.argv[1:]
    base = os.path.join(folder, name)
    inputs = f"{base}-{batch}.npz"
    if not os.path.exists(base + ".onnx"):
        write_net(name, base + ".onnx")
    if kind == "int8" and not os.path.exists(base + "-int8.onnx"):
        quantize(name, base + ".onnx", base + "-int8.onnx")
    if not os.path.exists(inputs):
        write_inputs(name, int(batch), inputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
