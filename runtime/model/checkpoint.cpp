#include "runtime/model/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>

#include "runtime/core/atomic_file.h"
#include "runtime/core/exception.h"
#include "runtime/model/container.h"
#include "runtime/model/mapped_file.h"
#include "runtime/model/schema_check.h"
#include "runtime/model/segments.h"
#include "schema/checkpoint_generated.h"

namespace librt {
namespace {

namespace saved = ::rt::file::checkpoint;
constexpr uint32_t kNoSegment = 0xffffffffu;

template <class Vector>
uint32_t count(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

class Reader {
 public:
  Reader(const Container& container, const saved::Checkpoint& in)
      : container_(container), in_(in), used_(count(in.segments())), text_left_(container.graph().size) {}

  Result<Checkpoint> run() {
    RT_TRY(check_table(&in_, *saved::CheckpointTypeTable()));
    Checkpoint out;
    if (in_.producer() != nullptr) out.producer = in_.producer()->string_view();
    for (uint32_t i = 0; i < count(in_.tensors()); ++i) {
      const saved::Tensor& tensor = *in_.tensors()->Get(i);
      RT_TRY(read(tensor, out.tensors.emplace_back()).in("tensor '", tensor.name()->string_view(), "'"));
    }
    names_.clear();
    for (uint32_t i = 0; i < count(in_.opaque()); ++i) {
      const saved::Opaque& opaque = *in_.opaque()->Get(i);
      RT_TRY(read(opaque, out.opaque.emplace_back()).in("opaque '", opaque.name()->string_view(), "'"));
    }
    names_.clear();
    for (uint32_t i = 0; i < count(in_.metadata()); ++i) {
      const saved::Text& pair = *in_.metadata()->Get(i);
      RT_TRY(read(pair, out.metadata.emplace_back()).in("metadata '", pair.key()->string_view(), "'"));
    }
    return out;
  }

 private:
  Status unique(const flatbuffers::String* name) {
    if (name->size() == 0 || !names_.insert(name->string_view()).second)
      return invalid_model("the name must be unique and not empty");
    return {};
  }

  Result<Blob> segment(uint32_t index) {
    if (index == kNoSegment) return Blob();
    if (index >= used_.size()) return invalid_model("segment ", index, " of ", used_.size());
    if (used_[index]) return *used_[index];
    const saved::Segment& range = *in_.segments()->Get(index);
    RT_TRY(check_table(&range, *saved::SegmentTypeTable()));
    RT_ASSIGN(Blob blob, container_.segment(range.offset(), range.bytes()));
    if (checksum(blob.data, blob.size) != range.checksum())
      return invalid_model("the checksum of its ", range.bytes(), " bytes differs; the file is damaged");
    used_[index] = blob;
    return blob;
  }

  Status read(const saved::Tensor& in, State& out) {
    RT_TRY(check_table(&in, *saved::TensorTypeTable()));
    RT_TRY(unique(in.name()));
    out.name = in.name()->string_view();
    if (count(in.dims()) > kMaxRank) return invalid_model("rank ", count(in.dims()), ", at most ", kMaxRank);
    out.info.dtype = static_cast<DType>(in.dtype());
    for (uint32_t i = 0; i < count(in.dims()); ++i) out.info.shape.push_back(in.dims()->Get(i));
    if (!valid(out.info.dtype) || !out.info.shape.checked_elements())
      return invalid_model(out.info, " is not a valid type and shape" RT_FEW_ELEMENTS);
    if (in.kind() > static_cast<uint8_t>(StateKind::Counter))
      return invalid_model("unknown kind ", static_cast<int>(in.kind()));
    out.kind = static_cast<StateKind>(in.kind());
    RT_ASSIGN(out.initial, segment(in.segment()));
    if (out.initial.size != out.info.bytes())
      return invalid_model(out.info, " needs ", out.info.bytes(), " bytes, found ", out.initial.size);
    return {};
  }

  Status read(const saved::Opaque& in, std::pair<std::string, Blob>& out) {
    RT_TRY(check_table(&in, *saved::OpaqueTypeTable()));
    RT_TRY(unique(in.name()));
    out.first = in.name()->string_view();
    RT_ASSIGN(out.second, segment(in.segment()));
    return {};
  }

  Status read(const saved::Text& in, std::pair<std::string, std::string>& out) {
    RT_TRY(check_table(&in, *saved::TextTypeTable()));
    RT_TRY(unique(in.key()));
    // Strings are not shared: if their total size exceeds that of their container, the file is malicious.
    if (count(in.value()) > text_left_) return invalid_model("the texts overlap");
    text_left_ -= count(in.value());
    out.first = in.key()->string_view();
    if (in.value() != nullptr) out.second = in.value()->string_view();
    return {};
  }

  const Container& container_;
  const saved::Checkpoint& in_;
  std::vector<std::optional<Blob>> used_;
  size_t text_left_;
  std::set<std::string_view> names_;
};

Status check(const Checkpoint& checkpoint) {
  std::set<std::string_view> names;
  uint64_t bound = 0;
  const auto add = [&](const char* kind, const std::string& name, const char* word, size_t bytes) -> Status {
    bound += 256 + name.size() + bytes;
    if (!name.empty() && names.insert(name).second) return {};
    return invalid_argument(kind, " '", name, "': the ", word, " must be unique and not empty");
  };
  for (const State& tensor : checkpoint.tensors) {
    RT_TRY(add("tensor", tensor.name, "name", 0));
    if (!valid(tensor.info.dtype) || !tensor.info.shape.checked_elements() ||
        tensor.initial.size != tensor.info.bytes())
      return invalid_argument("tensor '", tensor.name, "': ", tensor.info, " with ", tensor.initial.size,
                              " bytes");
  }
  names.clear();
  for (const auto& [name, bytes] : checkpoint.opaque) RT_TRY(add("opaque", name, "name", 0));
  names.clear();
  for (const auto& [key, value] : checkpoint.metadata) RT_TRY(add("metadata", key, "key", value.size()));
  if (bound > kLargestGraph)
    return unsupported("names and texts of ", bytes_text(bound), ", a checkpoint holds ",
                       bytes_text(kLargestGraph));
  return {};
}

void build(const Checkpoint& in, flatbuffers::FlatBufferBuilder& fbb, SegmentTable& segments) {
  const auto add = [&](const Blob& blob) { return blob.size == 0 ? kNoSegment : segments.add(blob); };
  std::vector<flatbuffers::Offset<saved::Tensor>> tensors;
  for (const State& tensor : in.tensors) {
    const std::vector<int64_t> dims(tensor.info.shape.begin(), tensor.info.shape.end());
    const auto name = fbb.CreateString(tensor.name);
    const auto dim_list = fbb.CreateVector(dims);
    tensors.push_back(saved::CreateTensor(fbb, name, static_cast<uint8_t>(tensor.info.dtype), dim_list,
                                          static_cast<uint8_t>(tensor.kind), add(tensor.initial)));
  }
  std::vector<flatbuffers::Offset<saved::Opaque>> opaque;
  for (const auto& [name, bytes] : in.opaque) {
    const auto written = fbb.CreateString(name);
    opaque.push_back(saved::CreateOpaque(fbb, written, add(bytes)));
  }
  std::vector<flatbuffers::Offset<saved::Text>> metadata;
  for (const auto& [key, value] : in.metadata) {
    const auto written = fbb.CreateString(key);
    metadata.push_back(saved::CreateText(fbb, written, fbb.CreateString(value)));
  }
  std::vector<flatbuffers::Offset<saved::Segment>> ranges;
  for (const SegmentRange& range : segments.ranges())
    ranges.push_back(saved::CreateSegment(fbb, range.offset, range.bytes, range.checksum));
  const auto producer = fbb.CreateString(in.producer);
  const auto tensor_list = fbb.CreateVector(tensors);
  const auto opaque_list = fbb.CreateVector(opaque);
  const auto metadata_list = fbb.CreateVector(metadata);
  const auto segment_list = fbb.CreateVector(ranges);
  fbb.Finish(saved::CreateCheckpoint(fbb, producer, tensor_list, opaque_list, metadata_list, segment_list),
             saved::CheckpointIdentifier());
}

template <class Pairs>
auto find(const Pairs& pairs, std::string_view name) {
  const auto found = std::ranges::find_if(pairs, [&](const auto& pair) { return pair.first == name; });
  return found == pairs.end() ? nullptr : &found->second;
}

/// Whether there is a file of this name that begins as a model does.
bool is_model(const std::string& path) {
  const auto file = map_file(path);
  return file.ok() && file->size >= kModelMagic.size() &&
         std::memcmp(file->data, kModelMagic.data(), kModelMagic.size()) == 0;
}

}  // namespace

const State* Checkpoint::tensor(std::string_view name) const noexcept {
  const auto found = std::ranges::find_if(tensors, [&](const State& state) { return state.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}
const std::string* Checkpoint::text(std::string_view key) const noexcept {
  return find(metadata, key);
}
const Blob* Checkpoint::bytes(std::string_view name) const noexcept {
  return find(opaque, name);
}

Status write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  RT_TRY(check(checkpoint).in(path));
  if (is_model(path)) return invalid_argument(path, ": is a model; a checkpoint would replace it");
  flatbuffers::FlatBufferBuilder fbb;
  SegmentTable segments;
  build(checkpoint, fbb, segments);
  AtomicFile out(path);
  RT_TRY(out.open());
  RT_TRY(write_container(kCheckpointMagic, {fbb.GetBufferPointer(), fbb.GetSize()}, segments,
                         [&](const void* bytes, size_t size) { return out.write(bytes, size); }));
  return out.commit();
}

Result<Checkpoint> read_checkpoint(Blob file) {
  RT_ATTEMPT {
    RT_ASSIGN(const Container container, Container::open(std::move(file), kCheckpointMagic));
    const Blob& bytes = container.graph();
    if (bytes.size >= FLATBUFFERS_MAX_BUFFER_SIZE) return invalid_model("FlatBuffer: larger than 2 GiB");
    flatbuffers::Verifier::Options options;
    options.max_depth = 16;
    options.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size / 4);
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data), bytes.size, options);
    if (!saved::VerifyCheckpointBuffer(verifier))
      return invalid_model("FlatBuffer: the structure is damaged");
    return Reader(container, *saved::GetCheckpoint(bytes.data)).run();
  }
  RT_CAUGHT {
    return caught_exception("reading the checkpoint");
  }
}

Result<Checkpoint> read_checkpoint(const std::string& path) {
  RT_ASSIGN(Blob file, map_file(path));
  auto checkpoint = read_checkpoint(std::move(file));
  if (!checkpoint.ok()) return std::move(checkpoint).status().in(path);
  return checkpoint;
}

}  // namespace librt
