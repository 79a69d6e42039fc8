#include "runtime/core/exception.h"

#include <exception>
#include <new>

namespace librt {

Status caught_exception(const char* doing) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status::make(Code::OutOfMemory, doing, ": no memory");
  } catch (const std::exception& error) {
    return Status::make(Code::Internal, doing, ": ", error.what());
  } catch (...) {
    return Status::make(Code::Internal, doing, ": an unknown exception");
  }
}

}  // namespace librt
