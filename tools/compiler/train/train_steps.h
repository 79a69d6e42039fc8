// The steps that add training entries to a model, in the order in which they run. Private to train_entry.cpp
// and the files named here.
//
// Knows: what the steps hand to each other. Must not know: how a gradient, a loss or an optimizer is
// computed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/convert_floats.h"
#include "tools/compiler/train/train_entry.h"

namespace librt::compiler {

/// Operands of batch normalization that hold running values, which become statistics and not weights.
inline constexpr size_t kRunningMean = 3;
inline constexpr size_t kRunningVariance = 4;

inline bool is_batch_norm(const Node& node) {
  return node.kind() == OpKind::BatchNorm || node.kind() == OpKind::BatchNormTrain;
}
/// Whether its scale or bias is trained: then it uses the batch's statistics in training.
bool in_training_mode(const Graph& graph, const Node& batch_norm);

/// Whether training computes in f32 instead: 16-bit floats.
inline bool is_narrow(DType dtype) {
  return is_exchangeable(dtype) && dtype != DType::F32;
}

/// What all steps work on.
struct Training {
  ModelGraph& model;
  const TrainOptions& options;
  TrainReport& report;
  Graph& infer;  ///< of the entry `infer`
  StateTable states;
  /// The file's type of weights and inputs that are f32 now, by name.
  std::map<std::string, DType> stored_types;
  std::vector<std::vector<size_t>> buckets;  ///< of gradients that are summed over ranks in one operation

  void add_entry(const char* name, Graph graph);
};

// --- 1. trained_states.cpp

/// Turns the weights to train into states of the infer graph, 16-bit ones in f32 (master weights); running
/// values of batch normalization become statistics.
Status choose_states(Training& training);

// --- 2. infer_form.cpp

/// Writes `infer` again: 16-bit weights are read from their f32 masters, inputs and outputs are f32, and
/// batch normalization computes with its running values.
Status make_infer(Training& training);

// --- 3. training_form.cpp

/// The net in training mode: batch normalization uses the batch's statistics, quantization ranges follow the
/// batches, random values differ from step to step, adapters have dropout, composites without a gradient rule
/// are inlined. Their states' next values are appended to `updates`.
Status make_training_form(Training& training, Graph& graph, std::vector<StateUpdate>& updates);

// --- 4. backward.cpp

/// A graph with loss and gradients, before the optimizer.
struct Backward {
  Graph graph;
  std::vector<StateUpdate> statistics;  ///< running values, counters of random numbers
  std::vector<ValueId> outputs;         ///< the loss, then those of infer
  std::vector<Gradient> gradients;
  ValueId loss_scale = kNoValue;
};
/// The training form, the loss and the gradients of all trained weights.
Status make_backward(Training& training, Backward& backward);

/// Sums gradients over the ranks, bucket by bucket; a sharded optimizer takes whole buckets. Without data
/// parallelism, the gradients as they are.
std::vector<Gradient> sum_over_ranks(Training& training, Builder& builder,
                                     const std::vector<Gradient>& gradients);

// --- 5. train_step: train_entry.cpp; or also accumulate_entries.cpp

/// The entries `accumulate` and `update`.
Status add_accumulation(Training& training);

}  // namespace librt::compiler
