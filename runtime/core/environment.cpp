#include "runtime/core/environment.h"

#include <cstdlib>

namespace librt {

const char* environment(const char* name) noexcept {
  return secure_getenv(name);
}

}  // namespace librt
