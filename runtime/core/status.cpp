#include "runtime/core/status.h"
#include "runtime/core/exception.h"

#include <new>

namespace librt {

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
    case Code::Cancelled: return "cancelled";
    case Code::LimitExceeded: return "limit exceeded";
    case Code::DeviceLost: return "device lost";
  }
  return "unknown code";
}

Status::Failure* Status::no_memory() noexcept {
  static Failure failure{Code::OutOfMemory, true, "out of memory"};  // short: the string allocates nothing
  return &failure;
}

Status::Failure* Status::make_failure(Code code, std::string_view message) noexcept {
  RT_ATTEMPT {
    return new Failure{code, false, std::string(message)};
  }
  RT_CAUGHT {
    return no_memory();
  }
}

Status::Failure* Status::copy_of(const Failure& failure) noexcept {
  return make_failure(failure.code, failure.message);
}

Status::Failure* Status::format_failure(Code code, const char* letters, va_list arguments,
                                        const Failure* inner) noexcept {
  RT_ATTEMPT {
    std::string message;
    text_detail::append_parts(message, letters, arguments);
    if (inner != nullptr) append(message, ": ", inner->message);
    return new Failure{code, false, std::move(message)};
  }
  RT_CAUGHT {
    return no_memory();
  }
}

void Status::release(Failure* failure) noexcept {
  if (failure != nullptr && !failure->is_static) delete failure;
}

Status::Status(Code code, std::string_view message) noexcept
    : failure_(code == Code::Ok ? nullptr : make_failure(code, message)) {}

const std::string& Status::message() const noexcept {
  static const std::string none;
  return ok() ? none : failure_->message;
}

Status Status::failure(Code code, const char* letters, ...) noexcept {
  Status status;
  va_list arguments;
  va_start(arguments, letters);
  status.failure_ = format_failure(code, letters, arguments, nullptr);
  va_end(arguments);
  return status;
}

Status Status::failure(const char* code_and_letters, ...) noexcept {
  Status status;
  va_list arguments;
  va_start(arguments, code_and_letters);
  status.failure_ =
      format_failure(static_cast<Code>(*code_and_letters), code_and_letters + 1, arguments, nullptr);
  va_end(arguments);
  return status;
}

void Status::prefix(const char* letters, ...) noexcept {
  if (ok()) return;
  const Status inner = std::move(*this);
  va_list arguments;
  va_start(arguments, letters);
  failure_ = format_failure(inner.code(), letters, arguments, inner.failure_);
  va_end(arguments);
}

}  // namespace librt
