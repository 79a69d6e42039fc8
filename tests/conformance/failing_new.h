// Fails one allocation of this process's operator new, to check that the error is returned as a Status.
#pragma once

namespace librt::test {

/// During its lifetime, allocation number `countdown` (from 0) of this thread throws std::bad_alloc, once;
/// the next one if oneDNN would end the process.
class FailingNew {
 public:
  explicit FailingNew(long countdown);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  /// No further allocation of this thread fails.
  static void disarm();
  /// Whether the allocation has failed.
  bool failed() const;
};

}  // namespace librt::test
