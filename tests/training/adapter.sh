#!/usr/bin/env bash
# adapter.sh BIN SHARED SCRATCH BACKEND: an adapter through the programs: trained, saved separately, loaded on its base, merged into
# a .rt and into ONNX, which then compute the same; and the cases that must be rejected.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 shared=$2/data scratch=$3/adapter-$4 backend=$4
model=$shared/models/mnist_cnn/model.onnx images=$shared/datasets/mnist/t10k-images-idx3-ubyte.gz
if [[ ! -e $model || ! -e $images ]]; then
  echo "SKIPPED: $model or $images is not there"
  exit 77
fi
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

size() { stat -c %s "$1"; }
refused() {  # MESSAGE COMMAND...: exit code 2 and the message
  local message=$1 code=0
  shift
  "$@" >refused.log 2>&1 || code=$?
  [[ $code == 2 ]] && grep -q -- "$message" refused.log || fail "'$*': exit code $code, $(cat refused.log)"
}

echo "--- trained"
"$bin/rtconvert" "$model" -o lora.rt --train --optimizer adam --lora rank=4,alpha=8,dropout=0.05 | grep 'adapters    3 weights'
cp lora.rt before.rt
"$bin/rttrain" lora.rt --data "$images" --labels "$shared/datasets/mnist/t10k-labels-idx1-ubyte.gz" --batch 1 --steps 40 --lr 0.002 \
  --backend "$backend" --deterministic --checkpoint lora.ckpt >/dev/null 2>&1
cmp lora.rt before.rt || fail "the base changed"

echo "--- saved alone, beside the base"
"$bin/rtconvert" lora.rt --checkpoint lora.ckpt --save-adapter adapter
(($(size adapter) < $(size lora.ckpt))) || fail "the adapter is not smaller than the checkpoint"
"$bin/rtconvert" "$model" -o beside.rt --lora rank=4 >/dev/null
run() { "$bin/rtrun" "$1" --backend "$backend" --random-input --seed 3 --quiet "${@:2}"; }
output=Plus214_Output_0
run beside.rt --save $output=base.npy
run beside.rt --adapter adapter --save $output=beside.npy
"$bin/rtconvert" lora.rt --checkpoint lora.ckpt --save-adapter adapter.safetensors
run beside.rt --adapter adapter.safetensors --expect $output=beside.npy --rtol 0 --atol 0 || fail "the adapter as safetensors differs"
run lora.rt --adapter lora.ckpt --expect $output=beside.npy --rtol 1e-5 --atol 1e-3 ||
  fail "the checkpoint's adapter differs from the saved one"
code=0
run beside.rt --adapter adapter --expect $output=base.npy >/dev/null || code=$?
[[ $code == 1 ]] || fail "the adapter changed nothing"
"$bin/rtconvert" "$model" -o plain.rt | grep nodes >plain.log
run plain.rt --expect $output=base.npy --rtol 1e-5 --atol 1e-3 || fail "a base with an empty adapter differs from the base"

echo "--- merged"
"$bin/rtconvert" "$model" --merge-adapter adapter -o merged.rt | tee merged.log | grep merged
grep nodes merged.log | cmp - plain.log || fail "merging added nodes"
run merged.rt --expect $output=beside.npy --rtol 1e-4 --atol 1e-2 || fail "merged and beside differ"
"$bin/rtconvert" "$model" --merge-adapter adapter --export-onnx merged.onnx
"$bin/rtconvert" merged.onnx -o back.rt >/dev/null
run back.rt --expect $output=beside.npy --rtol 1e-4 --atol 1e-2 || fail "the ONNX file with the adapter and beside differ"
"$bin/rtbench" beside.rt --adapter adapter --backend "$backend" --time 0.01 --batch 1 --no-tuning >/dev/null || fail "rtbench --adapter"

"$bin/rtbench" beside.rt --adapter adapter.safetensors --backend "$backend" --time 0.01 --batch 1 --no-tuning >/dev/null ||
  fail "rtbench --adapter adapter.safetensors"

echo "--- refused"
"$bin/rtconvert" "$model" -o other.rt --lora rank=2 >/dev/null
refused 'expected f32\[2' run other.rt --adapter adapter
refused 'expected f32\[2' "$bin/rtbench" other.rt --adapter adapter --backend cpu --batch 1
refused 'the model has none' run plain.rt --adapter adapter
refused "': expected f32\[2,[0-9]*\], found f32\[4," run other.rt --adapter adapter.safetensors
refused 'the model has none; compile it with --lora' run plain.rt --adapter adapter.safetensors
"$bin/rtconvert" "$model" -o fewer.rt --lora 'rank=4,targets=Parameter193*' >/dev/null
refused "': the model has none" run fewer.rt --adapter adapter.safetensors
head -c 100 adapter.safetensors >short.safetensors
refused 'short.safetensors' run beside.rt --adapter short.safetensors
refused 'missing.safetensors' run beside.rt --adapter missing.safetensors
refused 'has a weight of this name' "$bin/rtconvert" zoo:lenet5 --merge-adapter adapter -o wrong.rt
refused 'needs the source' "$bin/rtconvert" lora.rt --merge-adapter adapter -o wrong.rt
refused 'no weight can be adapted' "$bin/rtconvert" "$model" --lora 'rank=2,targets=nothing' -o wrong.rt
refused 'expected rank, alpha, targets, dropout or seed' "$bin/rtconvert" "$model" --lora size=2 -o wrong.rt
refused 'expected a whole number' "$bin/rtconvert" "$model" --lora rank=0 -o wrong.rt
refused 'dropout is for --train' "$bin/rtconvert" "$model" --lora dropout=0.1 -o wrong.rt
refused 'needs the MODEL.rt' "$bin/rtconvert" lora.rt --save-adapter wrong
echo "all of it"
