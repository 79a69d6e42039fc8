// A small model with a bit of everything, and files put together by hand, for the tests of reader and writer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "schema/model_generated.h"

namespace rt::testing {

/// Two entries, a symbol with a bound, a composite with its body, quantization, shared states, metadata.
ModelGraph sample_model();

/// Every field, the bytes of the data too.
bool equal(const ModelGraph& a, const ModelGraph& b);

/// Recomputes the checksums of header and FlatBuffer, as an attacker would; for a file whose header is
/// readable.
void reseal(std::vector<std::byte>& file);

/// A file around a FlatBuffer that `write` finished, with the given data area.
std::vector<std::byte> file_of(const std::function<void(flatbuffers::FlatBufferBuilder&)>& write,
                               const std::vector<std::byte>& data = {});

/// A file with one entry 'infer'.
std::vector<std::byte> file_of_graph(
    const std::function<flatbuffers::Offset<file::Graph>(flatbuffers::FlatBufferBuilder&)>& graph);

inline Blob blob_of(std::vector<std::byte> bytes) {
  return Blob::own(std::move(bytes));
}

template <class T>
Blob blob_of_numbers(const std::vector<T>& numbers) {
  return Blob::copy_of(numbers.data(), numbers.size() * sizeof(T));
}

/// A folder that is removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// Names of what is in it, sorted.
  std::vector<std::string> list() const;

 private:
  std::string folder_;
};

}  // namespace rt::testing
