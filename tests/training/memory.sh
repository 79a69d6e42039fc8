#!/usr/bin/env bash
# memory.sh BIN SCRATCH BACKEND RESIDENT: training within memory budgets: rtconvert's plan equals what rttrain and the system report,
# micro-batches and recomputation do not change the training, and a budget that is too small is rejected with the smallest sufficient one.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2/memory-$3 backend=$3 resident=$4
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

# data SAMPLES: images and labels.
data() {
  { printf '\0\0\x08\x03\0\0'; printf "\\x$(printf %02x $(($1 / 256)))\\x$(printf %02x $(($1 % 256)))"; printf '\0\0\0\x1c\0\0\0\x1c'; head -c $(($1 * 28 * 28)) "$bin/rtconvert"; } >images
  { printf '\0\0\x08\x01\0\0'; printf "\\x$(printf %02x $(($1 / 256)))\\x$(printf %02x $(($1 % 256)))"; for ((i = 1; i <= $1; ++i)); do printf "\\x0$((i * 7 % 10))"; done; } >labels
}
data 256
compile() { "$bin/rtconvert" "zoo:${net:-lenet5}" -o "$1" --train --optimizer adam --memory-backend "$backend" --batch 64 --memory "$2" --json "${@:3}"; }
field() { sed -n "s/.*\"$1\": *\"\\?\\([0-9a-z]*\\)\"\\?,\\?$/\\1/p" | tail -n 1; }  # of the last object that has it
train() {
  "$bin/rttrain" "$1" --data images --labels labels --validate images --validate-labels labels --scale 0.00392157 --epochs 2 --lr 0.001 \
    --backend "$backend" --deterministic --json "${@:2}"
}
loss() { tail -n 1 "$1" | sed 's/.*"loss":\([0-9.e-]*\).*/\1/'; }

compile whole.rt 1GiB >whole.json
sed -n '/"memory": {/,/}/p' whole.json >whole.memory
total=$(field bytes <whole.memory)
[[ $(field micro_batch <whole.memory) == 64 ]] || fail "a large budget: $(cat whole.memory)"
for part in 100 70 45; do
  budget=$((total * part / 100))
  compile part.rt $budget | sed -n '/"memory": {/,/}/p' >part.memory
  bytes=$(field bytes <part.memory) micro=$(field micro_batch <part.memory)
  echo "--- a budget of $budget bytes: $bytes bytes, micro-batches of $micro"
  ((bytes <= budget)) || fail "$bytes bytes are planned"
  ((part == 100 ? micro == 64 : micro < 64)) || fail "micro-batches of $micro"
  train part.rt >part.log 2>part.err
  grep -q "takes $bytes bytes" part.err || fail "planned $bytes, $(cat part.err)"
  train whole.rt --memory 1GiB >whole.log 2>/dev/null
  awk -v a="$(loss part.log)" -v b="$(loss whole.log)" 'BEGIN { d = a - b; exit d < 1e-4 && d > -1e-4 && a > 0 ? 0 : 1 }' ||
    fail "micro-batches of $micro: the loss is $(loss part.log), of whole batches $(loss whole.log)"
  # A last batch that is no multiple of the micro-batch has a plan of its own, in the memory of the other one.
  data 250
  train part.rt --memory "$bytes" >part.log 2>part.err || fail "250 samples with micro-batches of $micro: $(cat part.err)"
  taken=$(sed -n 's/.*takes \([0-9]*\) bytes.*/\1/p' part.err)
  ((taken <= bytes)) || fail "250 samples take $taken bytes, planned $bytes"
  data 256
done

echo "--- too little"
refused() {
  local code=0
  "$@" >refused.json 2>refused.log || code=$?  # the JSON repeats the message
  [[ $code == 3 ]] || fail "$*: exit code $code, $(cat refused.log)"
}
smallest_named() {
  sed -n 's/.*the smallest budget is [^(]*(\([0-9]*\) bytes).*/\1/p' refused.log | grep . || fail "no smallest budget in: $(cat refused.log)"
}
refused compile small.rt 100KiB
smallest=$(smallest_named)
refused compile small.rt $((smallest - 1))
compile small.rt "$smallest" >/dev/null || fail "the smallest budget is none"
train small.rt >/dev/null 2>small.err || fail "$(cat small.err)"
refused train small.rt --memory $((smallest * 9 / 10))

echo "--- states of 8 bits where only they fit"
net=mlp
refused compile states.rt 100KiB --optimizer-state bf16
two_bytes=$(smallest_named)
refused compile states.rt 100KiB
one_byte=$(smallest_named)
((one_byte < two_bytes)) || fail "with states of 8 bits $one_byte bytes, of 16 bits $two_bytes"
compile states.rt "$one_byte" | sed -n '/"memory": {/,/}/p' >states.memory
[[ $(field optimizer_state <states.memory) == u8 ]] || fail "a budget of $one_byte bytes: $(cat states.memory)"
compile states.rt 1GiB | sed -n '/"memory": {/,/}/p' >states.memory
[[ $(field optimizer_state <states.memory) == f32 ]] || fail "a large budget: $(cat states.memory)"

echo "--- a dimension that follows from the batch and fixed ones"
awk 'BEGIN { for (i = 0; i < 600; ++i) printf "%060d\n", i * 7919 }' >text.txt
compile_text() {
  "$bin/rtconvert" zoo:char_transformer -o text.rt --train --optimizer adam --class-axis -1 --dim sequence=32 --batch 16 --memory-backend "$backend" \
    --memory "$1" --json | sed -n '/"memory": {/,/}/p'
}
plain=$(compile_text 1GiB | field bytes)
budget=$((plain * 40 / 100))
compile_text $budget >text.memory
bytes=$(field bytes <text.memory)
((bytes > 0 && bytes <= budget && $(field micro_batch <text.memory) < 16)) || fail "a budget of $budget bytes of $plain: $(cat text.memory)"
train_text() { "$bin/rttrain" text.rt --data text.txt --validate text.txt --steps 1 --lr 0.001 --backend "$backend" "$@" >/dev/null 2>text.err || fail "$(cat text.err)"; }
train_text --drop-last
grep -q "takes $bytes bytes" text.err || fail "planned $bytes, $(cat text.err)"
# Of 1,143 windows the last 7, one by one: a plan whose constants, which it computes from its shapes, are no larger.
train_text --memory "$bytes"
grep -q "takes $bytes bytes" text.err || fail "with a smaller last batch: planned $bytes, $(cat text.err)"

echo "--- the system's figures"
"$bin/rtconvert" zoo:lenet5 -o large.rt --train --optimizer adam --memory-backend "$backend" --batch 4096 --memory 160MiB --json |
  sed -n '/"memory": {/,/}/p' >large.memory
cat large.memory
"$resident" large.rt "$backend" "$(field bytes <large.memory)" || fail "more than planned"
echo "all of it"
