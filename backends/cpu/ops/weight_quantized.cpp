// WeightQuantizedMatMul: columns are split among threads; see simd/weight_quantized.cpp. For many rows the
// weights are dequantized to f32 once per run, followed by a GEMM.
#include <array>

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/simd/binary.h"
#include "backends/cpu/simd/weight_quantized.h"
#include "backends/cpu/support/matmul_gemm.h"

namespace librt::cpu {
namespace {

/// Even elements of each row first, then the odd ones.
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

/// memory: SplitRow::kBytes k bytes.
void multiply_rows(const Simd& simd, const WeightMatmul& p, std::byte* memory) noexcept {
  auto* bytes = reinterpret_cast<int8_t*>(memory);
  const int64_t half = p.k / 2;
  const SplitRow split{.high = {bytes, bytes + half},
                       .low = {bytes + 2 * half, bytes + 3 * half},
                       .start = reinterpret_cast<int32_t*>(bytes + 4 * half),
                       .scale = reinterpret_cast<float*>(bytes + 5 * half)};
  for (int64_t row = 0; row < p.rows; ++row) {
    simd.loops<WeightQuantizedLoops>().split_row(p.x + row * p.k, p.k, split);
    parallel_for(p.n, p.k, 4, [&](int64_t begin, int64_t end) noexcept {
      simd.loops<WeightQuantizedLoops>().weight_row(p, split, p.y + row * p.n, begin, end);
    });
  }
}

WeightMatmul weight_matmul_of(const NodeView& node) {
  WeightMatmul matmul{};
  matmul.k = node.shape(0).back();
  matmul.n = node.shape(1)[0];
  matmul.rows = matmul.k == 0 ? 0 : node.input(0).elements() / matmul.k;
  matmul.group = node.as<op::WeightQuantizedMatMulAttributes>().group_size;
  return matmul;
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const bool pairs = node.as<op::WeightQuantizedMatMulAttributes>().bits == 4, has_bias = node.has(3);
  const WeightMatmul matmul = weight_matmul_of(node);
  Requirements requirements;
  // Few rows in integer arithmetic (split_row), as long as reading the weights is the bottleneck.
  const bool whole = pairs && matmul.rows < 4 && device.simd().dot_products &&
                     device.simd().loops<WeightQuantizedLoops>().split_row != nullptr &&
                     matmul.k % 128 == 0 &&
                     (matmul.group == 32 || matmul.group == 64 || matmul.group % 128 == 0);
  if (pairs) requirements.scratch = node.input(0).bytes();
  if (whole) requirements.scratch += static_cast<size_t>(matmul.k * SplitRow::kBytes);
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        WeightMatmul p = matmul;
        p.x = call.in<float>(0);
        p.weight = call.in<uint8_t>(1);
        p.scale = call.in<float>(2);
        p.y = call.out<float>();
        if (pairs) {
          separate(p.x, call.scratch<float>(), p.rows, p.k);
          p.x = call.scratch<float>();
        }
        const auto loop = simd.loops<WeightQuantizedLoops>().weight_matmul[pairs ? 1 : 0];
        if (whole)
          multiply_rows(simd, p,
                        call.scratch<std::byte>() + p.rows * p.k * static_cast<int64_t>(sizeof(float)));
        else
          parallel_for(p.n, p.rows * p.k, 4,
                       [&](int64_t begin, int64_t end) noexcept { loop(p, begin, end); });
        if (!has_bias) return;
        const auto add = simd.loops<BinaryLoops>()
                             .binary[static_cast<int>(BinaryFunction::Add)][static_cast<int>(Advance::Both)];
        parallel_for(p.rows, p.n, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t row = begin; row < end; ++row)
            add(p.y + row * p.n, call.in<float>(3), p.y + row * p.n, p.n);
        });
      },
      requirements);
}

Status supports(const CpuDevice&, const NodeView& node) {
  if (node.shape(0).back() == 0) return unsupported("empty matmul: nothing to compute");
  return {};
}

// --- many rows

/// Compute-bound from here on: 512x512 weights take 1.9 (8 bits) and 2.6 (4) of f32's time for 8 rows in
/// registers.
constexpr int64_t kManyRows = 16;

