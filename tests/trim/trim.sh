#!/usr/bin/env bash
# trim.sh BUILD WORK COMPILER C_COMPILER VULKAN: what `rtconvert --trim` writes for LeNet-5 (examples/digits.rt) makes a small program that
# computes what librt.so computes, and refuses what it was not built for; with VULKAN 1, on Vulkan as well.
set -euo pipefail
build=$1 work=$2 compiler=$3 c_compiler=$4 vulkan=$5
root=$(cd "$(dirname "$0")/../.." && pwd)
fail() { echo "FAILED: $*"; exit 1; }
rm -rf "$work"
mkdir -p "$work"
cd "$work"
cp "$root/examples/digits.rt" .

# --- the list
"$build/bin/rtconvert" --trim digits.rt -o digits.json | tee list.txt
grep -q 'digits.json, 5 operators and 2 types' list.txt || fail "expected 5 operators and 2 types"
for name in Conv MatMul MaxPool Relu Reshape f32 i64 digits.rt; do
  grep -q "\"$name\"" digits.json || fail "$name is missing: $(tr -d '\n' <digits.json)"
done
# Bodies, chains and activations count, and f16 brings what it is computed in.
"$build/bin/rtconvert" zoo:mobilenet_v2 -o half.rt --precision fp16 --accuracy never >/dev/null
"$build/bin/rtconvert" --trim digits.rt half.rt -o both.json --json >both.txt
for name in Cast Clip Conv MaxPool ReduceMean f16 f32; do
  grep -q "\"$name\"" both.json || fail "both.json lacks $name"
done
refused() { # STATUS TEXT COMMAND..: the command ends with the status and says the text
  local status=$1 text=$2 code=0
  shift 2
  "$@" >refused.txt 2>&1 || code=$?
  [[ $code == "$status" ]] || fail "$*: expected exit $status, found $code: $(cat refused.txt)"
  tr -s ' \n' ' ' <refused.txt | grep -q "$text" || fail "$*: expected '$text', found: $(cat refused.txt)" # CMake wraps lines
}
refused 2 'needs --output' "$build/bin/rtconvert" --trim digits.rt
refused 2 'no_such.rt' "$build/bin/rtconvert" --trim no_such.rt -o none.json
ln -s digits.rt link.rt
refused 2 'is the file of --trim' "$build/bin/rtconvert" --trim digits.rt -o link.rt
cmp -s digits.rt "$root/examples/digits.rt" || fail "the model was overwritten"
mkfifo pipe
cat pipe >piped.json &
timeout 20 "$build/bin/rtconvert" --trim digits.rt -o pipe >/dev/null || fail "a pipe as output"
wait
cmp piped.json digits.json || fail "a pipe got something else"
[[ ! -e none.json ]] || fail "none.json was written"

# --- the build
configure() { # LIST FOLDER OPTION..
  local list=$1 folder=$2
  shift 2
  # shellcheck disable=SC2086
  cmake -G Ninja -S "$root" -B "$folder" "-DRT_TRIM=$work/$list" -DCMAKE_BUILD_TYPE=MinSizeRel "$@" \
    "-DCMAKE_CXX_COMPILER=$compiler" "-DCMAKE_C_COMPILER=$c_compiler" ${RT_CMAKE_ARGUMENTS:-}
}
echo '{"librt_trim": 1, "operators": ["Conv", "Hadamard"], "types": ["f32"]}' >unknown.json
echo 'no JSON' >broken.json
refused 1 "'Hadamard' in 'operators' is unknown" configure unknown.json wrong
refused 1 "expected a JSON object with a list 'operators'" configure broken.json wrong
refused 1 'missing.json does not exist' configure missing.json wrong
configure digits.json program -DRT_CPU_ISAS=avx512 -DRT_VULKAN=OFF >configure.txt 2>&1 || fail "$(cat configure.txt)"
cmake --build program --target minimal >build.txt 2>&1 || fail "$(tail -50 build.txt)"

# --- the program
"$c_compiler" -I"$root/runtime/include" "$root/examples/memory.c" -o whole -L"$build/lib/librt" -lrt -Wl,-rpath,"$build/lib/librt"
# With the full librt the linker takes its librt.so, not glibc's librt.a.
RT_MODULE_PATH=$build/lib/librt ./whole digits.rt cpu >expected.txt
env -u RT_MODULE_PATH program/bin/minimal digits.rt >found.txt
cat found.txt
same() { # TOLERANCE FILE: it says what expected.txt says, but for the tolerance
  awk -v tolerance="$1" 'NR == FNR { for (i = 1; i <= NF; ++i) expected[FNR, i] = $i; lines = FNR; next }
     { for (i = 1; i <= NF; ++i) { d = $i - expected[FNR, i]; if (($i + 0 == $i) ? d * d > tolerance ^ 2 : $i != expected[FNR, i]) bad = 1 } }
     END { exit bad || FNR != lines || lines < 3 }' expected.txt "$2" || fail "expected $(cat expected.txt)"
}
same 3e-5 found.txt
refused 2 'was built without' program/bin/minimal half.rt
"$build/bin/rtconvert" zoo:text_classifier -o text.rt >/dev/null
refused 2 'was built without' program/bin/minimal text.rt

# --- its size
bytes=$(stat -c %s program/bin/minimal)
echo "minimal program for LeNet-5 on the CPU: $bytes bytes"
limit=640000
[[ $(uname -m) != x86_64 ]] || ((bytes <= limit)) || fail "expected at most $limit bytes"

# --- the same with Vulkan alone, whose shaders are compressed, and without exceptions
refused 1 'RT_EXCEPTIONS=OFF needs RT_ONEDNN=OFF' configure digits.json wrong -DRT_EXCEPTIONS=OFF -DRT_ONEDNN=ON
if [[ $vulkan != 1 ]]; then
  echo "Vulkan: skipped, this build has no Vulkan backend"
  exit 0
fi
configure digits.json program_vulkan -DRT_CPU_ISAS= -DRT_STATIC_BACKENDS=vulkan -DRT_VULKAN=ON -DRT_EXCEPTIONS=OFF \
  >configure.txt 2>&1 || fail "$(cat configure.txt)"
cmake --build program_vulkan --target minimal >build.txt 2>&1 || fail "$(tail -50 build.txt)"
bytes=$(stat -c %s program_vulkan/bin/minimal)
echo "minimal program for LeNet-5 on Vulkan: $bytes bytes"
[[ $(uname -m) != x86_64 ]] || ((bytes <= 640000)) || fail "expected at most 640000 bytes"
if [[ -z ${VK_ICD_FILENAMES:-} ]]; then
  echo "Vulkan: not run, there is no software device"
  exit 0
fi
env -u RT_MODULE_PATH program_vulkan/bin/minimal digits.rt >found.txt
same 1e-4 found.txt
refused 2 'was built without' program_vulkan/bin/minimal half.rt
