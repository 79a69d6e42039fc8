#!/usr/bin/env bash
# format.sh ROOT: every C++ file is formatted by clang-format 14.
set -euo pipefail
cd "$1"
if ! clang-format --version 2>/dev/null | grep -q 'version 14'; then
  echo "SKIPPED: clang-format 14 is not installed"
  exit 77
fi
find $(ls -d runtime backends kernels tools tests examples python 2>/dev/null) -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' \) \
  -print0 | xargs -0 clang-format --dry-run -Werror
