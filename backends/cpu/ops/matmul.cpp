// MatMul: oneDNN for f32 and bf16, or our own GEMM; vector loops (GEMV) for single rows, tiles for f64, plain
// loops for everything else.
#include "runtime/geometry/matmul.h"

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/simd/binary.h"
#include "backends/cpu/simd/matmul.h"
#include "backends/cpu/simd/wide_matmul.h"
#include "backends/cpu/support/element_types.h"
#include "backends/cpu/support/epilogue.h"
#include "backends/cpu/support/matmul_gemm.h"
#include "backends/cpu/support/own_rows.h"
#include "backends/cpu/support/packing_kernel.h"

namespace librt::cpu {
namespace {

const op::EpilogueAttributes* epilogue_of(const NodeView& node) {
  return node.as<op::MatMulAttributes>().epilogue.get();
}

Result<MatMulGeometry> geometry_of(const NodeView& node) {
  return matmul_geometry(node.shape(0), node.shape(1), node.as<op::MatMulAttributes>());
}

Status supports_gemm(const CpuDevice&, const NodeView& node) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  if (g.result.elements() == 0 || g.k == 0) return unsupported("empty matmul: nothing to compute");
  return {};
}

Status supports(const CpuDevice& device, const NodeView& node) {
  RT_TRY(onednn::usable());
  return supports_gemm(device, node);
}

/// A bias that oneDNN adds: one value per column.
bool is_row_bias(const NodeView& node, const MatMulGeometry& g, int bias) {
  if (bias < 0) return true;
  const auto i = static_cast<size_t>(bias);
  return node.input(i).elements() == g.n && (g.n == 1 || node.shape(i).back() == g.n);
}

Status supports_bf16(const CpuDevice& device, const NodeView& node) {
  RT_TRY(onednn::usable());
  if (!onednn::has_bf16()) return unsupported("this CPU has no bf16 matmul instructions");
  RT_TRY(supports(device, node));
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  if (!is_row_bias(node, g, epilogue_inputs<op::MatMulAttributes>(node).bias))
    return unsupported("in bf16, the bias must have one value per column");
  return {};
}

std::vector<int64_t> padded(const Shape& batch, int rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank - batch.rank()), 1);
  dims.insert(dims.end(), batch.begin(), batch.end());
  return dims;
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  onednn::MatMul matmul;
  matmul.dtype = node.dtype(0);
  matmul.m = g.m;
  matmul.k = g.k;
  matmul.n = g.n;
  matmul.a = {padded(g.a_batch, g.batch.rank()), g.transpose_a, nullptr};
  matmul.b = {padded(g.b_batch, g.batch.rank()), g.transpose_b, nullptr};
  matmul.batch = padded(g.batch, g.batch.rank());
  if (g.b_batch.elements() == 1 && !g.transpose_a && g.a_batch.elements() == g.batch.elements()) {
    matmul.m *= g.batch.elements();  // one weight for all batches: their rows form one GEMM
    matmul.a.batch.clear();
    matmul.b.batch.clear();
    matmul.batch.clear();
  }
  if (matmul.batch.empty()) matmul.b.constant = node.inputs[1].value;
  const EpilogueInputs inputs = epilogue_inputs<op::MatMulAttributes>(node);
  if (const auto* epilogue = epilogue_of(node)) {
    if (is_row_bias(node, g, inputs.bias))
      matmul.epilogue = {epilogue->activation, epilogue->alpha, epilogue->beta, inputs.bias, inputs.residual};
    else
      matmul.finish = onednn::LateEpilogue{
          Finish(device.simd(), g.result, epilogue, node.shape(static_cast<size_t>(inputs.bias))), inputs};
  }
  return onednn::make_matmul(device, matmul);
}

// --- GEMV, one row times a matrix: a language model's decode step

/// Columns that a thread takes at a time.
constexpr int64_t kColumns = 64;

/// A matrix that is too large for the caches, [k,n]: threads split its rows, so that each reads memory in
/// order, and the sums over their slices are added afterwards. The slices depend on the shape alone, so that
/// results do not depend on threads.
struct Slices {
  int64_t count = 0;  ///< of rows; 0: the matrix is not split by rows

