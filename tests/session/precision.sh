#!/usr/bin/env bash
# precision.sh BIN SCRATCH: file sizes, accuracy and options of 16-bit models, through the programs.
set -euo pipefail
bin=$1 scratch=$2
mkdir -p "$scratch"
fail() {
  echo "$1"
  exit 1
}
"$bin/rtconvert" zoo:lenet5 -o "$scratch/f32.rt" > "$scratch/f32.txt"
"$bin/rtconvert" zoo:lenet5 -o "$scratch/bf16.rt" --precision bf16 --verify > "$scratch/bf16.txt"
(($(stat -c %s "$scratch/bf16.rt") * 100 <= $(stat -c %s "$scratch/f32.rt") * 55)) || fail "bf16 takes more than 0.55 of f32"
grep -q "nodes in bf16" "$scratch/bf16.txt" || fail "the summary names no nodes in bf16"

status=0
"$bin/rtconvert" zoo:lenet5 -o "$scratch/x.rt" --precision bf16 --keep-fp32 'no such node' 2> "$scratch/error.txt" || status=$?
[[ $status == 2 ]] || fail "a pattern that matches nothing ends with $status"

# The effect of a precision on the outputs is measured and reported, with a warning if it is large.
grep -q "accuracy    error of the outputs" "$scratch/bf16.txt" || fail "the error of bf16 is not measured"
"$bin/rtconvert" zoo:lenet5 -o "$scratch/x.rt" --precision bf16 --accuracy never | grep -q accuracy && fail "it is measured though not asked for"
"$bin/rtconvert" zoo:lenet5 -o "$scratch/x.rt" --precision int4-weights --group-size 8 2>"$scratch/error.txt" | grep -q "error of the outputs" ||
  fail "the error of int4-weights is not measured: $(cat "$scratch/error.txt")"
status=0
"$bin/rtconvert" zoo:lenet5 -o "$scratch/x.rt" --accuracy always 2>/dev/null || status=$?
[[ $status == 2 ]] || fail "--accuracy in fp32 ends with $status"

# No node is kept for a wide bound, every node for a zero bound, and some nodes for one in between.
keep() {
  "$bin/rtconvert" zoo:lenet5 -o "$scratch/kept.rt" --precision bf16 --keep-accuracy "$1" | grep accuracy
}
keep 1 | grep -q kept && fail "nodes are kept for an error of 1"
keep 1e-9 | grep -qE 'kept ([0-9]+) of \1 nodes' || fail "not all nodes are kept for an error of 1e-9"
error=$(keep 1 | sed 's/.*outputs //')
between=$(awk "BEGIN { print $error * 0.7 }")
keep "$between" > "$scratch/between.txt"
awk -v bound="$between" '{ for (i = 1; i <= NF; ++i) if ($i == "now") got = $(i - 1); exit !(got + 0 <= bound * 1.01) }' "$scratch/between.txt" ||
  fail "not within $between: $(cat "$scratch/between.txt")"
grep -qE 'kept ([0-9]+) of \1 nodes' "$scratch/between.txt" && fail "all nodes are kept for $between"

"$bin/rtbench" zoo:lenet5 --backend reference --batch 1 --time 0.01 --precision fp32,bf16,fp16,int8 --json \
  > "$scratch/bench.json"
[[ $(grep -c '"precision": "' "$scratch/bench.json") == 4 ]] || fail "rtbench shows not four precisions"

"$bin/rtbench" zoo:lenet5 --backend cpu --batch 1 --time 0.01 --precision fp32,fp16 --json > "$scratch/bench.json"
[[ $(grep -c '"only_stored": "' "$scratch/bench.json") == 1 ]] || fail "rtbench does not report that the CPU only stores fp16"
grep -q '"failure"' "$scratch/bench.json" && fail "fp16 is not measured: $(grep failure "$scratch/bench.json")"

# The file pages read for packing do not stay in memory.
"$bin/rtbench" zoo:bert_layer --dim sequence=16 --backend cpu --batch 1 --threads 2 --time 0.01 --precision fp32,bf16,int8 --check none \
  --json > "$scratch/memory.json"
number() { # NAME ROW
  grep "\"$1\"" "$scratch/memory.json" | sed -n "$2p" | tr -dc 0-9
}
(($(number resident_bytes 1) * 10 < $(number file_bytes 1) * 17)) ||
  fail "a session takes $(number resident_bytes 1) bytes for a file of $(number file_bytes 1)"
# Without AVX-512, f32 weights may be used directly from the file, and 16 bits are only a storage format.
f32=$(number memory_bytes 1)
((f32 > $(number file_bytes 1))) || f32=$(number file_bytes 1)
rows=(2 3)
if grep -q '"only_stored": "' "$scratch/memory.json"; then
  echo "memory of bf16 beside f32: skipped, this CPU computes bf16 in f32"
  rows=(3)
fi
for row in "${rows[@]}"; do
  (($(number memory_bytes $row) * 100 <= f32 * (row == 2 ? 55 : 30))) ||
    fail "row $row takes $(number memory_bytes $row) bytes, f32 $f32"
done
"$bin/rtbench" --mode train zoo:lenet5 --backend cpu --batch 1 --time 0.01 --precision int8 2> "$scratch/error.txt" && fail "int8 trains"
grep -q "fp16 or bf16" "$scratch/error.txt" || fail "int8 in training is refused without an offer: $(cat "$scratch/error.txt")"
