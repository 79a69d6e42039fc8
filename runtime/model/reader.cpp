#include "runtime/model/reader.h"

#include <new>

#include "runtime/core/exception.h"
#include "runtime/graph/data_checks.h"
#include "runtime/graph/verify.h"
#include "runtime/model/mapped_file.h"
#include "runtime/model/meaning.h"
#include "runtime/model/unpack.h"

namespace librt {
namespace {

constexpr uint64_t kSmallSegment = 4096;

Result<ModelGraph> read(const Container& container, const ReadLimits& limits, DataChecks empty) {
  const Blob& bytes = container.graph();
  if (bytes.size >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return invalid_model("FlatBuffer: ", bytes_text(bytes.size), ", the limit is 2 GiB");
  // Two levels for each body, and some for the attributes: far more than kMaxBodyDepth needs.
  flatbuffers::Verifier::Options options;
  options.max_depth = 128;
  // In a legitimate file every table has at least four bytes; a malicious one may refer to one many times.
  options.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size / 4);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data), bytes.size, options);
  if (!file::VerifyModelBuffer(verifier)) return invalid_model("FlatBuffer: the structure is damaged");
  const auto checks = std::make_shared<DataChecks>(std::move(empty));
  const FetchSegment fetch = [&](const file::Segment& segment) -> Result<Blob> {
    RT_ASSIGN(Blob blob, container.segment(segment.offset(), segment.bytes()));
    if (limits.verify == Verify::Never || segment.checksum() == 0) return blob;
    if (limits.verify == Verify::AtFirstUse && blob.size > kSmallSegment)
      checks->add(blob, segment.checksum());
    else if (checksum(blob.data, blob.size) != segment.checksum())
      return invalid_model("the checksum of ", segment.bytes(), " bytes at ", segment.offset(),
                           " in the data area differs; the file is damaged");
    return blob;
  };
  RT_ASSIGN(ModelGraph model, unpack_model(*file::GetModel(bytes.data), limits, fetch));
  model.checks = checks;
  RT_TRY(verify(model));
  RT_TRY(check_meaning(model));
  return model;
}

template <class From>
Result<ModelGraph> read_from(From from, const ReadLimits& limits, DataChecks checks = {}) {
  RT_ATTEMPT {
    RT_ASSIGN(const Container container, Container::open(std::move(from), kModelMagic));
    return read(container, limits, std::move(checks));
  }
  RT_CAUGHT {
    return caught_exception("reading the model's graphs");
  }
}

}  // namespace

Result<ModelGraph> read_model(Blob file, const ReadLimits& limits) {
  return read_from(std::move(file), limits);
}

Result<ModelGraph> read_model(Source source, const ReadLimits& limits) {
  return read_from(std::move(source), limits);
}

Result<ModelGraph> load_model(const std::string& path, const ReadLimits& limits, bool copy,
                              std::span<const std::byte>* mapped) {
  RT_ASSIGN(Blob file, copy ? read_file(path) : map_file(path));
  const std::span<const std::byte> bytes(file.data, copy ? 0 : file.size);
  if (mapped != nullptr) *mapped = bytes;
  auto model = read_from(std::move(file), limits, copy ? DataChecks() : DataChecks(path, bytes));
  if (!model.ok()) return std::move(model).status().in(path);
  return model;
}

}  // namespace librt
