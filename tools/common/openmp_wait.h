// How long OpenMP's threads spin before they sleep, for programs; a library must not touch its host's
// environment.
//
// libgomp reads the environment when it is loaded, which happens with the cpu backend: call this first in
// main().
#pragma once

#include <cstdlib>

namespace rt::tools {

/// libgomp's default of some 10 ms of spinning keeps a core from the thread that is waited for whenever other
/// programs run: on a busy machine that made whole nets four times slower. 4000 rounds are about 200 us,
/// which covers the gaps between the loops of one net. What the user has set stands.
inline void spin_briefly() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "4000", 0);
}

}  // namespace rt::tools
