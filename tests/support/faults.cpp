// libfaults.so: has the Nth call of a kind fail. For LD_PRELOAD, or linked before the C library (faults.h).
//
//   RT_FAULT_CALL=write    which calls: a name of kKinds below
//   RT_FAULT_AT=12         the first one that fails, from 1; 0 or absent: calls are only counted
//   RT_FAULT_TIMES=1       how many fail from there on; 0: all
//   RT_FAULT_ERRNO=EIO     a name of kErrors or a number; `short`: half the bytes are read or written;
//                          `kill`: the process ends there, as by kill -9
//   RT_FAULT_EXCEPT=a:b/c  not the calls of libraries whose file names contain one of these; with /c not
//                          those of their calls that go past the C++ library (malloc, but not `new`)
//   RT_FAULT_LOG=FILE      a line for the first failure, with its frames, and at the end one with counts
//
// Calls count once main() has begun. A call belongs to the first library on the stack that is not the C or
// C++ runtime. Calls of the dynamic linker never count: it ends the process when it has no memory for
// thread-local variables. Not seen is what the C library does inside itself: printf's writes (test those with
// /dev/full), mmap of malloc and of thread stacks.
#include "tests/support/faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum Kind {
  Malloc,
  Mmap,
  Open,
  Read,
  Write,
  Sync,
  Rename,
  Truncate,
  Close,
  Stat,
  Ioctl,
  Lock,
  Unlink,
  Mkdir,
  Thread
};
constexpr struct {
  const char* name;
  int error;
} kKinds[] = {{"malloc", ENOMEM}, {"mmap", ENOMEM}, {"open", EMFILE},   {"read", EIO},  {"write", ENOSPC},
              {"fsync", EIO},     {"rename", EIO},  {"ftruncate", EIO}, {"close", EIO}, {"stat", EIO},
              {"ioctl", EIO},     {"flock", EINTR}, {"unlink", EIO},    {"mkdir", EIO}, {"thread", EAGAIN}};
constexpr struct {
  const char* name;
  int error;
} kErrors[] = {{"ENOMEM", ENOMEM}, {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EINTR", EINTR},
               {"EMFILE", EMFILE}, {"EACCES", EACCES}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS},
               {"ENOENT", ENOENT}, {"EAGAIN", EAGAIN}};
constexpr int kShort = -1, kKill = -2;

int g_kind = -1;
long g_at = 0, g_times = 1;
int g_error = 0;
const char* g_except = nullptr;
const char* g_log = nullptr;
std::atomic<long> g_counted{0}, g_failed{0};
bool g_started = false;  ///< main() has begun: nobody could catch what static objects throw
__thread int t_inside __attribute__((tls_model("initial-exec"))) = 0;

bool contains_one_of(const char* name, const char* list, bool direct = true) {
  while (list != nullptr && *list != '\0') {
    const char* end = strchrnul(list, ':');
    auto length = static_cast<size_t>(end - list);
    const bool only_direct = length > 2 && end[-2] == '/' && end[-1] == 'c';
    if (only_direct) length -= 2;
    if (length > 0 && (direct || !only_direct) && memmem(name, strlen(name), list, length) != nullptr)
      return true;
    list = *end == ':' ? end + 1 : end;
  }
  return false;
}

/// The file that `address` belongs to; empty for the program itself.
const char* file_of(void* address, uintptr_t* start) {
  dl_find_object found;
  if (_dl_find_object(address, &found) != 0) return "?";
  if (start != nullptr) *start = found.dlfo_link_map->l_addr;
  return found.dlfo_link_map->l_name;
}

