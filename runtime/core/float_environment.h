// How a thread's floating point instructions round.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif
#include <cstdint>

namespace librt {

/// While it lives, the calling thread rounds to nearest, keeps subnormal numbers and raises no exceptions, as
/// IEEE 754 has it by default (section 4.3.3, 8.1), whatever the application has set: results depend on a
/// model and its inputs alone.
class DefaultFloatEnvironment {
 public:
#if defined(__SSE2__)
  DefaultFloatEnvironment() noexcept : before_(_mm_getcsr()) {
    constexpr uint32_t kFlags = 0x3f, kDefault = 0x1f80;  // of what was raised; all exceptions masked
    if ((before_ & ~kFlags) == kDefault) return;
    changed_ = true;
    _mm_setcsr(kDefault);
  }
  ~DefaultFloatEnvironment() {
    if (changed_) _mm_setcsr(before_);
  }
#elif defined(__aarch64__)
  DefaultFloatEnvironment() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    if (before_ == 0) return;
    changed_ = true;
    asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~DefaultFloatEnvironment() {
    if (changed_) asm volatile("msr fpcr, %0" : : "r"(before_));
  }
#else
  DefaultFloatEnvironment() noexcept = default;
#endif
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__SSE2__)
  const uint32_t before_;
  bool changed_ = false;
#elif defined(__aarch64__)
  uint64_t before_ = 0;
  bool changed_ = false;
#endif
};

}  // namespace librt
