#!/bin/sh
# install.sh BUILD WORK COMPILER LIBDIR
set -eu
build=$1 work=$2 compiler=$3 libdir=$4
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix" # an installed tree can be moved
cmake -S "$here/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_BUILD_TYPE=Release >"$work/configure.log"
cmake --build "$work/consumer" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$work/consumer/consumer"
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH="$work/prefix/$libdir/pkgconfig"
  # shellcheck disable=SC2046
  "$compiler" -std=c++20 "$here/consumer/main.cpp" $(pkg-config --cflags --libs librt) -o "$work/by_pkg_config"
  "$work/by_pkg_config"
else
  echo "pkg-config is not installed: its half of this test did not run"
fi
# The programs find the library through RPATH only, under its soname.
unset LD_LIBRARY_PATH
[ -e "$work/prefix/$libdir/librt/librt.so.0" ] || { echo "librt.so.0 is not installed"; exit 1; }
# Programs say which version they are, and their help fits the terminal; only examples are longer.
for program in rtconvert rtbench rtrun rttrain; do
  [ -x "$work/prefix/bin/$program" ] || continue
  [ "$("$work/prefix/bin/$program" --version)" = "$program $("$work/consumer/consumer" --version)" ] ||
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
