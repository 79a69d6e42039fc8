// How much outputs may differ from those of another device or precision.
#pragma once

#include <string>

namespace librt::bench {

/// Lower precision than f32: compared with the original model, and no percentage of the f32 peak is given.
bool is_lower(const std::string& precision);
/// Largest relative_error() that rounding explains.
double largest_error(const std::string& precision);

/// Above this many operations per run the plain-loop reference is too slow; the CPU backend replaces it.
inline constexpr double kReferenceFlops = 2e9;

}  // namespace librt::bench