/// The caller, and all frames when they are asked for.
struct Walk {
  void* frames[24];
  int count = 0;
  const char* caller = nullptr;
  bool direct = true;  ///< not through the C++ library
  bool whole;
};
_Unwind_Reason_Code step(_Unwind_Context* context, void* to) {
  auto& walk = *static_cast<Walk*>(to);
  void* address = reinterpret_cast<void*>(_Unwind_GetIP(context));
  if (address == nullptr) return _URC_END_OF_STACK;
  if (walk.count < 24) walk.frames[walk.count++] = address;
  if (walk.caller == nullptr) {
    const char* name = file_of(address, nullptr);
    if (contains_one_of(name, "libstdc++"))
      walk.direct = false;
    else if (!contains_one_of(name, "libfaults.so:libc.so:libc-:libgcc_s:libm.so:libm-:libpthread"))
      walk.caller = name;
  }
  return walk.caller != nullptr && !walk.whole ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void log_text(const char* text, size_t size) {
  if (g_log == nullptr) return;
  const long file = syscall(SYS_openat, AT_FDCWD, g_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return;
  syscall(SYS_write, file, text, size);
  syscall(SYS_close, file);
}

void log_failure(long number, const Walk& walk) {
  char line[4096];
  int size = snprintf(line, sizeof line, "fault %s %ld:", kKinds[g_kind].name, number);
  for (int i = 0; i < walk.count && size < 3800; ++i) {
    uintptr_t start = 0;
    const char* name = file_of(walk.frames[i], &start);
    const char* slash = strrchr(name, '/');
    size += snprintf(line + size, sizeof line - static_cast<size_t>(size), " %.80s+0x%lx",
                     *name == '\0'      ? "program"
                     : slash != nullptr ? slash + 1
                                        : name,
                     static_cast<unsigned long>(reinterpret_cast<uintptr_t>(walk.frames[i]) - start - 1));
  }
  line[size++] = '\n';
  log_text(line, static_cast<size_t>(size));
}

/// Whether this call fails, and with what: 0, an errno value or kShort.
int fault(Kind kind) {
  if (g_kind != kind || t_inside != 0 || !g_started) return 0;
  ++t_inside;
  const int saved = errno;
  Walk walk;
  walk.whole = false;
  _Unwind_Backtrace(step, &walk);
  int error = 0;
  if (walk.caller == nullptr || !(contains_one_of(walk.caller, "ld-linux:ld.so") ||
                                  contains_one_of(walk.caller, g_except, walk.direct))) {
    const long number = ++g_counted;
    if (g_at > 0 && number >= g_at && (g_times == 0 || number < g_at + g_times)) {
      error = g_error != 0 ? g_error : kKinds[kind].error;
      if (g_failed++ == 0) {
        Walk all;
        all.whole = true;
        _Unwind_Backtrace(step, &all);
        log_failure(number, all);
      }
      if (error == kKill) syscall(SYS_kill, getpid(), SIGKILL);
    }
  }
  errno = saved;
  --t_inside;
  return error;
}

/// For calls of streams, which the C library neither cuts short nor has interrupted on files.
int stream_fault(Kind kind) {
  return g_error == kShort || g_error == EINTR ? 0 : fault(kind);
}

/// The next definition of a function.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int parse_error(const char* name) {
  if (name == nullptr || *name == '\0') return 0;
  if (strcmp(name, "short") == 0) return kShort;
  if (strcmp(name, "kill") == 0) return kKill;
  for (const auto& error : kErrors)
    if (strcmp(name, error.name) == 0) return error.error;
  const long number = strtol(name, nullptr, 10);
  if (number <= 0) {
    dprintf(2, "faults: RT_FAULT_ERRNO is '%s', which is no error it knows\n", name);
    _exit(127);
  }
  return static_cast<int>(number);
}

__attribute__((constructor)) void read_environment() {
  g_except = getenv("RT_FAULT_EXCEPT");
  g_log = getenv("RT_FAULT_LOG");
  const char* call = getenv("RT_FAULT_CALL");
  if (call == nullptr) return;
  const char* at = getenv("RT_FAULT_AT");
  const char* times = getenv("RT_FAULT_TIMES");
  rt_faults_start(call, at != nullptr ? strtol(at, nullptr, 10) : 0,
                  times != nullptr ? strtol(times, nullptr, 10) : 1, parse_error(getenv("RT_FAULT_ERRNO")));
}

__attribute__((destructor)) void report() {
  if (g_kind < 0 || g_log == nullptr) return;
  char line[200];
  const int size = snprintf(line, sizeof line, "calls %s %ld failed %ld\n", kKinds[g_kind].name,
                            g_counted.load(), g_failed.load());
  log_text(line, static_cast<size_t>(size));
}

/// Returns -1 from the enclosing function when the call fails.
#define RT_FAULT_OR_GO_ON(kind)                   \
  if (const int error = fault(kind); error > 0) { \
    errno = error;                                \
    return -1;                                    \
  }
/// The same for reads and writes of `size` bytes, of which a short one does half.
#define RT_FAULT_OR_SHORT(kind, size)             \
  if (const int error = fault(kind); error > 0) { \
    errno = error;                                \
    return -1;                                    \
  } else if (error == kShort && (size) > 1) {     \
    (size) /= 2;                                  \
  }

int (*g_main)(int, char**, char**) = nullptr;
int started_main(int count, char** arguments, char** environment) {
  g_started = true;
  return g_main(count, arguments, environment);
}

void* no_memory() {
  errno = ENOMEM;
  return nullptr;
}

/// As the C library marks a stream after an error.
void mark_failed(FILE* stream, int error) {
  stream->_flags |= 0x20;
  errno = error;
}

}  // namespace

