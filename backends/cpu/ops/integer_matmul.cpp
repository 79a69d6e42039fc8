// MatMulInteger and ConvInteger: oneDNN's 8-bit kernels where they are exact, with AVX-512 VNNI; our own GEMM
// elsewhere; and plain loops for what is left.
//
// oneDNN multiplies u8 or s8 by s8: an unsigned right operand b is taken as b - 128, and so is its zero
// point. Zero points are corrected for afterwards:
//   sum (a - za)(b - zb) = sum a b - za sum b - zb (sum a - K za)
#include <algorithm>

#include "runtime/geometry/matmul.h"
#include "runtime/geometry/quantization.h"

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/simd/quantize.h"
#include "backends/cpu/support/conv_integer_gemm.h"
#include "backends/cpu/support/conv_shape.h"
#include "backends/cpu/support/integer_gemm.h"
#include "backends/cpu/support/own_rows.h"
#include "backends/cpu/support/packing_kernel.h"

namespace librt::cpu {
namespace {

bool is_signed(const NodeView& node, size_t i) {
  return node.dtype(i) == DType::I8;
}
int table_index(const NodeView& node, size_t i) {
  return is_signed(node, i) ? 0 : 1;
}
int32_t byte_at(const void* bytes, bool has_sign, int64_t i) noexcept {
  return has_sign ? static_cast<const int8_t*>(bytes)[i] : static_cast<const uint8_t*>(bytes)[i];
}

Status supports_exact(const CpuDevice&, const NodeView& node) {
  RT_TRY(onednn::usable());
  if (!onednn::exact_integer_matmuls()) return unsupported("exact 8-bit arithmetic needs AVX-512 VNNI");
  if (node.output(0).elements() == 0 || node.input(0).elements() == 0 || node.input(1).elements() == 0)
    return unsupported("empty operands: nothing to compute");
  return {};
}

// --- MatMulInteger

/// The zero points of the rows of a, or of the columns of each matrix of b.
struct ZeroPoint {
  Shape batch;
  int64_t extent = 1;  ///< along the rows or columns; 1: one for all

  ZeroPoint() = default;
  ZeroPoint(const NodeView& node, size_t i, bool along_rows) {
    if (!node.has(i) || node.input(i).elements() == 1) return;
    const Shape& shape = node.shape(i);
    const int rank = shape.rank();
    batch = Shape(shape.dims().first(static_cast<size_t>(std::max(rank - 2, 0))));
    extent = along_rows ? shape[rank - 2] : shape[rank - 1];
  }
  int64_t matrices() const noexcept { return batch.elements(); }
};

/// Scratch of both kernels of MatMulInteger, per matrix of b and per column: the sums of b, and the zero
/// points of b.
struct MatMulPlan {
  MatMulGeometry g;
  ZeroPoint a_zero, b_zero;
  bool a_signed, b_signed, has_a_zero, has_b_zero;
  int32_t b_shift = 0;  ///< subtracted from b before the multiplication
  const Simd* simd;

  MatMulPlan(const CpuDevice& device, const NodeView& node, MatMulGeometry geometry)
      : g(std::move(geometry)),
        a_zero(node, 2, true),
        b_zero(node, 3, false),
        a_signed(is_signed(node, 0)),
        b_signed(is_signed(node, 1)),
        has_a_zero(node.has(2)),
        has_b_zero(node.has(3)),
        simd(&device.simd()) {}

  bool shifted() const noexcept { return has_b_zero || b_shift != 0; }
  size_t sums_count() const noexcept { return static_cast<size_t>(g.b_batch.elements() * g.n); }
  size_t zeros_count() const noexcept { return static_cast<size_t>(b_zero.matrices() * g.n); }

