#include <cstring>

#include "rt/rt.hpp"
#include "tools/convert/run_session.h"

namespace librt::convert {

namespace {

class SessionRunner final : public Runner {
 public:
  SessionRunner(rt::Model model, rt::Session session)
      : model_(std::move(model)), session_(std::move(session)) {}

  bool run(std::span<const tools::Array> inputs, std::string& error) override {
    const auto failed = [&](const rt::Status& status) {
      if (!status) error = status.message();
      return !status;
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
      rt::Tensor tensor(static_cast<rt::DType>(inputs[i].type), inputs[i].dims);
      if (!inputs[i].bytes.empty())
        std::memcpy(tensor.data(), inputs[i].bytes.data(), inputs[i].bytes.size());
      if (failed(session_.set_input(i, tensor))) return false;
    }
    return !failed(session_.run());
  }
  size_t output_count() const override { return session_.output_count(); }
  std::optional<Output> output(size_t i, std::string& error) override {
    auto tensor = session_.output(i);
    if (!tensor) {
      error = tensor.status().message();
      return std::nullopt;
    }
    const auto dims = tensor->dims();
    return Output{.type = static_cast<DType>(tensor->dtype()),
                  .dims = {dims.begin(), dims.end()},
                  .bytes = {static_cast<const std::byte*>(tensor->data()), tensor->bytes()}};
  }

 private:
  rt::Model model_;
  rt::Session session_;
};

}  // namespace

std::unique_ptr<Runner> Runner::open(std::span<const std::byte> file, const std::string& backend, bool strict,
                                     std::string& error) {
  auto model = rt::Model::from_memory(file);
  if (!model) {
    error = "loading: " + model.status().message();
    return nullptr;
  }
  rt::SessionOptions options;
  options.backend = backend;
  options.strict = strict;
  auto session = rt::Session::create(*model, options);
  if (!session) {
    error = "session: " + session.status().message();
    return nullptr;
  }
  return std::make_unique<SessionRunner>(std::move(*model), std::move(*session));
}

std::optional<std::vector<tools::Array>> run_session(std::span<const std::byte> file,
                                                     const std::string& backend, bool strict,
                                                     std::span<const tools::Array> inputs,
                                                     std::string& error) {
  const auto runner = Runner::open(file, backend, strict, error);
  if (runner == nullptr || !runner->run(inputs, error)) return std::nullopt;
  std::vector<tools::Array> outputs;
  for (size_t i = 0; i < runner->output_count(); ++i) {
    auto output = runner->output(i, error);
    if (!output) return std::nullopt;
    outputs.push_back({.name = "",
                       .type = output->type,
                       .dims = std::move(output->dims),
                       .bytes = {output->bytes.begin(), output->bytes.end()}});
  }
  return outputs;
}

}  // namespace librt::convert
