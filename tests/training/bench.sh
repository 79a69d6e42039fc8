#!/usr/bin/env bash
# bench.sh BIN BACKEND INFERENCE_MODEL: rtbench measures training steps, compares the first with the reference, and reports a low loss.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 backend=$2 inference_model=$3

out=$("$bin/rtbench" --mode train zoo:lenet5 zoo:text_classifier --batch 4 --dim sequence=24 --backend "$backend" --time 0.05 \
  --no-tuning --target-loss 0.4)
echo "$out"
[[ $(grep -c 'the target loss was reached after' <<<"$out") == 2 ]] || fail "expected two targets reached"

error=$("$bin/rtbench" --mode train "$inference_model" 2>&1) && fail "a file that cannot be trained must be refused"
[[ $? == 2 && $error == *train_step* ]] || fail "expected exit code 2 and a word about train_step, found: $error"

out=$("$bin/rtbench" "$inference_model" --backend "$backend" --in-flight 2 --time 0.02 --no-tuning --json)
[[ $out == *'"in_flight": 2'* || $out == *'"in_flight":2'* ]] || fail "expected two runs in flight, found: $out"
"$bin/rtbench" "$inference_model" --in-flight 2 --profile 2>/dev/null && fail "one node cannot be timed with two runs in flight"
[[ $? == 2 ]] || fail "expected exit code 2"
