// SoftmaxCrossEntropy in one pass over the logits: the mean over rows of log(sum exp(x - max)) - (x[label] -
// max). A label outside [0, C) contributes 0. Per-row losses are kept in scratch and summed in order.
// CrossEntropy and CrossEntropyGrad: the losses of rows, which are contiguous or columns, and their gradient.
#include "backends/cpu/simd/loss.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/norm.h"
#include "backends/cpu/simd/reduce.h"
#include "backends/cpu/support/element_types.h"
#include "runtime/geometry/cross_entropy.h"

namespace librt::cpu {
namespace {

Status supports(const CpuDevice&, const NodeView& node) {
  if (node.dtype(1) != DType::I32 && node.dtype(1) != DType::I64)
    return unsupported("labels must be i32 or i64, not ", name_of(node.dtype(1)));
  return {};
}

template <class Label>
KernelPtr make(const Simd& simd, int64_t rows, int64_t classes) {
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(rows * (classes + 1)) * sizeof(float);
  return make_kernel(
      [=, &simd](const Call& call) noexcept {
        const float* logits = call.in<float>(0);
        const Label* labels = call.in<Label>(1);
        float* losses = call.scratch<float>();
        float* logarithms = losses + rows;
        parallel_for(rows, classes * 16, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t row = begin; row < end; ++row) {
            float* to = logarithms + row * classes;
            simd.loops<NormLoops>().softmax_row[1](logits + row * classes, to, classes);
            const auto label = static_cast<int64_t>(labels[row]);
            losses[row] = label >= 0 && label < classes ? -to[label] : 0.0f;
          }
        });
        const float sum =
            simd.loops<ReduceLoops>().reduce_row[static_cast<int>(ReduceFunction::Sum)](losses, rows);
        *call.out<float>() = sum / static_cast<float>(rows);
      },
      requirements);
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  if (node.dtype(1) == DType::I32) return make<int32_t>(device.simd(), x[0], x[1]);
  return make<int64_t>(device.simd(), x[0], x[1]);
}

// --- CrossEntropy and CrossEntropyGrad

/// A node and the labels of one run.
struct ClassRows : CrossEntropyForm {
  bool wide_labels = true;  ///< i64, else i32
  float label_share = 1, class_share = 0;

  explicit ClassRows(const NodeView& node)
      : CrossEntropyForm(*cross_entropy_form(node)),
        wide_labels(node.dtype(1) == DType::I64),
        label_share(of_label()),
        class_share(of_class()) {}

  /// Of a row; -1 if it does not count.
  int64_t label(const Call& call, int64_t row) const noexcept {
    const int64_t label = wide_labels ? call.in<int64_t>(1)[row] : int64_t{call.in<int32_t>(1)[row]};
    return label >= 0 && label < classes && label != ignore_index ? label : -1;
  }
  ClassShares shares(const Call& call) const noexcept { return {class_share, call.in<float>(weights)}; }
  /// f(first row, number of rows, its first logit): single rows, or columns next to each other.
  template <class F>
  void for_each(int64_t work, F f) const noexcept {
    if (inner == 1) {
      parallel_for(outer, classes * work, 1, [&](int64_t begin, int64_t end) noexcept {
        for (int64_t row = begin; row < end; ++row) f(row, int64_t{1}, row * classes);
      });
      return;
    }
    const int64_t blocks = (inner + Simd::kColumns - 1) / Simd::kColumns;
    parallel_for(
        outer * blocks, classes * Simd::kColumns * work, 1, [&](int64_t begin, int64_t end) noexcept {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t of = i / blocks, column = i % blocks * Simd::kColumns;
            f(of * inner + column, std::min(Simd::kColumns, inner - column), of * classes * inner + column);
          }
        });
  }
};

Result<KernelPtr> create_cross_entropy(CpuDevice& device, const NodeView& node, Producers) {
  return make_kernel(
      [rows = ClassRows(node), &loops = device.simd().loops<LossLoops>()](const Call& call) noexcept {
        const ClassShares shares = rows.shares(call);
        rows.for_each(16, [&](int64_t first, int64_t count, int64_t at) noexcept {
          const float* x = call.in<float>(0) + at;
          RowLoss of[Simd::kColumns];
          if (rows.inner != 1)
            loops.cross_entropy_columns(x, rows.classes, rows.inner, count, shares, of);
          else if (rows.label(call, first) >= 0)
            of[0] = loops.cross_entropy_row(x, rows.classes, shares);
          for (int64_t i = 0; i < count; ++i) {
            const int64_t label = rows.label(call, first + i);
            float loss = 0, weight = 0;
            if (label >= 0) {
              weight = shares.weights != nullptr ? shares.weights[label] : 1.0f;
              loss = of[i].log_sum - (x[label * rows.inner + i] - of[i].maximum);
              loss = loss * weight * rows.label_share - of[i].smoothed;
            }
            call.out<float>(0)[first + i] = loss;
            call.out<float>(1)[first + i] = weight;
            call.out<float>(2)[first + i] = label >= 0 ? of[i].maximum : 0.0f;
            call.out<float>(3)[first + i] = label >= 0 ? of[i].log_sum : 0.0f;
          }
        });
      });
}

/// (logits, labels, maximum, log_sum, grad_loss, [weights]) -> grad_logits
Result<KernelPtr> create_cross_entropy_grad(CpuDevice& device, const NodeView& node, Producers) {
  return make_kernel(
      [rows = ClassRows(node), &loops = device.simd().loops<LossLoops>()](const Call& call) noexcept {
        const ClassShares shares = rows.shares(call);
        float all_shares = 0;
        for (int64_t c = 0; shares.weights != nullptr && c < rows.classes; ++c)
          all_shares += shares.share * shares.weights[c];
        rows.for_each(8, [&](int64_t first, int64_t count, int64_t at) noexcept {
          RowSlope of[Simd::kColumns];
          for (int64_t i = 0; i < count; ++i) {
            const int64_t row = first + i, label = rows.label(call, row);
            if (label < 0) continue;
            const float weight = shares.weights != nullptr ? shares.weights[label] : 1.0f;
            of[i] = {.maximum = call.in<float>(2)[row],
                     .log_sum = call.in<float>(3)[row],
                     .grad = call.in<float>(4)[row],
                     .factor = shares.weights != nullptr ? rows.label_share * weight + all_shares : 1.0f,
                     .of_label = rows.label_share * weight,
                     .label = label};
          }
          const float* x = call.in<float>(0) + at;
          float* y = call.out<float>() + at;
          if (rows.inner == 1)
            loops.cross_entropy_grad_row(x, y, rows.classes, of[0], shares);
          else
            loops.cross_entropy_grad_columns(x, y, rows.classes, rows.inner, count, shares, of);
        });
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_loss();
std::span<const KernelRow> rows_loss() {
  static constexpr KernelRow kRows[] = {
      row<create, supports>(OpKind::SoftmaxCrossEntropy, "softmax_cross_entropy", DTypeSet{DType::F32}),
      row<create_cross_entropy>(OpKind::CrossEntropy, "cross_entropy", DTypeSet{DType::F32}),
      row<create_cross_entropy_grad>(OpKind::CrossEntropyGrad, "cross_entropy_grad", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
