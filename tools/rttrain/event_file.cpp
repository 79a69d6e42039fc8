#include "tools/rttrain/event_file.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tools/data/file.h"
#include "tools/data/public_status.h"

namespace rt::train {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = value;
  }
  return table;
}

// TFRecords store checksums rotated and offset, so that checksums of data that contains checksums stay
// useful.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return std::rotr(crc, 15) + 0xa282ead8u;
}

template <class T>
void append_bytes(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

// The wire types of protocol buffers that Event uses.
enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void append_tag(std::string& out, int field, Wire wire) {
  append_varint(out, static_cast<uint64_t>(field) << 3 | wire);
}
void append_text(std::string& out, int field, std::string_view text) {
  append_tag(out, field, kBytes);
  append_varint(out, text.size());
  out += text;
}

// Event: wall_time = 1, step = 2, then file_version = 3 or summary = 5.
std::string event_head(uint64_t step) {
  std::string event;
  append_tag(event, 1, kFixed64);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  append_bytes(event, std::chrono::duration<double>(now).count());
  append_tag(event, 2, kVarint);
  append_varint(event, step);
  return event;
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = 0xffffffffu;
  for (std::byte byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ std::to_integer<uint32_t>(byte)) & 0xff];
  return ~crc;
}

rt::Result<EventFile> EventFile::create(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return as_public(librt::tools::system_error(folder, "cannot be created", error.value()));
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  // TensorBoard finds files by "tfevents" in their names and reads them in the order of their names.
  const std::string path = folder + "/events.out.tfevents." + std::to_string(seconds) + "." + host + "." +
                           std::to_string(getpid());
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return as_public(librt::tools::system_error(path, "cannot write", errno));
  EventFile events(file, path);
  std::string version = event_head(0);
  append_text(version, 3, "brain.Event:2");
  if (rt::Status status = events.record(version); !status) return status;
  return events;
}

rt::Status EventFile::scalar(std::string_view tag, double value, uint64_t step) {
  std::string number;  // Summary.Value: tag = 1, simple_value = 2
  append_text(number, 1, tag);
  append_tag(number, 2, kFixed32);
  append_bytes(number, static_cast<float>(value));
  std::string summary;
  append_text(summary, 1, number);
  std::string event = event_head(step);
  append_text(event, 5, summary);
  return record(event);
}

rt::Status EventFile::record(std::string_view event) {
  std::string out;
  append_bytes(out, static_cast<uint64_t>(event.size()));
  append_bytes(out, masked_crc(out));
  out += event;
  append_bytes(out, masked_crc(event));
  return std::fwrite(out.data(), 1, out.size(), file_.get()) == out.size() ? rt::Status() : failure();
}

rt::Status EventFile::flush() {
  return std::fflush(file_.get()) == 0 ? rt::Status() : failure();
}

rt::Status EventFile::failure() const {
  // It could be opened: a failure now is one of the disk.
  return {rt::Code::Device, path_ + ": cannot write: " + std::strerror(errno)};
}

}  // namespace rt::train
