// Status and Result: librt's error reporting.
//
// Knows: error codes, messages, how to add context. Must not know: graphs, devices, files.
//
// A message reads "where: what was expected, what was found; what to do". No exception crosses a module
// boundary in librt; the C API turns a Status into rt_status.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/core/text.h"

namespace librt {

/// The kind of error. The values are part of the C ABI (rt_code in rt/rt.h): append only.
enum class Code : uint8_t {
  Ok = 0,
  InvalidArgument = 1,  ///< the caller's mistake: a wrong shape, name, option
  InvalidModel = 2,     ///< a file that is damaged, hostile or inconsistent
  Unsupported = 3,      ///< a valid request that this build, backend or device cannot do
  NotFound = 4,         ///< no such file, entry, value
  OutOfMemory = 5,      ///< an allocation failed or a memory limit would be exceeded
  Device = 6,           ///< no such backend or device here, an error of its driver or of a disk
  Io = 7,               ///< reading or writing a file failed
  Internal = 8,         ///< a bug in librt
  Cancelled = 9,        ///< the run was cancelled from another thread
  LimitExceeded = 10,   ///< the run reached a limit on its work: iterations of loops, time
  DeviceLost = 11,      ///< the device stopped working, and what was in its memory is lost
};

/// The code's name as it appears in messages, for example "invalid model".
std::string_view code_name(Code code) noexcept;

/// Success, or a code with a message. One pointer, null for success: nearly every call's status is checked
/// and propagated, so this cost dominates librt's code size.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  /// If the message cannot be allocated, the status is Code::OutOfMemory.
  Status(Code code, std::string_view message) noexcept;
  Status(const Status& other) noexcept : failure_(other.ok() ? nullptr : copy_of(*other.failure_)) {}
  [[gnu::always_inline]] Status(Status&& other) noexcept : failure_(std::exchange(other.failure_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(failure_, other.failure_);
    return *this;
  }
  /// Inlined: the compiler nearly always knows whether failure_ is null; where it does not, this is checked
  /// at run time.
  [[gnu::always_inline]] ~Status() {
    if (!__builtin_constant_p(failure_ == nullptr) || failure_ != nullptr) release(failure_);
  }

  /// Builds the message from parts: Status::make(Code::Io, "cannot read ", path).
  template <class... Parts>
  [[gnu::always_inline]] static Status make(Code code, const Parts&... parts) noexcept {
    return failure(code, text_detail::kLetters<text_detail::Decayed<Parts>...>, text_detail::lower(parts)...);
  }
  /// The same with a code known at compile time.
  template <Code kCode, class... Parts>
  [[gnu::always_inline]] static Status make(const Parts&... parts) noexcept {
    return failure(kCodeAndLetters<kCode, text_detail::Decayed<Parts>...>, text_detail::lower(parts)...);
  }

  bool ok() const noexcept { return failure_ == nullptr; }
  explicit operator bool() const noexcept { return ok(); }
  Code code() const noexcept { return ok() ? Code::Ok : failure_->code; }
  const std::string& message() const noexcept;

  /// The same error prefixed with "where: ", whose parts are formatted only on failure; an ok status is
  /// unchanged.
  template <class... Parts>
  [[gnu::always_inline]] Status in(const Parts&... where) && noexcept {
    prefix(text_detail::kLetters<text_detail::Decayed<Parts>...>, text_detail::lower(where)...);
    return std::move(*this);
  }

 private:
  struct Failure {
    Code code;
    bool is_static;  ///< not to be deleted
    std::string message;
  };

  /// See text_detail::join. Nothing here throws, so that callers need no unwinding code.
  static Status failure(Code code, const char* letters, ...) noexcept;
  /// The code as the first letter: one argument fewer at each of hundreds of calls.
  template <Code kCode, class... Parts>
  static constexpr char kCodeAndLetters[] = {static_cast<char>(kCode), text_detail::letter<Parts>()..., '\0'};
  static Status failure(const char* code_and_letters, ...) noexcept;
  void prefix(const char* letters, ...) noexcept;
  static Failure* format_failure(Code code, const char* letters, va_list arguments,
                                 const Failure* inner) noexcept;
  static Failure* no_memory() noexcept;
  static Failure* make_failure(Code code, std::string_view message) noexcept;
  static Failure* copy_of(const Failure& failure) noexcept;
  static void release(Failure* failure) noexcept;

  Failure* failure_ = nullptr;
};

template <class... Parts>
[[gnu::always_inline]] inline Status invalid_argument(const Parts&... parts) noexcept {
  return Status::make<Code::InvalidArgument>(parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status invalid_model(const Parts&... parts) noexcept {
  return Status::make<Code::InvalidModel>(parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status unsupported(const Parts&... parts) noexcept {
  return Status::make<Code::Unsupported>(parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status internal_error(const Parts&... parts) noexcept {
  return Status::make<Code::Internal>(parts...);
}

/// A value, or the Status that explains why there is none. The Status is a separate member, so that
/// propagating it is the same code for every T.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) noexcept : ok_(true), value_(std::move(value)) {}           // NOLINT: implicit on purpose
  Result(Status status) noexcept : status_(std::move(status)), ok_(false) {}  // NOLINT
  Result(Result&& other) noexcept : status_(std::move(other.status_)), ok_(other.ok_) {
    if (ok_) std::construct_at(&value_, std::move(other.value_));
  }
  Result& operator=(Result&& other) noexcept {
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));  // NOLINT(misc-unconventional-assign-operator)
  }
  [[gnu::always_inline]] ~Result() {
    if constexpr (!std::is_trivially_destructible_v<T>)
      if (ok_) value_.~T();
  }

  bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok(); }
  /// Only when ok().
  T& value() & noexcept { return value_; }
  const T& value() const& noexcept { return value_; }
  T&& value() && noexcept { return std::move(value_); }
  T* operator->() noexcept { return &value_; }
  const T* operator->() const noexcept { return &value_; }
  T& operator*() & noexcept { return value_; }
  const T& operator*() const& noexcept { return value_; }

  /// Ok when there is a value.
  const Status& status() const& noexcept { return status_; }
  Status status() && noexcept { return std::move(status_); }

 private:
  Status status_;
  bool ok_;
  union {
    T value_;
  };
};

}  // namespace librt

/// Returns the Status from the enclosing function unless it is ok.
#define RT_TRY(expression)                                                                       \
  do {                                                                                           \
    if (::librt::Status rt_try_status = (expression); !rt_try_status.ok()) return rt_try_status; \
  } while (0)

#define RT_CONCAT_INNER(a, b) a##b
#define RT_CONCAT(a, b) RT_CONCAT_INNER(a, b)

/// RT_ASSIGN(auto x, f()): x is the value of the Result, or the function returns its Status.
#define RT_ASSIGN(declaration, expression) \
  RT_ASSIGN_INNER(RT_CONCAT(rt_result_, __LINE__), declaration, expression)
#define RT_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                            \
  if (!result.ok()) return std::move(result).status();   \
  declaration = std::move(result).value()
