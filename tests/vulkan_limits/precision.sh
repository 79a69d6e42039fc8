#!/bin/sh
# A model in f16 on a device without 16-bit storage runs in f32, and rtbench says so.
#   precision.sh RTBENCH
out=$("$1" zoo:lenet5 --backends vulkan --precision fp16 --batch 1 --time 0.01 --no-tuning 2>&1) ||
  { echo "FAILED: exit code $?: $out" >&2; exit 1; }
case $out in
  *"computed in other types"*"16-bit storage is missing"*) ;;
  *) echo "FAILED: expected the reason, found: $out" >&2; exit 1 ;;
esac
