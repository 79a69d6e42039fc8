#include "tools/rttrain/images.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "tools/data/image.h"
#include "tools/data/public_status.h"
#include "tools/rttrain/arrays.h"
#include "tools/rttrain/table.h"

namespace rt::train {
namespace {

namespace fs = std::filesystem;

struct Picture {
  std::string path;
  int64_t label = 0;
};

// Cache of decoded images by index, up to the limit. No eviction: every epoch reads every image once, so
// replacing cached images would not help.
class PictureCache {
 public:
  PictureCache(size_t count, size_t limit) : pictures_(count), left_(limit) {}
  std::shared_ptr<const librt::tools::Image> find(size_t index) const {
    const std::lock_guard lock(mutex_);
    return pictures_[index];
  }
  void keep(size_t index, const std::shared_ptr<const librt::tools::Image>& picture) {
    const std::lock_guard lock(mutex_);
    if (pictures_[index] != nullptr || picture->rgb.size() > left_) return;
    left_ -= picture->rgb.size();
    pictures_[index] = picture;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const librt::tools::Image>> pictures_;
  size_t left_;
};

class ImageSource final : public Source {
 public:
  ImageSource(PictureReader reader, std::vector<int64_t> labels, std::vector<std::string> classes,
              std::vector<Column> columns, const ImageLayout& layout, const DataOptions& options)
      : reader_(std::move(reader)),
        labels_(std::move(labels)),
        layout_(layout),
        cache_(labels_.size(), options.cache_bytes) {
    classes_ = std::move(classes);
    columns_ = std::move(columns);
    how_.channels = layout.channels == 1 ? librt::tools::Channels::Gray
                    : options.bgr        ? librt::tools::Channels::Bgr
                                         : librt::tools::Channels::Rgb;
    how_.channels_first = layout.channels_first;
  }

  size_t size() const noexcept override { return labels_.size(); }

  rt::Status read(size_t index, std::span<std::byte* const> targets) const override {
    std::shared_ptr<const librt::tools::Image> picture = cache_.find(index);
    if (picture == nullptr) {
      auto decoded = reader_.read(index);
      if (!decoded) return decoded.status();
      if (decoded->width != layout_.width || decoded->height != layout_.height)
        decoded = librt::tools::resized(*decoded, static_cast<int>(layout_.width),
                                        static_cast<int>(layout_.height));
      picture = std::make_shared<const librt::tools::Image>(std::move(*decoded));
      cache_.keep(index, picture);
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].is_label) {
        std::memcpy(targets[c], &labels_[index], sizeof(int64_t));
        continue;
      }
      const librt::tools::Array array = librt::tools::image_to_array(*picture, how_);
      std::memcpy(targets[c], array.bytes.data(), columns_[c].bytes);
    }
    return {};
  }

  librt::tools::Digest digest() const override {
    librt::tools::Digest digest = reader_.digest();
    digest.add(std::span<const int64_t>(labels_));
    return digest;
  }

 private:
  PictureReader reader_;
  std::vector<int64_t> labels_;
  ImageLayout layout_;
  librt::tools::ImageOptions how_;
  mutable PictureCache cache_;
};

bool has_image_suffix(const fs::path& path) {
  std::string suffix = path.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return suffix == ".png" || suffix == ".jpg" || suffix == ".jpeg";
}

rt::Result<std::vector<std::string>> subfolders(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  if (error) return rt::Status(rt::Code::Io, folder + ": " + error.message());
  std::sort(names.begin(), names.end());
  if (names.empty())
    return bad_data(folder + ": expected a subfolder for each class, with its images; found none");
  return names;
}

rt::Result<std::vector<Picture>> list_pictures(const std::string& folder,
                                               const std::vector<std::string>& found,
                                               const std::vector<std::string>& classes, int64_t class_count) {
  std::vector<Picture> pictures;
  for (const std::string& name : found) {
    const auto label = class_of(name, classes);
    if (!label) return bad_data(folder + ": " + label.status().message());
    if (class_count > 0 && *label >= class_count)
      return bad_data(folder + ": has " + std::to_string(classes.size()) + " classes, the model " +
                      std::to_string(class_count));
    const size_t before = pictures.size();
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(folder) / name, error))
      if (entry.is_regular_file() && has_image_suffix(entry.path()))
        pictures.push_back({entry.path().string(), *label});
    if (pictures.size() == before) return bad_data(folder + "/" + name + ": has no .png, .jpg or .jpeg file");
  }
  std::sort(pictures.begin(), pictures.end(),
            [](const Picture& a, const Picture& b) { return a.path < b.path; });
  return pictures;
}

}  // namespace

