#include "tools/rttrain/loader.h"

#include <algorithm>

#include "tools/rttrain/order.h"

namespace rt::train {

size_t equal_part(size_t samples, size_t most) noexcept {
  size_t part = std::clamp<size_t>(most, 1, std::max<size_t>(samples, 1));
  while (samples % part != 0) --part;
  return part;
}

Loader::Loader(const Source& source, const Transform& transform, const LoaderOptions& options)
    : source_(source),
      transform_(transform),
      options_(options),
      batches_(batches(source.size(), options.batch, options.drop_last)),
      slots_(options.workers == 0 ? 1 : std::max<size_t>(options.prefetch, options.workers) + 1),
      to_make_(options.first),
      to_take_(options.first) {
  for (Slot& slot : slots_)
    for (const Column& column : source.columns()) {
      // A smaller batch may give this rank one sample more: parts are rounded.
      std::vector<int64_t> dims = {
          static_cast<int64_t>(options.shares.part_of(options.rank, options.batch) + 1)};
      dims.insert(dims.end(), column.dims.begin(), column.dims.end());
      slot.memory.emplace_back(column.dtype, dims);
    }
  for (unsigned i = 0; i < options.workers; ++i) threads_.emplace_back([this] { work(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  freed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

rt::Result<const Batch*> Loader::next() {
  Slot& slot = slots_[to_take_ % slots_.size()];
  const auto start = std::chrono::steady_clock::now();
  if (threads_.empty()) {
    fill(slot, to_take_++, scratch_);
  } else {
    std::unique_lock lock(mutex_);
    // The slot returned by the previous call is now free.
    if (to_take_ > options_.first) slots_[(to_take_ - 1) % slots_.size()].ready = false;
    const uint64_t wanted = to_take_++;
    freed_.notify_all();
    filled_.wait(lock, [&] { return slot.ready && slot.number == wanted; });
  }
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!slot.status) return slot.status;
  return &slot.batch;
}

void Loader::work() {
  std::vector<float> scratch;
  std::unique_lock lock(mutex_);
  for (;;) {
    // Batch n may be prepared once batch n - slots is no longer in use: next() has requested a later one.
    freed_.wait(lock, [&] {
      return stop_ || to_make_ >= options_.end || to_make_ + 1 < to_take_ + slots_.size() ||
             to_make_ < options_.first + slots_.size();
    });
    if (stop_ || to_make_ >= options_.end) return;
    const uint64_t number = to_make_++;
    lock.unlock();
    Slot& slot = slots_[number % slots_.size()];
    fill(slot, number, scratch);
    lock.lock();
    slot.ready = true;
    filled_.notify_all();
  }
}

// What is thrown here would end the program: workers call it.
void Loader::fill(Slot& slot, uint64_t number, std::vector<float>& scratch) noexcept {
  try {
    fill_or_throw(slot, number, scratch);
  } catch (const std::bad_alloc&) {
    slot.status = {rt::Code::OutOfMemory, "out of memory"};  // short: needs none itself
  } catch (const std::exception& error) {
    slot.status = {rt::Code::Internal, std::string("while preparing a batch: ") + error.what()};
  }
}

void Loader::fill_or_throw(Slot& slot, uint64_t number, std::vector<float>& scratch) {
  const uint64_t epoch = number / batches_;
  const size_t batch = static_cast<size_t>(number % batches_) * options_.batch;
  const Order order = order_of(epoch);
  const size_t all = std::min(options_.batch, order->size() - batch);
  const size_t begin = options_.shares.first_of(options_.rank, all);
  const size_t count = options_.shares.part_of(options_.rank, all);
  const size_t slice = equal_part(all, options_.slice);
  const auto place_of = [&](size_t i) {
    if (options_.slice == 0) return begin + i;
    return (i / slice * options_.shares.ranks() + options_.rank) * slice + i % slice;
  };
  slot.number = number;
  slot.status = {};
  slot.batch.samples = count;
  slot.batch.all = all;
  slot.batch.tensors.clear();
  const std::vector<Column>& columns = source_.columns();
  std::vector<std::byte*> targets(columns.size());
  for (size_t i = 0; i < count; ++i) {
    const uint32_t sample = (*order)[batch + place_of(i)];
    for (size_t c = 0; c < columns.size(); ++c)
      targets[c] = static_cast<std::byte*>(slot.memory[c].data()) + i * columns[c].bytes;
    slot.status = source_.read(sample, targets);
    if (!slot.status) return;
    transform_.apply(sample_seed(options_.seed, epoch, sample), targets, scratch);
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<int64_t> dims = {static_cast<int64_t>(count)};
    dims.insert(dims.end(), columns[c].dims.begin(), columns[c].dims.end());
    slot.batch.tensors.push_back(rt::Tensor::borrow(columns[c].dtype, dims, slot.memory[c].data()));
  }
}

Loader::Order Loader::order_of(uint64_t epoch) {
  const std::lock_guard lock(order_mutex_);
  Order& order = orders_[epoch];
  if (order == nullptr)
    order = std::make_shared<const std::vector<uint32_t>>(
        epoch_order(source_.size(), options_.seed, epoch, options_.shuffle));
  Order found = order;
  while (orders_.size() > 2) orders_.erase(orders_.begin());
  return found;
}

}  // namespace rt::train
