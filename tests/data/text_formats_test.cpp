// Tables and tokenizers: limits, and merging in n log n.
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "tests/data/scratch.h"
#include "tools/data/delimited.h"
#include "tools/data/tokenizer.h"

namespace librt::tools {
namespace {

Result<DelimitedTable> parsed(const std::string& text, size_t limit = largest_file()) {
  return parse_delimited("t.csv", text, {}, limit);
}

TEST(Delimited, ATableTakesMoreMemoryThanItsFile) {
  std::string text = "a,b\n";
  for (int i = 0; i < 1000; ++i) text += "1,2\n";
  EXPECT_TRUE(parsed(text).ok());
  const auto table = parsed(text, 50'000);
  EXPECT_EQ(table.status().code(), Code::OutOfMemory);
  EXPECT_TRUE(contains(table.status().message(), "the table takes more than")) << table.status().message();
}

TEST(Delimited, LinesWithoutEnd) {
  const auto row = parsed("a\n" + std::string(1'000'000, ','), 10'000'000);
  EXPECT_EQ(row.status().code(), Code::OutOfMemory);
  for (const std::string open : {"", "\""}) {
    const auto field = parsed("a\n" + open + std::string(kLongestField + 1, 'x') + open);
    EXPECT_EQ(field.status().code(), Code::Io);
    EXPECT_TRUE(contains(field.status().message(), "line 2: a field has more than 64.0 MiB"))
        << field.status().message();
  }
  EXPECT_TRUE(contains(parsed("a\n\"b").status().message(), "line 2: a quoted field has no end"));
}

/// A pipe that gives `head` once and then `line` until its reader closes it.
class Endless {
 public:
  Endless(std::string head, std::string line) {
    EXPECT_EQ(pipe(ends_), 0);
    writer_ = std::thread([this, head = std::move(head), line = std::move(line)] {
      std::string block = head;
      while (write(ends_[1], block.data(), block.size()) == static_cast<ssize_t>(block.size())) {
        given_ += block.size();
        block.clear();
        while (block.size() < 4096) block += line;
      }
    });
  }
  ~Endless() { close(ends_[0]), writer_.join(), close(ends_[1]); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends_[0]); }
  size_t given() const { return given_; }

 private:
  int ends_[2] = {-1, -1};
  std::atomic<size_t> given_ = 0;
  std::thread writer_;
};

TEST(Delimited, AStreamWithoutEndIsReadNoFurtherThanItsFirstError) {
  std::signal(SIGPIPE, SIG_IGN);
  constexpr size_t kEnough = size_t{1} << 20;
  {
    Endless stream("a,b\n1,2\n3\n", "1,2\n");
    const auto table = read_delimited(stream.path(), {});
    EXPECT_TRUE(contains(table.status().message(), "line 3: expected 2 fields, found 1"))
        << table.status().message();
    EXPECT_LT(stream.given(), kEnough);
  }
  {
    Endless stream("a,b\n", "x");
    const auto table = read_delimited(stream.path(), {});
    EXPECT_TRUE(contains(table.status().message(), "line 2: a field has more than 64.0 MiB"))
        << table.status().message();
    EXPECT_LT(stream.given(), 2 * kLongestField + kEnough);
  }
  {
    Endless stream("a,b\n", "10,20\n");
    const auto table = read_delimited(stream.path(), {}, 4 * kEnough);
    EXPECT_EQ(table.status().code(), Code::OutOfMemory);
    EXPECT_TRUE(contains(table.status().message(), "the table takes more than 4.0 MiB in memory"))
        << table.status().message();
    EXPECT_LT(stream.given(), kEnough);  // six bytes are a row of a hundred
  }
}

/// However the pieces cut rows, quotes, line ends and the byte order mark.
TEST(Delimited, PiecesOfAStream) {
  std::string text =
      "\xef\xbb\xbf"
      "name,\"quoted, \"\"twice\"\"\"\r\n";
  for (int i = 0; i < 40'000; ++i)
    text += std::to_string(i) + (i % 3 == 0 ? ",\"a\r\nb\"\"c\"\r\n" : i % 3 == 1 ? ",plain\r" : ",\n");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    for (size_t at = 0; at < text.size(); at += 777)
      EXPECT_GT(write(ends[1], text.data() + at, std::min<size_t>(777, text.size() - at)), 0);
    close(ends[1]);
  });
  const auto streamed = read_delimited("/proc/self/fd/" + std::to_string(ends[0]), {});
  writer.join();
  close(ends[0]);
  const auto whole = parsed(text);
  ASSERT_TRUE(streamed.ok()) << streamed.status().message();
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->names, (std::vector<std::string>{"name", "quoted, \"twice\""}));
  ASSERT_EQ(whole->rows.size(), 40'000u);
  EXPECT_EQ(whole->rows[3], (std::vector<std::string>{"3", "a\r\nb\"c"}));
  EXPECT_EQ(streamed->names, whole->names);
  EXPECT_EQ(streamed->rows, whole->rows);
  EXPECT_EQ(streamed->lines, whole->lines);
}

struct Piece {
  std::string text;
  float score;
};

/// A tokenizer's file with the three special tokens, the 256 bytes and `pieces`.
std::string file_of(const std::vector<Piece>& pieces) {
  std::string file(4, '\0');
  const auto add = [&](const std::string& text, float score) {
    const auto length = static_cast<uint32_t>(text.size());
    for (const uint32_t number : {std::bit_cast<uint32_t>(score), length})
      for (int shift = 0; shift < 32; shift += 8) file += static_cast<char>(number >> shift);
    file += text;
  };
  for (const char* special : {"<unk>", "<s>", "</s>"}) add(special, 0);
  for (int byte = 0; byte < 256; ++byte) add("<0x" + std::to_string(byte) + ">", 0);
  for (const Piece& piece : pieces) add(piece.text, piece.score);
  return file;
}

std::optional<Tokenizer> tokenizer_of(const std::vector<Piece>& pieces) {
  std::string error;
  auto tokenizer = Tokenizer::parse(bytes_of(file_of(pieces)), error);
  EXPECT_TRUE(tokenizer) << error;
  return tokenizer;
}

/// The definition: while a neighbouring pair can be merged, the one with the best score, the leftmost of
/// equal ones.
std::vector<int64_t> merged_slowly(const std::vector<Piece>& pieces, const std::string& text) {
  const auto find = [&](const std::string& piece) {
    for (size_t i = 0; i < pieces.size(); ++i)
      if (pieces[i].text == piece) return static_cast<int64_t>(i);
    return int64_t{-1};
  };
  std::vector<int64_t> ids;
  for (const char letter : text) ids.push_back(find(std::string(1, letter)));
  for (;;) {
    int64_t best = -1;
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const int64_t id =
          find(pieces[static_cast<size_t>(ids[i])].text + pieces[static_cast<size_t>(ids[i + 1])].text);
      if (id < 0 ||
          (best >= 0 && pieces[static_cast<size_t>(id)].score <= pieces[static_cast<size_t>(best)].score))
        continue;
      best = id;
      at = i;
    }
    if (best < 0) break;
    ids[at] = best;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  for (int64_t& id : ids) id += 259;
  ids.insert(ids.begin(), Tokenizer::kBegin);
  return ids;
}

TEST(Tokenizer, MergesByScore) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<Piece> pieces = {{"a", 0}, {"b", 0}, {"c", 0}};
    for (int i = 0; i < 12; ++i) {
      std::string text;
      for (size_t size = 2 + random() % 4; size > 0; --size) text += static_cast<char>('a' + random() % 3);
      pieces.push_back({text, static_cast<float>(random() % 5)});
    }
    const auto tokenizer = tokenizer_of(pieces);
    ASSERT_TRUE(tokenizer);
    std::string text;
    for (size_t size = random() % 40; size > 0; --size) text += static_cast<char>('a' + random() % 3);
    EXPECT_EQ(tokenizer->encode(text), merged_slowly(pieces, text)) << text;
  }
}