std::optional<ImageLayout> image_layout(std::span<const int64_t> dims) {
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  if (dims.size() != 3) return std::nullopt;
  if (is_channels(dims[2])) return ImageLayout{dims[0], dims[1], dims[2], false};
  if (is_channels(dims[0])) return ImageLayout{dims[1], dims[2], dims[0], true};
  return std::nullopt;
}

rt::Result<SourcePtr> pictures_of(PictureReader reader, std::vector<int64_t> labels,
                                  std::vector<std::string> classes, const DataOptions& options,
                                  const std::vector<rt::TensorSpec>& inputs) {
  auto input = only_data_input(inputs, "pictures");
  if (!input) return input.status();
  std::vector<int64_t> dims = {1};
  for (size_t axis = 1; axis < input->dims.size(); ++axis) dims.push_back(input->dims[axis].extent);
  if (options.size.size() == 2 && dims.size() == 4) {
    const size_t first = dims[1] == 1 || dims[1] == 3 ? 2 : 1;
    for (size_t i = 0; i < 2; ++i)
      if (dims[first + i] < 0) dims[first + i] = options.size[i];
  }
  std::vector<Column> columns;
  for (const rt::TensorSpec& spec : inputs) {
    auto column = column_for(spec, spec.name == input->name ? dims : std::vector<int64_t>{1});
    if (!column) return bad_data(column.status().message() + ", or give --size HEIGHT,WIDTH");
    if (column->is_label && (column->dtype != rt::DType::I64 || column->elements() != 1))
      return bad_data("input '" + spec.name + "': images have one class each");
    columns.push_back(std::move(*column));
  }
  const auto layout = image_layout(std::span<const int64_t>(dims).subspan(1));
  if (!layout || input->dtype != rt::DType::F32)
    return bad_data("input '" + input->name + "' is " + std::string(rt::name_of(input->dtype)) + " " +
                    shape_text(dims) + "; images feed f32 [batch,H,W,C] or [batch,C,H,W] with C 1 or 3");
  if (layout->height > static_cast<int64_t>(librt::tools::kMostPixels) / layout->width)
    return bad_data("input '" + input->name + "' takes pictures of " + shape_text(dims) +
                    "; they have at most " + std::to_string(librt::tools::kMostPixels) + " pixels");
  return SourcePtr(std::make_unique<ImageSource>(std::move(reader), std::move(labels), std::move(classes),
                                                 std::move(columns), *layout, options));
}

rt::Result<SourcePtr> open_images(const std::string& folder, const DataOptions& options,
                                  const std::vector<rt::TensorSpec>& inputs, int64_t class_count,
                                  DataFacts& facts) {
  auto found = subfolders(folder);
  if (!found) return found.status();
  if (facts.classes.empty()) facts.classes = *found;
  auto listed = list_pictures(folder, *found, facts.classes, class_count);
  if (!listed) return listed.status();
  const auto pictures = std::make_shared<const std::vector<Picture>>(std::move(*listed));
  std::vector<int64_t> labels;
  for (const Picture& picture : *pictures) labels.push_back(picture.label);
  const auto read = [pictures](size_t index) -> rt::Result<librt::tools::Image> {
    auto decoded = librt::tools::read_image((*pictures)[index].path);
    if (!decoded) return as_public(decoded.status());
    return std::move(*decoded);
  };
  // Not the content: to read all of it may take longer than the training.
  const auto digest = [pictures, folder] {
    librt::tools::Digest all;
    for (const Picture& picture : *pictures) {
      std::error_code error;
      all.add(fs::path(picture.path).lexically_relative(folder).native());
      all.add(fs::file_size(picture.path, error));
    }
    return all;
  };
  return pictures_of({read, digest}, std::move(labels), facts.classes, options, inputs);
}

}  // namespace rt::train
