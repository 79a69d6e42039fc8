#!/usr/bin/env bash
# stems.sh ROOT: the files of an operator are found by name. A backend's row of an operator is in ops/STEM.cpp or
# ops/STEM_suffix.cpp, where STEM.cpp or STEM_suffix.cpp in runtime/ops has its page; its cases are in tests/cases under the same
# rule. Prints every row and every file of cases that is elsewhere.
set -euo pipefail
cd "$1"

# OPERATOR STEM: rows that are elsewhere, each with its reason.
exceptions='
QuantizedMatMul integer_matmul # one kernel with MatMulInteger on GPUs
QuantizedConv integer_matmul # one kernel with ConvInteger on GPUs
QuantizedAdd quantize # rounds to integers as QuantizeLinear does
Requantize quantize # one kernel with QuantizeLinear on GPUs
'

declare -A page
while IFS=: read -r file line; do
  operator=${line#RT_PAGE(}
  page[${operator%%)*}]=$(basename "$file" .cpp)
done < <(grep -oE '^RT_PAGE\(\w+\)' runtime/ops/*.cpp)

# of_page STEM PAGE: whether a file with this stem is the place of the page's operators.
of_page() { [[ $1 == "$2" || $1 == "$2"_* || $2 == "$1"_* ]]; }

status=0
rows=0
used=''
while read -r backend stem operator; do
  home=${page[$operator]:-}
  [[ -n $home ]] || continue # a macro's parameter, or a macro that is no row
  rows=$((rows + 1))
  of_page "$stem" "$home" && continue
  if grep -qE "^$operator $stem #" <<<"$exceptions"; then
    used+="$operator $stem"$'\n'
    continue
  fi
  echo "backends/$backend/ops/$stem.cpp: a row of $operator; its page is runtime/ops/$home.cpp: expected backends/$backend/ops/$home.cpp"
  status=1
done < <(
  for file in backends/{cpu,cuda,vulkan}/ops/*.cpp; do
    backend=${file#backends/}
    {
      tr '\n' ' ' <"$file" | grep -oE '[({] *OpKind::\w+, *"' | grep -oE ':\w+' || true # row<..>(OpKind::Name, "..  or  {OpKind::Name, ".."
      sed -nE 's/^ *RT_[A-Z_]+\((\w+)[,)].*,$/:\1/p' "$file"                            # RT_MACRO(Name, ..), in a line of its own
    } | sort -u | sed "s|^:|${backend%%/*} $(basename "$file" .cpp) |"
  done
)
((rows > 300)) || { echo "found $rows rows: the way in which they are written has changed"; exit 1; }
while read -r operator stem _; do
  [[ -z $operator ]] || grep -qx "$operator $stem" <<<"$used" || { echo "stems.sh: $operator is no longer in $stem.cpp: remove the exception"; status=1; }
done <<<"$exceptions"

cases=0
while IFS=: read -r file operator; do
  home=${page[${operator%Attributes}]:-}
  [[ -n $home ]] || continue # a part of attributes
  [[ $file != tests/cases/elementwise.cpp ]] || continue # its cases are chains of other operators
  cases=$((cases + 1))
  of_page "$(basename "$file" .cpp)" "$home" && continue
  echo "$file: cases of ${operator%Attributes}; its page is runtime/ops/$home.cpp: expected tests/cases/$home.cpp"
  status=1
done < <(grep -oE '\bop::\w+Attributes\b' tests/cases/*.cpp | sed 's/:op::/:/' | sort -u)
((cases > 120)) || { echo "found cases of $cases operators: the way in which they are written has changed"; exit 1; }
exit $status
