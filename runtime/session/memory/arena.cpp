#include "runtime/session/memory/arena.h"

#include <cstdint>
#include <new>

namespace librt {
namespace {

constexpr size_t kLine = 64;

/// In front of each block. Blocks follow each other without gaps.
struct alignas(kLine) Header {
  Header* next;
  size_t bytes;
  bool used;

  std::byte* block() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

void* take(void* first, size_t bytes, size_t) noexcept {
  for (auto* at = static_cast<Header*>(first); at != nullptr; at = at->next) {
    if (at->used || at->bytes < bytes) continue;
    if (at->bytes > bytes + sizeof(Header)) {
      at->next = new (at->block() + bytes) Header{at->next, at->bytes - bytes - sizeof(Header), false};
      at->bytes = bytes;
    }
    at->used = true;
    return at->block();
  }
  return nullptr;
}

void give_back(void* first, void* block, size_t, size_t) noexcept {
  (static_cast<Header*>(block) - 1)->used = false;
  for (auto* at = static_cast<Header*>(first); at != nullptr;) {
    Header* const next = at->next;
    if (at->used || next == nullptr || next->used) {
      at = next;
      continue;
    }
    at->bytes += sizeof(Header) + next->bytes;
    at->next = next->next;
  }
}

}  // namespace

rt_allocator arena_allocator(void* memory, size_t bytes) noexcept {
  const size_t skipped = -reinterpret_cast<uintptr_t>(memory) % kLine;
  const size_t held = (bytes - skipped) / kLine * kLine - sizeof(Header);
  auto* first = new (static_cast<std::byte*>(memory) + skipped) Header{nullptr, held, false};
  return {sizeof(rt_allocator), first, take, give_back};
}

}  // namespace librt
