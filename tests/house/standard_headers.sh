#!/usr/bin/env bash
# standard_headers.sh ROOT: a file that calls a function of the standard library includes its header. Which other headers bring it
# along differs between releases of a standard library: what builds with one then fails with the next. Types come with the project's
# own headers that use them.
set -euo pipefail
cd "$1"

status=0
# HEADER FUNCTIONS: functions of std that only this header promises
check() {
  local header=$1 functions=$2 file
  while read -r file; do
    echo "$file: calls $(grep -oE "std::(ranges::)?($functions)\(" "$file" | head -n 1)..) without #include <$header>"
    status=1
  done < <(git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs grep -lE "std::(ranges::)?($functions)\(" | xargs grep -LF "#include <$header>")
}

check algorithm 'adjacent_find|all_of|any_of|binary_search|clamp|copy_if|copy_n|count|count_if|equal_range|find|find_if|find_if_not|for_each|generate|includes|is_sorted|make_heap|max_element|min_element|minmax|minmax_element|next_permutation|none_of|nth_element|partial_sort|partition|pop_heap|push_heap|remove|remove_if|replace|reverse|rotate|search|set_difference|shuffle|sort|stable_partition|stable_sort|transform|unique|upper_bound'
check charconv 'from_chars|to_chars'
check cmath 'abs|ceil|erf|exp|fabs|floor|fmod|frexp|hypot|isfinite|isinf|isnan|ldexp|llround|log|lround|nearbyint|nextafter|pow|round|sqrt|tanh|trunc'
check cstdio 'fclose|fflush|fopen|fprintf|fwrite|perror|printf|snprintf'
check cstdlib 'abort|exit|getenv|strtod|strtol'
check cstring 'memcmp|memcpy|memmove|memset|strchr|strcmp|strerror|strlen|strncmp|strrchr|strstr'
check numeric 'accumulate|exclusive_scan|gcd|inner_product|iota|lcm|partial_sum'
while read -r file; do
  echo "$file: names integer types, includes no header of the project, and not <cstdint>"
  status=1
done < <(git ls-files '*.h' | xargs grep -lE '\bu?int(8|16|32|64|ptr)_t\b' | xargs grep -LE '#include (<(cstdint|stdint\.h|rt/.*|dnnl.*)>|")')
exit $status
