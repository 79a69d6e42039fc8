// CtcLoss and the gradient computed with it, one workgroup per sequence.
#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

enum CtcInput : size_t { kLogProbabilities, kLabels, kInputLengths, kLabelLengths };

/// Scratch for the shader's forward and backward variables.
struct CtcScratch {
  uint64_t alpha, beta, states;

  explicit CtcScratch(const NodeView& node) {
    const Shape& x = node.shape(kLogProbabilities);
    const auto row = static_cast<uint64_t>(x[1] * (2 * node.shape(kLabels)[1] + 1)) * sizeof(float);
    alpha = static_cast<uint64_t>(x[0]) * row;
    beta = 2 * row;
    states = row;
  }
};

Status supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  const uint64_t most = cast(device).plan().max_binding_bytes, needed = CtcScratch(node).alpha;
  if (needed > most)
    return unsupported("forward variables of ", bytes_text(needed), ", the device binds at most ",
                       bytes_text(most), " at once");
  return {};
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const auto& attributes = node.as<op::CtcLossAttributes>();
  const Shape& x = node.shape(kLogProbabilities);
  const CtcScratch bytes(node);
  auto program = std::make_unique<Program>("ctc");
  if (x[0] > 0) program->fill(out(1), 0);
  Step& step = program->dispatch(Shader::ctc, static_cast<uint64_t>(x[1]), cast(device).plan().row_lanes);
  step.loops(4 * (x[0] + 1) * (ceil_div(2 * node.shape(kLabels)[1] + 1, cast(device).plan().row_lanes) + 1));
  step.spec(attributes.zero_infinity);
  step.push(x[0]).push(x[1]).push(x[2]).push(node.shape(kLabels)[1]).push(attributes.blank);
  for (const size_t i : {kLabels, kInputLengths, kLabelLengths})
    step.push(static_cast<int64_t>(size_of(node.dtype(i)) / sizeof(int32_t)));
  step.read(0, in(kLogProbabilities))
      .read(1, in(kLabels))
      .read(2, in(kInputLengths))
      .read(3, in(kLabelLengths));
  step.write(4, out(0)).write(5, out(1));
  step.write(6, program->scratch(bytes.alpha)).write(7, program->scratch(bytes.beta));
  step.write(8, program->scratch(bytes.states)).write(9, program->scratch(bytes.states));
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {row<create, supports>(OpKind::CtcLoss, "ctc", DTypeSet{DType::F32})};

}  // namespace

std::span<const KernelRow> rows_ctc() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
