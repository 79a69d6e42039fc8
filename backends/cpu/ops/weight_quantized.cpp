// WeightQuantizedMatMul: columns are split among threads; see simd/weight_quantized.cpp. Many rows are
// quantized to 16 bits for 8-bit dot products, where the CPU has them (simd/weight_quantized_panel.h);
// elsewhere the weights are dequantized to f32 once per run, followed by a GEMM.
#include <algorithm>
#include <array>
#include <numeric>

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/simd/binary.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/simd/weight_quantized.h"
#include "backends/cpu/simd/weight_quantized_panel.h"
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

/// In f32, rows one after the other or a few together. p.x: as WeightMatmul has it.
void multiply_floats(const Simd& simd, const WeightMatmul& p) noexcept {
  const auto loop = simd.loops<WeightQuantizedLoops>().weight_matmul[p.kind()];
  parallel_for(p.n, p.rows * p.k, 4, [&](int64_t begin, int64_t end) noexcept { loop(p, begin, end); });
}

/// One of p's rows, whose elements are in their order.
WeightMatmul row_of(const WeightMatmul& p, int64_t row) noexcept {
  WeightMatmul one = p;
  one.rows = 1;
  one.x += row * p.k;
  one.y += row * p.n;
  return one;
}
/// In f32 a row that 16 bits cannot hold. floats: [k].
void multiply_row_floats(const Simd& simd, WeightMatmul one, float* floats) noexcept {
  if (one.bits == 4) {
    separate(one.x, floats, 1, one.k);
    one.x = floats;
  }
  multiply_floats(simd, one);
}

/// 4-bit weights; p.x: elements in their order. memory: [k] floats, then SplitRow::kBytes k bytes.
void multiply_rows(const Simd& simd, const WeightMatmul& p, std::byte* memory) noexcept {
  std::byte* const values = memory + p.k * static_cast<int64_t>(sizeof(float));
  const SplitRow split{.values = reinterpret_cast<int8_t*>(values),
                       .start = reinterpret_cast<int32_t*>(values + 2 * p.k),
                       .scale = reinterpret_cast<float*>(values + 2 * p.k + p.k / 2)};
  const WeightQuantizedLoops& loops = simd.loops<WeightQuantizedLoops>();
  for (int64_t row = 0; row < p.rows; ++row) {
    const WeightMatmul one = row_of(p, row);
    if (!loops.split_row(one.x, p.k, split)) {
      multiply_row_floats(simd, one, reinterpret_cast<float*>(memory));
      continue;
    }
    parallel_for(p.n, p.k, 4, [&](int64_t begin, int64_t end) noexcept {
      loops.weight_row(one, split, one.y, begin, end);
    });
  }
}

void add_bias(const Simd& simd, float* y, const float* bias, int64_t rows, int64_t n) noexcept {
  const auto add = simd.loops<BinaryLoops>()
                       .binary[static_cast<int>(BinaryFunction::Add)][static_cast<int>(Advance::Both)];
  parallel_for(rows, n, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t row = begin; row < end; ++row) add(y + row * n, bias, y + row * n, n);
  });
}

WeightMatmul weight_matmul_of(const NodeView& node) {
  WeightMatmul matmul{};
  matmul.k = node.shape(0).back();
  matmul.n = node.shape(1)[0];
  matmul.rows = matmul.k == 0 ? 0 : node.input(0).elements() / matmul.k;
  matmul.group = node.as<op::WeightQuantizedMatMulAttributes>().group_size;
  matmul.bits = static_cast<int>(node.as<op::WeightQuantizedMatMulAttributes>().bits);
  return matmul;
}
WeightMatmul with_operands(WeightMatmul p, const Call& call) noexcept {
  p.x = call.in<float>(0);
  p.weight = call.in<uint8_t>(1);
  p.scale = call.in<float>(2);
  p.y = call.out<float>();
  return p;
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const bool has_bias = node.has(3);
  const WeightMatmul matmul = weight_matmul_of(node);
  const bool pairs = matmul.bits == 4;
  // Few rows in integer arithmetic (split_row), as long as reading the weights is the bottleneck.
  const WeightQuantizedLoops& loops = device.simd().loops<WeightQuantizedLoops>();
  const bool whole = pairs && matmul.rows < 4 && loops.split_row != nullptr &&
                     (device.simd().dot_products || !loops.row_needs_dot_products) && matmul.k % 128 == 0 &&
                     (matmul.group == 32 || matmul.group == 64 || matmul.group % 128 == 0);
  Requirements requirements;
  if (whole)
    requirements.scratch = static_cast<size_t>(matmul.k) * (sizeof(float) + SplitRow::kBytes);
  else if (pairs)
    requirements.scratch = node.input(0).bytes();
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        WeightMatmul p = with_operands(matmul, call);
        if (whole) {
          multiply_rows(simd, p, call.scratch<std::byte>());
        } else {
          if (pairs) {
            separate(p.x, call.scratch<float>(), p.rows, p.k);
            p.x = call.scratch<float>();
          }
          multiply_floats(simd, p);
        }
        if (has_bias) add_bias(simd, p.y, call.in<float>(3), p.rows, p.n);
      },
      requirements);
}

