#!/usr/bin/env bash
# weights.sh BIN SCRATCH: weights of an ONNX model as safetensors, out and in again; trained ones equal those of --export-onnx; an adapter in
# that format; and files that do not fit.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2/weights
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
refused() {  # MESSAGE COMMAND...: exit code 2 and the message
  local message=$1 code=0
  shift
  "$@" >refused.log 2>&1 || code=$?
  [[ $code == 2 ]] && grep -qF -- "$message" refused.log || fail "'$*': exit code $code, $(cat refused.log)"
}
convert() { "$bin/rtconvert" "$@" >convert.log 2>&1 || fail "rtconvert $*: $(cat convert.log)"; }

convert zoo:lenet5 -o net.onnx
convert net.onnx -o net.rt
convert net.onnx --export-safetensors net.safetensors
grep -q ' 10 weights of net.onnx' convert.log || fail "expected 10 weights: $(cat convert.log)"
convert net.onnx --weights net.safetensors -o same.rt
cmp net.rt same.rt || fail "the model with its own weights differs"

echo "--- trained"
# IDX files: 16 images of 28 x 28 bytes, 16 labels.
{ printf '\0\0\10\3\0\0\0\20\0\0\0\34\0\0\0\34'; head -c 12544 "$bin/rtconvert"; } >images
{ printf '\0\0\10\1\0\0\0\20'; for _ in 1 2 3 4; do printf '\0\1\2\3'; done; } >labels
train() {
  convert net.onnx -o "$1.rt" --train --loss cross_entropy --optimizer sgd "${@:2}"
  "$bin/rttrain" "$1.rt" --data images --labels labels --scale 0.00392157 --batch 8 --epochs 1 --lr 0.1 --backend cpu --checkpoint "$1.ckpt" \
    >train.log 2>&1 || fail "rttrain $1.rt: $(cat train.log)"
}
train all
convert net.onnx --checkpoint all.ckpt --export-onnx all.onnx
convert net.onnx --checkpoint all.ckpt --export-safetensors all.safetensors
cmp -s net.safetensors all.safetensors && fail "training changed no weight"
convert all.onnx -o expected.rt
convert net.onnx --weights all.safetensors -o found.rt
cmp expected.rt found.rt || fail "--export-safetensors and --export-onnx differ"

echo "--- trained with states that are no weights of the model: the loss scale, ranges of tensors"
train scaled --precision fp16
train ranges --quantize-aware
for net in scaled ranges; do
  convert net.onnx --checkpoint $net.ckpt --export-onnx $net.onnx
  convert net.onnx --checkpoint $net.ckpt --export-safetensors $net.safetensors
  convert $net.onnx -o expected.rt
  convert net.onnx --weights $net.safetensors -o found.rt
  cmp expected.rt found.rt || fail "$net: --export-safetensors and --export-onnx differ"
  cmp -s net.safetensors $net.safetensors && fail "$net: training changed no weight"
done
convert net.onnx --checkpoint ranges.ckpt --export-onnx ranges.onnx
grep -q 'left out    the ranges of [1-9][0-9]* tensors' convert.log || fail "no word about the ranges: $(cat convert.log)"

echo "--- moving averages"
output=$("$bin/rtconvert" net.rt --inspect | sed -n 's/^  output %//p')
train averaged --ema 0.5
convert averaged.rt --checkpoint averaged.ckpt -o both.rt
"$bin/rtrun" both.rt --entry infer_ema --random-input --dim batch=3 --save "$output=averages.npy" --quiet
convert averaged.rt --checkpoint averaged.ckpt --use-ema -o averages.rt
convert net.onnx --checkpoint averaged.ckpt --use-ema --export-onnx averages.onnx
for model in averages.rt averages.onnx; do
  "$bin/rtrun" $model --random-input --dim batch=3 --expect "$output=averages.npy" --quiet >run.log 2>&1 || fail "$model: $(cat run.log)"
