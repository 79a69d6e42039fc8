// Writes the seeds of the fuzz targets into a folder: make_seeds FOLDER.
#include <cstdio>
#include <string>

#include "runtime/model/checkpoint.h"
#include "tests/unit/model_support.h"
#include "tools/compiler/writer.h"

namespace {

/// A model without weights, so that more mutations hit the graph.
rt::ModelGraph bare_model() {
  rt::ModelGraph model = rt::testing::sample_model();
  model.states.clear();
  model.entries.clear();
  rt::Graph graph;
  const rt::ValueId x =
      graph.add_value({.name = "x", .role = rt::Role::Input, .dims = {{.extent = 2}, {.extent = 6}}});
  const rt::ValueId y = graph.add_value({.name = "y", .dims = {{.extent = 2}, {.extent = 1}}});
  graph.inputs = {x};
  graph.outputs = {y};
  rt::op::ReduceSumAttributes sum;
  sum.axes = {1};
  graph.nodes.push_back({.op = rt::make_op(std::move(sum)), .name = "sum", .inputs = {x}, .outputs = {y}});
  model.entries.push_back({"infer", std::move(graph)});
  return model;
}

rt::Checkpoint checkpoint() {
  rt::Checkpoint out;
  out.producer = "seed";
  out.tensors = rt::testing::sample_model().states;
  out.tensors[1].initial = rt::testing::blob_of_numbers<int32_t>({7});
  out.metadata = {{"loss", "0.25"}};
  out.opaque = {{"sampler", rt::testing::blob_of_numbers<uint8_t>({1, 2, 3})}};
  return out;
}

rt::Status write(const std::string& folder) {
  RT_TRY(rt::compiler::write_model(rt::testing::sample_model(), folder + "/sample.rt"));
  RT_TRY(rt::compiler::write_model(bare_model(), folder + "/bare.rt"));
  return rt::write_checkpoint(folder + "/sample.rtc", checkpoint());
}

}  // namespace

int main(int count, char** arguments) {
  const rt::Status status =
      count == 2 ? write(arguments[1]) : rt::invalid_argument("usage: make_seeds FOLDER");
  if (!status.ok()) std::fprintf(stderr, "make_seeds: %s\n", status.message().c_str());
  return status.ok() ? 0 : 2;
}
