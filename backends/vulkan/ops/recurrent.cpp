// LSTM, GRU and RNN: one product of x with w for all steps, then the steps, all in one command buffer.
//
// A workgroup walks through all steps with some rows of a direction where r is small or steps are many, so
// that the number of dispatches does not grow with them; a large r is better read by the whole device: a
// dispatch a step.
#include <algorithm>

#include "backends/vulkan/copy_steps.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/product_steps.h"
#include "runtime/graph/recurrent_geometry.h"

namespace rt::vulkan {
namespace {

/// Shared memory that every device has.
constexpr int64_t kSharedBytes = 16384;
/// One workgroup reads less of r than this faster than a barrier between dispatches takes.
constexpr int64_t kLargeMatrix = 512 * 1024;
constexpr int64_t kMostStepDispatches = 1024;

int64_t round_up4(int64_t n) {
  return (n + 3) / 4 * 4;
}

uint64_t floats(int64_t count) {
  return static_cast<uint64_t>(std::max<int64_t>(count, 1)) * sizeof(float);
}

/// Numbers beyond Function's are the shader's own.
uint32_t function_number(op::RecurrentActivation function) {
  using Cell = op::RecurrentActivation;
  switch (function) {
    case Cell::Relu: return static_cast<uint32_t>(Function::Relu);
    case Cell::Sigmoid: return static_cast<uint32_t>(Function::Sigmoid);
    case Cell::LeakyRelu: return static_cast<uint32_t>(Function::LeakyRelu);
    case Cell::HardSigmoid: return static_cast<uint32_t>(Function::HardSigmoid);
    case Cell::Elu: return static_cast<uint32_t>(Function::Elu);
    case Cell::Softplus: return static_cast<uint32_t>(Function::Softplus);
    case Cell::Affine: return 100;
    case Cell::ThresholdedRelu: return 101;
    case Cell::ScaledTanh: return 102;
    case Cell::Softsign: return 103;
    default: return static_cast<uint32_t>(Function::Tanh);
  }
}

/// A matrix [rows, columns] whose rows are whole vec4s.
Ref whole_rows(Program& program, const VulkanDevice& device, const NodeView& node, size_t input, int64_t rows,
               int64_t columns) {
  if (columns % 4 == 0) return in(input);
  const auto* constant = static_cast<const float*>(node.inputs[input].value);
  if (constant != nullptr) program.replaces(input);
  return padded_copy(
      program, device, in(input),
      {.extents = {rows, columns}, .strides = {columns, 1}, .padded_extents = {rows, round_up4(columns)}},
      constant);
}

/// x w^T for all steps and both directions: [steps, batch, directions, gates, hidden].
Ref product_with_w(Program& program, const VulkanDevice& device, const NodeView& node,
                   const RecurrentGeometry& g) {
  const int64_t rows = g.steps * g.batch, columns = g.directions * g.gates * g.hidden;
  const Ref result = program.scratch(floats(rows * columns));
  if (rows == 0) return result;
  if (g.input == 0) {
    program.fill(result, 0);
    return result;
  }
  const auto factor = [&](size_t input, int64_t count, bool transposed) {
    ProductFactor made;
    made.ref = whole_rows(program, device, node, input, count, g.input);
    made.transposed = transposed;
    made.row_stride = round_up4(g.input) / 4;
    return made;
  };
  TiledProduct product;
  product.m = rows;
  product.n = columns;
  product.k = round_up4(g.input);
  product.a = factor(0, rows, false);
  product.b = factor(1, columns, true);
  add_product(program, device, product, result);
  return result;
}

/// r as [direction][hidden / 4][gate][unit] vec4; zeros behind its columns.
Ref packed_r(Program& program, const VulkanDevice& device, const NodeView& node, const RecurrentGeometry& g) {
  const int64_t rows = g.gates * g.hidden, padded = round_up4(g.hidden);
  const uint64_t bytes = floats(g.directions * rows * padded);
  if (const auto* constant = static_cast<const float*>(node.inputs[2].value); constant != nullptr) {
    program.replaces(2);
    return program.packed(bytes,
                          [=, directions = g.directions, hidden = g.hidden](std::span<std::byte> target) {
                            auto* to = reinterpret_cast<float*>(target.data());
                            for (int64_t d = 0; d < directions; ++d)
                              for (int64_t k = 0; k < padded; ++k)
                                for (int64_t row = 0; row < rows; ++row)
                                  to[((d * padded + k / 4 * 4) * rows) + row * 4 + k % 4] =
                                      k < hidden ? constant[(d * rows + row) * hidden + k] : 0.0f;
                          });
  }
  const Ref source = whole_rows(program, device, node, 2, g.directions * rows, g.hidden);
  const Ref target = program.scratch(bytes);
  add_copy(program, device,
           {.space = {.extents = {g.directions, padded / 4, rows, 4},
                      .strides = {{rows * padded, 4, padded, 1}, {rows * padded, rows * 4, 4, 1}}}},
           source, target);
  return target;
}

/// h as [2][directions][batch][hidden, padded]: the first half holds h0, everything else is zero.
Ref initial_h(Program& program, const VulkanDevice& device, const NodeView& node,
              const RecurrentGeometry& g) {
  const int64_t padded = round_up4(g.hidden);
  const Ref h = program.scratch(floats(2 * g.directions * g.batch * padded));
  program.fill(h, 0);
  if (node.has(5))
    add_copy(
        program, device,
        {.space = {.extents = {g.directions * g.batch, g.hidden}, .strides = {{g.hidden, 1}, {padded, 1}}}},
        in(5), h);
  return h;
}

struct Steps {
  uint32_t form = 0;
  uint32_t lanes = 64, rows = 1;
  int64_t units = 0;
  int64_t shared_fours = 1;
};

Steps choose_steps(const RecurrentGeometry& g, const DevicePlan& plan) {
  const bool software = plan.texel_loads;
  Steps steps;
  steps.rows = static_cast<uint32_t>(std::clamp<int64_t>(software ? g.batch : g.batch / 16, 1, 4));
  const bool two_phases = g.kind == CellKind::GRU && !g.linear_before_reset;
  const int64_t fours = round_up4(g.hidden) / 4, halves = two_phases ? 3 : 2;
  const int64_t r_bytes = g.gates * g.hidden * g.hidden * static_cast<int64_t>(sizeof(float));
  if (!software && r_bytes > kLargeMatrix && g.steps * (two_phases ? 2 : 1) <= kMostStepDispatches) {
    steps.form = 2;
    steps.units = steps.lanes;
    return steps;
  }
  steps.units = g.hidden;
  steps.lanes = software ? plan.row_lanes : 32;
  while (!software && steps.lanes < plan.elementwise_lanes && steps.lanes < g.hidden) steps.lanes *= 2;
  while (steps.rows > 1 && halves * steps.rows * fours * 16 > kSharedBytes) --steps.rows;
  steps.shared_fours = halves * steps.rows * fours;
  if (steps.shared_fours * 16 > kSharedBytes) {
    steps.form = 1;
    steps.shared_fours = 1;
  }
  return steps;
}

struct Buffers {
  Ref from_x, r, h, c, reset;
};

void add_steps(Program& program, const VulkanDevice& device, const NodeView& node, const RecurrentGeometry& g,
               const Steps& steps, const Buffers& buffers, int64_t first, int64_t last, uint32_t phases) {
  const bool texel = through_texels(device, floats(g.directions * g.gates * g.hidden * round_up4(g.hidden)));
  const int64_t unit_groups = ceil_div(g.hidden, steps.units);
  const int64_t groups = ceil_div(g.batch, steps.rows) * g.directions * unit_groups;
  Step& step = program.dispatch(texel ? Shader::recurrent_texel : Shader::recurrent_buffer,
                                static_cast<uint64_t>(groups), steps.lanes);
  const bool lstm = g.kind == CellKind::LSTM;
  const uint32_t flags = (node.has(3) ? 1u : 0u) | (node.has(4) ? 2u : 0u) | (lstm && node.has(7) ? 4u : 0u) |
                         (g.linear_before_reset ? 8u : 0u) | (g.input_forget ? 16u : 0u) |
                         (g.starts_reversed ? 32u : 0u) | (g.clip > 0 ? 64u : 0u);
  step.spec(static_cast<uint32_t>(g.kind)).spec(steps.form).spec(steps.rows).spec(flags);
  for (const CellActivation& activation : g.activations) step.spec(function_number(activation.function));
  step.spec(static_cast<uint64_t>(steps.shared_fours));
  step.push(g.steps).push(g.batch).push(g.directions).push(g.hidden).push(round_up4(g.hidden) / 4);
  step.push(first).push(last).push(steps.units).push(unit_groups).push(phases).push(g.clip);
  for (const CellActivation& activation : g.activations) step.push(activation.alpha);
  for (const CellActivation& activation : g.activations) step.push(activation.beta);
  step.matrix(1, buffers.r, texel).read(2, buffers.from_x).write(4, out(0)).write(5, buffers.h);
  if (node.has(3)) step.read(3, in(3));
  if (lstm) step.write(6, buffers.c);
  if (node.has(4)) step.read(7, in(4));
  if (lstm && node.has(7)) step.read(8, in(7));
  if (g.kind == CellKind::GRU && !g.linear_before_reset) step.write(9, buffers.reset);
}

Status supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(all_storable(device, node));
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  const uint64_t limit = cast(device).plan().max_binding_bytes;
  const uint64_t gates = floats(g.steps * g.batch * g.directions * g.gates * g.hidden);
  if (gates > limit)
    return unsupported("products of ", gates, " bytes for all steps, the device binds at most ", limit);
  return {};
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  const VulkanDevice& vulkan = cast(device);
  auto program = std::make_unique<Program>("recurrent");
  const int64_t rows = g.directions * g.batch, padded = round_up4(g.hidden);
  Buffers buffers;
  buffers.h = initial_h(*program, vulkan, node, g);
  if (g.kind == CellKind::LSTM) {
    buffers.c = out(2);  // c moves in its place
    if (node.has(6))
      program->copy(out(2), in(6));
    else
      program->fill(out(2), 0);
  }
  if (g.steps > 0 && g.batch > 0) {
    buffers.from_x = product_with_w(*program, vulkan, node, g);
    buffers.r = packed_r(*program, vulkan, node, g);
    const bool two_phases = g.kind == CellKind::GRU && !g.linear_before_reset;
    const Steps steps = choose_steps(g, vulkan.plan());
    if (two_phases) {
      buffers.reset = program->scratch(floats(rows * padded));
      program->fill(buffers.reset, 0);
    }
    if (steps.form != 2) {
      add_steps(*program, vulkan, node, g, steps, buffers, 0, g.steps, 3);
    } else {
      for (int64_t s = 0; s < g.steps; ++s) {
        if (two_phases) add_steps(*program, vulkan, node, g, steps, buffers, s, s + 1, 1);
        add_steps(*program, vulkan, node, g, steps, buffers, s, s + 1, 2);
      }
    }
  }
  add_copy(*program, vulkan,
           {.space = {.extents = {rows, g.hidden}, .strides = {{padded, 1}, {g.hidden, 1}}},
            .from = (g.steps & 1) * rows * padded},
           buffers.h, out(1));
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    {OpKind::LSTM, "lstm", DTypeSet{DType::F32}, supports, create},
    {OpKind::GRU, "gru", DTypeSet{DType::F32}, supports, create},
    {OpKind::RNN, "rnn", DTypeSet{DType::F32}, supports, create},
};

}  // namespace

std::span<const KernelRow> rows_recurrent();
std::span<const KernelRow> rows_recurrent() {
  return kRows;
}

}  // namespace rt::vulkan
