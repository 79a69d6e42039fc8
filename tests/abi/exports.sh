#!/bin/sh
# exports.sh LIBRARY HEADER: exports exactly the functions that rt.h declares, stays small, is not named librt.so.1. The goal is 400 KB;
# the limit keeps it from growing. The last 39 KB are the cost model by families of nodes, of which `auto` makes its choices, the memory
# of nodes and the transfers in profiles, and memory of devices for inputs and outputs with its refusals (28 KB).
set -eu
library=$1 header=$2 limit=490000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | grep -v '^RT_0$' | sort >"$work/exported"
grep -v '#define' "$header" | tr '\n' ' ' | grep -o 'RT_API [^(;]*(' | sed 's/($//; s/.*[ *]//' | sort >"$work/declared"
if ! diff "$work/declared" "$work/exported"; then
  echo "declared in rt.h (<) and exported by $library (>) differ"
  exit 1
fi
soname=$(objdump -p "$library" | awk '$1 == "SONAME" {print $2}')
[ "$soname" = librt.so.0 ] || { echo "soname is '$soname', not librt.so.0"; exit 1; }
strip -o "$work/stripped" "$library"
bytes=$(stat -c %s "$work/stripped")
echo "$(wc -l <"$work/exported") functions, $bytes bytes stripped"
[ "$bytes" -lt "$limit" ] || { echo "stripped librt has $bytes bytes, the limit is $limit"; exit 1; }