  explicit Slices(const MatMulGeometry& g) noexcept {
    if (g.transpose_b || g.batch.elements() != 1 || g.k * g.n <= MatMulLoops::kCached || g.n < kColumns)
      return;
    // Some 128K elements for each, as many on two, four or eight threads.
    const int64_t stretch = std::min(g.n, MatMulLoops::kStretch);
    count = std::max<int64_t>(1, std::min((g.k * stretch / (1 << 17) + 7) / 8 * 8, g.k / 8));
  }
  size_t bytes(const MatMulGeometry& g) const noexcept {
    return static_cast<size_t>(count * g.n) * sizeof(float);
  }
};

void multiply_slices(const MatMulLoops& loops, const BinaryLoops::Binary add, const MatMulGeometry& g,
                     const Slices& slices, const float* a, const float* b, float* y, float* sums) noexcept {
  const int64_t stretches = (g.n + MatMulLoops::kStretch - 1) / MatMulLoops::kStretch;
  const int64_t columns = std::min(g.n, MatMulLoops::kStretch);
  parallel_for(stretches * slices.count, g.k / slices.count * columns / 8, 1,
               [&](int64_t begin, int64_t end) noexcept {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t slice = i % slices.count, first = i / slices.count * MatMulLoops::kStretch;
                   const Range rows = part_of(g.k, slice, slices.count);
                   loops.vector_rows(a + rows.begin, b + rows.begin * g.n + first, g.n,
                                     sums + slice * g.n + first, rows.end - rows.begin,
                                     std::min(MatMulLoops::kStretch, g.n - first));
                 }
               });
  parallel_for(g.n, slices.count, kColumns, [&](int64_t begin, int64_t end) noexcept {
    std::copy(sums + begin, sums + end, y + begin);
    for (int64_t slice = 1; slice < slices.count; ++slice)
      add(y + begin, sums + slice * g.n + begin, y + begin, end - begin);
  });
}

/// Each matrix of b is read for one row of a, so a library's packing and its call cost more than they gain.
Status supports_row(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_gemm(device, node));
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  const int64_t rows = g.m * g.batch.elements() / g.b_batch.elements();
  return rows == 1 ? Status() : unsupported("each matrix of B serves ", rows, " rows, not one");
}

Result<KernelPtr> create_row(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  const EpilogueInputs inputs = epilogue_inputs<op::MatMulAttributes>(node);
  const Shape bias = inputs.bias >= 0 ? node.shape(static_cast<size_t>(inputs.bias)) : Shape{};
  const Finish finish(device.simd(), g.result, epilogue_of(node), bias);
  const auto finish_at = [=](const Call& call) noexcept {
    finish.run(call.out<float>(),
               inputs.bias >= 0 ? call.in<float>(static_cast<size_t>(inputs.bias)) : nullptr,
               inputs.residual >= 0 ? call.in<float>(static_cast<size_t>(inputs.residual)) : nullptr);
  };
  const MatMulLoops& loops = device.simd().loops<MatMulLoops>();
  if (const Slices slices(g); slices.count > 0) {
    const auto add = device.simd().loops<BinaryLoops>().binary[static_cast<int>(BinaryFunction::Add)]
                                                              [static_cast<int>(Advance::Both)];
    Requirements requirements;
    requirements.scratch = slices.bytes(g);
    return make_kernel(
        [=, &loops](const Call& call) noexcept {
          multiply_slices(loops, add, g, slices, call.in<float>(0), call.in<float>(1), call.out<float>(),
                          call.scratch<float>());
          finish_at(call);
        },
        requirements);
  }
  return make_kernel([=, &loops](const Call& call) noexcept {
    const auto *a = call.in<float>(0), *b = call.in<float>(1);
    auto* y = call.out<float>();
    const int64_t blocks = (g.n + kColumns - 1) / kColumns;
    // A vector instruction multiplies eight or more.
    parallel_for(g.batch.elements() * blocks, g.k * kColumns / 8, 1,
                 [&](int64_t begin, int64_t end) noexcept {
                   while (begin < end) {
                     const int64_t batch = begin / blocks, first = begin % blocks * kColumns;
                     const int64_t last = std::min(g.n, (std::min(end - batch * blocks, blocks)) * kColumns);
                     const float* row = a + g.operand_index(g.a_batch, batch) * g.k;
                     const float* matrix = b + g.operand_index(g.b_batch, batch) * g.k * g.n;
                     float* result = y + batch * g.n + first;
                     if (g.transpose_b)
                       loops.matrix_vector(matrix + first * g.k, g.k, row, result, last - first, g.k);
                     else
                       loops.vector_matrix(row, matrix + first, g.n, result, g.k, last - first);
                     begin = std::min(end, (batch + 1) * blocks);
                   }
                 });
    finish_at(call);
  });
}

