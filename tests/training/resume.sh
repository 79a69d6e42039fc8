#!/usr/bin/env bash
# resume.sh BIN SCRATCH BACKEND MODEL: interrupted training equals uninterrupted training bit for bit, and if writing a checkpoint
# fails in any way, the previous one stays intact.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2/resume-$3 backend=$3 model=$4
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

# 256 images from the bytes of a program, and labels.
{ printf '\0\0\x08\x03\0\0\x01\0\0\0\0\x1c\0\0\0\x1c'; head -c $((256 * 28 * 28)) "$bin/rtconvert"; } >images
{ printf '\0\0\x08\x01\0\0\x01\0'; for i in {1..256}; do printf "\\x0$((i * 7 % 10))"; done; } >labels
"$bin/rtconvert" "$model" -o model.rt --train --optimizer adam >/dev/null
seed=5
run() {
  ${replace:-} "$bin/rttrain" model.rt --data images --labels labels --scale 0.00392157 --augment flip,crop=2 --batch 48 --lr 0.0005 \
    --seed "$seed" --backend "$backend" --deterministic "$@"
}
train() { replace='' run "$@"; }
# In the background, so that $! is the program and not a shell.
start() { replace=exec run "$@"; }
same() { cmp "$1" "$2" || fail "$3: the checkpoints differ"; }

echo "--- in the middle of an epoch, at its end, with other numbers of threads"
train --epochs 3 --checkpoint whole >whole.log
train --epochs 3 --checkpoint parts --steps 4 --workers 5 >/dev/null
train --epochs 3 --checkpoint parts --steps 12 --resume --workers 0 >/dev/null
train --epochs 3 --checkpoint parts --resume --prefetch 1 >parts.log
same whole parts "stopped after 4 and 12 steps"
[[ $(tail -n 1 whole.log | cut -d' ' -f1-4) == $(tail -n 1 parts.log | cut -d' ' -f1-4) ]] || fail "the losses differ"
seed=6 train --epochs 3 --checkpoint other >/dev/null
! cmp -s whole other || fail "another seed must give another result"

echo "--- a checkpoint of an earlier run is not replaced by mistake"
cp whole kept
for option in --checkpoint --best; do
  code=0
  train --epochs 1 --validate-fraction 0.1 $option kept --log kept.log >/dev/null 2>kept.err || code=$?
  [[ $code == 2 ]] && grep -q 'kept: a file of this name exists; .*--resume.*--overwrite' kept.err || fail "$option: exit code $code, $(cat kept.err)"
  [[ ! -e kept.log ]] || fail "$option: the refused run began"
done
same whole kept "after a run without --resume"
train --epochs 1 --checkpoint kept --overwrite >/dev/null
! cmp -s whole kept || fail "--overwrite replaced nothing"

echo "--- a position that no training reaches"
# 6 batches of 48 samples in an epoch. WORDS KEY=VALUE ...
refuses_position() {
  local code=0
  "$bin/edit_checkpoint" model.rt "$backend" halfway edited "${@:2}"
  cp edited before
  train --epochs 9 --checkpoint edited --resume --log edited.log >/dev/null 2>edited.err || code=$?
  [[ $code == 2 ]] && grep -qF "edited: $1" edited.err || fail "${*:2}: exit code $code, $(cat edited.err)"
  [[ ! -s edited.log ]] || fail "${*:2}: the refused run began"
  same before edited "${*:2}"
}
train --epochs 3 --checkpoint halfway --steps 8 >/dev/null
"$bin/edit_checkpoint" model.rt "$backend" halfway edited epoch=1
train --epochs 3 --checkpoint edited --resume >/dev/null
same whole edited "written again, the same position"
refuses_position "is at batch 7 of epoch 1, but the data has 6 batches in each epoch" batch=7 step=13
refuses_position "is at batch 18446744073709551615 of epoch 1" batch=18446744073709551615
refuses_position "is at batch 2 of epoch 18446744073709551615" epoch=18446744073709551615
refuses_position "is at step 18446744073709551615, but 1 epochs and 2 batches are 8 steps" step=18446744073709551615
refuses_position "is at step 0, but" step=0
refuses_position "has seen 97 samples in 2 batches of 48" seen=97
refuses_position "waits for a better epoch since 2 epochs, but is in epoch 1" waiting=2
refuses_position "has no rttrain.step" step=-1
refuses_position "has no rttrain.epoch" epoch=1.5
refuses_position "was written with rttrain.samples = 255, now it is 256" samples=255

echo "--- with an optimizer's state in 8 bits"
mv model.rt full.rt
"$bin/rtconvert" "$model" -o model.rt --train --optimizer adam --optimizer-state u8 >/dev/null
train --epochs 2 --checkpoint whole8 >/dev/null
train --epochs 2 --checkpoint parts8 --steps 4 >/dev/null
train --epochs 2 --checkpoint parts8 --resume >/dev/null
same whole8 parts8 "8 bits, stopped after 4 steps"
(($(stat -c %s whole8) * 9 / 5 < $(stat -c %s whole))) || fail "a state in 8 bits must be smaller"
mv full.rt model.rt

