#!/usr/bin/env bash
# experiments.sh BIN SCRATCH SOURCES SHARED: every experiment of `rtbench study NAME` on the CPU with a short budget: its rows, its JSON,
# what is refused, Ctrl-C.
set -euo pipefail
bin=$1 scratch=$2 sources=$3
export RT_SHARED_DATA=$4
. "$(dirname "$0")/rtbench.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
names=(perceptron text resnet50 mixed-precision batch input memory transfer scaling matmul tabular)

echo "--- the list"
"$bin/rtbench" study --list >list.txt
for name in "${names[@]}"; do has "^$name  .* [0-9]+ s$" list.txt; done
[[ $(grep -c ' s$' list.txt) == "${#names[@]}" ]] || fail "an experiment that this test does not know: $(cat list.txt)"

echo "--- what is refused"
refuses 2 "'percptron': there is no experiment and no file of this name; did you mean 'perceptron'?" rtbench study percptron
refuses 2 "did you mean 'zoo:lenet5'?" rtbench study lenet
refuses 2 "'quite-something-else': there is no experiment and no file of this name; \`rtbench study --list\`" rtbench study quite-something-else
refuses 2 "expected a model or the name of an experiment" rtbench study
refuses 2 "--what-if: the experiment matmul does not take it; it takes --backend, --budget" rtbench study matmul --what-if h100
refuses 2 "--data: the experiment matmul does not take it" rtbench study matmul --data x
refuses 2 "--save: the experiment batch does not take it" rtbench study batch --save .
refuses 2 "--budget: expected a time above 0" rtbench study matmul --budget 0
refuses 2 "unknown backend 'gpu'" rtbench study matmul --backend gpu
refuses 2 "--json all go to stdout" rtbench study matmul --json --markdown -
refuses 3 "there is no such device" rtbench study matmul --backend cpu:7

# A budget is kept within 1.2 times and some seconds, whatever else the machine does (time_plan_test.cpp); here with a bound that holds on
# any machine, and fails if a part has no end of its own.
measure() {
  local code=0 start=$SECONDS
  "$bin/rtbench" study "$1" --backend cpu --budget "$2" --markdown "$1.md" "${@:3}" >"$1.txt" 2>"$1.err" || code=$?
  ((SECONDS - start <= 3 * ${2%s} + 40)) || fail "$1: a budget of $2 took $((SECONDS - start)) s"
  return $code
}
# NAME BUDGET ARGUMENT ...: rows of the CPU, or reasons. On a machine with other work a short budget may end before anything is
# measured, which the result says: then once more with five times as much.
run() {
  local code=0
  measure "$@" || code=$?
  if [[ $code == 3 ]] && grep -q 'the budget' "$1.txt"; then
    echo "$1: nothing within $2: $((5 * ${2%s}))s"
    code=0
    measure "$1" "$((5 * ${2%s}))s" "${@:3}" || code=$?
  fi
  [[ $code == 0 ]] || fail "$1: exit code $code: $(cat "$1.err" "$1.txt")"
  has "^experiment $1, [0-9.]+ s" "$1.txt"
  has '^machine: .*CPUs.*Linux' "$1.txt"
  has '^cpu:0: ' "$1.txt"
  has "^# $1, " "$1.md"
}

# ROW REASON FILE: a row that begins so and has a figure, or the reason why there is none: on a busy machine a short budget ends before
# some rows, and a column that no row has is left out.
row_or_reason() { has "^$1 +(- +)*~?[0-9.]+ |^  $2: " "$3"; }