extern "C" {

void rt_faults_start(const char* call, long at, long times, int error) {
  int found = -1;
  for (int i = 0; i < static_cast<int>(sizeof kKinds / sizeof *kKinds); ++i)
    if (strcmp(call, kKinds[i].name) == 0) found = i;
  if (found < 0) {
    dprintf(2, "faults: '%s' is no call that can fail\n", call);
    _exit(127);
  }
  g_at = at;
  g_times = times;
  g_error = error;
  g_counted = 0;
  g_failed = 0;
  g_kind = found;
}
void rt_faults_stop(void) {
  g_kind = -1;
}
long rt_faults_counted(void) {
  return g_counted;
}
long rt_faults_failed(void) {
  return g_failed;
}

/// What calls main().
int __libc_start_main(int (*main)(int, char**, char**), int count, char** arguments,
                      int (*begin)(int, char**, char**), void (*end)(), void (*linker_end)(),
                      void* stack_end) {
  g_main = main;
  return next<decltype(__libc_start_main)>("__libc_start_main")(started_main, count, arguments, begin, end,
                                                                linker_end, stack_end);
}

// --- memory

void* malloc(size_t size) noexcept {
  return fault(Malloc) != 0 ? no_memory() : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  return fault(Malloc) != 0 ? no_memory() : __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  return size != 0 && fault(Malloc) != 0 ? no_memory() : __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) noexcept {
  return fault(Malloc) != 0 ? no_memory() : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return fault(Malloc) != 0 ? no_memory() : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  if (fault(Malloc) != 0) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory != nullptr ? 0 : ENOMEM;
}
void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if (const int error = fault(Mmap); error > 0) {
    errno = error;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}
void* mmap64(void* address, size_t size, int protection, int flags, int file, off64_t offset) noexcept {
  return mmap(address, size, protection, flags, file, offset);
}

// --- files

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}
int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  RT_FAULT_OR_GO_ON(Open)
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  RT_FAULT_OR_GO_ON(Open)
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
// What -D_FORTIFY_SOURCE makes of open().
int __open_2(const char* path, int flags) {
  return open(path, flags);
}
int __open64_2(const char* path, int flags) {
  return open(path, flags);
}
FILE* fopen(const char* path, const char* mode) {
  if (const int error = fault(Open); error > 0) {
    errno = error;
    return nullptr;
  }
  static auto* const real = next<FILE*(const char*, const char*)>("fopen");
  return real(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}
DIR* opendir(const char* path) {
  if (const int error = fault(Open); error > 0) {
    errno = error;
    return nullptr;
  }
  static auto* const real = next<DIR*(const char*)>("opendir");
  return real(path);
}

ssize_t read(int file, void* bytes, size_t size) {
  RT_FAULT_OR_SHORT(Read, size)
  return syscall(SYS_read, file, bytes, size);
}
ssize_t __read_chk(int file, void* bytes, size_t size, size_t) {
  return read(file, bytes, size);
}
ssize_t pread(int file, void* bytes, size_t size, off_t offset) {
  RT_FAULT_OR_SHORT(Read, size)
  return syscall(SYS_pread64, file, bytes, size, offset);
}
ssize_t pread64(int file, void* bytes, size_t size, off64_t offset) {
  return pread(file, bytes, size, offset);
}
size_t fread(void* bytes, size_t size, size_t count, FILE* stream) {
  if (const int error = stream_fault(Read); error > 0) {
    mark_failed(stream, error);
    return 0;
  }
  static auto* const real = next<size_t(void*, size_t, size_t, FILE*)>("fread");
  return real(bytes, size, count, stream);
}

ssize_t write(int file, const void* bytes, size_t size) {
  RT_FAULT_OR_SHORT(Write, size)
  return syscall(SYS_write, file, bytes, size);
}
ssize_t writev(int file, const struct iovec* parts, int count) {
  if (const int error = fault(Write); error > 0) {
    errno = error;
    return -1;
  } else if (error == kShort && count > 0) {
    return syscall(SYS_write, file, parts[0].iov_base, (parts[0].iov_len + 1) / 2);
  }
  return syscall(SYS_writev, file, parts, count);
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  RT_FAULT_OR_SHORT(Write, size)
  return syscall(SYS_pwrite64, file, bytes, size, offset);
}
ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) {
  return pwrite(file, bytes, size, offset);
}
size_t fwrite(const void* bytes, size_t size, size_t count, FILE* stream) {
  if (const int error = stream_fault(Write); error > 0) {
    mark_failed(stream, error);
    return 0;
  }
  static auto* const real = next<size_t(const void*, size_t, size_t, FILE*)>("fwrite");
  return real(bytes, size, count, stream);
}
int fflush(FILE* stream) {
  if (const int error = stream_fault(Write); error > 0) {
    if (stream != nullptr) mark_failed(stream, error);
    errno = error;
    return EOF;
  }
  static auto* const real = next<int(FILE*)>("fflush");
  return real(stream);
}

