#!/usr/bin/env bash
# across.sh HERE THERE SCRATCH: a checkpoint written by the programs of one architecture is continued by those of another, and back. HERE
# are the programs of a build for this machine, THERE those of the build under test, which an emulator runs.
#
# The model is compiled under the emulator. The losses of the last epoch equal that of a training that stayed, within the tolerance
# between backends (resume.sh).
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
here=$1 there=$2 scratch=$3/across
for program in rtconvert rttrain ../lib/librt/librt_cpu.so; do
  [[ -n $here && -e $here/$program ]] ||
    { echo "SKIPPED: no ${program##*/} in RT_HOST_PROGRAMS ('$here'); build librt for this machine first (tools/build)"; exit 77; }
done
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

# 256 images with some structure: those of a label differ in few bytes; and labels.
python3 -c '
import random, struct
random.seed(3)
kinds = [random.randbytes(784) for _ in range(10)]
labels = [random.randrange(10) for _ in range(256)]
with open("images", "wb") as f:
    f.write(struct.pack(">IIII", 0x803, 256, 28, 28))
    for label in labels:
        image = bytearray(kinds[label])
        for _ in range(80):
            image[random.randrange(784)] = random.randrange(256)
        f.write(image)
with open("labels", "wb") as f:
    f.write(struct.pack(">II", 0x801, 256) + bytes(labels))
'
"$there/rtconvert" zoo:lenet5 -o model.rt --train --optimizer adam >/dev/null

# train BIN CHECKPOINT ARGUMENT...: prints what rttrain prints
train() {
  local bin=$1 checkpoint=$2
  shift 2
  "$bin/rttrain" model.rt --data images --labels labels --scale 0.00392157 --batch 32 --lr 0.001 --seed 5 --backend cpu --json --epochs 3 \
    --checkpoint "$checkpoint" "$@"
}
loss() { tail -n 1 "$1" | sed 's/.*"loss":\([0-9.e-]*\).*/\1/'; }
train "$here" stayed >stayed.log
train "$here" moved --steps 12 >/dev/null
cp moved back
train "$there" moved --resume >moved.log 2>moved.err
train "$there" back --resume --steps 18 >/dev/null
train "$here" back --resume >back.log 2>back.err
grep -q 'continues after step 12$' moved.err || fail "moved: $(cat moved.err)"
grep -q 'continues after step 18$' back.err || fail "back: $(cat back.err)"
echo "losses of the last epoch: $(loss stayed.log) stayed, $(loss moved.log) moved, $(loss back.log) moved and came back"
for log in moved back; do
  awk -v a="$(loss stayed.log)" -v b="$(loss $log.log)" 'BEGIN { d = a - b; exit d < 1e-3 && d > -1e-3 && a > 0 ? 0 : 1 }' ||
    fail "$log: the last epoch's loss is $(loss $log.log), $(loss stayed.log) where the training stayed"
done
