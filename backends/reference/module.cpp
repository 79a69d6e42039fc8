// The one symbol of librt_reference.so.
#include "runtime/backend/module.h"

#include "backends/reference/reference.h"
#include "runtime/backend/abi.h"

const librt::BackendModule* rt_backend_module(void) {
  static constexpr librt::BackendModule kModule{sizeof(librt::BackendModule), RT_BACKEND_ABI, "reference",
                                                &librt::reference::probe, &librt::reference::open};
  return &kModule;
}
