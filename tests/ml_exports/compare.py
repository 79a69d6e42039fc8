"""Compares exported models and random nodes with ONNX Runtime; see run."""
import argparse
import sys
import time
import warnings

import numpy as np
import onnxruntime

import backends
import models
import nodes

warnings.filterwarnings("ignore")
onnxruntime.set_default_logger_severity(3)

# The pairwise coupling of SVC's probabilities is solved exactly here, but only iteratively in ONNX Runtime.
LOOSE = {"probabilities": 4e-3}


def tolerance(name):
    for part, atol in LOOSE.items():
        if part in name:
            return {"rtol": 1e-3, "atol": atol}
    return {}


def check(name, export, feeds, options, counts):
    try:
        model = export()
    except Exception as error:  # the exporter's own limits
        counts["not exported"] += 1
        print(f"-    {name}: not exported: {str(error).splitlines()[0][:150]}")
        return
    begin = time.time()
    try:
        worst, _ = backends.compare(model, feeds(model), options.build, options.backends.split(","), **tolerance(name))
        counts["equal"] += 1
        print(f"ok   {name}: largest error {worst:.1e}, {time.time() - begin:.1f} s", flush=True)
    except backends.Different as error:
        counts["different"] += 1
        print(f"FAIL {name}: {error}", flush=True)
    except Exception as error:  # ONNX Runtime refuses the model
        counts["refused by ONNX Runtime"] += 1
        print(f"-    {name}: {str(error).splitlines()[0][:150]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--backends", default="cpu")
    parser.add_argument("--only", default="", help="models with this text in their names")
    parser.add_argument("--batches", default="1,2,37")
    parser.add_argument("--nodes", type=int, default=100, help="random nodes of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts = {"equal": 0, "different": 0, "not exported": 0, "refused by ONNX Runtime": 0}
    batches = [int(rows) for rows in options.batches.split(",")]
    for name, export, data in models.sklearn_models() + models.boosted_models():
        if options.only in name:
            check(name, export, lambda model, data=data: [{model.graph.input[0].name: data[:rows]} for rows in batches], options, counts)
    for name, export, feeds in nodes.random_nodes(options.nodes, options.seed):
        if options.only in name:
            check(name, export, lambda model, feeds=feeds: feeds, options, counts)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return counts["different"] != 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
