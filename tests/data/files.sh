#!/usr/bin/env bash
# files.sh BIN SCRATCH: what the programs do with files that are no good, pipes without a writer, full disks, and two trainings of one
# checkpoint: a message, the exit code 2 (input) or 3 (machine), nothing half written.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2/files
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
refusal_limit=20

bytes() { printf '%b' "$1"; }

"$bin/rtconvert" zoo:mlp -o mlp.rt >/dev/null
"$bin/rtconvert" zoo:lenet5 -o lenet.rt >/dev/null
"$bin/rtconvert" zoo:char_transformer -o char.rt >/dev/null
"$bin/rtconvert" zoo:lenet5 -o trained.rt --train >/dev/null
{ bytes '\0\0\010\03\0\0\0\0100\0\0\0\034\0\0\0\034'; head -c $((64 * 28 * 28)) "$bin/rtconvert"; } >images
{ bytes '\0\0\010\01\0\0\0\0100'; for i in {1..64}; do bytes "\\0$((i * 7 % 8))"; done; } >labels
data=(--data images --labels labels --batch 8 --scale 0.0039 --backend cpu)

echo "--- files that are no good"
bytes '\0\0\010\03\0\0\0\0100\0\0\0\0\0\0\0\034' >empty.idx
refuses 2 "expected extents above 0, found 0 on axis 1" rttrain trained.rt --data empty.idx --labels labels
bytes '\0223NUMPY\01\0\070\0' >bad.npy
printf "%-55s\n" "{'descr': '>', 'fortran_order': False, 'shape': (1,), }" >>bad.npy
refuses 2 "npy type '>' is big endian" rtrun mlp.rt --input input=bad.npy
# A progressive JPEG of 65500x65500 pixels in 151 bytes.
{
  bytes '\0377\0330\0377\0302\0\013\010\0377\0334\0377\0334\01\01\021\0'
  bytes '\0377\0333\0\0103\0'; for i in {1..64}; do bytes '\01'; done
  bytes '\0377\0304\0\024\0\01'; for i in {1..15}; do bytes '\0'; done; bytes '\0'
  bytes '\0377\0332\0\010\01\01\0\0\0\0'
} >huge.jpg
refuses 2 "has 65500x65500 pixels, expected at most 64 million" rtrun lenet.rt --input input=huge.jpg --resize
bytes '\0377\0330\0377\0340' >cut.jpg
refuses 2 "cut.jpg: " rtrun lenet.rt --input input=cut.jpg --resize
truncate -s 100G sparse
for file in /dev/zero sparse; do
  refuses 3 "$file: " rtrun mlp.rt --input "input=$file"
  refuses 3 "$file: " rtrun mlp.rt --random-input --label-names "$file"
  refuses 3 "$file: " rtrun char.rt --generate 1 --tokenizer "$file"
  refuses 3 "$file: " rtconvert "$file" -o x.rt
  refuses 2 "$file: " rttrain trained.rt --data "$file" --labels labels --format idx
  refuses 2 "$file: " rttrain trained.rt --data "$file" --format npz
  refuses 2 "$file" rtrun "$file" --random-input
  refuses 2 "$file" rtbench "$file" --backend cpu
done
refuses 3 "sparse: the file takes 100.0 GiB" rttrain trained.rt --data sparse --format csv
# Tables are read as far as their first error.
refuses 2 "/dev/zero: line 1: a field has more than 64.0 MiB" rttrain trained.rt --data /dev/zero --format csv
rm sparse
# JSON has only UTF-8; names may be anything.
cp mlp.rt $'name\xff.rt'
for run in "rtbench name\xff.rt --backend cpu --batch 1 --time 0.01 --no-tuning" "rtconvert zoo:mlp -o name\xff.rt" "rtrun name\xff.rt --inspect"; do
  # shellcheck disable=SC2086
  "$bin/"$(printf '%b' "$run") --json >out.txt 2>error.txt || fail "$run: $(cat error.txt)"
