// CumSum and CumProd: x viewed as [outer, extent, inner]; lines are split among threads, and within an outer
// part whole runs along the inner dimension are added to the running totals. 32- and 64-bit types use the
// vector loops, 32-bit ones with short or few lines after a transpose.
#include <optional>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/scan.h"
#include "backends/cpu/support/axis_walk.h"
#include "backends/cpu/support/element_types.h"

namespace librt::cpu {
namespace {

struct Scan {
  int64_t outer, extent, inner;
  bool exclusive, reverse;
};

/// Integers wrap.
template <bool kProduct, class Wide>
Wide combine(Wide a, Wide b) noexcept {
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
        const Wide next = combine<kProduct>(total[i], widen(x[at + i]));
        y[at + i] = narrow<T>(scan.exclusive ? total[i] : next);
        total[i] = next;
      }
    }
  }
}

std::optional<ScanCode> code_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::F32: return ScanCode::F32;
    case DType::F64: return ScanCode::F64;
    case DType::I32:
    case DType::U32: return ScanCode::U32;
    case DType::I64:
    case DType::U64: return ScanCode::U64;
    default: return {};
  }
}

/// Calls body(outer part, first column, end) for pieces of lines [begin, end), numbered over all parts.
template <class Body>
void for_parts(const Scan& scan, int64_t begin, int64_t end, const Body& body) noexcept {
  while (begin < end) {
    const int64_t part = begin / scan.inner, first = begin % scan.inner;
    const int64_t last = std::min(scan.inner, first + end - begin);
    body(part, first, last);
    begin += last - first;
  }
}

/// Elements of 4 bytes, where they fill no vectors as they lie.
KernelPtr make_transposed_scan(const Scan& scan, const AxisWalk& walk, const Simd& simd, int product,
                               int code) {
  Requirements requirements = in_place();
  const int64_t buffer = walk.buffer();
  requirements.scratch = static_cast<size_t>(max_threads() * buffer) * sizeof(float);
  return make_kernel(
      [=, &simd](const Call& call) noexcept {
        const ScanLoops& loops = simd.loops<ScanLoops>();
        parallel_for(walk.units(), walk.unit_elements(), 1, [&](int64_t begin, int64_t end) noexcept {
          using Inputs = std::array<const float*, 1>;
          for (int64_t i = begin; i < end; ++i)
            walk.run<1>(
                simd, i, {call.in<float>(0)}, call.out<float>(),
                call.scratch<float>() + thread_index() * buffer,
                [&](const Inputs& x, float* y) noexcept {
                  loops.scan_row[product][code](x[0], y, walk.extent, scan.exclusive, scan.reverse);
                },
                [&](const Inputs& x, float* y, int64_t stride, int64_t n) noexcept {
                  loops.scan_columns[product][code](x[0], y, walk.extent, stride, n, scan.exclusive,
                                                    scan.reverse, false);
                });
        });
      },
      requirements);
}

KernelPtr make_vector_scan(const Scan& scan, const Simd& simd, int product, int code, const TensorInfo& x) {
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  const bool past_caches = static_cast<int64_t>(x.bytes()) >= kPastCaches;
  return make_kernel(
      [=, row = simd.loops<ScanLoops>().scan_row[product][code],
       columns = simd.loops<ScanLoops>().scan_columns[product][code]](const Call& call) noexcept {
        const auto* from = call.in<std::byte>(0);
        auto* to = call.out<std::byte>();
        const int64_t unit = scan.inner == 1 ? 1 : 16;
        parallel_for(scan.outer * scan.inner, scan.extent, unit, [&](int64_t begin, int64_t end) noexcept {
          if (scan.inner == 1) {
            for (int64_t at = begin * scan.extent; at < end * scan.extent; at += scan.extent)
              row(from + at * size, to + at * size, scan.extent, scan.exclusive, scan.reverse);
            return;
          }
          for_parts(scan, begin, end, [&](int64_t part, int64_t first, int64_t last) noexcept {
            const int64_t at = (part * scan.extent * scan.inner + first) * size;
            columns(from + at, to + at, scan.extent, scan.inner, last - first, scan.exclusive, scan.reverse,
                    past_caches);
          });
        });
      },
      in_place());
}

template <class Attributes, bool kProduct>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, x.rank());
  const Scan scan{x.elements(0, axis), x[axis], x.elements(axis + 1, x.rank()), attributes.exclusive,
                  attributes.reverse};
  if (const auto code = code_of(node.dtype(0))) {
    const AxisWalk walk(x, axis);
    // A vector that is half full is faster than two transposes.
    const bool is_narrow = scan.inner == 1 ? scan.extent < 16 : scan.inner < 8;
    if (is_narrow && size_of(node.dtype(0)) == sizeof(float) && walk.buffer() > 0)
      return make_transposed_scan(scan, walk, device.simd(), kProduct ? 1 : 0, static_cast<int>(*code));
    return make_vector_scan(scan, device.simd(), kProduct ? 1 : 0, static_cast<int>(*code), node.input(0));
  }
  return with_type(node.dtype(0), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    return make_kernel(
        [=](const Call& call) noexcept {
          parallel_for(scan.outer * scan.inner, scan.extent, 1, [&](int64_t begin, int64_t end) noexcept {
            for_parts(scan, begin, end, [&](int64_t part, int64_t first, int64_t last) noexcept {
              const int64_t offset = part * scan.extent * scan.inner;
              scan_part<T, kProduct>(scan, call.in<T>(0) + offset, call.out<T>() + offset, first, last);
            });
          });
        },
        in_place());
  });
}

}  // namespace

std::span<const KernelRow> rows_scan();
std::span<const KernelRow> rows_scan() {
  static constexpr KernelRow kRows[] = {
      row<create<op::CumSumAttributes, false>>(OpKind::CumSum, "cum_sum", kNumericTypes),
      row<create<op::CumProdAttributes, true>>(OpKind::CumProd, "cum_prod", kNumericTypes),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
