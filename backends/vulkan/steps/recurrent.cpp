#include "backends/vulkan/steps/recurrent.h"

#include <algorithm>

namespace librt::vulkan {
namespace {

/// Shared memory that every device has.
constexpr int64_t kSharedBytes = 16384;
/// A workgroup reads an r smaller than this faster than a barrier between dispatches takes.
constexpr int64_t kLargeMatrix = 512 * 1024;
constexpr int64_t kMaxStepDispatches = 1024;

bool has(const NodeView& node, int input) {
  return input >= 0 && node.has(static_cast<size_t>(input));
}

void specialize(Step& step, const NodeView& node, const RecurrentGeometry& g, const RecurrentForm& form) {
  const RecurrentOperands& at = g.operands;
  const bool lstm = g.kind == CellKind::LSTM;
  const bool given[] = {has(node, at.bias),
                        has(node, at.lengths),
                        lstm && has(node, at.peepholes),
                        g.linear_before_reset,
                        g.input_forget,
                        g.starts_reversed,
                        g.clip > 0,
                        has(node, at.grad_y),
                        has(node, at.h0),
                        lstm && has(node, at.c0)};
  uint32_t flags = 0;
  for (size_t i = 0; i < std::size(given); ++i) flags |= given[i] ? 1u << i : 0u;
  step.spec(static_cast<uint32_t>(g.kind)).spec(form.number).spec(form.rows).spec(flags);
  for (const FunctionCall& call : g.activations) step.spec(static_cast<uint32_t>(call.function));
  step.spec(static_cast<uint64_t>(form.shared_vec4s));
}

void push(Step& step, const RecurrentGeometry& g, const RecurrentRange& range, int64_t units,
          int64_t unit_groups) {
  step.push(g.steps).push(g.batch).push(g.directions).push(g.hidden).push(round_up4(g.hidden) / 4);
  step.push(range.first).push(range.last).push(units).push(unit_groups).push(range.phases).push(g.clip);
  for (const FunctionCall& call : g.activations) step.push(call.alpha);
  for (const FunctionCall& call : g.activations) step.push(call.beta);
}

}  // namespace

Status recurrent_fits(const Device& device, const RecurrentGeometry& g) {
  const uint64_t limit = cast(device).plan().max_binding_bytes;
  const uint64_t bytes = floats((g.steps + 1) * g.batch * g.directions * g.gates * g.hidden);
  if (bytes > limit)
    return unsupported("gates of ", bytes_text(bytes), " for all steps, the device binds at most ",
                       bytes_text(limit), " at once");
  return {};
}

/// x w^T for all steps and both directions: [steps, batch, directions, gates, hidden].
Ref gemm_with_w(Program& program, const VulkanDevice& device, const NodeView& node,
                const RecurrentGeometry& g) {
  const int64_t rows = g.steps * g.batch, columns = g.directions * g.gates * g.hidden;
  const Ref result = program.scratch(floats(rows * columns));
  if (rows == 0) return result;
  if (g.input == 0) {
    program.fill(result, 0);
    return result;
  }
  const auto factor = [&](size_t input, int64_t count, bool transposed) {
    GemmOperand made;
    made.ref = whole_rows(program, device, node, input, count, g.input);
    made.transposed = transposed;
    made.row_stride = round_up4(g.input) / 4;
    return made;
  };
  TiledGemm gemm;
  gemm.m = rows;
  gemm.n = columns;
  gemm.k = round_up4(g.input);
  gemm.a = factor(0, rows, false);
  gemm.b = factor(1, columns, true);
  add_gemm(program, device, gemm, result);
  return result;
}

RecurrentForm choose_form(const RecurrentGeometry& g, const DevicePlan& plan, int64_t vec4s,
                          uint32_t phases) {
  const bool software = plan.texel_loads;
  RecurrentForm form;
  form.phases = phases;
  form.rows = static_cast<uint32_t>(std::clamp<int64_t>(software ? g.batch : g.batch / 16, 1, 4));
  const int64_t r_bytes = g.gates * g.hidden * g.hidden * static_cast<int64_t>(sizeof(float));
  const bool fits = vec4s * 16 <= kSharedBytes;
  if (!fits || (!software && r_bytes > kLargeMatrix && g.steps * phases <= kMaxStepDispatches)) {
    form.number = 1;
    form.units = form.lanes;
    return form;
  }
  form.units = g.hidden;
  form.lanes = software ? plan.row_lanes : 32;
  while (!software && form.lanes < plan.elementwise_lanes && form.lanes < g.hidden) form.lanes *= 2;
  while (form.rows > 1 && vec4s * form.rows * 16 > kSharedBytes) --form.rows;
  form.shared_vec4s = vec4s * form.rows;
  return form;
}

std::vector<RecurrentRange> ranges_of(const RecurrentForm& form, int64_t steps) {
  if (form.number == 0) return {{0, steps, 3}};
  std::vector<RecurrentRange> ranges;
  for (int64_t s = 0; s < steps; ++s) {
    if (form.phases == 2) ranges.push_back({s, s + 1, 1});
    ranges.push_back({s, s + 1, form.phases == 2 ? 2u : 3u});
  }
  return ranges;
}

Step& add_recurrent(Program& program, Shader shader, const NodeView& node, const RecurrentGeometry& g,
                    const RecurrentForm& form, const RecurrentRange& range) {
  const int64_t unit_groups = ceil_div(g.hidden, form.units);
  const int64_t groups = ceil_div(g.batch, form.rows) * g.directions * unit_groups;
  Step& step = program.dispatch(shader, static_cast<uint64_t>(groups), form.lanes);
  // For each step the units of a lane, and for each of them the products with all of h.
  step.loops((range.last - range.first) * ceil_div(std::min(form.units, g.hidden), form.lanes) *
             (ceil_div(g.hidden, 4) + 1) * (g.kind == CellKind::GRU ? 3 : 1));
  specialize(step, node, g, form);
  push(step, g, range, form.units, unit_groups);
  return step;
}

Step& add_recurrent(Program& program, Shader shader, const NodeView& node, const RecurrentGeometry& g,
                    uint32_t form, int64_t count, uint32_t lanes) {
  Step& step = program.dispatch_each(shader, count, lanes);
  specialize(step, node, g, {.number = form});
  push(step, g, {}, count, 1);
  return step;
}

}  // namespace librt::vulkan
