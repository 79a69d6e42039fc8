// Memory shared by several devices: host buffers, and slabs with a view for each device.
//
// Knows: Slab and Device. Must not know: plans, graphs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/backend/backend.h"

namespace librt {

inline constexpr size_t kHostAlignment = 64;

inline constexpr uint64_t round_up(uint64_t bytes, uint64_t alignment) noexcept {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Returns the whole pages in this range to the system. File-backed pages are read again on access; the
/// content of other memory is lost.
void discard_pages(const std::byte* data, size_t bytes) noexcept;

inline bool is_within(std::span<const std::byte> range, const std::byte* data) noexcept {
  return data != nullptr && data >= range.data() && data < range.data() + range.size();
}

/// Host bytes aligned to kHostAlignment; grows, never shrinks, loses its content when it grows.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  AlignedBytes(AlignedBytes&& other) noexcept { swap(other); }
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    swap(other);
    return *this;
  }
  ~AlignedBytes() { release(); }
  /// Reserves at least `bytes`. allocator: outlives the bytes; null: the C library's.
  Status reserve(uint64_t bytes, const rt_allocator* allocator = nullptr) noexcept;
  /// The same, preserving the content.
  Status grow(uint64_t bytes, const rt_allocator* allocator = nullptr) noexcept;
  /// The same, with `begin` where huge pages can hold `bytes`.
  Status reserve_huge(uint64_t bytes, std::byte*& begin) noexcept;
  /// Returns whole pages to the system: the address stays valid, the content is lost.
  void discard() noexcept { discard_pages(data_, capacity_); }
  std::byte* data() const noexcept { return data_; }
  size_t capacity() const noexcept { return capacity_; }

 private:
  void release() noexcept;
  void swap(AlignedBytes& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(allocator_, other.allocator_);
  }
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
  const rt_allocator* allocator_ = nullptr;
};

inline bool is_aligned(const void* address, size_t alignment) noexcept {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

/// A slab of one device, and the views of it on other devices through its host address.
class Block {
 public:
  Block(Device& owner, SlabPtr slab) noexcept : owner_(&owner), slab_(std::move(slab)) {}
  static Result<std::unique_ptr<Block>> allocate(Device& device, uint64_t bytes);
  /// A view of existing memory; the device must have host_memory.
  static Result<std::unique_ptr<Block>> wrap(Device& device, const void* data, size_t bytes);

  Device& owner() noexcept { return *owner_; }
  Slab& slab() noexcept { return *slab_; }
  size_t size() const noexcept { return slab_->size(); }
  std::byte* host() noexcept { return static_cast<std::byte*>(slab_->host()); }
  /// The slab as seen by this device; devices other than the owner use host(), which must exist.
  Result<Slab*> on(Device& device);
  /// offset: within the block.
  Status upload(uint64_t offset, std::span<const std::byte> bytes) noexcept {
    return owner_->upload(*slab_, static_cast<size_t>(offset), bytes);
  }
  Status download(uint64_t offset, std::span<std::byte> bytes) const noexcept {
    return owner_->download(*slab_, static_cast<size_t>(offset), bytes);
  }

 private:
  Device* owner_;
  SlabPtr slab_;
  std::vector<std::pair<Device*, SlabPtr>> views_;
};
using BlockPtr = std::unique_ptr<Block>;

}  // namespace librt
