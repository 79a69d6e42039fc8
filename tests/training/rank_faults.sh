#!/usr/bin/env bash
# rank_faults.sh BIN SCRATCH: ranks that were started differently are refused before the first step, by all of them, with what differs;
# a rank that is stopped, killed or too slow ends the others in time, and the checkpoint stays valid; one that is merely slow does not.
set -euo pipefail
bin=$1 scratch=$2/rank_faults
. "$(dirname "$0")/mpi.sh"

# Images from the bytes of seeded weights, the same in every build, and labels: 256 of both, 255, 256 others.
"$bin/rtconvert" zoo:mlp -o bytes.rt >/dev/null
idx_images() { printf "\\0\\0\\x08\\x03\\0\\0$2\\0\\0\\0\\x1c\\0\\0\\0\\x1c"; head -c -$(((256 - $1) * 28 * 28 + ${3:-0})) bytes.rt | tail -c $(($1 * 28 * 28)); }
idx_labels() { printf "\\0\\0\\x08\\x01\\0\\0$2"; for ((i = 1; i <= $1; ++i)); do printf "\\x0$((i * 7 % 10))"; done; }
idx_images 256 '\x01\0' >images
idx_labels 256 '\x01\0' >labels
idx_images 255 '\0\xff' >fewer_images
idx_labels 255 '\0\xff' >fewer_labels
idx_images 256 '\x01\0' 1 >other_images
mkdir elsewhere
cp images labels elsewhere
for optimizer in sgd adam; do
  "$bin/rtconvert" zoo:lenet5 -o $optimizer.rt --train --data-parallel --bucket-size 16KiB --optimizer $optimizer >/dev/null
done
cp sgd.rt elsewhere/same.rt

# Debian 13's mpirun (Open MPI 5.0.7) crashes.
mpirun -n 1 true : -n 1 true >/dev/null 2>&1 || skip "this mpirun cannot start two programs: $(mpirun --version | head -n 1)"
# A run that should end at once must not hang.
limit=120
mpi=
trap '[[ -z $mpi ]] || kill "$mpi" 2>/dev/null || :' EXIT
# pair "ARGUMENTS OF RANK 0" "ARGUMENTS OF RANK 1" OPTION..: both with the options
pair() {
  local first=$1 second=$2
  shift 2
  code=0
  # shellcheck disable=SC2086
  timeout -k 5 $limit mpirun -n 1 "$bin/rttrain" $first --backend cpu --threads 1 --scale 0.00392157 "$@" : \
    -n 1 "$bin/rttrain" $second --backend cpu --threads 1 --scale 0.00392157 "$@" >out 2>err || code=$?
  ((code != 124 && code != 137)) || fail "'$first' and '$second' hang: $(cat err)"
}
# differ WORDS "ARGUMENTS OF RANK 0" "ARGUMENTS OF RANK 1" OPTION..
differ() {
  local words=$1 rank
  shift
  pair "$@"
  ((code == 2)) || fail "expected exit code 2 for '$1' and '$2', found $code: $(cat err)"
  for rank in 0 1; do
    grep -q "^rttrain: rank $rank: the ranks differ: .*$words" err || fail "rank $rank does not say '$words': $(cat err)"
  done
  ! grep -q '^epoch' out || fail "'$1' and '$2' have trained: $(cat out)"
}
data='--data images --labels labels'
run="sgd.rt $data"

echo "--- options"
differ '--batch is 64 on rank 0, 32 on rank 1' "$run --batch 64" "$run --batch 32"
differ '--lr is 0.01 on rank 0, 0.02 on rank 1' "$run" "$run --lr 0.02"  # the default of sgd
differ '--seed is 5 on rank 0, 6 on rank 1' "$run --seed 5" "$run --seed 6"
differ '--seed is 9007199254740993 on rank 0, 9007199254740992' "$run --seed 9007199254740993" "$run --seed 9007199254740992"
differ '--epochs is 1 on rank 0, 2 on rank 1' "$run" "$run --epochs 2"
differ '--drop-last is not given on rank 0, true on rank 1' "$run" "$run --drop-last"
differ '--augment is flip,crop=2 on rank 0, flip on rank 1' "$run --augment flip,crop=2" "$run --augment flip"
differ '--checkpoint is given on rank 0, not given on rank 1' "$run --checkpoint one.ckpt" "$run"
differ '--batch is 32 on rank 0, 16 on rank 1; --seed is 1 on rank 0, 2 on rank 1' "$run" "$run --batch 16 --seed 2"
[[ ! -e one.ckpt ]] || fail "refused ranks have written a checkpoint"

echo "--- model and data"
differ 'content of the model is [0-9a-f]* on rank 0, [0-9a-f]* on rank 1' "sgd.rt $data" "adam.rt $data" --lr 0.01
differ 'number of training samples is 256 on rank 0, 255 on rank 1' "$run" "sgd.rt --data fewer_images --labels fewer_labels"
differ 'content of training samples is' "$run" "sgd.rt --data other_images --labels labels"
differ 'content of validation samples is' "$run --validate images --validate-labels labels" \
  "$run --validate other_images --validate-labels labels"
differ 'number of validation samples is unknown on rank 0, 256 on rank 1' "$run" "$run --validate images --validate-labels labels"

echo "--- three ranks, of which one is different"
code=0
timeout -k 5 $limit mpirun -n 2 "$bin/rttrain" $run --backend cpu --threads 1 : -n 1 "$bin/rttrain" $run --backend cpu --threads 1 --seed 3 \
  >out 2>err || code=$?
