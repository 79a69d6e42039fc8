#include "backends/vulkan/dispatch/shaders.h"

#if RT_COMPRESSED_SHADERS
#include <lzma.h>

#include <memory>
#include <mutex>
#include <new>
#endif

namespace librt::vulkan {

#if RT_COMPRESSED_SHADERS
namespace {

Result<std::unique_ptr<uint32_t[]>> decompressed(const ShaderStream& stream) {
  std::unique_ptr<uint32_t[]> words(new (std::nothrow) uint32_t[stream.words]);
  const size_t bytes = stream.words * sizeof(uint32_t);
  if (words == nullptr) return Status::make(Code::OutOfMemory, "no memory for ", bytes, " bytes of shaders");
  lzma_options_lzma options{};
  if (lzma_lzma_preset(&options, 9 | LZMA_PRESET_EXTREME)) return internal_error("liblzma has no preset 9");
  options.dict_size = static_cast<uint32_t>(bytes) + LZMA_DICT_SIZE_MIN;  // what a decoder allocates
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  size_t in = 0, out = 0;
  const lzma_ret result =
      lzma_raw_buffer_decode(filters, nullptr, stream.bytes.data(), &in, stream.bytes.size(),
                             reinterpret_cast<uint8_t*>(words.get()), &out, bytes);
  if (result == LZMA_MEM_ERROR) return Status::make(Code::OutOfMemory, "no memory to decompress shaders");
  if (result != LZMA_OK || out != bytes)
    return internal_error("shaders cannot be decompressed: liblzma says ", static_cast<int>(result),
                          " after ", out, " of ", bytes, " bytes");
  return words;
}

}  // namespace

Result<std::span<const uint32_t>> shader_words(const ShaderCode& code) noexcept {
  static std::mutex mutex;
  static std::unique_ptr<std::unique_ptr<uint32_t[]>[]> streams;
  const std::lock_guard lock(mutex);
  if (streams == nullptr)
    streams.reset(new (std::nothrow) std::unique_ptr<uint32_t[]>[shader_streams().size()]);
  if (streams == nullptr) return Status::make(Code::OutOfMemory, "no memory for shaders");
  std::unique_ptr<uint32_t[]>& words = streams[code.stream];
  if (words == nullptr) {
    RT_ASSIGN(words, decompressed(shader_streams()[code.stream]));
  }
  return std::span<const uint32_t>(words.get() + code.first, code.words);
}
#else
Result<std::span<const uint32_t>> shader_words(const ShaderCode& code) noexcept {
  return std::span(code.at, code.words);
}
#endif

}  // namespace librt::vulkan