done
refuses 2 "expected a file, found a folder" rtrun mlp.rt --input input=.
: >nothing
echo "no array" >words
refuses 2 "nothing: the file is empty; expected .npy, TensorProto, PNG, JPEG or WAV" rtrun mlp.rt --input input=nothing
refuses 2 "words: not a serialized TensorProto" rtrun mlp.rt --input input=words
refuses 2 "nothing: the file is empty" rtrun mlp.rt --random-input --expect logits=nothing
# Zero rows to calibrate with.
bytes '\0223NUMPY\01\0\070\0' >rows.npy
printf "%-55s\n" "{'descr': '<f4','fortran_order':False,'shape':(0,1000)}" >>rows.npy
mkdir rows
mv rows.npy rows/input.npy
refuses 2 "expected rows of input 'input', found none" rtconvert zoo:mlp -o x.rt --precision int8 --calibrate rows
echo "--- tokens that the model does not have"
for token in -1 256 999999; do
  refuses 2 "--prompt-tokens: token $token: expected 0 to 255" rtrun char.rt --backend cpu --generate 1 "--prompt-tokens=$token"
done
"$bin/rtrun" char.rt --backend cpu --generate 1 --prompt-tokens 255 --quiet || fail "the last token of the model"
# Weights that are NaN: no logit is the largest.
"$bin/rtconvert" zoo:char_transformer -o char.onnx >/dev/null
header='{"ln_f.bias":{"dtype":"F32","shape":[128],"data_offsets":[0,512]}}'
{ bytes "\\0$(printf '%03o' ${#header})\0\0\0\0\0\0\0$header"; for i in {1..128}; do bytes '\0\0\0300\0177'; done; } >nan.safetensors
"$bin/rtconvert" char.onnx --weights nan.safetensors -o nan.rt >/dev/null
refuses 2 "after 1 token logit 0 is NaN" rtrun nan.rt --backend cpu --generate 1 --prompt-tokens 1

echo "--- pipes"
mkfifo pipe
refuses 2 "pipe" rtrun pipe --random-input
refuses 2 "pipe" rtbench pipe --backend cpu
refuses 2 "pipe" rttrain pipe "${data[@]}"
# y = Relu(w) with the weights w in an external file, the pipe.
{
  printf '\x08\x08\x3a\x33\x0a\x0c\x0a\x01w\x12\x01y\x22\x04Relu\x12\x01g\x2a\x1b\x08\x04\x10\x01\x42\x01w'
  printf '\x6a\x10\x0a\x08location\x12\x04pipe\x70\x01\x62\x03\x0a\x01y\x42\x02\x10\x0d'
} >external.onnx
refuses 2 "external data 'pipe' is not a file" rtconvert external.onnx -o x.rt
refuses 2 "pipe: no process has opened this pipe" rtconvert pipe -o x.rt
refuses 2 "pipe: expected a regular file" rttrain trained.rt --data pipe --labels labels --format idx
refuses 2 "pipe: expected a regular file" rttrain trained.rt --data pipe --format npz
refuses 2 "pipe: no process has opened this pipe for writing" rtrun mlp.rt --input input=pipe
refuses 2 "pipe: expected a file that can be read again, found a pipe" rttrain trained.rt "${data[@]}" --checkpoint pipe
refuses 2 "pipe: expected a file that can be read again, found a pipe" rttrain trained.rt "${data[@]}" --checkpoint pipe --overwrite
"$bin/rtrun" mlp.rt --random-input --backend cpu --save logits=logits.npy --quiet
seq 0 9 | sed 's/^/class /' >names
"$bin/rtrun" lenet.rt --random-input --backend cpu --label-names <(cat names) 2>error.txt | grep -q 'class' || fail "names from a pipe: $(cat error.txt)"
"$bin/rtrun" mlp.rt --random-input --backend cpu --expect logits=/dev/stdin --quiet <logits.npy || fail "stdin"
cat logits.npy | "$bin/rtrun" mlp.rt --random-input --backend cpu --expect logits=/dev/stdin --quiet || fail "a pipe as stdin"

