// Helpers for pass tests: running passes, and comparing a graph's results before and after.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "runtime/core/element.h"
#include "runtime/graph/print.h"
#include "runtime/graph/verify.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace librt::compiler::test {

inline constexpr int64_t kSymbolExtent = 3;

/// Reproducible values in [low, high] on all platforms.
inline std::vector<std::byte> random_bytes(const TensorInfo& info, uint32_t seed, double low = -2,
                                           double high = 2) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(info.bytes());
  for (int64_t i = 0; i < info.elements(); ++i) {
    const double unit = static_cast<double>(random()) / 4294967295.0;
    store_element(bytes.data(), info.dtype, i, low + (high - low) * unit);
  }
  return bytes;
}

inline ValueId random_constant(Builder& b, Shape shape, uint32_t seed, double low = -1, double high = 1,
                               DType dtype = DType::F32) {
  const TensorInfo info{.dtype = dtype, .shape = shape};
  return b.constant(info, Blob::own(random_bytes(info, seed, low, high)));
}

inline std::vector<ops::HostTensor> results_of(const Graph& graph) {
  std::vector<ops::HostTensor> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph[graph.inputs[i]];
    TensorInfo info{.dtype = value.dtype, .shape = {}};
    for (const Dim& dim : value.dims) info.shape.push_back(dim.is_known() ? dim.extent : kSymbolExtent);
    ops::HostTensor tensor(info);
    tensor.bytes = random_bytes(info, static_cast<uint32_t>(i + 1));
    inputs.push_back(std::move(tensor));
  }
  std::vector<ConstTensorView> views;
  for (const ops::HostTensor& input : inputs) views.push_back(input.view());
  auto results = ops::evaluate_graph(graph, views);
  EXPECT_TRUE(results.ok()) << results.status().message() << print(graph);
  return results.ok() ? std::move(*results) : std::vector<ops::HostTensor>{};
}

/// Runs the passes and checks that the graph stays valid, keeps its interface, and computes the same results.
inline void transform(Graph& graph, const std::vector<std::string>& passes, double tolerance = 1e-5) {
  Graph reference = graph;
  for (const std::string& pass : passes) {
    const Status status = run_pass(pass, graph, {});
    ASSERT_TRUE(status.ok()) << pass << ": " << status.message();
    const Status valid = verify(graph);
    ASSERT_TRUE(valid.ok()) << pass << ": " << valid.message() << print(graph);
  }
  ASSERT_EQ(reference.inputs.size(), graph.inputs.size());
  ASSERT_EQ(reference.outputs.size(), graph.outputs.size());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const Value &before = reference[reference.outputs[i]], &after = graph[graph.outputs[i]];
    EXPECT_EQ(before.name, after.name);
    EXPECT_EQ(before.dtype, after.dtype);
    EXPECT_EQ(before.dims, after.dims);
  }
  ASSERT_TRUE(expand_composites(reference, {}).ok());
  Graph expanded = graph;
  ASSERT_TRUE(expand_composites(expanded, {}).ok());
  const auto want = results_of(reference), got = results_of(expanded);
  ASSERT_EQ(want.size(), got.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(want[k].info, got[k].info);
    for (int64_t i = 0; i < want[k].info.elements(); ++i) {
      const double w = load_element(want[k].bytes.data(), want[k].info.dtype, i);
      const double g = load_element(got[k].bytes.data(), got[k].info.dtype, i);
      ASSERT_NEAR(w, g, tolerance * (1 + std::abs(w))) << "output " << k << ", element " << i << "\n"
                                                       << print(graph);
    }
  }
}

inline size_t count(const Graph& graph, OpKind kind) {
  size_t found = 0;
  for (const Node& node : graph.nodes) found += node.kind() == kind;
  return found;
}

/// Only the lines of nodes: "%y : f32[2] = Relu(%x)".
inline std::string nodes_text(const Graph& graph) {
  std::string out, line;
  for (const char c : print(graph, {.inline_elements = 2}) + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (line.find(" = ") != std::string::npos) out += line.substr(line.find_first_not_of(' ')) + "\n";
    line.clear();
  }
  return out;
}

/// A graph under construction with its builder.
struct Net {
  Graph graph;
  Builder b{graph};

  ValueId input(std::vector<Dim> dims, std::string name = "x", DType dtype = DType::F32) {
    return b.input(std::move(name), dtype, std::move(dims));
  }
  Dim symbol(std::string_view name) { return {.symbol = graph.symbol(name)}; }
  void output(ValueId id, std::string name = "y") {
    ASSERT_TRUE(b.status().ok()) << b.status().message();
    graph[id].name = std::move(name);
    b.output(id);
  }
  ValueId unary(auto attributes, ValueId x) { return b.emit(std::move(attributes), {x}); }
  ValueId to_last(ValueId x) { return b.transpose(x, {0, 2, 3, 1}); }
  ValueId to_first(ValueId x) { return b.transpose(x, {0, 3, 1, 2}); }
  /// Transposed on both sides, as imported from a channels-first model.
  ValueId conv(ValueId x, Shape weight, uint32_t seed, std::vector<int64_t> pads = {}, int64_t groups = 1,
               std::vector<int64_t> strides = {}) {
    op::ConvAttributes attributes;
    attributes.pads = std::move(pads);
    attributes.strides = std::move(strides);
    attributes.groups = groups;
    const ValueId w = random_constant(b, weight, seed);
    return to_first(b.emit(std::move(attributes), {to_last(x), w}));
  }
};

}  // namespace librt::compiler::test
