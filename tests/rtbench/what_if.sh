#!/usr/bin/env bash
# what_if.sh BIN SCRATCH: predictions by rtbench's command line: the catalogue, files, prices, and every kind of bad input.
set -euo pipefail
bin=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch"
export XDG_CACHE_HOME=$scratch/cache
status=0
fail() { echo "what_if.sh: $*"; status=1; }

# refused CODE TEXT ARGUMENT...: the exit code, and what the message on stderr contains; nothing on stdout.
refused() {
  local code=$1 text=$2 found=0
  shift 2
  "$bin/rtbench" "$@" >"$scratch/out" 2>"$scratch/err" || found=$?
  [[ $found == "$code" ]] || fail "rtbench $*: exit code $found, not $code"
  grep -qF -- "$text" "$scratch/err" || fail "rtbench $*: no '$text' in: $(cat "$scratch/err")"
  [[ ! -s $scratch/out ]] || fail "rtbench $*: wrote to stdout"
}

"$bin/rtbench" --catalogue >"$scratch/catalogue"
(($(wc -l <"$scratch/catalogue") >= 15)) || fail "the catalogue has fewer than 15 devices"
grep -q 'https\?://' "$scratch/catalogue" || fail "the catalogue does not list sources"

"$bin/rtbench" zoo:lenet5 --backend cpu --what-if l4,raspberry_pi_5_gpu --price l4=0.71 --electricity 0.3 >"$scratch/text" 2>"$scratch/err"
for text in PREDICTED 'NVIDIA L4' 'knee (predicted)' 'range, ms' 'the power of this device is not known' 'assumed'; do
  grep -qF "$text" "$scratch/text" || fail "no '$text' in the output"
done
grep -q 'has no measured profile' "$scratch/err" || fail "it does not say that the CPU has no measured profile"

"$bin/rtbench" zoo:lenet5 --backend cpu --what-if l4 --precision fp16 --batch 1,5 --json >"$scratch/json" 2>/dev/null
python3 - "$scratch/json" <<'PYTHON' || fail "the JSON is not as documented"
import json, sys
data = json.load(open(sys.argv[1]))
assert data["predicted"] is True and data["precision"] == "fp16"
(device,) = data["devices"]
assert device["predicted"] is True and device["basis"] == "data sheet"
assert {1, 5} <= {point["batch"] for point in device["points"]}
for point in device["points"]:
    assert point["least_ms"] < point["ms"] < point["most_ms"]
    assert point["joules_per_sample"] > 0 and point["cost_per_million"] is None
PYTHON

cat >"$scratch/mine.json" <<'JSON'
{"devices": [{"name": "mine", "title": "Mine", "kind": "CPU", "peak_tflops": {"fp32": 0.1}, "memory_bandwidth_gb_s": 10,
              "source": "https://example.org/mine"}]}
JSON
"$bin/rtbench" zoo:mlp --backend cpu --what-if "$scratch/mine.json" >"$scratch/text" 2>/dev/null
grep -q 'mine: Mine, predicted from its data sheet' "$scratch/text" || fail "a file of one's own is not read"

refused 2 "'l5' is neither a .json file nor in the catalogue, which has" zoo:lenet5 --backend cpu --what-if l5
refused 2 "no-such.json" zoo:lenet5 --backend cpu --what-if "$scratch/no-such.json"
sed 's/"memory_bandwidth_gb_s": 10/"memory_bandwidth_gb_s": 10e9/' "$scratch/mine.json" >"$scratch/unit.json"
refused 2 "unit.json: entry 1 'mine': 'memory_bandwidth_gb_s': expected a number of GB/s" zoo:lenet5 --backend cpu --what-if "$scratch/unit.json"
sed 's/"kind": "CPU", //' "$scratch/mine.json" >"$scratch/field.json"
refused 2 "field.json: entry 1 'mine': 'kind': is missing" zoo:lenet5 --backend cpu --what-if "$scratch/field.json"
sed 's/"title"/"tilte"/' "$scratch/mine.json" >"$scratch/key.json"
refused 2 "'title': is missing" zoo:lenet5 --backend cpu --what-if "$scratch/key.json"
echo '{"devices": [{}]}' >"$scratch/empty_entry.json"
refused 2 "empty_entry.json: entry 1: 'name': is missing" zoo:lenet5 --backend cpu --what-if "$scratch/empty_entry.json"
for text in '[]' '{}' '{"devices": []}' '{"devices": 3}'; do
  echo "$text" >"$scratch/none.json"
  refused 2 "none.json: expected an object with 'devices', a list of at least one entry" zoo:lenet5 --backend cpu --what-if "$scratch/none.json"
