#!/usr/bin/env bash
# environment.sh ROOT: librt, its backends and the programs read the environment through runtime/core/environment.h, which ignores it in
# setuid processes. Prints every getenv elsewhere, except of variables that name no file, folder or device.
set -euo pipefail
cd "$1"
fine='"COLUMNS"'                                                       # the terminal's width
ranks='tools/rttrain/ranks\.cpp:.*getenv\(name\)'                     # the number of ranks, by the launcher
helper='^runtime/core/environment\.cpp:'
found=$(grep -rnE '\b(secure_)?getenv\b|\benviron\b' runtime backends tools --include='*.cpp' --include='*.h' --include='*.hpp' |
  grep -vE "getenv\($fine\)|$ranks|$helper" | grep -vE '&attributes, pointers.data\(\), environ\)' || true)
if [[ -n $found ]]; then
  echo "$found"
  echo "    read it with environment() of runtime/core/environment.h"
  exit 1
fi
grep -q 'secure_getenv(name)' runtime/core/environment.cpp || { echo "runtime/core/environment.cpp must use secure_getenv"; exit 1; }
