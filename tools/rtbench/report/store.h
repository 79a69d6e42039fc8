// The folder that studies are kept in: $XDG_DATA_HOME/librt/studies, or ~/.local/share/librt/studies.
//
// Knows: the names of its files, and that anything may lie there: the rules of runtime/core/cache_file.h
// hold, that is absolute paths, regular files of this user, no symbolic links. Must not know: what a study
// says.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Paragraph for --help.
inline constexpr const char* kStoreHelp =
    "Studies are kept in $XDG_DATA_HOME/librt/studies, or ~/.local/share/librt/studies, one file each, until "
    "you delete them; --clear-cache leaves them.";

/// `asked` as an absolute path; if it is empty the user's folder; empty if neither XDG_DATA_HOME nor HOME is
/// an absolute path.
std::string study_folder(const std::string& asked = {});

/// Writes the study into the folder, under a name of its own: "20250131T123456Z-resnet18-9f86d081.json".
/// Returns the path.
Result<std::string> save_study(const std::string& folder, const Study& study);

struct StoredStudy {
  std::string path;
  Study study;
};
struct StoredStudies {
  std::vector<StoredStudy> studies;   ///< oldest first
  std::vector<std::string> unusable;  ///< files with the names of studies that cannot be read, and why
};

/// All studies in the folder; a folder that does not exist has none.
Result<StoredStudies> stored_studies(const std::string& folder);

}  // namespace librt::bench
