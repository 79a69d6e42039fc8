// Properties of the host of the CPU backend: CPU name, features, and how many threads this process
// should use.
//
// Knows: /proc, cgroups, affinity, cpuid. Everything has a fallback: no file is required to exist.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace librt::cpu {

/// "Intel(R) Xeon(R) Platinum 8480+", or the architecture's name.
std::string cpu_name();
/// The smallest of: physical cores among the CPUs of the affinity mask, the CPU quota of the cgroup (at least
/// 1).
int default_threads();
/// CPUs of the affinity mask: the most threads that can run at once.
int allowed_cpus();
/// Of the largest cache that a CPU of the mask reaches; 0: unknown.
uint64_t cache_bytes();
/// "avx2", "avx512f", "avx512_bf16", ...: those that kernels care about.
std::vector<std::string> cpu_features();

}  // namespace librt::cpu
