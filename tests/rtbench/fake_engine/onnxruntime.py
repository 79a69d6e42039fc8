"""Stands in for ONNX Runtime in tests of rtbench study --peer: it computes nothing, and its outputs are zeros."""

import os
import sys
import time

import numpy

__version__ = "0.0.fake"


class GraphOptimizationLevel:
    ORT_ENABLE_ALL = 99


class SessionOptions:
    pass


class Value:
    def __init__(self, name):
        self.name = name


class OrtValue:
    def __init__(self, array):
        self.array = array

    @staticmethod
    def ortvalue_from_numpy(array):
        return OrtValue(array)

    def numpy(self):
        return self.array


class Binding:
    def bind_ortvalue_input(self, name, value):
        self.batch = value.array.shape[0]

    def bind_output(self, name, device):
        assert device == "cpu"

    def get_outputs(self):
        return [OrtValue(numpy.zeros((self.batch, 10), numpy.float32))]


class InferenceSession:
    def __init__(self, path, options, providers):
        if os.environ.get("FAKE_ENGINE") == "refuses":
            raise RuntimeError("it does not know this model\nand says more")
        assert os.path.exists(path) and options.intra_op_num_threads > 0 and options.graph_optimization_level == 99
        print("engines print things")

    def get_inputs(self):
        return [Value("image")]

    def get_outputs(self):
        return [Value("scores")]

    def io_binding(self):
        return Binding()

    def run_with_iobinding(self, binding):
        if os.environ.get("FAKE_ENGINE") == "dies":
            print("it is gone", file=sys.stderr)
            os._exit(7)
        time.sleep(0.0005 * binding.batch)
