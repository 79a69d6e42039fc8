#!/usr/bin/env bash
# quantization.sh BIN SCRATCH: the effect of --quant-report, --max-drop and --keep-accuracy on an 8-bit classifier.
set -euo pipefail
bin=$1 scratch=$2/quantization model=zoo:lenet5
if ! command -v python3 >/dev/null; then
  echo "SKIPPED: needs python3 to make rows and labels"
  exit 77
fi
mkdir -p "$scratch"
cd "$scratch"
fail() {
  echo "FAILED: $1"
  exit 1
}

# 96 images of noise, labelled with the net's f32 predictions; 96 with a uniform background and a patch of noise.
mkdir -p rows patches
python3 - <<'EOF'
import random, struct
random.seed(1)
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (96, 28, 28, 1), }"
header += " " * (-(len(header) + 11) % 64) + "\n"
def write(folder, values):
    with open(folder + "/input.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%df" % len(values), *values))
write("rows", [random.random() * random.choice((0, 0, 1)) for _ in range(96 * 784)])
write("patches", [random.random() if i // 28 % 28 < 8 and i % 28 < 8 else 0.7 for i in range(96 * 784)])
EOF
"$bin/rtconvert" "$model" -o f32.rt >/dev/null
"$bin/rtrun" f32.rt --input input=rows/input.npy --save logits=logits.npy --quiet
python3 - <<'EOF'
import struct
data = open("logits.npy", "rb").read()[-96 * 40:]
scores = struct.unpack("<960f", data)
labels = [max(range(10), key=scores[row * 10:row * 10 + 10].__getitem__) for row in range(96)]
open("labels", "wb").write(b"\0\0\x08\x01" + struct.pack(">I", 96) + bytes(labels))
EOF
convert() { "$bin/rtconvert" "$model" -o int8.rt --precision int8 --calibrate rows --labels labels "$@"; }
matmuls() { "$bin/rtconvert" int8.rt --inspect | grep -cE ' = Quantized(Conv|MatMul)\(' || :; }
# accuracy f32|int8 FILE, in hundredths of percent
accuracy() { sed -n "s/.* \([0-9.]*\) % in $1.*/\1/p" "$2" | tr -d .; }

convert --quant-report >report
[[ $(matmuls) == 5 && $(grep -c ' dB ' report) == 5 ]] || fail "expected five matmuls and a line for each: $(cat report)"
grep ' dB ' report | awk '{ print $1 }' | sort -n -c || fail "the worst is not first: $(cat report)"
grep -q "error of the outputs 0\.0" report || fail "expected a small error of the outputs: $(cat report)"
[[ $(accuracy f32 report) == 10000 ]] || fail "the labels are those of f32: $(cat report)"

# With a uniform background most values fall on a few bins; ranges must not shrink to those.
"$bin/rtconvert" "$model" -o int8.rt --precision int8 --calibrate patches --calibration entropy --quant-report >report
grep ' dB ' report | awk '$1 < 30 { exit 1 }' || fail "entropy leaves too little of the tensors: $(cat report)"

# Ranges that clip half of the values cost much accuracy; keeping the worst nodes in f32 restores it without needing all of them.
clipped=(--calibration percentile --percentile 50)
convert "${clipped[@]}" >bad
(($(accuracy int8 bad) < 9000)) || fail "expected ranges that cost accuracy: $(cat bad)"
convert "${clipped[@]}" --max-drop 5% >kept
(($(accuracy int8 kept) >= 9500)) || fail "5 % may be lost: $(cat kept)"
left=$(matmuls)
((left < 5)) || fail "no product stays in f32: $(cat kept)"
grep -q "$((5 - left)) stay in f32" kept || fail "expected $((5 - left)) matmuls in f32: $(cat kept)"
convert "${clipped[@]}" --max-drop 0.9 >loose
[[ $(matmuls) == 5 ]] || fail "nothing must be kept where 90 % may be lost: $(cat loose)"

# The same by the output error, which needs no labels.
keep() { "$bin/rtconvert" "$model" -o int8.rt --precision int8 --calibrate rows --keep-accuracy "$1" >keep; }
keep 1
[[ $(matmuls) == 5 ]] || fail "matmuls are kept for an error of 1: $(cat keep)"
error=$(sed -n 's/.*error of the outputs //p' keep)
bound=$(awk "BEGIN { print $error * 0.6 }")
keep "$bound"
left=$(matmuls)
((left > 0 && left < 5)) || fail "expected some matmuls in f32 for $bound: $(cat keep)"
awk -v bound="$bound" -v got="$(sed -n 's/.*error of the outputs //p' keep)" 'BEGIN { exit !(got <= bound + 0.0001) }' || fail "not within $bound: $(cat keep)"
keep 1e-7
[[ $(matmuls) == 0 ]] || fail "matmuls are left for an error of 1e-7: $(cat keep)"
for option in "--keep-accuracy 0.1" "--max-drop 1%"; do
  status=0
  # shellcheck disable=SC2086 # an option and its value
  "$bin/rtconvert" "$model" -o int8.rt --precision int8 $option 2>error || status=$?
  [[ $status == 2 ]] || fail "$option without rows ends with $status"
done