echo "--- a full stdout"
# PROGRAM ARGUMENT ...: succeeds, and not with results that go nowhere.
needs_stdout() {
  local code=0
  "$bin/$1" "${@:2}" >out.txt 2>error.txt || fail "$*: $(cat error.txt)"
  [[ -s out.txt ]] || fail "$*: prints nothing"
  "$bin/$1" "${@:2}" >/dev/full 2>error.txt || code=$?
  [[ $code == 3 ]] && grep -q "$1: the results cannot be written to stdout" error.txt || fail "$* >/dev/full: exit code $code, $(cat error.txt)"
  code=0
  "$bin/$1" "${@:2}" >&- 2>error.txt || code=$?
  [[ $code == 3 ]] || fail "$* with a closed stdout: exit code $code, $(cat error.txt)"
}
for program in rtrun rtbench rtconvert rttrain; do
  needs_stdout $program --help
  needs_stdout $program --version
done
run=(rtrun mlp.rt --random-input --backend cpu)
needs_stdout "${run[@]}"
needs_stdout "${run[@]}" --json
needs_stdout rtrun mlp.rt --inspect
needs_stdout rtrun mlp.rt --inspect --json
needs_stdout rtbench --list-zoo
needs_stdout rtbench mlp.rt --backend cpu --batch 1 --time 0.01 --no-tuning --json
needs_stdout rtconvert --list-ops
needs_stdout rtconvert zoo:mlp -o other.rt
needs_stdout rttrain trained.rt "${data[@]}" --epochs 1 --json
needs_stdout rttrain trained.rt "${data[@]}" --epochs 1 --checkpoint full.ckpt --overwrite
[[ -s full.ckpt ]] || fail "no checkpoint of a training whose stdout is full"
code=0
"$bin/rtrun" --no-such-option >/dev/full 2>&1 || code=$?
[[ $code == 2 ]] || fail "an error of the command line with a full stdout: exit code $code"
# Nothing printed into a file that takes the place of a closed stdout.
"$bin/rttrain" trained.rt "${data[@]}" --epochs 1 --log closed.log >&- 2>/dev/null || :
! grep -qv '^{' closed.log || fail "results in the log: $(cat closed.log)"

echo "--- a full disk: exit code 3 in every program, and no half files"
# A limit of the size of files instead of a full disk: the file is cut in the middle. CODE KIBIBYTES FILE PROGRAM ARGUMENT ...
on_full_disk() {
  local size=$1 file=$2 code=0
  printf old >"$file"
  (ulimit -f "$size"; "$bin/$3" "${@:4}" >out.txt 2>error.txt) || code=$?
  [[ $code == 3 ]] || fail "${*:3}: exit code $code, expected 3: $(cat error.txt)"
  grep -q 'File too large' error.txt || fail "${*:3}: expected 'File too large', found: $(cat error.txt)"
  [[ $(cat "$file") == old ]] || fail "${*:3}: $file was changed"
  ! compgen -G "$file?*" || fail "${*:3}: a half file stayed"
}
"$bin/rtconvert" zoo:mlp -o big.rt >/dev/null
on_full_disk 1 saved.npy rtrun big.rt --random-input --dim batch=256 --backend cpu --quiet --save logits=saved.npy
on_full_disk 1 saved.rt rtconvert zoo:mlp -o saved.rt
on_full_disk 1 saved.onnx rtconvert zoo:mlp -o saved.onnx
on_full_disk 16 saved.ckpt rttrain trained.rt "${data[@]}" --epochs 1 --checkpoint saved.ckpt --overwrite
on_full_disk 1 trace.json rtbench lenet.rt --backend cpu --batch 1 --time 0.01 --no-tuning --trace trace.json
refuses 3 "No space left" rtrun mlp.rt --random-input --backend cpu --quiet --save logits=/dev/full
refuses 3 "No space left" rtbench mlp.rt --backend cpu --batch 1 --time 0.01 --no-tuning --trace /dev/full
refuses 3 "cannot write" rttrain trained.rt "${data[@]}" --epochs 1 --log /dev/full --log-every 1
refuses 2 "absent" rtrun mlp.rt --random-input --backend cpu --quiet --save logits=absent/y.npy

