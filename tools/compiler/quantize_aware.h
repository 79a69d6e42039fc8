// Quantization-aware training (Jacob et al. 2018): a net is trained while tensors and weights go through the
// codes that they will have in 8 bits, and ends in the integer arithmetic that calibration gives.
//
// Knows: FakeQuantize, the states that hold ranges. Must not know: data, losses, sessions.
//
// Weights have a scale for each channel, from their largest magnitude at every step. A tensor's range is two
// states, NAME.range_low and NAME.range_high: moving means of what each batch holds. They begin with the
// first batch, or with what was seen of calibration data.
#pragma once

#include <set>

#include "tools/compiler/calibrate.h"
#include "tools/compiler/training_graph.h"

namespace rt::compiler {

/// Puts the choice (choose_fake_quantized) into the graph of `infer`, before a training entry is added.
void insert_fake_quantization(Graph& graph, std::vector<State>& states, const QuantizationChoice& choice,
                              const std::map<ValueId, Observed>& observed);

/// In a training step: FakeQuantize with a range that has seen its tensor; the range's updates are appended.
/// Empty for a node of another kind, or one whose range is no state. momentum: weight of the old range.
std::vector<ValueId> emit_observed(Builder& builder, const Node& node, float momentum,
                                   std::vector<StateUpdate>& updates);

bool is_quantization_aware(const Graph& graph);

/// What is done before the passes fold the trained weights: they are read as they are, since products get
/// integer weights. The names of products that read quantized tensors but were trained with weights in f32.
std::set<std::string> release_weights(Graph& graph);

/// Makes QuantizeLinear and DequantizeLinear of what was trained, in an optimized graph (without residuals in
/// epilogues). How many products have integer weights. A range that no step has seen is an error.
Result<size_t> quantize_as_trained(Graph& graph, const std::set<std::string>& kept);

}  // namespace rt::compiler
