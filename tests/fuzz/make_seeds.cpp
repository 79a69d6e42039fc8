// Writes the seeds of the fuzz targets into a folder: make_seeds FOLDER.
#include <cstdio>
#include <fstream>
#include <string>

#include "runtime/model/checkpoint.h"
#include "tests/unit/model_support.h"
#include "tools/compiler/writer.h"

namespace {

/// A model without weights, so that more mutations hit the graph.
librt::ModelGraph bare_model() {
  librt::ModelGraph model = librt::testing::sample_model();
  model.states.clear();
  model.entries.clear();
  librt::Graph graph;
  const librt::ValueId x =
      graph.add_value({.name = "x", .role = librt::Role::Input, .dims = {{.extent = 2}, {.extent = 6}}});
  const librt::ValueId y = graph.add_value({.name = "y", .dims = {{.extent = 2}, {.extent = 1}}});
  graph.inputs = {x};
  graph.outputs = {y};
  librt::op::ReduceSumAttributes sum;
  sum.axes = {1};
  graph.nodes.push_back({.op = librt::make_op(std::move(sum)), .name = "sum", .inputs = {x}, .outputs = {y}});
  model.entries.push_back({"infer", std::move(graph)});
  return model;
}

librt::Checkpoint checkpoint() {
  librt::Checkpoint out;
  out.producer = "seed";
  out.tensors = librt::testing::sample_model().states;
  out.tensors[1].initial = librt::testing::blob_of_values<int32_t>({7});
  out.metadata = {{"loss", "0.25"}};
  out.opaque = {{"sampler", librt::testing::blob_of_values<uint8_t>({1, 2, 3})}};
  return out;
}

/// Files of the cache folder; the first byte is the number that fuzz_cache knows them by.
librt::Status write_cache_files(const std::string& folder) {
  const std::pair<const char*, std::string> seeds[] = {
      {"profile", std::string(1, '\0') + "flops_f32 1.5e+11\nmemory_bandwidth 2e10\ntransfer_bandwidth 1e12\n"
                                         "launch_seconds 2e-06\nsubmit_seconds 1e-6\n"},
      {"tuning",
       "\1Conv.0f3a f32[1,8,8,3]@1 f32[4,3,3,3]c 8d20\tconv.winograd\nMatMul.11 - f32[2,2] 7\tmatmul\n"},
      {"tests", "\2key\nbegun\ta\nright\ta\nbegun\tconv\nwrong\tconv\tdiffers by 1\nbegun\tb\ndropped\tb\n"},
      {"pipelines", std::string("\3RTVKPC01") + std::string(24, '\0') + "bytes of a driver"}};
  for (const auto& [name, bytes] : seeds) {
    const std::string path = folder + "/cache_" + name;
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    file.close();
    if (!file) return librt::Status::make(librt::Code::Io, "cannot write ", path);
  }
  return {};
}

librt::Status write(const std::string& folder) {
  RT_TRY(write_cache_files(folder));
  RT_TRY(librt::compiler::write_model(librt::testing::sample_model(), folder + "/sample.rt"));
  RT_TRY(librt::compiler::write_model(bare_model(), folder + "/bare.rt"));
  return librt::write_checkpoint(folder + "/sample.rtc", checkpoint());
}

}  // namespace

int main(int count, char** arguments) {
  const librt::Status status =
      count == 2 ? write(arguments[1]) : librt::invalid_argument("usage: make_seeds FOLDER");
  if (!status.ok()) std::fprintf(stderr, "make_seeds: %s\n", status.message().c_str());
  return status.ok() ? 0 : 2;
}
