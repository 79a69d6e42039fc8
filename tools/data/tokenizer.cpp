#include "tools/data/tokenizer.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <queue>

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

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  RT_ASSIGN(const Bytes bytes, read_file(path, kLargestFile));
  std::string error;
  auto tokenizer = parse(bytes, error);
  if (!tokenizer) return Status::make(Code::Io, path, ": ", error);
  return std::move(*tokenizer);
}

std::optional<Tokenizer> Tokenizer::parse(std::span<const std::byte> bytes, std::string& error) {
  static_assert(std::endian::native == std::endian::little, "the file is little endian");
  Tokenizer tokenizer;
  Cursor cursor(bytes);
  cursor.number<int32_t>();
  bool sorts = true;
  while (cursor.ok() && !cursor.at_end() && tokenizer.pieces_.size() < kMostTokens) {
    tokenizer.scores_.push_back(cursor.number<float>());
    sorts = sorts && !std::isnan(tokenizer.scores_.back());
    const auto length = cursor.number<int32_t>();
    const auto piece = cursor.take(length < 0 || length > kLongestPiece ? bytes.size() + 1 : size_t(length));
    tokenizer.pieces_.emplace_back(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  if (!cursor.ok() || !cursor.at_end() || !sorts || tokenizer.pieces_.size() < size_t{kFirstByte + kBytes}) {
    error = "expected a tokenizer of llama2.c (a score, a length and bytes for each of 259 to " +
            std::to_string(kMostTokens) + " tokens), found another format or a truncated file";
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
  merge(ids);
  ids.insert(ids.begin(), kBegin);
  return ids;
}

// A queue of the pairs that can be merged; a merge adds those with its neighbours. The time is
// n log n: texts come from files, and a line may be long.
void Tokenizer::merge(std::vector<int64_t>& ids) const {
  constexpr size_t kNone = ~size_t{0};
  struct Pair {
    float score;
    size_t left, right;  ///< places in ids
    int64_t ids[2];      ///< there when the pair was found; else it is out of date
    int64_t merged;
    bool operator<(const Pair& other) const noexcept {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  std::vector<size_t> before(ids.size()), after(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    before[i] = i == 0 ? kNone : i - 1;
    after[i] = i + 1 == ids.size() ? kNone : i + 1;
  }
  const auto piece = [&](size_t place) -> const std::string& {
    return pieces_[static_cast<size_t>(ids[place])];
  };
  std::priority_queue<Pair> pairs;
  const auto add = [&](size_t left, size_t right) {
    if (left == kNone || right == kNone) return;
    if (const int64_t merged = find(piece(left) + piece(right)); merged >= 0)
      pairs.push({scores_[static_cast<size_t>(merged)], left, right, {ids[left], ids[right]}, merged});
  };
  for (size_t i = 0; i + 1 < ids.size(); ++i) add(i, i + 1);
  constexpr int64_t kGone = -1;
  while (!pairs.empty()) {
    const Pair best = pairs.top();
    pairs.pop();
    if (ids[best.left] != best.ids[0] || ids[best.right] != best.ids[1] || after[best.left] != best.right)
      continue;
    ids[best.left] = best.merged;
    ids[best.right] = kGone;
    after[best.left] = after[best.right];
    if (after[best.left] != kNone) before[after[best.left]] = best.left;
    add(before[best.left], best.left);
    add(best.left, after[best.left]);
  }
  std::erase(ids, kGone);
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
