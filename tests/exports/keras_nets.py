"""Nets of Keras and functions of TensorFlow, exported by tf2onnx: what each takes, and the extents at which it is run."""

import dataclasses
import os
from typing import Callable

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy
import tensorflow as tf
import tf2onnx

L = keras.layers
IMAGE, FRAMES, BLOCKS = (None, None, None, 3), (None, None, 16), (None, 32, 32, 8)
IMAGES, FRAME_RUNS = [(1, 33, 47, 3), (2, 40, 24, 3)], [(1, 9, 16), (3, 5, 16), (2, 1, 16)]


@dataclasses.dataclass
class Net:
    name: str
    build: Callable  # gives a Keras model or a function of tensors
    shapes: list  # of each input; None is open
    runs: list  # for each run, the shape of each input
    kinds: tuple = ()  # for each input: None for floats, or the number of different integers; () if all are floats

    def kind(self, i):
        return self.kinds[i] if self.kinds else None

    def export(self, path):
        keras.utils.set_random_seed(7)
        model = self.build()
        signature = [
            tf.TensorSpec(shape, "int32" if self.kind(i) else "float32", name=f"x{i}") for i, shape in enumerate(self.shapes)
        ]
        if isinstance(model, keras.Model):
            for weight in model.weights:  # as if trained: statistics and biases are not 0 and 1
                noise = keras.random.normal(weight.shape)
                if "variance" in weight.path:
                    weight.assign(abs(noise) + 0.5)
                elif any(part in weight.path for part in ("moving_mean", "beta", "bias")):
                    weight.assign(0.1 * noise)

        @tf.function(input_signature=signature)
        def function(*tensors):
            if not isinstance(model, keras.Model):
                return model(*tensors)
            return model(list(tensors) if len(tensors) > 1 else tensors[0], training=False)

        tf2onnx.convert.from_function(function, input_signature=signature, opset=17, output_path=path)

    def tensors(self, shapes, seed):
        """Inputs of these shapes, by name."""
        random = numpy.random.default_rng(seed)
        made = {}
        for i, shape in enumerate(shapes):
            if self.kind(i):
                made[f"x{i}"] = random.integers(0, self.kind(i), shape).astype("int32")
            else:
                made[f"x{i}"] = random.standard_normal(shape).astype("float32")
        return made


def layer(name, make, shape, runs, kinds=()):
    def build():
        x = keras.Input(shape[1:], dtype="int32" if kinds else "float32")
        return keras.Model(x, make()(x))

    return Net(name, build, [shape], [[run] for run in runs], kinds)


def pair(name, make):
    """A layer of two sequences."""

    def build():
        x, y = keras.Input((None, 16)), keras.Input((None, 16))
        return keras.Model([x, y], make(x, y))

    return Net(name, build, [FRAMES, FRAMES], [[(1, 9, 16), (1, 9, 16)], [(3, 5, 16), (3, 7, 16)]])


def application(name, size=96):
    build = getattr(keras.applications, name)
    return [
        Net(name.lower(), lambda: build(weights=None, input_shape=(size, size, 3), classes=10), [(None, size, size, 3)],
            [[(1, size, size, 3)], [(3, size, size, 3)]]),
        Net(name.lower() + "_features", lambda: build(weights=None, include_top=False), [IMAGE],
            [[(1, 65, 97, 3)], [(2, 128, 96, 3)]]),
    ]  # fmt: skip


def recurrent():
    for cell in (L.LSTM, L.GRU, L.SimpleRNN):
        name = cell.__name__.lower()
        for sequences in (False, True):
            suffix = "_sequences" if sequences else ""
            yield layer(name + suffix, lambda c=cell, s=sequences: c(7, return_sequences=s), FRAMES, FRAME_RUNS)
            yield layer(f"bidirectional_{name}{suffix}",
                lambda c=cell, s=sequences: L.Bidirectional(c(7, return_sequences=s)), FRAMES, FRAME_RUNS)  # fmt: skip
        yield layer(f"{name}_backwards", lambda c=cell: c(7, return_sequences=True, go_backwards=True), FRAMES, FRAME_RUNS)


def windows():
    for padding in ("same", "valid"):
        for step in (1, 2, 3):
            options = dict(strides=step, padding=padding)
            for name, make in (
                ("conv", lambda o=options: L.Conv2D(5, 3, **o)),
                ("depthwise", lambda o=options: L.DepthwiseConv2D(3, depth_multiplier=2, **o)),
                ("conv_transpose", lambda o=options: L.Conv2DTranspose(5, 3, **o)),
                ("max_pool", lambda o=options: L.MaxPool2D(3, **o)),
                ("average_pool", lambda o=options: L.AveragePooling2D(3, **o)),
            ):
                yield layer(f"{name}_{padding}_{step}", make, IMAGE, IMAGES)
        yield layer(f"conv_{padding}_dilated", lambda p=padding: L.Conv2D(5, 3, dilation_rate=2, padding=p), IMAGE, IMAGES)
        yield layer(f"separable_{padding}", lambda p=padding: L.SeparableConv2D(5, 3, dilation_rate=2, padding=p), IMAGE, IMAGES)
    yield layer("conv_causal", lambda: L.Conv1D(5, 3, padding="causal", dilation_rate=2), FRAMES, FRAME_RUNS)