  /// Column sums of b, minus the shift.
  void column_sums(const void* b_bytes, int32_t* sums) const noexcept {
    parallel_for(g.b_batch.elements(), g.k * g.n, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t matrix = begin; matrix < end; ++matrix) {
        const auto* b = static_cast<const std::byte*>(b_bytes) + matrix * g.k * g.n;
        int32_t* of_matrix = sums + matrix * g.n;
        std::fill(of_matrix, of_matrix + g.n, static_cast<int32_t>(-b_shift * g.k));
        for (int64_t k = 0; k < g.k; ++k, b += g.n)
          simd->loops<QuantizeLoops>().multiply_add[b_signed ? 0 : 1](of_matrix, b, 1, g.n);
      }
    });
  }
  /// Column zero points of b, minus the shift.
  void column_zeros(const void* b_zero_bytes, int32_t* zeros) const noexcept {
    const auto count = static_cast<int64_t>(zeros_count());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = b_zero.extent == 1 ? i / g.n : i;
      zeros[i] = (has_b_zero ? byte_at(b_zero_bytes, b_signed, at) : 0) - b_shift;
    }
  }
  int32_t row_zero(const void* a_zero_bytes, int64_t batch, int64_t row) const noexcept {
    if (!has_a_zero) return 0;
    const int64_t matrix = g.operand_index(a_zero.batch, batch) * a_zero.extent;
    return byte_at(a_zero_bytes, a_signed, matrix + (a_zero.extent == 1 ? 0 : row));
  }
  /// y -= za sum b + zb (sum a - K za), for rows [begin, end) of one matrix of the result, counted over all
  /// of them.
  void correct_rows(int64_t batch, int64_t begin, int64_t end, int32_t* y, const std::byte* a,
                    const void* a_zero_bytes, const int32_t* sums, const int32_t* zeros) const noexcept {
    const auto& loops = simd->loops<QuantizeLoops>();
    a += g.operand_index(g.a_batch, batch) * g.m * g.k;
    sums += g.operand_index(g.b_batch, batch) * g.n;
    zeros += g.operand_index(b_zero.batch, batch) * g.n;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i - batch * g.m;
      const int32_t za = row_zero(a_zero_bytes, batch, row);
      const int32_t a_sum =
          shifted() ? loops.sum_row[a_signed ? 0 : 1](a + row * g.k, g.k) - static_cast<int32_t>(g.k) * za
                    : 0;
      int32_t* y_row = y + i * g.n;
      loops.combine_integers(y_row, has_a_zero ? sums : y_row, -za, shifted() ? zeros : y_row, -a_sum, g.n);
    }
  }
};

Result<KernelPtr> create_matmul(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry g, matmul_geometry(node.shape(0), node.shape(1), {}));
  const auto padded = [&](const Shape& batch) {
    std::vector<int64_t> dims(static_cast<size_t>(g.batch.rank() - batch.rank()), 1);
    dims.insert(dims.end(), batch.begin(), batch.end());
    return dims;
  };
  onednn::IntegerMatMul matmul{.m = g.m, .k = g.k, .n = g.n};
  matmul.a = {padded(g.a_batch), false, nullptr};
  matmul.b = {padded(g.b_batch), false, nullptr};
  matmul.batch = padded(g.batch);
  if (g.b_batch.elements() == 1 && g.a_batch.elements() == g.batch.elements()) {
    matmul.m *= g.batch.elements();  // one weight for all batches: their rows form one GEMM
    matmul.a.batch.clear();
    matmul.b.batch.clear();
    matmul.batch.clear();
  }
  if (matmul.batch.empty()) matmul.b.constant = node.inputs[1].value;
  matmul.a_signed = is_signed(node, 0);
  matmul.b_signed = is_signed(node, 1);
  matmul.inputs = node.input_count();

  MatMulPlan plan(device, node, g);
  plan.b_shift = plan.b_signed ? 0 : 128;
  if (!plan.has_a_zero && !plan.shifted()) return onednn::make_matmul_integer(device, matmul);
  std::vector<int32_t> known;
  if (plan.has_a_zero && matmul.b.constant != nullptr) {
    known.resize(plan.sums_count());
    plan.column_sums(matmul.b.constant, known.data());
  }
  matmul.finish.scratch = (plan.sums_count() + plan.zeros_count()) * sizeof(int32_t);
  matmul.finish.function = [plan, known = std::move(known),
                            inputs = matmul.inputs](std::byte* const* buffers) {
    const auto at = [&](size_t i) { return i < inputs ? buffers[3 + i] : nullptr; };
    auto* y = reinterpret_cast<int32_t*>(buffers[0]);
    auto* scratch = reinterpret_cast<int32_t*>(buffers[1]);
    const MatMulGeometry& of = plan.g;
    if (plan.has_a_zero && known.empty()) plan.column_sums(at(1), scratch);
    const int32_t* sums = known.empty() ? scratch : known.data();
    int32_t* zeros = scratch + plan.sums_count();
    plan.column_zeros(at(3), zeros);
    parallel_for(of.batch.elements() * of.m, of.k + of.n, 1, [&](int64_t begin, int64_t end) noexcept {
      while (begin < end) {
        const int64_t batch = begin / of.m, last = std::min(end, (batch + 1) * of.m);
        plan.correct_rows(batch, begin, last, y, at(0), at(2), sums, zeros);
        begin = last;
      }
    });
  };
  return onednn::make_matmul_integer(device, matmul);
}

