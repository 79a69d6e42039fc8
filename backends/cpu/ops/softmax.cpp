// Softmax and LogSoftmax, and their gradients, over any axis: rows when it is the last, else blocks of
// neighbouring columns. Short rows are transposed first, because a vector holds more than one of them.
#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/norm.h"
#include "backends/cpu/simd/transpose.h"

namespace librt::cpu {
namespace {

constexpr int64_t kShortRow = 64;

/// Rows of fewer than kShortRow elements, which do not fill whole vectors, Simd::kColumns of them at a time.
KernelPtr make_short_rows(const Simd& simd, int64_t rows, int64_t extent, bool logarithm) {
  Requirements requirements = in_place();
  const int64_t block = extent * Simd::kColumns;
  requirements.scratch = static_cast<size_t>(max_threads() * block) * sizeof(float);
  return make_kernel(
      [=, &simd](const Call& call) noexcept {
        const float* in = call.in<float>(0);
        float* out = call.out<float>();
        parallel_for(rows, extent * 4, Simd::kColumns, [&](int64_t begin, int64_t end) noexcept {
          float* columns = call.scratch<float>() + thread_index() * block;
          for (int64_t i = begin; i < end; i += Simd::kColumns) {
            const int64_t count = std::min(Simd::kColumns, end - i);
            simd.loops<TransposeLoops>().transpose[2](in + i * extent, extent, columns, Simd::kColumns, count,
                                                      extent, false);
            simd.loops<NormLoops>().softmax_columns[logarithm ? 1 : 0](columns, columns, extent,
                                                                       Simd::kColumns, count, nullptr, false);
            simd.loops<TransposeLoops>().transpose[2](columns, Simd::kColumns, out + i * extent, extent,
                                                      extent, count, false);
          }
        });
      },
      requirements);
}

template <class Attributes, bool kLogarithm>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(node.as<Attributes>().axis, x.rank());
  const int64_t outer = x.elements(0, axis), extent = x[axis], inner = x.elements(axis + 1, x.rank());
  const Simd& simd = device.simd();
  if (inner == 1 && extent < kShortRow && extent % 16 != 0 && outer >= 16)
    return make_short_rows(simd, outer, extent, kLogarithm);
  if (inner == 1) {
    return make_kernel(
        [=, &simd](const Call& call) noexcept {
          const float* in = call.in<float>(0);
          float* out = call.out<float>();
          parallel_for(outer, extent * 16, 1, [&](int64_t begin, int64_t end) noexcept {
            for (int64_t i = begin; i < end; ++i)
              simd.loops<NormLoops>().softmax_row(in + i * extent, out + i * extent, extent, kLogarithm);
          });
        },
        in_place());
  }
  const int64_t blocks = (inner + Simd::kColumns - 1) / Simd::kColumns;
  // A copy per thread, where it stays in its L2.
  const int64_t copied = extent * std::min(inner, Simd::kColumns);
  constexpr int64_t kMostCopied = (int64_t{1} << 20) / int64_t{sizeof(float)};
  const bool copies = copied <= kMostCopied;
  const bool past_caches = static_cast<int64_t>(node.output(0).bytes()) >= kPastCaches;
  Requirements requirements = in_place();
  if (copies) requirements.scratch = static_cast<size_t>(max_threads() * copied) * sizeof(float);
  return make_kernel(
      [=, &simd](const Call& call) noexcept {
        const float* in = call.in<float>(0);
        float* out = call.out<float>();
        parallel_for(outer * blocks, extent * Simd::kColumns * 16, 1,
                     [&](int64_t begin, int64_t end) noexcept {
                       float* copy = copies ? call.scratch<float>() + thread_index() * copied : nullptr;
                       for (int64_t i = begin; i < end; ++i) {
                         const int64_t column = i % blocks * Simd::kColumns,
                                       first = i / blocks * extent * inner + column;
                         simd.loops<NormLoops>().softmax_columns[kLogarithm ? 1 : 0](
                             in + first, out + first, extent, inner, std::min(Simd::kColumns, inner - column),
                             copy, past_caches);
                       }
                     });
      },
      requirements);
}

/// (y, grad_y) -> grad_x
Result<KernelPtr> create_grad(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::SoftmaxGradAttributes>();
  const Shape& y = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, y.rank());
  const int64_t outer = y.elements(0, axis), extent = y[axis], inner = y.elements(axis + 1, y.rank());
  const int64_t blocks = (inner + Simd::kColumns - 1) / Simd::kColumns;
  const int64_t work = extent * (attributes.logarithm ? 8 : 2);
  return make_kernel(
      [=, logarithm = attributes.logarithm,
       &loops = device.simd().loops<NormLoops>()](const Call& call) noexcept {
        const float *result = call.in<float>(0), *g = call.in<float>(1);
        float* grad = call.out<float>();
        if (inner == 1) {
          parallel_for(outer, work, 1, [&](int64_t begin, int64_t end) noexcept {
            for (int64_t at = begin * extent; at < end * extent; at += extent)
              loops.softmax_grad_row(result + at, g + at, grad + at, extent, logarithm);
          });
          return;
        }
        parallel_for(outer * blocks, work * Simd::kColumns, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t column = i % blocks * Simd::kColumns, at = i / blocks * extent * inner + column;
            loops.softmax_grad_columns(result + at, g + at, grad + at, extent, inner,
                                       std::min(Simd::kColumns, inner - column), logarithm);
          }
        });
      },
      in_place(1));
}

}  // namespace

std::span<const KernelRow> rows_softmax();
std::span<const KernelRow> rows_softmax() {
  static constexpr KernelRow kRows[] = {
      row<create<op::SoftmaxAttributes, false>>(OpKind::Softmax, "softmax", DTypeSet{DType::F32}),
      row<create<op::LogSoftmaxAttributes, true>>(OpKind::LogSoftmax, "log_softmax", DTypeSet{DType::F32}),
      row<create_grad>(OpKind::SoftmaxGrad, "softmax_grad", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
