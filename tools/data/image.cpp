#include "tools/data/image.h"

#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>

#include <jpeglib.h>
#include <png.h>

namespace librt::tools {
namespace {

constexpr size_t kMostPixels = size_t{64} << 20;

std::optional<Image> decode_png(const std::vector<std::byte>& bytes, std::string& error) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0) {
    error = png.message;
    return std::nullopt;
  }
  png.format = PNG_FORMAT_RGB;
  if (size_t{png.width} * png.height > kMostPixels) {
    png_image_free(&png);
    error = "has more than 64 million pixels";
    return std::nullopt;
  }
  Image image{.width = static_cast<int>(png.width), .height = static_cast<int>(png.height), .rgb = {}};
  image.rgb.resize(PNG_IMAGE_SIZE(png));
  if (png_image_finish_read(&png, nullptr, image.rgb.data(), 0, nullptr) == 0) {
    error = png.message;
    png_image_free(&png);
    return std::nullopt;
  }
  return image;
}

// libjpeg reports errors through a callback that must not return.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void jpeg_failed(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

void jpeg_warned(j_common_ptr, int) {}

// Everything with a destructor is in the caller: longjmp runs no destructors.
bool decode_jpeg_into(const std::vector<std::byte>& bytes, Image& image, JpegErrors& errors) {
  jpeg_decompress_struct info = {};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = jpeg_failed;
  errors.manager.emit_message = jpeg_warned;
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  if (size_t{info.output_width} * info.output_height > kMostPixels) {
    std::snprintf(errors.message, sizeof errors.message, "has more than 64 million pixels");
    jpeg_destroy_decompress(&info);
    return false;
  }
  image.width = static_cast<int>(info.output_width);
  image.height = static_cast<int>(info.output_height);
  image.rgb.resize(size_t{3} * info.output_width * info.output_height);
  while (info.output_scanline < info.output_height) {
    unsigned char* row = image.rgb.data() + size_t{3} * info.output_width * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return true;
}

enum class Format : uint8_t { None, Png, Jpeg };

Format format_of(const unsigned char* head, size_t size) {
  static constexpr unsigned char kPng[8] = {0x89, 'P', 'N', 'G', 0x0d, 0x0a, 0x1a, 0x0a};
  if (size >= 8 && std::memcmp(head, kPng, 8) == 0) return Format::Png;
  if (size >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff) return Format::Jpeg;
  return Format::None;
}

}  // namespace

bool is_image_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  unsigned char head[8];
  return file && format_of(head, std::fread(head, 1, sizeof head, file.get())) != Format::None;
}

std::optional<Image> read_image(const std::string& path, std::string& error) {
  const auto bytes = read_file(path, error);
  if (!bytes) return std::nullopt;
  std::optional<Image> image;
  switch (format_of(reinterpret_cast<const unsigned char*>(bytes->data()), bytes->size())) {
    case Format::Png: image = decode_png(*bytes, error); break;
    case Format::Jpeg: {
      JpegErrors errors = {};
      image.emplace();
      if (!decode_jpeg_into(*bytes, *image, errors)) {
        error = errors.message;
        image.reset();
      }
      break;
    }
    case Format::None: error = "is neither PNG nor JPEG"; break;
  }
  if (!image) error = path + ": " + error;
  return image;
}

Image resized(const Image& image, int width, int height) {
  Image out{.width = width, .height = height, .rgb = {}};
  out.rgb.resize(size_t{3} * static_cast<size_t>(width) * static_cast<size_t>(height));
  struct Tap {
    int low, high;
    double weight;
  };
  auto tap = [](int at, int to, int from) {
    double source = (at + 0.5) * from / to - 0.5;
    source = source < 0 ? 0 : source;
    const int low = std::min(static_cast<int>(source), from - 1);
    return Tap{low, std::min(low + 1, from - 1), source - low};
  };
  for (int y = 0; y < height; ++y) {
    const Tap ty = tap(y, height, image.height);
    for (int x = 0; x < width; ++x) {
      const Tap tx = tap(x, width, image.width);
      for (int c = 0; c < 3; ++c) {
        auto pixel = [&](int row, int column) -> double {
          return image.rgb[static_cast<size_t>((row * image.width + column) * 3 + c)];
        };
        const double top = pixel(ty.low, tx.low) * (1 - tx.weight) + pixel(ty.low, tx.high) * tx.weight;
        const double bottom = pixel(ty.high, tx.low) * (1 - tx.weight) + pixel(ty.high, tx.high) * tx.weight;
        out.rgb[static_cast<size_t>((y * width + x) * 3 + c)] =
            static_cast<uint8_t>(std::lround(top * (1 - ty.weight) + bottom * ty.weight));
      }
    }
  }
  return out;
}

Array image_to_array(const Image& image, const ImageOptions& options) {
  const int channels = options.channels == Channels::Gray ? 1 : 3;
  const size_t pixels = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  std::vector<float> values(pixels * static_cast<size_t>(channels));
  auto per_channel = [](const std::vector<double>& numbers, int c) {
    return numbers.size() == 1 ? numbers[0] : numbers[static_cast<size_t>(c)];
  };
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* rgb = image.rgb.data() + 3 * i;
    for (int c = 0; c < channels; ++c) {
      const double raw = channels == 1 ? 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
                                       : rgb[options.channels == Channels::Bgr ? 2 - c : c];
      const double value = (raw - per_channel(options.mean, c)) / per_channel(options.deviation, c);
      const size_t at = options.channels_first ? static_cast<size_t>(c) * pixels + i
                                               : i * static_cast<size_t>(channels) + static_cast<size_t>(c);
      values[at] = static_cast<float>(value);
    }
  }
  Array array;
  array.type = DType::F32;
  if (options.channels_first)
    array.dims = {1, channels, image.height, image.width};
  else
    array.dims = {1, image.height, image.width, channels};
  array.bytes.resize(values.size() * sizeof(float));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

}  // namespace librt::tools
