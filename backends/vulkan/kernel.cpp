#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

Status operand_fits(const Device& device, const TensorInfo& info, const char* what, size_t i) {
  constexpr int64_t kMaxElements = (int64_t{1} << 31) - 1;
  const uint64_t most = cast(device).plan().max_binding_bytes;
  if (info.bytes() > most)
    return unsupported(what, " ", i, " has ", bytes_text(info.bytes()), ", the device binds at most ",
                       bytes_text(most), " at once");
  if (info.elements() > kMaxElements)
    return unsupported(what, " ", i, " has ", info.elements(), " elements, shaders index at most ",
                       kMaxElements);
  return {};
}

}  // namespace

Status fits(const Device& device, const NodeView& node) noexcept {
  for (size_t i = 0; i < node.input_count(); ++i)
    if (node.has(i)) RT_TRY(operand_fits(device, node.input(i), "input", i));
  for (size_t i = 0; i < node.outputs.size(); ++i) RT_TRY(operand_fits(device, node.output(i), "output", i));
  return {};
}

Status storable(const Device& device, DType dtype) noexcept {
  const FeatureFacts& features = cast(device).facts().features;
  if (size_of(dtype) == 1 && !features.storage_8bit)
    return unsupported("the device's shaders cannot store ", name_of(dtype), " (8-bit storage is missing)");
  if (size_of(dtype) == 2 && !features.storage_16bit)
    return unsupported("the device's shaders cannot store ", name_of(dtype), " (16-bit storage is missing)");
  return {};
}

bool may_loop_too_long(const VulkanDevice& device, const NodeView& node) {
  const int64_t most = device.plan().most_iterations;
  if (most == 0) return false;
  for (size_t i = 0; i < node.input_count(); ++i)
    if (node.has(i) && node.input(i).elements() > most) return true;
  return false;
}

Status runs_on(const Device& device, const Result<KernelPtr>& kernel) {
  if (!kernel.ok()) return kernel.status();
  return static_cast<const Program&>(**kernel).runs_on(cast(device));
}

Status all_storable(const Device& device, const NodeView& node) noexcept {
  for (size_t i = 0; i < node.input_count(); ++i)
    if (node.has(i) && node.inputs[i].value == nullptr) RT_TRY(storable(device, node.dtype(i)));
  for (size_t i = 0; i < node.outputs.size(); ++i) RT_TRY(storable(device, node.output(i).dtype));
  return fits(device, node);
}

StridedSpace broadcast_space(const NodeView& node) {
  std::vector<Shape> operands;
  for (size_t i = 0; i < node.input_count(); ++i) operands.push_back(node.shape(i));
  return broadcast_space(node.output(0).shape, operands);
}

Status broadcast_supports(const Device& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  const size_t rank = broadcast_space(node).rank();
  if (rank > kMaxAxes)
    return unsupported("broadcasting needs ", rank, " axes after collapsing, ", kMaxAxes, " are supported");
  return {};
}

Status known_on_host(const NodeView& node, size_t i, const char* what) {
  if (node.has(i) && node.inputs[i].value != nullptr) return {};
  return unsupported(what, " must be known before the run");
}

}  // namespace librt::vulkan
