// Reproduces another framework's training curve: the same weights, the same batches, the same losses.
//
//   curve --model TRAIN.rt --data DATA.npz --backend cpu --lr 0.1 [--early 1e-5] [--late 1e-4]
//
// DATA.npz holds inputs and labels [steps, batch, ...] and losses [steps]. The allowed difference is `early`
// in the first ten steps and grows with the step to `late` at the end.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "rt/rt.hpp"
#include "tools/data/compare.h"
#include "tools/data/npz.h"

namespace {

using librt::tools::Array;

int fail(const std::string& message) {
  std::fprintf(stderr, "curve: %s\n", message.c_str());
  return 1;
}

const Array* find(const std::vector<Array>& arrays, const std::string& name) {
  for (const Array& array : arrays)
    if (array.name == name) return &array;
  return nullptr;
}

// Batch `step` of an array [steps, batch, ...], in the shape of the input.
rt::Tensor batch_of(const Array& array, size_t step, const rt::TensorSpec& input) {
  const size_t steps = static_cast<size_t>(array.dims[0]);
  const size_t bytes = array.bytes.size() / steps;
  std::vector<int64_t> dims(array.dims.begin() + 1, array.dims.end());
  for (size_t axis = 1; axis < input.dims.size() && dims.size() == input.dims.size(); ++axis)
    if (input.dims[axis].extent >= 0) dims[axis] = input.dims[axis].extent;
  rt::Tensor tensor(static_cast<rt::DType>(array.type), dims);
  std::memcpy(tensor.data(), array.bytes.data() + step * bytes, bytes);
  return tensor;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options = {
      {"--early", "1e-5"}, {"--late", "1e-4"}, {"--backend", "cpu"}};
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  const auto arrays = librt::tools::read_npz(options["--data"]);
  if (!arrays) return fail(arrays.status().message());
  const Array* inputs = find(*arrays, "inputs");
  const Array* labels = find(*arrays, "labels");
  const Array* losses = find(*arrays, "losses");
  if (inputs == nullptr || labels == nullptr || losses == nullptr)
    return fail("inputs, labels or losses are missing");

  const auto model = rt::Model::load(options["--model"]);
  if (!model) return fail(model.status().message());
  auto trainer = rt::Trainer::create(*model, {.backend = options["--backend"], .deterministic = true});
  if (!trainer) return fail(trainer.status().message());
  if (rt::Status status = trainer->set_learning_rate(std::strtof(options["--lr"].c_str(), nullptr)); !status)
    return fail(status.message());
  rt::Session& session = trainer->session();
  const std::vector<rt::TensorSpec> specs = session.inputs();

  const size_t steps = losses->bytes.size() / librt::size_of(losses->type);
  const double early = std::strtod(options["--early"].c_str(), nullptr);
  const double late = std::strtod(options["--late"].c_str(), nullptr);
  double worst = 0;
  for (size_t step = 0; step < steps; ++step) {
    for (size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].name == "learning_rate") continue;
      const Array& array = specs[i].name == "labels" ? *labels : *inputs;
      if (rt::Status status = session.set_input(i, batch_of(array, step, specs[i])); !status)
        return fail(status.message());
    }
    const auto loss = trainer->step();
    if (!loss) return fail(loss.status().message());
    const double want = librt::tools::element_of(*losses, step);
    const double difference = std::fabs(static_cast<double>(*loss) - want);
    worst = std::max(worst, difference);
    const double progress = step < 10 ? 0 : static_cast<double>(step - 10) / static_cast<double>(steps - 10);
    if (!(difference <= early + (late - early) * progress))
      return fail("step " + std::to_string(step) + ": loss " + std::to_string(*loss) + ", expected " +
                  std::to_string(want));
  }
  std::printf("%zu steps followed; largest difference of a loss %.2g\n", steps, worst);
  return 0;
}
