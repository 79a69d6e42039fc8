// For any bytes, the readers of arrays, pictures, tables, sounds and tokenizers return a value or an error.
// The first byte of an input chooses the format.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tools/data/delimited.h"
#include "tools/data/idx.h"
#include "tools/data/image.h"
#include "tools/data/npy.h"
#include "tools/data/npz.h"
#include "tools/data/safetensors.h"
#include "tools/data/tokenizer.h"
#include "tools/data/wav.h"

namespace {

using namespace librt::tools;
using Input = std::span<const std::byte>;

constexpr size_t kLimit = size_t{32} << 20;  // of memory, so that a run stays short

void require(bool condition) {
  if (!condition) std::abort();
}

bool fits(const Array& array) {
  return byte_count(array.type, array.dims) == array.bytes.size();
}

/// Calls read(path) with a file of these bytes.
template <class Read>
void with_file(Input bytes, Read read) {
  const Descriptor file(memfd_create("input", MFD_CLOEXEC));
  require(file.number() >= 0 &&
          write(file.number(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  read("/proc/self/fd/" + std::to_string(file.number()));
}

void check_npy(Input bytes) {
  std::string error;
  const auto array = parse_npy(Bytes(bytes.begin(), bytes.end()), error);
  require(array ? fits(*array) : !error.empty());
  if (!array) return;
  const auto again = parse_npy(format_npy(*array), error);
  require(again && again->dims == array->dims && again->bytes == array->bytes);
}

void check_npz(Input bytes) {
  with_file(bytes, [](const std::string& path) {
    const auto arrays = read_npz(path, kLimit);
    require(arrays.ok() || !arrays.status().message().empty());
    if (arrays.ok())
      for (const Array& array : *arrays) require(fits(array));
  });
}

void check_idx(Input bytes) {
  with_file(bytes, [](const std::string& path) {
    const auto array = read_idx(path, kLimit);
    require(array.ok() ? fits(*array) && !array->bytes.empty() : !array.status().message().empty());
    require(is_idx_file(path) || !array.ok());
  });
}

void check_image(Input bytes) {
  std::string error;
  const auto image = decode_image(bytes, error, {.pixels = size_t{1} << 18, .scans = 20});
  require(image ? image->width > 0 && image->height > 0 : !error.empty());
  if (!image) return;
  require(image->rgb.size() ==
          size_t{3} * static_cast<size_t>(image->width) * static_cast<size_t>(image->height));
  const Array array = image_to_array(resized(*image, 5, 3), {.channels = Channels::Gray});
  require(fits(array) && array.bytes.size() == 5 * 3 * sizeof(float));
}

void check_table(Input bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const DelimitedOptions& options : {DelimitedOptions{}, DelimitedOptions{'\t', false, false}}) {
    const auto table = parse_delimited("table", text, options, kLimit);
    require(table.ok() || !table.status().message().empty());
    if (!table.ok()) continue;
    require(!table->rows.empty() && table->rows.size() == table->lines.size());
    for (const auto& row : table->rows) require(row.size() == table->names.size());
  }
}

void check_wav(Input bytes) {
  std::string error;
  const auto sound = parse_wav(bytes, error);
  require(sound ? sound->channels > 0 && sound->rate > 0 : !error.empty());
  if (!sound) return;
  for (const Mix mix : {Mix::First, Mix::Mean}) require(fits(sound_to_array(*sound, mix)));
}

void check_safetensors(Input bytes) {
  with_file(bytes, [](const std::string& path) {
    const auto content = read_safetensors(path, kLimit);
    require(content.ok() || !content.status().message().empty());
    if (content.ok())
      for (const Array& array : content->arrays) require(fits(array));
  });
}

// The last 64 bytes are a text to encode.
void check_tokenizer(Input bytes) {
  const size_t text_size = std::min<size_t>(bytes.size(), 64);
  std::string error;
  const auto tokenizer = Tokenizer::parse(bytes.first(bytes.size() - text_size), error);
  require(tokenizer || !error.empty());
  if (!tokenizer) return;
  const Input text = bytes.last(text_size);
  int64_t before = 0;
  for (const int64_t id : tokenizer->encode({reinterpret_cast<const char*>(text.data()), text.size()})) {
    require(id >= 0 && static_cast<size_t>(id) < tokenizer->size());
    tokenizer->decode(before, id);
    before = id;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr void (*kChecks[])(Input) = {check_npy,   check_npz, check_idx,       check_image,
                                               check_table, check_wav, check_tokenizer, check_safetensors};
  if (size == 0) return 0;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  kChecks[data[0] % std::size(kChecks)]({first + 1, size - 1});
  return 0;
}
