#!/usr/bin/env bash
# curve.sh BIN SHARED SCRATCH NAME BACKEND: compiles a curve's model for training and follows its losses.
set -euo pipefail
bin=$1 shared=$2 scratch=$3 name=$4 backend=$5
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
model=$scratch/$name-$backend.rt
"$bin/rtconvert" "$folder/model.onnx" -o "$model" --train --loss cross_entropy "${optimizer[@]}"
"$bin/curve" --model "$model" --data "$folder/data.npz" --backend "$backend" --lr "$lr"
