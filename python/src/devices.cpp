// librt.devices(), librt.backends().
#include <nanobind/stl/string.h>

#include "python/src/cpu_module.h"
#include "python/src/errors.h"
#include "python/src/model.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

Devices list() {
  load_cpu_module();
  Result<Devices> all = Status();
  {
    const nb::gil_scoped_release released;
    all = Devices::list();
  }
  if (!all) check(all.status());
  return *std::move(all);
}

const char* type_name(rt_device_type type) noexcept {
  static constexpr const char* kNames[] = {"cpu", "integrated_gpu", "discrete_gpu", "virtual_gpu",
                                           "software_gpu"};
  return kNames[type];
}

}  // namespace

void bind_devices(nb::module_& module) {
  nb::class_<DeviceInfo>(module, "Device", "A device of this machine.")
      .def_ro("backend", &DeviceInfo::backend, "'cpu', 'vulkan', 'cuda' or 'reference'.")
      .def_ro("index", &DeviceInfo::index, "Position among the backend's devices.")
      .def_prop_ro(
          "type", [](const DeviceInfo& self) { return type_name(self.type); },
          "'cpu', 'integrated_gpu', 'discrete_gpu', 'virtual_gpu' or 'software_gpu'.")
      .def_ro("name", &DeviceInfo::name, "The model of the CPU or GPU.")
      .def_ro("uuid", &DeviceInfo::uuid, "'' if there is none.")
      .def_ro("driver", &DeviceInfo::driver, "Driver or library that runs it, with its version.")
      .def_ro("features", &DeviceInfo::features, "Separated by spaces.")
      .def_ro("memory_bytes", &DeviceInfo::memory_bytes, "Size of its memory, in bytes.")
      .def_ro("threads", &DeviceInfo::threads, "Of a CPU: the number of threads.")
      .def("__repr__", [](const DeviceInfo& self) {
        return "librt.Device(" + self.backend + " " + std::to_string(self.index) + ": " + self.name + ")";
      });
  module.def(
      "devices",
      [] {
        nb::list all;
        for (const DeviceInfo& device : list().devices) all.append(nb::cast(device));
        return all;
      },
      nb::sig("def devices() -> list[Device]"), "The devices that sessions can run on here.");
  module.def(
      "backends",
      [] {
        nb::dict all;
        for (const Devices::Backend& backend : list().backends) all[backend.name.c_str()] = backend.reason;
        return all;
      },
      nb::sig("def backends() -> dict[str, str]"),
      "For each backend '' if it has a device, else the reason why it has none.");
}

}  // namespace rt::python
