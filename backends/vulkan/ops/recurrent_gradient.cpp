// Gradients of LSTM, GRU and RNN: y gives every h, so all gates are recomputed with large matmuls; then one
// backward pass over the steps, all in one command buffer.
#include <algorithm>

#include "backends/vulkan/steps/copy.h"
#include "backends/vulkan/steps/recurrent.h"

namespace librt::vulkan {
namespace {

/// kForm of shaders/recurrent_gates.comp.
enum GatesPart : uint32_t { kPrevious, kBeforeActivation, kStates, kPeepholes };

class Gradient {
 public:
  Gradient(Program& program, const VulkanDevice& device, const NodeView& node, const RecurrentGeometry& g)
      : program_(program), device_(device), node_(node), g_(g), rows_(g.steps * g.batch) {}

  void add() {
    const size_t grad_c = static_cast<size_t>(std::max(g_.operands.grad_c, 0));
    begin(2, static_cast<size_t>(g_.operands.grad_h));
    if (lstm()) begin(3, grad_c);
    if (rows_ == 0) {
      if (lstm()) program_.fill(out(4), 0);
      return;
    }
    r_ = whole_rows(program_, device_, node_, 2, g_.directions * g_.gates * g_.hidden, g_.hidden);
    find_previous();
    find_gates();
    if (lstm()) find_states();
    run_steps();
    if (lstm()) sum_peepholes();
  }

 private:
  bool lstm() const { return g_.kind == CellKind::LSTM; }
  int64_t padded() const { return round_up4(g_.hidden); }
  int64_t units() const { return g_.directions * rows_ * g_.hidden; }

  /// A state's gradient starts as that of the last state, or as zero.
  void begin(size_t output, size_t input) {
    if (node_.has(input))
      program_.copy(out(output), in(input));
    else
      program_.fill(out(output), 0);
  }

  /// A dispatch of recurrent_gates.comp; bindings that a part does not use but the shader may write are bound
  /// to h's gradient.
  Step& part(GatesPart number, int64_t count, std::span<const std::pair<uint32_t, Ref>> written) {
    Step& step = add_recurrent(program_, Shader::recurrent_gates, node_, g_, number, count,
                               device_.plan().elementwise_lanes);
    for (uint32_t binding = 2; binding <= 5; ++binding) {
      const auto found =
          std::ranges::find_if(written, [&](const auto& operand) { return operand.first == binding; });
      step.write(binding, found == written.end() ? out(2) : found->second);
    }
    if (const auto lengths = static_cast<size_t>(g_.operands.lengths); node_.has(lengths))
      step.read(7, in(lengths));
    return step;
  }
  void read_peepholes(Step& step) {
    if (const auto p = static_cast<size_t>(g_.operands.peepholes); node_.has(p)) step.read(6, in(p));
  }

  void find_previous() {
    const std::pair<uint32_t, Ref> written[] = {{2, out(1)}};
    Step& step = part(kPrevious, units(), written).read(0, in(3));
    if (const auto h0 = static_cast<size_t>(g_.operands.h0); node_.has(h0)) step.read(1, in(h0));
  }

  /// Matmul of rows [directions][steps, batch] of `hidden` with `blocks` blocks of r from block `first` on.
  Ref gemm_with_r(const Ref& operand, int64_t first, int64_t blocks) {
    const int64_t columns = blocks * g_.hidden, vec4s = padded() / 4;
    TiledGemm gemm;
    gemm.m = rows_;
    gemm.n = columns;
    gemm.k = padded();
    gemm.batch = {1, g_.directions};
    gemm.a = {operand, false, vec4s, {0, rows_ * vec4s}};
    if (padded() != g_.hidden)
      gemm.a.ref = padded_copy(program_, device_, operand,
                               {.extents = {g_.directions * rows_, g_.hidden},
                                .strides = {g_.hidden, 1},
                                .padded_extents = {g_.directions * rows_, padded()}},
                               nullptr);
    gemm.b = {r_, true, vec4s, {0, g_.gates * g_.hidden * vec4s}};
    gemm.b.ref.offset += static_cast<uint64_t>(first * g_.hidden * padded()) * sizeof(float);
    const Ref result = program_.scratch(floats(g_.directions * rows_ * columns));
    add_gemm(program_, device_, gemm, result);
    return result;
  }

