# Sourced by tests of the programs.

fail() { echo "FAILED: $*"; exit 1; }

# refuses CODE TEXT COMMAND ARGUMENT ...: a program of $bin, a function of the test or any other program ends with this exit code, and has
# the text on stderr. A program must end within $refusal_limit seconds. out.txt and error.txt keep what it printed.
refusal_limit=120
refuses() {
  local wanted=$1 text=$2 code=0 run=("${@:3}")
  [[ ! -x $bin/$3 ]] || run[0]=$bin/$3
  [[ $(type -t "$3") == function ]] || run=(timeout "$refusal_limit" "${run[@]}")
  "${run[@]}" >out.txt 2>error.txt || code=$?
  [[ $code == "$wanted" ]] || fail "${*:3}: exit code $code, expected $wanted: $(cat error.txt)"
  grep -qF -- "$text" error.txt || fail "${*:3}: expected '$text', found: $(cat error.txt)"
}
