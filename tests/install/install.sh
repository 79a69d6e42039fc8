#!/bin/sh
# install.sh BUILD WORK COMPILER LIBDIR: installs BUILD, and builds and runs against it what README.md and examples/ show.
set -eu
build=$1 work=$2 compiler=$3 libdir=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
fail() { echo "FAILED: $*"; exit 1; }
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix" # an installed tree can be moved
"$here/against.sh" "$work/prefix" "$libdir" "$work/against" "$compiler" "$root"
# build_project SOURCE OPTION...: builds SOURCE with the installed librt in SOURCE's name under $work/build.
build_project() {
  name=$(basename "$1")
  cmake -S "$1" -B "$work/build/$name" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >"$work/$name.log" 2>&1 &&
    cmake --build "$work/build/$name" >>"$work/$name.log" 2>&1 || { cat "$work/$name.log"; exit 1; }
}

# readme_block LANGUAGE TEXT: the block of README.md that contains TEXT.
readme_block() {
  awk -v begin="\`\`\`$1" -v text="$2" '
    /^```/ { if (inside && index(block, text)) printf "%s", block
             inside = !inside && $0 == begin; block = ""; next }
    inside { block = block $0 "\n" }' "$root/README.md"
}

# The CMake block of README.md, with its target `app` of main.cpp.
mkdir "$work/consumer"
cp "$here/consumer/main.cpp" "$work/consumer"
{
  echo 'cmake_minimum_required(VERSION 3.25)'
  echo 'project(consumer LANGUAGES CXX)'
  readme_block cmake 'find_package(librt'
} >"$work/consumer/CMakeLists.txt"
grep -q 'find_package(librt' "$work/consumer/CMakeLists.txt" || fail "README.md has no cmake block with find_package(librt"
build_project "$work/consumer"
app=$work/build/consumer/app
# The C++ block.
readme_block cpp 'rt::Session::create' >"$work/shown.cpp"
grep -q '#include' "$work/shown.cpp" || fail "README.md has no cpp block with rt::Session::create"
"$compiler" -std=c++20 -Wall -Werror -c "-I$work/prefix/include" "$work/shown.cpp" -o "$work/shown.o"
"$app"
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH="$work/prefix/$libdir/pkgconfig"
  # shellcheck disable=SC2046
  "$compiler" -std=c++20 "$here/consumer/main.cpp" $(pkg-config --cflags --libs librt) -o "$work/by_pkg_config"
  "$work/by_pkg_config"
  if pkg-config --exists librt-compiler; then
    # shellcheck disable=SC2046
    cc -std=c11 "$root/examples/check.c" $(pkg-config --cflags --libs librt-compiler) -o "$work/check_by_pkg_config"
  fi
else
  echo "pkg-config is not installed: its half of this test did not run"
fi
# The programs find the library through RPATH only, under its soname.
unset LD_LIBRARY_PATH
[ -e "$work/prefix/$libdir/librt/librt.so.0" ] || { echo "librt.so.0 is not installed"; exit 1; }
# Programs say which version they are, and their help fits the terminal; only examples are longer.
for program in rtconvert rtbench rtrun rttrain; do
  [ -x "$work/prefix/bin/$program" ] || continue
  [ "$("$work/prefix/bin/$program" --version)" = "$program $("$app" --version)" ] ||
    { echo "$program --version prints: $("$work/prefix/bin/$program" --version)"; exit 1; }
  COLUMNS=80 "$work/prefix/bin/$program" --help >"$work/help.txt"
  grep -q "^Usage: $program" "$work/help.txt" && grep -q '^Examples:' "$work/help.txt" ||
    { echo "$program --help lacks usage or examples:"; cat "$work/help.txt"; exit 1; }
  awk 'length > 80 && !/^  (rt|mpirun|zoo:)/ { print FILENAME ": " $0; wide = 1 } END { exit wide }' "$work/help.txt"
done
for topic in training precision language all; do
  [ ! -x "$work/prefix/bin/rtconvert" ] || "$work/prefix/bin/rtconvert" --help-$topic | grep -q '^  --' ||
    { echo "rtconvert --help-$topic names no options"; exit 1; }
done
for program in rtrun rttrain; do
  [ -x "$work/prefix/bin/$program" ] || continue
  "$work/prefix/bin/$program" --help >/dev/null
  ldd "$work/prefix/bin/$program" | grep -q "librt.so.0 => $work/prefix/" ||
    { echo "$program does not load the installed librt.so.0:"; ldd "$work/prefix/bin/$program"; exit 1; }
done

# Programs that only run models do not load what compiling needs.
for program in rttrain; do
  [ ! -x "$work/prefix/bin/$program" ] || ! ldd "$work/prefix/bin/$program" | grep -E 'librt_compiler|libprotobuf' ||
    fail "$program loads libraries that only compiling needs"
done

# Nothing is loaded from the current directory.
"$root/tests/house/runpath.sh" "$work/prefix" || [ $? = 77 ] || fail "an RPATH of the installed files"

# The programs of examples/.
build_project "$root/examples"
examples=$work/build/examples
# expect CODE TEXT PROGRAM ARGUMENT...: the exit code, and a text that the output contains.
expect() {
  code=$1 text=$2 program=$3 found=0
  shift 3
  "$examples/$program" "$@" >"$work/output.txt" 2>&1 || found=$?
  [ "$found" = "$code" ] && grep -qF -- "$text" "$work/output.txt" ||
    fail "$program $*: expected exit code $code and '$text', found exit code $found and: $(cat "$work/output.txt")"
}
if [ ! -x "$examples/serve" ]; then
  echo "cpp-httplib (libcpp-httplib-dev) is not installed: serve did not run"
elif [ -x "$work/prefix/bin/rtrun" ]; then
  python3 "$here/serve.py" "$examples/serve" "$work/prefix/bin/rtrun" "$root/examples/digits.rt" "$work" || exit 1
fi
digits=$root/examples/digits.rt digit=$root/examples/digit.pgm
expect 0 'class 7: ' classify "$digits" "$digit"
[ "$(head -c 7 "$work/output.txt")" = 'class 7' ] || fail "classify: $(cat "$work/output.txt")"
expect 0 'ran on cpu 0, ' classify "$digits" "$digit" cpu
expect 2 'missing.rt' classify missing.rt "$digit"
expect 2 'not a binary 8-bit PGM' classify "$digits" "$digits"
expect 2 "unknown backend 'nothing'" classify "$digits" "$digit" nothing
expect 0 '8 of 8 asynchronous runs equal the synchronous ones' async "$digits"
expect 0 '10 scores in memory of cpu equal those of the host' device "$digits" cpu
expect 0 'output fc3_1: f32 [-1 batch, 10]' memory "$digits"
expect 2 'invalid model: ' memory "$digit"
expect 2 'no entry train_step' finetune "$digits" "$work/none.ckpt"
if [ -x "$work/prefix/bin/rtconvert" ]; then
  "$work/prefix/bin/rtconvert" zoo:mlp -o "$work/mlp.rt" --train --loss cross_entropy --optimizer adam >"$work/mlp.log" 2>&1 ||
    fail "rtconvert: $(cat "$work/mlp.log")"
  expect 0 'the resumed losses are the same' finetune "$work/mlp.rt" "$work/mlp.ckpt"
  "$work/prefix/bin/rtconvert" zoo:lenet5 -o "$work/lenet5.onnx" >"$work/lenet5.log" 2>&1 || fail "rtconvert: $(cat "$work/lenet5.log")"
  ldd "$work/prefix/bin/rtconvert" | grep -q "librt_compiler.so.0 => $work/prefix/" || fail "rtconvert does not load the installed librt_compiler.so.0"
  ! "$work/prefix/bin/rtconvert" "$root/examples/custom.onnx" -o "$work/custom.rt" >"$work/custom.log" 2>&1 || fail "custom.onnx without --custom-domain"
  grep -q -- '--custom-domain' "$work/custom.log" || fail "an unknown operator: $(cat "$work/custom.log")"
  "$work/prefix/bin/rtconvert" "$root/examples/custom.onnx" -o "$work/custom.rt" --custom-domain com.example >"$work/custom.log" 2>&1 ||
    fail "rtconvert: $(cat "$work/custom.log")"
  expect 0 'on cpu: as expected, with a kernel of the application' custom "$work/custom.rt" cpu
  ! "$work/prefix/bin/rtrun" "$work/custom.rt" --random-input --backend cpu >"$work/custom.log" 2>&1 || fail "rtrun has no kernel of Softcap"
  grep -q "operator 'Softcap' of the domain 'com.example'" "$work/custom.log" || fail "rtrun: $(cat "$work/custom.log")"
  for program in rtrun rtbench; do
    case $program in rtrun) more=--random-input ;; *) more='--batch 1 --time 0.01' ;; esac
    # shellcheck disable=SC2086  # options
    "$work/prefix/bin/$program" "$work/custom.rt" --backend cpu --operators "$examples/operators.so" $more >"$work/custom.log" 2>&1 ||
      fail "$program --operators: $(cat "$work/custom.log")"
  done
  refused() { # refused TEXT LIBRARY: by rtrun, with exit code 2
    found=0
    "$work/prefix/bin/rtrun" "$work/custom.rt" --random-input --backend cpu --operators "$2" >"$work/custom.log" 2>&1 || found=$?
    [ "$found" = 2 ] && grep -q -- "--operators: .*$1" "$work/custom.log" || fail "rtrun --operators $2: $found, $(cat "$work/custom.log")"
  }
  refused 'there is no such library' "$work/missing.so"
  refused 'cannot be loaded' "$digit"
  refused 'it has no function rt_custom_operators' "$(find "$work/prefix" -name 'librt_cpu.so' | head -n 1)"
  expect 0 '5 of them in 8 bits' convert "$work/lenet5.onnx" cpu
  grep -q '^ran on cpu: 10 values' "$work/output.txt" || fail "convert: $(cat "$work/output.txt")"
  expect 2 'cannot be opened' convert missing.onnx
  expect 2 'not an ONNX model' convert "$digit"
  expect 0 'input input: f32' check "$work/lenet5.onnx"
  sed 's/\x22\x04Relu/\x22\x04Relx/g' "$work/lenet5.onnx" >"$work/unknown.onnx" # operators that nobody knows
  expect 1 'Relx' check "$work/unknown.onnx"
  [ "$(grep -c '^Relx ' "$work/output.txt")" = 4 ] || fail "check: expected all four unknown operators, found $(cat "$work/output.txt")"
  if [ -x "$work/check_by_pkg_config" ]; then "$work/check_by_pkg_config" "$work/lenet5.onnx" >"$work/output.txt" || fail "by pkg-config: $(cat "$work/output.txt")"; fi
else
  echo "rtconvert is not installed: finetune did not run"
fi
