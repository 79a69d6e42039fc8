// Texts: windows of tokens for language models, and tokenization for tables of texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/data/tokenizer.h"
#include "tools/rttrain/data.h"

namespace rt::train {

/// Text to ids: raw bytes, or with a tokenizer file.
class Encoder {
 public:
  /// tokenizer: "bytes" or a file.
  static rt::Result<Encoder> create(const std::string& tokenizer);
  std::vector<int64_t> encode(std::string_view text) const;

 private:
  std::optional<librt::tools::Tokenizer> tokenizer_;
};

/// Tokens per sample: the input's static extent, or --sequence.
rt::Result<int64_t> sequence_length(const rt::TensorSpec& input, const DataOptions& options);

/// Windows of a text: the data input gets tokens [i, i + S), `labels` the tokens [i + 1, i + 1 + S), shifted
/// by one. With a tokenizer the text is encoded line by line.
rt::Result<SourcePtr> open_text(const std::string& path, const DataOptions& options, const Part& part,
                                const std::vector<rt::TensorSpec>& inputs);

}  // namespace rt::train