echo "--- SIGTERM"
start --epochs 100000 --checkpoint stopped --log stopped.log --log-every 1 2>stopped.err >/dev/null &
process=$!
until [[ -s stopped.log ]]; do kill -0 $process || fail "the training ended: $(cat stopped.err)"; read -rt 0.05 <> <(:) || :; done
kill -TERM $process
wait $process || fail "exit code $? after SIGTERM"
steps=$(sed -n 's/.*stopped after step \([0-9]*\);.*/\1/p' stopped.err)
[[ -n $steps ]] || fail "no step in: $(cat stopped.err)"
train --epochs 100000 --checkpoint stopped --resume --steps $((steps + 2)) >/dev/null
train --epochs 100000 --checkpoint straight --overwrite --steps $((steps + 2)) >/dev/null
same straight stopped "SIGTERM after step $steps"

echo "--- SIGKILL at any moment"
for pause in 0.31 0.07 0.45 0.13 0.22 0.05; do
  resume=()
  [[ ! -e killed ]] || resume=(--resume)
  cp killed before 2>/dev/null || :
  start --epochs 100000 --checkpoint killed --checkpoint-every 1 "${resume[@]}" >/dev/null 2>killed.err &
  process=$!
  while [[ ! -e killed ]] || cmp -s killed before; do
    kill -0 $process || fail "the training ended: $(cat killed.err)"
    read -rt 0.02 <> <(:) || :
  done
  read -rt "$pause" <> <(:) || :
  kill -KILL $process
  wait $process 2>/dev/null || :
  "$bin/rtconvert" model.rt --checkpoint killed -o weights.rt >/dev/null || fail "the checkpoint is damaged"
done
cp killed before
train --epochs 100000 --checkpoint killed --resume --steps 1 >/dev/null 2>killed.err  # is past that already
cmp killed before || fail "a run without a step changed the checkpoint"
steps=$(sed -n 's/.*continues after step \([0-9]*\)$/\1/p' killed.err)
((steps > 5)) || fail "killed six times, and the training is only at step $steps"
train --epochs 100000 --checkpoint killed --resume --steps $((steps + 2)) >/dev/null
train --epochs 100000 --checkpoint straight --overwrite --steps $((steps + 2)) >/dev/null
same straight killed "killed six times, the last time at step $steps"

echo "--- a full disk"
cp whole kept
code=0
# On the CPU, which can continue it too: the memory of lavapipe's device may be a file, to which the limit applies as well.
(trap '' XFSZ; ulimit -f 40; backend=cpu; train --epochs 4 --checkpoint kept --resume >/dev/null 2>full.err) || code=$?
[[ $code == 3 ]] || fail "a full disk: exit code $code, $(cat full.err)"
grep -q 'kept.*File too large' full.err || fail "a full disk: $(cat full.err)"
same whole kept "after a full disk"
! compgen -G 'kept.partial*' || fail "a partial file stayed"

echo "--- damage, other options"
cp whole damaged
size=$(stat -c %s damaged)
printf '\xa5\x5a\xa5' | dd of=damaged bs=1 seek=$((size / 2)) conv=notrunc status=none
code=0
train --epochs 4 --checkpoint damaged --resume >/dev/null 2>damaged.err || code=$?
[[ $code == 2 ]] && grep -q 'checksum' damaged.err || fail "damage: exit code $code, $(cat damaged.err)"
code=0
seed=9 train --epochs 4 --checkpoint kept --resume >/dev/null 2>seed.err || code=$?
[[ $code == 2 ]] && grep -q 'rttrain.seed = 5, now it is 9' seed.err || fail "another seed: exit code $code, $(cat seed.err)"

echo "--- a checkpoint for a model that has nothing to restore"
"$bin/rtconvert" zoo:lenet5 -o plain.rt >/dev/null
for program in "rtrun plain.rt --backend $backend --random-input" "rtconvert plain.rt -o x.rt"; do
  code=0
  # shellcheck disable=SC2086
  "$bin/"$program --checkpoint whole >/dev/null 2>plain.err || code=$?
  [[ $code == 2 ]] && grep -q 'a model with states' plain.err || fail "$program: exit code $code, $(cat plain.err)"
done

if [[ $backend != cpu ]]; then
  echo "--- from cpu to $backend"
  loss() { tail -n 1 "$1" | sed 's/.*"loss":\([0-9.e-]*\).*/\1/'; }
  backend_here=$backend
  backend=cpu
  train --epochs 3 --checkpoint moved --steps 8 >/dev/null
  train --epochs 3 --checkpoint stayed --json >stayed.log
  backend=$backend_here
  train --epochs 3 --checkpoint moved --resume --json >moved.log
  awk -v a="$(loss stayed.log)" -v b="$(loss moved.log)" 'BEGIN { d = a - b; exit d < 1e-3 && d > -1e-3 && a > 0 ? 0 : 1 }' ||
    fail "the last epoch's loss: $(loss stayed.log) on cpu, $(loss moved.log) moved"
fi
echo "all of it"
