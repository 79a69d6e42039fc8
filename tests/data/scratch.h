// A folder of a test's own, and files in it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tools/data/file.h"

namespace librt::tools {

class Scratch : public ::testing::Test {
 protected:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "data-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~Scratch() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  /// A file of `size` zeros that takes no space on the disk.
  std::string sparse(const std::string& name, uintmax_t size) const {
    write(name, "");
    std::filesystem::resize_file(path(name), size);
    return path(name);
  }

  std::filesystem::path folder_;
};

inline Bytes bytes_of(std::string_view text) {
  Bytes bytes;
  for (const char byte : text) bytes.push_back(static_cast<std::byte>(byte));
  return bytes;
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace librt::tools