// Pair by pair, a line of this length would take days.
TEST(Tokenizer, ALongLine) {
  const auto tokenizer = tokenizer_of({{"a", 0}, {"aa", 1}, {"aaaa", 2}});
  ASSERT_TRUE(tokenizer);
  const auto ids = tokenizer->encode(std::string(1 << 20, 'a'));
  EXPECT_EQ(ids.size(), (size_t{1} << 18) + 1);
}

TEST(Tokenizer, FilesThatAreNone) {
  std::string error;
  const std::string whole = file_of({{"ab", 1}});
  EXPECT_TRUE(Tokenizer::parse(bytes_of(whole), error));
  for (size_t size = 0; size < whole.size(); size += 97)
    EXPECT_FALSE(Tokenizer::parse(bytes_of(whole.substr(0, size)), error)) << size;
  EXPECT_FALSE(Tokenizer::parse(bytes_of(file_of({{"ab", NAN}})), error));
  EXPECT_FALSE(Tokenizer::parse(Bytes(4 + 8 * (Tokenizer::kMostTokens + 1)), error));
  EXPECT_TRUE(contains(error, "259 to 1048576 tokens")) << error;
  std::string negative = file_of({});
  for (size_t i = 8; i < 12; ++i) negative[i] = '\xff';
  EXPECT_FALSE(Tokenizer::parse(bytes_of(negative), error));
  EXPECT_EQ(Tokenizer::load("/dev/zero").status().code(), Code::OutOfMemory);
}

}  // namespace
}  // namespace librt::tools
