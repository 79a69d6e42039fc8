// The processes that train together: ranks that mpirun started, or this process alone.
//
// Knows: the communicator's module and when to load it. Must not know: MPI, what is trained.
#pragma once

#include <rt/rt.hpp>
#include <span>

namespace rt::train {

class Ranks {
 public:
  Ranks() = default;  ///< alone
  /// Joins the others where mpirun started this process with others; else alone.
  static rt::Result<Ranks> join();
  /// Waits until all are here. Without it, the end of a rank ends the others.
  void leave();
  /// After a failure, before memory is freed that operations were begun on: they end as they are.
  void abandon() const;

  /// For sessions; null when alone.
  const rt_communicator* communicator() const noexcept { return communicator_; }
  size_t rank() const noexcept {
    return communicator_ == nullptr ? 0 : static_cast<size_t>(communicator_->rank);
  }
  size_t count() const noexcept {
    return communicator_ == nullptr ? 1 : static_cast<size_t>(communicator_->ranks);
  }
  /// The one that writes logs and checkpoints.
  bool is_first() const noexcept { return rank() == 0; }

  /// Each number becomes its sum over all ranks: begun here, done by finish_sum().
  rt::Status begin_sum(std::span<double> numbers) const;
  rt::Status finish_sum(std::span<double> numbers) const;
  rt::Status sum(std::span<double> numbers) const;
  /// Waits until all ranks are here.
  rt::Status meet() const;

  /// The first sample of this rank's part of `samples`; that of the last rank ends at `samples`.
  static size_t first_of(size_t rank, size_t ranks, size_t samples) noexcept {
    return samples * rank / ranks;
  }

 private:
  const rt_communicator* communicator_ = nullptr;
  void (*close_)() = nullptr;
  void (*abandon_)() = nullptr;
};

}  // namespace rt::train
