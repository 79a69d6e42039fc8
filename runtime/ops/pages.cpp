// The table of pages, derived from the schema's union; a build for some models has those of their operators
// (cmake/Trim.cmake). Knows no operator by name.
#include <array>

#include "runtime/ops/page_support.h"

namespace librt::ops {

#define RT_OP(Name) extern const Page page_##Name;
#include "schema/page_list.inc"
#undef RT_OP

ExtentRule extent_rule(OpKind kind) noexcept {
  const Page* page = page_of(kind);
  if (page == nullptr) return ExtentRule::Unknown;
  switch (page->form) {
    case Form::Unary: return ExtentRule::LikeFirst;
    case Form::Broadcast: return ExtentRule::Broadcast;
    case Form::Opaque: return page->extents;
  }
  return ExtentRule::Unknown;
}

bool moves_elements(OpKind kind) noexcept {
  const Page* page = page_of(kind);
  return page != nullptr && page->moves;
}

Form form_of(OpKind kind) noexcept {
  const Page* page = page_of(kind);
  return page == nullptr ? Form::Opaque : page->form;
}

const Page* page_of(OpKind kind) noexcept {
  static constexpr auto kPages = [] {
    std::array<const Page*, kOpCount> pages{};
#define RT_OP(Name) pages[static_cast<size_t>(OpKind::Name)] = &page_##Name;
#include "schema/page_list.inc"
#undef RT_OP
    return pages;
  }();
  const auto index = static_cast<size_t>(kind);
  return index < kOpCount ? kPages[index] : nullptr;
}

EvalFunction host_value(OpKind kind) noexcept {
  const Page* page = page_of(kind);
  return page != nullptr ? page->eval : nullptr;
}

Cost cost_of(const NodeView& node) {
  const Page* page = page_of(node.kind());
  if (page != nullptr && page->cost != nullptr) return page->cost(node);
  return elementwise_cost(node, 0);
}

}  // namespace librt::ops
