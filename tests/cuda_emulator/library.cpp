// The libraries available on the emulated device: those named in RT_EMULATOR_LIBRARIES
// ("cublasLt,cudnn,nccl"), none by default. Replaces backends/cuda/libraries/library.cpp.
#include "backends/cuda/libraries/library.h"

#include <cstdlib>

#include "tests/cuda_emulator/fake_cublaslt.h"
#include "tests/cuda_emulator/fake_cudnn.h"
#include "tests/cuda_emulator/fake_nccl.h"

namespace librt::cuda {
namespace {

struct Fake {
  std::string_view name;
  void* (*function)(const char* name) noexcept;
};
Fake fakes[] = {{"cublasLt", &cuda_emulator::fake_cublaslt_function},
                {"cudnn", &cuda_emulator::fake_cudnn_function},
                {"nccl", &cuda_emulator::fake_nccl_function}};

}  // namespace

void CloseLibrary::operator()(void*) const noexcept {}

Result<LibraryHandle> open_library(const std::string& name) {
  const char* named = std::getenv("RT_EMULATOR_LIBRARIES");
  for (Fake& fake : fakes)
    if (named != nullptr && is_listed(named, name) && is_listed(fake.name, name)) return LibraryHandle(&fake);
  return Status(Code::NotFound, text(name, " was not found (the emulated device has those that ",
                                     "RT_EMULATOR_LIBRARIES names)"));
}

void* function_of(const LibraryHandle& library, const char* name) noexcept {
  return static_cast<const Fake*>(library.get())->function(name);
}

}  // namespace librt::cuda
