#!/bin/sh
# against.sh PREFIX LIBDIR WORK COMPILER ROOT: C and C++ programs find the librt in PREFIX by CMake and by pkg-config, link and run; the
# programs in its bin run; a component that is not there is an error that says so; -lrt stays glibc's. ROOT is the source tree.
set -eu
prefix=$1 libdir=$2 work=$3 compiler=$4 root=$5
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "FAILED: $prefix: $*"; exit 1; }
unset LD_LIBRARY_PATH RT_MODULE_PATH
rm -rf "$work"
mkdir -p "$work"
digits=$root/examples/digits.rt digit=$root/examples/digit.pgm
configure() {
  cmake -S "$here/kinds" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DEXAMPLES="$root/examples" \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_COMPILE_WARNING_AS_ERROR=ON "$@" >"$work/cmake.log" 2>&1
}
! configure -DCOMPONENT=nothing || fail "find_package(librt COMPONENTS nothing) succeeded"
grep -q "expected the component 'nothing', this *$" "$work/cmake.log" || tr -s ' \n' ' ' <"$work/cmake.log" |
  grep -q "expected the component 'nothing', this installation has runtime" || fail "a missing component: $(cat "$work/cmake.log")"
configure -DCOMPONENT= && cmake --build "$work/build" >>"$work/cmake.log" 2>&1 || fail "$(cat "$work/cmake.log")"

# runs PROGRAM: classifies the digit on the CPU with the librt of this prefix.
runs() {
  "$1" "$digits" "$digit" cpu >"$work/output.txt" 2>&1 || fail "$1: $(cat "$work/output.txt")"
  grep -q '^class 7: ' "$work/output.txt" || fail "$1: expected class 7, found $(cat "$work/output.txt")"
}
# loads PROGRAM: the librt.so.0 of this prefix, and nothing else of that name but glibc's librt.so.1.
loads() {
  found=$(ldd "$1" | sed -n 's/.*librt\.so\.0 => \(.*\) (0x.*/\1/p')
  [ -n "$found" ] && [ "$(realpath "$found")" = "$(realpath "$prefix/$libdir/librt/librt.so.0")" ] || fail "$1 loads $(ldd "$1")"
}
shows() {
  "$@" >"$work/output.txt" 2>&1 || fail "$*: $(cat "$work/output.txt")"
  grep -q '^output fc3_1: f32' "$work/output.txt" || fail "$*: $(cat "$work/output.txt")"
}
runs "$work/build/classify"
loads "$work/build/classify"
shows "$work/build/memory" "$digits"
"$work/build/clock" >/dev/null || fail "-lrt"
! ldd "$work/build/clock" | grep -q 'librt.so.0' || fail "-lrt found this librt: $(ldd "$work/build/clock")"
# alone PROGRAM: librt is inside it.
alone() { ! ldd "$1" | grep -q 'librt.so.0' || fail "$1 loads $(ldd "$1")"; }
if [ -e "$prefix/$libdir/librt/librt.a" ]; then
  # In a folder of its own, where it finds no modules.
  runs "$work/build/classify_static"
  alone "$work/build/classify_static"
  shows "$work/build/memory_static" "$digits"
  # A program with an OpenMP runtime keeps that one.
  ! nm "$work/build/classify_static" | grep -E ' [TW] (GOMP_|omp_)' || fail "librt.a defines OpenMP's functions"
fi
echo "$prefix: find_package"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig"
  # shellcheck disable=SC2046
  "$compiler" -std=c++20 "$root/examples/classify.cpp" $(pkg-config --cflags --libs librt) -o "$work/classify"
  # shellcheck disable=SC2046
  cc -std=c11 "$root/examples/memory.c" $(pkg-config --cflags --libs librt) -o "$work/memory"
  runs "$work/classify"
  loads "$work/classify"
  shows "$work/memory" "$digits"
  if pkg-config --exists librt-static; then
    # shellcheck disable=SC2046
    cc -std=c11 "$root/examples/memory.c" $(pkg-config --cflags --libs --static librt-static) -o "$work/memory_static"
    shows "$work/memory_static" "$digits"
    alone "$work/memory_static"
  fi
  echo "$prefix: pkg-config"
else
  echo "pkg-config is not installed: its part of this test did not run"
fi

if [ -x "$prefix/bin/rtconvert" ]; then
  (
    cd "$work"
    "$prefix/bin/rtconvert" zoo:lenet5 -o lenet5.onnx && "$prefix/bin/rtconvert" lenet5.onnx -o lenet5.rt &&
      "$prefix/bin/rtrun" lenet5.rt --random-input --backend cpu && "$prefix/bin/rtbench" --devices && "$prefix/bin/rttrain" --version
  ) >"$work/programs.log" 2>&1 || fail "a program: $(cat "$work/programs.log")"
  # Libraries beside the modules are none.
  ! grep 'not a backend module' "$work/programs.log" || fail "rtbench --devices takes a library for a backend"
  "$work/build/check" "$work/lenet5.onnx" >"$work/output.txt" || fail "check: $(cat "$work/output.txt")"
  echo "$prefix: programs"
fi
