#include "tools/rttrain/data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>

#include "tools/data/compare.h"
#include "tools/data/idx.h"
#include "tools/data/npy.h"
#include "tools/data/npz.h"
#include "tools/data/public_status.h"
#include "tools/rttrain/arrays.h"
#include "tools/rttrain/images.h"
#include "tools/rttrain/order.h"
#include "tools/rttrain/table.h"
#include "tools/rttrain/text.h"

namespace rt::train {
namespace {

constexpr auto kMostPixels = static_cast<int64_t>(librt::tools::kMostPixels);

// A subset of the samples of another source.
class PartSource final : public Source {
 public:
  PartSource(SourcePtr whole, std::vector<uint32_t> samples)
      : whole_(std::move(whole)), samples_(std::move(samples)) {
    columns_ = whole_->columns();
    classes_ = whole_->classes();
  }
  size_t size() const noexcept override { return samples_.size(); }
  rt::Status read(size_t index, std::span<std::byte* const> targets) const override {
    return whole_->read(samples_[index], targets);
  }
  librt::tools::Digest digest() const override {
    librt::tools::Digest digest = whole_->digest();
    digest.add(std::span<const uint32_t>(samples_));
    return digest;
  }

 private:
  SourcePtr whole_;
  std::vector<uint32_t> samples_;
};

rt::Result<std::string> format_of(const DataFiles& files, const DataOptions& options) {
  if (options.format != "auto") return options.format;
  const std::string& path = files.paths[0];
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return std::string("images");
  if (!std::filesystem::exists(path, error))
    return rt::Status(rt::Code::NotFound, path + ": there is no such file");
  for (const char* format : {"npz", "npy", "csv", "tsv"})
    if (path.ends_with(std::string(".") + format)) return std::string(format);
  if (librt::tools::is_idx_file(path)) return std::string("idx");
  if (path.ends_with(".txt")) return std::string("text");
  return bad_data(path +
                  ": its format cannot be derived from name and content; add --format npz, npy, csv, tsv, "
                  "idx, images or text");
}

rt::Result<SourcePtr> open_npz(const DataFiles& files, const DataOptions& options,
                               const std::vector<rt::TensorSpec>& inputs, int64_t class_count) {
  auto arrays = librt::tools::read_npz(files.paths[0]);
  if (!arrays) return as_public(arrays.status());
  return source_of(std::move(*arrays), files.paths[0], inputs,
                   {class_count, options.ignored_label, options.allow_nonfinite});
}

// Grayscale images [N,H,W] for an image input of another size or with three channels.
bool are_pictures_to_scale(const librt::tools::Array& array, const rt::TensorSpec& input) {
  std::vector<int64_t> dims;
  for (size_t axis = 1; axis < input.dims.size(); ++axis) dims.push_back(input.dims[axis].extent);
  const auto layout = image_layout(dims);
  return array.type == librt::DType::U8 && array.dims.size() == 3 && !array.bytes.empty() && layout &&
         (layout->height != array.dims[1] || layout->width != array.dims[2] || layout->channels != 1);
}

rt::Result<SourcePtr> scaled_pictures(librt::tools::Array pictures, const librt::tools::Array& values,
                                      const std::string& where, const DataOptions& options,
                                      const std::vector<rt::TensorSpec>& inputs, int64_t class_count) {
  // There are pixels; the extents must be those of an Image.
  if (pictures.dims[1] > kMostPixels / pictures.dims[2])
    return bad_data(where + ": expected pictures of at most " + std::to_string(kMostPixels) +
                    " pixels, found " + shape_text(pictures.dims));
  if (values.dims != std::vector<int64_t>{pictures.dims[0]})
    return bad_data(where + ": " + std::to_string(pictures.dims[0]) + " images, but labels " +
                    shape_text(values.dims));
  std::vector<int64_t> labels;
  for (size_t i = 0; i < static_cast<size_t>(pictures.dims[0]); ++i) {
    labels.push_back(static_cast<int64_t>(librt::tools::element_of(values, i)));
    if (const std::string problem = label_problem(labels.back(), class_count, options.ignored_label);
        !problem.empty())
      return bad_data(where + ": sample " + std::to_string(i) + ": " + problem);
  }
  const auto gray = std::make_shared<const librt::tools::Array>(std::move(pictures));
  const auto read = [gray](size_t index) -> rt::Result<librt::tools::Image> {
    librt::tools::Image image{
        .width = static_cast<int>(gray->dims[2]), .height = static_cast<int>(gray->dims[1]), .rgb = {}};
    const size_t pixels = static_cast<size_t>(gray->dims[1] * gray->dims[2]);
    image.rgb.reserve(3 * pixels);
    for (size_t i = index * pixels; i < (index + 1) * pixels; ++i)
      image.rgb.insert(image.rgb.end(), 3, std::to_integer<uint8_t>(gray->bytes[i]));
    return image;
  };
  const auto digest = [gray] {
    librt::tools::Digest all;
    all.add(std::span<const int64_t>(gray->dims));
    all.add(std::span<const std::byte>(gray->bytes));
    return all;
  };
  return pictures_of({read, digest}, std::move(labels), {}, options, inputs);
}

bool is_npy_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::array<char, 8> begin{};
  std::ifstream(path, std::ios::binary).read(begin.data(), begin.size());
  return librt::tools::is_npy(std::as_bytes(std::span(begin)));
}

/// An IDX or .npy file, by its content.
rt::Result<librt::tools::Array> read_array(const std::string& path) {
  if (!is_npy_file(path)) {
    auto array = librt::tools::read_idx(path);
    if (!array) return as_public(array.status());
    return std::move(*array);
  }
  auto bytes = librt::tools::read_file(path);
  if (!bytes) return as_public(bytes.status());
  std::string error;
  auto array = librt::tools::parse_npy(std::move(*bytes), error);
  if (!array) return bad_data(path + ": " + error);
  if (array->dims.empty())
    return bad_data(path + ": expected an array whose first axis counts samples, found a single number");
  return std::move(*array);
}

/// The only input's samples in files of one array each, the labels in another.
rt::Result<SourcePtr> open_arrays(const DataFiles& files, const DataOptions& options,
                                  const std::vector<rt::TensorSpec>& inputs, int64_t class_count) {
  if (files.labels.empty())
    return bad_data(
        files.paths[0] +
        ": IDX and .npy files hold no labels; name the file that does with --labels (--validate-labels)");
  auto input = only_data_input(inputs, "IDX and .npy files");
  if (!input) return input.status();
  std::vector<librt::tools::Array> arrays(2);
  for (const std::string& path : files.paths) {
    auto part = read_array(path);
    if (!part) return part.status();
    if (arrays[0].dims.empty()) {
      arrays[0] = std::move(*part);
      continue;
    }
    if (part->type != arrays[0].type || !std::equal(part->dims.begin() + 1, part->dims.end(),
                                                    arrays[0].dims.begin() + 1, arrays[0].dims.end()))
      return bad_data(path + ": expected samples of " + std::string(librt::name_of(arrays[0].type)) + " " +
                      shape_text(std::span(arrays[0].dims).subspan(1)) + " as in the other files, found " +
                      std::string(librt::name_of(part->type)) + " " +
                      shape_text(std::span(part->dims).subspan(1)));
    arrays[0].dims[0] += part->dims[0];
    arrays[0].bytes.insert(arrays[0].bytes.end(), part->bytes.begin(), part->bytes.end());
  }
  arrays[0].name = input->name;
  auto labels = read_array(files.labels);
  if (!labels) return labels.status();
  arrays[1] = std::move(*labels);
  arrays[1].name = "labels";
  const std::string where = files.paths[0] + " with " + files.labels;
  if (are_pictures_to_scale(arrays[0], *input))
    return scaled_pictures(std::move(arrays[0]), arrays[1], where, options, inputs, class_count);
  return source_of(std::move(arrays), where, inputs,
                   {class_count, options.ignored_label, options.allow_nonfinite});
}

}  // namespace