Result<KernelPtr> create_plain_matmul(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry geometry, matmul_geometry(node.shape(0), node.shape(1), {}));
  const MatMulPlan plan(device, node, geometry);
  Requirements requirements;
  requirements.scratch = plan.zeros_count() * sizeof(int32_t);
  return make_kernel(
      [plan](const Call& call) noexcept {
        const MatMulGeometry& g = plan.g;
        auto* zeros = call.scratch<int32_t>();
        plan.column_zeros(call.in<std::byte>(3), zeros);
        parallel_for(g.batch.elements() * g.m, g.k * g.n, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t batch = i / g.m, row = i % g.m;
            const auto* a = call.in<std::byte>(0) + (g.operand_index(g.a_batch, batch) * g.m + row) * g.k;
            const auto* b = call.in<std::byte>(1) + g.operand_index(g.b_batch, batch) * g.k * g.n;
            const int32_t za = plan.row_zero(call.in<std::byte>(2), batch, row);
            int32_t* y = call.out<int32_t>() + i * g.n;
            std::fill(y, y + g.n, 0);
            for (int64_t k = 0; k < g.k; ++k)
              plan.simd->loops<QuantizeLoops>().multiply_add[plan.b_signed ? 0 : 1](
                  y, b + k * g.n, byte_at(a, plan.a_signed, k) - za, g.n);
            if (!plan.has_b_zero) continue;
            const int32_t a_sum = plan.simd->loops<QuantizeLoops>().sum_row[plan.a_signed ? 0 : 1](a, g.k) -
                                  static_cast<int32_t>(g.k) * za;
            const int32_t* b_zeros = zeros + g.operand_index(plan.b_zero.batch, batch) * g.n;
            plan.simd->loops<QuantizeLoops>().combine_integers(y, b_zeros, -a_sum, b_zeros, 0, g.n);
          }
        });
      },
      requirements);
}

Status supports_own(const CpuDevice&, const NodeView& node) {
  if (node.output(0).elements() == 0 || node.input(0).elements() == 0 || node.input(1).elements() == 0)
    return unsupported("empty operands: nothing to compute");
  return {};
}

/// Matrices of b packed one after the other, and their columns' sums.
void pack_matrices(const IntegerBlocks& blocks, const MatMulGeometry& g, const void* b_bytes,
                   void* to) noexcept {
  for (int64_t matrix = 0; matrix < g.b_batch.elements(); ++matrix) {
    const auto* b = static_cast<const uint8_t*>(b_bytes) + matrix * g.k * g.n;
    blocks.pack(static_cast<uint8_t*>(to) + matrix * blocks.packed(),
                [&](int64_t column, int64_t k0, int64_t steps, uint8_t* part) noexcept {
                  for (int64_t i = 0; i < steps; ++i) part[i] = b[(k0 + i) * g.n + column];
                });
  }
}

