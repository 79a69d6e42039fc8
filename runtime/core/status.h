// Status and Result: how everything in librt that can fail says so.
//
// Knows: error codes, messages, how to add context. Must not know: graphs, devices, files.
//
// A message reads "where: what was expected, what was found; what to do". Nothing in librt throws across a
// room's edge; the C API turns a Status into rt_status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "runtime/core/text.h"

namespace rt {

/// What kind of thing went wrong. The values are part of the C ABI (rt_code in rt/rt.h): append only.
enum class Code : uint8_t {
  Ok = 0,
  InvalidArgument = 1,  ///< the caller's mistake: a wrong shape, name, option
  InvalidModel = 2,     ///< a file that is damaged, hostile or inconsistent
  Unsupported = 3,      ///< a valid request that this build, backend or device cannot do
  NotFound = 4,         ///< no such file, device, entry, value
  OutOfMemory = 5,      ///< an allocation failed or a memory limit would be exceeded
  Device = 6,           ///< the driver or device reported an error
  Io = 7,               ///< reading or writing a file failed
  Internal = 8,         ///< our own mistake
};

/// The code's name as it stands in messages, for example "invalid model".
std::string_view code_name(Code code) noexcept;

/// Success, or a code with a message. Cheap to return when ok.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(Code code, std::string message) noexcept : code_(code), message_(std::move(message)) {}

  /// Builds the message from parts: Status::make(Code::Io, "cannot read ", path).
  template <class... Parts>
  [[gnu::always_inline]] static Status make(Code code, const Parts&... parts) {
    return failure(code, text_detail::kLetters<text_detail::Decayed<Parts>...>, text_detail::lower(parts)...);
  }

  bool ok() const noexcept { return code_ == Code::Ok; }
  explicit operator bool() const noexcept { return ok(); }
  Code code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

  /// The same error with "where: " in front; an ok status stays as it is.
  Status in(std::string_view where) &&;

 private:
  /// See text_detail::join.
  static Status failure(Code code, const char* letters, ...);

  Code code_ = Code::Ok;
  std::string message_;
};

template <class... Parts>
[[gnu::always_inline]] inline Status invalid_argument(const Parts&... parts) {
  return Status::make(Code::InvalidArgument, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status invalid_model(const Parts&... parts) {
  return Status::make(Code::InvalidModel, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status unsupported(const Parts&... parts) {
  return Status::make(Code::Unsupported, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status internal_error(const Parts&... parts) {
  return Status::make(Code::Internal, parts...);
}

/// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}         // NOLINT: implicit on purpose
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {}  // NOLINT

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  /// Only when ok().
  T& value() & noexcept { return *std::get_if<0>(&state_); }
  const T& value() const& noexcept { return *std::get_if<0>(&state_); }
  T&& value() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }

  /// Ok when there is a value.
  Status status() const& { return ok() ? Status() : *std::get_if<1>(&state_); }
  Status status() && { return ok() ? Status() : std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace rt

/// Returns the Status from the enclosing function unless it is ok.
#define RT_TRY(expression)                                                                    \
  do {                                                                                        \
    if (::rt::Status rt_try_status = (expression); !rt_try_status.ok()) return rt_try_status; \
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