rt::Result<SourcePtr> open_source(const DataFiles& files, const DataOptions& options, const Part& part,
                                  const std::vector<rt::TensorSpec>& inputs, int64_t class_count,
                                  DataFacts& facts) {
  const auto format = format_of(files, options);
  if (!format) return format.status();
  const bool are_arrays = *format == "idx" || *format == "npy";
  if (files.paths.size() > 1 && !are_arrays)
    return bad_data(*format + " data is one file or folder; several are for IDX and .npy files");
  if (!files.labels.empty() && !are_arrays)
    return bad_data(files.labels + ": --labels is for IDX and .npy files; " + *format +
                    " data holds its labels");
  if (*format == "text") return open_text(files.paths[0], options, part, inputs);
  auto source = *format == "npz"      ? open_npz(files, options, inputs, class_count)
                : are_arrays          ? open_arrays(files, options, inputs, class_count)
                : *format == "images" ? open_images(files.paths[0], options, inputs, class_count, facts)
                                      : open_table(files.paths[0], options, *format == "tsv" ? '\t' : ',',
                                                   inputs, class_count, facts);
  if (!source || (part.begin == 0 && part.end == 1)) return source;
  std::vector<uint32_t> order = epoch_order((*source)->size(), part.seed, 0, true);
  const auto at = [&](double fraction) {
    return static_cast<std::ptrdiff_t>(std::llround(fraction * static_cast<double>(order.size())));
  };
  std::vector<uint32_t> chosen(order.begin() + at(part.begin), order.begin() + at(part.end));
  if (chosen.empty()) return bad_data(files.paths[0] + ": --validate-fraction leaves a part without samples");
  return SourcePtr(std::make_unique<PartSource>(std::move(*source), std::move(chosen)));
}

}  // namespace rt::train
