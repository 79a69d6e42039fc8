#!/usr/bin/env bash
# with_device.sh PROBE COMMAND ...: the command, where the CUDA module finds a device; elsewhere the reason and 77, a skip.
set -euo pipefail
probe=$1
shift
reason=$("$probe" --device) || { code=$?; echo "SKIPPED: $reason"; exit $code; }
exec "$@"
