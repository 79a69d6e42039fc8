#include "runtime/backend/custom_operators.h"

namespace librt {
namespace {

const CustomOperator* find(const CustomOperators* all, const op::CustomAttributes& wanted) noexcept {
  if (all == nullptr) return nullptr;
  for (const CustomOperator& one : *all)
    if (one.name == wanted.name && one.domain == wanted.domain) return &one;
  return nullptr;
}

}  // namespace

const CustomOperator* find_custom(const Device& device, const NodeView& node) noexcept {
  return find(device.custom_operators, node.as<op::CustomAttributes>());
}

Status check_custom(const Graph& graph, const CustomOperators* operators) {
  for (const Node& node : graph.nodes) {
    for (const Graph& body : node.bodies) RT_TRY(check_custom(body, operators));
    if (node.kind() != OpKind::Custom) continue;
    const auto& wanted = node.as<op::CustomAttributes>();
    if (find(operators, wanted) == nullptr)
      return unsupported(describe(node), ": expected a kernel for the operator '", wanted.name,
                         "' of the domain '", wanted.domain,
                         "'; give it in rt_session_options.custom_operators (rt/custom.h)");
  }
  return {};
}

}  // namespace librt
