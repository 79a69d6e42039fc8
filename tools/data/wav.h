// WAV files (RIFF) as samples: PCM of 8, 16, 24 and 32 bits, and 32-bit floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/data/array.h"

namespace librt::tools {

struct Sound {
  int64_t rate = 0;            ///< samples per second
  int64_t channels = 0;        ///< at least 1
  std::vector<float> samples;  ///< PCM scaled to [-1, 1); the channels of a moment are adjacent

  int64_t frames() const noexcept { return static_cast<int64_t>(samples.size()) / channels; }
};

/// Sizes in the file have 32 bits.
inline constexpr size_t kLargestWav = (size_t{4} << 30) + 8;

bool is_wav(std::span<const std::byte> bytes) noexcept;
/// A file that is cut short, compressed, or contradicts itself is an error.
std::optional<Sound> parse_wav(std::span<const std::byte> bytes, std::string& error);

enum class Mix : uint8_t { First, Mean };  ///< the first channel, or the mean of all
/// f32 [frames] of one channel.
Array sound_to_array(const Sound& sound, Mix mix);

}  // namespace librt::tools
