#include "tools/compiler/name_list.h"

#include <algorithm>

#include "runtime/core/text.h"

namespace librt::compiler {

std::string listed(const std::vector<std::string>& names, size_t most) {
  if (names.empty()) return "none";
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) append(list, i > 0 ? ", " : "", names[i]);
  if (names.size() > most) append(list, " and ", names.size() - most, " more");
  return list;
}

}  // namespace librt::compiler
