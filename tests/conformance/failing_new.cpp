#include "tests/conformance/failing_new.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <string_view>

namespace librt::test {
namespace {
thread_local long t_countdown = -1;
thread_local bool t_armed = false;

/// Whether oneDNN is executing a primitive, as packing weights does: it allocates in OpenMP regions there,
/// which no exception can leave, so a failure would end the process.
bool executes_primitive() {
  t_armed = false;
  void* frames[64];
  bool found = false;
  for (void* frame : std::span(frames, static_cast<size_t>(backtrace(frames, 64)))) {
    Dl_info info{};
    found = found || (dladdr(frame, &info) != 0 && info.dli_sname != nullptr &&
                      std::string_view(info.dli_sname) == "dnnl_primitive_execute");
  }
  t_armed = true;
  return found;
}
}  // namespace

FailingNew::FailingNew(long countdown) {
  t_countdown = countdown;
  t_armed = true;
}
FailingNew::~FailingNew() {
  t_armed = false;
}
void FailingNew::disarm() {
  t_armed = false;
}
bool FailingNew::failed() const {
  return t_countdown < 0;
}

// Null when the allocation is to fail or memory is exhausted.
static void* allocate(size_t size, size_t alignment) noexcept {
  if (t_armed && t_countdown >= 0 && (t_countdown > 0 || !executes_primitive()) && t_countdown-- == 0)
    return nullptr;
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void* allocate_or_throw(size_t size, size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace librt::test

using librt::test::allocate;
using librt::test::allocate_or_throw;

// Backend modules use these too: the program exports its symbols.
void* operator new(size_t size) {
  return allocate_or_throw(size, 0);
}
void* operator new[](size_t size) {
  return allocate_or_throw(size, 0);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