Result<KernelPtr> create_own_matmul(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry geometry, matmul_geometry(node.shape(0), node.shape(1), {}));
  MatMulPlan plan(device, node, geometry);
  const bool one_weight = geometry.b_batch.elements() == 1 &&
                          geometry.a_batch.elements() == geometry.batch.elements() &&
                          plan.b_zero.matrices() == 1;  // for all batches: their rows form one GEMM
  const int64_t batches = geometry.batch.elements(), products = one_weight ? 1 : batches;
  const IntegerBlocks blocks(device.simd(), batches / products * geometry.m, geometry.n, geometry.k,
                             plan.a_signed, plan.b_signed);
  plan.b_shift = blocks.b_shift();
  const size_t zeros_bytes = (plan.zeros_count() * sizeof(int32_t) + 63) / 64 * 64;
  Requirements requirements;
  requirements.scratch = zeros_bytes + static_cast<size_t>(device.info().threads * blocks.workspace());
  const PackedOperand b(node.inputs[1].value,
                        static_cast<size_t>(geometry.b_batch.elements() * blocks.packed()),
                        0x6d6d693800ull + (plan.b_signed ? 1 : 0), 1, requirements);
  auto body = [=](const Call& call) noexcept {
    const MatMulGeometry& g = plan.g;
    auto* const zeros = call.scratch<int32_t>();
    plan.column_zeros(call.in<std::byte>(3), zeros);
    const auto* const packed = reinterpret_cast<const uint8_t*>(
        b.panels(call, [&](float* to) noexcept { pack_matrices(blocks, g, call.in<std::byte>(1), to); }));
    const auto matrix = [&](int64_t product) {
      return packed + g.operand_index(g.b_batch, product) * blocks.packed();
    };
    multiply_integers(
        blocks, products, plan.shifted(),
        [&](int64_t product, int64_t row, uint8_t* copied) noexcept {
          const int64_t first = one_weight ? 0 : g.operand_index(g.a_batch, product) * g.m;
          return blocks.row(call.in<uint8_t>(0) + (first + row) * g.k, copied);
        },
        matrix, [&](int64_t product) noexcept { return call.out<int32_t>() + product * g.m * g.n; }, g.n,
        [&](int64_t product, Range rows, Range columns, const int32_t* sums, const IntegerBlock& y) noexcept {
          const auto* b_sums = reinterpret_cast<const int32_t*>(matrix(product) + blocks.sums_at());
          for (int64_t row = rows.begin; row < rows.end; ++row) {
            const int64_t batch = one_weight ? row / g.m : product;
            const int32_t za =
                plan.row_zero(call.in<std::byte>(2), batch, one_weight ? row % g.m : row) - blocks.a_shift();
            if (za == 0 && !plan.shifted()) continue;
            const int64_t at = row - rows.begin;
            blocks.correct_row(y.at + at * y.stride, b_sums + columns.begin,
                               zeros + g.operand_index(plan.b_zero.batch, product) * g.n + columns.begin, za,
                               plan.shifted() ? sums[at] : 0, columns.end - columns.begin);
          }
        },
        call.scratch<uint8_t>() + zeros_bytes);
  };
  return make_packing_kernel(
      device, [=](float* to) noexcept { pack_matrices(blocks, plan.g, b.constant, to); }, std::move(body),
      requirements);
}

// --- ConvInteger

Result<ConvGeometry> conv_of(const NodeView& node) {
  RT_ASSIGN(const ConvGeometry whole,
            conv_geometry(node.shape(0), node.shape(1), as_conv(node.as<op::ConvIntegerAttributes>())));
  return without_unit_axes(whole);
}

int64_t window_elements(const ConvGeometry& g) noexcept {
  return g.input_channels_per_group() * points_of(g, &WindowAxis::kernel);
}

/// Whether input i is known to be zero, or absent.
bool known_zero(const NodeView& node, size_t i) {
  if (!node.has(i)) return true;
  const auto* value = static_cast<const std::byte*>(node.inputs[i].value);
  return value != nullptr && std::all_of(value, value + node.input(i).bytes(),
                                         [](std::byte byte) { return byte == std::byte{0}; });
}

/// y -= zx sum w + zw (sum x - K zx), the padding counted as zx.
struct ConvFinish {
  ConvGeometry g;
  bool x_signed, weight_signed, has_x_zero, has_weight_zero, shared_weight_zero;
  int32_t shift;
  bool sums_windows;
  const Simd* simd;
  std::vector<int32_t> weight_sums;  ///< of a constant weight

