#!/usr/bin/env bash
# programs.sh BIN SCRATCH MODEL: the programs refuse the same mistake with the same exit code: 2 for the input, 3 for the machine.
#
# And what rtrun and rtbench do beside running a compiled model: classes, sounds, ONNX files, the cache folder.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2 model=$3
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache  # what the user has measured or converted does not count

# Python code on stdin, with arguments.
python() {
  if command -v python3 >/dev/null; then python3 - "$@"; else echo "skipped: there is no python3, which reads JSON" && cat >/dev/null; fi
}

"$bin/rtconvert" zoo:lenet5 -o trained.rt --train >/dev/null
# Eight images from the bytes of a program, and labels.
{ printf '\0\0\x08\x03\0\0\0\x08\0\0\0\x1c\0\0\0\x1c'; head -c $((8 * 28 * 28)) "$bin/rtconvert"; } >images
printf '\0\0\x08\x01\0\0\0\x08\1\2\3\4\5\6\7\0' >labels
data=(--data images --labels labels --batch 4 --epochs 1)
echo "--- backends and devices"
refuses 2 "unknown backend 'gpu'; expected cpu" rtrun "$model" --random-input --backend gpu
refuses 2 "unknown backend 'gpu'; expected all" rtbench "$model" --backend gpu
refuses 2 "unknown backend 'gpu'; expected cpu" rttrain trained.rt "${data[@]}" --backend gpu
refuses 3 "no device '7'" rtrun "$model" --random-input --backend cpu --device 7
refuses 3 "there is no such device" rtbench "$model" --backend cpu:7
refuses 3 "was not found" env RT_MODULE_PATH="$scratch" "$bin/rtrun" "$model" --random-input --backend cpu

echo "--- numbers and names"
# Names that would move a terminal's cursor, in ASCII and as C1 controls in UTF-8.
refuses 2 "no?[31m?é.rt" rtrun $'no\e[31m\xc2\x9bé.rt'
refuses 2 "--batch: expected a number above 0, found 0" rtbench "$model" --batch 0
refuses 2 "--lr: expected a number of at least 0, found -1" rttrain trained.rt "${data[@]}" --lr -1
refuses 2 "--lr: expected a number of at least 0, found nan" rttrain trained.rt "${data[@]}" --lr nan
refuses 2 "expected a dynamic dimension of the model (batch), found 'btach'" rtrun "$model" --random-input --dim btach=4
refuses 2 "expected a dynamic dimension of the model (batch), found 'btach'" rtbench "$model" --dim btach=4
code=0
"$bin/rtbench" zoo:text_classifier --backend cpu --batch 2 --check none --time 0.01 >row.txt 2>&1 || code=$?
[[ $code == 2 ]] && grep -q 'give --dim sequence=N' row.txt || fail "rtbench without --dim: exit code $code: $(cat row.txt)"

echo "--- classes, times, the contents of a model"
run=("$bin/rtrun" "$model" --random-input --seed 3 --backend cpu)
printf '%s\n' zero one two three four five six seven eight nine >names
"${run[@]}" --top-k 3 --label-names names --repeat 3 >top.txt 2>error.txt
grep -Eq '^ +[-0-9.e+]+  [0-9] (zero|one|two|three|four|five|six|seven|eight|nine)$' top.txt || fail "no names: $(cat top.txt)"
[[ $(grep -c '^  ' top.txt) == 3 ]] || fail "expected three scores: $(cat top.txt)"
grep -Eq '^device +cpu 0 \(.*\), requested$' error.txt || fail "no device: $(cat error.txt)"
grep -Eq '^time +load .* ms, session .* ms, first run .* ms, median of 3 more .* ms$' error.txt || fail "no times: $(cat error.txt)"
"$bin/rtrun" "$model" --random-input >/dev/null 2>error.txt
grep -Eq '^device .*auto: cpu 0, the least predicted time' error.txt || fail "no reason of auto: $(cat error.txt)"
"${run[@]}" --top-k 3 --label-names names --repeat 3 --json >top.json
# The three largest of the values, with their names, in the order of the scores.
python top.json names <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
names = open(sys.argv[2]).read().split()
values = result["outputs"][0]["values"]
wanted = sorted(range(10), key=lambda i: -values[i])[:3]
top = result["outputs"][0]["top"][0]
assert [score["class"] for score in top] == wanted, (top, values)
assert [score["name"] for score in top] == [names[i] for i in wanted], top
assert [score["score"] for score in top] == [values[i] for i in wanted], top
assert result["seconds"]["median"] > 0 and result["device"]["reason"] == "requested", result
END
head -9 names >nine
refuses 2 "expected a name for each class of an output" rtrun "$model" --random-input --label-names nine
refuses 2 "expected one name per line, found none" rtrun "$model" --random-input --label-names /dev/null
"$bin/rtrun" "$model" --inspect --json >inspect.json
python inspect.json "$(stat -c %s "$model")" <<'END'
import json, sys
model = json.load(open(sys.argv[1]))
entry = model["entries"][0]
assert entry["inputs"][0]["dims"][0] == "batch" and entry["inputs"][0]["dtype"] == "f32", entry
assert entry["outputs"][0]["dims"][-1] == 10, entry
assert model["bytes"] == int(sys.argv[2]) and "metadata" in model and model["producer"], model
END
echo "--- what a session takes, before there is one"
"$bin/rtconvert" trained.rt --memory-report --dim batch=3 --json >memory.json
python memory.json <<'END'
import json, sys
entries = json.load(open(sys.argv[1]))["memory_report"]
assert [x["entry"] for x in entries] == ["infer", "train_step"], entries
for x in entries:
    parts = ("packed_bytes", "state_bytes", "working_bytes", "staging_bytes")
    assert x["session_bytes"] == sum(x[part] for part in parts) and x["working_bytes"] > 0, x
    assert x["state_bytes"] >= x["file_weight_bytes"] > 200_000, x  # LeNet-5 has 61,706 weights
