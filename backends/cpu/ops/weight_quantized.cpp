// WeightQuantizedMatMul: columns are shared among threads; see simd/weight_quantized.cpp.
#include "backends/cpu/kernel.h"

namespace rt::cpu {
namespace {

/// Even elements of each row first, the odd ones behind them.
void separate(const float* x, float* y, int64_t rows, int64_t k) noexcept {
  parallel_for(rows, k, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t row = begin; row < end; ++row) {
      const float* from = x + row * k;
      float *even = y + row * k, *odd = even + k / 2;
      for (int64_t i = 0; i < k / 2; ++i) {
        even[i] = from[2 * i];
        odd[i] = from[2 * i + 1];
      }
    }
  });
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::WeightQuantizedMatMulAttributes>();
  const bool pairs = attributes.bits == 4, has_bias = node.has(3);
  WeightProduct product{};
  product.k = node.shape(0).back();
  product.n = node.shape(1)[0];
  product.rows = product.k == 0 ? 0 : node.input(0).elements() / product.k;
  product.group = attributes.group_size;
  Requirements requirements;
  if (pairs) requirements.scratch = node.input(0).bytes();
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        WeightProduct p = product;
        p.x = call.in<float>(0);
        p.weight = call.in<uint8_t>(1);
        p.scale = call.in<float>(2);
        p.y = call.out<float>();
        if (pairs) {
          separate(p.x, call.scratch<float>(), p.rows, p.k);
          p.x = call.scratch<float>();
        }
        const auto loop = simd.weight_product[pairs ? 1 : 0];
        parallel_for(p.n, p.rows * p.k, 4, [&](int64_t begin, int64_t end) noexcept { loop(p, begin, end); });
        if (!has_bias) return;
        const auto add = simd.binary[static_cast<int>(BinaryFunction::Add)][static_cast<int>(Advance::Both)];
        parallel_for(p.rows, p.n, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t row = begin; row < end; ++row)
            add(p.y + row * p.n, call.in<float>(3), p.y + row * p.n, p.n);
        });
      },
      requirements);
}

Status supports(const CpuDevice&, const NodeView& node) {
  if (node.shape(0).back() == 0) return unsupported("a product without elements has nothing to compute");
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

}  // namespace rt::cpu
