// Compiles an ONNX model that is in memory, calibrates it to 8 bits with rows of the application, and runs
// it.
//
//   convert MODEL.onnx [BACKEND]
//
// The rows are random here, an application takes typical inputs. BACKEND: cpu, vulkan, cuda, reference or
// auto (default).
#include <rt/compiler.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr size_t kBatches = 4;

int fail(const rt::Status& status) {
  std::fprintf(stderr, "convert: %s\n", status.message().c_str());
  return 2;
}

/// Values of 0 to 1 for an input; dynamic dimensions are 1. Only f32 needs calibration, others stay zeros.
rt::Tensor random_input(const rt::TensorSpec& spec, uint32_t& seed) {
  std::vector<int64_t> dims;
  for (const rt::Dim& dim : spec.dims) dims.push_back(dim.extent < 0 ? 1 : dim.extent);
  rt::Tensor tensor(spec.dtype, dims);
  if (spec.dtype == rt::DType::F32)
    for (float& value : tensor.values<float>()) {
      seed = seed * 1664525u + 1013904223u;
      value = static_cast<float>(seed >> 8) / 16777216.0f;
    }
  return tensor;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return fail({rt::Code::InvalidArgument, "MODEL.onnx [BACKEND]"});
  std::ifstream file(argv[1], std::ios::binary);
  if (!file) return fail({rt::Code::NotFound, std::string(argv[1]) + ": cannot be opened"});
  const std::string onnx((std::istreambuf_iterator<char>(file)), {});

  uint32_t seed = 1;
  rt::CompilerOptions options;
  options.precision = "int8";
  options.calibration = [&](size_t batch, std::span<const rt::TensorSpec> inputs,
                            std::vector<rt::Tensor>& rows) {
    if (batch == kBatches) return rt::Rows::None;
    for (const rt::TensorSpec& input : inputs) rows.push_back(random_input(input, seed));
    return rt::Rows::Some;
  };
  std::string last;
  options.progress = [&](std::string_view stage, uint64_t, uint64_t) {
    if (stage != last) std::fprintf(stderr, "%s\n", std::string(stage).c_str());
    last = stage;
    return true;  // false stops the compilation
  };
  const auto made = rt::Compilation::of_memory(std::as_bytes(std::span(onnx)), options);
  for (const rt::UnsupportedNode& node : made.unsupported())
    std::fprintf(stderr, "%s '%s': %s\n", node.op.c_str(), node.name.c_str(), node.reason.c_str());
  if (!made) return fail(made.status());
  const rt_compiler_report report = made.report();
  std::printf("%llu nodes, %llu of them in 8 bits, %zu bytes; the outputs differ by %.2g\n",
              static_cast<unsigned long long>(report.nodes_after),
              static_cast<unsigned long long>(report.quantized_nodes), made.bytes().size(),
              report.output_error);

  const auto model = made.load();
  if (!model) return fail(model.status());
  auto session = rt::Session::create(*model, {.backend = argc > 2 ? argv[2] : "auto"});
  if (!session) return fail(session.status());
  const auto inputs = model->inputs();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (auto status = session->set_input(i, random_input(inputs[i], seed)); !status) return fail(status);
  if (auto status = session->run(); !status) return fail(status);
  const auto output = session->output(0);
  if (!output) return fail(output.status());
  std::printf("ran on %s: %lld values\n", session->device().backend.c_str(),
              static_cast<long long>(output->elements()));
}
