#include "guarded_memory/fence.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace librt::guarded {
namespace {

constexpr size_t kAddressSpace = size_t{1} << (sizeof(size_t) == 8 ? 34 : 28);
constexpr size_t kAlignment = 64;

size_t page() noexcept {
  static const auto kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kPage;
}
size_t round_up(size_t bytes, size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

bool Block::near(const void* address) const noexcept {
  const auto at = reinterpret_cast<uintptr_t>(address);
  return at >= reinterpret_cast<uintptr_t>(begin) - page() && at < reinterpret_cast<uintptr_t>(end) + page();
}

Fence::Fence() {
  void* space = mmap(nullptr, kAddressSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(space);
}
Fence::~Fence() {
  munmap(base_, kAddressSpace);
}

Block Fence::take(size_t bytes) {
  if (bytes > kAddressSpace) throw std::bad_alloc();
  const size_t pages = round_up(bytes, page());  // none for a block without bytes
  if (pages + 2 * page() > kAddressSpace - used_) throw std::bad_alloc();
  Block block;
  block.begin = base_ + used_ + page();
  block.end = block.begin + pages;
  block.data = block.end - round_up(bytes, kAlignment);
  block.bytes = bytes;
  if (pages > 0 && mprotect(block.begin, pages, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  if (pages > 0) std::memset(block.begin, static_cast<int>(kFill), pages);
  used_ += page() + pages;
  return block;
}

}  // namespace librt::guarded
