// Quantization-aware training (Jacob et al. 2018): a net is trained with tensors and weights rounded to their
// 8-bit quantized values, and ends in the integer arithmetic that calibration gives.
//
// Knows: FakeQuantize, the states that hold ranges. Must not know: data, losses, sessions.
//
// Weights have a scale for each channel, from their largest magnitude at every step. A tensor's range is two
// states, NAME.range_low and NAME.range_high: moving averages of each batch's minimum and maximum. They start
// from the first batch, or from calibration data.
#pragma once

#include <set>

#include "tools/compiler/quantize/calibrate.h"
#include "tools/compiler/train/training_graph.h"

namespace librt::compiler {

/// Inserts FakeQuantize for the choice (choose_fake_quantized) into the graph of `infer`, before a training
/// entry is added.
void insert_fake_quantization(Graph& graph, std::vector<State>& states, const QuantizationChoice& choice,
                              const std::map<ValueId, Observed>& observed);

/// In a training step: FakeQuantize with its range updated by the tensor; the range's updates are appended.
/// Empty for a node of another kind, or one whose range is no state. momentum: weight of the old range.
std::vector<ValueId> emit_observed(Builder& builder, const Node& node, float momentum,
                                   std::vector<StateUpdate>& updates);

bool is_quantization_aware(const Graph& graph);

/// Whether the state is one end of a tensor's range, which has no counterpart in the source model.
bool is_range(const State& state);

/// Run before the passes fold the trained weights: removes the weights' FakeQuantize nodes, since Conv and
/// MatMul get integer weights. Returns the names of those that read quantized tensors but were trained with
/// weights in f32.
std::set<std::string> release_weights(Graph& graph);

struct TrainedQuantization {
  size_t matmuls = 0;              ///< Conv and MatMul nodes with integer weights
  std::vector<std::string> zeros;  ///< tensors that were zero in all of the training; they stay in f32
};

/// Replaces FakeQuantize by QuantizeLinear and DequantizeLinear, in an optimized graph (without residuals in
/// epilogues). An error if no range has seen anything but zeros, as before the first step.
Result<TrainedQuantization> quantize_as_trained(Graph& graph, const std::set<std::string>& kept);

}  // namespace librt::compiler
