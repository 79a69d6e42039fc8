#include <cstring>

#include "rt/rt.hpp"
#include "tools/rtconvert/run_session.h"

namespace rt::convert {

std::optional<std::vector<tools::Array>> run_session(std::span<const std::byte> file,
                                                     const std::string& backend, bool strict,
                                                     std::span<const tools::Array> inputs,
                                                     std::string& error) {
  auto model = Model::from_memory(file);
  if (!model) {
    error = "loading: " + model.status().message();
    return std::nullopt;
  }
  SessionOptions options;
  options.backend = backend;
  options.strict = strict;
  auto session = Session::create(*model, options);
  if (!session) {
    error = "session: " + session.status().message();
    return std::nullopt;
  }
  const auto failed = [&](const Status& status) {
    if (!status) error = status.message();
    return !status;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor tensor(static_cast<DType>(inputs[i].type), inputs[i].dims);
    if (!inputs[i].bytes.empty()) std::memcpy(tensor.data(), inputs[i].bytes.data(), inputs[i].bytes.size());
    if (failed(session->set_input(i, tensor))) return std::nullopt;
  }
  if (failed(session->run())) return std::nullopt;
  std::vector<tools::Array> outputs;
  for (size_t i = 0; i < session->output_count(); ++i) {
    auto tensor = session->output(i);
    if (!tensor) {
      error = tensor.status().message();
      return std::nullopt;
    }
    const auto dims = tensor->dims();
    const auto* data = static_cast<const std::byte*>(tensor->data());
    outputs.push_back({.name = "",
                       .type = static_cast<tools::ElementType>(tensor->dtype()),
                       .dims = {dims.begin(), dims.end()},
                       .bytes = {data, data + tensor->bytes()}});
  }
  return outputs;
}

}  // namespace rt::convert
