#!/usr/bin/env bash
# sizes.sh ROOT: no source file has more than 800 lines, no module's README more than 60.
set -euo pipefail
cd "$1"
status=0
while read -r lines file; do
  ((lines > 800)) && { echo "$file has $lines lines; split it along an idea"; status=1; }
done < <(find $(ls -d runtime backends kernels shaders schema tools tests examples 2>/dev/null) -type f \
  \( -name '*.cpp' -o -name '*.h' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.comp' -o -name '*.glsl' -o -name '*.fbs' \) \
  -not -path '*/frozen/*' -exec wc -l {} + | grep -v ' total$')
for readme in */README.md; do
  lines=$(wc -l <"$readme")
  ((lines > 60)) && { echo "$readme has $lines lines; a module's README has at most 60"; status=1; }
done
exit $status
