#!/usr/bin/env bash
# ranks.sh BIN SCRATCH BACKEND [nccl]: data-parallel training. N ranks equal one within rounding, for all features of a step; they
# resume bit for bit; a rank that dies ends the others, and the checkpoint stays valid. nccl: the emulated device finds and uses NCCL.
set -euo pipefail
bin=$1 scratch=$2/ranks-$3${4:+-$4} backend=$3 carrier=${4:-mpi}
. "$(dirname "$0")/mpi.sh"
[[ $carrier == mpi ]] || export RT_EMULATOR_LIBRARIES=nccl RT_FAKE_NCCL=counts

# 106 images from the bytes of seeded weights, the same in every build, and labels.
"$bin/rtconvert" zoo:mlp -o bytes.rt >/dev/null
{ printf '\0\0\x08\x03\0\0\0\x6a\0\0\0\x1c\0\0\0\x1c'; tail -c $((106 * 28 * 28)) bytes.rt; } >images
{ printf '\0\0\x08\x01\0\0\0\x6a'; for i in {1..106}; do printf "\\x0$((i * 7 % 10))"; done; } >labels
data=(--data images --labels labels --scale 0.00392157 --backend "$backend" --threads 1 --deterministic=run --seed 5)
compile() {
  local name=$1
  shift
  "$bin/rtconvert" zoo:lenet5 -o "$name.rt" --train --data-parallel --bucket-size "${bucket:-16KiB}" "$@" >/dev/null
}
alone() { "$bin/rttrain" "$@" "${data[@]}"; }
ranks() { local count=$1; shift; mpirun -n "$count" "$bin/rttrain" "$@" "${data[@]}"; }
# The metrics of the last epoch.
numbers() { tail -n 1 "$1" | grep -o '"\(loss\|validation_[a-z0-9_]*\)":[0-9.e-]*' | tr '\n' ' '; }
# near ONE OTHER WHAT [TOLERANCE]
near() {
  local a b
  a=$(numbers "$1") b=$(numbers "$2")
  [[ -n $a ]] || fail "$3: no numbers in $1: $(cat "$1")"
  awk -v a="$a" -v b="$b" -v tolerance="${4:-5e-6}" 'BEGIN {
    n = split(a, x, " "); m = split(b, y, " ")
    if (n != m) exit 1
    for (i = 1; i <= n; ++i) {
      split(x[i], p, ":"); split(y[i], q, ":"); d = p[2] - q[2]; d = d < 0 ? -d : d
      if (p[1] != q[1] || d > tolerance * (1 + p[2])) exit 1
    }
  }' || fail "$3: one process $a, ranks $b"
}
same() { cmp "$1" "$2" || fail "$3: the checkpoints differ"; }
# carried_by COUNT ERR: what carries the collectives, from the first line and NCCL's counts
carried_by() {
  local words="$1 ranks over MPI$([[ $backend == cpu ]] || echo ', by way of host memory')" counted
  [[ $carrier == mpi ]] || words="$1 ranks over NCCL 2."
  grep -q "$words" "$2" || fail "who carries the sums? expected '$words': $(cat "$2")"
  counted=$(grep -c 'fake NCCL: rank [0-9]*: [1-9][0-9]* sums' "$2" || :)
  [[ $counted == $([[ $carrier == mpi ]] && echo 0 || echo "$1") ]] || fail "$counted ranks have counted sums over NCCL: $(cat "$2")"
}
# compare NAME COUNTS OPTION..: the model NAME in one process and on several ranks
compare() {
  local name=$1 counts=$2 model=${plain:-$1}
  shift 2
  alone "$model.rt" --json "$@" >"$name.one" 2>/dev/null
  for count in $counts; do
    ranks "$count" "$name.rt" --json "$@" >"$name.$count" 2>"$name.$count.err" || fail "$name on $count ranks: $(cat "$name.$count.err")"
    carried_by "$count" "$name.$count.err"
    near "$name.one" "$name.$count" "$name on $count ranks"
  done
}

# Backend-independent behaviour is tested on one backend.
[[ $backend == cpu || $carrier == nccl ]] && counts='2 4' || counts=2

