// How kernels of this backend are written: predicates that compare operands with the device's limits, and
// factories from Programs.
//
// Knows: limits of the device against a node's operands. Must not know: single operators.
#pragma once

#include <memory>

#include "backends/vulkan/dispatch/program.h"
#include "backends/vulkan/dispatch/strided_space.h"
#include "runtime/backend/rows_in_build.h"
#include "runtime/core/exception.h"

namespace librt::vulkan {

/// Ok when every operand and result can be bound whole and indexed with 32 bits.
Status fits(const Device& device, const NodeView& node) noexcept;
/// Ok when shaders of this device read and write elements of this type.
Status storable(const Device& device, DType dtype) noexcept;
/// storable() for every operand that is not a shape operand known on the host, and every result.
Status all_storable(const Device& device, const NodeView& node) noexcept;
/// The space of a node whose operands broadcast to its only result.
StridedSpace broadcast_space(const NodeView& node);
/// all_storable(), and that space has as many axes as shaders take.
Status broadcast_supports(const Device& device, const NodeView& node);
/// Ok when input `i` is known on the host.
Status known_on_host(const NodeView& node, size_t i, const char* what);

/// Whether a loop over some of the node's elements may have more iterations than the device runs.
bool may_loop_too_long(const VulkanDevice& device, const NodeView& node);

/// Ok if the device runs every shader of the kernel, which is a Program, else what it lacks.
Status runs_on(const Device& device, const Result<KernelPtr>& kernel);

inline Result<KernelPtr> finish(std::unique_ptr<Program> program) {
  RT_TRY(Status(program->declined()));
  return KernelPtr(std::move(program));
}

namespace detail {
template <auto kCreate>
Result<KernelPtr> create_guarded(Device& device, const NodeView& node,
                                 std::span<const LayoutId> producers) noexcept {
  RT_ATTEMPT {
    return kCreate(device, node, producers);
  }
  RT_CAUGHT {
    return caught_exception("creating a kernel");
  }
}
/// Which shaders a kernel dispatches, and how long they loop, is known once it is built, which costs little:
/// a device that lacks something is asked about each of them.
template <auto kCreate, auto kSupports>
Status supports_guarded(const Device& device, const NodeView& node) noexcept {
  RT_ATTEMPT {
    RT_TRY(kSupports(device, node));
    if (cast(device).runs_basic_shaders() && !may_loop_too_long(cast(device), node)) return {};
    return runs_on(device, kCreate(const_cast<Device&>(device), node, {}));
  }
  RT_CAUGHT {
    return caught_exception("looking for a kernel");
  }
}
}  // namespace detail

/// A kernel table row from plain functions:
///   Status supports(const Device&, const NodeView&)
///   Result<KernelPtr> create(Device&, const NodeView&, std::span<const LayoutId> producers)
template <auto kCreate, auto kSupports>
constexpr KernelRow row(OpKind op, const char* name, DTypeSet dtypes, int priority = 0) {
  return {
      op,      name, dtypes, &detail::supports_guarded<kCreate, kSupports>, &detail::create_guarded<kCreate>,
      priority};
}

/// Predicate and factory of a row from one function, for kernels that may be declined while they are built.
using Build = Result<KernelPtr> (*)(const VulkanDevice& device, const NodeView& node);
namespace detail {
template <Build kBuild>
Status builds(const Device& device, const NodeView& node) {
  return kBuild(cast(device), node).status();
}
template <Build kBuild>
Result<KernelPtr> built(Device& device, const NodeView& node, std::span<const LayoutId>) {
  return kBuild(cast(device), node);
}
}  // namespace detail
template <Build kBuild>
constexpr KernelRow built_row(OpKind op, const char* name, DTypeSet dtypes, int priority = 0) {
  return row<&detail::built<kBuild>, &detail::builds<kBuild>>(op, name, dtypes, priority);
}

/// The shaders' kElement and similar constants.
inline uint32_t element_of(DType dtype) {
  return dtype == DType::F16 ? 1 : dtype == DType::BF16 ? 2 : 0;
}

inline constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

inline constexpr int64_t round_up4(int64_t n) {
  return ceil_div(n, 4) * 4;
}

}  // namespace librt::vulkan
