#include "tools/data/npz.h"

#include <zip.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "tools/data/npy.h"

namespace librt::tools {
namespace {

struct CloseArchive {
  void operator()(zip_t* archive) const noexcept { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

constexpr size_t kFirstBuffer = size_t{1} << 20;

Status failure(const std::string& path, const char* reason) {
  return Status::make(Code::Io, path, ": ", reason, "; expected a .npz archive");
}

Result<Archive> open_archive(const std::string& path) {
  RT_ASSIGN(Descriptor file, open_regular(path));
  int code = 0;
  Archive archive(zip_fdopen(file.number(), 0, &code));
  if (archive) {
    (void)file.release();
    return archive;
  }
  zip_error_t detail;
  zip_error_init_with_code(&detail, code);
  Status status = failure(path, zip_error_strerror(&detail));
  zip_error_fini(&detail);
  return status;
}

/// One entry of an archive, read from its beginning.
class Entry {
 public:
  Entry(zip_t* archive, zip_uint64_t index)
      : file_(zip_fopen_index(archive, index, 0), zip_fclose), problem_(file_ ? "" : zip_strerror(archive)) {}

  /// Appends up to `count` bytes. Memory is used as far as there are bytes: sizes in an archive may be wrong.
  bool read(Bytes& bytes, size_t count) {
    const size_t end = bytes.size() + count;
    size_t used = bytes.size();
    bytes.reserve(end);
    while (file_ && used < end) {
      if (used == bytes.size()) bytes.resize(std::min(end, std::max(2 * used, kFirstBuffer)));
      const zip_int64_t got = zip_fread(file_.get(), bytes.data() + used, bytes.size() - used);
      if (got < 0) problem_ = zip_file_strerror(file_.get());
      if (got <= 0) break;
      used += static_cast<size_t>(got);
    }
    bytes.resize(used);
    return used == end;
  }

  std::optional<Array> array(size_t size, std::string& error) {
    Bytes head;
    if (!read(head, std::min(size, NpyHeader::kFirst))) return failed(head.size(), size, error);
    const auto before = NpyHeader::size(head, error);
    if (!before) return std::nullopt;
    if (*before > size || (head.size() < *before && !read(head, *before - head.size())))
      return failed(head.size(), *before, error);
    const auto header = NpyHeader::parse(head, error);
    if (!header) return std::nullopt;
    if (header->data_bytes != size - *before) {
      error = "the .npy header asks for " + std::to_string(header->data_bytes) + " bytes, the entry has " +
              std::to_string(size - *before);
      return std::nullopt;
    }
    // Of a header of version 1 two bytes may be data already.
    Bytes data(head.begin() + static_cast<std::ptrdiff_t>(*before), head.end());
    if (!read(data, header->data_bytes - data.size())) return failed(head.size() + data.size(), size, error);
    return header->array(std::move(data));
  }

 private:
  std::nullopt_t failed(size_t found, size_t size, std::string& error) const {
    error = "ends after " + std::to_string(found) + " of " + std::to_string(size) + " bytes";
    if (!problem_.empty()) error += " (" + problem_ + ")";
    return std::nullopt;
  }

  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file_;
  std::string problem_;
};

constexpr std::string_view kSuffix = ".npy";

/// The largest ratio of deflate is 1032; what claims more is no archive.
bool is_possible(const zip_stat_t& stat) {
  if (stat.comp_method == ZIP_CM_STORE) return stat.size == stat.comp_size;
  return stat.comp_method == ZIP_CM_DEFLATE && stat.size / 1032 <= stat.comp_size;
}

struct Listed {
  zip_uint64_t index;
  std::string name;
  size_t size;
};

/// The arrays, after a look at all sizes.
Result<std::vector<Listed>> list(zip_t* archive, const std::string& path, size_t limit) {
  constexpr zip_uint64_t kWanted = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  std::vector<Listed> entries;
  size_t total = 0;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    const auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(archive, index, 0, &stat) != 0 || (stat.valid & kWanted) != kWanted)
      return Status::make(Code::Io, path, ": entry ", i, " cannot be read");
    std::string name = stat.name;
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - kSuffix.size());
    if (!is_possible(stat))
      return Status::make(Code::Io, path, ": array ", in_quotes(name), ": ", uint64_t{stat.comp_size},
                          " bytes, stored or deflated, cannot hold ", uint64_t{stat.size},
                          "; the archive is damaged, or compressed in another way");
    if (stat.size > limit - total) return too_large(path, "what the arrays hold", total + stat.size, limit);
    total += static_cast<size_t>(stat.size);
    entries.push_back({index, std::move(name), static_cast<size_t>(stat.size)});
  }
  return entries;
}

}  // namespace

Result<std::vector<Array>> read_npz(const std::string& path, size_t limit) {
  RT_ASSIGN(const Archive archive, open_archive(path));
  RT_ASSIGN(const std::vector<Listed> entries, list(archive.get(), path, limit));
  std::vector<Array> arrays;
  for (const Listed& entry : entries) {
    std::string error;
    auto array = Entry(archive.get(), entry.index).array(entry.size, error);
    if (!array) return Status::make(Code::Io, path, ": array ", in_quotes(entry.name), ": ", error);
    array->name = entry.name;
    arrays.push_back(std::move(*array));
  }
  if (arrays.empty()) return Status::make(Code::Io, path, ": holds no arrays (.npy entries)");
  return arrays;
}

Status write_npz(const std::string& path, const std::vector<Array>& arrays) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const memory = zip_source_buffer_create(nullptr, 0, 0, &error);
  Archive archive(memory == nullptr ? nullptr : zip_open_from_source(memory, ZIP_TRUNCATE, &error));
  if (!archive) {
    zip_source_free(memory);
    return Status::make(Code::OutOfMemory, path, ": ", zip_error_strerror(&error));
  }
  zip_source_keep(memory);  // also when the archive is closed
  const std::unique_ptr<zip_source_t, void (*)(zip_source_t*)> kept_memory(memory, zip_source_free);
  std::vector<Bytes> kept;  // libzip reads them when it closes the archive
  for (const Array& array : arrays) {
    kept.push_back(format_npy(array));
    zip_source_t* source = zip_source_buffer(archive.get(), kept.back().data(), kept.back().size(), 0);
    const zip_int64_t index = source == nullptr ? -1
                                                : zip_file_add(archive.get(), (array.name + ".npy").c_str(),
                                                               source, ZIP_FL_ENC_UTF_8);
    if (index < 0 ||
        zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0) {
      if (index < 0 && source != nullptr) zip_source_free(source);
      return Status::make(Code::Io, path, ": ", zip_strerror(archive.get()));
    }
  }
  if (zip_close(archive.get()) != 0) return Status::make(Code::Io, path, ": ", zip_strerror(archive.get()));
  (void)archive.release();
  zip_stat_t stat;
  if (zip_source_stat(memory, &stat) != 0 || zip_source_open(memory) != 0)
    return Status::make(Code::OutOfMemory, path, ": ", zip_error_strerror(zip_source_error(memory)));
  Bytes bytes(static_cast<size_t>(stat.size));
  const zip_int64_t got = zip_source_read(memory, bytes.data(), bytes.size());
  zip_source_close(memory);
  if (got != static_cast<zip_int64_t>(bytes.size()))
    return Status::make(Code::Io, path, ": the archive is incomplete");
  return write_file(path, bytes);
}

}  // namespace librt::tools
