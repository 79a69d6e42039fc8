// The model of an operator case: one node, its variable operands as inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/cases/case.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace librt::test {

struct CaseModel {
  ModelGraph model;            ///< one entry, "infer"
  std::vector<size_t> inputs;  ///< the case's input of each graph input; SIZE_MAX: an f32[1] that is not used
};

/// values: case_values(c), or others of any shape. With `symbolic`, axis 0 of every variable input that has
/// the extent of the first one's becomes the symbol "n".
inline Result<CaseModel> case_model(const Case& c, const std::vector<std::optional<ops::HostTensor>>& values,
                                    bool symbolic) {
  CaseModel made;
  made.model.entries.push_back({.name = "infer", .graph = {}});
  Graph& graph = made.model.entries.back().graph;
  compiler::Builder builder(graph);
  std::vector<ValueId> operands;
  int64_t extent = -1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) {
      operands.push_back(kNoValue);
      continue;
    }
    const ops::HostTensor& value = *values[i];
    if (c.inputs[i]->constant) {
      operands.push_back(builder.constant(value.info, Blob::copy_of(value.bytes.data(), value.bytes.size())));
      continue;
    }
    std::vector<Dim> dims;
    for (int64_t dim : value.info.shape) dims.push_back({.extent = dim});
    if (symbolic && !dims.empty()) {
      if (extent < 0) extent = dims[0].extent;
      if (dims[0].extent == extent) dims[0] = {.symbol = graph.symbol("n")};
    }
    operands.push_back(builder.input(text("x", i), value.info.dtype, dims));
    made.inputs.push_back(i);
  }
  if (made.inputs.empty()) {  // a graph needs an input
    builder.input("unused", DType::F32, {{.extent = 1}});
    made.inputs.push_back(SIZE_MAX);
  }
  builder.set_scope(c.name);
  for (ValueId output : builder.emit_many(c.op, operands, c.outputs)) {
    if (!builder.status().ok()) break;
    graph.values[output].name = text("y", graph.outputs.size());
    builder.output(output);
  }
  RT_TRY(Status(builder.status()));
  RT_TRY(compiler::expand_composites(graph, made.model.states));
  return made;
}

}  // namespace librt::test
