#!/usr/bin/env bash
# measure.sh MEASURE BUILD BACKEND: tools/dev/measure fills its tables, and finds the gaps in a profile.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
measure=$1 build=$2 backend=$3
command -v python3 >/dev/null || { echo "SKIPPED: python3 is not there"; exit 77; }

out=$("$measure" --build "$build" --backend "$backend" --small --time 0.01 --rounds 1)
echo "$out"
number='[0-9.]+(e[+-]?[0-9]+)?'
for row in "fp16 \| $number" "bf16 \| $number" "Add \| fp16 \| [a-z_]+ \| $number" \
  "LayerNormalization \| fp32 \| [a-z_]+ \| $number" "lenet5 \| 2 \| $number"; do
  grep -qE "^\| $row" <<<"$out" || fail "no row: $row"
done

[[ $backend != cpu ]] || grep -qE "^\| copy \| fp32 \| \| $number" <<<"$out" || fail "no bandwidth of a copy"

"$measure" --build "$build" --backend nothing 2>/dev/null && fail "a backend that is none must be refused"
[[ $? == 3 ]] || fail "expected exit code 3 where there is no device"

# Two runs: gaps of 1 and 2 us, then 0 (the third begins before the second has ended) and 4.
python3 - "$measure" <<'PY'
import importlib.machinery
import importlib.util
import sys

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("measure", sys.argv[1])
measure = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure", loader))
loader.exec_module(measure)
rows = [(0, 500, "[CUDA memcpy Host-to-Device]"), (10000, 1000, "a"), (12000, 1000, "b"), (15000, 500, "c"), (20000, 10, "[CUDA memcpy DtoH]"),
        (30000, 1000, "a"), (30500, 2500, "b"), (37000, 10, "c")]
table = "Start (ns),Duration (ns),Name\n" + "".join("%d,%d,%s\n" % row for row in rows)
found = measure.gaps_of(table)
assert found == [1, 2, 0, 4], found
PY
