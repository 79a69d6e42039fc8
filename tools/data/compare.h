// Compares a tensor with its expected value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/data/array.h"

namespace librt::tools {

struct Difference {
  bool same_kind = false;  ///< type and shape agree; otherwise `text` gives the mismatch
  size_t elements = 0;
  size_t outside = 0;          ///< elements with |got - want| > atol + rtol |want|
  double largest = 0;          ///< largest finite |got - want|
  std::vector<int64_t> where;  ///< index of the element that exceeds the bound most
  double got = 0, want = 0;    ///< the values at `where`
  std::string text;            ///< one human-readable line

  bool equal() const noexcept { return same_kind && outside == 0; }
};

/// NaN equals NaN, infinities equal themselves; integers and booleans are compared exactly when both
/// tolerances are 0.
Difference compare(const Array& got, const Array& want, double rtol, double atol);

/// The largest |got - want| relative to the largest |want| over all added arrays. Infinite once a difference
/// is NaN.
class RelativeError {
 public:
  /// Arrays of one float type and size; others add nothing.
  void add(const Array& got, const Array& want);
  /// The absolute difference if all expected values are 0.
  double value() const noexcept { return largest_ > 0 ? difference_ / largest_ : difference_; }

 private:
  double difference_ = 0, largest_ = 0;
};

/// Element i as a double, of any type.
double element_of(const Array& array, size_t i) noexcept;
/// The array in another element type: floats round to nearest, integers truncate and saturate.
Array converted(const Array& array, DType type);
/// "f32[1,3,224,224]"
std::string describe(const Array& array);

}  // namespace librt::tools