// --- our own GEMM

Result<KernelPtr> create_gemm(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  const EpilogueInputs inputs = epilogue_inputs<op::MatMulAttributes>(node);
  const Shape bias = inputs.bias >= 0 ? node.shape(static_cast<size_t>(inputs.bias)) : Shape{};
  const Finish finish(device.simd(), g.result, epilogue_of(node), bias);
  return make_matmul_gemm(device, g, node.inputs[1].value, finish, inputs);
}

// --- plain loops

/// y[i] = sum over k of a[i, k] b[k, :], row by row; unsigned arithmetic, so that integers wrap.
template <class T>
void matmul_rows(const MatMulGeometry& g, const std::byte* a_bytes, const std::byte* b_bytes,
                 std::byte* y_bytes, int64_t begin, int64_t end) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  const auto *a = reinterpret_cast<const T*>(a_bytes), *b = reinterpret_cast<const T*>(b_bytes);
  auto* y = reinterpret_cast<T*>(y_bytes);
  const int64_t a_row = g.transpose_a ? 1 : g.k, a_step = g.transpose_a ? g.m : 1;
  const int64_t b_row = g.transpose_b ? 1 : g.n, b_step = g.transpose_b ? g.k : 1;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t batch = row / g.m;
    const T* from_a = a + g.operand_index(g.a_batch, batch) * g.m * g.k + row % g.m * a_row;
    const T* from_b = b + g.operand_index(g.b_batch, batch) * g.k * g.n;
    for (int64_t j = 0; j < g.n; ++j) {
      Sum sum = 0;
      for (int64_t k = 0; k < g.k; ++k)
        sum += static_cast<Sum>(from_a[k * a_step]) * static_cast<Sum>(from_b[k * b_row + j * b_step]);
      y[row * g.n + j] = static_cast<T>(sum);
    }
  }
}

template <class T>
void finish_plain(const BroadcastPlan<2>& plan, const op::EpilogueAttributes& epilogue, std::byte* y_bytes,
                  const std::byte* bias_bytes, const std::byte* residual_bytes, int64_t n) {
  auto* y = reinterpret_cast<T*>(y_bytes);
  const auto *bias = reinterpret_cast<const T*>(bias_bytes),
             *residual = reinterpret_cast<const T*>(residual_bytes);
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  if (bias != nullptr)
    for_each_run(plan, 0, n, [&](int64_t first, const std::array<int64_t, 2>& offset, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        y[first + i] = static_cast<T>(static_cast<Sum>(y[first + i]) +
                                      static_cast<Sum>(bias[offset[1] + i * plan.inner_stride(1)]));
    });
  if (residual == nullptr && epilogue.activation == op::Activation::None) return;
  const auto low = static_cast<double>(epilogue.alpha), high = static_cast<double>(epilogue.beta);
  for (int64_t i = 0; i < n; ++i) {
    if (residual != nullptr) y[i] = static_cast<T>(static_cast<Sum>(y[i]) + static_cast<Sum>(residual[i]));
    if (epilogue.activation == op::Activation::Relu && y[i] < T{0}) y[i] = 0;
    if (epilogue.activation == op::Activation::Clip) {
      const auto value = static_cast<double>(y[i]);
      if (value < low) y[i] = narrow<T>(low);
      if (value > high) y[i] = narrow<T>(high);
    }
  }
}

/// Matmuls of f64: b in panels of columns, tiles of the result in registers.
struct WideMatMul {
  const WideMatMulLoops& loops;
  MatMulGeometry g;

