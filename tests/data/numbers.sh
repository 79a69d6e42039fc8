#!/usr/bin/env bash
# numbers.sh BIN SCRATCH: numbers of options and of JSON files that are none, not finite, or beyond what their type holds are refused
# with exit code 2 and a message that names the option and what was found; none is taken as another number.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2/numbers
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
refusal_limit=20

"$bin/rtconvert" zoo:mlp -o mlp.rt >/dev/null
"$bin/rtconvert" zoo:tabular -o table.rt --train --loss cross_entropy --optimizer adam >/dev/null
{
  seq -s, 0 19 | sed 's/$/,label/'
  for i in {1..12}; do echo "$(seq -s, "$i" $((i + 19))),$((i % 3))"; done
} >table.csv
train=(rttrain table.rt --data table.csv --batch 4 --steps 2 --backend cpu)

echo "--- numbers that are not finite"
for value in nan inf 1e999 -1e999; do
  for option in --rtol --atol --mean --std --top-p --temperature --time-limit; do
    refuses 2 "$option: expected a" rtrun mlp.rt --random-input --backend cpu "$option=$value"
  done
  for option in --lr --mean --std --scale --validate-fraction --rank-timeout; do
    refuses 2 "$option: expected a" "${train[@]}" "$option=$value"
  done
  for option in --momentum --dampening --weight-decay --ema --batch-norm-momentum --range-momentum --label-smoothing --clip-norm; do
    refuses 2 "$option: expected a" rtconvert zoo:lenet5 -o x.rt --train --quantize-aware "$option=$value"
  done
  refuses 2 "--percentile: expected a" rtconvert zoo:lenet5 -o x.rt "--percentile=$value"
  refuses 2 "--lora: expected a" rtconvert zoo:lenet5 -o x.rt --train "--lora=rank=2,dropout=$value"
  refuses 2 "--group: expected" rtconvert zoo:lenet5 -o x.rt --train "--group=*:lr=$value"
  refuses 2 "--time: expected a" rtbench mlp.rt --backend cpu "--time=$value"
  refuses 2 "--target accuracy=$value: expected" "${train[@]}" --validate table.csv --target "accuracy=$value"
done

echo "--- integers that are none, or too large"
for value in 1e999 nan 1.5 abc 99999999999999999999 -99999999999999999999; do
  for option in --threads --top-k --repeat --seed --prompt-tokens --stop-token; do
    refuses 2 "$option: expected a" rtrun mlp.rt --random-input --backend cpu "$option=$value"
  done
  for option in --epochs --steps --seed --padding --workers --top-k --log-every; do
    refuses 2 "$option: expected a" "${train[@]}" "$option=$value"
  done
  refuses 2 "--dim: expected" rtbench mlp.rt --dim "batch=$value"
  refuses 2 "--dim: expected" rtrun mlp.rt --random-input --dim "batch=$value"
  refuses 2 "--dim: expected" rtconvert zoo:mlp -o x.rt --dim "batch=$value"
done
refuses 2 "--seed: expected a whole number from 0 to 18446744073709551615, found -1" rtrun mlp.rt --random-input --seed=-1
refuses 2 "--augment crop=99999999999999999999" "${train[@]}" --augment crop=99999999999999999999
refuses 2 "--augment crop=9223372036854775807" "${train[@]}" --augment crop=9223372036854775807
refuses 2 "no column" "${train[@]}" --label-column 99999999999999999999

echo "--- numbers of bytes"
for value in -1 -1MiB 99999999999999999999 99999999999999999999GiB nan; do
  refuses 2 "--cache: " "${train[@]}" "--cache=$value"
  refuses 2 "--memory: " "${train[@]}" "--memory=$value"
  refuses 2 "--bucket-size: " rtconvert zoo:lenet5 -o x.rt --train --data-parallel "--bucket-size=$value"
done
refuses 2 "--memory: expected a number above 0, found 0" "${train[@]}" --memory 0
"$bin/${train[0]}" "${train[@]:1}" --cache 16MiB >/dev/null 2>&1 || fail "--cache 16MiB was refused"

echo "--- as many epochs as a number holds"
for epochs in 4611686018427387904 9223372036854775807 18446744073709551615; do
  timeout 60 "$bin/${train[0]}" "${train[@]:1}" --epochs "$epochs" >out.txt 2>error.txt || fail "--epochs $epochs: $(cat error.txt)"
done

echo "--- JSON"
echo '{"traceEvents": [{"ts": 1e999}]}' >large.json
refuses 2 "large.json: expected a Chrome trace in JSON; it has a number that is too large" rtbench view large.json
refuses 2 "large.json: expected the result of a study in JSON; it has a number that is too large" rtbench compare large.json large.json
printf '{"devices":[{"name":"a","title":"\\u001b[31m%s","kind":"discrete GPU"}]}' "$(head -c 5000 /dev/zero | tr '\0' x)" >names.json
refuses 2 "'title': expected a text of 1 to 1000 bytes" rtbench mlp.rt --backend cpu --what-if names.json
[[ $(wc -c <error.txt) -lt 500 ]] || fail "a message of $(wc -c <error.txt) bytes"
mkdir studies
cp large.json studies/
"$bin/rtbench" history --save studies >out.txt 2>error.txt || fail "history: $(cat error.txt)"
grep -q "left out: .*large.json" error.txt || fail "history does not name the file that it left out: $(cat error.txt)"
[[ ! -e x.rt ]] || fail "a refused conversion wrote a model"
echo "numbers of options and files: passed"
