// Asynchronous runs: the next inputs are uploaded while a run computes. Compares with synchronous runs.
//
//   async digits.rt [BACKEND]
//
// Any model whose inputs are f32. Exit code 1 if results differ.
#include <rt/rt.hpp>

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr unsigned kRuns = 8;
constexpr int64_t kBatch = 4;

int fail(const rt::Status& status) {
  std::fprintf(stderr, "async: %s\n", status.message().c_str());
  return 2;
}

/// Sets random inputs of run `run`; dynamic dimensions are kBatch.
rt::Status set_inputs(rt::Session& session, unsigned run) {
  std::mt19937 random(run);
  std::uniform_real_distribution<float> uniform(0, 1);
  size_t index = 0;
  for (const rt::TensorSpec& spec : session.inputs()) {
    if (spec.dtype != rt::DType::F32) return {rt::Code::Unsupported, "input '" + spec.name + "' is not f32"};
    std::vector<int64_t> dims;
    for (const rt::Dim& dim : spec.dims) dims.push_back(dim.extent < 0 ? kBatch : dim.extent);
    rt::Tensor tensor(rt::DType::F32, dims);
    for (float& value : tensor.values<float>()) value = uniform(random);
    // Copied: `tensor` may be destroyed at once.
    if (auto status = session.set_input(index++, tensor); !status) return status;
  }
  return {};
}

bool equal(const rt::Tensor& a, const rt::Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return fail({rt::Code::InvalidArgument, "MODEL.rt [BACKEND]"});
  const auto model = rt::Model::load(argv[1]);
  if (!model) return fail(model.status());
  auto session = rt::Session::create(*model, {.backend = argc > 2 ? argv[2] : "auto", .deterministic = true});
  if (!session) return fail(session.status());

  std::vector<rt::Tensor> expected;
  for (unsigned i = 0; i < kRuns; ++i) {
    if (auto status = set_inputs(*session, i); !status) return fail(status);
    if (auto status = session->run(); !status) return fail(status);
    const auto output = session->output(0);
    if (!output) return fail(output.status());
    expected.push_back(output->clone());  // the output itself is valid until the next run
  }

  // Two runs in flight: run i + 1 is submitted before run i is waited for. Runs finish in the order in which
  // they were submitted.
  if (auto status = set_inputs(*session, 0); !status) return fail(status);
  if (auto status = session->submit(); !status) return fail(status);
  unsigned different = 0;
  for (unsigned i = 0; i < kRuns; ++i) {
    if (i + 1 < kRuns) {
      if (auto status = set_inputs(*session, i + 1); !status) return fail(status);
      if (auto status = session->submit(); !status) return fail(status);
    }
    if (auto status = session->wait(); !status) return fail(status);
    const auto output = session->output(0);  // of run i
    if (!output) return fail(output.status());
    if (!equal(*output, expected[i])) ++different;
  }
  const rt::DeviceInfo device = session->device();
  std::printf("%u of %u asynchronous runs equal the synchronous ones (%s, %s)\n", kRuns - different, kRuns,
              device.backend.c_str(), device.asynchronous ? "asynchronous" : "submit runs synchronously");
  return different > 0;
}
