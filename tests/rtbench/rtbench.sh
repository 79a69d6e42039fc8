# Sourced by tests of rtbench, which have set bin and scratch: enters an empty scratch folder, which also holds the stored studies.
. "$(dirname "${BASH_SOURCE[0]}")/../support/programs.sh"
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
export XDG_DATA_HOME=$scratch/data

# PATTERN FILE
has() { grep -Eq -- "$1" "$2" || fail "expected '$1' in $2, found: $(head -c 4000 "$2")"; }
