// Reductions over any axes, ArgMax and ArgMin.
//
// 32- and 16-bit floats are reduced in f32: where the innermost dimension is reduced, each result combines
// row reductions; where it is kept, rows are accumulated into the result. Few results from many elements are
// split along the outermost reduced dimension into parts, whose partial results are kept in scratch and
// combined in order.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/reduce.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/support/axis_walk.h"
#include "backends/cpu/support/element_types.h"
#include "backends/cpu/support/widen_blocks.h"
#include "runtime/geometry/reduction.h"

namespace librt::cpu {
namespace {

struct ReduceParameters {
  ReduceFunction function;
  bool mean = false;
};

float neutral_of(ReduceFunction function) noexcept {
  switch (function) {
    case ReduceFunction::Max: return -std::numeric_limits<float>::infinity();
    case ReduceFunction::Min: return std::numeric_limits<float>::infinity();
    case ReduceFunction::Prod: return 1;
    default: return 0;
  }
}

/// One reduction of f32, f16 or bf16: writes the f32 results of kept indices [begin, end), reduced over the
/// outer range [first, last).
class FloatReduction {
 public:
  FloatReduction(const Simd& simd, DType dtype, const ReductionPlan& plan, ReduceFunction function)
      : simd_(&simd),
        dtype_(dtype),
        plan_(plan),
        row_(simd.loops<ReduceLoops>().reduce_row[static_cast<int>(function)]),
        accumulate_(simd.loops<RowLoops>().accumulate[static_cast<int>(function)]),
        neutral_(neutral_of(function)) {
    const int reduced = plan.reduced_rank, kept = plan.kept_rank;
    inner_ = plan.inner_reduced ? (reduced > 0 ? plan.reduced[static_cast<size_t>(reduced - 1)] : 1)
                                : plan.kept[static_cast<size_t>(kept - 1)];
    rows_ = plan.inner_reduced ? plan.count / std::max<int64_t>(inner_, 1) : plan.count;
    if (plan.count == 0) rows_ = 0;
    const bool matrix = reduced == 1 && kept == 1;
    short_rows_ = matrix && plan.inner_reduced && inner_ <= kShortRow && plan.kept_stride[0] == inner_;
    few_columns_ = reduced == 1 && inner_ > 0 && !plan.inner_reduced && inner_ <= kShortRow &&
                   plan.reduced_stride[0] == inner_;
  }
  /// Rows per result, which can be split into parts.
  int64_t rows() const noexcept { return rows_; }
  /// Results are split among threads at multiples of this.
  int64_t unit() const noexcept { return plan_.inner_reduced ? 1 : few_columns_ ? inner_ : 16; }

  void run(const std::byte* x, float* y, int64_t begin, int64_t end, int64_t first,
           int64_t last) const noexcept {
    if (short_rows_ && rows_ == 1)
      run_short_rows(x, y, begin, end);
    else if (few_columns_)
      run_few_columns(x, y, begin, end, first, last);
    else if (plan_.inner_reduced)
      run_rows(x, y, begin, end, first, last);
    else
      run_columns(x, y, begin, end, first, last);
  }
  void combine(float* y, const float* part, int64_t n) const noexcept { accumulate_(y, part, n); }

 private:
  static constexpr int64_t kShortRow = 32, kFolded = 256;

  const std::byte* at(const std::byte* x, int64_t element) const noexcept {
    return x + element * static_cast<int64_t>(size_of(dtype_));
  }
  /// body(f32 elements, from, count) for blocks of x[element..element + n).
  template <class Body>
  void for_blocks(const std::byte* x, int64_t element, int64_t n, const Body& body) const noexcept {
    if (dtype_ == DType::F32) return body(reinterpret_cast<const float*>(x) + element, int64_t{0}, n);
    float wide[kWideBlock];
    for (int64_t i = 0; i < n; i += kWideBlock) {
      const int64_t count = std::min(kWideBlock, n - i);
      widen_block(*simd_, dtype_, reinterpret_cast<const uint16_t*>(at(x, element + i)), wide, count);
      body(wide, i, count);
    }
  }
  void add_row(const std::byte* x, int64_t element, float* y, int64_t n) const noexcept {
    for_blocks(x, element, n, [&](const float* row, int64_t from, int64_t count) noexcept {
      accumulate_(y + from, row, count);
    });
  }

