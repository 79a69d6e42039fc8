#!/usr/bin/env bash
# cache_files.sh BIN SCRATCH MODEL BACKEND: whatever lies in the place of a file of the cache folder, the programs give the right results
# in time, say in one line which file they do not use, and change no other file.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2 model=$3 backend=$4
rm -rf "$scratch"
mkdir -p "$scratch/home"
cd "$scratch"
export HOME=$scratch/home XDG_CACHE_HOME=$scratch/cache
folder=$XDG_CACHE_HOME/librt

# The programs with the backend, into out.txt and error.txt: the model's result is the expected one.
rtrun() { timeout 120 "$bin/rtrun" "$model" --random-input --backend "$backend" --quiet "$@" >out.txt 2>error.txt || fail "$what: $(cat out.txt error.txt)"; }
rtbench() { timeout 120 "$bin/rtbench" "$model" --backend "$backend" --batch 1 --time 0.01 >out.txt 2>error.txt || fail "$what: $(cat out.txt error.txt)"; }

# An epoch of rttrain on 8 images from the bytes of a program, with a validation: the loss is the expected one.
{ printf '\0\0\x08\x03\0\0\0\x08\0\0\0\x1c\0\0\0\x1c'; head -c $((8 * 28 * 28)) "$bin/rtrun"; } >images
{ printf '\0\0\x08\x01\0\0\0\x08'; for i in {1..8}; do printf "\\x0$i"; done; } >labels
"$bin/rtconvert" zoo:lenet5 -o trained.rt --train >/dev/null
loss=
rttrain() {
  timeout 120 "$bin/rttrain" trained.rt --data images --labels labels --scale 0.00392157 --batch 4 --backend "$backend" --deterministic \
    --validate-fraction 0.5 >out.txt 2>error.txt || fail "$what: $(cat out.txt error.txt)"
  [[ $(grep -o 'loss [0-9.]*' out.txt) == "$loss" ]] || [[ -z $loss || $backend == auto ]] || fail "$what: expected $loss, found $(cat out.txt)"
}

what="an empty cache"
output=$("$bin/rtrun" "$model" --inspect | sed -n 's/^  output    \([^ ]*\) .*/\1/p')
rtrun --save "$output=expected.npy"
rtbench
rttrain
loss=$(grep -o 'loss [0-9.]*' out.txt)
what="a good cache"
rtrun --expect "$output=expected.npy"
grep 'cache:' error.txt && fail "$what: a line about it"
rtbench
grep 'cache:' error.txt && fail "$what: a line about it"
rttrain
grep 'cache:' error.txt && fail "$what: a line about it"
# A driver may have no pipelines to keep; a name in use is enough to try.
for tests in "$folder"/vulkan-*.tests; do [[ ! -f $tests || -f ${tests%.tests}.pipelines ]] || echo none >"${tests%.tests}.pipelines"; done
cp -a "$folder" good
echo precious >other
sums() { sha256sum other good/*; }

# place KIND FILE
place() {
  rm -rf "$2"
  case $1 in
    link) ln -s "$scratch/other" "$2" ;;
    zeros) ln -s /dev/zero "$2" ;;
    pipe) mkfifo "$2" ;;
    folder) mkdir "$2" ;;
    large) truncate -s 1T "$2" ;;
    foreign) cp other "$2" && chown 65534:65534 "$2" ;;
    locked) cp "good/${2##*/}" "$2" ;;
  esac
}
kinds=(link zeros pipe folder large)
if [[ $(id -u) == 0 ]]; then kinds+=(foreign); else echo "without root: no file of another user"; fi

before=$(sums)
for file in "$folder"/tuning-"$backend"-*.txt "$folder"/vulkan-*.tests "$folder"/vulkan-*.pipelines; do
  [[ -f $file ]] || continue
  used=(rtrun rtbench rttrain)
  [[ $file == */tuning-* ]] && used=(rtbench)
  try=("${kinds[@]}")
  [[ $file == *.tests ]] && try+=(locked)
  for kind in "${try[@]}"; do
    for program in "${used[@]}"; do
      what="$program with $kind for ${file##*/}"
      place "$kind" "$file"
      [[ $kind != locked ]] || { exec 9<"$file" && flock 9; }
      "$program"
      exec 9<&-
      [[ $(grep -cF "$program: cache: $file: " error.txt) == 1 ]] || fail "$what: expected one line of it: $(cat error.txt)"
      [[ $program != rtrun ]] || rtrun --expect "$output=expected.npy"
      [[ $(sums) == "$before" ]] || fail "$what: another file was changed"
    done
  done
  rm -rf "$file"
  cp -a "good/${file##*/}" "$file"
done

what="no folder"
for home in "$scratch/other" "$scratch/other/below" /proc; do
  XDG_CACHE_HOME=$home rtrun --expect "$output=expected.npy"
  XDG_CACHE_HOME=$home rtbench
  grep -q 'rtbench: cache: ' error.txt || fail "$what: no line of $home: $(cat error.txt)"
done
what="a relative path"
XDG_CACHE_HOME=relative rtbench
[[ ! -e relative && -d $HOME/.cache/librt ]] || fail "$what was used"

[[ $backend == cpu ]] || exit 0
what="a device profile"
device=$(basename "$(find "$folder" -name 'device-cpu-*.txt' -o -name 'tuning-cpu-*.txt' | sort | head -1)")
if [[ $device == device-* ]]; then
  for kind in "${kinds[@]}"; do
    what="$kind for $device"
    place "$kind" "$folder/$device"
    timeout 120 "$bin/rtrun" "$model" --random-input >out.txt 2>error.txt || fail "$what: $(cat error.txt)"
    [[ $(grep -cF "cache: $folder/$device: " error.txt) == 1 ]] || fail "$what: expected one line of it: $(cat error.txt)"
    backend=auto rttrain
    [[ $(grep -cF "rttrain: cache: $folder/$device: " error.txt) == 1 ]] || fail "$what: expected one line of it: $(cat error.txt)"
  done
else
  fail "rtbench has measured no device"
fi

what="an ONNX file"
"$bin/rtconvert" zoo:lenet5 -o lenet.onnx >/dev/null
convert() { timeout 120 "$bin/rtrun" lenet.onnx --random-input --dim batch=2 --backend cpu --quiet "$@" >out.txt 2>error.txt || fail "$what: $(cat out.txt error.txt)"; }
convert --save logits=logits.npy
converted=$(ls "$folder"/converted/lenet-*.rt)
cp "$converted" good/
before=$(sums)
for kind in "${kinds[@]}"; do
  what="$kind for a converted model"
  place "$kind" "$converted"
  convert --expect logits=logits.npy
  [[ $(grep -cF "rtrun: cache: $converted: " error.txt) == 1 ]] || fail "$what: expected one line of it: $(cat error.txt)"
  [[ $(sums) == "$before" ]] || fail "$what: another file was changed"
done
what="no folder for a converted model"
XDG_CACHE_HOME=$scratch/other convert --expect logits=logits.npy
grep -q 'rtrun: cache: ' error.txt || fail "$what: no line of it: $(cat error.txt)"
echo "all as expected"