echo "--- a full disk under the cache folder: the conversion takes place elsewhere"
{
  printf '\x08\x08\x3a\x25\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x12\x01g\x5a\x0d\x0a\x01x\x12\x08\x0a\x06\x08\x01\x12\x02\x0a\x00\x62\x03\x0a\x01y'
  printf '\x42\x02\x10\x0d'
} >relu.onnx
mkdir cache
# shellcheck disable=SC2016  # expanded inside
inside='mount -t tmpfs -o size=8k tmpfs cache && head -c 64k /dev/zero >cache/fill 2>/dev/null; XDG_CACHE_HOME=$PWD/cache "$0" relu.onnx --random-input --backend cpu --quiet'
if unshare -rm mount -t tmpfs tmpfs cache 2>/dev/null; then
  unshare -rm bash -c "$inside" "$bin/rtrun" 2>error.txt || fail "a full cache: $(cat error.txt)"
  grep -q "converting it for this run" error.txt || fail "a full cache: $(cat error.txt)"
else
  echo "skipped: unshare and mount are not permitted"
fi

echo "--- no program replaces what it reads"
cp mlp.rt own.rt
ln -sf own.rt own-link.rt
mkdir -p own-folder
ln -sf ../own.rt own-folder/link.rt
"$bin/rtconvert" zoo:lenet5 -o own.onnx >/dev/null
"$bin/rtrun" mlp.rt --random-input --backend cpu --save logits=own.npy --quiet
for file in own.rt ./own.rt own-link.rt own-folder/link.rt own-folder/../own.rt; do
  refuses 2 "--save $file: is the file of the model" rtrun own.rt --random-input --backend cpu --save "logits=$file"
  refuses 2 "--trace $file: is the file of the model" rtbench own.rt --backend cpu --batch 1 --time 0.01 --trace "$file"
  for option in --html --markdown --csv; do
    refuses 2 "$option $file: is the file of the model" rtbench study own.rt --backend cpu --budget 1s --no-save $option "$file"
  done
  refuses 2 "--output $file: is the file of the model" rtconvert own.rt -o "$file"
done
cmp own.rt mlp.rt || fail "the model was replaced"
refuses 2 "--save own.npy: is the file of --expect" rtrun own.rt --random-input --expect logits=own.npy --save logits=own.npy
refuses 2 "--save ./new.npy: is the file of --save" rtrun own.rt --random-input --save logits=new.npy --save logits=./new.npy
refuses 2 "--save names: is the file of --label-names" rtrun lenet.rt --random-input --label-names names --save logits=names
refuses 2 "--csv new.report: is the file of --markdown" rtbench study own.rt --backend cpu --budget 1s --no-save --csv new.report --markdown ./new.report
refuses 2 "--csv labels: is the file of --labels" rtbench study trained.rt --mode train --backend cpu --data images --labels labels --csv labels
refuses 2 "--output own.onnx: is the file of the model" rtconvert own.onnx -o own.onnx
refuses 2 "--output names: is the file of --constant" rtconvert own.onnx -o names --constant x=names
mkdir -p own-rows
cp own.npy own-rows/input.npy
refuses 2 "--output own-rows/input.npy: is the file of --calibrate" rtconvert own.onnx -o own-rows/input.npy --precision int8 --calibrate own-rows
# The weights of the model above, in a file.
rm pipe
printf 'abcd' >pipe
refuses 2 "--output ./pipe: is the file of the model's external data" rtconvert external.onnx -o ./pipe
[[ $(cat pipe) == abcd ]] || fail "the external data was replaced"
"$bin/rtrun" own.rt --random-input --backend cpu --save logits=/dev/null --save logits=/dev/null --quiet || fail "two to /dev/null"

