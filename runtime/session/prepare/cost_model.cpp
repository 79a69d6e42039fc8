#include "runtime/session/prepare/cost_model.h"

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/core/hash.h"
#include "runtime/session/prepare/legalize.h"

namespace librt {

namespace {

/// Share of a device's matmul throughput (see is_bound_by_flops) or memory bandwidth that large nodes reach
/// where no curve was measured: between those of oneDNN on AVX2 machines and of this project's GPU kernels.
constexpr std::array<float, kFamilies> kTypicalShare{0.8f, 0.6f, 0.6f, 0.2f, 0.5f, 0.4f, 0.2f, 0.8f,
                                                     0.9f, 0.6f, 0.3f, 0.5f, 0.4f, 0.5f, 0.9f};

constexpr std::pair<OpKind, Family> kFamilyOf[] = {
    {OpKind::MatMul, Family::Matmul},
    {OpKind::MatMulInteger, Family::Matmul},
    {OpKind::QuantizedMatMul, Family::Matmul},
    {OpKind::WeightQuantizedMatMul, Family::Matmul},
    {OpKind::Conv, Family::Conv},
    {OpKind::ConvTranspose, Family::Conv},
    {OpKind::ConvWeightGrad, Family::Conv},
    {OpKind::ConvInteger, Family::Conv},
    {OpKind::QuantizedConv, Family::Conv},
    {OpKind::Attention, Family::Attention},
    {OpKind::AttentionGrad, Family::Attention},
    {OpKind::LSTM, Family::Recurrent},
    {OpKind::GRU, Family::Recurrent},
    {OpKind::RNN, Family::Recurrent},
    {OpKind::LSTMGrad, Family::Recurrent},
    {OpKind::GRUGrad, Family::Recurrent},
    {OpKind::RNNGrad, Family::Recurrent},
    {OpKind::BatchNormTrain, Family::Reduction},
    {OpKind::BatchNormGrad, Family::Reduction},
    {OpKind::LayerNorm, Family::Reduction},
    {OpKind::LayerNormGrad, Family::Reduction},
    {OpKind::RmsNorm, Family::Reduction},
    {OpKind::SoftmaxGrad, Family::Reduction},
    {OpKind::Softmax, Family::Reduction},
    {OpKind::LogSoftmax, Family::Reduction},
    {OpKind::SoftmaxCrossEntropy, Family::Reduction},
    {OpKind::CrossEntropy, Family::Reduction},
    {OpKind::CrossEntropyGrad, Family::Reduction},
    {OpKind::ReduceSum, Family::Reduction},
    {OpKind::ReduceMean, Family::Reduction},
    {OpKind::ReduceMax, Family::Reduction},
    {OpKind::ReduceMin, Family::Reduction},
    {OpKind::ReduceProd, Family::Reduction},
    {OpKind::ArgMax, Family::Reduction},
    {OpKind::ArgMin, Family::Reduction},
    {OpKind::CumSum, Family::Reduction},
    {OpKind::CumProd, Family::Reduction},
    {OpKind::TopK, Family::Reduction},
    {OpKind::MaxPool, Family::Pool},
    {OpKind::AveragePool, Family::Pool},
    {OpKind::MaxPoolGrad, Family::Pool},
    {OpKind::AveragePoolGrad, Family::Pool},
    {OpKind::MaxPoolIndices, Family::Pool},
    {OpKind::Transpose, Family::Movement},
    {OpKind::Concat, Family::Movement},
    {OpKind::Slice, Family::Movement},
    {OpKind::Pad, Family::Movement},
    {OpKind::Expand, Family::Movement},
    {OpKind::Tile, Family::Movement},
    {OpKind::Gather, Family::Gather},
    {OpKind::GatherElements, Family::Gather},
    {OpKind::GatherND, Family::Gather},
    {OpKind::ScatterAdd, Family::Gather},
    {OpKind::ScatterElements, Family::Gather},
    {OpKind::ScatterND, Family::Gather},
    {OpKind::TensorScatter, Family::Gather},
    {OpKind::Resize, Family::Gather},
    {OpKind::GridSample, Family::Gather},
    {OpKind::RoiAlign, Family::Gather},
};

/// Whether a convolution reads all positions once: its result has more than half as many along each axis.
bool is_dense(const Shape& input, const Shape& result) {
  if (input.rank() != result.rank()) return false;
  for (int axis = 1; axis + 1 < input.rank(); ++axis)
    if (2 * result[axis] <= input[axis] + 1 || result[axis] > input[axis] + 2) return false;
  return true;
}

/// A convolution's weight is [O,K..,C/groups]; in ConvWeightGrad it is the result. input: [N,S..,C].
Family family_of_conv(OpKind kind, const Shape& input, const Shape& weight, const Shape& result) {
  const int rank = weight.rank();
  if (rank < 3) return Family::Conv;
  const int64_t channels = weight[rank - 1];
  if (channels == 1 && input[input.rank() - 1] > 1) return Family::Depthwise;
  if (channels < 8) return Family::ConvNarrow;
  int64_t positions = 1;
  bool is_3x3 = rank == 4;
  for (int axis = 1; axis + 1 < rank; ++axis) {
    positions *= weight[axis];
    is_3x3 &= weight[axis] == 3;
  }
  if (positions == 1) return Family::Conv1x1;
  if (kind == OpKind::ConvWeightGrad) return Family::Conv;
  return is_3x3 && kind == OpKind::Conv && is_dense(input, result) ? Family::Conv : Family::ConvDirect;
}

Family family_of(const Step& step, const Program& program) {
  const auto* found = std::find_if(std::begin(kFamilyOf), std::end(kFamilyOf),
                                   [&](const auto& entry) { return entry.first == step.node->kind(); });
  if (found == std::end(kFamilyOf)) return Family::Elementwise;
  const auto shape_of = [&](Ref value) -> const Shape& { return program.values[value].info.shape; };
  if (found->second == Family::Conv) {
    const Ref weight = found->first == OpKind::ConvWeightGrad ? step.outputs[0] : step.inputs[1];
    return weight == kNone ? Family::Conv
                           : family_of_conv(found->first, shape_of(step.inputs[0]), shape_of(weight),
                                            shape_of(step.outputs[0]));
  }
  if (found->second == Family::Matmul) {
    const Shape& result = shape_of(step.outputs[0]);
    const int rank = result.rank();
    const int64_t rows = rank < 2 ? 1 : result.elements() / std::max<int64_t>(1, result[rank - 1]);
    if (rows <= 2) return Family::MatrixVector;
  }
  return found->second;
}

/// Channels that kernels compute together, in a vector register or a GPU's tile, of results as of the layout
/// that they read: with fewer, the rest is computed in vain.
constexpr int64_t kChannelBlock = 16;

double block_share_of(const Step& step, Family family, const Program& program) {
  const bool by_channel = family == Family::Conv || family == Family::Conv1x1 ||
                          family == Family::ConvDirect || family == Family::ConvNarrow ||
                          family == Family::Pool;
  if (!by_channel || step.node->kind() == OpKind::ConvWeightGrad) return 1;
  const auto share_of = [&](Ref value) {
    const Shape& shape = program.values[value].info.shape;
    const int64_t channels = shape.rank() < 3 ? kChannelBlock : shape[shape.rank() - 1];
    return static_cast<double>(std::clamp<int64_t>(channels, 1, kChannelBlock)) / kChannelBlock;
  };
  const double results = share_of(step.outputs[0]);
  // The curves of first layers have few channels of input in them, and pooling does not sum over channels.
  if (family == Family::ConvNarrow || family == Family::Pool || step.inputs[1] == kNone ||
      step.node->kind() == OpKind::ConvTranspose)
    return results;
  return results * share_of(step.inputs[1]);
}

/// Seconds in which a device moves bytes at best. 0: no curve was measured.
double moving_seconds(const DeviceProfile& profile, double bytes) {
  double least = 0;
  for (const Family family : {Family::Elementwise, Family::MatrixVector}) {
    const TimeCurve& curve = profile.curves[static_cast<size_t>(family)];
    if (curve.count == 0) continue;
    const double seconds = curve.at(bytes);
    least = least > 0 ? std::min(least, seconds) : seconds;
  }
  return least;
}

NodeWork work_of(const Step& step, const Program& program, std::optional<DType> asked) {
  const bool is_node = step.node != nullptr;
  NodeWork node{.family = is_node ? family_of(step, program) : Family::Elementwise,
                .node = step.node,
                .flops = step.cost.flops,
                .bytes = step.cost.bytes};
  if (!is_node) node.bytes = 2 * static_cast<double>(program.values[step.outputs[0]].bytes);
  for (const Ref input : step.inputs) {
    if (input == kNone) continue;
    const PlanValue& value = program.values[root_of(program, input)];
    if (value.source == ValueSource::Constant || value.source == ValueSource::State)
      node.weight_bytes += static_cast<double>(value.info.bytes());
  }
  node.weight_bytes = std::min(node.weight_bytes, node.bytes);
  const DType own =
      step.inputs.empty() || step.inputs[0] == kNone ? DType::F32 : program.values[step.inputs[0]].info.dtype;
  if (!is_node) return node;
  node.block_share = block_share_of(step, node.family, program);
  const ops::Page* page = ops::page_of(step.node->kind());
  const bool matmul = page != nullptr && page->arithmetic == ops::Arithmetic::Matmul;
  node.element_bytes = static_cast<uint8_t>(size_of(asked && matmul && is_float(own) ? *asked : own));
  return node;
}

}  // namespace

Result<Workload> workload_of(const Graph& graph, const std::vector<State>& states,
                             std::span<const TensorInfo> inputs, const std::string& precision) {
  DeviceSet devices{DeviceOptions{}};
  const std::vector<const std::byte*> values(inputs.size());
  FoldedConstants folded;
  ConvertedConstants converted;
  KernelTuner kernel_tuner{TuningOptions{}};
  RT_ASSIGN(const std::unique_ptr<Program> program, legalize({.graph = graph,
                                                              .states = states,
                                                              .devices = devices,
                                                              .inputs = inputs,
                                                              .values = values,
                                                              .folded = folded,
                                                              .converted = converted,
                                                              .kernel_tuner = kernel_tuner,
                                                              .costs_only = true}));
  const std::optional<DType> asked = dtype_from_name(precision);
  Workload work;
  work.hash = kHashSeed;
  for (const Step& step : program->steps) {
    const NodeWork node = work_of(step, *program, asked);
    work.weight_bytes += node.weight_bytes;
    const double identity[] = {static_cast<double>(step.node->kind()),
                               static_cast<double>(node.element_bytes), node.flops, node.bytes,
                               node.weight_bytes};
    work.hash = hash_bytes(identity, sizeof(identity), work.hash);
    work.nodes.push_back(node);
  }
  for (const TensorInfo& input : inputs) work.input_bytes += static_cast<double>(input.bytes());
  for (const Ref output : program->outputs)
    work.output_bytes += static_cast<double>(program->values[output].info.bytes());
  return work;
}

double node_seconds(const NodeWork& node, const Workload& work, const DeviceProfile& profile) {
  // A profile of an earlier version has one curve for both.
  const bool lacks_curve =
      node.family == Family::ConvDirect && profile.curves[static_cast<size_t>(node.family)].count == 0;
  const TimeCurve& curve = profile.curves[static_cast<size_t>(lacks_curve ? Family::Conv : node.family)];
  const double share = kTypicalShare[static_cast<size_t>(node.family)];
  const double by_curves = moving_seconds(profile, node.bytes);
  const bool has_curves = by_curves > 0;
  const double moving =
      has_curves ? by_curves : profile.launch_seconds + node.bytes / profile.memory_bandwidth;
  const bool by_flops = is_bound_by_flops(node.family);
  const TimeCurve& weights = profile.curves[static_cast<size_t>(Family::Weights)];
  const double reading = has_curves && work.weight_bytes > 0
                             ? node.weight_bytes / work.weight_bytes *
                                   (by_flops && node.family != Family::Recurrent && weights.count > 0 &&
                                            work.weight_bytes >= weights.points[0].work
                                        ? weights.at(work.weight_bytes)
                                        : moving_seconds(profile, work.weight_bytes))
                             : node.weight_bytes / profile.memory_bandwidth;
  const double rate = !by_flops || node.element_bytes >= 4 ? 1
                      : node.element_bytes == 2            ? profile.rate_16bit
                                                           : profile.rate_8bit;
  double seconds = 0;
  if (curve.count > 0)
    seconds = curve.at((by_flops ? node.flops / rate : node.bytes) / node.block_share);
  else
    seconds = profile.launch_seconds + (by_flops ? node.flops / (share * rate * profile.flops_f32)
                                                 : node.bytes / (share * profile.memory_bandwidth)) /
                                           node.block_share;
  return std::max({seconds, moving, reading});
}

std::vector<float> step_seconds(const Program& program, uint32_t first, uint32_t last,
                                const DeviceProfile& profile) {
  std::vector<float> seconds(last - first);
  Workload work;
  for (const bool weighs : {true, false})  // a node's seconds depend on the weights of all nodes
    for (uint32_t s = first; s < last; ++s) {
      const NodeWork node = work_of(program.steps[s], program, std::nullopt);
      if (weighs)
        work.weight_bytes += node.weight_bytes;
      else
        seconds[s - first] = static_cast<float>(node_seconds(node, work, profile));
    }
  return seconds;
}

double run_seconds(const Workload& work, bool host_memory, const DeviceProfile& profile) {
  double seconds = profile.submit_seconds;
  for (const NodeWork& node : work.nodes) seconds += node_seconds(node, work, profile);
  if (!host_memory) seconds += (work.input_bytes + work.output_bytes) / profile.transfer_bandwidth;
  return seconds;
}

}  // namespace librt
