#include "tools/rttrain/transform.h"

#include <algorithm>

#include "tools/data/number.h"
#include "tools/data/random.h"
#include "tools/rttrain/arrays.h"

namespace rt::train {
namespace {

// out[y][x] = in[y + dy][mirrored x + dx], 0 outside.
void move_picture(const ImageLayout& layout, const float* in, float* out, int64_t dy, int64_t dx,
                  bool mirror) {
  const int64_t planes = layout.channels_first ? layout.channels : 1;
  const int64_t depth = layout.channels_first ? 1 : layout.channels;  // contiguous values per pixel
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t y = 0; y < layout.height; ++y)
      for (int64_t x = 0; x < layout.width; ++x, out += depth) {
        const int64_t from_y = y + dy;
        const int64_t from_x = (mirror ? layout.width - 1 - x : x) + dx;
        const bool inside = from_y >= 0 && from_y < layout.height && from_x >= 0 && from_x < layout.width;
        if (inside)
          std::copy_n(in + ((plane * layout.height + from_y) * layout.width + from_x) * depth, depth, out);
        else
          std::fill_n(out, depth, 0.0f);
      }
}

}  // namespace

rt::Result<Augmentation> parse_augmentation(const std::vector<std::string>& words) {
  Augmentation augmentation;
  for (const std::string& word : words) {
    if (word == "flip") {
      augmentation.flip = true;
      continue;
    }
    constexpr std::string_view kCrop = "crop=";
    const auto pixels =
        word.starts_with(kCrop)
            ? librt::tools::number_from<decltype(augmentation.crop)>(word.substr(kCrop.size()))
            : std::nullopt;
    constexpr int64_t kMostPixels = 65535;
    if (!pixels || *pixels < 1 || *pixels > kMostPixels)
      return bad_data("--augment " + word + ": there are flip and crop=PIXELS, 1 to " +
                      std::to_string(kMostPixels));
    augmentation.crop = *pixels;
  }
  return augmentation;
}

rt::Result<Transform> Transform::create(const std::vector<Column>& columns,
                                        const Normalization& normalization,
                                        const Augmentation& augmentation) {
  Transform transform;
  transform.normalization_ = normalization;
  transform.augmentation_ = augmentation;
  const size_t numbers = std::max(normalization.mean.size(), normalization.deviation.size());
  for (double deviation : normalization.deviation)
    if (!(deviation > 0)) return bad_data("--std: expected numbers above 0");
  const bool neutral = normalization.scale == 1 && normalization.mean == std::vector<double>{0} &&
                       normalization.deviation == std::vector<double>{1};
  bool pictures = false;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.is_label || column.dtype != rt::DType::F32) continue;
    Step step{.column = i, .elements = column.elements(), .picture = image_layout(column.dims)};
    if (step.picture) {
      step.channels = static_cast<size_t>(step.picture->channels);
      if (step.picture->channels_first)
        step.channel_stride = static_cast<size_t>(step.picture->height * step.picture->width);
    } else if (!column.dims.empty()) {
      step.channels = static_cast<size_t>(column.dims.back());
    }
    for (const auto* list : {&normalization.mean, &normalization.deviation})
      if (list->size() != 1 && list->size() != step.channels)
        return bad_data("--mean and --std take one value or one per channel; input '" + column.input +
                        "' has " + std::to_string(step.channels) + " channels, given are " +
                        std::to_string(numbers));
    pictures = pictures || step.picture.has_value();
    if (!neutral || (augmentation.any() && step.picture)) transform.steps_.push_back(step);
  }
  if (augmentation.any() && !pictures)
    return bad_data("--augment is for images; the model has no f32 input [batch,H,W,C] or [batch,C,H,W]");
  if (!neutral && transform.steps_.empty())
    return bad_data("--scale, --mean and --std are for f32 inputs; the model has none");
  return transform;
}

void Transform::apply(uint64_t seed, std::span<std::byte* const> targets, std::vector<float>& scratch) const {
  uint64_t random = seed;
  const auto shift = [&] {
    const auto range = static_cast<uint64_t>(2 * augmentation_.crop + 1);
    return static_cast<int64_t>(librt::split_mix(random) % range) - augmentation_.crop;
  };
  const int64_t dy = shift();
  const int64_t dx = shift();
  const bool mirror = augmentation_.flip && (librt::split_mix(random) & 1) != 0;
  for (const Step& step : steps_) {
    auto* values = reinterpret_cast<float*>(targets[step.column]);
    if (step.picture && augmentation_.any()) {
      scratch.assign(values, values + step.elements);
      move_picture(*step.picture, scratch.data(), values, dy, dx, mirror);
    }
    normalize(step, values);
  }
}

void Transform::normalize(const Step& step, float* values) const {
  const auto of = [](const std::vector<double>& numbers, size_t channel) {
    return numbers.size() == 1 ? numbers[0] : numbers[channel];
  };
  if (normalization_.mean.size() == 1 && normalization_.deviation.size() == 1) {
    const double scale = normalization_.scale, mean = normalization_.mean[0],
                 deviation = normalization_.deviation[0];
    if (mean == 0 && deviation == 1 && scale == 1) return;
    for (size_t i = 0; i < step.elements; ++i)
      values[i] = static_cast<float>((static_cast<double>(values[i]) * scale - mean) / deviation);
    return;
  }
  for (size_t i = 0; i < step.elements; ++i) {
    const size_t channel = i / step.channel_stride % step.channels;
    values[i] = static_cast<float>(
        (static_cast<double>(values[i]) * normalization_.scale - of(normalization_.mean, channel)) /
        of(normalization_.deviation, channel));
  }
}

}  // namespace rt::train