assert entries[1]["working_bytes"] > entries[0]["working_bytes"], entries
END
"$bin/rtconvert" zoo:lenet5 --memory-report --dim batch=2 >memory.txt
grep -q "^session     entry 'infer' on cpu.*: .* KiB (packed weights" memory.txt || fail "the report: $(cat memory.txt)"
"$bin/rtconvert" zoo:lenet5 -o measured.rt --memory-report >memory.txt
grep -q "^session     entry 'infer' on cpu at batch=1: " memory.txt || fail "the report: $(cat memory.txt)"
refuses 2 "is of a MODEL.rt" rtconvert zoo:lenet5 -o net.onnx --memory-report
refuses 2 "needs --memory or --memory-report" rtconvert zoo:lenet5 -o net.rt --memory-backend cuda
refuses 2 "unknown backend 'nothing'" rtconvert trained.rt --memory-report --memory-backend nothing
refuses 2 "has no such symbol" rtconvert trained.rt --memory-report --dim btach=2

"$bin/rtrun" trained.rt --inspect >inspect.txt
grep -q '^entry       train_step$' inspect.txt || fail "no train_step: $(cat inspect.txt)"
grep -q '^  parameter conv1.weight f32' inspect.txt || fail "no weights: $(cat inspect.txt)"

echo "--- sounds"
# wav CHANNELS BITS SAMPLES: zeros at 16000 Hz.
le() { local i; for ((i = 0; i < $2; ++i)); do printf '\\x%02x' $(($1 >> (8 * i) & 255)); done; }
wav() {
  local bytes=$(($1 * $2 / 8 * $3))
  printf 'RIFF%bWAVEfmt %b%b%b%b%b%b%bdata%b' "$(le $((bytes + 36)) 4)" "$(le 16 4)" "$(le 1 2)" "$(le "$1" 2)" "$(le 16000 4)" \
    "$(le $((16000 * $1 * $2 / 8)) 4)" "$(le $(($1 * $2 / 8)) 2)" "$(le "$2" 2)" "$(le $bytes 4)"
  head -c $bytes /dev/zero
}
"$bin/rtconvert" zoo:mlp -o mlp.rt >/dev/null
wav 1 16 1000 >mono.wav
wav 2 24 1000 >stereo.wav
"$bin/rtrun" mlp.rt --input input=mono.wav --backend cpu --quiet 2>error.txt || fail "mono.wav: $(cat error.txt)"
grep -q "16000 Hz, 1000 samples" error.txt || fail "the rate is not reported: $(cat error.txt)"
"$bin/rtrun" mlp.rt --input input=stereo.wav --audio-channels mean --sample-rate 16000 --backend cpu --quiet
refuses 2 "expected one channel, found 2; add --audio-channels" rtrun mlp.rt --input input=stereo.wav
refuses 2 "expected 8000 Hz (--sample-rate), found 16000 Hz" rtrun mlp.rt --input input=mono.wav --sample-rate 8000
wav 1 16 999 >short.wav
refuses 2 "has 999 samples, input 'input' expects 1000" rtrun mlp.rt --input input=short.wav
head -c 600 mono.wav >cut.wav
refuses 2 "the file is cut short" rtrun mlp.rt --input input=cut.wav
refuses 2 "a sound needs an input of shape" rtrun "$model" --input "$("$bin/rtrun" "$model" --inspect | sed -n 's/^  input     \([^ ]*\) .*/\1/p')=mono.wav"

