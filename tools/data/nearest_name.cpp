#include "tools/data/nearest_name.h"

#include <algorithm>

#include "tools/data/edit_distance.h"

namespace librt::tools {
namespace {

constexpr size_t kLongest = 256;  // a comparison takes the product of the lengths

bool ends_with_part(std::string_view name, std::string_view part) {
  if (part.empty() || name.size() <= part.size() || !name.ends_with(part)) return false;
  const char before = name[name.size() - part.size() - 1];
  return before == '.' || before == ':';
}

/// The part after the prefix that only one of them has.
std::string_view without_prefix(std::string_view name, std::string_view other) {
  const size_t colon = name.find(':');
  return colon != std::string_view::npos && other.find(':') == std::string_view::npos ? name.substr(colon + 1)
                                                                                      : name;
}

}  // namespace

NearestName::NearestName(std::string_view wanted)
    : wanted_(wanted), least_(wanted.size() > kLongest ? 0 : std::max<size_t>(2, wanted.size() / 3) + 1) {}

void NearestName::consider(std::string_view known) {
  if (least_ == 0 || known.size() > kLongest) return;
  const size_t distance = ends_with_part(wanted_, known) || ends_with_part(known, wanted_)
                              ? 0
                              : edit_distance(wanted_, without_prefix(known, wanted_));
  if (distance >= least_) return;
  least_ = distance;
  name_ = known;
}

}  // namespace librt::tools
