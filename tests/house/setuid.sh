#!/bin/sh
# setuid.sh RTBENCH: a process with the rights of another user ignores the variables that name files and folders. Needs root, to make a program
# of another user.
set -eu
program=$1
skip() { echo "SKIPPED: $1"; exit 77; }
fail() { echo "FAILED: $1: $(cat "$work/log")"; exit 1; }
[ "$(id -u)" = 0 ] || skip "only root can make a program of another user"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir "$work/cache" "$work/home"
cp "$program" "$work/rtbench"
export RT_MODULE_PATH="$work/modules" XDG_CACHE_HOME="$work/cache" HOME="$work/home"

# As any program, it reads them.
"$work/rtbench" --devices >"$work/log" 2>&1 || true
grep -q "$work/modules" "$work/log" || fail "RT_MODULE_PATH is not read"
"$work/rtbench" --clear-cache >"$work/log" 2>&1 || true
grep -q "$work/cache/librt" "$work/log" || fail "XDG_CACHE_HOME is not read"

chown 65534 "$work/rtbench"
chmod 4755 "$work/rtbench"
cp "$(command -v id)" "$work/id"
chown 65534 "$work/id"
chmod 4755 "$work/id"
[ "$("$work/id" -u)" = 65534 ] || skip "setuid programs have no effect in $work"
"$work/rtbench" --devices >"$work/log" 2>&1 || true
grep -q 'librt_cpu.so was not found' "$work/log" || fail "no list of backends"
grep -q "$work/modules" "$work/log" && fail "RT_MODULE_PATH is read in a setuid process"
"$work/rtbench" --clear-cache >"$work/log" 2>&1 || true
grep -q 'neither XDG_CACHE_HOME nor HOME' "$work/log" || fail "XDG_CACHE_HOME or HOME is read in a setuid process"
