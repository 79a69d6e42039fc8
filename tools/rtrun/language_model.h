// A session as a function from the tokens so far to the next token's logits.
//
// Knows: which input holds tokens, positions, a mask; where the logits are; whether the model keeps a
// key/value cache or needs all tokens again at every step. Must not know: sampling, text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rt/rt.hpp"

namespace rt::run {

struct InputNames {
  std::string token, position, mask, logits;  ///< empty: the usual names
};

class LanguageModel {
 public:
  /// Errors name inputs that are neither token, position nor mask.
  static rt::Result<LanguageModel> open(const rt::Model& model, rt::Session& session,
                                        const InputNames& names);

  /// Positions that the model's cache holds; 0: it has no cache.
  int64_t capacity() const noexcept { return capacity_; }
  /// Runs the model on `text`, whose first read() tokens were given before and must be unchanged. Returns the
  /// logits of the last token, valid until the next call.
  rt::Result<std::span<const float>> next(std::span<const int64_t> text);
  int64_t read() const noexcept { return read_; }
  /// Tokens that the model knows, 0 to vocabulary() - 1; negative: the model does not say.
  int64_t vocabulary() const noexcept { return vocabulary_; }

 private:
  /// An integer input, [T] or [1, T], whose buffer stays in place while the length does not change.
  struct Integers {
    std::optional<size_t> index;
    rt::TensorSpec spec;
    rt::Tensor tensor;
  };

  explicit LanguageModel(rt::Session& session) : session_(&session) {}
  rt::Status find_inputs(const InputNames& names);
  rt::Status find_logits(const std::string& name);
  rt::Status set(Integers& input, int64_t length, int64_t (*value)(std::span<const int64_t>, int64_t),
                 std::span<const int64_t> text, int64_t first);
  rt::Result<std::span<const float>> logits();

  rt::Session* session_;
  Integers tokens_, positions_, mask_;
  size_t logits_ = 0;
  int64_t capacity_ = 0, vocabulary_ = -1;
  int64_t chunk_ = 0;  ///< tokens the model takes at a time; 0: any number
  int64_t read_ = 0;
  std::vector<float> converted_;
};

}  // namespace rt::run
