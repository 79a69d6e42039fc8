#include "tools/data/npz.h"

#include <zip.h>

#include <memory>
#include <string_view>

#include "tools/data/npy.h"

namespace librt::tools {
namespace {

struct CloseArchive {
  void operator()(zip_t* archive) const noexcept { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

Archive open_archive(const std::string& path, int flags, std::string& error) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (!archive) {
    zip_error_t detail;
    zip_error_init_with_code(&detail, code);
    error = path + ": " + zip_error_strerror(&detail) + "; expected a .npz archive";
    zip_error_fini(&detail);
  }
  return archive;
}

std::optional<std::vector<std::byte>> read_entry(zip_t* archive, zip_uint64_t index, size_t size,
                                                 std::string& error) {
  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(archive, index, 0), zip_fclose);
  if (!file) {
    error = zip_strerror(archive);
    return std::nullopt;
  }
  std::vector<std::byte> bytes(size);
  size_t done = 0;
  while (done < size) {
    const zip_int64_t got = zip_fread(file.get(), bytes.data() + done, size - done);
    if (got <= 0) {
      error = "ends after " + std::to_string(done) + " of " + std::to_string(size) + " bytes";
      return std::nullopt;
    }
    done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace

std::optional<std::vector<Array>> read_npz(const std::string& path, std::string& error, size_t limit) {
  const Archive archive = open_archive(path, ZIP_RDONLY, error);
  if (!archive) return std::nullopt;
  constexpr std::string_view kSuffix = ".npy";
  std::vector<Array> arrays;
  size_t total = 0;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0 ||
        (stat.valid & (ZIP_STAT_NAME | ZIP_STAT_SIZE)) != (ZIP_STAT_NAME | ZIP_STAT_SIZE)) {
      error = path + ": entry " + std::to_string(i) + " cannot be read";
      return std::nullopt;
    }
    std::string name = stat.name;
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - kSuffix.size());
    if (stat.size > limit - total) {
      error = path + ": the arrays take more than " + std::to_string(limit) + " bytes";
      return std::nullopt;
    }
    total += stat.size;
    const auto bytes = read_entry(archive.get(), static_cast<zip_uint64_t>(i), stat.size, error);
    std::optional<Array> array;
    if (bytes) array = parse_npy(*bytes, error);
    if (!array) {
      error = path + ": array '" + name + "': " + error;
      return std::nullopt;
    }
    array->name = std::move(name);
    arrays.push_back(std::move(*array));
  }
  if (arrays.empty()) {
    error = path + ": holds no arrays (.npy entries)";
    return std::nullopt;
  }
  return arrays;
}

bool write_npz(const std::string& path, const std::vector<Array>& arrays, std::string& error) {
  Archive archive = open_archive(path, ZIP_CREATE | ZIP_TRUNCATE, error);
  if (!archive) return false;
  std::vector<std::vector<std::byte>> kept;  // libzip reads them when it closes the archive
  for (const Array& array : arrays) {
    kept.push_back(format_npy(array));
    zip_source_t* source = zip_source_buffer(archive.get(), kept.back().data(), kept.back().size(), 0);
    const zip_int64_t index = source == nullptr ? -1
                                                : zip_file_add(archive.get(), (array.name + ".npy").c_str(),
                                                               source, ZIP_FL_ENC_UTF_8);
    if (index < 0 ||
        zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0) {
      if (index < 0 && source != nullptr) zip_source_free(source);
      error = path + ": " + zip_strerror(archive.get());
      return false;
    }
  }
  if (zip_close(archive.get()) != 0) {
    error = path + ": " + zip_strerror(archive.get());
    return false;
  }
  (void)archive.release();
  return true;
}

}  // namespace librt::tools
