#!/usr/bin/env bash
# with_device.sh PROBE COMMAND ...: runs the command if the CUDA module finds a device; otherwise prints the reason and skips (77).
set -euo pipefail
probe=$1
shift
reason=$("$probe" --device) || { code=$?; echo "SKIPPED: $reason"; exit $code; }
exec "$@"
