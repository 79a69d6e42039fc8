#!/usr/bin/env bash
# kernels.sh ROOT: every kernel declares its threads per block (and optionally its blocks per multiprocessor), which limits its
# registers: 65536 / (threads * blocks). Above the limit the compiler would spill, which is a build error (cmake/Cuda.cmake).
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
