// Reductions over any axes, ArgMax and ArgMin.
//
// f32: where the innermost dimension is reduced, each result is a sum of row reductions; where it is kept,
// rows are accumulated into the result. Few results from many elements are cut along the outermost reduced
// dimension into parts, whose partial results lie in scratch and are joined in order.
#include <cmath>
#include <limits>

#include "backends/common/reduction.h"
#include "backends/cpu/elements.h"
#include "backends/cpu/kernel.h"

namespace rt::cpu {
namespace {

struct ReduceNumbers {
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

/// One f32 reduction: writes the results of kept indices [begin, end) made of the reduced outer range [first,
/// last).
class FloatReduction {
 public:
  FloatReduction(const Simd& simd, const ReductionPlan& plan, ReduceFunction function)
      : plan_(plan),
        row_(simd.reduce_row[static_cast<int>(function)]),
        accumulate_(simd.accumulate[static_cast<int>(function)]),
        neutral_(neutral_of(function)) {
    const int reduced = plan.reduced_rank, kept = plan.kept_rank;
    inner_ = plan.inner_reduced ? (reduced > 0 ? plan.reduced[static_cast<size_t>(reduced - 1)] : 1)
                                : plan.kept[static_cast<size_t>(kept - 1)];
    rows_ = plan.inner_reduced ? plan.count / std::max<int64_t>(inner_, 1) : plan.count;
    if (plan.count == 0) rows_ = 0;
  }
  /// Rows per result: what can be cut into parts.
  int64_t rows() const noexcept { return rows_; }
  /// Results are cut among threads at multiples of this.
  int64_t unit() const noexcept { return plan_.inner_reduced ? 1 : 16; }

  void run(const float* x, float* y, int64_t begin, int64_t end, int64_t first, int64_t last) const noexcept {
    if (plan_.inner_reduced)
      run_rows(x, y, begin, end, first, last);
    else
      run_columns(x, y, begin, end, first, last);
  }
  void join(float* y, const float* part, int64_t n) const noexcept { accumulate_(y, part, n); }

 private:
  void run_rows(const float* x, float* y, int64_t begin, int64_t end, int64_t first,
                int64_t last) const noexcept {
    const int outer = std::max(plan_.reduced_rank - 1, 0);
    for (int64_t i = begin; i < end; ++i) {
      const float* base = x + plan_.kept_offset(i, plan_.kept_rank);
      float value = neutral_;
      for (int64_t r = first; r < last; ++r) {
        const float part = row_(base + plan_.reduced_offset(r, outer), inner_);
        accumulate_(&value, &part, 1);
      }
      y[i] = value;
    }
  }
  void run_columns(const float* x, float* y, int64_t begin, int64_t end, int64_t first,
                   int64_t last) const noexcept {
    // Runs of results that share a row, cut so that the accumulators stay in the first cache.
    constexpr int64_t kColumns = 2048;
    for (int64_t i = begin; i < end;) {
      const int64_t row = i / inner_, column = i % inner_;
      const int64_t count = std::min({inner_ - column, end - i, kColumns});
      const float* base = x + plan_.kept_offset(row, plan_.kept_rank - 1) + column;
      std::fill(y + i, y + i + count, neutral_);
      for (int64_t r = first; r < last; ++r)
        accumulate_(y + i, base + plan_.reduced_offset(r, plan_.reduced_rank), count);
      i += count;
    }
  }

