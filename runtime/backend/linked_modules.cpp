// No module is linked into librt.so, nor into programs of the build tree. A static librt.a has the list that
// cmake/Static.cmake writes.
#include "runtime/backend/loader.h"

namespace librt {

std::span<const BackendModule* const> linked_modules() noexcept {
  return {};
}

}  // namespace librt
