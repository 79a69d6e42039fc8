#!/usr/bin/env bash
# includes.sh ROOT: which module may include which. Prints every include that breaks a rule.
set -euo pipefail
cd "$1"

status=0
# module: regular expression of the project headers that its files may include ("" for none of the others)
check() {
  local room=$1 allowed=$2 file line header
  [[ -d $room ]] || return 0
  while IFS=: read -r file line header; do
    header=${header#*\"}
    header=${header%%\"*}
    [[ $header =~ $allowed ]] && continue
    echo "$file:$line: $room must not include \"$header\""
    status=1
  done < <(grep -rnE '^#include "(runtime|backends|tools|tests|schema|rt|kernels|shaders)/' "$room" --include='*.h' --include='*.hpp' --include='*.cpp' --include='*.cu' --include='*.cuh' || true)
}

core='^runtime/core/'
graph="$core|^runtime/graph/|^schema/ops_(attributes|generated)|^schema/op_(list|fields)"
backend="$graph|^runtime/backend/"
check runtime/core "$core"
check runtime/graph "$graph"
check runtime/ops "$graph|^runtime/ops/"
check runtime/backend "$backend|^runtime/ops/"
check runtime/model "$graph|^runtime/model/|^runtime/ops/|^schema/"
check runtime/session "$backend|^runtime/include/rt/communicator\.h|^runtime/ops/|^runtime/model/|^runtime/session/"
check runtime/api "$backend|^runtime/ops/|^runtime/model/|^runtime/session/|^runtime/api/|^rt/rt\.h"
check runtime/include '^rt/rt\.h'
check backends/common "$core|^runtime/include/rt/communicator\.h|^backends/common/"
for name in cpu vulkan cuda; do
  check backends/$name "$backend|^runtime/include/rt/communicator\.h|^backends/common/|^backends/$name/|^kernels/|^shaders/"
done
check backends/reference "$backend|^runtime/ops/|^backends/reference/"
check tools/compiler "$backend|^runtime/ops/|^runtime/model/|^runtime/session/planner|^schema/|^tools/compiler/"
check tools/cli '^tools/cli/'
check tools/common "$core|^tools/common/|^tools/rtconvert/onnx/onnx\.pb"
check tools/communicator '^rt/communicator\.h|^tools/communicator/'
check tools/rtrun '^rt/|^tools/cli/|^tools/common/|^tools/rtrun/'
check tools/rttrain '^rt/|^tools/cli/|^tools/common/|^tools/communicator/mpi_module\.h|^tools/rttrain/'
exit $status
