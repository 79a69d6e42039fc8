#include "tools/data/image.h"

#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>

#include <jpeglib.h>
#include <png.h>

#include <jerror.h>  // depends on jpeglib.h

namespace librt::tools {
namespace {

using Input = std::span<const std::byte>;

std::string pixels_text(uint64_t width, uint64_t height, size_t most) {
  return "has " + std::to_string(width) + "x" + std::to_string(height) + " pixels, expected at most " +
         std::to_string(most >> 20) + " million";
}

bool exceeds(uint64_t width, uint64_t height, size_t most) noexcept {
  return width > most || height > most || width * height > most;
}

// libpng limits the memory of other chunks than the pixels' itself (8 MB each, 1000 of them).
std::optional<Image> decode_png(Input bytes, std::string& error, const ImageLimits& limits) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> freed(&png, png_image_free);
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0) {
    error = png.message;
    return std::nullopt;
  }
  png.format = PNG_FORMAT_RGB;
  if (exceeds(png.width, png.height, limits.pixels)) {
    error = pixels_text(png.width, png.height, limits.pixels);
    return std::nullopt;
  }
  Image image{.width = static_cast<int>(png.width), .height = static_cast<int>(png.height), .rgb = {}};
  image.rgb.resize(PNG_IMAGE_SIZE(png));
  if (png_image_finish_read(&png, nullptr, image.rgb.data(), 0, nullptr) == 0) {
    error = png.message;
    return std::nullopt;
  }
  return image;
}

/// A decoder that outlives the function that calls libjpeg, which reports errors through a callback that must
/// not return: longjmp runs no destructors.
struct JpegDecoder {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = {};
  int most_scans = 0;

  JpegDecoder() = default;
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() { jpeg_destroy_decompress(&info); }
};

JpegDecoder& decoder_of(j_common_ptr info) {
  return *static_cast<JpegDecoder*>(info->client_data);
}

void jpeg_failed(j_common_ptr info) {
  JpegDecoder& decoder = decoder_of(info);
  info->err->format_message(info, decoder.message);
  std::longjmp(decoder.jump, 1);
}

/// Of the warnings, these say that pixels are lost; after the others the picture is whole.
void jpeg_warned(j_common_ptr info, int level) {
  if (level >= 0) return;  // a trace
  switch (info->err->msg_code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC: jpeg_failed(info); break;
    default: break;
  }
}

void jpeg_advanced(j_common_ptr info) {
  JpegDecoder& decoder = decoder_of(info);
  if (decoder.info.input_scan_number <= decoder.most_scans) return;
  std::snprintf(decoder.message, sizeof decoder.message, "has more than %d scans", decoder.most_scans);
  std::longjmp(decoder.jump, 1);
}

// Nothing here has a destructor.
bool begin_jpeg(JpegDecoder& decoder, Input bytes) {
  jpeg_decompress_struct& info = decoder.info;
  info.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = jpeg_failed;
  decoder.errors.emit_message = jpeg_warned;
  info.client_data = &decoder;
  if (setjmp(decoder.jump) != 0) return false;
  jpeg_create_decompress(&info);
  decoder.progress.progress_monitor = jpeg_advanced;
  info.progress = &decoder.progress;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  return true;
}

bool finish_jpeg(JpegDecoder& decoder, Image& image) {
  jpeg_decompress_struct& info = decoder.info;
  if (setjmp(decoder.jump) != 0) return false;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    unsigned char* row = image.rgb.data() + size_t{3} * info.output_width * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

std::optional<Image> decode_jpeg(Input bytes, std::string& error, const ImageLimits& limits) {
  JpegDecoder decoder;
  decoder.most_scans = limits.scans;
  if (!begin_jpeg(decoder, bytes)) {
    error = decoder.message;
    return std::nullopt;
  }
  const uint64_t width = decoder.info.image_width, height = decoder.info.image_height;
  if (exceeds(width, height, limits.pixels)) {
    error = pixels_text(width, height, limits.pixels);
    return std::nullopt;
  }
  Image image{.width = static_cast<int>(width), .height = static_cast<int>(height), .rgb = {}};
  image.rgb.resize(static_cast<size_t>(3 * width * height));
  if (!finish_jpeg(decoder, image)) {
    error = decoder.message;
    return std::nullopt;
  }
  return image;
}

enum class Format : uint8_t { None, Png, Jpeg };

Format format_of(Input head) noexcept {
  static constexpr unsigned char kPng[8] = {0x89, 'P', 'N', 'G', 0x0d, 0x0a, 0x1a, 0x0a};
  static constexpr unsigned char kJpeg[3] = {0xff, 0xd8, 0xff};
  if (head.size() >= sizeof kPng && std::memcmp(head.data(), kPng, sizeof kPng) == 0) return Format::Png;
  if (head.size() >= sizeof kJpeg && std::memcmp(head.data(), kJpeg, sizeof kJpeg) == 0) return Format::Jpeg;
  return Format::None;
}

}  // namespace

bool is_image(Input head) noexcept {
  return format_of(head) != Format::None;
}

std::optional<Image> decode_image(Input bytes, std::string& error, const ImageLimits& limits) {
  switch (format_of(bytes)) {
    case Format::Png: return decode_png(bytes, error, limits);
    case Format::Jpeg: return decode_jpeg(bytes, error, limits);
    case Format::None: break;
  }
  error = "is neither PNG nor JPEG";
  return std::nullopt;
}

Result<Image> read_image(const std::string& path) {
  RT_ASSIGN(const Bytes bytes, read_file(path, kLargestImageFile));
  std::string error;
  auto image = decode_image(bytes, error);
  if (!image) return Status::make(Code::Io, path, ": ", error);
  return std::move(*image);
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
