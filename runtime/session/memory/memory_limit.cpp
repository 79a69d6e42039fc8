#include "runtime/session/memory/memory_limit.h"

#include "runtime/core/byte_count.h"

namespace librt {

Status MemoryLimit::check(uint64_t held, uint64_t more) const noexcept {
  if (more <= left(held)) return {};
  return Status::make(Code::OutOfMemory, "needs ", bytes_text(more), " (", more, " bytes) beside the ",
                      bytes_text(held), " that the session holds, the memory limit is ", bytes_text(limit_),
                      "; use smaller shapes or a higher limit");
}

Status MemoryLimit::check_machine(uint64_t bytes, uint64_t memory) noexcept {
  RT_TRY(check_addressable(bytes));
  constexpr uint64_t kAddressable = uint64_t{1} << 47;
  if (memory == 0) memory = kAddressable;
  if (bytes <= memory) return {};
  return Status::make(Code::OutOfMemory, "needs ", bytes_text(bytes), " (", bytes,
                      " bytes), the machine has ", bytes_text(memory), "; use smaller shapes");
}

}  // namespace librt
