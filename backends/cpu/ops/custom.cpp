// Operators of the application, in host memory: see rt/custom.h.
#include "runtime/backend/custom_call.h"

#include "backends/cpu/kernel.h"

namespace librt::cpu {
namespace {

Status supports(const CpuDevice& device, const NodeView& node) {
  return supports_custom(device, node, &rt_custom_operator::run, "run");
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const auto custom = std::make_shared<CustomCall>(find_custom(device, node)->functions, node);
  return make_kernel(
      [custom](const Call& call) noexcept { return custom->run_on_host(call.inputs, call.outputs); });
}

}  // namespace

std::span<const KernelRow> rows_custom();
std::span<const KernelRow> rows_custom() {
  static constexpr KernelRow kRows[] = {row<create, supports>(OpKind::Custom, "custom", kAnyDType)};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
