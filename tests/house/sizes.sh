#!/usr/bin/env bash
# sizes.sh ROOT: no source file has more than 800 lines, no README of a directory more than 60, and each directory has one.
set -euo pipefail
cd "$1"
status=0
while read -r lines file; do
  ((lines > 800)) && { echo "$file has $lines lines; split it along an idea"; status=1; }
done < <(find $(ls -d runtime backends kernels shaders schema tools tests examples python 2>/dev/null) -type f \
  \( -name '*.cpp' -o -name '*.h' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.comp' -o -name '*.glsl' -o -name '*.fbs' \) \
  -not -path '*/frozen/*' -exec wc -l {} + | grep -v ' total$')
while read -r lines readme; do
  ((lines > 60)) && { echo "$readme has $lines lines; a directory's README has at most 60"; status=1; }
done < <(git ls-files '*/README.md' | xargs wc -l | grep -v ' total$')
# Operators and Python's extension are described by the README above their directory, public headers by themselves.
while read -r directory; do
  [[ -e $directory/README.md || $directory =~ (/ops|^runtime/include/rt|^python/src)$ ]] ||
    { echo "$directory has no README.md: what it knows, what it must not know, which file is for what"; status=1; }
done < <(git ls-files runtime backends tools kernels shaders python | grep -E '\.(cpp|h|hpp|cu|cuh|comp|glsl)$' | xargs -n1 dirname | sort -u)
exit $status
