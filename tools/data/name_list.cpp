#include "tools/data/name_list.h"

#include <algorithm>

#include "runtime/core/text.h"

namespace librt::tools {

std::string listed(const std::vector<std::string>& names, size_t most) {
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) append(list, i > 0 ? ", " : "", names[i]);
  if (names.size() > most) append(list, " and ", names.size() - most, " more");
  return list;
}

}  // namespace librt::tools
