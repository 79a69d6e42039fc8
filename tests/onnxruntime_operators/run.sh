#!/usr/bin/env bash
# run.sh BIN SHARED [OPTIONS]: makes an environment with ONNX Runtime and runs compare.py and models.py in it.
set -euo pipefail
bin=$(realpath "$1") shared=$(realpath "$2")
shift 2
here=$(dirname "$(realpath "$0")")
environment=$(dirname "$bin")/onnxruntime_environment
if [[ ! -x $environment/bin/python ]]; then
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet "onnxruntime>=1.17" onnx onnx_ir numpy sympy coloredlogs
fi
"$environment/bin/python" "$here/compare.py" "$bin" "$@"
"$environment/bin/python" "$here/models.py" "$bin" "$shared" "$@"
