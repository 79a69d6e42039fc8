#!/usr/bin/env bash
# pytorch_steps.sh [VENV] [OPTIONS]: ten training steps of fresh nets from PyTorch's two exporters against PyTorch. Creates an
# environment with pip in VENV (default: a temporary folder), outside the tree. Not part of CI. OPTIONS: see pytorch_steps.py.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=${1:-$(mktemp -d)/venv}
if [[ ! -x $venv/bin/python ]]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet torch onnx onnxscript onnxruntime numpy
fi
exec "$venv/bin/python" "$here/pytorch_steps.py" --bin "$here/../../build/bin" "${@:2}"
