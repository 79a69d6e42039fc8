#!/usr/bin/env python3
"""compare.py BIN [--backend NAME] [--only TEXT] [--verbose]: operators that ONNX Runtime's optimizer and quantizers write,
one node each with random inputs, in ONNX Runtime and in rtconvert + rtrun of the folder BIN."""
import argparse
import collections
import sys

import numpy as np

import attention_cases
import decoder_cases
import float_cases
import harness
import quantized_cases


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    all_cases = [case for part in (float_cases, attention_cases, decoder_cases, quantized_cases) for case in part.cases(rng)]
    for case in all_cases:  # the node's attribute of that name, not the model's
        if "opset_" in case.attributes:
            case.attributes["opset"] = case.attributes.pop("opset_")
    equal, failed, skipped = collections.Counter(), collections.Counter(), collections.Counter()
    for case in [c for c in all_cases if options.only in c.title()][:: options.every]:
        for opened in (False, True) if case.symbols else (False,):
            title = case.title() + (" open" if opened else "")
            try:
                result = harness.check_case(options.binaries, case, options.backend, opened)
            except harness.Failure as failure:
                failed[case.op] += 1
                print("FAILED", title, "\n   ", str(failure)[:600].replace("\n", "\n    "), flush=True)
                continue
            if result is True:
                equal[case.op] += 1
                if options.verbose:
                    print("equal", title, flush=True)
            else:
                skipped[case.op] += 1
                if options.verbose:
                    print("skipped", title, result, flush=True)
    for op in sorted({*equal, *failed, *skipped}):
        print(f"{op:34} equal {equal[op]:4}  failed {failed[op]:4}  refused by ONNX Runtime {skipped[op]:4}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
