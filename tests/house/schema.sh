#!/bin/sh
# The schema may only grow: every released copy in schema/frozen/<version> must still be readable with today's schema.
#   schema.sh SOURCE_FOLDER [FLATC]
# To release: mkdir schema/frozen/<version> && cp schema/*.fbs schema/frozen/<version>/
schema=$1/schema
flatc=${2:-flatc}
command -v "$flatc" >/dev/null || { echo "skipped: no flatc"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
for old in "$schema"/frozen/*/*.fbs; do
  [ -e "$old" ] || { echo "skipped: no released schema in $schema/frozen"; exit 77; }
  new=$schema/$(basename "$old")
  if [ ! -e "$new" ]; then
    echo "$new: released as $old, now gone"
    failed=1
  elif ! "$flatc" --binary -o "$work" -I "$schema" --conform "$old" --conform-includes "$(dirname "$old")" "$new"; then
    echo "$new: breaks files written with $old; only append"
    failed=1
  fi
done
exit $failed
