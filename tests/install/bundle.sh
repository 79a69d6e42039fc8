#!/usr/bin/env bash
# bundle.sh TOOLS_BUNDLE BUILD: a bundle runs in an empty folder without anything from the build, contains every test that needs a GPU,
# and nothing of NVIDIA's or libc.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bundle=$1 build=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
RT_BUILD=$build "$bundle" --quick "$folder/bundle.tar.xz"
tar -C "$folder" -xf "$folder/bundle.tar.xz"
cd "$folder/librt"

foreign=$(find . -name 'libcuda*' -o -name 'libcud*' -o -name 'libcublas*' -o -name 'libnv*' -o -name 'libnccl*' -o -name 'libc.so*' \
  -o -name 'libm.so*' -o -name 'ld-linux*')
[[ -z $foreign ]] || fail "not ours to give away: $foreign"

foreign=$(grep -E " '/" tests.list || true)
[[ -z $foreign ]] || fail "tests that name folders of this machine: $foreign"

# All device tests are included.
if [[ -e lib/librt/librt_cuda.so ]]; then
  wanted=$(ctest --test-dir "$build" -N -L '^cuda$' -LE '^(unit|cuda_emu|python)$' | sed -n 's/^ *Test *#[0-9]*: //p' | sort)
  found=$(./check --list cuda | sort)
  [[ $wanted == "$found" ]] || fail "tests on cuda: $(diff <(echo "$wanted") <(echo "$found"))"
fi

# A separate environment; it does not contain the build folder.
clean=(env -i PATH=/usr/bin:/bin "HOME=$folder")
out=$("${clean[@]}" ./check cpu '^(conformance|model_mnist_cnn|curve_mlp)_cpu$') || fail "$out"
echo "$out"
[[ $out == *"3 passed, 0 failed, 0 skipped"* ]] || fail "expected three tests"
code=0
out=$("${clean[@]}" CUDA_VISIBLE_DEVICES=-1 ./check cuda 2>&1) || code=$?
[[ $code == 3 && $out == *"no device to test"* ]] || fail "without a device: exit code $code: $out"
"${clean[@]}" ./run rtrun --help >/dev/null || fail "run rtrun --help"
