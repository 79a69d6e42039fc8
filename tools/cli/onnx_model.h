// An ONNX file given where a compiled model is expected: rtconvert makes one of it, in the cache folder.
//
// Knows: how an ONNX file begins, where rtconvert is, and when a conversion can be reused. Must not know: how
// to convert.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/exit_code.h"

namespace librt::tools {

/// Whether the file begins like a serialized ONNX model.
bool is_onnx_file(const std::string& path);
/// The files with an ONNX file's external data, each once where the tensors of one file follow each other.
std::vector<std::string> external_data_of(const std::string& path);

struct CompiledPath {
  std::string path;    ///< what to load
  int failed = kFine;  ///< exit code of the conversion; its reason has been printed
};

/// `path`, unless it is an ONNX file: then the .rt that rtconvert, beside this program or in PATH, makes of
/// it, or made of it earlier, as long as the file, its external data and rtconvert are unchanged. Says on
/// stderr where that lies. A cache that cannot be used costs a line there and another conversion; the path is
/// then good for this process alone. Without rtconvert or a cache folder, `path`: loading it gives the
/// reason.
CompiledPath compiled_path(const char* program, const std::string& path);

}  // namespace librt::tools
