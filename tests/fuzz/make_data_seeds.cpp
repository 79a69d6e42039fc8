// Writes the seeds of fuzz_data into a folder: make_data_seeds FOLDER. The first byte of each is the format's
// number.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include "tools/data/npy.h"
#include "tools/data/npz.h"
#include "tools/data/safetensors.h"

namespace {

using namespace librt::tools;

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Array array(const char* name, librt::DType type, std::vector<int64_t> dims) {
  Array result{.name = name, .type = type, .dims = std::move(dims), .bytes = {}};
  result.bytes.resize(*byte_count(type, result.dims));
  for (size_t i = 0; i < result.bytes.size(); ++i) result.bytes[i] = static_cast<std::byte>(i);
  return result;
}

std::string little(uint64_t value, size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string idx() {
  return std::string{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4} + std::string(24, 'x');
}

std::string gzip(const std::string& text) {
  z_stream stream = {};
  std::string out(1024, '\0');
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string png() {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = 8;
  image.height = 6;
  image.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(8 * 6 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(5 * i);
  png_alloc_size_t size = 1 << 16;
  std::string out(size, '\0');
  png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr);
  out.resize(size);
  return out;
}

std::string jpeg(bool progressive) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = 24;
  info.image_height = 16;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> row(3 * 24);
  while (info.next_scanline < info.image_height) {
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<unsigned char>(3 * i + 11 * info.next_scanline);
    unsigned char* rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  std::string out(reinterpret_cast<const char*>(memory), size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return out;
}

std::string wav() {
  return "RIFF" + little(36 + 32, 4) + "WAVEfmt " + little(16, 4) + little(1, 2) + little(2, 2) +
         little(16000, 4) + little(64000, 4) + little(4, 2) + little(16, 2) + "data" + little(32, 4) +
         std::string(32, '\x11');
}

std::string tokenizer() {
  std::string file(4, '\0');
  const auto add = [&](const std::string& piece, uint32_t score) {
    file += little(score, 4) + little(piece.size(), 4) + piece;
  };
  for (int i = 0; i < 259; ++i) add(std::string(1, static_cast<char>(i)), 0);
  for (const char* piece : {"ab", "abc", "bc", " a", "the"}) add(piece, 0x3f800000);
  return file + std::string("the abc abcab bcabc the the the the abc bc ab a b c the the abcd", 64);
}

bool write(const std::string& folder) {
  const Array small = array("x", librt::DType::F32, {2, 3});
  if (!write_npz(folder + "/archive.npz", {small, array("y", librt::DType::Bool, {4})}).ok()) return false;
  const auto npz = read_file(folder + "/archive.npz");
  if (!npz.ok()) return false;
  const Safetensors weights = {
      {small, array("y", librt::DType::Bool, {4}), array("z", librt::DType::BF16, {})}, {{"format", "pt"}}};
  if (!write_safetensors(folder + "/weights.safetensors", weights).ok()) return false;
  const auto safetensors = read_file(folder + "/weights.safetensors");
  if (!safetensors.ok()) return false;
  const std::pair<const char*, std::string> seeds[] = {
      {"npy", '\0' + text_of(format_npy(small))},
      {"npz", '\1' + text_of(*npz)},
      {"idx", '\2' + idx()},
      {"idx_gz", '\2' + gzip(idx())},
      {"png", '\3' + png()},
      {"jpeg", '\3' + jpeg(false)},
      {"progressive", '\3' + jpeg(true)},
      {"csv", "\4a,\"b \"\"c\"\"\",label\r\n1,2.5,x\n,\"two\nlines\",y\n"},
      {"wav", '\5' + wav()},
      {"tokenizer", '\6' + tokenizer()},
      {"safetensors", '\7' + text_of(*safetensors)}};
  for (const auto& [name, bytes] : seeds)
    if (!write_file(folder + "/data_" + name, std::as_bytes(std::span(bytes))).ok()) return false;
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 || !write(arguments[1])) {
    std::fprintf(stderr, "make_data_seeds: usage: make_data_seeds FOLDER, which can be written to\n");
    return 2;
  }
  return 0;
}