done
"$bin/rtrun" both.rt --random-input --dim batch=3 --expect "$output=averages.npy" --rtol 0 --atol 1e-7 --quiet >run.log 2>&1 && fail "weights and averages are equal"
refused "expected moving averages of the weights, found none" "$bin/rtconvert" net.onnx --checkpoint all.ckpt --use-ema --export-onnx no.onnx
refused "use-ema: is for --checkpoint" "$bin/rtconvert" net.onnx --use-ema -o no.rt

echo "--- an adapter"
train scaled_lora --lora rank=2 --precision fp16
convert scaled_lora.rt --checkpoint scaled_lora.ckpt --save-adapter scaled_adapter.safetensors
convert net.onnx --merge-adapter scaled_adapter.safetensors -o scaled_adapter.rt
train lora --lora rank=2
for adapter in adapter adapter.safetensors adapter_model.safetensors; do
  convert lora.rt --checkpoint lora.ckpt --save-adapter $adapter
  convert net.onnx --merge-adapter $adapter -o $adapter.rt
done
cmp adapter.rt adapter.safetensors.rt || fail "an adapter as safetensors differs"
cmp adapter.rt adapter_model.safetensors.rt || fail "an adapter as PEFT has it differs"
grep -aq 'base_model.model.conv1.lora_A.weight' adapter_model.safetensors || fail "adapter_model.safetensors has no names of PEFT"
grep -q '"r": 2' adapter_config.json || fail "no rank: $(cat adapter_config.json)"
cmp -s adapter.rt net.rt && fail "the adapter changed nothing"
convert net.onnx --merge-adapter adapter.safetensors --export-safetensors merged.safetensors
convert net.onnx --weights merged.safetensors -o merged.rt
cmp merged.rt adapter.rt || fail "an adapter merged into safetensors differs"

echo "--- refused"
# The same length, so that the sizes in the file stay right.
sed 's/"conv1\.bias"/"conv1.bios"/' net.safetensors >named.safetensors
refused "'conv1.bios': the model has no weight of this name (did you mean 'conv1.bias'?)" "$bin/rtconvert" net.onnx --weights named.safetensors -o no.rt
sed 's/"shape":\[400,120\]/"shape":[120,400]/' net.safetensors >shape.safetensors
refused "'fc1.weight': expected the shape [400,120], found [120,400]; the model stores it transposed" \
  "$bin/rtconvert" net.onnx --weights shape.safetensors -o no.rt
sed 's/"F32"/"I32"/' net.safetensors >type.safetensors
refused 'expected f32, found i32' "$bin/rtconvert" net.onnx --weights type.safetensors -o no.rt
head -c 1000 net.safetensors >short.safetensors
refused 'short.safetensors: the tensors have' "$bin/rtconvert" net.onnx --weights short.safetensors -o no.rt
refused 'missing.safetensors' "$bin/rtconvert" net.onnx --weights missing.safetensors -o no.rt
refused 'takes a FILE.safetensors for a MODEL.onnx' "$bin/rtconvert" net.rt --weights net.safetensors -o no.rt
refused 'needs a MODEL.onnx' "$bin/rtconvert" net.rt --export-safetensors no.safetensors
[[ ! -e no.rt && ! -e no.safetensors ]] || fail "a file was written"
# Others keep their values, and that is said.
header='{"conv1.bias":{"dtype":"F16","shape":[6],"data_offsets":[0,12]}}'
{ printf '%b\0\0\0\0\0\0\0%s' "\\x$(printf %02x ${#header})" "$header"; head -c 12 /dev/zero; } >part.safetensors
convert net.onnx --weights part.safetensors -o part.rt
grep -qF "part.safetensors: has 1 weights; 9 others keep the model's values, the first is 'conv1.weight'" convert.log || fail "no warning: $(cat convert.log)"
convert net.onnx -o beside.rt --lora rank=2
for adapter in adapter adapter.safetensors adapter_model.safetensors; do
  "$bin/rtrun" beside.rt --backend cpu --adapter $adapter --random-input --quiet --save logits=$adapter.npy
done
cmp adapter.npy adapter.safetensors.npy || fail "rtrun --adapter with a safetensors file differs"
cmp adapter.npy adapter_model.safetensors.npy || fail "rtrun --adapter with a file of PEFT differs"
