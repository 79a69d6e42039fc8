#!/usr/bin/env bash
# words.sh ROOT: comments, messages and documents use the field's words. Prints every line with a word that has a standard term.
set -euo pipefail
cd "$1"

status=0
# word: the standard term, and uses of the word that are fine (a regular expression)
check() {
  local word=$1 term=$2 fine=${3:-'^$'} line
  while IFS= read -r line; do
    echo "$line"
    echo "    '$word': say $term"
    status=1
  done < <({
    git ls-files '*.cpp' '*.h' '*.hpp' '*.c' '*.cu' '*.cuh' '*.comp' '*.glsl' '*.fbs' ':!schema/frozen' |
      xargs grep -nHiE "(//|/\*|^ \*).*\b($word)\b"
    git ls-files '*.cpp' '*.h' '*.hpp' '*.c' '*.cu' '*.cuh' | xargs grep -nHiE "\"[^\"]*\b($word)\b[^\"]*\"" | grep -v '#include'
    git ls-files '*.sh' '*.py' '*.cmake' '*CMakeLists.txt' 'tools/build' 'tools/setup' 'tools/test' 'tools/quickstart' 'tools/dev/*' '.ci/*' \
      ':!tests/house/words.sh' | xargs grep -nHiE "#.*\b($word)\b"
    git ls-files '*.md' ':!docs/glossary.md' | xargs grep -nHiE "\b($word)\b"
  } | grep -viE "$fine" || true)
}

check 'chips?' 'GPU architecture, or GPU'
check 'the processors?' 'the CPU'
check '(first|second) cache' 'L1 or L2'
check 'in two halves' 'asynchronous run'
check 'delicate' 'precision-sensitive'
check 'behind' 'after, or past the end' 'leaves? .*behind'
check 'codes' 'quantized values' '(exit|error|exit_|letters).*codes|codebook|`codes`|\.codes|codes are integers'
check '(matrix|integer|no such) products?' 'matmul, or GEMM' 'vector-matrix|integers?, (sums|products)'
check 'is told|are told|tells' 'is given, is known, or reports'
check 'keep[0-9]' 'beta1, beta2'
exit $status
