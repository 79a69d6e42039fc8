// Names of kernels, from the symbol table of the library that this is linked into.
#pragma once

#include <string>

namespace cuda_emulator {

/// The name of a kernel of this library without namespaces and template arguments; "unknown" when the library
/// was stripped.
std::string kernel_name(const void* kernel);

}  // namespace cuda_emulator
