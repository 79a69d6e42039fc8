#include "tools/data/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "runtime/core/atomic_file.h"

namespace librt::tools {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kLargestHeader = uint64_t{32} << 20;
constexpr size_t kMostTensors = size_t{1} << 18;
constexpr int kDeepest = 3;  ///< header, tensor, shape
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"F32", DType::F32}, {"F16", DType::F16}, {"BF16", DType::BF16}, {"F64", DType::F64}, {"I8", DType::I8},
    {"U8", DType::U8},   {"I16", DType::I16}, {"U16", DType::U16},   {"I32", DType::I32}, {"U32", DType::U32},
    {"I64", DType::I64}, {"U64", DType::U64}, {"BOOL", DType::Bool}};

std::string_view type_name(DType type) {
  for (const auto& [name, known] : kTypes)
    if (known == type) return name;
  return {};
}

/// An array and where its bytes are, after the header.
struct Place {
  Array array;
  uint64_t begin = 0, end = 0;
};

struct Header {
  std::vector<Place> places;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// The JSON of a header; nullopt with the reason. Depth, size and repeated names are checked while it is
/// parsed.
std::optional<Json> parse_json(std::string_view header, std::string& error) {
  std::array<std::set<std::string>, kDeepest + 1> keys;
  size_t tensors = 0;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (!error.empty()) return false;
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= kDeepest) error = "the header is nested too deeply";
    if (event == Json::parse_event_t::object_start && depth < kDeepest)
      keys[static_cast<size_t>(depth) + 1].clear();
    if (event == Json::parse_event_t::key && depth <= kDeepest) {
      const auto& name = value.get_ref<const std::string&>();
      if (!keys[static_cast<size_t>(depth)].insert(name).second) error = in_quotes(name) + " is there twice";
      if (depth == 1 && ++tensors > kMostTensors) error = librt::text("more than ", kMostTensors, " tensors");
    }
    return error.empty();
  };
  Json json = Json::parse(header.begin(), header.end(), check, false);
  if (!error.empty()) return {};
  if (!json.is_object()) {
    error = "the header is not a JSON object";
    return {};
  }
  return json;
}

bool read_metadata(const Json& json, Header& header, std::string& error) {
  if (!json.is_object()) {
    error = "__metadata__ is not an object";
    return false;
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      error = "__metadata__ " + in_quotes(key) + " is not a text";
      return false;
    }
    header.metadata.emplace_back(key, value.get<std::string>());
  }
  return true;
}

bool read_place(const std::string& name, const Json& json, Header& header, std::string& error) {
  const auto wrong = [&](const std::string& what) {
    error = "tensor " + in_quotes(name) + ": " + what;
    return false;
  };
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return wrong("expected dtype, shape and data_offsets");
  const Json &dtype = json["dtype"], &shape = json["shape"], &offsets = json["data_offsets"];
  if (!dtype.is_string()) return wrong("dtype is not a text");
  const auto& type = dtype.get_ref<const std::string&>();
  const auto* const known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                         [&](const auto& each) { return each.first == type; });
  if (known == std::end(kTypes)) return wrong("librt has no element type " + in_quotes(type));
  Place place;
  place.array.name = name;
  place.array.type = known->second;
  if (!shape.is_array() || shape.size() > kMostAxes)
    return wrong(text("shape is not a list of at most ", kMostAxes, " extents"));
  for (const Json& extent : shape) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > INT64_MAX)
      return wrong("an extent is not a number of at least 0");
    place.array.dims.push_back(extent.get<int64_t>());
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return wrong("data_offsets are not two numbers");
  place.begin = offsets[0].get<uint64_t>();
  place.end = offsets[1].get<uint64_t>();
  const auto bytes = byte_count(place.array.type, place.array.dims);
  if (!bytes || place.end < place.begin || place.end - place.begin != *bytes)
    return wrong(bytes ? text("expected ", *bytes, " bytes for its shape, found data_offsets ", place.begin,
                              " to ", place.end)
                       : std::string("its extents are too large"));
  header.places.push_back(std::move(place));
  return true;
}

