# Sourced by tests of rtbench, which have set bin and scratch: enters an empty scratch folder, which also holds the stored studies.
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
export XDG_DATA_HOME=$scratch/data

fail() { echo "FAILED: $*"; exit 1; }
# CODE TEXT ARGUMENT ...: the exit code of rtbench, and the text on stderr.
refuses() {
  local wanted=$1 text=$2 code=0
  "$bin/rtbench" "${@:3}" >out.txt 2>error.txt || code=$?
  [[ $code == "$wanted" ]] || fail "rtbench ${*:3}: exit code $code, expected $wanted: $(cat error.txt)"
  grep -qF -- "$text" error.txt || fail "rtbench ${*:3}: expected '$text', found: $(cat error.txt)"
}
# PATTERN FILE
has() { grep -Eq -- "$1" "$2" || fail "expected '$1' in $2, found: $(head -c 4000 "$2")"; }
