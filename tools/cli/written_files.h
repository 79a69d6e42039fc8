// That a program replaces none of the files that it reads.
//
// Knows: when two paths are one file. Must not know: any program's options.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace librt::tools {

/// A file with the name that a message gives it: "the model", or the option that names it.
struct NamedFile {
  std::string name, path;
};

/// What is wrong with files that a program is going to write: one is a file that it reads, or another one
/// that it writes. Compared is the file itself, by device and inode, whatever path or link leads to it; where
/// there is none yet, the path without links. A device or a pipe is nothing that could be replaced, and
/// neither an empty path nor "-" (stdout) is a file. Empty: nothing is wrong. Call it before the work.
std::string conflict_of(std::span<const NamedFile> read, std::span<const NamedFile> written);

/// Adds a model and, if it is an ONNX file, the files of its external data.
void add_model(std::vector<NamedFile>& files, const std::string& path);
/// Adds a file, or of a folder the files in it whose names end so.
void add_file_or_folder(std::vector<NamedFile>& files, const std::string& name, const std::string& path,
                        const std::string& ending);
/// Adds the files of "NAME=FILE" options.
void add_assigned(std::vector<NamedFile>& files, const std::string& option,
                  std::span<const std::string> assignments);

}  // namespace librt::tools
