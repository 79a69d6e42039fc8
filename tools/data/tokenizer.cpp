#include "tools/data/tokenizer.h"

#include <bit>
#include <cstring>

#include "tools/data/array.h"

namespace librt::tools {
namespace {

constexpr int64_t kFirstByte = 3;
constexpr int64_t kBytes = 256;
constexpr int32_t kLongestPiece = 1 << 16;

/// Reads scalars and bytes sequentially; ok() is false once something was missing.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : rest_(bytes) {}
  bool at_end() const noexcept { return rest_.empty(); }
  bool ok() const noexcept { return ok_; }
  template <class T>
  T number() {
    T value{};
    if (const auto bytes = take(sizeof value); !bytes.empty())
      std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take(size_t count) {
    ok_ = ok_ && count <= rest_.size();
    if (!ok_) return {};
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

/// Number of bytes of the UTF-8 character that `text` begins with; 1 if it is not UTF-8.
size_t character_length(std::string_view text) {
  const auto ones = static_cast<size_t>(std::countl_one(static_cast<unsigned char>(text[0])));
  if (ones < 2 || ones > 4 || ones > text.size()) return 1;
  for (size_t i = 1; i < ones; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0u) != 0x80u) return 1;
  return ones;
}

}  // namespace

std::optional<Tokenizer> Tokenizer::load(const std::string& path, std::string& error) {
  static_assert(std::endian::native == std::endian::little, "the file is little endian");
  const auto bytes = read_file(path, error);
  if (!bytes) return std::nullopt;
  Tokenizer tokenizer;
  Cursor cursor(*bytes);
  cursor.number<int32_t>();
  while (cursor.ok() && !cursor.at_end()) {
    tokenizer.scores_.push_back(cursor.number<float>());
    const auto length = cursor.number<int32_t>();
    const auto piece = cursor.take(length < 0 || length > kLongestPiece ? bytes->size() : size_t(length));
    tokenizer.pieces_.emplace_back(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  if (!cursor.ok() || tokenizer.pieces_.size() < size_t{kFirstByte + kBytes}) {
    error = path +
            ": expected a tokenizer of llama2.c (a score, a length and bytes for each of at least 259 "
            "tokens), found another format or a truncated file";
    return std::nullopt;
  }
  for (size_t id = 0; id < tokenizer.pieces_.size(); ++id)
    tokenizer.ids_.try_emplace(tokenizer.pieces_[id], static_cast<int64_t>(id));
  return tokenizer;
}

int64_t Tokenizer::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? -1 : found->second;
}

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  // A word is stored with the space before it, so the text's first one gets a space too.
  if (!text.empty() && find(" ") >= 0) ids.push_back(find(" "));
  while (!text.empty()) {
    const std::string_view character = text.substr(0, character_length(text));
    if (const int64_t id = find(character); id >= 0)
      ids.push_back(id);
    else
      for (const char byte : character) ids.push_back(kFirstByte + static_cast<unsigned char>(byte));
    text.remove_prefix(character.size());
  }
  for (;;) {
    int64_t best = -1;
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const int64_t merged =
          find(pieces_[static_cast<size_t>(ids[i])] + pieces_[static_cast<size_t>(ids[i + 1])]);
      if (merged < 0) continue;
      if (best >= 0 && scores_[static_cast<size_t>(merged)] <= scores_[static_cast<size_t>(best)]) continue;
      best = merged;
      at = i;
    }
    if (best < 0) break;
    ids[at] = best;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  ids.insert(ids.begin(), kBegin);
  return ids;
}

std::string Tokenizer::decode(int64_t previous, int64_t token) const {
  if (token < 0 || static_cast<size_t>(token) >= pieces_.size()) return {};
  if (token == kBegin || token == kEnd) return {};
  if (token >= kFirstByte && token < kFirstByte + kBytes)
    return std::string(1, static_cast<char>(token - kFirstByte));
  const std::string& piece = pieces_[static_cast<size_t>(token)];
  return previous == kBegin && piece.starts_with(' ') ? piece.substr(1) : piece;
}

}  // namespace librt::tools
