#!/bin/sh
# needed.sh COMPILER_LIBRARY FILE...: the files load neither Protocol Buffers nor librt_compiler, directly or through a library; the compiler's
# library does, which shows that the check sees them.
set -eu
compiler=$1
shift
[ $# -gt 0 ] || { echo "needed.sh: no files to check"; exit 1; }
loads() { ldd "$1" | grep -oE 'libprotobuf[^ ]*|librt_compiler[^ ]*' | sort -u | tr '\n' ' '; }
[ -n "$(loads "$compiler")" ] || { echo "$compiler loads no libprotobuf: the check sees nothing"; exit 1; }
status=0
for file in "$@"; do
  found=$(loads "$file")
  [ -z "$found" ] || { echo "$file loads $found, which only compiling needs"; status=1; }
done
exit $status
