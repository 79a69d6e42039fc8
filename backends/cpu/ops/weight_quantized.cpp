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

/// memory: SplitRow::kBytes k.
void multiply_rows(const Simd& simd, const WeightProduct& p, std::byte* memory) noexcept {
  auto* bytes = reinterpret_cast<int8_t*>(memory);
  const int64_t half = p.k / 2;
  const SplitRow split{.high = {bytes, bytes + half},
                       .low = {bytes + 2 * half, bytes + 3 * half},
                       .start = reinterpret_cast<int32_t*>(bytes + 4 * half),
                       .scale = reinterpret_cast<float*>(bytes + 5 * half)};
  for (int64_t row = 0; row < p.rows; ++row) {
    simd.split_row(p.x + row * p.k, p.k, split);
    parallel_for(p.n, p.k, 4, [&](int64_t begin, int64_t end) noexcept {
      simd.weight_row(p, split, p.y + row * p.n, begin, end);
    });
  }
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
  // Single rows by whole numbers, as far as the weights' bytes are what takes time.
  const bool whole = pairs && product.rows < 4 && device.simd().weight_row != nullptr &&
                     product.k % 128 == 0 &&
                     (product.group == 32 || product.group == 64 || product.group % 128 == 0);
  if (pairs) requirements.scratch = node.input(0).bytes();
  if (whole) requirements.scratch += static_cast<size_t>(product.k * SplitRow::kBytes);
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
        if (whole)
          multiply_rows(simd, p,
                        call.scratch<std::byte>() + p.rows * p.k * static_cast<int64_t>(sizeof(float)));
        else
          parallel_for(p.n, p.rows * p.k, 4,
                       [&](int64_t begin, int64_t end) noexcept { loop(p, begin, end); });
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
