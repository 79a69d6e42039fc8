#!/usr/bin/env bash
# references.sh ROOT: source files that comments and documents name exist. Prints every line with a name that no file has.
set -euo pipefail
cd "$1"
# Written by the build, or of another project.
foreign='op_fields.inc|op_list.inc|page_list.inc|build_parts.inc|ops_attributes.h|ops_generated.h|model_generated.h|ops_union.cpp|all.sh|shader_list.inc|cuda_families.inc|vulkan_families.inc|function_numbers.glsl|cuda_runtime_api.h|jpeglib.h|llama.cpp'
found=$({
  git ls-files '*.cpp' '*.h' '*.hpp' '*.c' '*.cu' '*.cuh' '*.comp' '*.glsl' '*.fbs' ':!schema/frozen' |
    xargs grep -noE '(//|/\*|^ ?\*).*'
  git ls-files '*.sh' '*.cmake' '*CMakeLists.txt' 'tools/build' 'tools/setup' 'tools/test' 'tools/quickstart' 'tools/dev/*' '.ci/*' |
    xargs grep -noE '#.*'
  git ls-files '*.md' | xargs grep -n ''
} | awk -v foreign="(^|/)($foreign)\$" '
  BEGIN {
    while (("git ls-files" | getline path) > 0) {
      known[path] = 1
      while (sub(/^[^\/]*\//, "", path)) known[path] = 1
    }
  }
  {
    text = $0
    sub(/^[^:]*:[0-9]+:/, "", text)
    while (match(text, /[A-Za-z0-9_.*{},$<>\/-]+\.(h|hpp|cpp|cu|cuh|comp|glsl|fbs|inc|cmake|sh)([^A-Za-z0-9_.]|\.[^a-z]|\.?$)/)) {
      name = substr(text, RSTART, RLENGTH)
      text = substr(text, RSTART + RLENGTH)
      sub(/[^A-Za-z0-9_]+$/, "", name)
      # Patterns and placeholders (cpu_*_test.cpp, FAMILY.cu, OPS/STEM.cpp) name no single file.
      if (name ~ /[*{}$<>A-Z]/) continue
      gsub(/\.\.?\//, "", name)
      if (!(name in known) && name !~ foreign) print $0 "\n    there is no " name
    }
  }')
[[ -z $found ]] || { echo "$found"; exit 1; }