  void find_gates() {
    const Ref from_x = gemm_with_w(program_, device_, node_, g_);
    gates_ = gemm_with_r(out(1), 0, g_.gates);
    const bool gru = g_.kind == CellKind::GRU;
    if (gru && g_.linear_before_reset) third_ = program_.scratch(floats(units()));
    const std::pair<uint32_t, Ref> written[] = {
        {2, out(1)}, {3, gates_}, {4, gru ? out(4) : out(2)}, {5, g_.linear_before_reset ? third_ : out(2)}};
    Step& step = part(kBeforeActivation, units(), written).read(0, from_x);
    if (const auto bias = static_cast<size_t>(g_.operands.bias); node_.has(bias)) step.read(1, in(bias));
    if (resets_before(g_)) third_ = gemm_with_r(out(4), 2, 1);
  }

  void find_states() {
    states_ = program_.scratch(floats(g_.directions * (g_.steps + 1) * g_.batch * g_.hidden));
    const std::pair<uint32_t, Ref> written[] = {{3, gates_}, {5, states_}};
    Step& step = part(kStates, g_.directions * g_.batch * g_.hidden, written);
    if (const auto c0 = static_cast<size_t>(g_.operands.c0); node_.has(c0)) step.read(1, in(c0));
    read_peepholes(step);
  }

  /// r as [direction][gate][hidden / 4][unit] vec4 of four rows; zero-padded rows.
  Ref rows_in_vec4s() {
    const int64_t blocks = g_.directions * g_.gates, hidden = g_.hidden, whole = hidden / 4 * 4;
    const Ref packed = program_.scratch(floats(blocks * padded() * hidden));
    if (whole != hidden) program_.fill(packed, 0);
    add_copy(
        program_, device_,
        {.space = {{blocks, whole / 4, hidden, 4},
                   {{hidden * padded(), 4 * padded(), 1, padded()}, {padded() * hidden, hidden * 4, 4, 1}}}},
        r_, packed);
    add_copy(program_, device_,
             {.space = {{blocks, hidden, hidden - whole},
                        {{hidden * padded(), 1, padded()}, {padded() * hidden, 4, 1}}},
              .from = whole * padded(),
              .to = whole * hidden},
             r_, packed);
    return packed;
  }

  void run_steps() {
    const Ref packed = rows_in_vec4s();
    const int64_t vec4s = 2 * g_.gates * padded() / 4;
    const bool gru = g_.kind == CellKind::GRU;
    const RecurrentForm form = choose_form(g_, device_.plan(), vec4s, gru ? 2 : 1);
    Ref block = out(2);
    if (form.number != 0) {
      block = program_.scratch(floats(g_.directions * g_.batch * vec4s * 4));
      program_.fill(block, 0);
    }
    const uint64_t bytes = floats(g_.directions * g_.gates * padded() * g_.hidden);
    const bool texel = through_texels(device_, bytes);
    for (const RecurrentRange& range : ranges_of(form, g_.steps + 1)) {
      Step& step =
          add_recurrent(program_, texel ? Shader::recurrent_grad_texel : Shader::recurrent_grad_buffer, node_,
                        g_, form, range);
      step.write(0, block).matrix(1, packed, texel).read(2, gates_).write(3, out(0)).write(8, out(2));
      step.write(9, lstm() || gru ? out(3) : out(2));
      if (const auto grad_y = static_cast<size_t>(g_.operands.grad_y); node_.has(grad_y))
        step.read(4, in(grad_y));
      if (const auto lengths = static_cast<size_t>(g_.operands.lengths); node_.has(lengths))
        step.read(7, in(lengths));
      if (lstm()) {
        step.read(5, states_);
        read_peepholes(step);
      } else if (gru) {
        step.read(5, out(1)).read(6, third_);
      }
    }
  }

  void sum_peepholes() {
    const std::pair<uint32_t, Ref> written[] = {{3, out(0)}, {4, out(4)}, {5, states_}};
    part(kPeepholes, g_.directions * 3 * g_.hidden, written);
  }

  Program& program_;
  const VulkanDevice& device_;
  const NodeView& node_;
  const RecurrentGeometry& g_;
  int64_t rows_;
  Ref r_, gates_, states_;
  Ref third_;  ///< GRU: matmul with r's third block
};

Result<KernelPtr> build(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  RT_TRY(recurrent_fits(device, g));
  auto program = std::make_unique<Program>("recurrent_gradient");
  Gradient(*program, device, node, g).add();
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    built_row<build>(OpKind::LSTMGrad, "lstm_grad", DTypeSet{DType::F32}),
    built_row<build>(OpKind::GRUGrad, "gru_grad", DTypeSet{DType::F32}),
    built_row<build>(OpKind::RNNGrad, "rnn_grad", DTypeSet{DType::F32}),
};

}  // namespace

std::span<const KernelRow> rows_recurrent_gradient();
std::span<const KernelRow> rows_recurrent_gradient() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