  int64_t panels() const { return (g.n + loops.columns - 1) / loops.columns; }
  int64_t matrix() const { return panels() * g.k * loops.columns; }
  size_t packed_bytes() const {
    return static_cast<size_t>(g.b_batch.elements() * matrix()) * sizeof(double);
  }

  /// Panels [k, columns] of each matrix, with zeros after its last column.
  void pack(const double* b, double* to) const noexcept {
    const int64_t row = g.transpose_b ? 1 : g.n, step = g.transpose_b ? g.k : 1, width = loops.columns;
    parallel_for(g.b_batch.elements() * panels(), g.k * width, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % panels() * width, count = std::min(width, g.n - first);
        const double* const from = b + i / panels() * g.k * g.n + first * step;
        double* panel = to + i * g.k * width;
        for (int64_t k = 0; k < g.k; ++k, panel += width)
          for (int64_t j = 0; j < width; ++j) panel[j] = j < count ? from[k * row + j * step] : 0;
      }
    });
  }

  void run(const double* a, const double* packed, double* y) const noexcept {
    constexpr int64_t kBlockRows = 64, kBlockPanels = 8;
    const int64_t a_row = g.transpose_a ? 1 : g.k, a_step = g.transpose_a ? g.m : 1;
    const int64_t row_blocks = (g.m + kBlockRows - 1) / kBlockRows;
    const int64_t panel_blocks = (panels() + kBlockPanels - 1) / kBlockPanels;
    const int64_t blocks = g.batch.elements() * row_blocks * panel_blocks;
    const int64_t work =
        g.k * std::min(g.m, kBlockRows) * std::min(g.n, kBlockPanels * loops.columns) / loops.columns;
    parallel_for(blocks, work, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t matrix_index = i / (row_blocks * panel_blocks);
        const double* const from_a = a + g.operand_index(g.a_batch, matrix_index) * g.m * g.k;
        const double* const from_b = packed + g.operand_index(g.b_batch, matrix_index) * matrix();
        double* const to = y + matrix_index * g.m * g.n;
        const int64_t first = i / panel_blocks % row_blocks * kBlockRows,
                      last = std::min(g.m, first + kBlockRows);
        const int64_t panel = i % panel_blocks * kBlockPanels,
                      end_panel = std::min(panels(), panel + kBlockPanels);
        // So many steps that a tile's rows and columns stay in L1.
        constexpr int64_t kSteps = 256;
        for (int64_t k = 0; k < g.k; k += kSteps)
          for (int64_t p = panel; p < end_panel; ++p)
            for (int64_t row = first; row < last; row += loops.rows)
              loops.tile(from_a + row * a_row + k * a_step, a_row, a_step,
                         from_b + (p * g.k + k) * loops.columns, std::min(kSteps, g.k - k),
                         to + row * g.n + p * loops.columns, g.n, std::min(loops.rows, last - row),
                         std::min(loops.columns, g.n - p * loops.columns), k > 0);
      }
    });
  }
};

Status supports_plain(const CpuDevice&, const NodeView& node) {
  const auto* epilogue = epilogue_of(node);
  if (epilogue == nullptr || node.dtype(0) == DType::F32 || epilogue->activation == op::Activation::None ||
      epilogue->activation == op::Activation::Relu || epilogue->activation == op::Activation::Clip)
    return {};
  return unsupported("no fused ", op::EnumNameActivation(epilogue->activation), " of ",
                     name_of(node.dtype(0)));
}

