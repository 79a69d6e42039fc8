#!/bin/sh
# completions.sh OUT ZOO PROGRAM COMMAND...: writes completion for bash, zsh and fish of PROGRAM into OUT/bash, OUT/zsh and OUT/fish, from the
# options that `PROGRAM --completion-table` and `PROGRAM COMMAND --completion-table` print. ZOO is a program whose --list-zoo has
# the names of the zoo.
set -eu
out=$1 zoo=$2 program=$3
shift 3
name=$(basename "$program")
models=$("$zoo" --list-zoo | sed -n 's/^ *\(zoo:[a-z0-9_]*\).*/\1/p' | tr '\n' ' ')
[ -n "$models" ] || { echo "completions.sh: $zoo --list-zoo names no model" >&2; exit 1; }
mkdir -p "$out/bash" "$out/zsh" "$out/fish"
# A column in front: the command, or nothing.
{
  "$program" --completion-table | sed 's/^/\t/'
  for command in "$@"; do "$program" "$command" --completion-table | sed "s/^/$command\t/"; done
} >"$out/$name.table"
# One rule for what may stand for MODEL: the zoo, where the description names it, and files.
for shell in bash zsh fish; do
  awk -F '\t' -v name="$name" -v commands="$*" -v zoo="$models" -f "$(dirname "$0")/completions_$shell.awk" "$out/$name.table" >"$out/$name.$shell"
done
mv "$out/$name.bash" "$out/bash/$name"
mv "$out/$name.zsh" "$out/zsh/_$name"
mv "$out/$name.fish" "$out/fish/$name.fish"
