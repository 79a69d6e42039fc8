// Pictures that promise more than they hold: refused by their headers.
#include "tools/data/image.h"

#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include "tests/data/scratch.h"

namespace librt::tools {
namespace {

using Picture = std::vector<std::byte>;

std::string error_of(const Picture& file, const ImageLimits& limits = {}) {
  std::string error;
  return decode_image(file, error, limits) ? "" : error;
}

/// Gray, of a gradient.
Picture jpeg(unsigned width, unsigned height, bool progressive) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = 1;
  info.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> row(width);
  while (info.next_scanline < height) {
    for (unsigned x = 0; x < width; ++x) row[x] = static_cast<unsigned char>(7 * x + 3 * info.next_scanline);
    unsigned char* rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  const auto* first = reinterpret_cast<const std::byte*>(memory);
  Picture file(first, first + size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return file;
}

/// The extents in the frame header (SOF0 or SOF2).
void set_extents(Picture& file, unsigned width, unsigned height) {
  for (size_t i = 0; i + 9 < file.size(); ++i)
    if (file[i] == std::byte{0xff} && (file[i + 1] == std::byte{0xc0} || file[i + 1] == std::byte{0xc2})) {
      file[i + 5] = static_cast<std::byte>(height >> 8);
      file[i + 6] = static_cast<std::byte>(height);
      file[i + 7] = static_cast<std::byte>(width >> 8);
      file[i + 8] = static_cast<std::byte>(width);
      return;
    }
  FAIL() << "there is no frame header";
}

TEST(Jpeg, PixelsAreCountedBeforeTheyAreDecoded) {
  for (const bool progressive : {false, true}) {
    Picture file = jpeg(32, 24, progressive);
    EXPECT_EQ(error_of(file), "");
    EXPECT_EQ(error_of(file, {.pixels = 32 * 24 - 1}), "has 32x24 pixels, expected at most 0 million");
    set_extents(file, 65500, 65500);
    EXPECT_EQ(error_of(file), "has 65500x65500 pixels, expected at most 64 million");
    set_extents(file, 0, 24);
    EXPECT_NE(error_of(file), "");
  }
}

TEST(Jpeg, ScansAreLimited) {
  const Picture file = jpeg(64, 64, true);  // 6 scans
  EXPECT_EQ(error_of(file, {.scans = 6}), "");
  EXPECT_EQ(error_of(file, {.scans = 5}), "has more than 5 scans");
}

TEST(Jpeg, CutShort) {
  for (const bool progressive : {false, true}) {
    const Picture file = jpeg(64, 64, progressive);
    for (size_t size = 3; size + 2 < file.size(); size += 31)
      EXPECT_NE(error_of(Picture(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size))), "")
          << size;
  }
}

Picture bytes(std::string_view text) {
  return bytes_of(text);
}

TEST(Png, PixelsAreCountedBeforeTheyAreDecoded) {
  // A header of 100,000 x 100,000 pixels with its checksum, and the beginning of the data.
  const Picture file =
      bytes(std::string_view("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\x01\x86\xa0\0\x01\x86\xa0\x08\x00\0\0\0"
                             "\x8d\x39\x54\x14\0\0\0\x10IDAT\x78\x9c",
                             43));
  const std::string error = error_of(file);
  EXPECT_TRUE(contains(error, "100000x100000 pixels") || contains(error, "CRC")) << error;
  EXPECT_FALSE(contains(error, "CRC")) << error;
}

using ImageFiles = Scratch;

TEST_F(ImageFiles, WhatIsNoPicture) {
  EXPECT_EQ(read_image(sparse("huge", uintmax_t{100} << 30)).status().code(), Code::OutOfMemory);
  EXPECT_EQ(read_image("/dev/zero").status().code(), Code::OutOfMemory);
  const auto text = read_image(write("a.png", "text"));
  EXPECT_EQ(text.status().code(), Code::Io);
  EXPECT_TRUE(contains(text.status().message(), "is neither PNG nor JPEG")) << text.status().message();
}

}  // namespace
}  // namespace librt::tools
