#include "tools/rtrun/language_model.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tools/data/compare.h"

namespace rt::run {
namespace {

rt::Status bad(std::string message) {
  return {rt::Code::InvalidArgument, std::move(message)};
}

bool is(const std::string& name, const std::string& asked, std::initializer_list<const char*> usual) {
  if (!asked.empty()) return name == asked;
  return std::find(usual.begin(), usual.end(), name) != usual.end();
}

/// The last extent if this is a row of integers: [T], [1,T], or a scalar; else nothing.
std::optional<int64_t> row_length(const rt::TensorSpec& spec) {
  if (spec.dtype != rt::DType::I64 && spec.dtype != rt::DType::I32) return std::nullopt;
  if (spec.dims.empty()) return 1;
  if (spec.dims.size() > 2) return std::nullopt;
  if (spec.dims.size() == 2 && spec.dims[0].extent >= 0 && spec.dims[0].extent != 1) return std::nullopt;
  return spec.dims.back().extent;
}

int64_t token_at(std::span<const int64_t> text, int64_t i) {
  return text[static_cast<size_t>(i)];
}
int64_t position_at(std::span<const int64_t>, int64_t i) {
  return i;
}
int64_t one_at(std::span<const int64_t>, int64_t) {
  return 1;
}

}  // namespace

rt::Result<LanguageModel> LanguageModel::open(const rt::Model& model, rt::Session& session,
                                              const InputNames& names) {
  LanguageModel made(session);
  if (const auto capacity = model.metadata("cache.capacity"))
    made.capacity_ = std::strtoll(capacity->c_str(), nullptr, 10);
  if (rt::Status status = made.find_inputs(names); !status) return status;
  if (rt::Status status = made.find_logits(names.logits); !status) return status;
  return made;
}

rt::Status LanguageModel::find_inputs(const InputNames& names) {
  const std::vector<rt::TensorSpec> specs = session_->inputs();
  std::string others;
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::string& name = specs[i].name;
    Integers* found = is(name, names.token, {"token", "tokens", "input_ids"})         ? &tokens_
                      : is(name, names.position, {"pos", "position", "position_ids"}) ? &positions_
                      : is(name, names.mask, {"attention_mask"})                      ? &mask_
                                                                                      : nullptr;
    if (found == nullptr || found->index) {
      others += (others.empty() ? "" : ", ") + name;
      continue;
    }
    if (!row_length(specs[i]))
      return bad("input '" + name + "': expected i64 or i32 of shape [T] or [1,T] for one text");
    found->index = i;
    found->spec = specs[i];
  }
  if (!tokens_.index)
    return bad("there is no input for tokens; the inputs are " + others + ": name it with --token-input");
  if (!others.empty())
    return bad("inputs " + others +
               ": neither tokens, positions nor a mask. Keys and values of earlier tokens become a part of "
               "the model with rtconvert --cache-length; other names are given with --position-input");
  const int64_t length = *row_length(tokens_.spec);
  chunk_ = std::max<int64_t>(length, 0);
  if (chunk_ == 0 || (capacity_ > 0 && chunk_ == 1)) return {};
  return bad("input '" + tokens_.spec.name + "' takes exactly " + std::to_string(length) +
             " tokens and the model has no cache of earlier ones; convert it with a symbolic length, or with "
             "--cache-length where it has inputs for keys and values");
}

rt::Status LanguageModel::find_logits(const std::string& name) {
  const std::vector<rt::TensorSpec> specs = session_->outputs();
  logits_ = specs.size();
  for (size_t i = 0; i < specs.size(); ++i)
    if (is(specs[i].name, name, {"logits"}) || (specs.size() == 1 && name.empty())) logits_ = i;
  if (logits_ == specs.size())
    return bad("there is no output '" + (name.empty() ? "logits" : name) + "'; name it with --logits-output");
  if (!specs[logits_].dims.empty()) vocabulary_ = specs[logits_].dims.back().extent;
  return {};
}

rt::Status LanguageModel::set(Integers& input, int64_t length,
                              int64_t (*value)(std::span<const int64_t>, int64_t),
                              std::span<const int64_t> text, int64_t first) {
  if (!input.index) return {};
  if (input.tensor.data() == nullptr || input.tensor.elements() != length) {
    std::vector<int64_t> dims(input.spec.dims.size(), 1);
    if (!dims.empty()) dims.back() = length;
    input.tensor = rt::Tensor(input.spec.dtype, dims);
    if (rt::Status status = session_->bind_input(*input.index, input.tensor); !status) return status;
  }
  for (int64_t i = 0; i < length; ++i) {
    const auto at = static_cast<size_t>(i);
    if (input.spec.dtype == rt::DType::I64)
      input.tensor.values<int64_t>()[at] = value(text, first + i);
    else
      input.tensor.values<int32_t>()[at] = static_cast<int32_t>(value(text, first + i));
  }
  return {};
}

rt::Result<std::span<const float>> LanguageModel::next(std::span<const int64_t> text) {
  const auto size = static_cast<int64_t>(text.size());
  if (capacity_ > 0 && size > capacity_)
    return bad("the text has " + std::to_string(size) + " tokens, the model's cache holds " +
               std::to_string(capacity_) + "; convert with a larger --cache-length");
  if (capacity_ == 0) read_ = 0;
  while (read_ < size) {
    const int64_t length = chunk_ > 0 ? chunk_ : size - read_;
    for (const rt::Status& status :
         {set(tokens_, length, token_at, text, read_), set(positions_, length, position_at, text, read_),
          set(mask_, length, one_at, text, read_), session_->run()})
      if (!status) return status;
    read_ += length;
  }
  return logits();
}

rt::Result<std::span<const float>> LanguageModel::logits() {
  const auto output = session_->output(logits_);
  if (!output) return output.status();
  const auto dims = output->dims();
  if (dims.empty() || output->elements() == 0)
    return bad("the logits are empty; expected one row for each token");
  std::span<const float> all = output->values<float>();
  if (output->dtype() != rt::DType::F32) {
    librt::tools::Array array{.name = {},
                              .type = static_cast<librt::DType>(output->dtype()),
                              .dims = {dims.begin(), dims.end()},
                              .bytes = {}};
    array.bytes.resize(output->bytes());
    std::memcpy(array.bytes.data(), output->data(), array.bytes.size());
    const librt::tools::Array floats = librt::tools::converted(array, librt::DType::F32);
    converted_.resize(static_cast<size_t>(output->elements()));
    std::memcpy(converted_.data(), floats.bytes.data(), floats.bytes.size());
    all = converted_;
  }
  return all.last(static_cast<size_t>(dims.back()));
}

}  // namespace rt::run