/// Adds bias and residual and applies the activation, after a matmul in plain loops: ending(call).
auto plain_ending(const CpuDevice& device, const NodeView& node, const MatMulGeometry& g) {
  const DType dtype = node.dtype(0);
  using Ending = decltype(&finish_plain<float>);
  const Ending ending =
      with_number(dtype, [](auto tag) -> Ending { return &finish_plain<typename decltype(tag)::type>; });
  const EpilogueInputs inputs = epilogue_inputs<op::MatMulAttributes>(node);
  const Shape bias_shape = inputs.bias >= 0 ? node.shape(static_cast<size_t>(inputs.bias)) : Shape{};
  const op::EpilogueAttributes epilogue =
      epilogue_of(node) != nullptr ? *epilogue_of(node) : op::EpilogueAttributes{};
  const Finish finish(device.simd(), g.result, epilogue_of(node), bias_shape);
  const auto plan = broadcast_plan<2>(g.result, {g.result, bias_shape});
  return [=, n = g.result.elements()](const Call& call) noexcept {
    const auto* bias = inputs.bias >= 0 ? call.in<std::byte>(static_cast<size_t>(inputs.bias)) : nullptr;
    const auto* residual =
        inputs.residual >= 0 ? call.in<std::byte>(static_cast<size_t>(inputs.residual)) : nullptr;
    if (dtype == DType::F32)
      finish.run(call.out<float>(), reinterpret_cast<const float*>(bias),
                 reinterpret_cast<const float*>(residual));
    else
      ending(plan, epilogue, call.out<std::byte>(), bias, residual, n);
  };
}

Result<KernelPtr> create_plain(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  using Rows = decltype(&matmul_rows<float>);
  const Rows rows =
      with_number(node.dtype(0), [](auto tag) -> Rows { return &matmul_rows<typename decltype(tag)::type>; });
  return make_kernel([=, ending = plain_ending(device, node, g)](const Call& call) noexcept {
    parallel_for(g.n == 0 ? 0 : g.result.elements() / g.n, g.k * g.n, 1,
                 [&](int64_t begin, int64_t end) noexcept {
                   rows(g, call.in<std::byte>(0), call.in<std::byte>(1), call.out<std::byte>(), begin, end);
                 });
    ending(call);
  });
}

Status supports_wide(const CpuDevice& device, const NodeView& node) {
  RT_TRY(supports_gemm(device, node));
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  constexpr size_t kMostPadding = size_t{64} << 20;  // of the last panel's columns
  const size_t packed = WideMatMul{device.simd().loops<WideMatMulLoops>(), g}.packed_bytes();
  if (packed > 2 * node.input(1).bytes() + kMostPadding)
    return unsupported("few columns of a large matrix: panels would take ", packed, " bytes");
  return supports_plain(device, node);
}

Result<KernelPtr> create_wide(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const MatMulGeometry g, geometry_of(node));
  const WideMatMul wide{device.simd().loops<WideMatMulLoops>(), g};
  const auto* const b = static_cast<const double*>(node.inputs[1].value);
  constexpr uint64_t kKey = 0x6d6d36340;
  Requirements requirements;
  const PackedOperand operand(b, wide.packed_bytes(), kKey + (g.transpose_b ? 1 : 0), 1, requirements);
  return make_packing_kernel(
      device, [=](float* to) noexcept { wide.pack(b, reinterpret_cast<double*>(to)); },
      [=, ending = plain_ending(device, node, g)](const Call& call) noexcept {
        const float* const packed = operand.panels(
            call, [&](float* to) noexcept { wide.pack(call.in<double>(1), reinterpret_cast<double*>(to)); });
        wide.run(call.in<double>(0), reinterpret_cast<const double*>(packed), call.out<double>());
        ending(call);
      },
      requirements);
}

template <bool kOwnLast>
constexpr KernelRow kRowsOfMatMul[] = {
    row<create_row, supports_row>(OpKind::MatMul, "matmul.row", DTypeSet{DType::F32}, 20),
    row<create, supports>(OpKind::MatMul, "matmul", DTypeSet{DType::F32}, 10),
    row<create, supports_bf16>(OpKind::MatMul, "matmul.bf16", DTypeSet{DType::BF16}, 10),
    row<create_gemm, supports_gemm>(OpKind::MatMul, "matmul.gemm", DTypeSet{DType::F32}, kOwnLast ? -5 : 9),
    row<create_wide, supports_wide>(OpKind::MatMul, "matmul.f64", DTypeSet{DType::F64}),
    row<create_plain, supports_plain>(OpKind::MatMul, "matmul.plain", kNativeNumericTypes, -10),
};

}  // namespace

std::span<const KernelRow> rows_matmul();
std::span<const KernelRow> rows_matmul() {
  return own_rows_last() ? rows_in_build<kRowsOfMatMul<true>>() : rows_in_build<kRowsOfMatMul<false>>();
}

}  // namespace librt::cpu
