// Labelled images: a folder with one subfolder per class, or any other collection.
#pragma once

#include <functional>
#include <optional>

#include "tools/data/image.h"
#include "tools/rttrain/data.h"

namespace rt::train {

/// FOLDER/CLASS/*.png, *.jpg, *.jpeg; classes are numbered in sorted order. Images are decoded when they are
/// read, scaled to the input's size and given as 0..255; up to options.cache_bytes of them are cached. The
/// input is [batch,H,W,C] or [batch,C,H,W] with C 1 or 3; if both fit, the former.
rt::Result<SourcePtr> open_images(const std::string& folder, const DataOptions& options,
                                  const std::vector<rt::TensorSpec>& inputs, int64_t class_count,
                                  DataFacts& facts);

/// Where images come from.
struct PictureReader {
  /// Decodes one image; called by several threads concurrently.
  std::function<rt::Result<librt::tools::Image>(size_t index)> read;
  std::function<librt::tools::Digest()> digest;  ///< of all, without their labels
};

/// Images scaled and cached as above; one label each, and the class names, if any.
rt::Result<SourcePtr> pictures_of(PictureReader reader, std::vector<int64_t> labels,
                                  std::vector<std::string> classes, const DataOptions& options,
                                  const std::vector<rt::TensorSpec>& inputs);

/// The axes of an image input.
struct ImageLayout {
  int64_t height = 0, width = 0, channels = 0;
  bool channels_first = false;
};
/// From the extents of a sample; nullopt when they are not those of an image.
std::optional<ImageLayout> image_layout(std::span<const int64_t> dims);

}  // namespace rt::train
