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

Status Status::in(std::string_view where) && {
  if (!ok()) message_.insert(0, text(where, ": "));
  return std::move(*this);
}

Status Status::failure(Code code, const char* letters, ...) {
  Status status;
  status.code_ = code;
  va_list arguments;
  va_start(arguments, letters);
  text_detail::append_parts(status.message_, letters, arguments);
  va_end(arguments);
  return status;
}

}  // namespace rt
