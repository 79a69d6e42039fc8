// Data-parallel processes: the ranks that mpirun started, or this process alone.
//
// Knows: the communicator's module and when to load it. Must not know: MPI, the model.
#pragma once

#include <rt/rt.hpp>
#include <span>
#include <string>
#include <vector>

namespace rt::train {

/// After how many seconds a rank is given up.
struct RankLimits {
  double answer = 300;  ///< without an answer: it was stopped, or its machine cannot be reached
  double wait = 3600;   ///< it answers, but the others wait for it; 0: no limit
};

class Ranks {
 public:
  Ranks() = default;  ///< a single process
  /// Joins the other ranks if mpirun started several; otherwise a single process.
  /// After an error the process should end with _exit.
  static rt::Result<Ranks> join(const RankLimits& limits);
  /// Waits for all ranks, then finalizes. A rank that exits without it ends the others. After an error the
  /// process should end with _exit.
  rt::Status leave();
  /// After a failure, before buffers of started operations are freed: stops these operations.
  void abandon() const;

  /// For sessions; null for a single process.
  const rt_communicator* communicator() const noexcept { return communicator_; }
  size_t rank() const noexcept {
    return communicator_ == nullptr ? 0 : static_cast<size_t>(communicator_->rank);
  }
  size_t count() const noexcept {
    return communicator_ == nullptr ? 1 : static_cast<size_t>(communicator_->ranks);
  }
  /// The rank that writes logs and checkpoints.
  bool is_first() const noexcept { return rank() == 0; }

  /// All-reduce (sum) over the ranks: started here, completed by finish_sum().
  rt::Status begin_sum(std::span<double> values) const;
  rt::Status finish_sum(std::span<double> values) const;
  rt::Status sum(std::span<double> values) const;
  /// A barrier over all ranks.
  rt::Status meet() const;
  /// Fills each part r of `data`, of `bytes` bytes, from rank r; a collective call.
  rt::Status all_gather(void* data, size_t bytes) const;
  /// The texts of all ranks; a collective call.
  rt::Result<std::vector<std::string>> gather(const std::string& own) const;
  /// An error that all ranks have found: each reports it, then they end together.
  rt::Status refuse(std::string message);
  bool have_refused() const noexcept { return have_refused_; }

 private:
  const rt_communicator* communicator_ = nullptr;
  bool have_refused_ = false;
  const char* (*close_)() = nullptr;
  void (*abandon_)() = nullptr;
};

}  // namespace rt::train