Status supports(const CpuDevice&, const NodeView& node) {
  if (node.shape(0).back() == 0) return unsupported("empty matmul: nothing to compute");
  return {};
}

// --- many rows, in integer arithmetic

/// From here on panels are worth transposing.
constexpr int64_t kPanelRows = 4;

/// Of the rows' quantization: a part of each group.
int64_t block_of(const WeightMatmul& matmul) noexcept {
  return std::gcd(matmul.group, int64_t{32});
}

Status supports_panels(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  const WeightMatmul matmul = weight_matmul_of(node);
  const Simd& simd = device.simd();
  if (!simd.dot_products || simd.loops<WeightPanelLoops>().split_row[0] == nullptr)
    return unsupported("needs dot products of 8-bit integers (AVX-512 VNNI, AVX-VNNI or dotprod)");
  if (matmul.rows < kPanelRows || matmul.n == 0)
    return unsupported("panels of weights pay off from ", kPanelRows, " rows on, found ", matmul.rows);
  if (block_of(matmul) < 16) return unsupported("expected groups of a multiple of 16, found ", matmul.group);
  return {};
}

/// Rows are quantized, then threads transpose panels of columns into scratch of their own and multiply them.
class PanelMatmul {
 public:
  PanelMatmul(const Simd& simd, const WeightMatmul& matmul) noexcept
      : simd_(&simd), weight_rows_(matmul.k * matmul.bits / 32), groups_(matmul.k / matmul.group) {
    const int64_t elements = matmul.rows * matmul.k, blocks = elements / block_of(matmul);
    constexpr int64_t kFour = sizeof(float);
    low_ = elements;
    start_ = low_ + elements;
    scale_ = start_ + blocks * kFour;
    floats_ = scale_ + blocks * kFour;
    finite_ = floats_ + matmul.k * kFour;
    panels_ = (finite_ + matmul.rows + 63) / 64 * 64;
    panel_ = (weight_rows_ + groups_) * kWeightColumns * kFour;
  }
  /// Bytes.
  int64_t scratch() const noexcept { return panels_ + max_threads() * panel_; }