  void sum_weights(const std::byte* weight, int32_t* sums) const noexcept {
    const int64_t count = window_elements(g);
    for (int64_t o = 0; o < g.output_channels; ++o)
      sums[o] = simd->loops<QuantizeLoops>().sum_row[weight_signed ? 0 : 1](weight + o * count, count) -
                shift * static_cast<int32_t>(count);
  }
  /// Overwrites `added` and `zeros`; `added` may be `w_sums`.
  void correct_pixels(int32_t* y, const int32_t* w_sums, int32_t* added, int32_t* zeros,
                      const int32_t* windows, int32_t zx) const noexcept {
    const auto offset = static_cast<uint32_t>(window_elements(g) * zx);
    for (int64_t o = 0; o < g.output_channels; ++o) {
      const auto zero = static_cast<uint32_t>(zeros[o]);
      const uint32_t product = has_x_zero ? static_cast<uint32_t>(zx) * static_cast<uint32_t>(w_sums[o]) : 0;
      added[o] = static_cast<int32_t>(offset * zero - product);
      zeros[o] = static_cast<int32_t>(0 - zero);
    }
    const int64_t channels = g.output_channels, pixels = g.output_shape().elements() / channels;
    parallel_for(pixels, channels, 1, [&](int64_t begin, int64_t end) noexcept {
      simd->loops<QuantizeLoops>().add_outer(y + begin * channels, added, zeros, windows + begin, end - begin,
                                             channels);
    });
  }
  /// places: the result, two rows of [O], window sums, x, weight, [x_zero], [weight_zero].
  void operator()(std::byte* const* buffers) const {
    auto* y = reinterpret_cast<int32_t*>(buffers[0]);
    auto* sums = reinterpret_cast<int32_t*>(buffers[1]);
    int32_t* zeros = sums + g.output_channels;
    const auto* windows = reinterpret_cast<const int32_t*>(buffers[2]);
    const int32_t zx = has_x_zero ? byte_at(buffers[5], x_signed, 0) : 0;
    if (has_x_zero && weight_sums.empty()) sum_weights(buffers[4], sums);
    const int32_t* w_sums = weight_sums.empty() ? sums : weight_sums.data();
    for (int64_t o = 0; o < g.output_channels; ++o)
      zeros[o] =
          (has_weight_zero ? byte_at(buffers[6], weight_signed, shared_weight_zero ? 0 : o) : 0) - shift;
    if (g.groups == 1 && sums_windows) return correct_pixels(y, w_sums, sums, zeros, windows, zx);
    const int64_t channels = g.output_channels_per_group();
    const int64_t pixels = g.output_shape().elements() / std::max<int64_t>(g.output_channels, 1);
    const auto offset = static_cast<int32_t>(window_elements(g)) * zx;
    parallel_for(pixels, g.output_channels, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t group = 0; group < g.groups; ++group) {
          int32_t* row = y + i * g.output_channels + group * channels;
          const int32_t x_sum = sums_windows ? windows[i * g.groups + group] - offset : 0;
          simd->loops<QuantizeLoops>().combine_integers(row, has_x_zero ? w_sums + group * channels : row,
                                                        -zx, zeros + group * channels, -x_sum, channels);
        }
    });
  }
};

Status supports_exact_conv(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_exact(device, node));
  RT_ASSIGN(const ConvGeometry g, conv_of(node));
  return onednn::usable_for(g);
}

Result<KernelPtr> create_conv(CpuDevice& device, const NodeView& node, Producers) {
  onednn::IntegerConvolution convolution;
  RT_ASSIGN(convolution.geometry, conv_of(node));
  const ConvGeometry& g = convolution.geometry;
  convolution.x_signed = is_signed(node, 0);
  convolution.weight_signed = is_signed(node, 1);
  convolution.constant_weight = node.inputs[1].value;
  convolution.inputs = node.input_count();
  ConvFinish finish{.g = g,
                    .x_signed = convolution.x_signed,
                    .weight_signed = convolution.weight_signed,
                    .has_x_zero = !known_zero(node, 2),
                    .has_weight_zero = !known_zero(node, 3),
                    .shared_weight_zero = node.has(3) && node.input(3).elements() == 1,
                    .shift = convolution.weight_signed ? 0 : 128,
                    .sums_windows = false,
                    .simd = &device.simd(),
                    .weight_sums = {}};
  finish.sums_windows = convolution.window_sums = finish.has_weight_zero || finish.shift != 0;
  convolution.pad_with_zero_point = finish.has_x_zero && g.is_padded();
  if (finish.has_x_zero && convolution.constant_weight != nullptr) {
    finish.weight_sums.resize(static_cast<size_t>(g.output_channels));
    finish.sum_weights(static_cast<const std::byte*>(convolution.constant_weight), finish.weight_sums.data());
  }
  if (finish.has_x_zero || finish.sums_windows) {
    convolution.finish.scratch = 2 * static_cast<size_t>(g.output_channels) * sizeof(int32_t);
    convolution.finish.function = std::move(finish);
  }
  return onednn::make_convolution_integer(device, convolution);
}

/// Computes the accumulators of one window, one output channel after the other.
struct PlainConv {
  ConvGeometry g;
  bool x_signed, weight_signed, has_x_zero, has_weight_zero, shared_weight_zero;
  int32_t (*dot)(const void*, const void*, int32_t, int32_t, int64_t);

