#!/usr/bin/env bash
# quantize_aware.sh BIN SCRATCH BACKEND: a few steps with fake quantization give an int8 file without calibration data whose
# results match those of the fake-quantized net.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2/quantize-aware-$3 backend=$3
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

# refused CODE WORDS COMMAND..: the command exits with this code and prints these words.
refused() {
  local code=$1 words=$2 got=0
  shift 2
  "$@" >refused.log 2>&1 || got=$?
  [[ $got == "$code" ]] && grep -q -- "$words" refused.log || fail "expected code $code and '$words', found $got: $(cat refused.log)"
}

# 128 images from the bytes of a program, and labels.
{ printf '\0\0\x08\x03\0\0\0\x80\0\0\0\x1c\0\0\0\x1c'; head -c $((128 * 28 * 28)) "$bin/rtconvert"; } >images
{ printf '\0\0\x08\x01\0\0\0\x80'; for i in {1..128}; do printf "\\x0$((i * 7 % 10))"; done; } >labels

for net in zoo:lenet5 zoo:resnet18_mnist; do
  [[ $net == zoo:lenet5 || $backend == cpu ]] || continue  # deep nets take software and emulated devices too long
  echo "--- $net"
  tolerance=$([[ $net == zoo:lenet5 ]] && echo 0.03 || echo 0.1)
  "$bin/rtconvert" "$net" -o net.rt --train --optimizer adam --quantize-aware >convert.log
  grep -q "^quantized " convert.log || fail "no line on quantization: $(cat convert.log)"
  "$bin/rttrain" net.rt --data images --labels labels --scale 0.00392157 --batch 32 --lr 0.0005 --steps 6 --backend "$backend" \
    --checkpoint net.ckpt --overwrite >/dev/null
  "$bin/rtconvert" net.rt --checkpoint net.ckpt -o fake.rt >/dev/null
  "$bin/rtconvert" net.rt --checkpoint net.ckpt -o int8.rt --precision int8 >int8.log
  "$bin/rtconvert" int8.rt --inspect >graph
  matmuls=$(sed -n 's/^quantized *\([0-9]*\) MatMul\/Conv nodes with the ranges of training.*/\1/p' int8.log)
  [[ $matmuls == $(grep -cE ' = Quantized(Conv|MatMul)\(' graph) ]] || fail "expected '$matmuls' integer matmuls: $(cat int8.log graph)"
  [[ $(grep -cE ' = (Conv|MatMul|FakeQuantize)\(' graph) == 0 ]] || fail "matmuls in f32 are left: $(cat graph)"
  output=$(sed -n 's/^  output %//p' graph)
  "$bin/rtrun" fake.rt --random-input --dim batch=8 --backend "$backend" --save "$output=fake.npy" --quiet
  # Ties may be rounded differently, so a result may be off by some steps in a deep net.
  "$bin/rtrun" int8.rt --random-input --dim batch=8 --backend "$backend" --expect "$output=fake.npy" --rtol 0.1 --atol "$tolerance" --quiet
done

echo "--- what is refused"
[[ $backend == cpu ]] || exit 0
refused 2 "give the checkpoint" "$bin/rtconvert" net.rt -o x.rt --precision int8
refused 2 "was trained for --precision int8" "$bin/rtconvert" net.rt --checkpoint net.ckpt -o x.rt --precision int4-weights
refused 2 "its ranges" "$bin/rtconvert" net.rt --checkpoint net.ckpt -o x.rt --precision int8 --calibrate images
refused 2 "fake quantization already" "$bin/rtconvert" fake.rt -o x.rt --train --quantize-aware
refused 2 "is for --train" "$bin/rtconvert" zoo:lenet5 -o x.rt --quantize-aware
refused 2 "leave out --lora" "$bin/rtconvert" zoo:lenet5 -o x.rt --train --quantize-aware --lora rank=2
refused 2 "no node is named like 'stem'" "$bin/rtconvert" zoo:lenet5 -o x.rt --train --quantize-aware --keep-fp32 stem
"$bin/rtconvert" zoo:lenet5 -o untrained.rt --train --quantize-aware --optimizer sgd >/dev/null
"$bin/rttrain" untrained.rt --data images --labels labels --steps 1 --lr 0 --scale 0 --checkpoint zeros.ckpt >/dev/null
"$bin/rtconvert" untrained.rt --checkpoint zeros.ckpt -o x.rt --precision int8 >zeros.log
grep -q "the readers of 1 tensor, always zero in the training, stay in f32 ('input')" zeros.log || fail "no word about the zeros: $(cat zeros.log)"
