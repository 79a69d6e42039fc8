#include "tests/fuzz/model_input.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/model/format.h"
#include "runtime/model/reader.h"
#include "tests/fuzz/model_mutator.h"
#include "tools/compiler/writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace librt::fuzz {
namespace {

constexpr size_t kMostChoices = 96;  // bytes

/// The input's new size; 0 if it does not fit.
size_t write(const ModelGraph& model, const std::vector<uint8_t>& choices, uint8_t* data, size_t most) {
  const auto file = compiler::serialize_model(model);
  if (!file.ok() || file->size() + choices.size() > most) return 0;
  std::memcpy(data, file->data(), file->size());
  std::copy(choices.begin(), choices.end(), data + file->size());
  return file->size() + choices.size();
}

}  // namespace

Parts parts_of(const uint8_t* data, size_t size) {
  FileHeader header;
  size_t end = size;
  if (size >= sizeof header) {
    std::memcpy(&header, data, sizeof header);
    end = static_cast<size_t>(std::min<uint64_t>(size, header.file_bytes));
  }
  const auto* first = reinterpret_cast<const std::byte*>(data);
  return {{first, first + end}, {data + end, data + size}};
}

Result<ModelGraph> model_of(const std::vector<std::byte>& file) {
  return read_model(Blob::copy_of(file.data(), file.size()),
                    {.nodes = 1000, .values = 10000, .graph_bytes = 16 << 20, .memory = kMemory});
}

bool accepted(const rt::Status& status) {
  if (status.ok()) return true;
  if (!status.message().empty() && status.code() != rt::Code::Internal) return false;
  std::fprintf(stderr, "a status that no input may have: code %d, '%s'\n", static_cast<int>(status.code()),
               status.message().c_str());
  std::abort();
}

bool takes_more(const rt::Session& session, double work) {
  double sum = 0;
  for (const rt_profile_entry& entry : session.profile()) sum += entry.flops + entry.bytes;
  return !(sum <= work);
}

void require_backends(std::initializer_list<const char*> names) {
  const auto found = rt::Devices::list();
  size_t devices = 0;
  for (const auto& backend : found.ok() ? found->backends : std::vector<rt::Devices::Backend>()) {
    if (std::find(names.begin(), names.end(), backend.name) == names.end()) continue;
    devices += backend.reason.empty() ? 1 : 0;
    if (!backend.reason.empty())
      std::fprintf(stderr, "%s: %s\n", backend.name.c_str(), backend.reason.c_str());
  }
  if (devices != names.size()) std::abort();
}

}  // namespace librt::fuzz

using librt::fuzz::Parts;
using librt::fuzz::Random;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  Parts parts = librt::fuzz::parts_of(data, size);
  auto model = librt::fuzz::model_of(parts.file);
  if (!model.ok()) return LLVMFuzzerMutate(data, size, most);
  if (random.one_in(3)) {
    using librt::fuzz::kMostChoices;
    const size_t had = parts.choices.size();
    parts.choices.resize(kMostChoices);
    parts.choices.resize(LLVMFuzzerMutate(parts.choices.data(), std::min(had, kMostChoices), kMostChoices));
  } else {
    librt::fuzz::mutate(*model, random);
  }
  const size_t written = librt::fuzz::write(*model, parts.choices, data, most);
  return written != 0 ? written : size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t most, unsigned seed) {
  Random random(seed);
  const Parts parts = librt::fuzz::parts_of(data, size),
              other_parts = librt::fuzz::parts_of(other, other_size);
  auto model = librt::fuzz::model_of(parts.file);
  const auto from = librt::fuzz::model_of(other_parts.file);
  if (!model.ok() || !from.ok() || !librt::fuzz::splice(*model, *from, random)) return 0;
  return librt::fuzz::write(*model, parts.choices.empty() ? other_parts.choices : parts.choices, out, most);
}
