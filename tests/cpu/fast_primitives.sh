#!/usr/bin/env bash
# fast_primitives.sh BIN: no node of the zoo's models, forward or in a training step, runs one of oneDNN's reference
# implementations: plain loops, up to 200 times slower than the others. Kernels are chosen by rule.
set -euo pipefail
bin=$1 status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
fail() { echo "FAILED: $*"; status=1; }
measure() {
  ONEDNN_VERBOSE=1 "$bin/rtbench" "$model" --backend cpu --mode "$mode" --batch 2 --time 0.01 --check none --no-tuning "$@" >"$log" 2>&1
}

mapfile -t models < <("$bin/rtbench" --list-zoo | awk '{ print $1 }')
((${#models[@]} >= 10)) || fail "--list-zoo names ${#models[@]} models"
for model in "${models[@]}"; do
  # Large; their layers have the shapes of other models' layers, or more columns.
  [[ $model != *bert_base && $model != *gpt2_small ]] || continue
  for mode in infer train; do
    measure || { grep -q 'give --dim sequence=N' "$log" && measure --dim sequence=16; } ||
      { fail "$model, $mode: $(grep -v '^onednn' "$log")"; continue; }
    sed -n 's/^onednn_verbose.*exec,cpu,//p' "$log" >"$log.ran"  # OPERATION,IMPLEMENTATION,..: convolution,jit:avx512_core,..
    echo "$model, $mode: $(wc -l <"$log.ran") primitives"
    [[ -s $log.ran ]] || fail "$model, $mode: oneDNN reports no primitive"
    slow=$(awk -F, '$2 ~ /^ref/' "$log.ran" | sed 's/,[0-9.]*$//' | sort | uniq -c | head -n 5)
    [[ -z $slow ]] || fail "$model, $mode runs reference implementations:"$'\n'"$slow"
  done
done
rm -f "$log.ran"
exit $status
