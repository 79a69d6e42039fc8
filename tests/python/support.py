"""What the tests of the Python package share: small models of the zoo, made once for each test program."""

import functools
import os
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    print("SKIPPED: NumPy is not installed for this Python")
    sys.exit(77)

import librt

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = os.path.join(ROOT, "examples", "digits.rt")
FOLDER = tempfile.TemporaryDirectory(prefix="librt-tests-")


def scratch(name):
    """A path in a folder that goes away with the program."""
    return os.path.join(FOLDER.name, name)


def main():
    """Runs the program's tests, and prints why any is skipped."""
    unittest.main(verbosity=2)


@functools.cache
def mlp():
    """The zoo's MLP for training: input f32[batch,1000], labels of two classes."""
    return librt.convert("zoo:mlp", train=True, loss="cross_entropy", optimizer="adam")


@functools.cache
def digits():
    """A session on the trained model of examples/, on the CPU."""
    return librt.Session(DIGITS, backend="cpu")


def pictures(count, seed=1):
    """Inputs for digits()."""
    return numpy.random.default_rng(seed).random((count, 28, 28, 1), dtype=numpy.float32)


def scores(outputs):
    """The only output, as an array."""
    (output,) = outputs.values()
    return numpy.asarray(output)


@functools.cache
def onnx(nodes, inputs, outputs):
    """An ONNX file: nodes (op or domain:op, inputs, outputs, attributes); values (name, element type, dims)."""
    return _model(nodes, inputs, outputs)


# --- ONNX's wire format: protobuf by hand, so that the tests need no package for it
def _varint(number):
    out = b""
    number &= (1 << 64) - 1
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _field(number, value):
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(name, elem_type, dims):
    shape = b"".join(_field(1, _field(1, dim) if isinstance(dim, int) else _field(2, dim)) for dim in dims)
    tensor = _field(1, elem_type) + _field(2, shape)
    return _field(1, name) + _field(2, _field(1, tensor))


def _node(op, inputs, outputs, attributes=()):
    data = b"".join(_field(1, name) for name in inputs) + b"".join(_field(2, name) for name in outputs)
    domain, _, op = op.rpartition(":")
    data += _field(4, op) + _field(7, domain)
    for name, value in attributes:
        if isinstance(value, int):
            data += _field(5, _field(1, name) + _field(3, value) + _field(20, 2))
        elif isinstance(value, str):
            data += _field(5, _field(1, name) + _field(4, value) + _field(20, 3))
        else:
            data += _field(5, _field(1, name) + b"".join(_field(8, one) for one in value) + _field(20, 7))
    return data


def _model(nodes, inputs, outputs):
    graph = b"".join(_field(1, _node(*node)) for node in nodes) + _field(2, "graph")
    graph += b"".join(_field(11, _value(*value)) for value in inputs)
    graph += b"".join(_field(12, _value(*value)) for value in outputs)
    domains = {node[0].rpartition(":")[0] for node in nodes} - {""}
    own = b"".join(_field(8, _field(1, domain) + _field(2, 1)) for domain in sorted(domains))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 17)) + own


FLOAT, UINT8, INT8, INT32, INT64, BOOL, FLOAT16, DOUBLE, BFLOAT16 = 1, 2, 3, 6, 7, 9, 10, 11, 16


def identity_like(elem_type, dims=("n",)):
    """y = transposed x where there are two axes, else x: of any element type."""
    op = "Transpose" if len(dims) == 2 else "Identity"
    return onnx(((op, ("x",), ("y",)),), (("x", elem_type, dims),), (("y", elem_type, dims[::-1]),))
