#!/usr/bin/env bash
# completion.sh FOLDER: what bash offers at the end of a line, with the completions in FOLDER/bash (as the build makes them); zsh and fish
# read theirs, where they are installed.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir models
touch net.rt net.onnx "two words.rt" models/deep.rt
for program in rtconvert rtrun rtbench rttrain; do
  # shellcheck disable=SC1090
  source "$folder/bash/$program"
  [[ $(complete -p $program) == "complete -F _$program $program" ]] || fail "$program is not registered"
done

# offers LINE: the completions, sorted, with | between them.
offers() {
  local COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
  COMPREPLY=()
  "_${1%% *}"
  printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd '|'
}
# expect LINE OFFERS
expect() { [[ $(offers "$1") == "$2" ]] || fail "$1: expected $2, found $(offers "$1")"; }
# includes LINE OFFER
includes() { [[ "|$(offers "$1")|" == *"|$2|"* ]] || fail "$1: expected $2 among $(offers "$1")"; }

# options
expect 'rtrun net.rt --top-' '--top-k|--top-p'
includes 'rtrun --' --backend
expect 'rtconvert net.onnx --prec' --precision
expect 'rttrain net.rt --valid' '--validate|--validate-fraction|--validate-labels'
expect 'rtrun --no-such' ''
# every option that the table has
for program in rtconvert rtrun rtbench rttrain; do
  options="|$(offers "$program --")|"
  count=0
  while read -r option; do
    [[ $options == *"|$option|"* ]] || fail "$program: $option is not offered"
    count=$((count + 1))
  done < <(awk -F '\t' '$1 == "" { print $2 }' "$folder/$program.table" | tr ',' '\n' | grep '^--')
  ((count > 10)) || fail "$program.table has $count options"
done
# values: backends, alone, after commas, after =
expect 'rtrun net.rt --backend ' 'auto|cpu|cuda|reference|vulkan'
expect 'rtrun net.rt --backend v' vulkan
expect 'rtbench net.rt --backend cpu,v' cpu,vulkan
expect 'rtrun net.rt --backend=re' reference
expect 'rtconvert net.onnx --precision int8' 'int8|int8-weights'
expect 'rtrun net.rt --threads ' ''
# the zoo; bash replaces what follows the colon
includes 'rtconvert zoo:len' lenet5
expect 'rtconvert zoo:mobil' "$(sed -n 's/.*models="\([^"]*\)".*/\1/p' "$folder/bash/rtconvert" | tr ' ' '\n' | sed -n 's/^zoo:\(mobil.*\)/\1/p' | sort | paste -sd '|')"
includes 'rtbench zo' zoo:resnet18
# files: models, values of options, NAME=FILE
expect 'rtrun ne' 'net.onnx|net.rt'
expect 'rtrun two' 'two words.rt'
expect 'rtconvert net.onnx -o models/' models/deep.rt
expect 'rtrun net.rt --input image=net.o' net.onnx
# the commands of rtbench and their options
includes 'rtbench stu' study
includes 'rtbench study zoo:len' lenet5
expect 'rtbench study net.rt --budg' --budget
expect 'rtbench compare --budg' ''

if command -v zsh >/dev/null; then
  for file in "$folder"/zsh/_*; do zsh -n "$file" || fail "$file"; done
else
  echo "zsh is not installed: its files were not read"
fi
if command -v fish >/dev/null; then
  found=$(fish --no-config -c "source '$folder/fish/rtrun.fish'; complete -C 'rtrun net.rt --backend v'")
  [[ $found == vulkan* ]] || fail "fish: rtrun net.rt --backend v: $found"
  found=$(fish --no-config -c "source '$folder/fish/rtbench.fish'; complete -C 'rtbench study net.rt --budg'")
  [[ $found == --budget* ]] || fail "fish: rtbench study net.rt --budg: $found"
  for file in "$folder"/fish/*; do fish --no-config -n "$file" || fail "$file"; done
else
  echo "fish is not installed: its files were not read"
fi
echo "completion of rtconvert, rtrun, rtbench and rttrain"
