// Blocks of memory between pages that cannot be accessed.
//
// Knows: pages, and the value that fills what is around a block. Must not know: what is kept in them.
#pragma once

#include <cstddef>
#include <span>

namespace librt::guarded {

/// Around blocks, and in blocks that nothing was written to: NaN as a floating point number, -1 as an
/// integer.
inline constexpr std::byte kFill{0xff};

/// Its end is at most one alignment from a page that cannot be accessed, and so is the page before its first
/// one.
struct Block {
  std::byte* data = nullptr;
  size_t bytes = 0;
  std::byte *begin = nullptr, *end = nullptr;  ///< of its pages

  /// What of its pages does not belong to it.
  std::span<std::byte> before() const noexcept { return {begin, data}; }
  std::span<std::byte> after() const noexcept { return {data + bytes, end}; }
  /// Whether an address is in its pages or in those around them.
  bool near(const void* address) const noexcept;
};

/// Address space that blocks are taken from; all of them are given back at once. For one thread at a time.
class Fence {
 public:
  Fence();  ///< throws std::bad_alloc
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  std::byte* base() const noexcept { return base_; }
  /// A block that starts at a multiple of 64. Throws std::bad_alloc.
  Block take(size_t bytes);

 private:
  std::byte* base_;
  size_t used_ = 0;
};

}  // namespace librt::guarded
