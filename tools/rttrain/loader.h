// Batches, prepared in advance by worker threads.
//
// Knows: the order of the samples, threads, the prefetch depth. Must not know: files, sessions.
//
// A batch depends only on (source, transform, seed, epoch, position), so it is the same for any number of
// threads. Memory is bounded: a ring of preallocated buffers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/rttrain/shares.h"
#include "tools/rttrain/source.h"
#include "tools/rttrain/transform.h"

namespace rt::train {

struct LoaderOptions {
  size_t batch = 32;
  uint64_t seed = 1;
  bool shuffle = true;
  bool drop_last = false;
  unsigned workers = 2;  ///< 0: batches are prepared on request
  size_t prefetch = 4;   ///< batches that may be ready in advance, at least one per worker
  uint64_t first = 0;    ///< batches to skip, counted from the beginning of epoch 0
  uint64_t end = 0;      ///< total number of batches, counted the same way
  size_t rank = 0;       ///< each of the ranks prepares its own part of every batch
  Shares shares = Shares(1);
  size_t slice = 0;  ///< above 0: the ranks take turns in micro-batches of at most this size
};

/// The samples of a micro-batch where `samples` are cut into equal parts of at most `most`: micro-batches of
/// unequal sizes would weight their samples unequally.
size_t equal_part(size_t samples, size_t most) noexcept;

struct Batch {
  size_t samples = 0;               ///< of this rank; may be 0 where there are fewer samples than ranks
  size_t all = 0;                   ///< of all ranks
  std::vector<rt::Tensor> tensors;  ///< one per column; views of the loader's memory
};

class Loader {
 public:
  /// The source and the transform must outlive the loader; the source must not be empty.
  Loader(const Source& source, const Transform& transform, const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  /// The next batch, valid until the following call; call at most options.end - options.first times.
  rt::Result<const Batch*> next();
  /// Seconds that next() waited for data, since the beginning.
  double waited() const noexcept { return waited_; }

  /// Batches per epoch.
  static uint64_t batches(size_t samples, size_t batch, bool drop_last) noexcept {
    return drop_last ? samples / batch : (samples + batch - 1) / batch;
  }

 private:
  using Order = std::shared_ptr<const std::vector<uint32_t>>;
  struct Slot {
    std::vector<rt::Tensor> memory;  ///< of a whole batch, one tensor per column
    Batch batch;
    rt::Status status;
    uint64_t number = 0;
    bool ready = false;
  };

  void work();
  void fill(Slot& slot, uint64_t number, std::vector<float>& scratch) noexcept;
  void fill_or_throw(Slot& slot, uint64_t number, std::vector<float>& scratch);
  Order order_of(uint64_t epoch);

  const Source& source_;
  const Transform& transform_;
  const LoaderOptions options_;
  const uint64_t batches_;
  std::vector<Slot> slots_;  ///< batch n is prepared in slot n % size

  std::mutex mutex_;
  std::condition_variable filled_, freed_;
  uint64_t to_make_ = 0;  ///< the first batch that no worker has taken
  uint64_t to_take_ = 0;  ///< the first one that next() has not returned
  bool stop_ = false;

  std::mutex order_mutex_;
  std::map<uint64_t, Order> orders_;
  std::vector<std::thread> threads_;
  std::vector<float> scratch_;
  double waited_ = 0;
};

}  // namespace rt::train
