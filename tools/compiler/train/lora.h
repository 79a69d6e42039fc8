// Low-rank adapters (LoRA, Hu et al. 2021): W x of a MatMul or Conv with a frozen weight W becomes
// W x + scale B A x, with A of `rank` rows and B of `rank` columns.
//
// Knows: which weights can have adapters, the nodes that compute them, how to add B A to W. Must not know:
// training, passes, files.
//
// A and B are states (`NAME.lora_a`, `NAME.lora_b`, parameters) of every entry; so is the factor alpha / rank
// (`lora.scale`, a statistic), so that an adapter is complete without its base model and can be swapped
// between two runs. They are f32 whatever the type of W is, and nodes that share W share them.
//
//   MatMul, W [in,out] or [out,in]:   A [rank,in],            B [out,rank]
//   Conv, W [out,K..,in/groups]:      A [groups rank,K..,in/groups], B [out,1..,rank]
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::compiler {

inline constexpr const char* kLoraScaleState = "lora.scale";

struct LoraOptions {
  int64_t rank = 8;   ///< at most; a small weight gets its full rank
  float alpha = 8;    ///< B A is multiplied by alpha / rank
  float dropout = 0;  ///< of A's input, in training
  /// Shell patterns over names of weights and of the nodes that read them; empty: every weight of a MatMul or
  /// Conv.
  std::vector<std::string> targets;
  uint64_t seed = 1;  ///< of A, uniform in +-1/sqrt(elements of a row); B is zero
};

struct LoraReport {
  std::vector<std::string> adapted;
  std::vector<std::pair<std::string, std::string>> skipped;  ///< targets that cannot be adapted, and why
  int64_t elements = 0;                                      ///< of all A and B
};

/// Writes adapters into the entry `infer`, which must be the only one and not yet optimized. Results are the
/// same until B changes. On an error the model is unchanged.
Status add_adapters(ModelGraph& model, const LoraOptions& options, LoraReport* report);

/// Whether the node multiplies by A: its first input is where training applies dropout.
bool reads_adapter_input(const Graph& graph, const Node& node);

/// A weight that an adapter was added to.
struct MergedWeight {
  State weight;            ///< name, type and new bytes
  bool is_shared = false;  ///< other operators still read the old weight
};

/// Adds scale B A to the weights of the entry `infer`, which must not be optimized yet, and replaces those
/// that the adapter holds whole (trained with --trainable). No nodes are added, except that a weight which
/// other operators read too (an embedding tied to the classifier) is copied. Errors list everything that does
/// not match the model; then the model is unchanged.
Result<std::vector<MergedWeight>> merge_adapter(ModelGraph& model, const std::vector<State>& adapter);

}  // namespace librt::compiler
