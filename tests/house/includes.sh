#!/usr/bin/env bash
# includes.sh ROOT: which directory may include which. Prints every include that breaks a rule, and every directory of code
# without one.
set -euo pipefail
cd "$1"

status=0
declare -A checked
# directory: regular expression of the project headers that its files may include ("" for none of the others)
check() {
  local room=$1 allowed=$2 file line header
  [[ -d $room ]] || { echo "includes.sh: there is no directory $room"; status=1; return 0; }
  checked[$room]=1
  while IFS=: read -r file line header; do
    header=${header#*\"}
    header=${header%%\"*}
    [[ $header =~ $allowed ]] && continue
    echo "$file:$line: $room must not include \"$header\""
    status=1
  done < <(grep -rnE '^#include "(runtime|backends|tools|tests|schema|rt|kernels|shaders)/' "$room" --include='*.h' --include='*.hpp' --include='*.cpp' --include='*.cu' --include='*.cuh' || true)
}

core='^runtime/core/|^runtime/include/rt/(custom|dtype|hooks)\.h'
operators='^runtime/graph/op\.h|^schema/ops_(attributes|generated)|^schema/op_(list|fields)'
geometry="$core|$operators|^runtime/geometry/|^runtime/graph/(in_build|node_view)\.h"
graph="$core|$operators|^runtime/graph/"
backend="$graph|^runtime/geometry/|^runtime/backend/"
communicator='^runtime/include/rt/communicator\.h'
check runtime/core "$core"
check runtime/graph "$graph"
check runtime/geometry "$geometry"
check runtime/ops "$graph|^runtime/geometry/|^runtime/ops/|^schema/page_list"
check runtime/backend "$backend|^runtime/ops/"
check runtime/model "$graph|^runtime/model/|^runtime/ops/|^schema/"
check runtime/session "$backend|$communicator|^runtime/ops/|^runtime/model/|^runtime/session/"
check runtime/session/device "$backend|$communicator|^runtime/model/|^runtime/session/device/"
check runtime/session/memory "$backend|^runtime/session/(device|memory)/|^runtime/session/prepare/program\.h"
check runtime/session/prepare "$backend|^runtime/ops/|^runtime/session/(device|memory|prepare)/"
check runtime/api "$backend|^runtime/ops/|^runtime/model/|^runtime/session/|^runtime/api/|^rt/(dlpack|rt|status)\.h"
check runtime/include '^rt/(compiler|custom|dlpack|memory|rt|status)\.h'
check backends/common "$core|$communicator|^backends/common/"
for name in cpu vulkan; do
  check backends/$name "$backend|$communicator|^backends/common/|^backends/$name/"
done
check backends/cuda "$backend|$communicator|^backends/common/|^backends/cuda/|^kernels/[a-z_]+\.h"
check backends/reference "$backend|^runtime/ops/|^backends/reference/"
check kernels '^kernels/|^runtime/core/(binary_)?function'
check tools/compiler "$backend|^runtime/ops/|^runtime/model/|^runtime/session/memory/planner|^schema/|^tools/compiler/"
check tools/compiler/shape "$backend|^runtime/ops/|^tools/compiler/(edit|shape)/|^tools/compiler/[a-z_]+\.h"
check tools/compiler/edit "$backend|^runtime/ops/|^tools/compiler/(edit|shape)/|^tools/compiler/[a-z_]+\.h"
check tools/onnx "$graph|^runtime/geometry/(custom|function|windows)\.h|^runtime/model/|^runtime/ops/|^tools/(compiler|data|onnx)/|^tools/[a-z_]+\.inc"
check tools/cli '^rt/custom\.h|^runtime/core/(cache_file|cache_folder|environment|hash)\.h|^tools/cli/'
check tools/data "$core|^rt/rt\.hpp|^tools/data/"
check tools/weights "$core|^rt/rt\.h|^tools/(data|weights)/"
check tools/shaders '^tools/shaders/'
check tools/communicator '^rt/communicator\.h|^tools/communicator/'
check tools/rtrun '^rt/|^tools/(cli|data)/|^tools/onnx/array_file\.h|^tools/weights/adapter\.h|^tools/rtrun/'
check tools/rttrain '^rt/|^tools/(cli|data)/|^tools/communicator/mpi_module\.h|^tools/rttrain/'
check python '^rt/|^python/src/|^tools/data/schedule\.h|^tools/weights/adapter\.h|^tools/rttrain/'
check tools/rtbench '^rt/|^runtime/core/(cache_file|cache_folder|environment|status)\.h|^runtime/(model|ops)/|^runtime/session/(device/device_profile|prepare/(cost_model|shapes))\.h|^tools/(cli|compiler|data|rtbench|weights)/|^tools/convert/quantization\.h'
check tools/rtconvert '^rt/|^tools/cli/|^tools/convert/options\.h'
check tools/convert "$graph|^rt/|^runtime/geometry/(elementwise|function)\.h|^runtime/api/structs\.h|^runtime/(model|ops)/|^runtime/session/(memory|prepare|run)/|^tools/(cli|compiler|convert|data|onnx|weights)/|^tools/[a-z_]+\.h"

# Every directory with code is covered by a rule of its own or of a parent.
while read -r directory; do
  parent=$directory
  while [[ $parent == */* && ! -v checked[$parent] ]]; do parent=${parent%/*}; done
  [[ -v checked[$parent] ]] || { echo "$directory: no rule says what it may include"; status=1; }
done < <(find runtime backends tools kernels python -name "*.h" -o -name "*.cpp" -o -name "*.cu" | xargs -n1 dirname | sort -u)
exit $status
