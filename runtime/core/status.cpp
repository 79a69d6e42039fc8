#include "runtime/core/status.h"

namespace rt {

std::string_view code_name(Code code) noexcept {
  switch (code) {
    case Code::Ok: return "ok";
    case Code::InvalidArgument: return "invalid argument";
    case Code::InvalidModel: return "invalid model";
    case Code::Unsupported: return "unsupported";
    case Code::NotFound: return "not found";
    case Code::OutOfMemory: return "out of memory";
    case Code::Device: return "device error";
    case Code::Io: return "input/output error";
    case Code::Internal: return "internal error";
  }
  return "unknown code";
}

}  // namespace rt
