#!/usr/bin/env bash
# generate.sh BIN SHARED SCRATCH GRAPH BACKEND [CONVERT-OPTIONS]: compiles a graph of the 260K-parameter story model and
# compares its output, greedy and after a prompt, with the known text and token ids.
set -euo pipefail
bin=$1 shared=$2 scratch=$3 graph=$4 backend=$5
shift 5
folder=$shared/data/models/llm_stories260k
if [[ ! -d $folder ]]; then
  echo "SKIPPED: $folder is not there"
  exit 77
fi
mkdir -p "$scratch"
model=$scratch/$graph-$backend.rt
"$bin/rtconvert" "$folder/$graph/model.onnx" -o "$model" "$@"
run() { "$bin/rtrun" "$model" --backend "$backend" "$@"; }

run --generate 200 --tokenizer "$folder/tok512.bin" | diff - <(cat "$folder/expected_greedy_200_steps.txt"; echo)
# A prompt that is a prefix of the known text is continued with the rest; its token ids are the known ones.
ids=$(run --generate 30 --tokenizer "$folder/tok512.bin" --prompt "Once upon a time" --json |
  sed -n '/tokens"/,/]/p' | tr -dc '0-9\n' | xargs)
[[ $ids == $(cut -d' ' -f1-35 "$folder/expected_greedy_token_ids.txt") ]] || { echo "other ids: $ids"; exit 1; }
# Sampling is reproducible.
sampled() { run --generate 20 --temperature 1 --top-k 50 --top-p 0.9 --seed "$1"; }
[[ $(sampled 3) == "$(sampled 3)" ]] || { echo "equal seeds, different ids"; exit 1; }
# A cache uses one plan for all steps, and reports when it is too small.
if [[ $* == *--cache-length* ]]; then
  run --generate 50 --json | grep -q '"plans": 1$' || { echo "more than one plan"; exit 1; }
  if run --generate 400 2>"$scratch/refusal.txt"; then echo "the cache is too small, and nobody said so"; exit 1; fi
  grep -q "cache holds" "$scratch/refusal.txt"
fi
echo "text, prompt and sampling agree"
