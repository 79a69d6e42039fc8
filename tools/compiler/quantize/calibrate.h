// Post-training quantization: chooses the parts of an f32 graph to compute in 8 bits and writes them as
// QuantizeLinear and DequantizeLinear, which the pass `quantize` turns into integer arithmetic.
//
// Knows: which operators have 8-bit kernels, scales, corrections. Must not know: data, sessions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/compiler/quantize/quantize_weights.h"

namespace librt::compiler {

/// The range of a tensor's values, or the part of it that quantization covers.
struct Range {
  float low = 0, high = 0;
};

struct QuantizationChoice {
  std::vector<NodeId> matmuls;   ///< Conv and MatMul with constant weights
  std::vector<ValueId> values;   ///< f32 tensors to quantize
  std::vector<size_t> scale_of;  ///< for each value; equal entries share a scale (parts of a Concat)
};

/// keep(name): whether the node of this name stays in f32. unfit: tensors that 8 bits cannot hold. Epilogues
/// must be fused already, but without residuals.
QuantizationChoice choose_quantized(const Graph& graph, const KeepPredicate& keep,
                                    const std::set<ValueId>& unfit = {});
/// The same for an unoptimized graph, where normalization, bias and activation are still separate nodes after
/// a Conv or MatMul.
QuantizationChoice choose_fake_quantized(const Graph& graph, const KeepPredicate& keep,
                                         const std::set<ValueId>& unfit = {});

/// Cross-layer equalization of a convolution and an adjacent depthwise one (in either order): divides the
/// weights of one and multiplies those of the other so that shared channels have similar ranges (Nagel et al.
/// 2019, section 4.1). Exact in real arithmetic. Returns how many pairs were changed.
size_t equalize_channels(Graph& graph);

/// Calibration statistics of a tensor. mean: for each index of its last axis; empty: no bias correction.
struct Observed {
  Range range;
  std::vector<double> mean;
};

/// Writes the choice into the graph: values in u8, weights in i8 with a scale per channel. Each Conv's or
/// MatMul's bias corrects the mean error that rounding the weights adds to the result.
void insert_quantization(Graph& graph, const QuantizationChoice& choice,
                         const std::map<ValueId, Observed>& observed);

/// The graph with two outputs for each Conv and MatMul: its result, and the result with input and weight
/// quantized but everything before in f32. Their difference is the error that this node adds.
Graph error_graph(const Graph& graph, const QuantizationChoice& choice,
                  const std::map<ValueId, Observed>& observed);

}  // namespace librt::compiler
