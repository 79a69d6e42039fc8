#!/usr/bin/env bash
# programs.sh BIN SCRATCH MODEL: the programs refuse the same mistake with the same exit code: 2 for the input, 3 for the machine.
set -euo pipefail
bin=$1 scratch=$2 model=$3
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

fail() { echo "FAILED: $*"; exit 1; }
# CODE TEXT PROGRAM ARGUMENT ...
refuses() {
  local wanted=$1 text=$2 program=$3 code=0
  [[ $program == env ]] || program=$bin/$program
  "$program" "${@:4}" >out.txt 2>error.txt || code=$?
  [[ $code == "$wanted" ]] || fail "${*:3}: exit code $code, expected $wanted: $(cat error.txt)"
  grep -qF -- "$text" error.txt || fail "${*:3}: expected '$text', found: $(cat error.txt)"
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
refuses 2 "--batch: expected a number above 0, found 0" rtbench "$model" --batch 0
refuses 2 "--lr: expected a number of at least 0, found -1" rttrain trained.rt "${data[@]}" --lr -1
refuses 2 "--lr: expected a number of at least 0, found nan" rttrain trained.rt "${data[@]}" --lr nan
refuses 2 "expected a dynamic dimension of the model (batch), found 'btach'" rtrun "$model" --random-input --dim btach=4

echo "--- other files"
printf '\x08\x08\x12\x07pytorch%4096s' '' >net.onnx
for program in rtrun rtbench rttrain; do
  arguments=()
  [[ $program != rttrain ]] || arguments=("${data[@]}")
  refuses 2 "compile it with \`rtconvert" $program net.onnx "${arguments[@]}"
done
refuses 2 "No space left" rtconvert zoo:lenet5 -o /dev/full
[[ -c /dev/full ]] || fail "/dev/full is no device any more"
echo "all of it"
