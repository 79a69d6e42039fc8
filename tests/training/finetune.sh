#!/usr/bin/env bash
# finetune.sh BIN SHARED SCRATCH BACKEND: the last layer of an f16 ImageNet classifier learns digits, the rest frozen: the loss falls,
# frozen weights are unchanged, and the exported ONNX file keeps its types and computes the same as the trained model.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 shared=$2/data scratch=$3/finetune-$4 backend=$4
model=$shared/models/squeezenet_fp16/model.onnx digits=$shared/datasets/mnist/t10k
if [[ ! -e $model || ! -e $digits-images-idx3-ubyte.gz ]]; then
  echo "SKIPPED: $model or $digits-images-idx3-ubyte.gz is not there"
  exit 77
fi
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

options=(--train --open-batch --trainable 'conv10*' --optimizer adam --class-axis 1)
"$bin/rtconvert" "$model" -o net.rt "${options[@]}" |
  grep 'training    2 weights of 513,000 elements, 50 frozen'
"$bin/rttrain" net.rt --data $digits-images-idx3-ubyte.gz --labels $digits-labels-idx1-ubyte.gz --scale 0.00392157 \
  --mean 0.485 0.456 0.406 --std 0.229 0.224 0.225 --batch 8 --steps 16 --lr 0.001 --backend "$backend" --deterministic \
  --checkpoint net.ckpt --log net.jsonl --log-every 4 >/dev/null 2>&1
read -r first last < <(grep '"step"' net.jsonl | sed 's/.*"loss":\([0-9.e+-]*\).*/\1/' | sed -n '1p;$p' | tr '\n' ' ' && echo)
awk "BEGIN { exit !($last < 0.7 * $first) }" || fail "the loss went from $first to $last"
echo "loss $first -> $last"

"$bin/rtconvert" "$model" --checkpoint net.ckpt --export-onnx trained.onnx | grep '2 weights'
[[ $(stat -c %s trained.onnx) -le $(($(stat -c %s "$model") + 4096)) ]] || fail "the exported file grew: weights in f16 became wider"
"$bin/rtconvert" net.rt --checkpoint net.ckpt -o trained.rt >/dev/null
"$bin/rtconvert" trained.onnx -o back.rt "${options[@]}" >/dev/null  # f32 at its border, as trained.rt
run() { "$bin/rtrun" "$1" --backend "$backend" --input data_0="$shared/models/squeezenet_fp16/test_data_set_0/input_0.pb" --quiet "${@:2}"; }
run back.rt --save softmaxout_1=back.npy
run trained.rt --expect softmaxout_1=back.npy --rtol 0.02 --atol 1e-3 || fail "the exported model differs from the trained one"
code=0
run net.rt --expect softmaxout_1=back.npy --rtol 0.02 --atol 1e-3 >/dev/null || code=$?
[[ $code == 1 ]] || fail "training changed nothing"
echo "all of it"
