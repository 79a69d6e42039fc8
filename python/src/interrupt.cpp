#include "python/src/interrupt.h"

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include "python/src/custom.h"
#include "python/src/errors.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

// What the handler needs; it may only use lock-free atomics.
std::atomic<rt_session*> g_session = nullptr;
std::atomic<bool> g_fired = false;
void (*g_before)(int) = nullptr;
void (*g_before_with_info)(int, siginfo_t*, void*) = nullptr;

void on_signal(int number, siginfo_t* info, void* context) {
  g_fired = true;
  if (rt_session* session = g_session) rt_session_cancel(session);
  if (g_before_with_info != nullptr)
    g_before_with_info(number, info, context);
  else if (g_before != nullptr)
    g_before(number);
}

}  // namespace

bool is_main_thread() noexcept {
  static thread_local const bool is_main = getpid() == gettid();
  return is_main;
}

Interrupt::Interrupt(rt_session* session) noexcept : session_(session) {
  if (sigaction(SIGINT, nullptr, &before_) != 0) return;
  const bool with_info = (before_.sa_flags & SA_SIGINFO) != 0;
  if (!with_info && (before_.sa_handler == SIG_DFL || before_.sa_handler == SIG_IGN)) return;
  g_before_with_info = with_info ? before_.sa_sigaction : nullptr;
  g_before = with_info ? nullptr : before_.sa_handler;
  g_fired = false;
  g_session = session;
  struct sigaction action = before_;
  action.sa_flags |= SA_SIGINFO;
  action.sa_sigaction = on_signal;
  installed_ = sigaction(SIGINT, &action, nullptr) == 0;
}

Interrupt::~Interrupt() {
  if (!installed_) return;
  sigaction(SIGINT, &before_, nullptr);
  g_session = nullptr;
  if (g_fired) rt_session_uncancel(session_);  // where the run had already ended
}

void run_released(rt_session* session, bool guarded, rt_status* (*work)(void*), void* argument) {
  take_raised();  // by a run that was only timed
  for (;;) {
    rt_status* status = nullptr;
    bool fired = false;
    {
      const nb::gil_scoped_release released;
      std::optional<Interrupt> interrupt;
      if (guarded && is_main_thread()) {
        interrupt.emplace(session);
        status = work(argument);
        fired = g_fired;
      } else {
        status = work(argument);
      }
    }
    if (const nb::object raised = take_raised(); raised.is_valid() && status != nullptr) {
      if (PyErr_GivenExceptionMatches(raised.ptr(), PyExc_Exception) == 0) {  // KeyboardInterrupt, SystemExit
        rt_status_free(status);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
        throw nb::python_error();
      }
      const Status failed = Status::take(status);
      throw Failure{failed.code(), failed.message(), raised};
    }
    if (!fired || rt_status_code(status) != RT_CANCELLED) return check(status);
    rt_status_free(status);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace rt::python
