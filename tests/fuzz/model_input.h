// The inputs of targets that take a model: a .rt file, followed by bytes that choose what is done with it and
// may end early. Mutations change the model's graph (model_mutator.h) or these bytes; the container's own
// bytes are for fuzz_reader. A target that links this has libFuzzer's custom mutators.
//
// Knows: files, statuses, sessions' profiles. Must not know: what a target does with a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "rt/rt.hpp"
#include "runtime/graph/graph.h"

namespace librt::fuzz {

inline constexpr uint64_t kMemory = 32 << 20;  ///< bytes of a session

/// Bytes that decide, one after the other; zeros past their end.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t next() { return at_ < size_ ? data_[at_++] : uint8_t{0}; }
  bool rarely() { return next() >= 240; }
  template <class List>
  const auto& pick(const List& list) {
    return list[next() % std::size(list)];
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

struct Parts {
  std::vector<std::byte> file;
  std::vector<uint8_t> choices;
};

/// The file ends where its header says.
Parts parts_of(const uint8_t* data, size_t size);
/// Read within limits that keep a mutation fast.
Result<ModelGraph> model_of(const std::vector<std::byte>& file);

/// Whether it is no error. Aborts on one that no input may have: without a message, or one in librt itself.
bool accepted(const rt::Status& status);
/// Whether the prepared run takes more flops and bytes than this. The session must have been made with
/// options.profile.
bool takes_more(const rt::Session& session, double work);
/// Aborts unless librt finds these backends: without them nothing would be tested.
void require_backends(std::initializer_list<const char*> names);

}  // namespace librt::fuzz
