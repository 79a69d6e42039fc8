// A small model that covers all features, and hand-built files, for the tests of reader and writer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "schema/model_generated.h"

namespace librt {

namespace file = ::rt::file;

namespace testing {

/// Two entries, a symbol with a bound, a composite with its body, quantization, shared states, metadata.
ModelGraph sample_model();

/// Compares every field, including the data bytes.
bool equal(const ModelGraph& a, const ModelGraph& b);

/// Recomputes the checksums of header and FlatBuffer, as an attacker would; the header must be readable.
void reseal(std::vector<std::byte>& file);

/// A file around a finished FlatBuffer from `write`, with the given data area.
std::vector<std::byte> file_of(const std::function<void(flatbuffers::FlatBufferBuilder&)>& write,
                               const std::vector<std::byte>& data = {});

/// A file with one entry 'infer'.
std::vector<std::byte> file_of_graph(
    const std::function<flatbuffers::Offset<file::Graph>(flatbuffers::FlatBufferBuilder&)>& graph);

inline Blob blob_of(std::vector<std::byte> bytes) {
  return Blob::own(std::move(bytes));
}

template <class T>
Blob blob_of_values(const std::vector<T>& numbers) {
  return Blob::copy_of(numbers.data(), numbers.size() * sizeof(T));
}

/// A folder that is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// Sorted names of its contents.
  std::vector<std::string> list() const;

 private:
  std::string folder_;
};

}  // namespace testing
}  // namespace librt
