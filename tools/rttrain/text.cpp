#include "tools/rttrain/text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tools/data/array.h"
#include "tools/data/public_status.h"
#include "tools/rttrain/arrays.h"

namespace rt::train {
namespace {

class WindowSource final : public Source {
 public:
  WindowSource(std::vector<int32_t> tokens, size_t length, size_t stride, std::vector<Column> columns)
      : tokens_(std::move(tokens)), length_(length), stride_(stride) {
    columns_ = std::move(columns);
  }
  size_t size() const noexcept override { return (tokens_.size() - 1 - length_) / stride_ + 1; }
  rt::Status read(size_t index, std::span<std::byte* const> targets) const override {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const int32_t* from = tokens_.data() + index * stride_ + (columns_[c].is_label ? 1 : 0);
      if (columns_[c].dtype == rt::DType::I32) {
        std::memcpy(targets[c], from, length_ * sizeof *from);
        continue;
      }
      for (size_t i = 0; i < length_; ++i) {
        const int64_t id = from[i];
        std::memcpy(targets[c] + i * sizeof id, &id, sizeof id);
      }
    }
    return {};
  }
  librt::tools::Digest digest() const override {
    librt::tools::Digest digest;
    digest.add(length_);
    digest.add(stride_);
    digest.add(std::span<const int32_t>(tokens_));
    return digest;
  }

 private:
  std::vector<int32_t> tokens_;
  size_t length_, stride_;
};

}  // namespace

rt::Result<Encoder> Encoder::create(const std::string& tokenizer) {
  Encoder encoder;
  if (tokenizer == "bytes") return encoder;
  auto loaded = librt::tools::Tokenizer::load(tokenizer);
  if (!loaded) return as_public(loaded.status());
  encoder.tokenizer_ = std::move(*loaded);
  return encoder;
}

std::vector<int64_t> Encoder::encode(std::string_view text) const {
  if (tokenizer_) return tokenizer_->encode(text);
  std::vector<int64_t> ids;
  ids.reserve(text.size());
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

rt::Result<int64_t> sequence_length(const rt::TensorSpec& input, const DataOptions& options) {
  if (input.dims.size() != 2)
    return bad_data("input '" + input.name + "' has rank " + std::to_string(input.dims.size()) +
                    "; texts feed inputs [batch, sequence]");
  const rt::Dim& dim = input.dims[1];
  if (dim.extent > 0 && options.sequence > 0 && dim.extent != options.sequence)
    return bad_data("--sequence " + std::to_string(options.sequence) + ": input '" + input.name + "' takes " +
                    std::to_string(dim.extent) + " tokens");
  const int64_t length = dim.extent > 0 ? dim.extent : options.sequence;
  if (length <= 0) return bad_data("input '" + input.name + "' has a dynamic text length; give --sequence");
  if (dim.bound > 0 && length > dim.bound)
    return bad_data("--sequence " + std::to_string(length) + ": input '" + input.name + "' takes at most " +
                    std::to_string(dim.bound) + " tokens");
  return length;
}

rt::Result<SourcePtr> open_text(const std::string& path, const DataOptions& options, const Part& part,
                                const std::vector<rt::TensorSpec>& inputs) {
  auto input = only_data_input(inputs, "texts");
  if (!input) return input.status();
  const auto length = sequence_length(*input, options);
  if (!length) return length.status();
  std::vector<Column> columns;
  for (const rt::TensorSpec& spec : inputs) {
    auto column = column_for(spec, {1, *length});
    if (!column) return column.status();
    if (column->dtype != rt::DType::I64 && column->dtype != rt::DType::I32)
      return bad_data("input '" + spec.name + "' has type " + std::string(rt::name_of(spec.dtype)) +
                      "; texts feed inputs of integers");
    if (column->elements() != static_cast<size_t>(*length))
      return bad_data("input '" + spec.name + "' takes " + shape_text(column->dims) +
                      " for a sample; a text gives " + std::to_string(*length) +
                      " tokens and the token that follows each");
    columns.push_back(std::move(*column));
  }
  auto encoder = Encoder::create(options.tokenizer);
  if (!encoder) return encoder.status();
  // A token takes four bytes: all of them fit beside the text.
  const auto bytes = librt::tools::read_file(path, librt::tools::largest_file() / 4);
  if (!bytes) return as_public(bytes.status());
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const auto at = [&](double fraction) {
    return static_cast<size_t>(std::llround(fraction * static_cast<double>(text.size())));
  };
  text = text.substr(at(part.begin), at(part.end) - at(part.begin));
  // A tokenizer gets single lines: every text that it encodes begins with a token of its own.
  const bool lines = options.tokenizer != "bytes";
  constexpr size_t kPart = size_t{1} << 20;
  std::vector<int32_t> tokens;
  if (!lines) tokens.reserve(text.size());
  while (!text.empty()) {
    const size_t end = lines ? std::min(text.find('\n'), text.size() - 1) + 1 : std::min(text.size(), kPart);
    for (const int64_t id : encoder->encode(text.substr(0, end))) tokens.push_back(static_cast<int32_t>(id));
    text.remove_prefix(end);
  }
  if (tokens.size() <= static_cast<size_t>(*length))
    return bad_data(path + ": has " + std::to_string(tokens.size()) + " tokens; a window takes " +
                    std::to_string(*length + 1));
  const int64_t stride = options.stride > 0 ? options.stride : *length;
  return SourcePtr(std::make_unique<WindowSource>(std::move(tokens), static_cast<size_t>(*length),
                                                  static_cast<size_t>(stride), std::move(columns)));
}

}  // namespace rt::train