/// data_bytes: what the file has after the header.
std::optional<Header> parse_header(std::string_view text, uint64_t data_bytes, std::string& error) {
  const auto json = parse_json(text, error);
  if (!json) return {};
  Header header;
  for (const auto& [name, value] : json->items())
    if (!(name == kMetadata ? read_metadata(value, header, error) : read_place(name, value, header, error)))
      return {};
  std::sort(header.places.begin(), header.places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t expected = 0;
  for (const Place& place : header.places) {
    if (place.begin != expected) {
      error = librt::text("tensor ", in_quotes(place.array.name), ": expected to begin at byte ", expected,
                          " of the data, found ", place.begin);
      return {};
    }
    expected = place.end;
  }
  if (expected != data_bytes) {
    error = librt::text("the tensors have ", expected, " bytes, the file ", data_bytes);
    return {};
  }
  return header;
}

/// Exactly `size` bytes from `offset` on.
Status read_at(int file, void* bytes, size_t size, uint64_t offset, const std::string& path) {
  auto* at = static_cast<std::byte*>(bytes);
  while (size > 0) {
    const ssize_t count = pread(file, at, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "reading", errno);
    if (count == 0) return invalid_model(path, ": the file was cut short while it was read");
    at += count;
    size -= static_cast<size_t>(count);
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Result<Safetensors> read_open(int file, const std::string& path, size_t limit) {
  struct stat status = {};
  if (fstat(file, &status) != 0) return system_error(path, "reading", errno);
  const auto size = static_cast<uint64_t>(status.st_size);
  uint64_t header_bytes = 0;
  if (size < sizeof header_bytes)
    return invalid_model(path, ": the file is not safetensors: it has ", size, " bytes");
  RT_TRY(read_at(file, &header_bytes, sizeof header_bytes, 0, path));
  if (header_bytes > kLargestHeader || header_bytes > size - sizeof header_bytes)
    return invalid_model(path, ": the file is not safetensors, or is cut short: a header of ", header_bytes,
                         " bytes in a file of ", size);
  std::string text(static_cast<size_t>(header_bytes), '\0');
  RT_TRY(read_at(file, text.data(), text.size(), sizeof header_bytes, path));
  const uint64_t begin = sizeof header_bytes + header_bytes;
  std::string error;
  auto header = parse_header(text, size - begin, error);
  if (!header) return invalid_model(path, ": ", error);
  if (size - begin > limit) return too_large(path, "the tensors", size - begin, limit);
  Safetensors content;
  content.metadata = std::move(header->metadata);
  for (Place& place : header->places) {
    Bytes& bytes = place.array.bytes;
    bytes.resize(static_cast<size_t>(place.end - place.begin));
    RT_TRY(read_at(file, bytes.data(), bytes.size(), begin + place.begin, path));
    if (place.array.type == DType::Bool)
      for (std::byte& each : bytes) each = each != std::byte{0} ? std::byte{1} : std::byte{0};
    content.arrays.push_back(std::move(place.array));
  }
  return content;
}

}  // namespace

bool is_safetensors(const std::string& path) noexcept {
  return path.ends_with(".safetensors");
}

Result<Safetensors> read_safetensors(const std::string& path, size_t limit) {
  try {
    RT_ASSIGN(const Descriptor file, open_regular(path));
    return read_open(file.number(), path, limit);
  } catch (const std::bad_alloc&) {
    return Status(Code::OutOfMemory, path + ": not enough memory to read the tensors");
  }
}

Status write_safetensors(const std::string& path, const Safetensors& content) {
  std::vector<const Array*> order;
  std::set<std::string_view> names = {kMetadata};
  for (const Array& array : content.arrays) {
    if (!names.insert(array.name).second)
      return invalid_argument(path, ": the name ", in_quotes(array.name), " is there twice or not allowed");
    if (byte_count(array.type, array.dims) != array.bytes.size())
      return internal_error(path, ": tensor '", array.name, "' has ", array.bytes.size(), " bytes");
    order.push_back(&array);
  }
  std::sort(order.begin(), order.end(), [](const Array* a, const Array* b) {
    return std::pair(-static_cast<int>(size_of(a->type)), std::string_view(a->name)) <
           std::pair(-static_cast<int>(size_of(b->type)), std::string_view(b->name));
  });
  Json json = Json::object();
  if (!content.metadata.empty())
    for (const auto& [key, value] : content.metadata) json[std::string(kMetadata)][key] = value;
  uint64_t offset = 0;
  for (const Array* array : order) {
    const uint64_t end = offset + array->bytes.size();
    json[array->name] = {{"dtype", std::string(type_name(array->type))},
                         {"shape", array->dims},
                         {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string header;
  try {
    header = json.dump();
  } catch (const Json::exception&) {
    return invalid_argument(path, ": a name or metadata is not valid UTF-8, which safetensors needs");
  }
  header.append((8 - header.size() % 8) % 8, ' ');
  const uint64_t size = header.size();
  if (size > kLargestHeader)
    return unsupported(path, ": the names take ", size, " bytes, more than ", kLargestHeader);
  AtomicFile file(path);
  RT_TRY(file.open());
  RT_TRY(file.write(&size, sizeof size));
  RT_TRY(file.write(header.data(), header.size()));
  for (const Array* array : order) RT_TRY(file.write(array->bytes.data(), array->bytes.size()));
  return file.commit();
}

}  // namespace librt::tools
