#!/usr/bin/env bash
# curve.sh BIN SHARED SCRATCH NAME BACKEND [PRECISION]: compiles a curve's model for training and compares its losses.
set -euo pipefail
bin=$1 shared=$2 scratch=$3 name=$4 backend=$5 precision=${6:-fp32}
folder=$shared/training-reference/curves/$name
if [[ ! -d $folder ]]; then
  echo "SKIPPED: $folder is not there"
  exit 77
fi
mkdir -p "$scratch"
case $name in
  mlp) optimizer=(--optimizer sgd --momentum 0.9) lr=0.1 ;;
  cnn_bn) optimizer=(--optimizer adam) lr=0.01 ;;
esac
model=$scratch/$name-$backend-$precision.rt
"$bin/rtconvert" "$folder/model.onnx" -o "$model" --train --loss cross_entropy "${optimizer[@]}" --precision "$precision"
case $precision in
  fp32) tolerance=() ;;
  fp16) tolerance=(--early 2e-2 --late 6e-2) ;;
  # Three bits less; the backend's rounding points then account for a third of the difference.
  # A CPU without bf16 instructions rounds at different points than one with them (4.5 % at step 31).
  bf16) tolerance=(--early 5e-2 --late 8e-2) ;;
esac
"$bin/curve" --model "$model" --data "$folder/data.npz" --backend "$backend" --lr "$lr" "${tolerance[@]}"
