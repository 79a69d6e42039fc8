#!/usr/bin/env bash
# model.sh BIN SHARED SCRATCH NAME BACKEND RTOL ATOL: compiles a trained model and compares every test case's outputs.
set -euo pipefail
bin=$1 shared=$2 scratch=$3 name=$4 backend=$5 rtol=$6 atol=$7
folder=$shared/data/models/$name
if [[ ! -d $folder ]]; then
  echo "SKIPPED: $folder is not there"
  exit 77
fi
mkdir -p "$scratch"
model=$scratch/${name//\//-}-$backend.rt
"$bin/rtconvert" "$folder/model.onnx" -o "$model"
cases=0
for data in "$folder"/test_data_set_*; do
  "$bin/rtrun" "$model" --backend "$backend" --test-data "$data" --rtol "$rtol" --atol "$atol"
  cases=$((cases + 1))
done
((cases)) || { echo "no test_data_set_* in $folder"; exit 1; }
echo "$cases cases agree"
