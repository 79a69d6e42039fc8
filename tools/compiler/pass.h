// A pass: a named rewrite of a graph.
//
// Knows: what a pass may see. Passes are plain functions in tools/compiler/passes/*.cpp; their order is in
// pipeline.cpp.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/compiler/builder.h"

namespace librt::compiler {

/// What a pass gets besides the graph.
struct PassContext {
  const std::vector<State>& states;
  InferenceCache* inferred = nullptr;           ///< of the graph, if it has not changed since
  DType dtype = DType::F32;                     ///< to compute GEMM-like operators in
  std::span<const std::string> keep_fp32 = {};  ///< shell patterns over names of nodes that stay in f32
  std::set<std::string>* unmatched = nullptr;   ///< a pass removes the patterns that matched a node
  bool residuals = true;  ///< additions of two tensors may be fused into a MatMul or Conv
  bool widen = false;     ///< 16-bit constants that are read in f32 become f32
};

/// Rewrites `graph` in place and keeps it valid (runtime/graph/verify.h): inputs, outputs and state updates
/// stay, in number, order, name, dtype and dims. Rewrites are exact unless the pass's file says that it
/// reassociates.
using PassFunction = Status (*)(Graph& graph, const PassContext& context);

struct Pass {
  std::string_view name;
  std::string_view summary;  ///< one line, for `rtconvert --list-passes`
  PassFunction run;
};

}  // namespace librt::compiler