echo "--- what a training reads is not what it writes"
cp trained.rt same.rt
ln -sf same.rt same-link.rt
for option in --checkpoint --log; do
  for file in same.rt ./same.rt same-link.rt images labels; do
    refuses 2 "$option $file: is the file of " rttrain same.rt "${data[@]}" --overwrite $option "$file"
  done
done
cmp same.rt trained.rt || fail "the model was overwritten"
refuses 2 "--log ./new.ckpt: is the file of --checkpoint" rttrain same.rt "${data[@]}" --checkpoint new.ckpt --log ./new.ckpt
refuses 2 "--best new.ckpt: is the file of --checkpoint" rttrain same.rt "${data[@]}" --validate images --validate-labels labels --checkpoint new.ckpt --best new.ckpt
"$bin/rttrain" same.rt "${data[@]}" --checkpoint /dev/null --log /dev/null >/dev/null 2>error.txt || fail "two to /dev/null: $(cat error.txt)"

# started FILE PROCESS: waits until a training has written its log.
started() { until [[ -s $1 ]]; do kill -0 "$2" || fail "the training ended: $(cat train.err)"; read -rt 0.05 <> <(:) || :; done; }
train() { exec "$bin/rttrain" trained.rt "${data[@]}" --log-every 1 "$@" >/dev/null 2>train.err; }

echo "--- two trainings of one checkpoint"
rm -f shared.*
train --epochs 100000 --checkpoint shared.ckpt --checkpoint-every 1 --log shared.log &
process=$!
started shared.log $process
refuses 2 "shared.ckpt: another training writes this checkpoint, process $process on " rttrain trained.rt "${data[@]}" --checkpoint shared.ckpt --resume
refuses 2 "process $process on " rttrain trained.rt "${data[@]}" --checkpoint ./shared.ckpt --overwrite
ln -s shared.ckpt link.ckpt
refuses 2 "process $process on " rttrain trained.rt "${data[@]}" --checkpoint link.ckpt --overwrite
refuses 2 "process $process on " rttrain trained.rt "${data[@]}" --validate-fraction 0.2 --best shared.ckpt --overwrite
echo "--- SIGHUP saves and ends, a killed training leaves no lock and no partial file"
kill -HUP $process
wait $process || fail "exit code $? after SIGHUP: $(cat train.err)"
grep -q 'stopped after step' train.err || fail "SIGHUP: $(cat train.err)"
[[ -s shared.ckpt && ! -e shared.ckpt.lock ]] || fail "after SIGHUP: $(ls)"
rm shared.log
train --epochs 100000 --checkpoint shared.ckpt --resume --checkpoint-every 1 --log shared.log &
process=$!
started shared.log $process
kill -KILL $process
wait $process 2>/dev/null || :
[[ -e shared.ckpt.lock ]] || fail "a killed training removes nothing"
printf half >shared.ckpt.partial-0
printf half >shared.ckpt.partial-3
steps=$("$bin/rttrain" trained.rt "${data[@]}" --epochs 100000 --steps 1 --checkpoint shared.ckpt --resume 2>&1 >/dev/null | sed -n 's/.*continues after step \([0-9]*\)$/\1/p')
"$bin/rttrain" trained.rt "${data[@]}" --epochs 100000 --steps $((steps + 1)) --checkpoint shared.ckpt --resume >/dev/null 2>error.txt || fail "after SIGKILL: $(cat error.txt)"
! compgen -G 'shared.ckpt?*' || fail "files of the killed training stayed"
echo "--- under nohup, SIGHUP does nothing"
rm -f held.*
(trap '' HUP; train --epochs 100000 --checkpoint held.ckpt --log held.log) &
process=$!
started held.log $process
kill -HUP $process
lines=$(wc -l <held.log)
until (($(wc -l <held.log) > lines + 3)); do kill -0 $process || fail "SIGHUP ended a training under nohup: $(cat train.err)"; read -rt 0.05 <> <(:) || :; done
kill -TERM $process
wait $process || fail "exit code $? after SIGTERM: $(cat train.err)"
echo "all of it"