  ReductionPlan plan_;
  float (*row_)(const float*, int64_t);
  void (*accumulate_)(float*, const float*, int64_t);
  float neutral_;
  int64_t inner_ = 1, rows_ = 1;
};

/// In how many parts to cut the reduced range: all threads, when the results alone do not keep them busy.
int parts_for(const ReductionPlan& plan, int64_t rows, int threads) noexcept {
  if (threads <= 1 || plan.outputs * plan.count < kSerialWork * 2) return 1;
  if (plan.outputs >= 4 * threads * (plan.inner_reduced ? 1 : 16) || rows < 2 * threads) return 1;
  return threads;
}

KernelPtr make_float_reduction(const CpuDevice& device, const ReductionPlan& plan,
                               const ReduceNumbers& numbers) {
  const Simd& simd = device.simd();
  const int threads = device.info().threads;
  ReductionPlan whole = plan;
  // One long row: a second, outer dimension gives the parts something to cut.
  if (whole.inner_reduced && whole.reduced_rank == 1 && whole.outputs < 2 * threads &&
      whole.count >= 4 * kSerialWork) {
    constexpr int64_t kPiece = 1024;
    if (whole.reduced[0] % kPiece == 0) {
      whole.reduced = {whole.reduced[0] / kPiece, kPiece};
      whole.reduced_stride = {kPiece, 1};
      whole.reduced_rank = 2;
    }
  }
  const FloatReduction reduction(simd, whole, numbers.function);
  const int parts = parts_for(whole, reduction.rows(), threads);
  const float factor = numbers.mean ? 1.0f / static_cast<float>(plan.count) : 1.0f;
  Requirements requirements;
  if (parts > 1) requirements.scratch = static_cast<size_t>(parts * plan.outputs) * sizeof(float);
  return make_kernel(
      [=, outputs = plan.outputs, count = plan.count, mean = numbers.mean, &simd](const Call& call) noexcept {
        const float* x = call.in<float>(0);
        float* y = call.out<float>();
        if (parts == 1) {
          parallel_for(outputs, count, reduction.unit(), [&](int64_t begin, int64_t end) noexcept {
            reduction.run(x, y, begin, end, 0, reduction.rows());
            if (mean) simd.scale(y + begin, y + begin, factor, end - begin);
          });
          return;
        }
        float* partial = call.scratch<float>();
        parallel_parts(parts, [&](int part) noexcept {
          const Range range = part_of(reduction.rows(), part, parts);
          reduction.run(x, partial + part * outputs, 0, outputs, range.begin, range.end);
        });
        std::copy(partial, partial + outputs, y);
        for (int part = 1; part < parts; ++part) reduction.join(y, partial + part * outputs, outputs);
        if (mean) simd.scale(y, y, factor, outputs);
      },
      requirements);
}

/// Exact for integers (wrapping, a mean is the truncated quotient of the wrapped sum); f64, f16 and bf16 in
/// double.
template <class T>
void plain_reduction(const ReductionPlan& plan, const ReduceNumbers& numbers, const std::byte* in,
                     std::byte* out, int64_t begin, int64_t end) {
  using Wide = std::conditional_t<std::is_integral_v<T>, decltype(widen(T{})), double>;
  const auto* x = reinterpret_cast<const T*>(in);
  auto* y = reinterpret_cast<T*>(out);
  Wide start = numbers.function == ReduceFunction::Prod ? 1 : 0;
  if constexpr (std::is_integral_v<T>) {
    if (numbers.function == ReduceFunction::Max) start = std::numeric_limits<T>::min();
    if (numbers.function == ReduceFunction::Min) start = std::numeric_limits<T>::max();
  } else if (numbers.function == ReduceFunction::Max || numbers.function == ReduceFunction::Min) {
    start = static_cast<double>(neutral_of(numbers.function));
  }
  for (int64_t i = begin; i < end; ++i) {
    const T* base = x + plan.kept_offset(i, plan.kept_rank);
    Wide value = start;
    for (int64_t r = 0; r < plan.count; ++r) {
      const auto element = static_cast<Wide>(widen(base[plan.reduced_offset(r, plan.reduced_rank)]));
      const bool unordered = element != element;
      switch (numbers.function) {
        case ReduceFunction::Max: value = unordered || element > value ? element : value; break;
        case ReduceFunction::Min: value = unordered || element < value ? element : value; break;
        case ReduceFunction::Prod:
          if constexpr (std::is_integral_v<T>)
            value = static_cast<Wide>(static_cast<uint64_t>(value) * static_cast<uint64_t>(element));
          else
            value *= element;
          break;
        default:
          if constexpr (std::is_integral_v<T>)
            value = static_cast<Wide>(static_cast<uint64_t>(value) + static_cast<uint64_t>(element));
          else
            value += element;
      }
    }
    if (numbers.mean) {
      if constexpr (std::is_integral_v<T>)
        value = plan.count == 0 ? Wide{0} : static_cast<Wide>(value / static_cast<Wide>(plan.count));
      else
        value /= static_cast<double>(plan.count);
    }
    y[i] = narrow<T>(value);
  }
}

KernelPtr make_plain_reduction(DType dtype, const ReductionPlan& plan, const ReduceNumbers& numbers) {
  using Loop =
      void (*)(const ReductionPlan&, const ReduceNumbers&, const std::byte*, std::byte*, int64_t, int64_t);
  const Loop loop = with_type(dtype, [](auto tag) -> Loop {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Boolean>)
      return nullptr;  // no row has bool
    else
      return &plain_reduction<T>;
  });
  return make_kernel([=](const Call& call) noexcept {
    parallel_for(plan.outputs, plan.count, 1, [&](int64_t begin, int64_t end) noexcept {
      loop(plan, numbers, call.in<std::byte>(0), call.out<std::byte>(), begin, end);
    });
  });
}

template <class Attributes, ReduceFunction kFunction, bool kMean = false>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const ReductionPlan plan = reduction_plan(node.shape(0), node.as<Attributes>().axes);
  const ReduceNumbers numbers{kFunction, kMean};
  if (node.dtype(0) == DType::F32) return make_float_reduction(device, plan, numbers);
  return make_plain_reduction(node.dtype(0), plan, numbers);
}

/// [outer, extent, inner] -> i64 [outer, inner]; the first NaN counts as the extreme, as in NumPy.
template <class T, bool kMax>
int64_t arg_of(const std::byte* x, int64_t first, int64_t extent, int64_t inner, bool last) {
  const T* column = reinterpret_cast<const T*>(x) + first;
  int64_t best = 0;
  auto value = widen(column[0]);
  for (int64_t k = 1; k < extent; ++k) {
    const auto element = widen(column[k * inner]);
    const bool unordered = element != element, was_unordered = value != value;
    const bool better = !was_unordered && (unordered || (kMax ? element > value : element < value));
    if (better || (last && element == value)) {
      best = k;
      value = element;
    }
  }
  return best;
}

/// Rows where they are contiguous, else blocks of neighbouring columns.
KernelPtr make_float_arg(const Simd& simd, bool max, bool last, int64_t outer, int64_t extent,
                         int64_t inner) {
  const auto row = simd.arg_row[max ? 1 : 0][last ? 1 : 0];
  const auto columns = simd.arg_columns[max ? 1 : 0][last ? 1 : 0];
  const int64_t blocks = (inner + Simd::kColumns - 1) / Simd::kColumns;
  return make_kernel([=](const Call& call) noexcept {
    const float* x = call.in<float>(0);
    int64_t* y = call.out<int64_t>();
    if (inner == 1) {
      parallel_for(outer, extent, 8, [&](int64_t begin, int64_t end) noexcept {
        for (int64_t i = begin; i < end; ++i) y[i] = row(x + i * extent, extent);
      });
      return;
    }
    parallel_for(outer * blocks, extent * Simd::kColumns, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i / blocks, column = i % blocks * Simd::kColumns;
        columns(x + part * extent * inner + column, y + part * inner + column, extent, inner,
                std::min(Simd::kColumns, inner - column));
      }
    });
  });
}

