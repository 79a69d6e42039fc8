#include "runtime/core/text.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace librt {
namespace {

template <class Float>
void append_float(std::string& out, Float part) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, part);
  out.append(buffer, end.ptr);
}

}  // namespace

void append(std::string& out, int64_t part) {
  if (part < 0) out.push_back('-');
  append(out, part < 0 ? -static_cast<uint64_t>(part) : static_cast<uint64_t>(part));
}
// std::to_chars of integers takes 400 bytes, half of it a table.
void append(std::string& out, uint64_t part) {
  char buffer[20];
  char* const end = buffer + sizeof buffer;
  char* first = end;
  do *--first = static_cast<char>('0' + part % 10);
  while ((part /= 10) > 0);
  out.append(first, end);
}
void append(std::string& out, float part) {
  append_float(out, part);
}
void append(std::string& out, double part) {
  append_float(out, part);
}

namespace text_detail {

void append_parts(std::string& out, const char* letters, va_list arguments) {
  for (; *letters != '\0'; ++letters) {
    switch (*letters) {
      case 'b': append(out, va_arg(arguments, int) != 0); break;
      case 'c': out.push_back(static_cast<char>(va_arg(arguments, int))); break;
      case 'i': append(out, int64_t{va_arg(arguments, int)}); break;
      case 'u': append(out, uint64_t{va_arg(arguments, unsigned)}); break;
      case 'l': append(out, va_arg(arguments, int64_t)); break;
      case 'm': append(out, va_arg(arguments, uint64_t)); break;
      case 'f': append(out, static_cast<float>(va_arg(arguments, double))); break;
      case 'd': append(out, va_arg(arguments, double)); break;
      case 's': out.append(*va_arg(arguments, const std::string*)); break;
      case 'z': out.append(va_arg(arguments, const char*)); break;
      case 'v': {
        const auto view = va_arg(arguments, View);
        out.append(view.data, view.size);
        break;
      }
      default: {
        const auto custom = va_arg(arguments, Printable);
        custom.append(out, custom.part);
      }
    }
  }
}

void append_all(std::string& out, const char* letters, ...) {
  va_list arguments;
  va_start(arguments, letters);
  append_parts(out, letters, arguments);
  va_end(arguments);
}

std::string join(const char* letters, ...) {
  std::string out;
  va_list arguments;
  va_start(arguments, letters);
  append_parts(out, letters, arguments);
  va_end(arguments);
  return out;
}

}  // namespace text_detail

double take_number(const char*& text) noexcept {
  double number = 0;
  while (*text == ' ') ++text;
  text = std::from_chars(text, text + std::strlen(text), number).ptr;
  return number;
}

std::string grouped(uint64_t number) {
  std::string digits = text(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string bytes_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return buffer;
}

}  // namespace librt