# Batches of 50 are split into unequal parts, as is the last one of 6; an ignored label makes their weights unequal.
echo "--- N ranks are one: plain, ignored labels, validation"
compile sgd --optimizer sgd --ignore-index 7
compare sgd "$counts" --epochs 3 --batch 50 --lr 0.005 --validate images --validate-labels labels
echo "--- unequal shares, given and measured: the same result"
three=(--epochs 3 --batch 50 --lr 0.005 --validate images --validate-labels labels)
ranks 2 sgd.rt --json "${three[@]}" --share 3,1 >sgd.shares 2>sgd.shares.err || fail "--share 3,1: $(cat sgd.shares.err)"
near sgd.one sgd.shares "--share 3,1"
grep -q 'rttrain: of a batch of 50 samples: 37 on rank 0 .*, 13 on rank 1' sgd.shares.err || fail "the parts are not named: $(cat sgd.shares.err)"
unordered=()
for option in "${data[@]}"; do [[ $option == --deterministic=run ]] || unordered+=("$option"); done
mpirun -n 2 "$bin/rttrain" sgd.rt --json "${three[@]}" "${unordered[@]}" --share auto >sgd.auto 2>sgd.auto.err || fail "--share auto: $(cat sgd.auto.err)"
near sgd.one sgd.auto "--share auto"
grep -qE 'rttrain: of a batch of 50 samples: [0-9]+ on rank 0 .*, [0-9]+ on rank 1 .*, by measured speed' sgd.auto.err || fail "the parts are not named: $(cat sgd.auto.err)"
if [[ $backend == cpu ]]; then
  echo "--- clipping by norm, loss scaling, average, groups"
  compile full --optimizer adamw --clip-norm 0.5 --loss-scale dynamic --loss-scale-interval 4 --ema 0.9 --group '*bias*:lr=0.5,weight_decay=0'
  compare full "2" --epochs 2 --batch 50 --lr 0.002
  echo "--- micro-batches"
  compile parts --optimizer sgd --accumulate
  compare parts "2" --epochs 2 --batch 48 --micro-batch 8 --drop-last --lr 0.005
fi
echo "--- sharded optimizer"
compile whole --optimizer adam --clip-norm 1 --group '*bias*:lr=0.5'
for count in $counts; do
  compile "shards$count" --optimizer adam --clip-norm 1 --group '*bias*:lr=0.5' --shard-optimizer "$count"
  plain=whole compare "shards$count" "$count" --epochs 2 --batch 50 --lr 0.002
done

if [[ $backend == cpu ]]; then
  # Buckets large enough that a rank's part is stored in 8 bits. This changes the values a little.
  echo "--- sharded optimizer in 8 bits"
  for state in f32 u8; do
    bucket=256KiB compile "state_$state" --optimizer adam --shard-optimizer 2 --optimizer-state $state
    ranks 2 "state_$state.rt" --epochs 2 --batch 50 --lr 0.002 --json --checkpoint "state_$state.ckpt" >"state_$state.log" 2>/dev/null
  done
  near state_f32.log state_u8.log "states in 8 bits" 5e-3
  [[ $(numbers state_f32.log) != $(numbers state_u8.log) ]] || fail "states in 8 bits: the numbers are those of f32"
  for part in ckpt ckpt.step6.rank1; do
    (($(stat -c %s state_u8.$part) * 4 < $(stat -c %s state_f32.$part) * 3)) || fail "$part is not smaller in 8 bits: $(ls -l state_*)"
  done
fi
if [[ $carrier == nccl ]]; then
  grep -q 'fake NCCL: rank 1: [0-9]* sums, [1-9][0-9]* gathers' shards2.2.err || fail "weights were not gathered over NCCL"
  echo "--- not all ranks have NCCL, or can start it: all meet in host memory"
  few=(sgd.rt --epochs 1 --batch 60 --lr 0.02 --json "${data[@]}")
  "$bin/rttrain" "${few[@]}" >few.one 2>/dev/null
  mpirun -n 1 "$bin/rttrain" "${few[@]}" : -n 1 env -u RT_EMULATOR_LIBRARIES "$bin/rttrain" "${few[@]}" >few.two 2>few.err
  grep -q '2 ranks over MPI, by way of host memory (rank 1: libnccl.so.2 was not found' few.err || fail "NCCL on one rank: $(cat few.err)"
  near few.one few.two "NCCL on one rank"
  RT_FAKE_NCCL='fails on 1' mpirun -n 2 "$bin/rttrain" "${few[@]}" >few.two 2>few.err
  grep -q '2 ranks over MPI, by way of host memory (rank 1: NCCL: remote process' few.err || fail "NCCL fails to start: $(cat few.err)"
  near few.one few.two "NCCL fails to start"
fi

echo "--- resumed bit for bit, sharded and not"
for name in $([[ $backend != cpu ]] || echo sgd state_u8) shards2; do
  ranks 2 $name.rt --epochs 3 --batch 50 --checkpoint $name.straight >/dev/null 2>&1
  ranks 2 $name.rt --epochs 3 --batch 50 --checkpoint $name.parts --steps 8 >/dev/null 2>&1
  # What killed runs may leave: a part of an older step, half a part, the part of a rank that is no more.
  [[ $name != shards2 ]] || for part in step3.rank1 step3.rank1.partial-0 step3.rank5; do echo old >$name.parts.$part; done
  ranks 2 $name.rt --epochs 3 --batch 50 --checkpoint $name.parts --resume >/dev/null 2>&1 || fail "$name: cannot resume"
  same $name.straight $name.parts "$name stopped after 8 steps"
