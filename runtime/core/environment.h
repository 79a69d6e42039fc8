// Environment variables, as far as a process may trust them.
#pragma once

namespace librt {

/// The variable's value; null if it is not set, or if the process has the rights of a user other than the one
/// who started it (setuid, setgid, file capabilities).
const char* environment(const char* name) noexcept;

}  // namespace librt
