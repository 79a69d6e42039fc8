#include "tools/rtbench/tolerance.h"

#include "tools/rtbench/models.h"

namespace librt::bench {
namespace {

// Backends differ from the reference by rounding only; networks amplify that to about this.
constexpr double kLargestError = 1e-3;
constexpr double kLargest16BitError = 5e-2;
constexpr double kLargestQuantizedError =
    0.3;  // with random weights; tools/dev/accuracy measures trained models

}  // namespace

bool is_lower(const std::string& precision) {
  return precision == "tf32" || precision == "fp16" || precision == "bf16" || is_quantized(precision);
}

double largest_error(const std::string& precision) {
  if (is_quantized(precision)) return kLargestQuantizedError;
  return is_lower(precision) ? kLargest16BitError : kLargestError;
}

}  // namespace librt::bench
