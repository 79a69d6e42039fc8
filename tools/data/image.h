// PNG and JPEG images as pixels, and pixels as network inputs.
//
// Knows: decoding through libpng and libjpeg, bilinear resizing, normalisation. Must not know: sessions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/data/array.h"

namespace librt::tools {

/// 8-bit RGB, rows from the top.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;
};

/// By content, not by name. At most 64 million pixels.
std::optional<Image> read_image(const std::string& path, std::string& error);
bool is_image_file(const std::string& path);
/// Bilinear with half-pixel centers.
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
