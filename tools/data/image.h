// PNG and JPEG images as pixels, and pixels as network inputs.
//
// Knows: decoding through libpng and libjpeg, bilinear resizing, normalisation. Must not know: sessions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/data/array.h"
#include "tools/data/file.h"

namespace librt::tools {

/// 8-bit RGB, rows from the top.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;
};

inline constexpr size_t kMostPixels = size_t{64} << 20;

/// Of a picture in a file; what exceeds them is refused by its header, before pixels are decoded.
struct ImageLimits {
  size_t pixels = kMostPixels;
  int scans = 100;  ///< of a progressive JPEG, each of which costs a pass over all pixels; usual are about 10
};
/// Size of a file with a picture.
inline constexpr size_t kLargestImageFile = size_t{512} << 20;

/// By content, not by name. What is cut short or damaged is an error.
Result<Image> read_image(const std::string& path);
bool is_image(std::span<const std::byte> head) noexcept;
std::optional<Image> decode_image(std::span<const std::byte> bytes, std::string& error,
                                  const ImageLimits& limits = {});
/// Bilinear with half-pixel centers. The image has pixels, and width * height is at most kMostPixels.
Image resized(const Image& image, int width, int height);

enum class Channels : uint8_t { Rgb, Bgr, Gray };

struct ImageOptions {
  Channels channels = Channels::Rgb;
  bool channels_first = true;
  std::vector<double> mean = {0};  ///< one value, or one per channel, in 0..255
  std::vector<double> deviation = {1};
};

/// f32 [1,C,H,W] or [1,H,W,C] of (pixel - mean) / deviation. Gray is ITU-R BT.601 luma.
Array image_to_array(const Image& image, const ImageOptions& options);

}  // namespace librt::tools
