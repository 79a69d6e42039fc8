// The one symbol of librt_cpu.so. Apart from everything else, so that tests can link several backends.
#include "runtime/backend/module.h"

#include "backends/cpu/device/open.h"
#include "runtime/backend/abi.h"

const librt::BackendModule* rt_backend_module(void) {
  static constexpr librt::BackendModule kModule{sizeof(librt::BackendModule), RT_BACKEND_ABI, "cpu",
                                                &librt::cpu::probe, &librt::cpu::open};
  return &kModule;
}
