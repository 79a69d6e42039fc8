#!/usr/bin/env bash
# quantization.sh BIN SHARED: 8 bits cost digit classifiers at most half a percentage point, for every way of choosing ranges.
set -euo pipefail
bin=$1 shared=$2
data=$shared/data
if [[ ! -d $data/datasets/mnist || ! -d $data/models/mnist_cnn ]] || ! command -v python3 >/dev/null; then
  echo "SKIPPED: needs python3, $data/datasets/mnist and $data/models/mnist_cnn"
  exit 77
fi
"$(dirname "$0")/../../tools/dev/accuracy" "$data" --net mnist_cnn --backend cpu --precision fp32 int8 int8:percentile int8:entropy \
  --build "$(dirname "$bin")" --at-most 0.5