  void window(const Call& call, int64_t pixel) const noexcept {
    std::array<int64_t, kMaxSpatialRank> out{}, extent{1, 1, 1};
    int64_t rest = pixel, taps = 1, positions = 1;
    for (int i = g.rank - 1; i >= 0; --i) {
      const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
      out[static_cast<size_t>(i)] = rest % axis.output;
      rest /= axis.output;
      extent[static_cast<size_t>(i)] = axis.kernel;
      taps *= axis.kernel;
      positions *= axis.input;
    }
    const int64_t c = g.input_channels_per_group(), channels = g.output_channels_per_group();
    const int32_t zx = has_x_zero ? byte_at(call.in<std::byte>(2), x_signed, 0) : 0;
    int32_t* y = call.out<int32_t>() + pixel * g.output_channels;
    std::fill(y, y + g.output_channels, 0);
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t position = 0, left = tap, step = 1;
      bool inside = true;
      for (int i = g.rank - 1; i >= 0; --i) {
        const auto k = static_cast<size_t>(i);
        const int64_t at = g.axes[k].position(out[k], left % extent[k]);
        left /= extent[k];
        inside = inside && at >= 0 && at < g.axes[k].input;
        position += at * step;
        step *= g.axes[k].input;
      }
      if (!inside) continue;
      const auto* x = call.in<std::byte>(0) + (rest * positions + position) * g.input_channels;
      for (int64_t o = 0; o < g.output_channels; ++o) {
        const int32_t zw =
            has_weight_zero ? byte_at(call.in<std::byte>(3), weight_signed, shared_weight_zero ? 0 : o) : 0;
        const int32_t part =
            dot(x + o / channels * c, call.in<std::byte>(1) + (o * taps + tap) * c, zx, zw, c);
        y[o] = static_cast<int32_t>(static_cast<uint32_t>(y[o]) + static_cast<uint32_t>(part));
      }
    }
  }
};

Result<KernelPtr> create_plain_conv(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const ConvGeometry g, conv_of(node));
  const PlainConv conv{g,
                       is_signed(node, 0),
                       is_signed(node, 1),
                       node.has(2),
                       node.has(3),
                       node.has(3) && node.input(3).elements() == 1,
                       device.simd().loops<QuantizeLoops>().dot[table_index(node, 0)][table_index(node, 1)]};
  const int64_t pixels = g.output_channels == 0 ? 0 : g.output_shape().elements() / g.output_channels;
  return make_kernel([=](const Call& call) noexcept {
    parallel_for(pixels, window_elements(g) * g.output_channels, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) conv.window(call, i);
    });
  });
}

Status supports_own_conv(const CpuDevice&, const NodeView& node) {
  RT_ASSIGN(const ConvGeometry g, conv_of(node));
  if (window_elements(g) == 0 || node.output(0).elements() == 0 || node.input(0).elements() == 0)
    return unsupported("empty convolution: nothing to compute");
  return {};
}

Result<KernelPtr> create_own_conv(CpuDevice& device, const NodeView& node, Producers) {
  IntegerConv conv;
  RT_ASSIGN(conv.g, conv_of(node));
  conv.x_signed = is_signed(node, 0);
  conv.weight_signed = is_signed(node, 1);
  conv.has_x_zero = node.has(2);
  conv.has_weight_zero = node.has(3);
  conv.shared_weight_zero = node.has(3) && node.input(3).elements() == 1;
  conv.constant_weight = node.inputs[1].value;
  return make_conv_integer_gemm(device, conv);
}

}  // namespace

std::span<const KernelRow> rows_integer_matmul();
std::span<const KernelRow> rows_integer_matmul() {
  constexpr DTypeSet kBytes{DType::U8, DType::I8};
  static constexpr KernelRow kRows[] = {
      row<create_matmul, supports_exact>(OpKind::MatMulInteger, "matmul_integer", kBytes, 10),
      row<create_own_matmul, supports_own>(OpKind::MatMulInteger, "matmul_integer.gemm", kBytes,
                                           kOwnPriority),
      row<create_plain_matmul>(OpKind::MatMulInteger, "matmul_integer.plain", kBytes, -10),
      row<create_conv, supports_exact_conv>(OpKind::ConvInteger, "conv_integer", kBytes, 10),
      row<create_own_conv, supports_own_conv>(OpKind::ConvInteger, "conv_integer.gemm", kBytes, kOwnPriority),
      row<create_plain_conv>(OpKind::ConvInteger, "conv_integer.plain", kBytes, -10),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
