// Text to token ids and back, for the tokenizer files of llama2.c (byte-pair encoding with scores).
//
// Knows: the file format and the merging rule. Must not know: models, sampling.
//
// File: i32 length of the longest piece, then for each token f32 score, i32 length, bytes. Ids 0, 1, 2 are
// unknown, begin and end of text; ids from 3 on are the 256 bytes as "<0xNN>".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/data/file.h"

namespace librt::tools {

class Tokenizer {
 public:
  static constexpr int64_t kBegin = 1;
  static constexpr int64_t kEnd = 2;

  /// Limits of a file; the largest vocabularies in use have 262,144 tokens.
  static constexpr size_t kMostTokens = size_t{1} << 20;
  static constexpr size_t kLargestFile = size_t{256} << 20;

  static Result<Tokenizer> load(const std::string& path);
  static std::optional<Tokenizer> parse(std::span<const std::byte> bytes, std::string& error);

  size_t size() const noexcept { return pieces_.size(); }
  /// kBegin, then the text's tokens: its characters (bytes for characters not in the vocabulary), with
  /// neighbours merged as long as a merged piece exists, best score first, of equal ones the leftmost.
  std::vector<int64_t> encode(std::string_view text) const;
  /// The text that `token` appends after `previous`.
  std::string decode(int64_t previous, int64_t token) const;

 private:
  int64_t find(std::string_view piece) const;
  void merge(std::vector<int64_t>& ids) const;

  std::vector<std::string> pieces_;
  std::vector<float> scores_;
  std::map<std::string, int64_t, std::less<>> ids_;
};

}  // namespace librt::tools
