#include "tests/training/step_session.h"

#include <cstring>
#include <map>

#include "rt/rt.hpp"

namespace librt::test {

namespace {

tools::Array array_of(const std::string& name, const rt::Tensor& tensor) {
  const auto dims = tensor.dims();
  const auto* data = static_cast<const std::byte*>(tensor.data());
  return {.name = name,
          .type = static_cast<DType>(tensor.dtype()),
          .dims = {dims.begin(), dims.end()},
          .bytes = {data, data + tensor.bytes()}};
}

rt::Status run_session(rt::Session& session, std::span<const tools::Array> inputs) {
  for (const tools::Array& input : inputs) {
    rt::Tensor tensor(static_cast<rt::DType>(input.type), input.dims);
    std::memcpy(tensor.data(), input.bytes.data(), input.bytes.size());
    if (rt::Status status = session.set_input(input.name, tensor); !status) return status;
  }
  return session.run();
}

}  // namespace

struct StepSession::Parts {
  std::optional<rt::Model> model;
  std::optional<rt::Session> session;
  std::map<std::string, rt::Session> others;
  rt::SessionOptions options;
};

StepSession::StepSession(std::span<const std::byte> file, const std::string& backend,
                         const std::string& entry)
    : parts_(std::make_unique<Parts>()) {
  auto model = rt::Model::from_memory(file);
  if (!model) {
    error_ = "loading: " + model.status().message();
    return;
  }
  parts_->model.emplace(std::move(*model));
  parts_->options = {.backend = backend, .entry = entry, .deterministic = true};
  auto session = rt::Session::create(*parts_->model, parts_->options);
  if (!session) {
    error_ = "session: " + session.status().message();
    return;
  }
  parts_->session.emplace(std::move(*session));
}

StepSession::~StepSession() = default;

template <class AnySession>
std::optional<tools::Array> StepSession::output_from(AnySession& session, const std::string& name) {
  if (!error_.empty()) return std::nullopt;
  auto tensor = session.output(name);
  if (tensor) return array_of(name, *tensor);
  error_ = tensor.status().message();
  return std::nullopt;
}

bool StepSession::run(std::span<const tools::Array> inputs) {
  if (!error_.empty()) return false;
  if (rt::Status status = run_session(*parts_->session, inputs); !status) error_ = status.message();
  return error_.empty();
}

bool StepSession::run_entry(const std::string& entry, std::span<const tools::Array> inputs) {
  if (!error_.empty()) return false;
  auto found = parts_->others.find(entry);
  if (found == parts_->others.end()) {
    rt::SessionOptions options = parts_->options;
    options.entry = entry;
    options.share_states_with = &*parts_->session;
    auto session = rt::Session::create(*parts_->model, options);
    if (!session) {
      error_ = "session: " + session.status().message();
      return false;
    }
    found = parts_->others.emplace(entry, std::move(*session)).first;
  }
  if (rt::Status status = run_session(found->second, inputs); !status) error_ = status.message();
  return error_.empty();
}

std::optional<tools::Array> StepSession::output(const std::string& name) {
  return output_from(*parts_->session, name);
}
std::optional<tools::Array> StepSession::output_of(const std::string& entry, const std::string& name) {
  return output_from(parts_->others.at(entry), name);
}

bool StepSession::load_adapter(const std::string& path) {
  if (!error_.empty()) return false;
  if (rt::Status status = parts_->session->load_adapter(path); !status) error_ = status.message();
  return error_.empty();
}

std::optional<tools::Array> StepSession::state(const std::string& name) {
  if (!error_.empty()) return std::nullopt;
  auto tensor = parts_->session->read_state(name);
  if (tensor) return array_of(name, *tensor);
  error_ = tensor.status().message();
  return std::nullopt;
}

}  // namespace librt::test