  void run_rows(const std::byte* x, float* y, int64_t begin, int64_t end, int64_t first,
                int64_t last) const noexcept {
    const int outer = std::max(plan_.reduced_rank - 1, 0);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t base = plan_.kept_offset(i, plan_.kept_rank);
      if (rows_ == 1 && dtype_ == DType::F32) {
        y[i] = row_(reinterpret_cast<const float*>(x) + base, inner_);
        continue;
      }
      y[i] = neutral_;
      for (int64_t r = first; r < last; ++r)
        for_blocks(x, base + plan_.reduced_offset(r, outer), inner_,
                   [&](const float* row, int64_t, int64_t count) noexcept {
                     const float part = row_(row, count);
                     accumulate_(y + i, &part, 1);
                   });
    }
  }
  /// Rows shorter than vectors are transposed first.
  void run_short_rows(const std::byte* x, float* y, int64_t begin, int64_t end) const noexcept {
    constexpr int64_t kMostRows = 128;
    const int64_t block = dtype_ == DType::F32 ? kMostRows : std::min(kMostRows, kWideBlock / inner_);
    float columns[kShortRow * kMostRows];
    for (int64_t i = begin; i < end; i += block) {
      const int64_t count = std::min(block, end - i);
      for_blocks(x, i * inner_, count * inner_, [&](const float* rows, int64_t, int64_t) noexcept {
        simd_->loops<TransposeLoops>().transpose[2](rows, inner_, columns, count, count, inner_, false);
      });
      std::fill(y + i, y + i + count, neutral_);
      for (int64_t k = 0; k < inner_; ++k) accumulate_(y + i, columns + k * count, count);
    }
  }
  /// Rows shorter than vectors are accumulated as one longer row, whose halves are combined at the end.
  void run_few_columns(const std::byte* x, float* y, int64_t begin, int64_t end, int64_t first,
                       int64_t last) const noexcept {
    for (int64_t i = begin; i < end; i += inner_) {
      const int64_t base = plan_.kept_offset(i / inner_, plan_.kept_rank - 1);
      int64_t group = std::clamp(last - first, int64_t{1}, kFolded / inner_), row = first;
      float folded[kFolded];
      std::fill(folded, folded + group * inner_, neutral_);
      for (; row < last; row += group)
        add_row(x, base + row * inner_, folded, std::min(group, last - row) * inner_);
      for (; group > 1; group -= group / 2)
        accumulate_(folded, folded + (group - group / 2) * inner_, group / 2 * inner_);
      std::copy(folded, folded + inner_, y + i);
    }
  }
  void run_columns(const std::byte* x, float* y, int64_t begin, int64_t end, int64_t first,
                   int64_t last) const noexcept {
    // Runs of results that share a row, split so that the accumulators stay in L1.
    constexpr int64_t kColumns = 2048;
    for (int64_t i = begin; i < end;) {
      const int64_t row = i / inner_, column = i % inner_;
      const int64_t count = std::min({inner_ - column, end - i, kColumns});
      const int64_t base = plan_.kept_offset(row, plan_.kept_rank - 1) + column;
      std::fill(y + i, y + i + count, neutral_);
      for (int64_t r = first; r < last; ++r)
        add_row(x, base + plan_.reduced_offset(r, plan_.reduced_rank), y + i, count);
      i += count;
    }
  }

