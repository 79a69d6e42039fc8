// Multimedia Programming Interface and Data Specifications 1.0 (IBM, Microsoft 1991); WAVE_FORMAT_EXTENSIBLE.
#include "tools/data/wav.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace librt::tools {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

/// Little-endian integer of `count` bytes.
uint64_t integer(Bytes bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

bool has_name(Bytes bytes, size_t at, std::string_view name) {
  return bytes.size() >= at + 4 && std::memcmp(bytes.data() + at, name.data(), 4) == 0;
}

struct Format {
  uint64_t tag = 0, channels = 0, rate = 0, frame_bytes = 0, bits = 0;
};

std::optional<Format> parse_format(Bytes chunk, std::string& error) {
  if (chunk.size() < 16) {
    error = "wav: chunk 'fmt ': expected at least 16 bytes, found " + std::to_string(chunk.size());
    return std::nullopt;
  }
  Format format{.tag = integer(chunk, 0, 2),
                .channels = integer(chunk, 2, 2),
                .rate = integer(chunk, 4, 4),
                .frame_bytes = integer(chunk, 12, 2),
                .bits = integer(chunk, 14, 2)};
  if (format.tag == kExtensible && chunk.size() >= 26) format.tag = integer(chunk, 24, 2);
  const bool is_pcm =
      format.tag == kPcm && (format.bits == 8 || format.bits == 16 || format.bits == 24 || format.bits == 32);
  if (!is_pcm && !(format.tag == kFloat && format.bits == 32)) {
    error = "wav: expected PCM of 8, 16, 24 or 32 bits or 32-bit floats, found format " +
            std::to_string(format.tag) + " of " + std::to_string(format.bits) + " bits; convert it to PCM";
    return std::nullopt;
  }
  if (format.channels == 0 || format.rate == 0 || format.frame_bytes != format.channels * format.bits / 8) {
    error = "wav: " + std::to_string(format.channels) + " channels of " + std::to_string(format.bits) +
            " bits at " + std::to_string(format.rate) + " Hz in frames of " +
            std::to_string(format.frame_bytes) + " bytes: inconsistent";
    return std::nullopt;
  }
  return format;
}

float sample(Bytes data, size_t at, const Format& format) {
  const auto raw = static_cast<uint32_t>(integer(data, at, static_cast<size_t>(format.bits / 8)));
  if (format.tag == kFloat) return std::bit_cast<float>(raw);
  if (format.bits == 8) return (static_cast<float>(raw) - 128) * 0x1p-7f;  // the only unsigned size
  // The bits as the highest ones of an int32.
  return static_cast<float>(static_cast<int32_t>(raw << (32 - format.bits))) * 0x1p-31f;
}

}  // namespace

bool is_wav(Bytes bytes) noexcept {
  return has_name(bytes, 0, "RIFF") && has_name(bytes, 8, "WAVE");
}

std::optional<Sound> parse_wav(Bytes bytes, std::string& error) {
  if (!is_wav(bytes)) {
    error = "wav: the file does not begin with RIFF and WAVE";
    return std::nullopt;
  }
  std::optional<Format> format;
  // Chunks: a name, a size, that many bytes, and one more where the size is odd.
  for (size_t at = 12; bytes.size() - at >= 8;) {
    const uint64_t size = integer(bytes, at + 4, 4);
    const uint64_t there = bytes.size() - at - 8;
    const std::string name(reinterpret_cast<const char*>(bytes.data() + at), 4);
    const bool wanted = name == "fmt " || name == "data";
    if (size > there) {
      if (!wanted) break;
      error = "wav: chunk '" + name + "': expected " + std::to_string(size) + " bytes, found " +
              std::to_string(there) + "; the file is cut short, or was written to a pipe";
      return std::nullopt;
    }
    const Bytes chunk = bytes.subspan(at + 8, static_cast<size_t>(size));
    if (name == "fmt ") {
      format = parse_format(chunk, error);
      if (!format) return std::nullopt;
    } else if (name == "data") {
      if (!format) break;
      if (size % format->frame_bytes != 0) {
        error = "wav: chunk 'data': expected a multiple of " + std::to_string(format->frame_bytes) +
                " bytes, found " + std::to_string(size);
        return std::nullopt;
      }
      Sound sound{.rate = static_cast<int64_t>(format->rate),
                  .channels = static_cast<int64_t>(format->channels),
                  .samples = {}};
      const size_t width = static_cast<size_t>(format->bits / 8);
      sound.samples.resize(chunk.size() / width);
      for (size_t i = 0; i < sound.samples.size(); ++i) sound.samples[i] = sample(chunk, i * width, *format);
      return sound;
    }
    at += 8 + static_cast<size_t>(std::min(size + size % 2, there));
  }
  error = std::string("wav: there is no chunk '") + (format ? "data" : "fmt ") + "' before the end" +
          (format ? "" : ", or before 'data'");
  return std::nullopt;
}

Array sound_to_array(const Sound& sound, Mix mix) {
  const auto frames = static_cast<size_t>(sound.frames()), channels = static_cast<size_t>(sound.channels);
  std::vector<float> values(frames);
  for (size_t i = 0; i < frames; ++i) {
    float sum = sound.samples[i * channels];
    for (size_t c = 1; mix == Mix::Mean && c < channels; ++c) sum += sound.samples[i * channels + c];
    values[i] = mix == Mix::Mean ? sum / static_cast<float>(channels) : sum;
  }
  Array array{.name = {}, .type = DType::F32, .dims = {sound.frames()}, .bytes = {}};
  array.bytes.resize(frames * sizeof(float));
  if (frames > 0) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

}  // namespace librt::tools
