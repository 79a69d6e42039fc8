#include "runtime/session/memory/memory.h"

#include <cstring>
#include <new>

#include "runtime/core/byte_count.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace librt {

void discard_pages(const std::byte* data, size_t bytes) noexcept {
#if defined(__linux__)
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
#else
  static_cast<void>(data), static_cast<void>(bytes);
#endif
}

Status AlignedBytes::reserve(uint64_t bytes, const rt_allocator* allocator) noexcept {
  if (bytes <= capacity_ && data_ != nullptr) return {};
  RT_TRY(check_addressable(bytes));
  const size_t rounded = (static_cast<size_t>(bytes) + kHostAlignment) & ~(kHostAlignment - 1);
  void* data = allocator != nullptr
                   ? allocator->allocate(allocator->user, rounded, kHostAlignment)
                   : ::operator new (rounded, std::align_val_t{kHostAlignment}, std::nothrow);
  if (data == nullptr) return Status(Code::OutOfMemory, "out of host memory");
  if (!is_aligned(data, kHostAlignment)) {
    allocator->free(allocator->user, data, rounded, kHostAlignment);
    return Status(Code::InvalidArgument, "rt_allocator: expected an address that is a multiple of 64");
  }
  release();
  allocator_ = allocator;
  data_ = static_cast<std::byte*>(data);
  capacity_ = rounded;
  return {};
}

Status AlignedBytes::reserve_huge(uint64_t bytes, std::byte*& begin) noexcept {
  // The bytes before the first multiple of a huge page's size are never touched, so that they take no memory.
  constexpr size_t kHugePage = size_t{2} << 20;
  const uint64_t slack = bytes >= kHugePage ? kHugePage : 0;
  RT_TRY(reserve(bytes + slack));
  begin = data_;
  if (slack == 0) return {};
  begin += kHugePage - reinterpret_cast<uintptr_t>(data_) % kHugePage;
#if defined(__linux__)
  madvise(begin, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a hint
#endif
  return {};
}

Status AlignedBytes::grow(uint64_t bytes, const rt_allocator* allocator) noexcept {
  if (bytes <= capacity_ && data_ != nullptr) return {};
  AlignedBytes larger;
  RT_TRY(larger.reserve(bytes, allocator));
  if (data_ != nullptr) std::memcpy(larger.data_, data_, capacity_);
  swap(larger);
  return {};
}

void AlignedBytes::release() noexcept {
  if (allocator_ == nullptr)
    ::operator delete (data_, std::align_val_t{kHostAlignment});
  else if (data_ != nullptr)
    allocator_->free(allocator_->user, data_, capacity_, kHostAlignment);
  data_ = nullptr;
  capacity_ = 0;
}

Result<BlockPtr> Block::allocate(Device& device, uint64_t bytes) {
  RT_TRY(check_addressable(bytes));
  RT_ASSIGN(SlabPtr slab, device.allocate(bytes > 0 ? static_cast<size_t>(bytes) : kHostAlignment));
  return std::make_unique<Block>(device, std::move(slab));
}

Result<BlockPtr> Block::wrap(Device& device, const void* data, size_t bytes) {
  RT_ASSIGN(SlabPtr slab, device.wrap(const_cast<void*>(data), bytes));
  return std::make_unique<Block>(device, std::move(slab));
}

Result<Slab*> Block::on(Device& device) {
  if (&device == owner_) return slab_.get();
  for (auto& [viewer, view] : views_)
    if (viewer == &device) return view.get();
  if (slab_->host() == nullptr)
    return internal_error("memory of ", owner_->info().backend, " has no host address");
  RT_ASSIGN(SlabPtr view, device.wrap(slab_->host(), slab_->size()));
  views_.emplace_back(&device, std::move(view));
  return views_.back().second.get();
}

}  // namespace librt