  const Simd* simd_;
  DType dtype_;
  ReductionPlan plan_;
  float (*row_)(const float*, int64_t);
  void (*accumulate_)(float*, const float*, int64_t);
  float neutral_;
  int64_t inner_ = 1, rows_ = 1;
  bool short_rows_ = false, few_columns_ = false;
};

/// The number of parts of the reduced range: all threads, when the results alone do not keep them busy.
int parts_for(const ReductionPlan& plan, int64_t rows, int threads) noexcept {
  if (threads <= 1 || plan.outputs * plan.count < kSerialWork * 2) return 1;
  if (plan.outputs >= 4 * threads * (plan.inner_reduced ? 1 : 16) || rows < 2 * threads) return 1;
  return threads;
}

KernelPtr make_float_reduction(const CpuDevice& device, DType dtype, const ReductionPlan& plan,
                               const ReduceParameters& values) {
  const Simd& simd = device.simd();
  const int threads = device.info().threads;
  ReductionPlan whole = plan;
  // One long row: a second, outer dimension can be split into parts.
  if (whole.inner_reduced && whole.reduced_rank == 1 && whole.outputs < 2 * threads &&
      whole.count >= 4 * kSerialWork) {
    constexpr int64_t kPiece = 1024;
    if (whole.reduced[0] % kPiece == 0) {
      whole.reduced = {whole.reduced[0] / kPiece, kPiece};
      whole.reduced_stride = {kPiece, 1};
      whole.reduced_rank = 2;
    }
  }
  const FloatReduction reduction(simd, dtype, whole, values.function);
  const int parts = parts_for(whole, reduction.rows(), threads);
  const float factor = values.mean ? 1.0f / static_cast<float>(plan.count) : 1.0f;
  const bool half = dtype != DType::F32;
  Requirements requirements;
  const int64_t scratch = (parts > 1 ? parts * plan.outputs : 0) + (half ? plan.outputs : 0);
  requirements.scratch = static_cast<size_t>(scratch) * sizeof(float);
  return make_kernel(
      [=, outputs = plan.outputs, count = plan.count, mean = values.mean, &simd](const Call& call) noexcept {
        const auto* x = call.in<std::byte>(0);
        float* partial = call.scratch<float>() + (half ? outputs : 0);
        float* y = half ? call.scratch<float>() : call.out<float>();
        const auto finish = [&](int64_t begin, int64_t end) noexcept {
          if (mean) simd.loops<RowLoops>().scale(y + begin, y + begin, factor, end - begin);
          if (half) narrow_block(simd, dtype, y + begin, call.out<uint16_t>() + begin, end - begin);
        };
        if (parts == 1) {
          parallel_for(outputs, count, reduction.unit(), [&](int64_t begin, int64_t end) noexcept {
            reduction.run(x, y, begin, end, 0, reduction.rows());
            finish(begin, end);
          });
          return;
        }
        parallel_parts(parts, [&](int part) noexcept {
          const Range range = part_of(reduction.rows(), part, parts);
          reduction.run(x, partial + part * outputs, 0, outputs, range.begin, range.end);
        });
        std::copy(partial, partial + outputs, y);
        for (int part = 1; part < parts; ++part) reduction.combine(y, partial + part * outputs, outputs);
        finish(0, outputs);
      },
      requirements);
}

/// One result after the other. T: element type, Total: accumulator type.
template <class T, ReduceFunction kFunction>
struct PlainReduction {
  static constexpr bool kExtreme = kFunction == ReduceFunction::Max || kFunction == ReduceFunction::Min;
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  using Total = std::conditional_t<kExtreme, T, Sum>;

  static constexpr Total neutral() noexcept {
    using Limits = std::numeric_limits<T>;
    if constexpr (kFunction == ReduceFunction::Prod) return 1;
    if constexpr (kFunction == ReduceFunction::Max)
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    if constexpr (kFunction == ReduceFunction::Min)
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    return 0;
  }
  static Total combine(Total total, T x) noexcept {
    if constexpr (kFunction == ReduceFunction::Prod) return total * static_cast<Total>(x);
    if constexpr (kFunction == ReduceFunction::Max) return ((x > total) | (x != x)) ? x : total;
    if constexpr (kFunction == ReduceFunction::Min) return ((x < total) | (x != x)) ? x : total;
    return total + static_cast<Total>(x);
  }
  static Total row(const T* x, int64_t n) noexcept {
    constexpr int64_t kLanes = 64 / sizeof(T);
    Total lane[kLanes], total = neutral();
    for (int64_t k = 0; k < kLanes; ++k) lane[k] = neutral();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
      for (int64_t k = 0; k < kLanes; ++k) lane[k] = combine(lane[k], x[i + k]);
    }
    for (; i < n; ++i) total = combine(total, x[i]);
    for (int64_t k = 0; k < kLanes; ++k) total = merge(total, lane[k]);
    return total;
  }
  static Total merge(Total a, Total b) noexcept {
    if constexpr (kExtreme) return combine(a, b);
    if constexpr (kFunction == ReduceFunction::Prod) return a * b;
    return a + b;
  }

  /// The mean of integers is the truncated quotient of the wrapped sum.
  static T finish(Total total, bool mean, int64_t count) noexcept {
    if constexpr (!kExtreme) {
      if (mean && std::is_floating_point_v<T>) return static_cast<T>(total / static_cast<Total>(count));
      if constexpr (std::is_integral_v<T>) {
        using Exact = decltype(widen(T{}));
        if (mean)
          return static_cast<T>(count == 0 ? Exact{0}
                                           : static_cast<Exact>(total) / static_cast<Exact>(count));
      }
    }
    return static_cast<T>(total);
  }

