// Pictures with a class each: a folder with one subfolder for each class, or any other collection.
#pragma once

#include <functional>
#include <optional>

#include "tools/common/image.h"
#include "tools/rttrain/data.h"

namespace rt::train {

/// FOLDER/CLASS/*.png, *.jpg, *.jpeg; classes are numbered in sorted order. Pictures are decoded when they
/// are read, scaled to the input's size and given as 0..255; as many as options.cache_bytes hold are kept.
/// The input is [batch,H,W,C] or [batch,C,H,W] with C 1 or 3; where both fit, the former.
rt::Result<SourcePtr> open_images(const std::string& folder, const DataOptions& options,
                                  const std::vector<rt::TensorSpec>& inputs, int64_t class_count,
                                  DataFacts& facts);

/// Decodes one picture; several threads call it at once.
using ReadPicture = std::function<rt::Result<tools::Image>(size_t index)>;

/// Pictures that are scaled and kept as above; a label for each, and the classes' names, if they have any.
rt::Result<SourcePtr> pictures_of(ReadPicture read, std::vector<int64_t> labels,
                                  std::vector<std::string> classes, const DataOptions& options,
                                  const std::vector<rt::TensorSpec>& inputs);

/// Where an input of pictures has its axes.
struct ImageLayout {
  int64_t height = 0, width = 0, channels = 0;
  bool channels_first = false;
};
/// From the extents of a sample; none when they are not those of a picture.
std::optional<ImageLayout> image_layout(std::span<const int64_t> dims);

}  // namespace rt::train
