#!/usr/bin/env bash
# run.sh BIN TUTORIAL.md SCRATCH: runs the ```sh blocks of a tutorial in order, in one shell in an empty folder, and compares the ```text
# block after each with its output (stdout and stderr): every line must occur there, in this order. Before that, every number becomes N and
# runs of spaces one space. A line `...` stands for lines left out; `...` at the end of a line stands for the rest of it.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$(realpath "$1") tutorial=$(realpath "$2") scratch=$3/$(basename "$2" .md)
skip() { echo "skipped: $*"; exit 77; }
command -v python3 >/dev/null || skip "there is no python3, which makes the tutorials' data"
if grep -q '^mpirun' "$tutorial"; then
  command -v mpirun >/dev/null || skip "there is no mpirun (openmpi-bin)"
  [[ -e $bin/../lib/librt/communicator_mpi.so ]] || skip "built without MPI (libopenmpi-dev)"
  . "$(dirname "$0")/../support/open_mpi.sh"
  # Debian 13's mpirun (Open MPI 5.0.7) crashes.
  ! grep -q '^mpirun.* : ' "$tutorial" || mpirun -n 1 true : -n 1 true >/dev/null 2>&1 ||
    skip "this mpirun cannot start two programs: $(mpirun --version | head -n 1)"
fi
rm -rf "$scratch"
mkdir -p "$scratch/blocks" "$scratch/work"
scratch=$(realpath "$scratch")

# blocks/N.sh, blocks/N.text; all.sh runs them in one shell, each with its own output.
awk -v folder="$scratch/blocks" '
  /^```/ {
    if (inside != "") { inside = ""; next }
    if ($0 == "```sh") { inside = folder "/" ++count ".sh"; printf "" >inside }
    else if ($0 == "```text") { inside = folder "/" count ".text"; ++texts }
    else { print FILENAME ": line " FNR ": expected ```sh or ```text, found " $0; failed = 1; exit 1 }
    next
  }
  inside != "" { print >inside }
  END { if (!failed && (inside != "" || count == 0 || texts == 0)) { print FILENAME ": no blocks, or one without an end"; exit 1 } }
' "$tutorial" || fail "the blocks of $tutorial"
count=$(find "$scratch/blocks" -name '*.sh' | wc -l)
{
  echo 'set -euo pipefail'
  for ((i = 1; i <= count; ++i)); do
    echo "exec >'$scratch/blocks/$i.out' 2>&1"
    cat "$scratch/blocks/$i.sh"
  done
} >"$scratch/all.sh"

export PATH=$bin:$PATH
code=0
(cd "$scratch/work" && bash "$scratch/all.sh") || code=$?
for ((i = 1; i <= count; ++i)); do
  [[ -e $scratch/blocks/$i.out ]] || break
  echo "--- block $i"
  cat "$scratch/blocks/$i.sh" "$scratch/blocks/$i.out"
done
((code == 0)) || fail "exit code $code of the last block above"

for ((i = 1; i <= count; ++i)); do
  [[ -e $scratch/blocks/$i.text ]] || continue
  awk '
    { gsub(/-?[0-9][0-9,]*(\.[0-9]+)?(e[-+]?[0-9]+)?/, "N"); gsub(/[ \t]+/, " "); sub(/ $/, "") }
    FNR == NR { output[++lines] = $0; next }
    $0 == "" || $0 == "..." { next }
    {
      start = sub(/ ?\.\.\.$/, "")
      for (++at; at <= lines; ++at) if (start ? index(output[at], $0) == 1 : output[at] == $0) next
      print "line " FNR " of the text does not occur in the output, or not after the line above: " $0
      exit 1
    }
  ' "$scratch/blocks/$i.out" "$scratch/blocks/$i.text" || fail "block $i"
done
echo "$count blocks"
