// All families of kernels in ops/, collected by the build.
#pragma once

#include <span>
#include <vector>

#include "runtime/backend/kernel_table.h"

namespace librt::cuda {

std::vector<std::span<const KernelRow>> kernel_families();

}  // namespace librt::cuda