def scanned(x):
    """A loop over a tensor's columns."""
    step = lambda i, y: (i + 1, y * 0.5 + x[:, i])
    return tf.while_loop(lambda i, _: i < tf.shape(x)[1], step, [tf.constant(0), tf.zeros_like(x[:, 0])])[1]


def best_boxes(boxes, scores):
    return tf.image.non_max_suppression(boxes, scores, 5, iou_threshold=0.4, score_threshold=0.1)


OPEN = (None, None)
FUNCTIONS = [
    Net("top_k", lambda: lambda x: tf.math.top_k(x, 3).values, [OPEN], [[(1, 9)], [(3, 7)]]),
    Net("sort", lambda: lambda x: tf.argsort(x, axis=0), [OPEN], [[(1, 9)], [(3, 7)]]),
    Net("unique", lambda: lambda x: tf.unique(x)[0], [(None,)], [[(9,)], [(20,)]], (5,)),
    Net("gather_nd", lambda: tf.gather_nd, [(None, None, 4), (None, 2)], [[(3, 4, 4), (5, 2)], [(5, 3, 4), (2, 2)]], (None, 3)),
    Net("gather_rows", lambda: lambda x, i: tf.gather(x, i, batch_dims=1), [(None, None, 4), OPEN],
        [[(3, 4, 4), (3, 2)], [(5, 3, 4), (5, 3)]], (None, 3)),
    Net("segment_sum", lambda: lambda x, i: tf.math.unsorted_segment_sum(x, i, 5), [(None, 4), (None,)],
        [[(6, 4), (6,)], [(9, 4), (9,)]], (None, 5)),
    Net("boolean_mask", lambda: lambda x: tf.boolean_mask(x, tf.reduce_sum(x, 1) > 0), [OPEN], [[(4, 3)], [(6, 5)]]),
    Net("best_boxes", lambda: best_boxes, [(None, 4), (None,)], [[(9, 4), (9,)], [(20, 4), (20,)]]),
    Net("crop_and_resize", lambda: lambda x, b, i: tf.image.crop_and_resize(x, b, i, (5, 6)), [IMAGE, (None, 4), (None,)],
        [[(2, 20, 30, 3), (3, 4), (3,)], [(2, 9, 8, 3), (1, 4), (1,)]], (None, None, 2)),
    Net("while_loop", lambda: scanned, [OPEN], [[(2, 3)], [(4, 6)]]),
    Net("map_fn", lambda: lambda x: tf.map_fn(lambda row: tf.cumsum(row) * 2, x), [OPEN], [[(5, 3)], [(4, 6)]]),
    Net("cond", lambda: lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x - 1), [OPEN], [[(5, 3)], [(4, 6)]]),
    Net("space_to_batch", lambda: lambda x: tf.batch_to_space(
        tf.nn.relu(tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])), [2, 2], [[0, 0], [0, 0]]), [IMAGE],
        [[(1, 8, 12, 3)], [(2, 4, 4, 3)]]),
    Net("strided_slice", lambda: lambda x: x[:, ::-2, 1:-1, tf.newaxis], [(None, None, None)], [[(2, 7, 5)], [(3, 4, 4)]]),
    Net("symmetric_pad", lambda: lambda x: tf.pad(x, [[0, 0], [2, 1], [1, 2], [0, 0]], "SYMMETRIC"), [IMAGE], [[s] for s in IMAGES]),
    *(Net(f"resize_{method}", lambda m=method: lambda x: tf.image.resize(x, (20, 30), method=m), [IMAGE], [[s] for s in IMAGES])
      for method in ("nearest", "bilinear", "bicubic", "area")),
]  # fmt: skip

NETS = [
    *(net for name in ("MobileNetV2", "MobileNetV3Small", "ResNet50V2", "DenseNet121", "Xception", "NASNetMobile")
      for net in application(name)),
    *windows(),
    *recurrent(),
    layer("masked_lstm", lambda: keras.Sequential([L.Embedding(11, 6, mask_zero=True), L.Bidirectional(L.LSTM(7))]),
        (None, None), [(1, 9), (3, 5)], (11,)),
    layer("conv_lstm", lambda: L.ConvLSTM2D(4, 3, padding="same", return_sequences=True), (None, None, 8, 8, 3),
        [(1, 4, 8, 8, 3), (2, 3, 8, 8, 3)]),
    *(layer("activation_" + name, lambda n=name: L.Activation(n), FRAMES, FRAME_RUNS) for name in (
        "relu6", "selu", "elu", "softplus", "mish", "hard_silu", "leaky_relu", "log_softmax", "hard_shrink", "sparsemax")),
    layer("group_norm", lambda: L.GroupNormalization(4), BLOCKS, [(1, 32, 32, 8), (3, 32, 32, 8)]),
    layer("layer_norm", lambda: L.LayerNormalization(), FRAMES, FRAME_RUNS),
    pair("attention", lambda x, y: L.MultiHeadAttention(4, 8)(x, y)),
    pair("causal_attention", lambda x, y: L.MultiHeadAttention(4, 8)(x, y, use_causal_mask=True)),
    pair("grouped_attention", lambda x, y: L.GroupQueryAttention(8, 4, 2)(x, y)),
    pair("additive_attention", lambda x, y: L.AdditiveAttention()([x, y])),
    *FUNCTIONS,
]  # fmt: skip
