// ctc_case FOLDER: a task for the loss ctc. Writes model.onnx, one linear layer from x [N,T,F] to scores
// [T,N,C], and train.npz and test.npz: sequences of 1 to 4 labels, each present for a few steps with noise,
// with silence between and after them.
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/support/onnx_model.h"
#include "tools/data/npz.h"
#include "tools/data/random.h"

namespace {

using librt::DType;
using librt::test::add_node;
using librt::test::kFloat;
using librt::test::set_value;
using librt::tools::Array;

constexpr int kSteps = 20, kClasses = 5, kFeatures = 8, kMostLabels = 4;  // class 0 is the blank

void add_weight(rt_onnx::GraphProto& graph, const char* name, std::initializer_list<int> dims) {
  auto& weight = *graph.add_initializer();
  weight.set_name(name);
  weight.set_data_type(kFloat);
  int count = 1;
  for (const int dim : dims) {
    weight.add_dims(dim);
    count *= dim;
  }
  for (int i = 0; i < count; ++i) weight.add_float_data(0.02f * static_cast<float>(i % 7 - 3));
}

bool write_model(const std::string& path) {
  rt_onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  auto& graph = *model.mutable_graph();
  graph.set_name("listener");
  set_value(*graph.add_input(), "x", {-1, kSteps, kFeatures});
  add_weight(graph, "weight", {kFeatures, kClasses});
  add_weight(graph, "bias", {kClasses});
  add_node(graph, "MatMul", {"x", "weight"}, "product");
  add_node(graph, "Add", {"product", "bias"}, "sum");
  auto& axes = *add_node(graph, "Transpose", {"sum"}, "scores").add_attribute();
  axes.set_name("perm");
  axes.set_type(7);
  for (const int axis : {1, 0, 2}) axes.add_ints(axis);
  set_value(*graph.add_output(), "scores", {kSteps, -1, kClasses});
  std::ofstream file(path, std::ios::binary);
  return model.SerializeToOstream(&file);
}

template <class T>
Array array(const char* name, DType type, std::vector<int64_t> dims, const std::vector<T>& values) {
  Array made{.name = name, .type = type, .dims = std::move(dims), .bytes = {}};
  made.bytes.resize(values.size() * sizeof(T));
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  size_t below(size_t limit) { return static_cast<size_t>(librt::split_mix(state_) % limit); }
  /// Uniform in [-1/2, 1/2).
  float noise() { return static_cast<float>(librt::split_mix(state_) >> 40) * 0x1p-24f - 0.5f; }

 private:
  uint64_t state_;
};

bool write_data(const std::string& path, int samples, uint64_t seed) {
  Random random(seed);
  std::vector<float> x;
  std::vector<int64_t> labels, input_lengths, label_lengths;
  for (int sample = 0; sample < samples; ++sample) {
    std::vector<int64_t> heard;
    const auto count = static_cast<int64_t>(1 + random.below(kMostLabels));
    for (int64_t i = 0; i < kMostLabels; ++i) {
      const auto label = static_cast<int64_t>(1 + random.below(kClasses - 1));
      labels.push_back(i < count ? label : 0);
      if (i >= count) continue;
      heard.insert(heard.end(), 2 + random.below(2), label);
      heard.insert(heard.end(), 1 + random.below(2), 0);
    }
    label_lengths.push_back(count);
    input_lengths.push_back(static_cast<int64_t>(heard.size()));
    heard.resize(kSteps);
    for (const int64_t label : heard)
      for (int64_t feature = 0; feature < kFeatures; ++feature)
        x.push_back((feature == label ? 1.0f : 0.0f) + 0.9f * random.noise());
  }
  const std::vector<Array> arrays = {array("x", DType::F32, {samples, kSteps, kFeatures}, x),
                                     array("labels", DType::I64, {samples, kMostLabels}, labels),
                                     array("input_lengths", DType::I64, {samples}, input_lengths),
                                     array("label_lengths", DType::I64, {samples}, label_lengths)};
  const librt::Status status = librt::tools::write_npz(path, arrays);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  const bool written = write_model(folder + "/model.onnx") && write_data(folder + "/train.npz", 400, 1) &&
                       write_data(folder + "/test.npz", 100, 2);
  return written ? 0 : 1;
}
