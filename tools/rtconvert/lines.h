// Lines of output: results on stdout, progress and warnings on stderr.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace librt::convert {

using Json = nlohmann::ordered_json;

inline void progress(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

inline void print_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
}

/// Names in files, and of files, may be invalid UTF-8, which JSON does not allow.
inline void print_json(const Json& json) {
  print_line(json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace librt::convert