echo "--- each on the CPU"
run perceptron 3s --seed 3
has '^cpu:0 +32 +~?[0-9.]+ s ' perceptron.txt
has '^\| cpu:0 \| 32 \|' perceptron.md
run tabular 3s
has '^cpu:0 +~?[0-9.]+ s +[0-9.]+ \(' tabular.txt
has '^cpu:0 +1 +[0-9.]+ (us|ms) \(' tabular.txt
run matmul 3s --precision fp32,bf16
has '^cpu:0 +1024 +[0-9.]+ (us|ms) \(.*\) +[0-9.]+ \(' matmul.txt
has '^cpu:0 reaches [0-9.]+ GFLOP/s, at size [0-9]+\.' matmul.txt
grep -Eq '^cpu:0 bf16 +[0-9]+ |^  cpu:0 bf16.*: ' matmul.txt || fail "nothing about bf16: $(cat matmul.txt)"
run batch 3s --mode infer
has '^cpu:0 +fp32 +infer +1 +[0-9.]+ (us|ms) ' batch.txt
run text 3s
has '^training of a text classifier, CPU against GPU +198.2 s against 14.4 s: 13.8 times +~?[0-9.]+ s \(cpu:0\) against no GPU here' text.txt
has "An article's figures come from other hardware" text.txt
[[ ! -e $RT_SHARED_DATA/data/datasets/sms_spam/sms.tsv ]] || has 'the SMS Spam Collection, 5574 of them' text.txt
RT_SHARED_DATA=$scratch run text 2s
has 'generated messages' text.txt
run mixed-precision 5s --precision fp32,bf16
has '^cpu:0 +fp32 +[0-9.]+ (us|ms) ' mixed-precision.txt
grep -Eq '^On cpu:0 a step in bf16 ' mixed-precision.txt || fail "nothing about bf16: $(cat mixed-precision.txt)"
run memory 6s
has '^cpu:0 +transformer +plain ' memory.txt
grep -Eq '^cpu:0 +transformer +optimizer states in bf16 |^  cpu:0, transformer, optimizer states in bf16: ' memory.txt || fail "nothing about bf16: $(cat memory.txt)"
run input 6s
row_or_reason 'cpu:0 +0 +1 +none' 'cpu:0, 0 workers, prefetch 1' input.txt
run resnet50 5s --precision fp32 --mode infer --largest-batch 1
has '^cpu:0 +fp32 +infer +1 +[0-9.]+ .* ~[0-9.]+ h$' resnet50.txt
run transfer 2s
has '^  cpu:0, perceptron, overlapped: ' transfer.txt
has '^  cpu:0, perceptron, replayed or launched anew: the CPU computes within a run' transfer.txt
has '^No GPU was measured' transfer.txt
if command -v mpirun >/dev/null && [[ -e $bin/../lib/librt/communicator_mpi.so ]]; then
  run scaling 7s
  row_or_reason 'cpu:0 +1 +256' 'cpu:0, 1 rank' scaling.txt
  row_or_reason 'cpu:0 +2 +128' 'cpu:0, 2 ranks' scaling.txt
fi

echo "--- less work than planned is marked, and said"
"$bin/rtbench" study perceptron --backend cpu --budget 1s >short.txt 2>/dev/null || [[ $? == 3 ]] || fail "1 s: exit code $?"
has '^~: extrapolated from less work than it stands for|: the budget was spent|: no step was done within' short.txt
has 'cut short by the budget of 1.0 s' short.txt

echo "--- JSON, with data of the user's own"
for i in {1..40}; do printf 'ham\tthe cat number %d sat\nspam\twin %d prizes now\n' $i $i; done >own.tsv
"$bin/rtbench" study text --backend cpu --budget 4s --data own.tsv --json >text.json 2>text.err || fail "exit code $?: $(cat text.err)"
has '"the messages of --data|messages of --data' text.json
"$bin/rtbench" study matmul --budget 1s --backend cpu --json >matmul.json 2>/dev/null || fail "matmul --json: exit code $?"
python3 "$sources/tests/rtbench/schema.py" "$sources/schema/experiment.schema.json" text.json matmul.json || [[ $? == 77 ]] ||
  fail "the JSON does not follow its schema"

echo "--- no data, no programs"
code=0
"$bin/rtbench" study text --backend cpu --data absent.tsv >absent.txt 2>&1 || code=$?
[[ $code == 3 ]] && grep -q 'absent.tsv' absent.txt || fail "an absent file: exit code $code: $(cat absent.txt)"

echo "--- Ctrl-C: what was measured is there"
code=0
timeout --foreground --preserve-status -s INT 3 "$bin/rtbench" study matmul --backend cpu --budget 100s >stopped.txt 2>/dev/null || code=$?
[[ $code == 130 ]] || fail "Ctrl-C: exit code $code: $(cat stopped.txt)"
has '^experiment matmul, .*, interrupted' stopped.txt
has '^cpu:0 +1024 ' stopped.txt
has '^  size [0-9]+: interrupted' stopped.txt
code=0
timeout --foreground --preserve-status -s INT 1 "$bin/rtbench" study perceptron --backend cpu --budget 100s >stopped.txt 2>/dev/null || code=$?
[[ $code == 130 ]] || fail "Ctrl-C while it trains: exit code $code: $(cat stopped.txt)"
has '^experiment perceptron, .*, interrupted' stopped.txt
echo "the experiments keep their promises"
