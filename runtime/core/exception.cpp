#include "runtime/core/exception.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

namespace librt {

Status caught_exception(const char* doing) noexcept {
#if defined(__cpp_exceptions)
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status::make(Code::OutOfMemory, doing, ": no memory");
  } catch (const std::exception& error) {
    return Status::make(Code::Internal, doing, ": ", error.what());
  } catch (...) {
  }
#endif
  return Status::make(Code::Internal, doing, ": an unknown exception");
}

void end_program(const char* message) noexcept {
  std::fprintf(stderr, "librt: %s\n", message);
  std::abort();
}

}  // namespace librt