echo "--- ONNX files"
"$bin/rtconvert" zoo:lenet5 -o lenet.onnx >/dev/null
"$bin/rtconvert" zoo:lenet5 -o lenet.rt >/dev/null
onnx=("$bin/rtrun" lenet.onnx --random-input --dim batch=2 --backend cpu)
"$bin/rtrun" lenet.rt --random-input --dim batch=2 --backend cpu --save logits=logits.npy --quiet
"${onnx[@]}" --expect logits=logits.npy >out.txt 2>error.txt || fail "lenet.onnx: $(cat out.txt error.txt)"
grep -q "lenet.onnx is an ONNX file; converting it to $XDG_CACHE_HOME/librt/converted/lenet-" error.txt || fail "no word of it: $(cat error.txt)"
"${onnx[@]}" --quiet 2>error.txt
grep -q "converted earlier" error.txt || fail "converted again: $(cat error.txt)"
"$bin/rtbench" lenet.onnx --backend cpu --batch 1 --time 0.01 --no-tuning >out.txt 2>error.txt || fail "rtbench lenet.onnx: $(cat error.txt)"
grep -q "converted earlier" error.txt || fail "converted again: $(cat error.txt)"
grep -q '^lenet ' out.txt || fail "rtbench names the model otherwise: $(cat out.txt)"
touch -d '2001-01-01' lenet.onnx
"${onnx[@]}" --quiet 2>error.txt
grep -q "converting it" error.txt || fail "a changed file was not converted again: $(cat error.txt)"
refuses 2 "rtconvert lenet.onnx -o MODEL.rt --train" rttrain lenet.onnx "${data[@]}"
refuses 2 "rtconvert lenet.onnx -o MODEL.rt --train" rtbench lenet.onnx --mode train
# Without rtconvert: the message of the reader.
mkdir -p alone/bin
cp "$bin/rtrun" alone/bin/
refuses 2 "compile it with \`rtconvert" env PATH=/usr/bin:/bin LD_LIBRARY_PATH="$bin/../lib/librt:$bin/../lib" alone/bin/rtrun lenet.onnx --random-input
printf '\x08\x08\x12\x07pytorch%4096s' '' >net.onnx
refuses 2 "net.onnx could not be converted" rtrun net.onnx
refuses 2 "net.onnx could not be converted" rtbench net.onnx
# same NAME OUTPUT DIM ...: the network compiled from the ONNX file computes what the one compiled directly does.
same() {
  local name=$1 output=$2 options=(--random-input --backend cpu "${@:3}")
  "$bin/rtconvert" "zoo:$name" -o net.onnx >/dev/null
  "$bin/rtconvert" "zoo:$name" -o net.rt >/dev/null
  "$bin/rtrun" net.rt "${options[@]}" --save "$output=output.npy" --quiet
  "$bin/rtrun" net.onnx "${options[@]}" --expect "$output=output.npy" >out.txt 2>error.txt || fail "zoo:$name as ONNX: $(cat out.txt error.txt)"
}
same mlp logits --dim batch=2
same text_classifier logits --dim batch=2 --dim sequence=12
same char_transformer logits --dim batch=2 --dim sequence=5
same bert_layer output --dim batch=1 --dim sequence=5
same resnet18_mnist logits --dim batch=1
refuses 2 "a MODEL.onnx has the entry for inference" rtconvert zoo:lenet5 -o other.onnx --train

echo "--- the cache folder"
touch "$XDG_CACHE_HOME/librt/mine"
"$bin/rtbench" --clear-cache >out.txt
grep -Eq '^deleted     converted models: [0-9]+ files, [0-9.]+ KiB$' out.txt || fail "no converted models: $(cat out.txt)"
grep -q "not deleted .*/mine: not a file of librt" out.txt || fail "no word of the other file: $(cat out.txt)"
[[ $(find "$XDG_CACHE_HOME/librt" -type f) == "$XDG_CACHE_HOME/librt/mine" ]] || fail "still there: $(find "$XDG_CACHE_HOME/librt")"
"$bin/rtbench" --clear-cache | grep -q "nothing to delete in $XDG_CACHE_HOME/librt" || fail "cleared twice"

echo "--- model files that are damaged, or change while they are used"
cp "$model" damaged.rt
head -c 4096 /dev/zero | dd of=damaged.rt bs=1 seek=$(($(stat -c %s damaged.rt) / 2)) conv=notrunc status=none
refuses 2 "damaged.rt is damaged" rtrun damaged.rt --random-input --backend cpu
refuses 2 "is damaged" rtrun damaged.rt --random-input --backend cpu --copy-model
"$bin/rtrun" damaged.rt --random-input --backend cpu --quiet --skip-checksums
cp "$model" changing.rt
"$bin/rtrun" changing.rt --random-input --backend reference --repeat 100000000 >out.txt 2>error.txt &
rtrun=$!
until grep -q changing.rt "/proc/$rtrun/maps"; do kill -0 $rtrun || fail "rtrun has ended: $(cat error.txt)"; done
: >changing.rt
code=0
wait $rtrun || code=$?
[[ $code == 2 || $code == 3 ]] || fail "truncated while it is used: exit code $code: $(cat error.txt)"
grep -q 'truncated' error.txt || fail "truncated while it is used: $(cat error.txt)"

echo "--- other files"
refuses 3 "No space left" rtconvert zoo:lenet5 -o /dev/full
[[ -c /dev/full ]] || fail "/dev/full is no device any more"
echo "all of it"
