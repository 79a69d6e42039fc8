#!/bin/sh
# exports.sh LIBRARY SONAME LIMIT HEADER...: exports exactly the functions that the headers declare, has this soname (never librt.so.1, which is
# glibc's), and is smaller than LIMIT bytes without symbols.
set -eu
library=$1 wanted=$2 limit=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | grep -vE '^RT_([A-Z]+_)?0$' | sort >"$work/exported"
cat "$@" | grep -v '#define' | tr '\n' ' ' | grep -o 'RT_API [^(;]*(' | sed 's/($//; s/.*[ *]//' | sort >"$work/declared"
if ! diff "$work/declared" "$work/exported"; then
  echo "declared in $* (<) and exported by $library (>) differ"
  exit 1
fi
soname=$(objdump -p "$library" | awk '$1 == "SONAME" {print $2}')
[ "$soname" = "$wanted" ] || { echo "soname is '$soname', not $wanted"; exit 1; }
strip -o "$work/stripped" "$library"
bytes=$(stat -c %s "$work/stripped")
echo "$(wc -l <"$work/exported") functions, $bytes bytes stripped"
[ "$bytes" -lt "$limit" ] || { echo "stripped $library has $bytes bytes, the limit is $limit"; exit 1; }
