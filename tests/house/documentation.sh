#!/usr/bin/env bash
# documentation.sh ROOT: everything public in runtime/include/rt is documented: doxygen (docs/Doxyfile.in) prints no warning.
set -euo pipefail
cd "$1"
if ! command -v doxygen >/dev/null; then
  echo "SKIPPED: doxygen is not installed"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -e "s|@PROJECT_SOURCE_DIR@|$PWD|g; s|@PROJECT_VERSION@||; s|@RT_API_REFERENCE@|$folder|" docs/Doxyfile.in >"$folder/Doxyfile"
doxygen "$folder/Doxyfile"