  /// p: the operands. bias may be null.
  void run(const WeightMatmul& p, const float* bias, std::byte* scratch) const noexcept {
    const SplitRows rows{.high = reinterpret_cast<int8_t*>(scratch),
                         .low = reinterpret_cast<int8_t*>(scratch + low_),
                         .start = reinterpret_cast<int32_t*>(scratch + start_),
                         .scale = reinterpret_cast<float*>(scratch + scale_),
                         .k = p.k,
                         .block = block_of(p)};
    auto* finite = reinterpret_cast<bool*>(scratch + finite_);
    parallel_for(p.rows, p.k, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t row = begin; row < end; ++row)
        finite[row] = loops().split_row[p.kind()](p.x + row * p.k, rows, row);
    });
    multiply(p, bias, rows, scratch + panels_);
    for (int64_t row = 0; row < p.rows; ++row) {
      if (finite[row]) continue;
      const WeightMatmul one = row_of(p, row);
      multiply_row_floats(*simd_, one, reinterpret_cast<float*>(scratch + floats_));
      if (bias != nullptr) add_bias(*simd_, one.y, bias, 1, p.n);
    }
  }

 private:
  static constexpr int64_t kRowsOfUnit = 64;  ///< for which a panel is transposed once

  const WeightPanelLoops& loops() const noexcept { return simd_->loops<WeightPanelLoops>(); }

  void multiply(const WeightMatmul& p, const float* bias, const SplitRows& rows,
                std::byte* memory) const noexcept {
    const int64_t panels = (p.n + kWeightColumns - 1) / kWeightColumns;
    const int64_t parts = (p.rows + kRowsOfUnit - 1) / kRowsOfUnit;
    const int64_t work = std::min(p.rows, kRowsOfUnit) * kWeightColumns * p.k / 16;
    parallel_for(panels * parts, work, 1, [&](int64_t begin, int64_t end) noexcept {
      auto* weights = reinterpret_cast<int32_t*>(memory + thread_index() * panel_);
      auto* scale = reinterpret_cast<float*>(weights + weight_rows_ * kWeightColumns);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i / parts * kWeightColumns, first = i % parts * kRowsOfUnit;
        const int64_t columns = std::min(kWeightColumns, p.n - column);
        const uint8_t* from = p.weight + column * p.k * p.bits / 8;
        if (i == begin || first == 0) {
          transpose(from, weight_rows_, weights, columns);
          transpose(p.scale + column * groups_, groups_, scale, columns);
        }
        const bool has_next = first + kRowsOfUnit >= p.rows && column + 2 * kWeightColumns <= p.n;
        loops().multiply[p.kind()]({.weights = weights,
                                    .scale = scale,
                                    .bias = bias != nullptr ? bias + column : nullptr,
                                    .y = p.y + column,
                                    .next = has_next ? from + kWeightColumns * p.k * p.bits / 8 : nullptr,
                                    .group = p.group,
                                    .stride = p.n,
                                    .columns = columns},
                                   rows, first, std::min(first + kRowsOfUnit, p.rows));
      }
    });
  }
  /// [columns, n] of four bytes each to [n, kWeightColumns].
  void transpose(const void* x, int64_t n, void* y, int64_t columns) const noexcept {
    simd_->loops<TransposeLoops>().transpose[2](x, n, y, kWeightColumns, columns, n, false);
  }
  const Simd* simd_;
  int64_t weight_rows_, groups_;                                    ///< of a panel
  int64_t low_, start_, scale_, floats_, finite_, panels_, panel_;  ///< where they begin; bytes of a panel
};

Result<KernelPtr> create_panels(CpuDevice& device, const NodeView& node, Producers) {
  const WeightMatmul extents = weight_matmul_of(node);
  const PanelMatmul matmul(device.simd(), extents);
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(matmul.scratch());
  return make_kernel(
      [=, has_bias = node.has(3)](const Call& call) noexcept {
        matmul.run(with_operands(extents, call), has_bias ? call.in<float>(3) : nullptr,
                   call.scratch<std::byte>());
      },
      requirements);
}

// --- many rows, in f32

/// Compute-bound from here on: 512x512 weights take 1.9 (8 bits) and 2.6 (4) of f32's time for 8 rows in
/// registers.
constexpr int64_t kManyRows = 16;

Status supports_widened(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  const WeightMatmul matmul = weight_matmul_of(node);
  if (matmul.rows < kManyRows || matmul.n == 0)
    return unsupported("dequantizing to f32 pays off from ", kManyRows, " rows on, found ", matmul.rows);
  if (supports_panels(device, node).ok())
    return unsupported("slower than dot products of integers, and all weights in f32 take memory");
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
  KernelPtr widen =
      make_kernel([=, loop = device.simd().loops<WeightQuantizedLoops>().widen_weights[matmul.kind()]](
                      const Call& call) noexcept {
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
      row<create_panels, supports_panels>(OpKind::WeightQuantizedMatMul, "weight_quantized_matmul.panels",
                                          DTypeSet{DType::F32}, 20),
      row<create_widened, supports_widened>(OpKind::WeightQuantizedMatMul, "weight_quantized_matmul.widened",
                                            DTypeSet{DType::F32}, 10),
      row<create, supports>(OpKind::WeightQuantizedMatMul, "weight_quantized_matmul", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
