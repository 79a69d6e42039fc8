// Makes one allocation of this process's operator new fail, to see that the error comes out as a Status.
#pragma once

namespace rt::test {

/// While it lives, the allocation number `countdown` (from 0) made by this thread throws std::bad_alloc,
/// once.
class FailingNew {
 public:
  explicit FailingNew(long countdown);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  /// No allocation of this thread fails any more.
  static void disarm();
  /// Whether it has happened.
  bool failed() const;
};

}  // namespace rt::test
