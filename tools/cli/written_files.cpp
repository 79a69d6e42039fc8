#include "tools/cli/written_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "tools/cli/onnx_model.h"

namespace librt::tools {
namespace {

namespace fs = std::filesystem;

/// What a path leads to.
struct Identity {
  bool exists = false;
  dev_t device = 0;
  ino_t inode = 0;
  fs::path path;  ///< where there is no file yet

  bool operator==(const Identity& other) const {
    if (exists != other.exists) return false;
    return exists ? device == other.device && inode == other.inode : path == other.path;
  }
};

/// None for what cannot be replaced.
std::optional<Identity> identity_of(const std::string& path) {
  if (path.empty() || path == "-") return {};
  Identity identity;
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) return {};
    identity.exists = true;
    identity.device = info.st_dev;
    identity.inode = info.st_ino;
    return identity;
  }
  std::error_code error;
  identity.path = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) identity.path = path;
  return identity;
}

}  // namespace

std::string conflict_of(std::span<const NamedFile> read, std::span<const NamedFile> written) {
  struct Known {
    const std::string* name;
    Identity identity;
  };
  std::vector<Known> known;
  const auto add = [&](const NamedFile& file, const std::optional<Identity>& identity) {
    if (identity) known.push_back({&file.name, *identity});
  };
  for (const NamedFile& file : read) add(file, identity_of(file.path));
  for (const NamedFile& file : written) {
    const auto identity = identity_of(file.path);
    for (const Known& other : known)
      if (identity && *identity == other.identity)
        return file.name + " " + file.path + ": is the file of " + *other.name +
               ", which it would replace; name another one";
    add(file, identity);
  }
  return {};
}

void add_model(std::vector<NamedFile>& files, const std::string& path) {
  files.push_back({"the model", path});
  if (!is_onnx_file(path)) return;
  for (std::string& data : external_data_of(path))
    files.push_back({"the model's external data", std::move(data)});
}

void add_file_or_folder(std::vector<NamedFile>& files, const std::string& name, const std::string& path,
                        const std::string& ending) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    files.push_back({name, path});
    return;
  }
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().string().ends_with(ending)) files.push_back({name, entry->path().string()});
}

void add_assigned(std::vector<NamedFile>& files, const std::string& option,
                  std::span<const std::string> assignments) {
  for (const std::string& text : assignments)
    if (const size_t equals = text.find('='); equals != text.npos)
      files.push_back({option, text.substr(equals + 1)});
}

}  // namespace librt::tools
