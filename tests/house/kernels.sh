#!/usr/bin/env bash
# kernels.sh ROOT: every kernel says how many threads a block has (and may say how many blocks a multiprocessor), which is its limit of
# registers: 65536 by threads and blocks. Above it the compiler would spill, and that is an error of the build (cmake/Cuda.cmake).
set -euo pipefail
cd "$1"
status=0
while read -r place; do
  echo "$place: a kernel without __launch_bounds__(THREADS[, BLOCKS])"
  status=1
done < <(awk 'FNR == 1 { open = 0 }
  /__global__/ { open = 1; at = FILENAME ":" FNR }
  open && /__launch_bounds__\(/ { open = 0 }
  open && /[{;]/ { print at; open = 0 }' kernels/*.cu kernels/*.cuh)
exit $status
