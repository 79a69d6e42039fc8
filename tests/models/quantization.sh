#!/usr/bin/env bash
# quantization.sh BIN SHARED: 8 bits cost classifiers of digits at most half a point, however ranges are chosen.
set -euo pipefail
bin=$1 shared=$2
data=$shared/data/datasets/mnist model=$shared/data/models/mnist_cnn/model.onnx
if [[ ! -d $data || ! -f $model ]] || ! command -v python3 >/dev/null; then
  echo "SKIPPED: needs python3, $data and $model"
  exit 77
fi
"$(dirname "$0")/../../tools/accuracy" "$model" "$data" --rtconvert "$bin/rtconvert" --at-most 0.5
