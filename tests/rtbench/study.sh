#!/usr/bin/env bash
# study.sh BIN SCRATCH: `rtbench study` on the CPU, with short budgets: its output, its errors, Ctrl-C.
set -euo pipefail
bin=$1 scratch=$2
. "$(dirname "$0")/rtbench.sh"
# An error of a study comes without a result.
refuses_study() {
  refuses "$1" "$2" rtbench study "${@:3}"
  [[ ! -s out.txt ]] || fail "${*:3}: an error with a result: $(cat out.txt)"
}

echo "--- what is refused"
refuses_study 2 "unknown backend 'gpu'; expected all" zoo:lenet5 --backend gpu
refuses_study 3 "there is no such device" zoo:lenet5 --backend cpu:7
refuses_study 2 "--budget: expected a time above 0 such as 30s, 5min or 1h, found '0'" zoo:lenet5 --budget 0
refuses_study 2 "found '0s'" zoo:lenet5 --budget 0s
refuses_study 2 "found '-5min'" zoo:lenet5 --budget=-5min
refuses_study 2 "found '5 parsecs'" zoo:lenet5 --budget "5 parsecs"
refuses_study 2 "--target needs --data" zoo:lenet5 --mode train --target accuracy=0.9
refuses_study 2 "--epochs needs --data" zoo:lenet5 --mode train --epochs 3
refuses_study 2 "--data needs --mode train or both" zoo:lenet5 --data images --target accuracy=0.9
refuses_study 2 "--target needs --validate or --validate-fraction" zoo:lenet5 --mode train --data images --target accuracy=0.9
refuses_study 2 "--target accuracy: expected METRIC=VALUE" zoo:lenet5 --mode train --data images --target accuracy
refuses_study 2 "--precision" zoo:lenet5 --precision fp7
refuses_study 2 "--largest-batch: expected a number above 0, found 0" zoo:lenet5 --largest-batch 0
refuses_study 2 "expected a dynamic dimension of the model (batch), found 'sequence'" zoo:lenet5 --dim sequence=4
refuses_study 2 "--price" zoo:lenet5 --backend cpu --price gpu=3
refuses_study 2 "--price" zoo:lenet5 --backend cpu --price cpu=-1
refuses_study 2 "--electricity" zoo:lenet5 --backend cpu --electricity much
refuses_study 2 "nothing.rt: No such file" nothing.rt
refuses_study 2 "zoo" zoo:nothing
refuses_study 2 "model" # without one

echo "--- a small study: every precision in both modes has points or a reason"
"$bin/rtbench" study zoo:lenet5 --backend cpu --mode both --budget 15s --price cpu=0.17 >study.txt 2>progress.txt || fail "exit code $?: $(cat progress.txt study.txt)"
for series in "fp32 +infer" "fp16 +infer" "bf16 +infer" "int8 +infer" "fp32 +train" "fp16 +train" "bf16 +train"; do
  grep -Eq "^cpu:0 +$series +1 +[0-9.]+ (us|ms|s) " study.txt || grep -Eq "^ +cpu:0 ${series// +/ }: " study.txt ||
    fail "nothing about $series: $(cat study.txt)"
done
has '^study of lenet5 \([0-9.]+ .iB, [0-9a-f]{16}\), ' study.txt
has '^machine: .*CPUs.*Linux' study.txt
# Rates that are measured on a noisy machine are not kept.
grep -Eq '^noisy machine: ' study.txt || has '^cpu:0: .*; peak [0-9.]+ GFLOP/s fp32|^ +peak rates of cpu:0: the budget' study.txt
has '^Shortest inference, at batch 1: cpu:0 in ' study.txt
has '^Most samples trained: cpu:0 in ' study.txt
has '^Cheapest, training at full load: cpu:0 in .* for a million samples' study.txt
has '^Inference of cpu:0 in .*: batch [0-9]+ is ' study.txt
has '^On cpu:0 at batch [0-9]+, inference in (fp16|bf16|int8) is ' study.txt
has '^device +precision +mode +batch +kernels +transfers +launches +slowest node|^ +times of nodes of cpu:0 .*: the budget' study.txt
has '^rtbench study: first points of 7 series, after ' progress.txt

