// For programs: how long OpenMP threads spin before they sleep. A library must not change its host's
// environment.
//
// libgomp reads the environment when it is loaded, which happens with the cpu backend: call this first in
// main().
#pragma once

#include <cstdlib>

namespace librt::tools {

/// libgomp's default of about 10 ms of spinning takes cores from the thread being waited for when other
/// programs run: on a busy machine that made whole nets four times slower. 4000 rounds are about 200 us,
/// which covers the gaps between the loops of one net. Settings of the user take precedence.
inline void spin_briefly() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "4000", 0);
}

}  // namespace librt::tools
