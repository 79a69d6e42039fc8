// Rotary embedding in one pass over x, in place.
#include "kernels/rotary.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const Shape &x = node.shape(0), &table = node.shape(1);
  const RotaryArguments arguments{.interleaved = node.as<op::RotaryEmbeddingAttributes>().interleaved,
                                  .table_per_batch = table[0] != 1,
                                  .rows = x.elements(0, 3),
                                  .heads = x[1],
                                  .queries = x[2],
                                  .width = x[3],
                                  .pairs = table[2]};
  return make_kernel(
      [arguments](const Call& call) {
        RotaryArguments a = arguments;
        a.data = call.in<float>(0);
        a.cosines = call.in<float>(1);
        a.sines = call.in<float>(2);
        a.result = call.out<float>();
        return rotary(a, call.stream);
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_rotary();
std::span<const KernelRow> rows_rotary() {
  static constexpr KernelRow kRows[] = {row<create>(OpKind::RotaryEmbedding, "rotary", DTypeSet{DType::F32})};
  return kRows;
}

}  // namespace librt::cuda
