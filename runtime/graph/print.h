// The text form of a graph, for people and for tests that compare text.
//
//   graph 'infer'
//     input %image : f32[batch,224,224,3]
//     constant %w1 : f32[64,7,7,3]
//     %y1 : f32[batch,112,112,64] = Conv(%image, %w1) {strides=[2,2], pads=[3,3,3,3],
//     epilogue={activation=Relu}} %y2 : f32[batch,12544,64] = Reshape(%y1, i64[3]<-1,12544,64>) output %y2
//
// A value is written %name, or %id where it has no name, or %name#id where others have the same. An unknown
// dimension is "?". Attributes that have their default are left out.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace librt {

struct PrintOptions {
  bool bodies =
      false;  ///< also the bodies of all composite nodes, indented as those of If, Loop and Elementwise
  int64_t inline_elements = 8;  ///< constants up to this size are written where they are used
};

std::string print(const Graph& graph, const PrintOptions& options = {});
/// States, then all entries.
std::string print(const ModelGraph& model, const PrintOptions& options = {});
/// "Conv {strides=[2,2]}": an operator and its attributes.
std::string print(const OpAttributes& op);

}  // namespace librt
