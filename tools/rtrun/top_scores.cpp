#include "tools/rtrun/top_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "tools/data/compare.h"
#include "tools/data/file.h"
#include "tools/data/public_status.h"

namespace rt::run {

std::vector<std::vector<Score>> top_scores(const librt::tools::Array& array, size_t count) {
  const auto classes = static_cast<size_t>(array.dims.back());
  const size_t elements = array.bytes.size() / librt::size_of(array.type);
  std::vector<std::vector<Score>> rows;
  for (size_t begin = 0; begin < elements; begin += classes) {
    std::vector<Score> scores(classes);
    for (size_t i = 0; i < classes; ++i) scores[i] = {i, librt::tools::element_of(array, begin + i)};
    const auto is_larger = [](const Score& a, const Score& b) {
      if (std::isnan(a.value) || std::isnan(b.value)) return !std::isnan(a.value) && std::isnan(b.value);
      return a.value > b.value;
    };
    std::stable_sort(scores.begin(), scores.end(), is_larger);
    scores.resize(std::min(count, classes));
    rows.push_back(std::move(scores));
  }
  return rows;
}

rt::Result<std::vector<std::string>> read_label_names(const std::string& path) {
  constexpr size_t kLargest = size_t{64} << 20;  // the largest data sets have some 20,000 classes
  const auto bytes = librt::tools::read_file(path, kLargest);
  if (!bytes) return as_public(bytes.status());
  std::vector<std::string> names;
  std::string_view rest(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view name = rest.substr(0, end);
    if (name.ends_with('\r')) name.remove_suffix(1);
    names.emplace_back(name);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (names.empty())
    return rt::Status(rt::Code::InvalidArgument, path + ": expected one name per line, found none");
  return names;
}

}  // namespace rt::run
