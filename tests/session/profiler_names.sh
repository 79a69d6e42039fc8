#!/bin/sh
# Tools that watch a device see every node's name, and ranges that end before the next begins.
#   profiler_names.sh RTBENCH BACKEND MODEL LABELS_FILE
# The environment makes the tool's stand-in append "begin NAME" and "end" to the file RT_TEST_LABELS.
set -u
rtbench=$1 backend=$2 model=$3 labels=$4
fail() { echo "FAILED: $1" >&2; exit 1; }
export RT_TEST_LABELS="$labels"

rm -f "$labels"
"$rtbench" "$model" --backend "$backend" --batch 2 --time 0.01 --no-tuning --profile --json > "$labels.json" || fail "exit code $?"
[ -s "$labels" ] || fail "no label was recorded"
awk '$1 == "begin" { if (open) exit 1; open = 1 } $1 == "end" { if (!open) exit 1; open = 0 } END { if (open) exit 1 }' "$labels" ||
  fail "ranges are not one after the other: $(cat "$labels")"
sed -n 's/^begin //p' "$labels" | sort -u > "$labels.names"
python3 - "$labels.json" "$labels.names" <<'END' || exit 1
import json, sys
with open(sys.argv[1]) as file:
    operations = [operation for row in json.load(file)["measurements"] for operation in row["ops"]]
nodes = {operation["name"] for operation in operations if operation["op"] != "Transfer"}
with open(sys.argv[2]) as file:
    seen = set(file.read().splitlines())
# A node without work of its own, whose output another kernel writes, has no range.
if not nodes or not seen or not seen <= nodes or 2 * len(seen) < len(nodes):
    sys.exit(f"FAILED: labels {sorted(seen)}, nodes of the profile {sorted(nodes)}")
transfers = {operation["name"] for operation in operations if operation["op"] == "Transfer"}
# Outputs that the host can address are not transferred.
if not {"inputs"} <= transfers <= {"inputs", "outputs"}:
    sys.exit(f"FAILED: transfers of the profile are {sorted(transfers)}")
END

# Without profile nothing is labelled.
rm -f "$labels"
"$rtbench" "$model" --backend "$backend" --batch 2 --time 0.01 --no-tuning > "$labels.out" || fail "exit code $?: $(cat "$labels.out")"
[ ! -e "$labels" ] || fail "labels without --profile: $(cat "$labels")"
