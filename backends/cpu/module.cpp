// The one symbol of librt_cpu.so. Apart from everything else, so that tests can link several backends.
#include "runtime/backend/module.h"

#include "backends/cpu/open.h"
#include "runtime/backend/abi.h"

const rt::BackendModule* rt_backend_module(void) {
  static constexpr rt::BackendModule kModule{sizeof(rt::BackendModule), RT_BACKEND_ABI, "cpu",
                                             &rt::cpu::probe, &rt::cpu::open};
  return &kModule;
}