done
: >"$scratch/nothing.json"
refused 2 "nothing.json: is not valid JSON" zoo:lenet5 --backend cpu --what-if "$scratch/nothing.json"
mkdir -p "$scratch/folder.json"
refused 2 "folder.json" zoo:lenet5 --backend cpu --what-if "$scratch/folder.json"
head -c 40 "$scratch/mine.json" >"$scratch/cut.json"
refused 2 "is not valid JSON" zoo:lenet5 --backend cpu --what-if "$scratch/cut.json"
refused 2 "there is no device 't4'" zoo:lenet5 --backend cpu --what-if l4 --price t4=1
refused 2 "is given twice" zoo:lenet5 --backend cpu --what-if l4 --price l4=1,l4=2
for price in '=3' 'l4' 'l4=1,,' ','; do
  refused 2 "--price: expected DEVICE=PRICE per hour, found '" zoo:lenet5 --backend cpu --what-if l4 --price "$price"
done
for price in '' x -1 inf 1e999 '1 2'; do
  refused 2 "--price: l4: expected a number of at least 0, found '$price'" zoo:lenet5 --backend cpu --what-if l4 --price "l4=$price"
done
refused 2 "--price: expected a value, found an empty one" zoo:lenet5 --backend cpu --what-if l4 --price ""
refused 2 "--electricity: expected a value, found an empty one" zoo:lenet5 --backend cpu --what-if l4 --electricity ""
refused 2 "neither a .json file nor in the catalogue" study zoo:lenet5 --backend cpu --no-save --what-if l5
refused 2 "found 'nan'" zoo:lenet5 --backend cpu --what-if l4 --price l4=nan
refused 2 "--electricity" zoo:lenet5 --backend cpu --what-if l4 --electricity -1
refused 2 "--what-if" zoo:lenet5 --price cpu=1
refused 2 "there is no device 't4'; the devices are l4, cpu:0" study zoo:lenet5 --backend cpu --no-save --what-if l4 --price t4=1

# In a study: prices of predicted devices, beside those of measured ones.
"$bin/rtbench" study zoo:lenet5 --backend cpu --precision fp32 --budget 3s --no-save --what-if l4,raspberry_pi_5_gpu --price cpu=0.17,l4=0.71 \
  --json >"$scratch/study.json" 2>"$scratch/err" || fail "a study with prices: $(cat "$scratch/err")"
python3 - "$scratch/study.json" <<'PYTHON' || fail "prices of predicted devices in a study"
import json, sys
study = json.load(open(sys.argv[1]))
devices = {device["id"]: device for device in study["devices"]}
assert devices["cpu:0"]["price_per_hour"] == 0.17 and devices["l4"]["price_per_hour"] == 0.71
for series in study["series"]:
    device = study["devices"][series["device"]]
    for point in series["points"]:
        cost = point["cost"]
        if device["id"] == "raspberry_pi_5_gpu":
            assert cost.get("per_million_samples") is None and cost["reason"] == "no --price for raspberry_pi_5_gpu", cost
        else:
            expected = device["price_per_hour"] / 3600 / point["samples_per_second"] * 1e6
            assert abs(cost["per_million_samples"] - expected) < 1e-6 * expected, (device["id"], cost, expected)
texts = [sentence["text"] for sentence in study["verdict"]]
assert any(text.startswith("At full load a million samples are predicted to cost ") and " on l4; measured, they cost " in text for text in texts), texts
assert not any("predicted to cost" in text and "raspberry" in text for text in texts), texts
PYTHON
refused 2 "no device has a measured profile" zoo:lenet5 --backend cpu --what-if here
exit $status
