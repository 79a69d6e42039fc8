// If and Loop for tests: bodies with their captured values, and the nodes that own them.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tools/compiler/builder.h"

namespace librt::test {

/// A body with its captured values, which become its last inputs.
struct Body {
  Graph graph;
  compiler::Builder build{graph};
  std::vector<ValueId> captured;

  Body(const Graph& outer, std::vector<ValueId> carried, std::vector<ValueId> captures, bool loop)
      : captured(std::move(captures)) {
    if (loop) {
      build.input("iteration", DType::I64, {});
      build.input("condition", DType::Bool, {});
    }
    for (const auto* list : {&carried, &captured})
      for (const ValueId id : *list) {
        std::vector<Dim> dims = outer[id].dims;
        for (Dim& dim : dims)
          if (dim.symbol >= 0) dim.symbol = graph.symbol(outer.symbols[static_cast<size_t>(dim.symbol)].name);
        build.input("", outer[id].dtype, dims);
      }
  }
  ValueId in(size_t i) const { return graph.inputs[i]; }
};

inline std::vector<ValueId> emit_if(compiler::Builder& build, ValueId condition, Body& yes, Body& no) {
  Node node;
  node.op = make_op(op::IfAttributes{});
  node.inputs = {condition};
  node.inputs.insert(node.inputs.end(), yes.captured.begin(), yes.captured.end());
  EXPECT_TRUE(yes.build.status().ok() && no.build.status().ok());
  node.bodies.push_back(std::move(yes.graph));
  node.bodies.push_back(std::move(no.graph));
  return build.emit_node(std::move(node));
}

inline std::vector<ValueId> emit_loop(compiler::Builder& build, ValueId trips, ValueId condition,
                                      std::vector<ValueId> carried, Body& body) {
  Node node;
  op::LoopAttributes attributes;
  attributes.carried = static_cast<int64_t>(carried.size());
  node.op = make_op(attributes);
  node.inputs = {trips, condition};
  node.inputs.insert(node.inputs.end(), carried.begin(), carried.end());
  node.inputs.insert(node.inputs.end(), body.captured.begin(), body.captured.end());
  EXPECT_TRUE(body.build.status().ok()) << body.build.status().message();
  node.bodies.push_back(std::move(body.graph));
  return build.emit_node(std::move(node));
}

}  // namespace librt::test
