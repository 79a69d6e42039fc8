// From an exception to a Status, for functions that let none out; and builds without exceptions.
//
// Knows: std::bad_alloc and std::exception. Must not know: who throws.
#pragma once

#include "runtime/core/status.h"

/// try, catch (...), throw of an exception, and throw of the one that was caught. A build with
/// -fno-exceptions (RT_EXCEPTIONS=OFF) has none of them: there an allocation that fails, and RT_THROW, end
/// the program.
#if defined(__cpp_exceptions)
#define RT_ATTEMPT try
#define RT_CAUGHT catch (...)
#define RT_THROW(exception) throw exception
#define RT_RETHROW throw
#else
#define RT_ATTEMPT if (true)
#define RT_CAUGHT else
#define RT_THROW(exception) ::librt::end_program((exception).what())
#define RT_RETHROW ::librt::end_program("an exception")
#endif

namespace librt {

/// In a catch block only: what was thrown, as Code::OutOfMemory or Code::Internal. `doing`: "creating a
/// kernel".
Status caught_exception(const char* doing) noexcept;
/// Writes the message to stderr and aborts.
[[noreturn]] void end_program(const char* message) noexcept;

}  // namespace librt
