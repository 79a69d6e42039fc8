// Custom: an operator whose kernel the application gives to its session (rt/custom.h). Its page knows types
// and shapes, which the node states (geometry/custom.h); what it computes only the application knows.
#include "runtime/geometry/custom.h"

#include "runtime/ops/page.h"

namespace librt::ops {

/// Impure: it may do anything.
RT_PAGE(Custom) = {.kind = OpKind::Custom,
                   .inputs = {0, kUnbounded},
                   .outputs = {1, kUnbounded},
                   .infer = infer_custom,
                   .impure = true,
                   .arithmetic = Arithmetic::PrecisionSensitive,
                   .extents = ExtentRule::Copied};
RT_NO_GRADIENT(Custom, "it is an operator of the application, of which librt knows no gradient");

}  // namespace librt::ops