  static void run(const ReductionPlan& plan, bool mean, const T* x, T* y, int64_t begin,
                  int64_t end) noexcept {
    if (plan.inner_reduced || plan.count == 0) {
      const int outer = std::max(plan.reduced_rank - 1, 0);
      const int64_t inner = plan.reduced_rank > 0 ? plan.reduced[static_cast<size_t>(outer)] : 1;
      const int64_t rows = plan.count == 0 ? 0 : plan.count / inner;
      for (int64_t i = begin; i < end; ++i) {
        const T* base = x + plan.kept_offset(i, plan.kept_rank);
        Total total = neutral();
        for (int64_t r = 0; r < rows; ++r)
          total = merge(total, row(base + plan.reduced_offset(r, outer), inner));
        y[i] = finish(total, mean, plan.count);
      }
      return;
    }
    constexpr int64_t kRun = 1024;
    Total total[kRun];
    const int64_t inner = plan.kept[static_cast<size_t>(plan.kept_rank - 1)];
    for (int64_t i = begin; i < end;) {
      const int64_t count = std::min({inner - i % inner, end - i, kRun});
      const T* base = x + plan.kept_offset(i / inner, plan.kept_rank - 1) + i % inner;
      std::fill(total, total + count, neutral());
      for (int64_t r = 0; r < plan.count; ++r) {
        const T* from = base + plan.reduced_offset(r, plan.reduced_rank);
#pragma omp simd
        for (int64_t k = 0; k < count; ++k) total[k] = combine(total[k], from[k]);
      }
      for (int64_t k = 0; k < count; ++k) y[i + k] = finish(total[k], mean, plan.count);
      i += count;
    }
  }
};

/// Exact for integers, which wrap; f64.
template <class T>
void plain_reduction(const ReductionPlan& plan, const ReduceParameters& values, const std::byte* in,
                     std::byte* out, int64_t begin, int64_t end) {
  const auto* x = reinterpret_cast<const T*>(in);
  auto* y = reinterpret_cast<T*>(out);
  switch (values.function) {
    case ReduceFunction::Max:
      return PlainReduction<T, ReduceFunction::Max>::run(plan, false, x, y, begin, end);
    case ReduceFunction::Min:
      return PlainReduction<T, ReduceFunction::Min>::run(plan, false, x, y, begin, end);
    case ReduceFunction::Prod:
      return PlainReduction<T, ReduceFunction::Prod>::run(plan, false, x, y, begin, end);
    default: return PlainReduction<T, ReduceFunction::Sum>::run(plan, values.mean, x, y, begin, end);
  }
}

KernelPtr make_plain_reduction(DType dtype, const ReductionPlan& plan, const ReduceParameters& values) {
  using Loop =
      void (*)(const ReductionPlan&, const ReduceParameters&, const std::byte*, std::byte*, int64_t, int64_t);
  const Loop loop =
      with_number(dtype, [](auto tag) -> Loop { return &plain_reduction<typename decltype(tag)::type>; });
  return make_kernel([=](const Call& call) noexcept {
    parallel_for(plan.outputs, plan.count, 1, [&](int64_t begin, int64_t end) noexcept {
      loop(plan, values, call.in<std::byte>(0), call.out<std::byte>(), begin, end);
    });
  });
}

template <class Attributes, ReduceFunction kFunction, bool kMean = false>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const ReductionPlan plan = reduction_plan(node.shape(0), node.as<Attributes>().axes);
  const ReduceParameters values{kFunction, kMean};
  if (node.dtype(0) == DType::F32 || kHalves.contains(node.dtype(0)))
    return make_float_reduction(device, node.dtype(0), plan, values);
  return make_plain_reduction(node.dtype(0), plan, values);
}

/// [outer, extent, inner] -> i64 [outer, inner]; NaN is the extreme, and equal to NaN, as in NumPy.
template <class T, bool kMax>
int64_t arg_of(const std::byte* x, int64_t first, int64_t extent, int64_t inner, bool last) {
  const T* column = reinterpret_cast<const T*>(x) + first;
  int64_t best = 0;
  auto value = widen(column[0]);
  for (int64_t k = 1; k < extent; ++k) {
    const auto element = widen(column[k * inner]);
    const bool unordered = element != element, was_unordered = value != value;
    const bool better = !was_unordered && (unordered || (kMax ? element > value : element < value));
    if (better || (last && (element == value || (unordered && was_unordered)))) {
      best = k;
      value = element;
    }
  }
  return best;
}

