// Quantization without data: products whose weights become integers, while what they are multiplied with
// stays in f32 or is quantized at every run.
#pragma once

#include <functional>
#include <string>

#include "runtime/graph/graph.h"

namespace rt::compiler {

/// Which nodes stay in f32, by name.
using KeepPredicate = std::function<bool(const std::string&)>;

/// MatMul with a constant weight [K,N] as QuantizedMatMul of a DynamicQuantizeLinear, with a scale for each
/// column. How many.
Result<size_t> quantize_dynamically(Graph& graph, const std::vector<State>& states,
                                    const KeepPredicate& keep);

/// Constant tables [rows,width] of at least 64 rows and 16 columns that only Gathers of rows read, as
/// embeddings are: codes of 8 bits with a scale for each row. What is read is multiplied behind the Gather.
/// How many tables. After the products, which may read a table too.
Result<size_t> quantize_tables(Graph& graph, const std::vector<State>& states, const KeepPredicate& keep);

/// MatMul with a constant weight [K,N] as WeightQuantizedMatMul with `bits` 8 or 4. A K that group_size does
/// not divide is left in f32. How many became integers.
Result<size_t> quantize_weights(Graph& graph, const std::vector<State>& states, const KeepPredicate& keep,
                                int64_t bits, int64_t group_size);

}  // namespace rt::compiler