template <class Attributes, bool kMax>
Result<KernelPtr> create_arg(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, x.rank());
  const int64_t outer = x.elements(0, axis), extent = x[axis], inner = x.elements(axis + 1, x.rank());
  if (node.dtype(0) == DType::F32 && extent < int64_t{1} << 31)
    return make_float_arg(device.simd(), kMax, attributes.select_last, outer, extent, inner);
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
      row<create<op::ReduceSumAttributes, ReduceFunction::Sum>>(OpKind::ReduceSum, "reduce_sum", kNumbers),
      row<create<op::ReduceMeanAttributes, ReduceFunction::Sum, true>>(OpKind::ReduceMean, "reduce_mean",
                                                                       kNumbers),
      row<create<op::ReduceMaxAttributes, ReduceFunction::Max>>(OpKind::ReduceMax, "reduce_max", kNumbers),
      row<create<op::ReduceMinAttributes, ReduceFunction::Min>>(OpKind::ReduceMin, "reduce_min", kNumbers),
      row<create<op::ReduceProdAttributes, ReduceFunction::Prod>>(OpKind::ReduceProd, "reduce_prod",
                                                                  kNumbers),
      row<create_arg<op::ArgMaxAttributes, true>>(OpKind::ArgMax, "arg_max", kAnyDType),
      row<create_arg<op::ArgMinAttributes, false>>(OpKind::ArgMin, "arg_min", kAnyDType),
  };
  return kRows;
}

}  // namespace rt::cpu
