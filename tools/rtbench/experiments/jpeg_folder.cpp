#include "tools/rtbench/experiments/jpeg_folder.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

// After <cstdio>, whose FILE it uses.
#include <jpeglib.h>

#include "tools/data/random.h"

namespace librt::bench {
namespace {

constexpr int kQuality = 85;

// Waves of several lengths in each channel: as smooth as photographs are. sin(a x + b y + p) by the addition
// theorem, from tables over x and over y.
std::vector<uint8_t> picture(int width, int height, uint64_t seed) {
  constexpr int kChannels = 3, kWaves = 4;
  const auto columns = static_cast<size_t>(width), rows = static_cast<size_t>(height);
  std::vector<float> sums(columns * rows * kChannels);
  std::vector<float> sine(columns), cosine(columns);
  uint64_t state = seed;
  for (size_t wave = 0; wave < size_t{kChannels} * kWaves; ++wave) {
    const double across = 1e-3 * static_cast<double>(split_mix(state) % 200);
    const double down = 1e-3 * static_cast<double>(split_mix(state) % 200);
    const auto phase = static_cast<double>(split_mix(state) % 100);
    for (size_t x = 0; x < columns; ++x) {
      sine[x] = static_cast<float>(std::sin(across * static_cast<double>(x) + phase));
      cosine[x] = static_cast<float>(std::cos(across * static_cast<double>(x) + phase));
    }
    for (size_t y = 0; y < rows; ++y) {
      const auto s = static_cast<float>(std::sin(down * static_cast<double>(y)));
      const auto c = static_cast<float>(std::cos(down * static_cast<double>(y)));
      float* sum = sums.data() + y * columns * kChannels + wave % kChannels;
      for (size_t x = 0; x < columns; ++x) sum[x * kChannels] += sine[x] * c + cosine[x] * s;
    }
  }
  std::vector<uint8_t> rgb(sums.size());
  for (size_t i = 0; i < rgb.size(); ++i)
    rgb[i] = static_cast<uint8_t>(std::clamp(127.5f + 127.5f * sums[i] / kWaves, 0.0f, 255.0f));
  return rgb;
}

Status write_jpeg(const std::string& path, int width, int height, std::vector<uint8_t> rgb) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);  // ends the program: there is nothing here that could fail but memory
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, kQuality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = rgb.data() + size_t{jpeg.next_scanline} * jpeg.image_width * 3;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const std::unique_ptr<unsigned char, void (*)(void*)> owner(bytes, std::free);
  // Not tools::write_file(): that each of a thousand files reaches the disk takes seconds on a busy machine,
  // for files that are soon deleted.
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  file.close();
  return file ? Status() : Status(Code::Io, path + ": cannot be written: " + std::strerror(errno));
}

}  // namespace

Result<int64_t> write_jpeg_folder(const std::string& folder, int64_t count, int classes, int width,
                                  int height, uint64_t seed, const std::function<bool(int64_t)>& go_on) {
  int64_t i = 0;
  for (; i < count && go_on(i); ++i) {
    const std::string of_class = folder + "/class" + std::to_string(i % classes);
    std::error_code error;
    std::filesystem::create_directories(of_class, error);
    if (error) return Status(Code::Io, of_class + ": " + error.message());
    uint64_t state = seed;
    const uint64_t own = split_mix(state) ^ static_cast<uint64_t>(i);
    RT_TRY(
        write_jpeg(of_class + "/" + std::to_string(i) + ".jpg", width, height, picture(width, height, own)));
  }
  return i;
}

}  // namespace librt::bench
