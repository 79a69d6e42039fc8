#!/usr/bin/env bash
# mnist.sh BIN SHARED SCRATCH BACKEND [PRECISION]: trains LeNet-5 on MNIST for an epoch and expects at least 98.5 % on the test set.
set -euo pipefail
bin=$1 shared=$2 scratch=$3 backend=$4 precision=${5:-fp32}
folder=$shared/data/datasets/mnist
if [[ ! -d $folder ]]; then
  echo "SKIPPED: $folder is not there"
  exit 77
fi
mkdir -p "$scratch"
"$bin/rtconvert" zoo:lenet5 -o "$scratch/lenet5-$backend-$precision.rt" --train --loss cross_entropy --optimizer adam \
  --precision "$precision"
"$bin/rttrain" "$scratch/lenet5-$backend-$precision.rt" --data "$folder"/train-images-part?-idx3-ubyte.gz --labels "$folder/train-labels-idx1-ubyte.gz" \
  --validate "$folder/t10k-images-idx3-ubyte.gz" --validate-labels "$folder/t10k-labels-idx1-ubyte.gz" --scale 0.00392157 \
  --epochs 1 --batch 64 --lr 0.005 --schedule cosine --backend "$backend" --checkpoint "$scratch/$backend-$precision.ckpt" --overwrite --target accuracy=0.985
