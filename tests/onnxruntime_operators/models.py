#!/usr/bin/env python3
"""models.py BIN SHARED [--backend NAME]: models as ONNX Runtime's optimizer and quantizers rewrite them, in ONNX Runtime and
in rtconvert + rtrun of the folder BIN. SHARED/data/models holds folders with model.onnx and test_data_set_*."""
import argparse
import glob
import logging
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

import decoder
import harness


class Data(CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def data_of(folder, model):
    """The inputs of each data set."""
    initializers = {x.name for x in model.graph.initializer}
    names = [x.name for x in model.graph.input if x.name not in initializers]
    feeds = []
    for data in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
        paths = [os.path.join(data, f"input_{i}.pb") for i in range(len(names))]
        if all(map(os.path.exists, paths)):
            feeds.append({n: numpy_helper.to_array(onnx.load_tensor(p)) for n, p in zip(names, paths)})
    return feeds


def optimized(source, target, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, "ORT_ENABLE_" + level)
    options.optimized_model_filepath = target
    options.log_severity_level = 4
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def fused(source, target):
    from onnxruntime.transformers import optimizer
    optimizer.optimize_model(source, model_type="bert", opt_level=0).save_model_to_file(target)


def four_bits(source, target, symmetric):
    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=16, is_symmetric=symmetric)
    quantizer.process()
    onnx.save(quantizer.model.model, target)


def rewritten(source, feeds, folder):
    """(name, path, rtol of the range) of each way; a way that fails is one that this model has not."""
    base = os.path.join(folder, "base.onnx")
    optimized(source, base, "BASIC")
    ways = {
        "basic": lambda t: optimized(source, t, "BASIC"),
        "extended": lambda t: optimized(source, t, "EXTENDED"),
        "transformers": lambda t: fused(source, t),
        "dynamic": lambda t: quantize_dynamic(base, t, weight_type=QuantType.QInt8, reduce_range=True),
        "dynamic u8": lambda t: quantize_dynamic(base, t, weight_type=QuantType.QUInt8),
        "dynamic of extended": lambda t: quantize_dynamic(os.path.join(folder, "extended.onnx"), t, weight_type=QuantType.QUInt8),
        "static": lambda t: quantize_static(base, t, Data(feeds), quant_format=QuantFormat.QOperator, per_channel=True,
                                            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, reduce_range=True),
        "static extended": lambda t: optimized(os.path.join(folder, "static.onnx"), t, "EXTENDED"),
        "static qdq": lambda t: quantize_static(base, t, Data(feeds), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                                                weight_type=QuantType.QInt8, reduce_range=True),
        "static qdq extended": lambda t: optimized(os.path.join(folder, "static qdq.onnx"), t, "EXTENDED"),
        "4 bits": lambda t: four_bits(base, t, True),
        "4 bits, zero points": lambda t: four_bits(base, t, False),
    }
    for name, way in ways.items():
        target = os.path.join(folder, name + ".onnx")
        try:
            way(target)
        except Exception as error:
            print(f"    {name}: not made: {str(error).splitlines()[0][:120] if str(error) else type(error).__name__}")
            continue
        yield name, target


def check(options, title, path, feeds, tolerance):
    """Whether it was equal, or None where ONNX Runtime does not run it."""
    model = onnx.load(path)
    operators = sorted({n.op_type for n in model.graph.node if n.domain not in ("", "ai.onnx")} |
                       {n.op_type for n in model.graph.node if n.op_type.startswith(("QLinear", "SimplifiedLayer"))})
    try:
        runtime = harness.session(path)
        names = [o.name for o in runtime.get_outputs()]
        results = dict(zip(names, runtime.run(names, feeds)))
    except Exception as error:
        print(f"    {title}: ONNX Runtime: {str(error).splitlines()[0][:160]}")
        return None
    span = max(float(np.abs(x).max()) if x.size else 0 for x in results.values())
    try:
        harness.compare(options.binaries, path, feeds, results, options.backend, tolerance * max(span, 1e-3), tolerance)
    except harness.Failure as failure:
        print(f"    FAILED {title} {operators}\n        {str(failure)[:700]}")
        return False
    print(f"    equal {title} {operators}")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries")
    parser.add_argument("shared")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    folders = {os.path.basename(os.path.dirname(p)) if "llm_" not in p else p.split("/")[-3] + "_" + p.split("/")[-2]: os.path.dirname(p)
               for p in sorted(glob.glob(os.path.join(options.shared, "data/models/**/model.onnx"), recursive=True))}
    bad = 0
    for name, folder in folders.items():
        if options.only not in name:
            continue
        source = os.path.join(folder, "model.onnx")
        feeds = data_of(folder, onnx.load(source))
        print(name if feeds else name + ": no data", flush=True)
        if not feeds:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            for way, path in rewritten(source, feeds, scratch):
                bytes_ = way.startswith(("dynamic", "static"))
                bad += check(options, way, path, feeds[0], 0.05 if bytes_ else 1e-3) is False
                sys.stdout.flush()
    if not options.only or options.only in "decoder":
        bad += decoder.check_all(options, check)
    print(f"{bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
