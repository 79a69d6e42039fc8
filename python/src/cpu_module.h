// The CPU backend's module in a process that has an OpenMP runtime.
//
// Knows: the dynamic linker. Must not know: sessions.
#pragma once

namespace rt::python {

/// PyTorch and others load an OpenMP runtime for the whole process. oneDNN would run its parallel regions on
/// it, and it waits for threads by spinning: on a busy machine a net takes a hundred times as long. This
/// loads the CPU module, if librt has not done so yet and there is such a runtime, so that oneDNN finds the
/// module's functions first (backends/cpu/device/openmp.h). Does nothing where it cannot: librt then loads
/// the module as ever.
void load_cpu_module() noexcept;

}  // namespace rt::python
