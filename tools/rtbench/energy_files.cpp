#include "tools/rtbench/energy_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace librt::bench {

std::optional<std::string> line_of(const std::string& path, std::string& reason) {
  char text[4096];
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const ssize_t size = file < 0 ? -1 : ::read(file, text, sizeof(text));
  const int problem = errno;
  if (file >= 0) close(file);
  if (size < 0) {
    reason = path + ": " + std::strerror(problem);
    if (problem == EACCES || problem == EPERM)
      reason += "; run as root, or allow it: `sudo chmod a+r " + path + "`";
    return std::nullopt;
  }
  std::string line(text, static_cast<size_t>(size));
  line.resize(std::min(line.size(), line.find('\n')));
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return std::string();
  return line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
}

std::optional<double> number_in(const std::string& path, std::string& reason) {
  const auto line = line_of(path, reason);
  if (!line) return std::nullopt;
  double number = 0;
  const char* end = line->data() + line->size();
  const auto [stop, problem] = std::from_chars(line->data(), end, number);
  if (problem == std::errc() && stop == end && number >= 0 && number < 1e300) return number;
  std::string found = line->substr(0, 40);
  std::replace_if(
      found.begin(), found.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  reason = path + ": expected a number of at least 0, found '" + found + "'";
  return std::nullopt;
}

std::vector<std::string> names_in(const std::string& folder, const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code problem;
  std::filesystem::directory_iterator at(folder, problem), end;
  for (; !problem && at != end; at.increment(problem)) {
    std::string name = at->path().filename().string();
    if (name.starts_with(prefix)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_there(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

std::string target_of(const std::string& link) {
  std::error_code problem;
  const auto target = std::filesystem::read_symlink(link, problem);
  return problem ? std::string() : target.filename().string();
}

}  // namespace librt::bench
