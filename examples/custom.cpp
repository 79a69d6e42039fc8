// An operator of the application: runs a model that contains one, and compares with the same in plain C++.
//
//   rtconvert custom.onnx -o custom.rt --custom-domain com.example
//   custom custom.rt [BACKEND]
//
// The kernel works in host memory. On a GPU librt copies its operands to the host and the result back; with
// CUDA a second function can launch kernels instead (the last argument of rt::CustomOperator).
#include <algorithm>
#include <cmath>
#include <iostream>
#include <rt/custom.hpp>

namespace {

int fail(const rt::Status& status) {
  std::cerr << "custom: " << status.message() << "\n";
  return 2;
}

/// y = limit tanh(x / limit)
rt::Status softcap(const rt::CustomCall& call) {
  const float limit = call.real("limit", 1);
  if (!(limit > 0)) return {rt::Code::InvalidArgument, "limit: expected a positive number"};
  const rt::Tensor x = call.input(0);
  rt::Tensor y = call.output();
  if (x.dtype() != rt::DType::F32) return {rt::Code::Unsupported, "expected f32"};
  const auto cap = [limit](float value) { return limit * std::tanh(value / limit); };
  std::transform(x.values<float>().begin(), x.values<float>().end(), y.values<float>().begin(), cap);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return fail({rt::Code::InvalidArgument, "expected MODEL.rt [BACKEND]"});
  const auto model = rt::Model::load(argv[1]);
  if (!model) return fail(model.status());
  const rt::CustomOperator operators("com.example", "Softcap", softcap);  // outlives the session
  const auto handles = rt::handles_of(operators);
  auto session =
      rt::Session::create(*model, {.backend = argc == 3 ? argv[2] : "auto", .custom_operators = handles});
  if (!session) return fail(session.status());

  const std::vector<float> values = {-5, -1, 0, 1, 2, 4, 8, 16};
  if (auto status = session->set_input("x", rt::Tensor::of<float>({2, 4}, values)); !status)
    return fail(status);
  if (auto status = session->run(); !status) return fail(status);
  const auto y = session->output(0);
  if (!y) return fail(y.status());
  bool same = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const float expected = std::max(0.0f, 3 * std::tanh(values[i] / 3));
    same = same && std::abs(y->values<float>()[i] - expected) < 1e-6f;
    std::cout << y->values<float>()[i] << (i + 1 < values.size() ? " " : "\n");
  }
  std::cout << "on " << session->device().backend << (same ? ": as" : ": other than")
            << " expected, with a kernel of the application\n";
  return same ? 0 : 1;
}
