#include "tools/data/npy.h"

#include <charconv>
#include <cstring>

namespace librt::tools {

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kLongestHeader = size_t{1} << 20;

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
  if (code.starts_with('>') && !code.ends_with('1')) {
    error = "npy type " + in_quotes(code) + " is big endian; save it with .astype('<...')";
    return false;
  }
  for (const TypeCode& row : kTypes)
    if (code.size() == 3 && code.substr(1) == row.code) {
      type = row.type;
      return true;
    }
  error = "npy type " + in_quotes(code) + " has no counterpart";
  return false;
}

bool parse_shape(std::string_view value, std::vector<int64_t>& dims) {
  if (value.empty() || value[0] != '(') return false;
  value = skip_spaces(value.substr(1));
  while (!value.empty() && value[0] != ')') {
    if (dims.size() == kMostAxes) return false;
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
Bytes row_major(const Bytes& data, size_t size, std::span<const int64_t> dims) {
  Bytes out(data.size());
  const size_t rank = dims.size();
  std::vector<size_t> strides(rank, 1), index(rank, 0);
  for (size_t d = 1; d < rank; ++d) strides[d] = strides[d - 1] * static_cast<size_t>(dims[d - 1]);
  size_t from = 0;
  for (size_t to = 0; to < data.size(); to += size) {
    std::memcpy(out.data() + to, data.data() + from * size, size);
    for (size_t d = rank; d-- > 0;) {
      from += strides[d];
      if (++index[d] < static_cast<size_t>(dims[d])) break;
      from -= strides[d] * index[d];
      index[d] = 0;
    }
  }
  return out;
}

std::string size_problem(size_t wanted, size_t found) {
  return "the .npy header asks for " + std::to_string(wanted) + " bytes, the file has " +
         std::to_string(found);
}

}  // namespace

std::optional<size_t> NpyHeader::size(std::span<const std::byte> bytes, std::string& error) {
  if (!is_npy(bytes) || bytes.size() < kFirst) {
    error = "not a .npy file";
    return std::nullopt;
  }
  const auto byte = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  const size_t version = byte(6);
  size_t length = byte(8) | byte(9) << 8;
  if (version != 1) length |= byte(10) << 16 | byte(11) << 24;
  if (version < 1 || version > 3 || length > kLongestHeader) {
    error = "the .npy header is damaged";
    return std::nullopt;
  }
  return (version == 1 ? 10 : 12) + length;
}

std::optional<NpyHeader> NpyHeader::parse(std::span<const std::byte> bytes, std::string& error) {
  const auto all = size(bytes, error);
  if (!all) return std::nullopt;
  if (*all > bytes.size()) {
    error = "the .npy header is damaged";
    return std::nullopt;
  }
  const size_t prefix = static_cast<size_t>(bytes[6]) == 1 ? 10 : 12;
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + prefix, *all - prefix);
  const auto descr = value_of(header, "descr");
  const auto order = value_of(header, "fortran_order");
  const auto shape = value_of(header, "shape");
  NpyHeader result;
  if (!descr || !order || !shape || !(order->starts_with("False") || order->starts_with("True")) ||
      !parse_shape(*shape, result.dims)) {
    error = "the .npy header lacks descr, fortran_order or shape";
    return std::nullopt;
  }
  if (!parse_type(*descr, result.type, error)) return std::nullopt;
  const auto wanted = byte_count(result.type, result.dims);
  if (!wanted) {
    error = "the .npy header asks for negative extents or too many bytes";
    return std::nullopt;
  }
  result.fortran_order = order->starts_with("True");
  result.data_bytes = *wanted;
  return result;
}

Array NpyHeader::array(Bytes data) const {
  Array array{.name = {}, .type = type, .dims = dims, .bytes = std::move(data)};
  // Any nonzero byte is true in files; librt's bool is 0 or 1.
  if (type == DType::Bool)
    for (std::byte& byte : array.bytes) byte = byte == std::byte{0} ? std::byte{0} : std::byte{1};
  if (fortran_order && dims.size() > 1) array.bytes = row_major(array.bytes, size_of(type), dims);
  return array;
}

std::optional<Array> parse_npy(Bytes bytes, std::string& error) {
  const auto header = NpyHeader::parse(bytes, error);
  if (!header) return std::nullopt;
  const size_t before = *NpyHeader::size(bytes, error);
  if (header->data_bytes != bytes.size() - before) {
    error = size_problem(header->data_bytes, bytes.size() - before);
    return std::nullopt;
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(before));  // without a second copy
  return header->array(std::move(bytes));
}

Bytes format_npy(const Array& array) {
  Bytes widened;
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
  Bytes file(prefix.size() + data.size());
  std::memcpy(file.data(), prefix.data(), prefix.size());
  if (!data.empty()) std::memcpy(file.data() + prefix.size(), data.data(), data.size());
  return file;
}

Status write_npy(const std::string& path, const Array& array) {
  return write_file(path, format_npy(array));
}

}  // namespace librt::tools
