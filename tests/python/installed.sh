#!/usr/bin/env bash
# installed.sh BUILD PYTHON MODEL FOLDER: installs what a wheel holds to FOLDER, moves it, and uses it from there without
# anything of the build: import, a run, a conversion, the programs. Nothing of it may refer to the build's folders.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
build=$1 python=$2 model=$3 folder=$4
rm -rf "$folder"
mkdir -p "$folder"
cmake --install "$build" --component python --prefix "$folder/first" >"$folder/install.log"
mv "$folder/first" "$folder/moved"
package=$folder/moved/librt
for file in __init__.py py.typed _native.pyi bin/rtconvert bin/rtrun bin/rtbench bin/rttrain lib/librt/librt.so.0 lib/librt/librt_cpu.so; do
  [[ -e $package/$file ]] || fail "$file is not installed"
done
[[ -z $(find "$folder/moved" -type l) ]] || fail "a wheel has no links: $(find "$folder/moved" -type l)"
[[ $(ls "$folder/moved") == librt ]] || fail "more than the package: $(ls "$folder/moved")"
extension=$(find "$package" -name '_native*.so')
for file in "$extension" "$package"/bin/* "$package"/lib/librt/*; do
  if readelf -d "$file" 2>/dev/null | grep -E 'R(UN)?PATH' | grep -vE '\[\$ORIGIN[^:]*\]'; then
    fail "$file looks outside of the package"
  fi
done
# An extension exports its entry point alone; with nanobind's stable interface no version of Python but the first.
exported=$(nm -D --defined-only "$extension" | awk '{print $3}' | grep -v '^PyInit__native$' || true)
[[ -z $exported ]] || fail "$extension exports $exported"

# No variable of ours, no compiler, no folder of the build.
cat >"$folder/use.py" <<'END'
import os, subprocess, sys
import librt
assert os.path.dirname(librt.__file__) == sys.argv[1], librt.__file__
import numpy
x = numpy.zeros((2, 28, 28, 1), numpy.float32)
session = librt.Session(sys.argv[2])
assert session(x)["fc3_1"].shape == (2, 10)
assert librt.Session(librt.convert("zoo:mlp"), backend="cpu").inputs
out = subprocess.run([sys.executable, "-m", "librt.bench", "--devices"], capture_output=True, text=True)
assert out.returncode == 0 and "cpu" in out.stdout, out
maps = open("/proc/self/maps").read()
assert sys.argv[3] not in maps, [line for line in maps.splitlines() if sys.argv[3] in line]
print(librt.__version__, session.device)
END
ours=$(realpath "$build")
site=$("$python" -c 'import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))')
ln -s "$site/numpy" "$folder/numpy"
for libraries in "$site"/numpy.libs; do
  [[ ! -e $libraries ]] || ln -s "$libraries" "$folder/numpy.libs"
done
base=$("$python" -c 'import sys; print(sys._base_executable)')
cd "$folder"
env -i PATH=/nowhere HOME="$folder" XDG_CACHE_HOME="$folder/cache" PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$folder/moved:$folder" \
  "$base" -S use.py "$package" "$model" "$ours/lib"

# Without /proc, as in a bare chroot, the linker does not know a program's $ORIGIN; the package's starters do.
cat >"$folder/bare.py" <<'END'
import os, subprocess, sys
import librt
assert not os.path.exists("/proc/self"), "there is /proc"
assert librt.Session(librt.convert("zoo:tabular"), backend="cpu").inputs
for program, arguments in (("rtbench", ["--devices"]), ("rtrun", [sys.argv[1], "--backend", "cpu", "--random-input", "--quiet"])):
    code = f"import sys; sys.argv[1:] = {arguments!r}; from librt import _programs; _programs.{program}()"
    out = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    assert out.returncode == 0, out
    assert program != "rtbench" or "cpu        0" in out.stdout, out
print("without /proc")
END
if unshare --mount sh -c 'mount -t tmpfs none /proc' 2>/dev/null; then
  env -i PATH=/usr/bin:/bin HOME="$folder" XDG_CACHE_HOME="$folder/cache" PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH="$folder/moved:$folder" unshare --mount sh -c 'mount -t tmpfs none /proc; exec "$@"' - "$base" -S bare.py "$model"
else
  echo "unshare --mount is not allowed here: the part without /proc did not run"
fi
