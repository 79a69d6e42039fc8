// LSTM, GRU and RNN: one matmul of x with w for all steps, then the steps, all in one command buffer.
//
// If r is small or steps are many, a workgroup runs all steps for some rows of a direction, so that the
// number of dispatches does not grow with the steps; a large r is better read by the whole device: one
// dispatch per step.
#include <algorithm>

#include "backends/vulkan/steps/copy.h"
#include "backends/vulkan/steps/recurrent.h"

namespace librt::vulkan {
namespace {

/// r as [direction][hidden / 4][gate][unit] vec4; zero-padded columns.
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

struct Buffers {
  Ref from_x, r, h, c, reset;
};

void add_steps(Program& program, const VulkanDevice& device, const NodeView& node, const RecurrentGeometry& g,
               const RecurrentForm& form, const Buffers& buffers, const RecurrentRange& range) {
  const bool texel = through_texels(device, floats(g.directions * g.gates * g.hidden * round_up4(g.hidden)));
  Step& step = add_recurrent(program, texel ? Shader::recurrent_texel : Shader::recurrent_buffer, node, g,
                             form, range);
  const bool lstm = g.kind == CellKind::LSTM;
  step.matrix(1, buffers.r, texel).read(2, buffers.from_x).write(4, out(0)).write(5, buffers.h);
  if (node.has(3)) step.read(3, in(3));
  if (node.has(4)) step.read(7, in(4));
  if (lstm && node.has(7)) step.read(8, in(7));
  // Buffers that a cell does not have are bound to h: the shader declares them as written.
  step.write(6, lstm ? buffers.c : buffers.h);
  step.write(9, resets_before(g) ? buffers.reset : buffers.h);
}

Result<KernelPtr> build(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  RT_TRY(recurrent_fits(device, g));
  auto program = std::make_unique<Program>("recurrent");
  const int64_t rows = g.directions * g.batch, padded = round_up4(g.hidden);
  Buffers buffers;
  buffers.h = initial_h(*program, device, node, g);
  if (g.kind == CellKind::LSTM) {
    buffers.c = out(2);  // c is updated in place
    if (node.has(6))
      program->copy(out(2), in(6));
    else
      program->fill(out(2), 0);
  }
  if (g.steps > 0 && g.batch > 0) {
    buffers.from_x = gemm_with_w(*program, device, node, g);
    buffers.r = packed_r(*program, device, node, g);
    const int64_t halves = resets_before(g) ? 3 : 2;
    const RecurrentForm form = choose_form(g, device.plan(), halves * padded / 4, resets_before(g) ? 2 : 1);
    if (resets_before(g)) {
      buffers.reset = program->scratch(floats(rows * padded));
      program->fill(buffers.reset, 0);
    }
    for (const RecurrentRange& range : ranges_of(form, g.steps))
      add_steps(*program, device, node, g, form, buffers, range);
  }
  add_copy(*program, device,
           {.space = {.extents = {rows, g.hidden}, .strides = {{padded, 1}, {g.hidden, 1}}},
            .from = (g.steps & 1) * rows * padded},
           buffers.h, out(1));
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    built_row<build>(OpKind::LSTM, "lstm", DTypeSet{DType::F32}),
    built_row<build>(OpKind::GRU, "gru", DTypeSet{DType::F32}),
    built_row<build>(OpKind::RNN, "rnn", DTypeSet{DType::F32}),
};

}  // namespace

std::span<const KernelRow> rows_recurrent();
std::span<const KernelRow> rows_recurrent() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
