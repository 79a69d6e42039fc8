#!/bin/sh
# Wrong or crashing pipelines are detected, quarantined and replaced.
#   self_test.sh CONFORMANCE RTRUN MODEL LAYER_FOLDER WORK_FOLDER
set -u
conformance=$1 rtrun=$2 model=$3 layers=$4 work=$5
rm -rf "$work" && mkdir -p "$work" || exit 1
export XDG_CACHE_HOME="$work/cache"
failed=0
fail() { echo "FAILED: $1" >&2; failed=1; }
tests() { cat "$XDG_CACHE_HOME"/librt/vulkan-*.tests; }
matmuls() { "$conformance" --backend vulkan --filter matmul_large_result > "$work/log" 2>&1; }

# A correct driver: every pipeline is tested once, and passes.
matmuls || fail "matmuls on a sound driver: $(tail -5 "$work/log")"
tests | grep -q '^right.gemm_' || fail "no verdict on a product"
tests | grep -q '^wrong' && fail "a sound driver's pipeline was found wrong: $(tests | grep '^wrong')"
before=$(tests | wc -l)
matmuls || fail "a second run"
[ "$(tests | wc -l)" = "$before" ] || fail "what had a verdict was tested again"

# Manual quarantine.
RT_VULKAN_QUARANTINE='*_subgroup' "$rtrun" "$model" --backend vulkan --random-input --plan > "$work/log" 2>&1 ||
  fail "quarantine by hand: $(tail -5 "$work/log")"
grep -q "quarantine: conv_subgroup: by RT_VULKAN_QUARANTINE" "$work/log" || fail "the plan does not say it"
RT_VULKAN_QUARANTINE='gemm_*,attention_*,conv_*' "$rtrun" "$model" --backend vulkan --random-input --plan > "$work/log" 2>&1 ||
  fail "everything by hand: $(tail -5 "$work/log")"
grep -q "fallback: .*gemm_.* is in quarantine by RT_VULKAN_QUARANTINE" "$work/log" || fail "no fallback with its reason"
RT_VULKAN_QUARANTINE=gem "$rtrun" "$model" --backend vulkan --random-input > "$work/log" 2>&1 && fail "an unknown shader was accepted"
grep -q "RT_VULKAN_QUARANTINE names 'gem'" "$work/log" || fail "an unknown shader is not named"

# A driver that miscompiles shuffles.
export VK_LAYER_PATH="$layers" VK_INSTANCE_LAYERS=VK_LAYER_LIBRT_broken_shuffles
export XDG_CACHE_HOME="$work/wrong"
RT_VULKAN_SELF_TEST=0 matmuls && fail "the layer breaks nothing, or RT_VULKAN_SELF_TEST=0 tests"
matmuls || fail "matmuls on the broken driver: $(tail -5 "$work/log")"
tests | grep -q '^wrong.gemm_nn_subgroup.*its self-test gave' || fail "the wrong pipeline was not found"

# A driver that crashes on them: two processes crash per pipeline, and later ones skip it.
export XDG_CACHE_HOME="$work/dead" RT_BROKEN_SHUFFLES=abort
matmuls && fail "the layer does not end the process"
starts=1
while ! matmuls; do
  starts=$((starts + 1))
  [ $starts -lt 17 ] || { fail "matmuls after the driver died: $(tail -5 "$work/log")"; break; }
done
tests | grep -q '^begun' || fail "no test was under way when the driver died"
for start in 1 2 3 4 5 6 7 8 9 10 11 12; do
  "$rtrun" "$model" --backend vulkan --random-input --plan > "$work/log" 2>&1 && break
done
grep -q "quarantine: .*_subgroup.*: the process ended during its self-test" "$work/log" ||
  fail "the plan does not say what died: $(tail -5 "$work/log")"
exit $failed