Status supports_widened(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  const WeightMatmul matmul = weight_matmul_of(node);
  if (matmul.rows < kManyRows || matmul.n == 0)
    return unsupported("dequantizing to f32 pays off from ", kManyRows, " rows on, found ", matmul.rows);
  return {};
}

/// Two kernels: the first dequantizes the weights into scratch, which the second reads as its input 1.
class WidenedMatmul final : public Kernel {
 public:
  WidenedMatmul(KernelPtr widen, KernelPtr multiply, size_t bytes)
      : widen_(std::move(widen)), multiply_(std::move(multiply)), bytes_((bytes + 63) / 64 * 64) {}

  Requirements requirements() const noexcept override {
    Requirements requirements = multiply_->requirements();
    requirements.scratch += bytes_;
    return requirements;
  }
  Status record(CommandList& commands, const Bindings& bindings) noexcept override {
    const BufferRef& scratch = bindings.scratch;
    const BufferRef weights{.slot = scratch.slot, .offset = scratch.offset, .bytes = bytes_};
    Bindings widening = bindings;
    widening.outputs = std::span(&weights, 1);
    RT_TRY(widen_->record(commands, widening));
    std::array<BufferRef, 3> inputs{bindings.inputs[0], weights, {}};
    const bool has_bias = bindings.inputs.size() > 3;
    if (has_bias) inputs[2] = bindings.inputs[3];
    Bindings multiplying = bindings;
    multiplying.inputs = std::span(inputs).first(has_bias ? 3 : 2);
    multiplying.scratch = {};
    if (scratch.bytes > bytes_)
      multiplying.scratch = {
          .slot = scratch.slot, .offset = scratch.offset + bytes_, .bytes = scratch.bytes - bytes_};
    return multiply_->record(commands, multiplying);
  }

 private:
  KernelPtr widen_, multiply_;
  size_t bytes_;
};

Result<KernelPtr> create_widened(CpuDevice& device, const NodeView& node, Producers) {
  const WeightMatmul matmul = weight_matmul_of(node);
  const int bits = node.as<op::WeightQuantizedMatMulAttributes>().bits == 4 ? 1 : 0;
  KernelPtr widen = make_kernel(
      [=, loop = device.simd().loops<WeightQuantizedLoops>().widen_weights[bits]](const Call& call) noexcept {
        WeightMatmul p = matmul;
        p.weight = call.in<uint8_t>(1);
        p.scale = call.in<float>(2);
        parallel_for(p.n, p.k, 1,
                     [&](int64_t begin, int64_t end) noexcept { loop(p, call.out<float>(), begin, end); });
      });
  const auto widened = [&](KernelPtr multiply) {
    return KernelPtr(std::make_unique<WidenedMatmul>(
        std::move(widen), std::move(multiply), static_cast<size_t>(matmul.n * matmul.k) * sizeof(float)));
  };
  if (!onednn::usable().ok()) {
    op::EpilogueAttributes epilogue;
    epilogue.has_bias = node.has(3);
    const Shape result{matmul.rows, matmul.n};
    return widened(make_matmul_gemm(
        device,
        MatMulGeometry{.m = matmul.rows, .k = matmul.k, .n = matmul.n, .transpose_b = true, .result = result},
        nullptr, Finish(device.simd(), result, &epilogue, Shape{matmul.n}), {.bias = node.has(3) ? 2 : -1}));
  }
  onednn::MatMul f32;
  f32.m = matmul.rows;
  f32.k = matmul.k;
  f32.n = matmul.n;
  f32.b.transposed = true;
  if (node.has(3)) f32.epilogue.bias_input = 2;
  RT_ASSIGN(KernelPtr multiply, onednn::make_matmul(device, f32));
  return widened(std::move(multiply));
}

}  // namespace

std::span<const KernelRow> rows_weight_quantized();
std::span<const KernelRow> rows_weight_quantized() {
  static constexpr KernelRow kRows[] = {
      row<create_widened, supports_widened>(OpKind::WeightQuantizedMatMul, "weight_quantized_matmul.widened",
                                            DTypeSet{DType::F32}, 10),
      row<create, supports>(OpKind::WeightQuantizedMatMul, "weight_quantized_matmul", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
