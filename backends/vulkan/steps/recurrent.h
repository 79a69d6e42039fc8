// Shared by the kernels of recurrent nets and of their gradients.
//
// Knows: how steps are dispatched, the parameters of shaders/recurrent.glsl. Must not know: what a step
// computes.
#pragma once

#include "backends/vulkan/steps/gemm.h"
#include "runtime/geometry/recurrent.h"

namespace librt::vulkan {

inline uint64_t floats(int64_t count) {
  return static_cast<uint64_t>(std::max<int64_t>(count, 1)) * sizeof(float);
}

/// Whether the reset gate comes before the matmul with r's third block.
inline bool resets_before(const RecurrentGeometry& g) {
  return g.kind == CellKind::GRU && !g.linear_before_reset;
}

/// Ok if the matmul results for all steps can be bound.
Status recurrent_fits(const Device& device, const RecurrentGeometry& g);
/// x w^T for all steps and both directions: [steps, batch, directions, gates, hidden].
Ref gemm_with_w(Program& program, const VulkanDevice& device, const NodeView& node,
                const RecurrentGeometry& g);

/// How steps are dispatched: 0 all in one workgroup with shared memory, 1 one dispatch each.
struct RecurrentForm {
  uint32_t number = 0;
  uint32_t lanes = 64, rows = 1;
  uint32_t phases = 1;  ///< per step
  int64_t units = 0;
  int64_t shared_vec4s = 1;
};
/// fours: vec4s of shared memory per row.
RecurrentForm choose_form(const RecurrentGeometry& g, const DevicePlan& plan, int64_t vec4s, uint32_t phases);

/// Steps of one dispatch, and its phases as bits.
struct RecurrentRange {
  int64_t first = 0, last = 0;
  uint32_t phases = 3;
};
std::vector<RecurrentRange> ranges_of(const RecurrentForm& form, int64_t steps);

/// A dispatch of a shader that includes recurrent.glsl and runs steps.
Step& add_recurrent(Program& program, Shader shader, const NodeView& node, const RecurrentGeometry& g,
                    const RecurrentForm& form, const RecurrentRange& range);
/// A dispatch of one that does not: `form` is its kForm, one invocation for each of `count` units.
Step& add_recurrent(Program& program, Shader shader, const NodeView& node, const RecurrentGeometry& g,
                    uint32_t form, int64_t count, uint32_t lanes);

}  // namespace librt::vulkan