done
for name in $([[ $backend != cpu ]] || echo state_u8) shards2; do
  same $name.straight.step9.rank1 $name.parts.step9.rank1 "$name: the second rank's part"
done
[[ $(compgen -G 'shards2.parts.step*' | wc -l) == 1 ]] || fail "parts of older checkpoints stayed: $(compgen -G 'shards2.parts.step*')"
for part in shards2.parts shards2.parts.step9.rank1; do
  "$bin/rtconvert" shards2.rt --checkpoint $part -o $part.rt >/dev/null || fail "the sharded checkpoint gives no weights"
done
same shards2.parts.rt shards2.parts.step9.rank1.rt "the weights of two ranks"
[[ $backend == cpu || $carrier == nccl ]] || { echo "all of it"; exit 0; }

# Starts mpirun in the background, waits for a checkpoint; $mpi is its process, $pids are those of the ranks.
start() {
  local count=$1
  shift
  rm -f log
  mpirun -n "$count" "$bin/rttrain" "$@" "${data[@]}" --batch 50 --epochs 100000 --log log --log-every 1 --checkpoint-every 1 \
    >out 2>err &
  mpi=$!
  until [[ -s log ]]; do kill -0 $mpi 2>/dev/null || fail "the training ended: $(cat err)"; read -rt 0.05 <> <(:) || :; done
  local rank
  pids=()
  for ((rank = 0; rank < count; ++rank)); do pids+=($(rank_process $rank)); done
  ((${#pids[@]} == count)) || fail "expected $count ranks, found ${#pids[@]}"
}
steps_of() { ranks "$1" "$2" --batch 50 --epochs 100000 --checkpoint "$3" --resume --steps 1 2>&1 | sed -n 's/.*continues after step \([0-9]*\)$/\1/p'; }
go_on() {
  local count=$1 model=$2 checkpoint=$3 steps
  steps=$(steps_of "$count" "$model" "$checkpoint")
  [[ -n $steps ]] || fail "$checkpoint cannot be continued"
  ranks "$count" "$model" --batch 50 --epochs 100000 --checkpoint "$checkpoint" --resume --steps $((steps + 2)) >/dev/null 2>&1
  ranks "$count" "$model" --batch 50 --epochs 100000 --checkpoint straight --overwrite --steps $((steps + 2)) >/dev/null 2>&1
  same straight "$checkpoint" "$4 after step $steps"
}

for name in $([[ $backend != cpu ]] || echo sgd) shards2; do
  echo "--- a rank is killed: $name"
  for victim in 1 0; do
    start 2 $name.rt --checkpoint killed.$name $([[ -e killed.$name ]] && echo --resume)
    began=$SECONDS
    kill -KILL "${pids[$victim]}"
    code=0
    wait $mpi || code=$?
    ((code != 0)) || fail "a killed rank: exit code 0"
    for pid in "${pids[@]}"; do
      while kill -0 "$pid" 2>/dev/null; do
        ((SECONDS - began <= 8)) || fail "rank $pid goes on alone after $((SECONDS - began)) s"
        read -rt 0.05 <> <(:) || :
      done
    done
    ((SECONDS - began <= 8)) || fail "the others ended after $((SECONDS - began)) s"
    grep -q 'rank [01] (process [0-9]* on .*) has ended' err || fail "no message: $(cat err)"
  done
  go_on 2 $name.rt killed.$name "killed"
done

[[ $backend == cpu ]] || { echo "all of it"; exit 0; }

echo "--- SIGTERM to one rank ends all after the same step"
start 4 sgd.rt --checkpoint stopped
kill -TERM "${pids[2]}"
wait $mpi || fail "exit code $? after SIGTERM: $(cat err)"
grep -q 'stopped after step' err || fail "no message: $(cat err)"
go_on 4 sgd.rt stopped "SIGTERM"

echo "--- what cannot work says so"
"$bin/rtconvert" zoo:lenet5 -o none.rt --train >/dev/null
refuses 2 'rtconvert --train --data-parallel' ranks 2 none.rt --batch 50
refuses 2 'use mpirun -n 4' ranks 2 shards4.rt --batch 50
refuses 2 'expected a number for each of 2 processes, found 3' ranks 2 sgd.rt --batch 50 --share 3,1,1
refuses 2 'differs from run to run' ranks 2 sgd.rt --batch 50 --share auto
refuses 2 'use mpirun -n 4' alone shards4.rt --batch 50
refuses 2 'cannot be cut into parts for 4 ranks' ranks 4 sgd.rt --batch 3
refuses 2 'does not belong to this model' alone sgd.rt --batch 50 --checkpoint shards2.parts --resume
refuses 2 '--memory' rtconvert zoo:lenet5 -o budget.rt --train --data-parallel --shard-optimizer 2 --memory 64MiB --batch 50
refuses 2 'lamb' rtconvert zoo:lenet5 -o lamb.rt --train --data-parallel --shard-optimizer 2 --optimizer lamb
echo "all of it"
