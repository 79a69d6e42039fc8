// The launches of training steps of zoo nets on the emulated CUDA device, by kernel, against a file. They are
// counted and not run.
//
//   training_launches --check FILE | --write FILE
//
// A change that adds or saves launches writes the file again (tests/training/launches.txt says how) and is so
// seen in review.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "runtime/core/text.h"
#include "tests/training/step_session.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/writer.h"
#include "tools/compiler/zoo/zoo.h"

namespace librt {
namespace {

using compiler::Optimizer;

struct Case {
  const char* net;
  std::map<std::string, int64_t> extents;
  Optimizer optimizer;
  const char* optimizer_name;
  compiler::Loss loss = compiler::Loss::CrossEntropy;
  int64_t class_axis = 1;
};

const Case kCases[] = {
    {"lenet5", {{"batch", 32}}, Optimizer::Adam, "Adam"},
    {"resnet18_cifar", {{"batch", 8}}, Optimizer::Sgd, "SGD"},
    {"bert_layer",
     {{"batch", 8}, {"sequence", 128}},
     Optimizer::AdamW,
     "AdamW",
     compiler::Loss::MeanSquaredError},
    {"char_transformer",
     {{"batch", 8}, {"sequence", 64}},
     Optimizer::Adam,
     "Adam",
     compiler::Loss::CrossEntropy,
     -1},
};

constexpr const char* kHeader =
    R"(# Launches of one training step on the emulated CUDA device with 132 multiprocessors, by kernel. Written by
#   RT_MODULE_PATH=build/tests/modules:build/lib/librt build/bin/training_launches --write tests/training/launches.txt
# and launches_libraries.txt likewise with RT_EMULATOR_LIBRARIES=cublasLt,cudnn, whose launches are `multiply` and `execute`.
)";

/// The functions of the emulated device, in the backend's module.
struct Emulator {
  void (*only_count)(int) = nullptr;
  const char* (*counted)() = nullptr;

  bool load() {
    std::string path = std::getenv("RT_MODULE_PATH") != nullptr ? std::getenv("RT_MODULE_PATH") : "";
    path = path.substr(0, path.find(':')) + "/librt_cuda_emu.so";
    void* const library = dlopen(path.c_str(), RTLD_LAZY);
    if (library == nullptr) return false;
    only_count = reinterpret_cast<void (*)(int)>(dlsym(library, "cuda_emulator_only_count"));
    counted = reinterpret_cast<const char* (*)()>(dlsym(library, "cuda_emulator_counted_launches"));
    return only_count != nullptr && counted != nullptr;
  }
};

Result<ModelGraph> trained(const Case& of) {
  RT_ASSIGN(ModelGraph model, compiler::build_zoo_model(of.net));
  compiler::TrainOptions options;
  options.loss.loss = of.loss;
  options.loss.class_axis = of.class_axis;
  options.optimizer.optimizer.optimizer = of.optimizer;
  RT_TRY(compiler::add_train_entry(model, options, nullptr));
  RT_TRY(compiler::optimize(model, {}, nullptr));
  return model;
}

/// Zeros for all inputs.
std::vector<tools::Array> inputs_of(const Graph& graph, const Case& of) {
  std::vector<tools::Array> inputs;
  for (const ValueId id : graph.inputs) {
    const Value& value = graph[id];
    tools::Array input{.name = value.name, .type = value.dtype, .dims = {}, .bytes = {}};
    size_t bytes = size_of(value.dtype);
    for (const Dim& dim : value.dims) {
      const int64_t extent =
          dim.is_known() ? dim.extent : of.extents.at(graph.symbols[static_cast<size_t>(dim.symbol)].name);
      input.dims.push_back(extent);
      bytes *= static_cast<size_t>(extent);
    }
    input.bytes.resize(bytes);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

/// The case's lines of the file.
Result<std::string> lines_of(const Case& of, const Emulator& emulator) {
  RT_ASSIGN(const ModelGraph model, trained(of));
  RT_ASSIGN(const std::vector<std::byte> file, compiler::serialize_model(model));
  const std::vector<tools::Array> inputs = inputs_of(*model.entry("train_step"), of);
  test::StepSession session(file, "cuda_emu", "train_step");
  // The first run makes the plan, the second one is the first to replay what was recorded.
  for (int run = 0; run < 3; ++run) {
    emulator.only_count(1);
    if (!session.run(inputs)) return internal_error(of.net, ": ", session.error());
  }
  uint64_t launches = 0;
  std::string kernels, name;
  std::istringstream counted(emulator.counted());
  for (uint64_t count = 0; counted >> name >> count; launches += count)
    append(kernels, text("  ", name, " ", count, "\n"));
  std::string title = text("\n", of.net, ", ", of.optimizer_name);
  for (const auto& [symbol, extent] : of.extents) append(title, text(", ", symbol, " ", extent));
  return text(title, ": ", launches, " launches\n", kernels);
}

/// Prints the lines that differ.
bool is_same(const std::string& now, const std::string& before) {
  std::istringstream a(now), b(before);
  std::string found, expected, net;
  bool same = true;
  std::map<std::string, std::string> lines[2];
  const auto read = [&](std::istringstream& stream, std::map<std::string, std::string>& into) {
    for (std::string line; std::getline(stream, line);) {
      if (line.empty() || line[0] == '#') continue;
      if (line[0] != ' ') net = line.substr(0, line.find(':'));
      const size_t end = line[0] == ' ' ? line.rfind(' ') : line.find(':');
      into[line[0] == ' ' ? net + line.substr(1, end - 1) : net] = line.substr(end + 1);
    }
  };
  read(a, lines[0]);
  read(b, lines[1]);
  const auto print = [&](const std::string& key, const std::string& count,
                         const std::string& expected_count) {
    std::printf("%s: %s, the file has %s\n", key.c_str(), count.c_str(), expected_count.c_str());
    same = false;
  };
  for (const auto& [key, count] : lines[0])
    if (const auto other = lines[1].find(key); other == lines[1].end() || other->second != count)
      print(key, count, other == lines[1].end() ? "none" : other->second);
  for (const auto& [key, count] : lines[1])
    if (!lines[0].contains(key)) print(key, "none", count);
  return same;
}

int run(const std::string& mode, const char* path) {
  if (mode != "--check" && mode != "--write") {
    std::fputs("usage: training_launches --check FILE | --write FILE\n", stderr);
    return 2;
  }
  setenv("RT_EMULATOR_MULTIPROCESSORS", "132", 1);
  Emulator emulator;
  if (!emulator.load()) {
    std::puts("skipped: RT_MODULE_PATH begins with no folder of the emulated CUDA device");
    return 77;
  }
  std::string all = kHeader;
  for (const Case& of : kCases) {
    const Result<std::string> lines = lines_of(of, emulator);
    if (!lines.ok()) {
      std::fprintf(stderr, "%s\n", lines.status().message().c_str());
      return 1;
    }
    all += *lines;
  }
  if (mode == "--write") {
    std::ofstream(path) << all;
    return 0;
  }
  std::ifstream file(path);
  const std::string before((std::istreambuf_iterator<char>(file)), {});
  if (is_same(all, before)) return 0;
  std::printf("%s: if this is intended, write the file again; its first lines say how\n", path);
  return 1;
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::run(argc == 3 ? argv[1] : "", argc == 3 ? argv[2] : "");
}
