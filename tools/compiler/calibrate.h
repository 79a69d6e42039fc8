// Post-training quantization: what of a graph in f32 shall be computed in 8 bits, and how that is written
// down as QuantizeLinear and DequantizeLinear, which the pass `quantize` makes integer arithmetic of.
//
// Knows: which operators have 8-bit kernels, scales, corrections. Must not know: data, sessions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/compiler/quantize_weights.h"

namespace rt::compiler {

/// The numbers that a tensor takes, or as much of them as its codes shall cover.
struct Range {
  float low = 0, high = 0;
};

struct QuantizationChoice {
  std::vector<NodeId> products;  ///< Conv and MatMul with constant weights
  std::vector<ValueId> values;   ///< f32 tensors that become codes
  std::vector<size_t> scale_of;  ///< for each value; equal numbers share a scale (parts of a Concat)
};

/// keep(name): whether the node of this name stays in f32. The graph has its epilogues, but no residuals in
/// them.
QuantizationChoice choose_quantized(const Graph& graph, const KeepPredicate& keep);
/// The same for a graph that is not optimized, where normalization, bias and activation still follow
/// products.
QuantizationChoice choose_fake_quantized(const Graph& graph, const KeepPredicate& keep);

/// Gives neighbouring channels between a convolution and a depthwise one, or the other way, similar ranges:
/// what one's weights are divided by, the other's are multiplied with (Nagel et al. 2019, section 4.1). Exact
/// in real numbers. How many pairs were changed.
size_t equalize_channels(Graph& graph);

/// What was seen of a tensor. mean: for each index of its last axis; empty: nothing is corrected by it.
struct Observed {
  Range range;
  std::vector<double> mean;
};

/// Writes the choice into the graph: u8 codes for values, i8 codes with a scale for each channel for weights.
/// Each product's bias takes back what the rounding of its weights adds to the mean of its result.
void insert_quantization(Graph& graph, const QuantizationChoice& choice,
                         const std::map<ValueId, Observed>& observed);

/// The graph with two outputs for each product: its result, and the result with its input and weight
/// quantized but everything before in f32. So the difference is what this node adds.
Graph error_graph(const Graph& graph, const QuantizationChoice& choice,
                  const std::map<ValueId, Observed>& observed);

}  // namespace rt::compiler