KernelPtr make_float_arg(const Simd& simd, bool max, bool last, const AxisWalk& walk) {
  const auto row = simd.loops<ReduceLoops>().arg_row[max ? 1 : 0][last ? 1 : 0];
  const auto columns = simd.loops<ReduceLoops>().arg_columns[max ? 1 : 0][last ? 1 : 0];
  const int64_t buffer = walk.buffer();
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(max_threads() * buffer) * sizeof(float);
  return make_kernel(
      [=, &simd](const Call& call) noexcept {
        const float* x = call.in<float>(0);
        int64_t* y = call.out<int64_t>();
        parallel_for(walk.units(), walk.unit_elements(), 1, [&](int64_t begin, int64_t end) noexcept {
          float* mine = buffer > 0 ? call.scratch<float>() + thread_index() * buffer : nullptr;
          const int64_t extent = walk.extent, inner = walk.inner;
          for (int64_t i = begin; i < end; ++i) {
            if (walk.transposes()) walk.gather(simd, i, x, mine);
            const float* from = walk.transposes() ? mine : x + walk.first_element(i);
            const int64_t n = walk.lines(i);
            int64_t* to = y + walk.first_line(i);
            switch (walk.way) {
              case AxisWalk::Way::Rows: *to = row(from, extent); break;
              case AxisWalk::Way::Columns: columns(from, to, extent, inner, n); break;
              case AxisWalk::Way::TransposedRows:
                for (int64_t k = 0; k < n; ++k) to[k] = row(from + k * extent, extent);
                break;
              case AxisWalk::Way::TransposedColumns: {
                int64_t found[Simd::kColumns];
                columns(from, found, extent, n, n);
                for (int64_t k = 0; k < n; ++k) to[k] = found[k % inner * (n / inner) + k / inner];
              }
            }
          }
        });
      },
      requirements);
}

template <class Attributes, bool kMax>
Result<KernelPtr> create_arg(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, x.rank());
  const int64_t outer = x.elements(0, axis), extent = x[axis], inner = x.elements(axis + 1, x.rank());
  if (node.dtype(0) == DType::F32 && extent < int64_t{1} << 31)
    return make_float_arg(device.simd(), kMax, attributes.select_last, {x, axis});
  using Search = int64_t (*)(const std::byte*, int64_t, int64_t, int64_t, bool);
  const Search search = with_type(
      node.dtype(0), [](auto tag) -> Search { return &arg_of<typename decltype(tag)::type, kMax>; });
  return make_kernel([=, last = attributes.select_last](const Call& call) noexcept {
    int64_t* y = call.out<int64_t>();
    parallel_for(outer * inner, extent * 2, 8, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i)
        y[i] = search(call.in<std::byte>(0), i / inner * extent * inner + i % inner, extent, inner, last);
    });
  });
}

}  // namespace

std::span<const KernelRow> rows_reduce();
std::span<const KernelRow> rows_reduce() {
  static constexpr KernelRow kRows[] = {
      row<create<op::ReduceSumAttributes, ReduceFunction::Sum>>(OpKind::ReduceSum, "reduce_sum",
                                                                kNumericTypes),
      row<create<op::ReduceMeanAttributes, ReduceFunction::Sum, true>>(OpKind::ReduceMean, "reduce_mean",
                                                                       kNumericTypes),
      row<create<op::ReduceMaxAttributes, ReduceFunction::Max>>(OpKind::ReduceMax, "reduce_max",
                                                                kNumericTypes),
      row<create<op::ReduceMinAttributes, ReduceFunction::Min>>(OpKind::ReduceMin, "reduce_min",
                                                                kNumericTypes),
      row<create<op::ReduceProdAttributes, ReduceFunction::Prod>>(OpKind::ReduceProd, "reduce_prod",
                                                                  kNumericTypes),
      row<create_arg<op::ArgMaxAttributes, true>>(OpKind::ArgMax, "arg_max", kAnyDType),
      row<create_arg<op::ArgMinAttributes, false>>(OpKind::ArgMin, "arg_min", kAnyDType),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
