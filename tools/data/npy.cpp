#include "tools/data/npy.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace librt::tools {

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct TypeCode {
  std::string_view code;  // kind and size, without the byte order
  DType type;
};
constexpr TypeCode kTypes[] = {{"f4", DType::F32}, {"f2", DType::F16}, {"f8", DType::F64},
                               {"i1", DType::I8},  {"u1", DType::U8},  {"i2", DType::I16},
                               {"u2", DType::U16}, {"i4", DType::I32}, {"u4", DType::U32},
                               {"i8", DType::I64}, {"u8", DType::U64}, {"b1", DType::Bool}};

std::string_view skip_spaces(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// The text after `'key':` in the header's dictionary.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  for (char quote : {'\'', '"'}) {
    const std::string quoted = std::string(1, quote) + std::string(key) + quote;
    const size_t at = header.find(quoted);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = skip_spaces(header.substr(at + quoted.size()));
    if (rest.empty() || rest[0] != ':') return std::nullopt;
    return skip_spaces(rest.substr(1));
  }
  return std::nullopt;
}

bool parse_type(std::string_view value, DType& type, std::string& error) {
  if (value.size() < 2 || (value[0] != '\'' && value[0] != '"')) {
    error = "npy header: 'descr' is not one element type; structured arrays are not read";
    return false;
  }
  const std::string_view code = value.substr(1, value.find(value[0], 1) - 1);
  if (!code.empty() && code[0] == '>' && code.substr(2) != "1") {
    error = "npy type '" + std::string(code) + "' is big endian; save it with .astype('<...')";
    return false;
  }
  for (const TypeCode& row : kTypes)
    if (code.size() == 3 && code.substr(1) == row.code) {
      type = row.type;
      return true;
    }
  error = "npy type '" + std::string(code) + "' has no counterpart";
  return false;
}

bool parse_shape(std::string_view value, std::vector<int64_t>& dims) {
  if (value.empty() || value[0] != '(') return false;
  value = skip_spaces(value.substr(1));
  while (!value.empty() && value[0] != ')') {
    int64_t extent = 0;
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), extent);
    if (code != std::errc()) return false;
    dims.push_back(extent);
    value = skip_spaces(value.substr(static_cast<size_t>(end - value.data())));
    if (!value.empty() && value[0] == ',') value = skip_spaces(value.substr(1));
  }
  return !value.empty();
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

namespace {

/// Converts Fortran order (the first axis is contiguous), as NumPy may save, to row-major.
std::vector<std::byte> row_major(std::span<const std::byte> data, const Array& array) {
  std::vector<std::byte> out(data.size());
  const size_t size = size_of(array.type), rank = array.dims.size();
  std::vector<size_t> strides(rank, 1), index(rank, 0);
  for (size_t d = 1; d < rank; ++d) strides[d] = strides[d - 1] * static_cast<size_t>(array.dims[d - 1]);
  size_t from = 0;
  for (size_t to = 0; to < data.size(); to += size) {
    std::memcpy(out.data() + to, data.data() + from * size, size);
    for (size_t d = rank; d-- > 0;) {
      from += strides[d];
      if (++index[d] < static_cast<size_t>(array.dims[d])) break;
      from -= strides[d] * index[d];
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

std::optional<Array> parse_npy(std::span<const std::byte> bytes, std::string& error) {
  if (!is_npy(bytes) || bytes.size() < 12) {
    error = "not a .npy file";
    return std::nullopt;
  }
  const auto byte = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  const size_t version = byte(6);
  const size_t prefix = version == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (version != 1) length |= byte(10) << 16 | byte(11) << 24;
  if (version < 1 || version > 3 || length > bytes.size() - prefix) {
    error = "the .npy header is damaged";
    return std::nullopt;
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + prefix, length);
  const auto descr = value_of(header, "descr");
  const auto order = value_of(header, "fortran_order");
  const auto shape = value_of(header, "shape");
  Array array;
  if (!descr || !order || !shape || !parse_shape(*shape, array.dims)) {
    error = "the .npy header lacks descr, fortran_order or shape";
    return std::nullopt;
  }
  if (!parse_type(*descr, array.type, error)) return std::nullopt;
  const auto data = bytes.subspan(prefix + length);
  const auto wanted = byte_count(array.type, array.dims);
  if (!wanted || *wanted != data.size()) {
    error = "the .npy header asks for " + (wanted ? std::to_string(*wanted) : std::string("too many")) +
            " bytes, the file has " + std::to_string(data.size());
    return std::nullopt;
  }
  if (order->starts_with("False"))
    array.bytes.assign(data.begin(), data.end());
  else
    array.bytes = row_major(data, array);
  return array;
}

std::vector<std::byte> format_npy(const Array& array) {
  std::vector<std::byte> widened;
  std::span<const std::byte> data = array.bytes;
  DType type = array.type;
  if (type == DType::BF16) {
    type = DType::F32;
    widened.resize(array.bytes.size() * 2);
    for (size_t i = 0; i + 1 < array.bytes.size(); i += 2)
      std::memcpy(widened.data() + 2 * i + 2, array.bytes.data() + i, 2);
    data = widened;
  }
  std::string_view code;
  for (const TypeCode& row : kTypes)
    if (row.type == type) code = row.code;
  std::string header = "{'descr': '" + std::string(code.back() == '1' ? "|" : "<") + std::string(code) +
                       "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < array.dims.size(); ++i)
    header += (i == 0 ? "" : " ") + std::to_string(array.dims[i]) + ",";
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');  // data begins at a multiple of 64
  header += '\n';
  std::string prefix(kMagic);
  prefix += {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  prefix += header;
  std::vector<std::byte> file(prefix.size() + data.size());
  std::memcpy(file.data(), prefix.data(), prefix.size());
  if (!data.empty()) std::memcpy(file.data() + prefix.size(), data.data(), data.size());
  return file;
}

bool write_npy(const std::string& path, const Array& array, std::string& error) {
  const std::vector<std::byte> bytes = format_npy(array);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool written = file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (!written || !closed) error = path + ": writing failed: " + std::strerror(errno);
  return written && closed;
}

}  // namespace librt::tools
