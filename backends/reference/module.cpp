// The one symbol of librt_reference.so.
#include "runtime/backend/module.h"

#include "backends/reference/reference.h"
#include "runtime/backend/abi.h"

const rt::BackendModule* rt_backend_module(void) {
  static constexpr rt::BackendModule kModule{sizeof(rt::BackendModule), RT_BACKEND_ABI, "reference",
                                             &rt::reference::probe, &rt::reference::open};
  return &kModule;
}
