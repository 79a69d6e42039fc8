// Transforms of a sample between its source and the batch: augmentation, then normalization.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tools/rttrain/images.h"
#include "tools/rttrain/source.h"

namespace rt::train {

struct Normalization {
  double scale = 1;                ///< value -> (value * scale - mean) / deviation
  std::vector<double> mean = {0};  ///< one value, or one per channel
  std::vector<double> deviation = {1};
};

struct Augmentation {
  bool flip = false;  ///< mirror horizontally with probability 1/2
  int64_t crop = 0;   ///< shift by up to this many pixels in each direction, with zero fill

  bool any() const noexcept { return flip || crop > 0; }
};

/// Parses "flip", "crop=4"; an error lists the valid ones.
rt::Result<Augmentation> parse_augmentation(const std::vector<std::string>& words);

class Transform {
 public:
  /// Both apply to f32 data inputs only. Augmentation needs at least one image input (image_layout).
  static rt::Result<Transform> create(const std::vector<Column>& columns, const Normalization& normalization,
                                      const Augmentation& augmentation);

  /// seed: of this sample in this epoch; all its images are moved alike. scratch: reused buffer.
  void apply(uint64_t seed, std::span<std::byte* const> targets, std::vector<float>& scratch) const;

 private:
  struct Step {
    size_t column = 0;
    size_t elements = 0;
    std::optional<ImageLayout> picture;
    size_t channels = 1, channel_stride = 1;  ///< channel of element i: i / channel_stride % channels
  };
  void normalize(const Step& step, float* values) const;

  std::vector<Step> steps_;
  Normalization normalization_;
  Augmentation augmentation_;
};

}  // namespace rt::train
