// The reader of WAV files: every format, mixing, and files that are damaged.
#include "tools/data/wav.h"

#include <gtest/gtest.h>

#include <cstring>

namespace librt::tools {
namespace {

using Bytes = std::vector<std::byte>;

void put(Bytes& bytes, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}
void put(Bytes& bytes, const char* name) {
  for (size_t i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(name[i]));
}

struct Layout {
  uint64_t tag = 1, channels = 1, rate = 16000, bits = 16;
  bool extensible = false;
  bool with_list = false;  ///< a chunk of odd size before the data
};

Bytes file_of(const Layout& layout, const Bytes& data) {
  Bytes bytes;
  put(bytes, "RIFF");
  put(bytes, 0, 4);
  put(bytes, "WAVE");
  put(bytes, "fmt ");
  put(bytes, layout.extensible ? 40 : 16, 4);
  put(bytes, layout.extensible ? 0xfffe : layout.tag, 2);
  put(bytes, layout.channels, 2);
  put(bytes, layout.rate, 4);
  put(bytes, layout.rate * layout.channels * layout.bits / 8, 4);
  put(bytes, layout.channels * layout.bits / 8, 2);
  put(bytes, layout.bits, 2);
  if (layout.extensible) {
    put(bytes, 22, 2);
    put(bytes, layout.bits, 2);
    put(bytes, 0, 4);
    put(bytes, layout.tag, 2);
    for (int i = 0; i < 14; ++i) put(bytes, 0x71, 1);
  }
  if (layout.with_list) {
    put(bytes, "LIST");
    put(bytes, 3, 4);
    put(bytes, 0, 4);
  }
  put(bytes, "data");
  put(bytes, data.size(), 4);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

Bytes integers(std::initializer_list<int64_t> values, size_t width) {
  Bytes data;
  for (const int64_t value : values) put(data, static_cast<uint64_t>(value), width);
  return data;
}

std::vector<float> samples_of(const Layout& layout, const Bytes& data) {
  std::string error;
  const auto sound = parse_wav(file_of(layout, data), error);
  EXPECT_TRUE(sound) << error;
  return sound ? sound->samples : std::vector<float>();
}

std::string error_of(const Bytes& bytes) {
  std::string error;
  EXPECT_FALSE(parse_wav(bytes, error));
  return error;
}

TEST(Wav, ReadsEveryFormat) {
  const std::vector<float> wanted = {0.0f, 0.5f, -1.0f};
  EXPECT_EQ(samples_of({.bits = 8}, integers({128, 192, 0}, 1)), wanted);
  EXPECT_EQ(samples_of({.bits = 16}, integers({0, 1 << 14, -(1 << 15)}, 2)), wanted);
  EXPECT_EQ(samples_of({.bits = 24}, integers({0, 1 << 22, -(1 << 23)}, 3)), wanted);
  EXPECT_EQ(samples_of({.bits = 32}, integers({0, 1 << 30, -(int64_t{1} << 31)}, 4)), wanted);
  Bytes floats(wanted.size() * sizeof(float));
  std::memcpy(floats.data(), wanted.data(), floats.size());
  EXPECT_EQ(samples_of({.tag = 3, .bits = 32}, floats), wanted);
  EXPECT_EQ(samples_of({.tag = 3, .bits = 32, .extensible = true, .with_list = true}, floats), wanted);
}

TEST(Wav, MixesChannels) {
  std::string error;
  const auto sound =
      parse_wav(file_of({.channels = 2, .rate = 8000}, integers({1 << 14, 0, -(1 << 14), 0}, 2)), error);
  ASSERT_TRUE(sound) << error;
  EXPECT_EQ(sound->rate, 8000);
  EXPECT_EQ(sound->frames(), 2);
  const auto values = [&](Mix mix) {
    const Array array = sound_to_array(*sound, mix);
    EXPECT_EQ(array.dims, std::vector<int64_t>{2});
    std::vector<float> all(2);
    std::memcpy(all.data(), array.bytes.data(), array.bytes.size());
    return all;
  };
  EXPECT_EQ(values(Mix::First), (std::vector<float>{0.5f, -0.5f}));
  EXPECT_EQ(values(Mix::Mean), (std::vector<float>{0.25f, -0.25f}));
}

TEST(Wav, RefusesOtherFormats) {
  const Bytes data = integers({0, 0}, 2);
  EXPECT_NE(error_of(file_of({.tag = 6, .bits = 8}, data)).find("found format 6 of 8 bits"),
            std::string::npos);
  EXPECT_NE(error_of(file_of({.bits = 12}, data)).find("of 12 bits"), std::string::npos);
  EXPECT_NE(error_of(file_of({.channels = 0}, data)).find("inconsistent"), std::string::npos);
  EXPECT_NE(error_of(file_of({.rate = 0}, data)).find("inconsistent"), std::string::npos);
  EXPECT_NE(error_of(file_of({.channels = 3}, data)).find("a multiple of 6 bytes, found 4"),
            std::string::npos);
}

TEST(Wav, RefusesEveryCut) {
  const Bytes whole = file_of({.extensible = true, .with_list = true}, integers({1, 2, 3}, 2));
  std::string error;
  ASSERT_TRUE(parse_wav(whole, error)) << error;
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(error_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), "") << size;
}

}  // namespace
}  // namespace librt::tools
