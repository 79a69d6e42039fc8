#!/usr/bin/env bash
# packages.sh BUILD WORK COMPILER LIBDIR: packs BUILD as Debian packages and as an archive, looks into the packages, and unpacks both
# elsewhere, where programs are built against them (against.sh).
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
build=$1 work=$2 compiler=$3 libdir=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
rm -rf "$work"
mkdir -p "$work"
kinds=TGZ # quicker to compress than what tools/dev/package makes
if command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null; then
  kinds="DEB;TGZ"
else
  echo "dpkg-deb or dpkg-shlibdeps (dpkg-dev) is not installed: the Debian packages were not tested"
fi
(cd "$build" && cpack --config CPackConfig.cmake -G "$kinds" -B "$work" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip) >"$work/cpack.log" 2>&1 ||
  fail "cpack: $(cat "$work/cpack.log")"

# The archive.
mkdir "$work/elsewhere"
tar -C "$work/elsewhere" -xf "$work"/librt-*.tar.gz --strip-components=1
"$here/against.sh" "$work/elsewhere" "$libdir" "$work/tar" "$compiler" "$root"
"$root/tests/house/runpath.sh" "$work/elsewhere" || [[ $? == 77 ]] || fail "an RPATH in the archive"
[[ $kinds == DEB* ]] || exit 0

mkdir "$work/debs"
declare -A owner depends
for deb in "$work"/*.deb; do
  name=$(dpkg-deb -f "$deb" Package)
  depends[$name]=", $(dpkg-deb -f "$deb" Depends),"
  version=$(dpkg-deb -f "$deb" Version)
  [[ $deb == "$work/${name}_${version}_$(dpkg --print-architecture).deb" ]] || fail "the name of $deb"
  for field in Maintainer Section Description; do
    [[ -n $(dpkg-deb -f "$deb" "$field") ]] || fail "$name has no field $field"
  done
  # CPack has the linker's cache refreshed for every shared library, and Python's files are byte-compiled; nothing else runs.
  mkdir "$work/control"
  dpkg-deb -e "$deb" "$work/control"
  scripts=$(cd "$work/control" && cat postinst postrm preinst prerm 2>/dev/null | grep -vE '^(#!/bin/sh|set -e|fi|\s*ldconfig|if command -v (py3compile|py3clean) >/dev/null; then (py3compile|py3clean) -p python3-librt; fi|if \[ "\$1" = "(configure|remove)" \]; then|)$' || true)
  [[ -z $scripts ]] || fail "$name runs when it is installed or removed: $scripts"
  rm -r "$work/control"
  mkdir "$work/$name"
  dpkg-deb -x "$deb" "$work/$name"
  dpkg-deb -x "$deb" "$work/debs"
  [[ -s $work/$name/usr/share/doc/$name/copyright ]] || fail "$name has no copyright file"
  while read -r file; do
    [[ -z ${owner[$file]:-} ]] || fail "$file is in $name and in ${owner[$file]}"
    owner[$file]=$name
    # What glibc has: librt.so.1 and librt.a in a folder that the linker searches.
    case $file in
    ./usr/$libdir/librt/* | ./usr/$libdir/cmake/* | ./usr/$libdir/pkgconfig/* | ./usr/bin/rt* | ./usr/include/rt/* | ./usr/share/* | ./usr/lib/python3/dist-packages/librt/*) ;;
    *) fail "$name has $file outside of librt's folders" ;;
    esac
  done < <(cd "$work/$name" && find . ! -type d)
done

# has PACKAGE FILE: who has it.
has() { [[ ${owner[./usr/$2]:-nobody} == "$1" ]] || fail "expected $2 in $1, found it in ${owner[./usr/$2]:-none}"; }
has librt0 "$libdir/librt/librt.so.0"
has librt0 "$libdir/librt/librt_cpu.so"
has librt0 "$libdir/librt/librt_reference.so"
has librt-dev "$libdir/librt/librt.so"
[[ ! -e $build/archive/librt.a ]] || has librt-dev "$libdir/librt/librt.a"
has librt-dev include/rt/rt.h
has librt-dev "$libdir/pkgconfig/librt.pc"
has librt-dev "$libdir/cmake/librt/librtConfig.cmake"
for backend in vulkan cuda; do
  [[ ! -e $build/lib/librt/librt_$backend.so ]] || has librt-$backend "$libdir/librt/librt_$backend.so"
done
# needs PACKAGE PATTERN: one of its dependencies.
needs() { [[ ${depends[$1]} == *", "$2[,\ ]* ]] || fail "$1 depends on${depends[$1]} expected $2"; }
needs librt0 libc6
needs librt0 'libdnnl*'
needs librt-dev "librt0 (= $version)"
if [[ -e $build/bin/rtconvert ]]; then
  for program in rtconvert rtrun rtbench rttrain; do has librt-tools bin/$program; done
  has librt-tools share/bash-completion/completions/rtrun
  has librt-tools share/fish/vendor_completions.d/rtrun.fish
  [[ -n $(find "$work/librt-tools/usr/share/zsh" -name _rtrun) ]] || fail "no zsh completion in librt-tools"
  has librt-compiler0 "$libdir/librt/librt_compiler.so.0"
  has librt-dev "$libdir/librt/librt_compiler.so"
  needs librt-tools "librt-compiler0 (= $version)"
  needs librt-dev "librt-compiler0 (= $version)"
  needs librt-compiler0 'libprotobuf-lite*'
fi
if [[ -e $build/python/librt/_native.pyi ]]; then
  has python3-librt lib/python3/dist-packages/librt/__init__.py
  needs python3-librt "librt-tools (= $version)"
  needs python3-librt python3-numpy
  # The interpreter that it was built for, outside of every environment with librt.
  python=$build/python_environment/bin/python
  [[ -x $python ]] || python=python3
  (cd "$work" && PYTHONPATH=$work/debs/usr/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 PATH=$work/debs/usr/bin:$PATH \
    "$python" "$here/from_packages.py" "$work/debs/usr" "$root/examples/digits.rt") || fail "python3-librt"
fi
[[ ${depends[librt0]} != *protobuf* ]] || fail "librt0 depends on protobuf"
[[ ! -e $work/librt-vulkan ]] || needs librt-vulkan libvulkan1
# Nothing of the machine that built it.
! grep -rlF "$build/" "$work/debs" || fail "files that name the build folder"
"$root/tests/house/runpath.sh" "$work/debs" || [[ $? == 77 ]] || fail "an RPATH in the packages"
"$here/against.sh" "$work/debs/usr" "$libdir" "$work/deb" "$compiler" "$root"
