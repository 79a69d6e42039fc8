#!/usr/bin/env bash
# device_lost.sh BIN SCRATCH MODEL LAYERS: a training on Vulkan whose device is lost in the middle ends and can be resumed, goes on on the
# CPU, or on the device again; LAYERS: the folder of the test layer that loses it.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2/device_lost model=$3 layers=$4
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
export XDG_CACHE_HOME=$PWD/cache

# 256 images from the bytes of a program, and labels: 8 steps an epoch.
{ printf '\0\0\x08\x03\0\0\x01\0\0\0\0\x1c\0\0\0\x1c'; head -c $((256 * 28 * 28)) "$bin/rtconvert"; } >images
{ printf '\0\0\x08\x01\0\0\x01\0'; for i in {1..256}; do printf "\\x0$((i * 7 % 10))"; done; } >labels
"$bin/rtconvert" "$model" -o model.rt --train --optimizer adam >/dev/null

# The device is lost at the submission of that number.
train() {
  local fault=$1
  RT_TEST_FAULT=$fault:submit VK_LAYER_PATH=$layers VK_INSTANCE_LAYERS=VK_LAYER_LIBRT_failing_device "$bin/rttrain" model.rt --data images \
    --labels labels --scale 0.00392157 --batch 32 --lr 0.0005 --seed 5 --deterministic --epochs 6 --backend vulkan --log-every 1 "${@:2}"
}

train 1000000 --checkpoint whole >whole.out 2>whole.err  # makes the pipelines, which are tested at first: submissions of their own
# A submission in the middle of the training: it has fewer than `high`.
high=16
while ! train $high --checkpoint probe --overwrite >probe.out 2>probe.err; do high=$((2 * high)); done
at=$((high * 3 / 10))

echo "--- stop, at submission $at of $((high / 2)) to $high"
code=0
train $at --checkpoint stop >stop.out 2>stop.err || code=$?
[[ $code == 3 ]] && grep -q 'VK_ERROR_DEVICE_LOST' stop.err || fail "exit code $code: $(cat stop.err)"
[[ -e stop ]] || fail "no checkpoint is left"
train 1000000 --checkpoint stop --resume >stop.out 2>stop.err
cmp whole stop || fail "resumed after the loss: the checkpoints differ"

echo "--- wait: a new session on the device"
train $at --checkpoint wait --on-device-lost wait >wait.out 2>wait.err || fail "exit code $?: $(cat wait.err)"
grep -q 'goes on from step' wait.err || fail "$(cat wait.err)"
cmp whole wait || fail "continued on the device: the checkpoints differ"

echo "--- cpu"
train $at --checkpoint cpu --on-device-lost cpu >cpu.out 2>cpu.err || fail "exit code $?: $(cat cpu.err)"
grep -q 'goes on from step' cpu.err && grep -q 'samples on cpu' cpu.err || fail "$(cat cpu.err)"
[[ $(tail -n 1 whole.out | cut -d' ' -f1) == $(tail -n 1 cpu.out | cut -d' ' -f1) ]] || fail "not all epochs: $(cat cpu.out)"

echo "--- lost before the first checkpoint"
train 3 --checkpoint start --on-device-lost wait >start.out 2>start.err || fail "exit code $?: $(cat start.err)"
grep -q 'goes on from the start' start.err || fail "$(cat start.err)"
cmp whole start || fail "begun again: the checkpoints differ"

echo "--- without a checkpoint"
code=0
train 1000000 --on-device-lost cpu >none.out 2>none.err || code=$?
[[ $code == 2 ]] && grep -q -- '--on-device-lost cpu needs --checkpoint' none.err || fail "exit code $code: $(cat none.err)"
echo "a lost device ends, or only delays a training"