int fsync(int file) {
  RT_FAULT_OR_GO_ON(Sync)
  return static_cast<int>(syscall(SYS_fsync, file));
}
int fdatasync(int file) {
  RT_FAULT_OR_GO_ON(Sync)
  return static_cast<int>(syscall(SYS_fdatasync, file));
}
int rename(const char* from, const char* to) noexcept {
  RT_FAULT_OR_GO_ON(Rename)
  return static_cast<int>(syscall(SYS_rename, from, to));
}
int ftruncate(int file, off_t size) noexcept {
  RT_FAULT_OR_GO_ON(Truncate)
  return static_cast<int>(syscall(SYS_ftruncate, file, size));
}
int ftruncate64(int file, off64_t size) noexcept {
  return ftruncate(file, size);
}
/// The file is closed, as Linux does.
int close(int file) {
  const int error = fault(Close);
  const int status = static_cast<int>(syscall(SYS_close, file));
  if (error <= 0) return status;
  errno = error;
  return -1;
}
int fclose(FILE* stream) {
  const int error = fault(Close);
  static auto* const real = next<int(FILE*)>("fclose");
  const int status = real(stream);
  if (error <= 0) return status;
  errno = error;
  return EOF;
}
int stat(const char* path, struct stat* info) noexcept {
  RT_FAULT_OR_GO_ON(Stat)
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, info, 0));
}
int lstat(const char* path, struct stat* info) noexcept {
  RT_FAULT_OR_GO_ON(Stat)
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW));
}
int fstat(int file, struct stat* info) noexcept {
  RT_FAULT_OR_GO_ON(Stat)
  return static_cast<int>(syscall(SYS_fstat, file, info));
}
int stat64(const char* path, struct stat64* info) noexcept {
  return stat(path, reinterpret_cast<struct stat*>(info));
}
int lstat64(const char* path, struct stat64* info) noexcept {
  return lstat(path, reinterpret_cast<struct stat*>(info));
}
int fstat64(int file, struct stat64* info) noexcept {
  return fstat(file, reinterpret_cast<struct stat*>(info));
}
int ioctl(int file, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  RT_FAULT_OR_GO_ON(Ioctl)
  return static_cast<int>(syscall(SYS_ioctl, file, request, argument));
}
int flock(int file, int operation) noexcept {
  RT_FAULT_OR_GO_ON(Lock)
  return static_cast<int>(syscall(SYS_flock, file, operation));
}
int unlink(const char* path) noexcept {
  RT_FAULT_OR_GO_ON(Unlink)
  return static_cast<int>(syscall(SYS_unlink, path));
}
int mkdir(const char* path, mode_t mode) noexcept {
  RT_FAULT_OR_GO_ON(Mkdir)
  return static_cast<int>(syscall(SYS_mkdir, path, mode));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
  if (const int error = fault(Thread); error > 0) return error;
  static auto* const real =
      next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return real(thread, attributes, function, argument);
}

}  // extern "C"
