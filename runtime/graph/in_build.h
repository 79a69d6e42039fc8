// Which operators this build holds: all of them, unless it was made for some models
// (runtime/core/in_build.h).
//
// Knows: the list that the build generated. Must not know: why something is in it.
#pragma once

#include <string_view>

#include "runtime/core/in_build.h"
#include "runtime/core/status.h"
#include "runtime/graph/op.h"

namespace librt {

constexpr bool in_build(OpKind kind) noexcept {
#define RT_OP(Name) \
  if (kind == OpKind::Name) return build::operators::Name;
#include "schema/op_list.inc"
#undef RT_OP
  return false;
}

/// What a model finds that needs more than the build holds.
inline Status not_in_build(std::string_view what) {
  return unsupported("this librt was built without ", what, ", for other models (RT_TRIM)");
}

}  // namespace librt
