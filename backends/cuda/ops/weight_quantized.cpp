// WeightQuantizedMatMul: weights of 8 or 4 bits are dequantized in registers. Groups whose weights do not
// fill whole 4-byte words are left to the node's body.
#include "kernels/weight_quantized.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::WeightQuantizedMatMulAttributes>();
  WeightQuantizedArguments arguments;
  arguments.n = node.shape(1)[0];
  arguments.k = node.shape(0).back();
  arguments.rows = node.input(0).elements() / arguments.k;
  arguments.group = attributes.group_size;
  arguments.bits = static_cast<int>(attributes.bits);
  return make_kernel([arguments](const Call& call) {
    WeightQuantizedArguments a = arguments;
    a.x = call.in<float>(0);
    a.weight = call.in(1);
    a.scale = call.in<float>(2);
    a.bias = call.in<float>(3);
    a.y = call.out<float>();
    return weight_quantized(a, call.stream);
  });
}

Status supports(const CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::WeightQuantizedMatMulAttributes>();
  const int64_t whole = 32 / attributes.bits;
  if (attributes.group_size % whole != 0)
    return unsupported("groups of ", attributes.group_size, " weights, not a multiple of ", whole);
  if (node.output(0).elements() == 0) return unsupported("an empty matmul");
  const int64_t rows = node.input(0).elements() / node.shape(0).back();
  if (rows > kMaxWeightRows) return unsupported(rows, " rows, at most ", kMaxWeightRows);
  return {};
}

}  // namespace

std::span<const KernelRow> rows_weight_quantized();
std::span<const KernelRow> rows_weight_quantized() {
  static constexpr KernelRow kRows[] = {
      row<create, supports>(OpKind::WeightQuantizedMatMul, "weight_quantized_matmul", DTypeSet{DType::F32}),
  };
  return kRows;
}

}  // namespace librt::cuda
