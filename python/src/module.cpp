// The module librt._native: what librt/__init__.py shows, over the public API of librt alone.
#include <nanobind/nanobind.h>

#include "python/src/device_arrays.h"
#include "python/src/errors.h"
#include "python/src/session.h"

NB_MODULE(_native, module) {
  using namespace rt::python;
  module.doc() = "The compiled part of librt.";
  module.attr("__version__") = rt_version();
  translate_failures();
  count_forks();
  bind_tensor(module);
  bind_device_arrays(module);
  bind_model(module);
  bind_devices(module);
  bind_custom_operators(module);
  bind_session(module);
  bind_trainer(module);
  bind_metrics(module);
}
