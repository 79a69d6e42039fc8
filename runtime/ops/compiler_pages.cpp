// The table of CompilerPages. librt does not link this file.
#include "runtime/ops/page.h"

namespace librt::ops {

#define RT_OP(Name) extern const CompilerPage compiler_page_##Name;
#include "schema/op_list.inc"
#undef RT_OP

const CompilerPage* compiler_page_of(OpKind kind) noexcept {
  static constexpr const CompilerPage* kPages[kOpCount] = {
      nullptr,
#define RT_OP(Name) &compiler_page_##Name,
#include "schema/op_list.inc"
#undef RT_OP
  };
  const auto index = static_cast<size_t>(kind);
  return index < kOpCount ? kPages[index] : nullptr;
}

EvalFunction reference_value(OpKind kind) noexcept {
  if (const EvalFunction eval = host_value(kind); eval != nullptr) return eval;
  const CompilerPage* page = compiler_page_of(kind);
  return page != nullptr ? page->eval : nullptr;
}

}  // namespace librt::ops
