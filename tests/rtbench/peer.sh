#!/usr/bin/env bash
# peer.sh BIN SCRATCH SOURCES: `rtbench study --peer` with an engine that stands in for a real one, and without any.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2 sources=$3
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
study=("$bin/rtbench" study zoo:lenet5 --backend cpu --precision fp32 --budget 5s --no-save --json)

echo "--- without Python, without the engine, without ONNX: one line, and the study goes on"
"${study[@]}" --peer onnxruntime --peer-python /nonexistent/python >study.json 2>messages.txt || fail "exit code $?: $(cat messages.txt)"
[[ $(grep -c -- '--peer onnxruntime: /nonexistent/python: No such file or directory' messages.txt) == 1 ]] || fail "Python is missing: $(cat messages.txt)"
grep -q '"what": "peer onnxruntime"' study.json || fail "no omission in the study"
python3 - <<'PYTHON' || { echo "SKIPPED: numpy is not installed for python3"; exit 77; }
import numpy
PYTHON
mkdir -p broken && echo 'raise ImportError("broken on purpose")' >broken/openvino.py
PYTHONPATH=broken "${study[@]}" --peer openvino >study.json 2>messages.txt || fail "exit code $?: $(cat messages.txt)"
grep -q -- '--peer openvino: the Python package openvino is not installed (broken on purpose)' messages.txt || fail "$(cat messages.txt)"
"$bin/rtconvert" zoo:lenet5 -o lenet.rt >/dev/null
"$bin/rtbench" study lenet.rt --backend cpu --precision fp32 --budget 2s --no-save --peer onnxruntime >/dev/null 2>messages.txt || fail "a compiled file: $?"
grep -q 'peers read ONNX files; give the model as MODEL.onnx' messages.txt || fail "a compiled file: $(cat messages.txt)"
code=0
"${study[@]}" --peer nothing >/dev/null 2>messages.txt || code=$?
[[ $code == 2 ]] || fail "an unknown peer: exit code $code"

echo "--- measured in turn, outputs compared: zeros differ, which is the exit code 1"
export PYTHONPATH=$sources/tests/rtbench/fake_engine
code=0
"${study[@]}" --peer onnxruntime >study.json 2>messages.txt || code=$?
[[ $code == 1 ]] || fail "wrong outputs: exit code $code: $(cat messages.txt)"
python3 - <<'PYTHON' || fail "the study of the peer"
import json
study = json.load(open("study.json"))
device = study["devices"][-1]
assert device["id"] == "onnxruntime" and device["program"] == "onnxruntime 0.0.fake", device
series = study["series"][-1]
assert study["devices"][series["device"]] is device and series["precision"] == "fp32", series
assert [point["batch"] for point in series["points"]][:3] == [1, 2, 4], series["points"]
# It sleeps half a millisecond for each sample.
assert 0.5 <= series["points"][0]["timing"]["median_ms"] < 5 and series["points"][0]["timing"]["rounds"] >= 2, series["points"][0]
assert series["difference"]["relative"] > series["difference"]["allowed"], series["difference"]
assert any("onnxruntime 0.0.fake" in sentence["text"] and "fp32 on the same CPU" in sentence["text"] for sentence in study["verdict"]), study["verdict"]
assert not any(study["devices"][study["series"][at["series"]]["device"]] is device for at in study["pareto_infer"])
PYTHON

echo "--- an engine that refuses the model, and one that dies"
FAKE_ENGINE=refuses "${study[@]}" --peer onnxruntime >study.json 2>messages.txt || fail "refuses: $?"
grep -q -- '--peer onnxruntime: onnxruntime: RuntimeError: it does not know this model$' messages.txt || fail "refuses: $(cat messages.txt)"
FAKE_ENGINE=dies "${study[@]}" --peer onnxruntime >study.json 2>messages.txt || fail "dies: $?: $(cat messages.txt)"
grep -q 'its process ended: it is gone' study.json || fail "dies: $(grep -A3 onnxruntime study.json)"
! compgen -G "${TMPDIR:-/tmp}/rtbench-peer-*" || fail "folders of peers stayed"
