#include "runtime/session/prepare/tuning_choices.h"

#include <vector>

#include "runtime/core/text.h"
#include "runtime/session/device/cache.h"

namespace librt {

Status TuningChoices::read(const std::string& folder, const std::string& file) {
  std::vector<std::string> lines;
  RT_TRY(read_cache(folder, file, lines));
  for (const std::string& line : lines) {
    const size_t tab = line.find('\t');
    if (tab == 0 || tab >= line.size() - 1) continue;
    rows_.try_emplace(line.substr(0, tab), line.substr(tab + 1));
  }
  return {};
}

Status TuningChoices::write(const std::string& folder, const std::string& file) const {
  std::vector<std::string> lines;
  for (const auto& [key, row] : rows_) lines.push_back(text(key, "\t", row));
  return write_cache(folder, file, lines);
}

std::string_view TuningChoices::find(std::string_view key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? std::string_view() : found->second;
}

void TuningChoices::set(std::string_view key, std::string_view row) {
  rows_.insert_or_assign(std::string(key), std::string(row));
}

}  // namespace librt
