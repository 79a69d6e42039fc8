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

# A Pad that fills with minus infinity before a MaxPool that cannot take it over: what reads it stays in f32.
python3 - <<'EOF'
import math, os, random, struct, zipfile
def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])
def field(number, value):
    if isinstance(value, int):
        return varint(8 * number) + varint(value & (1 << 64) - 1)
    value = value.encode() if isinstance(value, str) else value
    return varint(8 * number + 2) + varint(len(value)) + value
def tensor(name, dims, kind, form, values):
    data = struct.pack("<%d%s" % (len(values), form), *values)
    return field(5, b"".join(field(1, d) for d in dims) + field(2, kind) + field(8, name) + field(9, data))
def node(op, inputs, output, **attributes):
    text = b"".join(field(1, i) for i in inputs) + field(2, output) + field(3, output) + field(4, op)
    for name, value in attributes.items():
        numbers = field(3, value) + field(20, 2) if isinstance(value, int) else b"".join(field(8, v) for v in value) + field(20, 7)
        text += field(5, field(1, name) + numbers)
    return field(1, text)
def value(name, dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))
random.seed(2)
noise = lambda n: [random.gauss(0, 1) for _ in range(n)]
graph = (node("Conv", ["x", "a"], "first") + node("Pad", ["first", "pads", "lowest"], "padded") +
         node("MaxPool", ["padded"], "pooled", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1) +
         node("Conv", ["pooled", "b"], "y") + field(2, "g") +
         tensor("a", [8, 3, 3, 3], 1, "f", noise(216)) + tensor("b", [8, 8, 1, 1], 1, "f", noise(64)) +
         tensor("pads", [8], 7, "q", [0, 0, 1, 1, 0, 0, 1, 1]) + tensor("lowest", [], 1, "f", [float("-inf")]) +
         field(11, value("x", [1, 3, 12, 12])) + field(12, value("y", [1, 8, 6, 6])))
open("padded.onnx", "wb").write(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))
def npy(*shape):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    count = math.prod(shape)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%df" % count, *noise(count))
def folder(name, **arrays):
    os.makedirs(name, exist_ok=True)
    for array, shape in arrays.items():
        open(name + "/" + array + ".npy", "wb").write(npy(*shape))
folder("padded", x=(4, 3, 12, 12))

# A matmul of rows, times a vector, plus a scalar.
graph = (node("MatMul", ["x", "w"], "rows") + node("Mul", ["rows", "each"], "scaled") + node("Add", ["scaled", "all"], "y") + field(2, "g") +
         tensor("w", [16, 3], 1, "f", noise(48)) + field(11, value("x", [2, 16])) + field(11, value("each", [3])) + field(11, value("all", [])) +
         field(12, value("y", [2, 3])))
open("mixed.onnx", "wb").write(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))
folder("shared", x=(6, 16), each=(3,), all=())
folder("own", x=(6, 16), each=(9,), all=())
folder("few", x=(6, 16), each=(6,), all=())
folder("one", x=(2, 16), each=(3,), all=())
folder("both", x=(2, 16), each=(3,), all=())
for place, count in (("runs/0.npz", 3), ("runs/1.npz", 3), ("wrong/0.npz", 3), ("wrong/1.npz", 6), ("both/0.npz", 3)):
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with zipfile.ZipFile(place, "w") as archive:
        for name, shape in (("x", (2, 16)), ("each", (count,)), ("all", ())):
            archive.writestr(name + ".npy", npy(*shape))
EOF
for calibration in minmax entropy; do
  report=$("$bin/rtconvert" padded.onnx -o padded.rt --precision int8 --calibrate padded --calibration $calibration --accuracy always 2>&1) ||
    fail "a Pad of minus infinity: $report"
  grep -q "quantized   1 MatMul/Conv nodes on 4 rows, the readers of 1 tensor with infinities stay in f32 ('padded')" <<<"$report" ||
    fail "the readers of infinities: $report"
done
"$bin/rtconvert" padded.onnx -o padded.rt --verify --verify-backend cpu >/dev/null || fail "the net with a Pad of minus infinity"

# Inputs with different numbers of rows: what has the whole shape of an input is for every run. A folder may have a file for each run.
mixed() { "$bin/rtconvert" mixed.onnx -o mixed.rt --precision int8 --calibrate "$1" --keep-accuracy 0.1 2>&1; }
for rows in shared:6 own:6 one:2 runs:4; do
  report=$(mixed "${rows%:*}") || fail "rows of ${rows%:*}: $report"
  grep -q "1 MatMul/Conv nodes on ${rows#*:} rows" <<<"$report" || fail "expected ${rows#*:} rows of ${rows%:*}: $report"
done
# refused FOLDER MESSAGE
refused() {
  local report
  report=$(mixed "$1") && fail "$1 is taken"
  grep -qF -- "$2" <<<"$report" || fail "expected '$2', found: $report"
}
refused few "--calibrate few: expected 9 rows of 'each', for 3 runs as 'x' has, found 6"
refused wrong "--calibrate wrong/1.npz: array 'each': expected extent 3 on axis 0, found 6"
refused both "--calibrate both: expected an .npy for each input, or an .npz for each run, found both"
