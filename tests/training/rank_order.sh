#!/usr/bin/env bash
# rank_order.sh BIN SCRATCH BACKEND: with --deterministic a training has the same bits on any number of ranks: losses, metrics, weights,
# optimizer, in every checkpoint. What cannot have them is refused with the reason.
set -euo pipefail
bin=$1 scratch=$2/rank_order-$3 backend=$3
. "$(dirname "$0")/mpi.sh"

# 112 images from the bytes of seeded weights, the same in every build, and labels. Of batches of 48 the last one has 16.
"$bin/rtconvert" zoo:mlp -o bytes.rt >/dev/null
{ printf '\0\0\x08\x03\0\0\0\x70\0\0\0\x1c\0\0\0\x1c'; tail -c $((112 * 28 * 28)) bytes.rt; } >images
{ printf '\0\0\x08\x01\0\0\0\x70'; for i in {1..112}; do printf "\\x0$((i * 7 % 10))"; done; } >labels
compile() {
  local name=$1 net=$2
  shift 2
  "$bin/rtconvert" "zoo:$net" -o "$name.rt" --train --data-parallel --optimizer adam "$@" >/dev/null
}
data=(--data images --labels labels --validate images --validate-labels labels --scale 0.00392157 --augment crop=2)
# train COUNT MODEL OPTION..
train() {
  local count=$1 model=$2 start=()
  shift 2
  ((count == 1)) || start=(mpirun -n "$count")
  timeout -k 5 300 "${start[@]}" "$bin/rttrain" "$model" "${data[@]}" --backend "$backend" --threads "${threads:-1}" "$@"
}
# equal COUNTS NAME OPTION..: the model NAME on these numbers of ranks and on one
equal() {
  local counts=$1 name=$2
  shift 2
  for count in 1 $counts; do
    train "$count" "$name.rt" --epochs 2 --batch 48 --json --checkpoint "$name.$count" --best "$name.best.$count" --overwrite "$@" \
      >out 2>"$name.err.$count" || fail "$name on $count ranks: $(cat "$name.err.$count")"
    grep -o '"\(loss\|validation_[a-z0-9_]*\)":[0-9.e-]*' out >"$name.numbers.$count" || fail "no losses: $(cat out)"
    for file in "$name" "$name.best" "$name.numbers"; do
      cmp "$file.1" "$file.$count" || fail "$file differs on $count ranks: $(cat "$name.numbers.1" "$name.numbers.$count")"
    done
  done
}

[[ $backend == cpu ]] && counts='2 4' || counts=2
echo "--- the same bits"
compile whole lenet5 --accumulate --clip-norm 0.5 --loss-scale dynamic --loss-scale-interval 4 --ema 0.9
equal "$counts" whole --micro-batch 4 --deterministic --lr 0.002
[[ $backend == cpu ]] || { echo "all of it"; exit 0; }
equal 3 whole --micro-batch 8 --deterministic --drop-last

echo "--- without it, other bits"
for count in 1 2; do
  train $count whole.rt --epochs 1 --batch 48 --micro-batch 4 --deterministic=run --checkpoint "run.$count" >/dev/null 2>&1 ||
    fail "--deterministic=run on $count ranks"
done
! cmp -s run.1 run.2 || fail "sums of one and two ranks are equal anyway: this test shows nothing"

echo "--- continued on another number of ranks"
for part in "2 --steps 2" "4 --resume --steps 4" "1 --resume"; do
  # shellcheck disable=SC2086
  train ${part%% *} whole.rt --epochs 2 --batch 48 --micro-batch 4 --deterministic --lr 0.002 --checkpoint parts ${part#* } \
    >/dev/null 2>err || fail "$part: $(cat err)"
done
train 1 whole.rt --epochs 2 --batch 48 --micro-batch 4 --deterministic --lr 0.002 --checkpoint straight >/dev/null 2>&1
cmp straight parts || fail "a training continued on 2, 4 and 1 ranks"

echo "--- what cannot have the same bits says why"
compile plain lenet5
compile statistics resnet18_mnist --accumulate
compile random lenet5 --accumulate --lora rank=2,alpha=4,dropout=0.1
refuses 2 'give --micro-batch' train 2 whole.rt --deterministic
refuses 2 'compile the model with rtconvert --train --data-parallel --accumulate' train 2 plain.rt --deterministic
refuses 2 'each rank has batches of its own: ' train 2 statistics.rt --batch 48 --micro-batch 4 --deterministic
grep -q 'own: .*mean' error.txt || fail "no state of the batch normalizations: $(cat error.txt)"
refuses 2 'each rank has batches of its own: random.counter' train 2 random.rt --batch 48 --micro-batch 4 --deterministic
refuses 2 'the last batch of an epoch, 16 samples' train 2 whole.rt --batch 32 --micro-batch 16 --deterministic
threads=0 refuses 2 'give --threads' train 2 whole.rt --batch 48 --micro-batch 4 --deterministic
train 2 plain.rt --batch 48 --deterministic=run --epochs 1 >/dev/null 2>err || fail "--deterministic=run: $(cat err)"
echo "all of it"
