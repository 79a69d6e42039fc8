// CumSum and CumProd: x seen as [outer, extent, inner]; lines are cut among threads, and within an outer part
// whole runs along the inner dimension are added to the totals before them. Contiguous lines of f32 go
// through the vector loops.
#include "backends/cpu/elements.h"
#include "backends/cpu/kernel.h"

namespace rt::cpu {
namespace {

struct Scan {
  int64_t outer, extent, inner;
  bool exclusive, reverse;
};

/// Integers wrap.
template <bool kProduct, class Wide>
Wide join(Wide a, Wide b) noexcept {
  if constexpr (std::is_integral_v<Wide>) {
    const auto bits = static_cast<uint64_t>(a), other = static_cast<uint64_t>(b);
    return static_cast<Wide>(kProduct ? bits * other : bits + other);
  } else {
    return kProduct ? a * b : a + b;
  }
}

/// Elements [begin, end) of the inner dimension of one outer part. y may be x.
template <class T, bool kProduct>
void scan_part(const Scan& scan, const T* x, T* y, int64_t begin, int64_t end) noexcept {
  using Wide = decltype(widen(T{}));
  constexpr int64_t kRun = 1024;
  Wide total[kRun];
  for (int64_t first = begin; first < end; first += kRun) {
    const int64_t count = std::min(kRun, end - first);
    std::fill(total, total + count, static_cast<Wide>(kProduct ? 1 : 0));
    for (int64_t step = 0; step < scan.extent; ++step) {
      const int64_t at = (scan.reverse ? scan.extent - 1 - step : step) * scan.inner + first;
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) {
        const Wide next = join<kProduct>(total[i], widen(x[at + i]));
        y[at + i] = narrow<T>(scan.exclusive ? total[i] : next);
        total[i] = next;
      }
    }
  }
}

template <class Attributes, bool kProduct>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, x.rank());
  const Scan scan{x.elements(0, axis), x[axis], x.elements(axis + 1, x.rank()), attributes.exclusive,
                  attributes.reverse};
  if (node.dtype(0) == DType::F32 && scan.inner == 1)
    return make_kernel(
        [scan, row = device.simd().scan_row[kProduct ? 1 : 0]](const Call& call) noexcept {
          const float* from = call.in<float>(0);
          float* to = call.out<float>();
          parallel_for(scan.outer, scan.extent, 1, [&](int64_t begin, int64_t end) noexcept {
            for (int64_t i = begin; i < end; ++i)
              row(from + i * scan.extent, to + i * scan.extent, scan.extent, scan.exclusive, scan.reverse);
          });
        },
        in_place());
  return with_type(node.dtype(0), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    return make_kernel(
        [=](const Call& call) noexcept {
          parallel_for(scan.outer * scan.inner, scan.extent, 1, [&](int64_t begin, int64_t end) noexcept {
            while (begin < end) {
              const int64_t part = begin / scan.inner, first = begin % scan.inner;
              const int64_t last = std::min(scan.inner, first + end - begin);
              const int64_t offset = part * scan.extent * scan.inner;
              scan_part<T, kProduct>(scan, call.in<T>(0) + offset, call.out<T>() + offset, first, last);
              begin += last - first;
            }
          });
        },
        in_place());
  });
}

}  // namespace

std::span<const KernelRow> rows_scan();
std::span<const KernelRow> rows_scan() {
  static constexpr KernelRow kRows[] = {
      row<create<op::CumSumAttributes, false>>(OpKind::CumSum, "cum_sum", kNumbers),
      row<create<op::CumProdAttributes, true>>(OpKind::CumProd, "cum_prod", kNumbers),
  };
  return kRows;
}

}  // namespace rt::cpu
