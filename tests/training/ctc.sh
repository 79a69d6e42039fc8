#!/usr/bin/env bash
# ctc.sh BIN SCRATCH BACKEND CASE: label sequences trained with the loss ctc, and the validation metrics.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2/ctc-$3 backend=$3 make_case=$4
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
number() { grep -o "\"$1\":[0-9.e-]*" <<<"$2" | cut -d: -f2; }

"$make_case" .
"$bin/rtconvert" model.onnx -o net.rt --train --loss ctc --optimizer adam >/dev/null
options=(--data train.npz --validate test.npz --batch 32 --lr 0.05 --backend "$backend" --threads 1 --seed 3)
"$bin/rttrain" net.rt "${options[@]}" --epochs 30 --target label_error_rate=0.02 --best best.ckpt --json >log 2>err ||
  fail "the target was not reached: $(tail -n 2 log)"
first=$(head -n 1 log) last=$(tail -n 1 log)
echo "$last"
[[ -s best.ckpt ]] || fail "no checkpoint of the best epoch"
[[ $(wc -l <log) -gt 1 ]] || fail "the first epoch reached it: this shows nothing"
awk -v a="$(number validation_label_error_rate "$first")" -v b="$(number validation_label_error_rate "$last")" \
  -v loss="$(number loss "$last")" -v validation="$(number validation_loss "$last")" \
  'BEGIN { exit !(a > 0.05 && b <= 0.02 && validation > 0 && validation < 2 * loss) }' || fail "from $first to $last"

if command -v mpirun >/dev/null && [[ -e $bin/../lib/librt/communicator_mpi.so && $backend == cpu ]]; then
  . "$(dirname "$0")/../support/open_mpi.sh"
  "$bin/rtconvert" model.onnx -o ranks.rt --train --loss ctc --optimizer adam --data-parallel >/dev/null
  "$bin/rttrain" ranks.rt "${options[@]}" --epochs 3 --json 2>/dev/null | tail -n 1 >one
  mpirun -n 2 "$bin/rttrain" ranks.rt "${options[@]}" --epochs 3 --json 2>/dev/null | tail -n 1 >two
  for metric in loss validation_loss validation_label_error_rate validation_sequence_accuracy; do
    awk -v a="$(number $metric "$(cat one)")" -v b="$(number $metric "$(cat two)")" \
      'BEGIN { d = a - b; exit !(a != "" && d * d < 1e-8) }' || fail "$metric on two ranks: $(cat one two)"
  done
fi

code=0
"$bin/rttrain" net.rt "${options[@]}" --epochs 1 --target accuracy=1 >out 2>err || code=$?
[[ $code == 2 ]] && grep -q "there is no metric 'accuracy'; this model's are loss, label_error_rate, sequence_accuracy" err ||
  fail "a metric of another loss: $code, $(cat err)"
echo "all of it"
