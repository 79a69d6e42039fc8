#include "runtime/geometry/matmul.h"

namespace librt {

Result<MatMulGeometry> matmul_geometry(const Shape& a, const Shape& b,
                                       const op::MatMulAttributes& attributes) {
  if (a.rank() == 0 || b.rank() == 0)
    return invalid_argument("expected two operands of rank 1 or more, found ", a, " and ", b);
  MatMulGeometry geometry;
  int64_t a_inner = a.back();
  if (a.rank() >= 2) {
    geometry.transpose_a = attributes.transpose_a;
    geometry.m = a[a.rank() - (geometry.transpose_a ? 1 : 2)];
    a_inner = a[a.rank() - (geometry.transpose_a ? 2 : 1)];
    geometry.a_batch = Shape(a.dims().first(static_cast<size_t>(a.rank() - 2)));
  }
  int64_t b_inner = b.back();
  if (b.rank() >= 2) {
    geometry.transpose_b = attributes.transpose_b;
    geometry.n = b[b.rank() - (geometry.transpose_b ? 2 : 1)];
    b_inner = b[b.rank() - (geometry.transpose_b ? 1 : 2)];
    geometry.b_batch = Shape(b.dims().first(static_cast<size_t>(b.rank() - 2)));
  }
  if (a_inner != b_inner)
    return invalid_argument("expected equal inner extents, found ", a_inner, " of ", a,
                            geometry.transpose_a ? " (transposed)" : "", " and ", b_inner, " of ", b,
                            geometry.transpose_b ? " (transposed)" : "");
  geometry.k = a_inner;
  const auto batch = broadcast(geometry.a_batch, geometry.b_batch);
  if (!batch) return invalid_argument("expected batch axes that broadcast, found ", a, " and ", b);
  geometry.batch = *batch;
  geometry.result = *batch;
  if (a.rank() >= 2) geometry.result.push_back(geometry.m);
  if (b.rank() >= 2) geometry.result.push_back(geometry.n);
  return geometry;
}

}  // namespace librt
