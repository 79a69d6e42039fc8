// The operators in C++: kinds and attribute structs, generated from schema/ops.fbs.
//
// Knows: names and attributes. Must not know: what an operator means (runtime/ops).
//
// op::ConvAttributes is a plain struct with the fields of the table Conv, op::OpUnion holds one of the
// structs. The tables themselves are in schema/ops_generated.h, for the readers and writers of files.
#pragma once

#include <string_view>

#include "schema/ops_attributes.h"

namespace librt {

namespace op = ::rt::op;  ///< generated, in the namespace of schema/ops.fbs

using OpKind = op::Op;
using OpAttributes = op::OpUnion;

/// "Conv", "Softmax", ...; "NONE" for an operator this build does not know.
inline std::string_view name_of(OpKind kind) noexcept {
  return op::EnumNameOp(kind);
}

inline constexpr int kOpCount = static_cast<int>(op::Op::MAX) + 1;

/// Wraps attributes: make_op(op::ConvAttributes{...}).
template <class Attributes>
OpAttributes make_op(Attributes attributes) {
  OpAttributes any;
  any.Set(std::move(attributes));
  return any;
}

}  // namespace librt