echo "--- the budget: it may be exceeded by a point, not by much"
start=$SECONDS
"$bin/rtbench" study zoo:lenet5 --backend cpu --mode both --budget 2s >short.txt 2>/dev/null || fail "exit code $?: $(cat short.txt)"
((SECONDS - start <= 20)) || fail "a budget of 2 s took $((SECONDS - start)) s"
has '^study of lenet5' short.txt

echo "--- Ctrl-C: what was measured is there, with a verdict"
code=0
timeout --foreground --preserve-status -s INT 3 "$bin/rtbench" study zoo:lenet5 --backend cpu --time 5 >stopped.txt 2>/dev/null || code=$?
[[ $code == 130 ]] || fail "exit code $code after SIGINT, expected 130: $(cat stopped.txt)"
has '^study of lenet5 .*, interrupted$' stopped.txt
has '^Interrupted: ' stopped.txt
has ': interrupted$' stopped.txt

echo "--- a fixed batch"
"$bin/rtconvert" zoo:lenet5 -o fixed.rt --dim batch=3 >/dev/null
"$bin/rtbench" study fixed.rt --backend cpu --precision fp32 --budget 3s >fixed.txt 2>/dev/null || fail "exit code $?: $(cat fixed.txt)"
has '^cpu:0 +fp32 +infer +3 ' fixed.txt
has "the model's batch is fixed at 3" fixed.txt

echo "--- time to a target, with rttrain: eight images, so that it is reached by chance or not at all"
{ printf '\0\0\x08\x03\0\0\0\x08\0\0\0\x1c\0\0\0\x1c'; head -c $((8 * 28 * 28)) "$bin/rtconvert"; } >images
printf '\0\0\x08\x01\0\0\0\x08\1\2\3\4\5\6\7\0' >labels
data=(--data images --labels labels --validate images --validate-labels labels --train-batch 4)
train=("$bin/rtbench" study zoo:lenet5 --backend cpu --mode train --precision fp32 --budget 10s "${data[@]}")
"${train[@]}" --epochs 2 --target accuracy=0.1 >reached.txt 2>/dev/null || fail "exit code $?: $(cat reached.txt)"
has '^cpu:0 in fp32 reaches accuracy 0.1000 in .* s, after [12] epochs' reached.txt
"${train[@]}" --epochs 1 --target accuracy=2 >missed.txt 2>/dev/null || fail "exit code $?: $(cat missed.txt)"
has '^cpu:0 in fp32 does not reach accuracy 2.000: the training ended before' missed.txt
"${train[@]}" --epochs 1 --target nonsense=1 >wrong.txt 2>/dev/null || fail "exit code $?: $(cat wrong.txt)"
has '^cpu:0 in fp32 does not reach nonsense 1.000: .*nonsense' wrong.txt

echo "--- the ordinary table also says what disturbs, and what the machine is"
"$bin/rtbench" zoo:lenet5 --backend cpu --batch 1 --time 0.1 --json >table.json 2>/dev/null
has '"machine": \{' table.json
has '"other_cpus": [0-9.e-]+' table.json

# A busy process beside it is named in the first line.
(while :; do :; done) & busy=$!
trap 'kill $busy' EXIT
"$bin/rtbench" zoo:lenet5 --backend cpu --batch 1 --time 0.5 >noisy.txt 2>/dev/null
head -1 noisy.txt | grep -Eq '^noisy machine: other work used [0-9.]+ CPUs before and [0-9.]+ CPUs during' || fail "a noisy machine is not named: $(cat noisy.txt)"
echo "rtbench study keeps its promises"
