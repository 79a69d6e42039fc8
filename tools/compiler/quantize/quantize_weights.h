// Quantization without data: MatMuls get integer weights, while activations stay in f32 or are quantized
// dynamically at every run. All in a graph, its branches and loops' bodies.
#pragma once

#include <functional>
#include <string>

#include "runtime/graph/graph.h"

namespace librt::compiler {

/// Which nodes stay in f32, by name.
using KeepPredicate = std::function<bool(const std::string&)>;

/// MatMul with a constant weight [K,N] as QuantizedMatMul of a DynamicQuantizeLinear, with a scale for each
/// column. Returns how many.
Result<size_t> quantize_dynamically(Graph& graph, const std::vector<State>& states,
                                    const KeepPredicate& keep);

/// Constant tables [rows,width] of at least 64 rows and 16 columns that only Gathers of rows read, as
/// embeddings are: 8-bit values with a scale for each row; rows are dequantized after the Gather. Returns how
/// many tables. Run after the MatMuls, which may read a table too.
Result<size_t> quantize_tables(Graph& graph, const std::vector<State>& states, const KeepPredicate& keep);

/// MatMul with a constant weight [K,N] as WeightQuantizedMatMul with `bits` 8 or 4. A weight whose K is not a
/// multiple of group_size stays in f32. Returns how many became integers.
Result<size_t> quantize_weights(Graph& graph, const std::vector<State>& states, const KeepPredicate& keep,
                                int64_t bits, int64_t group_size);

}  // namespace librt::compiler