((code == 2)) && grep -q 'rank 2: the ranks differ: --seed is 1 on ranks 0, 1, 3 on rank 2;' err || fail "three ranks: $code $(cat err)"

echo "--- checkpoints to resume"
for steps in 2 3; do
  pair "$run --checkpoint $steps.ckpt" "$run --checkpoint $steps.ckpt" --steps $steps
  ((code == 0)) || fail "exit code $code: $(cat err)"
done
differ 'content of --checkpoint is' "$run --checkpoint 2.ckpt --resume" "$run --checkpoint 3.ckpt --resume"

echo "--- what may differ"
there="elsewhere/same.rt --data elsewhere/images --labels elsewhere/labels"
pair "$run --lr 0.01 --epochs 1 --json --log log --workers 1" "$there --lr 1e-2 --workers 0" --batch 64
((code == 0)) && grep -q '"epoch":1' out || fail "equal values in other words: $code $(cat err)"

# Starts mpirun in the background and waits for steps; $mpi is its process, $pids are those of the ranks.
seconds=6
long=(sgd.rt --data images --labels labels --backend cpu --threads 1 --batch 64 --scale 0.00392157)
start() {
  rm -f log
  timeout -k 5 $limit mpirun -n 2 "$bin/rttrain" "${long[@]}" --rank-timeout $seconds --epochs 1000000 --log log --log-every 1 \
    --checkpoint-every 1 "$@" >out 2>err &
  mpi=$!
  until [[ -s log ]]; do kill -0 $mpi 2>/dev/null || fail "the training ended: $(cat err)"; pause; done
  pids=()
  local rank
  for rank in 0 1; do pids+=("$(rank_process $rank)"); done
}
pause() { read -rt 0.05 <> <(:) || :; }
# ends CODE WORDS: the run ends with this code and message, and leaves no process
ends() {
  local found=0 pid
  wait $mpi || found=$?
  mpi=
  [[ $found == "$1" ]] || fail "expected exit code $1, found $found: $(cat err)"
  grep -q "$2" err || fail "expected '$2': $(cat err)"
  for pid in "${pids[@]}"; do
    for _ in {1..200}; do [[ -e /proc/$pid ]] || break; pause; done
    [[ ! -e /proc/$pid ]] || fail "process $pid is still there"
  done
}
# The checkpoint is whole, and continues as if nothing had happened.
continues() {
  local steps
  steps=$("$bin/rttrain" "${long[@]}" --epochs 1000000 --checkpoint "$1" --resume --steps 1 2>&1 | sed -n 's/.*continues after step \([0-9]*\)$/\1/p')
  [[ -n $steps ]] || fail "$1 cannot be continued"
  for run in "$1 --resume" "straight --overwrite"; do
    # shellcheck disable=SC2086
    timeout -k 5 $limit mpirun -n 2 "$bin/rttrain" "${long[@]}" --epochs 1000000 --steps $((steps + 2)) --checkpoint $run >/dev/null 2>&1 ||
      fail "cannot train to step $((steps + 2))"
  done
  cmp "$1" straight || fail "$1 after step $steps differs"
  ! compgen -G "$1.partial*" || fail "half a checkpoint stayed"
}

for victim in 1 0; do
  other=$((1 - victim))
  echo "--- rank $victim is stopped"
  start --checkpoint stopped$victim
  kill -STOP "${pids[$victim]}"
  ends 3 "rank $other: rank $victim (process ${pids[$victim]} on .*) has not answered for $seconds seconds"
  continues stopped$victim
  echo "--- rank $victim is killed"
  start --checkpoint killed$victim
  kill -KILL "${pids[$victim]}"
  ends 137 "rank $victim (process ${pids[$victim]} on .*) has ended"
  continues killed$victim
done

echo "--- all are stopped for longer, and go on"
start --checkpoint paused
kill -STOP "${pids[@]}"
read -rt $((seconds + 3)) <> <(:) || :
before=$(wc -l <log)
for pid in "${pids[@]}"; do kill -CONT "$pid"; pause; done
for _ in {1..600}; do (($(wc -l <log) < before + 20)) || break; pause; done
(($(wc -l <log) >= before + 20)) || fail "stopped and continued ranks do not go on: $(cat err)"
kill -TERM "${pids[0]}"
ends 0 'stopped after step'

echo "--- a process that never joins"
code=0
timeout -k 5 $limit mpirun -n 1 "$bin/rttrain" "${long[@]}" --rank-timeout $seconds : -n 1 sleep 1000 >out 2>err || code=$?
((code == 3)) && grep -q "the ranks have not all joined within $seconds seconds" err || fail "one of two joins: exit code $code: $(cat err)"

echo "--- a rank that is slow is waited for, but not longer than --rank-wait"
{ seq -s , 784 && awk 'BEGIN { for (i = 0; i < 64; ++i) { for (k = 1; k < 785; ++k) printf "%d,", (i * k) % 7; print i % 10 } }'; } |
  sed '1s/$/,label/' >table.csv
mkfifo slow
slow() {
  { exec 3>slow; read -rt $((2 * seconds)) <> <(:) || :; cat table.csv >&3; } 2>/dev/null &
  pair 'sgd.rt --data table.csv' 'sgd.rt --data slow --format csv' --rank-timeout $seconds "$@"
  wait $! || :
}
slow
((code == 0)) || fail "a slow rank: exit code $code: $(cat err)"
slow --rank-wait 3
((code == 3)) && grep -q 'waited 3 seconds for rank 1 (process .* on .*), which still answers; --rank-wait' err ||
  fail "a rank that is too slow: exit code $code: $(cat err)"
echo "all of it"
