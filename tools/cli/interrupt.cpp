#include "tools/cli/interrupt.h"

#include <cstdio>

namespace librt::tools {

namespace {

void (*g_cancel)(void*) = nullptr;
void* g_target = nullptr;
volatile std::sig_atomic_t g_caught = 0;

void on_signal(int) {
  g_caught = 1;
  g_cancel(g_target);
}

}  // namespace

Interrupt::Interrupt(void (*cancel)(void*), void* target) {
  g_cancel = cancel;
  g_target = target;
  g_caught = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  if (sigaction(SIGINT, nullptr, &before_) != 0 || before_.sa_handler == SIG_IGN) return;  // as nohup asks
  installed_ = sigaction(SIGINT, &action, nullptr) == 0;
}

Interrupt::~Interrupt() {
  if (!installed_) return;
  sigaction(SIGINT, &before_, nullptr);
  if (g_caught == 0) return;
  std::fflush(stdout);
  std::raise(SIGINT);
}

void Interrupt::answer() noexcept {
  g_caught = 0;
}

}  // namespace librt::tools
