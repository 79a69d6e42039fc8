#!/usr/bin/env bash
# traits.sh ROOT: nothing depends on the order of operators in the schema, which is append-only: passes query the traits on
# operators' pages. Prints every comparison of operator kinds by order.
set -euo pipefail
cd "$1"
found=$(grep -rnE '(<|>|<=|>=) *(OpKind|op::Op)::|(OpKind|op::Op)::[A-Za-z]+ *(<=|>=|< |> )' runtime backends tools --include='*.cpp' --include='*.h' |
  grep -vE 'op::Op::(NONE|MAX)' || true) # the range of valid kinds
[[ -z $found ]] || { echo "$found"; exit 1; }
