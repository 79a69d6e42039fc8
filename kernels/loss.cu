// One block per row reads the logits twice, for their maximum and for the sum of exponentials; then one block
// sums the rows' losses in a fixed order. Losses by row and their gradient: contiguous rows in registers
// (row.cuh), other axes with one thread per row.
#include "kernels/loss.h"

#include <algorithm>

#include "kernels/index.cuh"
#include "kernels/reduce.cuh"
#include "kernels/row.cuh"

namespace librt::cuda {
namespace {

constexpr int kMaxLossThreads = 256;

template <class T>
__global__ void __launch_bounds__(kMaxLossThreads)
    row_losses(const T* logits, Indices labels, float* losses, int64_t classes) {
  __shared__ float storage[kWarpSize];
  const T* row = logits + static_cast<int64_t>(blockIdx.x) * classes;
  float highest = -INFINITY;
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) highest = Maximum{}(highest, to_float(row[c]));
  highest = block_reduce(highest, Maximum{}, storage);
  float sum = 0;
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) sum += expf(to_float(row[c]) - highest);
  sum = block_sum(sum, storage);
  if (threadIdx.x == 0) {
    const int64_t label = labels[blockIdx.x];
    losses[blockIdx.x] = label >= 0 && label < classes ? logf(sum) - (to_float(row[label]) - highest) : 0.0f;
  }
}

template <class T>
__global__ void __launch_bounds__(kMaxLossThreads) mean_loss(const float* losses, T* result, int64_t rows) {
  __shared__ float storage[kWarpSize];
  float sum = 0;
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) sum += losses[i];
  sum = block_sum(sum, storage);
  if (threadIdx.x == 0) *result = from_float<T>(sum / static_cast<float>(rows));
}

unsigned threads_for(int64_t count) {
  return static_cast<unsigned>(
      std::clamp<int64_t>(ceil_div(count, kWarpSize) * kWarpSize, kWarpSize, kMaxLossThreads));
}

// --- losses by row. With p = exp((x - maximum) - log_sum) and the share f = of_class w of each class:
//   loss = -of_label w[label] log p[label] - sum f log p
//   gradient = grad_loss ((factor p - f) - (of_label w[label] at the label)),
//   factor = of_label w[label] + sum f, which is 1 without weights.

struct ClassLabels {
  Indices labels;
  const float* weights;
  int64_t classes, ignore_index;
  float of_label, of_class;

  /// Of a row; -1 if it does not count.
  RT_DEVICE int64_t label(int64_t row) const {
    const int64_t label = labels[row];
    return label >= 0 && label < classes && label != ignore_index ? label : -1;
  }
  RT_DEVICE float weight(int64_t c) const { return weights == nullptr ? 1.0f : weights[c]; }
  RT_DEVICE float share(int64_t c) const { return of_class * weight(c); }
  RT_DEVICE float factor(int64_t label, float all_shares) const {
    return weights == nullptr ? 1.0f : of_label * weight(label) + all_shares;
  }
};

/// x: the label's logit.
RT_DEVICE void store_loss(const ClassLabels& of, const RowLossResults& to, int64_t row, int64_t label,
                          float x, float maximum, float log_sum, float smoothed) {
  const bool counts = label >= 0;
  const float weight = counts ? of.weight(label) : 0.0f;
  to.loss[row] = counts ? (log_sum - (x - maximum)) * weight * of.of_label - smoothed : 0.0f;
  to.weight[row] = weight;
  to.maximum[row] = counts ? maximum : 0.0f;
  to.log_sum[row] = counts ? log_sum : 0.0f;
}

/// A row's part of the gradient.
struct RowSlope {
  float maximum, log_sum, grad, factor, of_label;
  int64_t label;

  RT_DEVICE RowSlope(const ClassLabels& of, const RowLossSaved& saved, int64_t row, int64_t row_label,
                     float all_shares)
      : maximum(saved.maximum[row]),
        log_sum(saved.log_sum[row]),
        grad(saved.grad_loss[row]),
        factor(row_label < 0 ? 0.0f : of.factor(row_label, all_shares)),
        of_label(row_label < 0 ? 0.0f : of.of_label * of.weight(row_label)),
        label(row_label) {}
  RT_DEVICE float at(const ClassLabels& of, int64_t c, float x) const {
    if (label < 0) return 0;
    float slope = factor * expf((x - maximum) - log_sum);
    if (of.of_class != 0) slope -= of.share(c);
    if (c == label) slope -= of_label;
    return grad * slope;
  }
};

template <class Row>
__global__ void __launch_bounds__(kRowThreads, 2)
    cross_entropy_rows(const float* x, ClassLabels of, RowLossResults to, int64_t rows) {
  __shared__ float shared[kWarpSize];
  const int64_t index = global_index() / Row::kLanesPerRow;
  const int64_t label = index < rows ? of.label(index) : -1;
  Row row(x, label < 0 ? 0 : rows, of.classes);  // one that does not count is not read
  float most = -INFINITY;
  row.each([&](float value) { most = Maximum{}(most, value); });
  most = Row::combined(most, Maximum{}, shared);
  float sum = 0;
  row.each([&](float value) { sum += expf(value - most); });
  sum = Row::combined(sum, Sum{}, shared);
  if (sum != sum) most = sum;
  const float log_sum = logf(sum);
  float smoothed = 0;
  if (of.of_class != 0) {
    row.each_group([&](int64_t column, float(&values)[Row::kElements]) {
      RT_UNROLL
      for (int i = 0; i < Row::kElements; ++i)
        smoothed += of.share(column + i) * ((values[i] - most) - log_sum);
    });
    smoothed = Row::combined(smoothed, Sum{}, shared);
  }
  if (index < rows && static_cast<int>(threadIdx.x) % Row::kLanesPerRow == 0)
    store_loss(of, to, index, label, label < 0 ? 0.0f : x[index * of.classes + label], most, log_sum,
               smoothed);
}

template <class Row>
__global__ void __launch_bounds__(kRowThreads, 2)
    cross_entropy_grad_rows(const float* x, ClassLabels of, RowLossSaved saved, float* grad, int64_t rows) {
  __shared__ float shared[kWarpSize];
  const int64_t index = global_index() / Row::kLanesPerRow;
  Row row(x, rows, of.classes);
  float all_shares = 0;
  if (of.of_class != 0 && of.weights != nullptr) {
    for (int64_t c = static_cast<int>(threadIdx.x) % Row::kLanesPerRow; c < of.classes;
         c += Row::kLanesPerRow)
      all_shares += of.share(c);
    all_shares = Row::combined(all_shares, Sum{}, shared);
  }
  if (index >= rows) return;
  const RowSlope slope(of, saved, index, of.label(index), all_shares);
  row.store(grad, [&](int64_t column, auto& values) {
    RT_UNROLL
    for (int i = 0; i < Row::kElements; ++i) values[i] = slope.at(of, column + i, values[i]);
  });
}

constexpr int kColumnThreads = 256;

RT_DEVICE int64_t first_of_column(int64_t row, int64_t classes, int64_t inner) {
  return row / inner * classes * inner + row % inner;
}

__global__ void __launch_bounds__(kColumnThreads)
    cross_entropy_columns(const float* x, ClassLabels of, RowLossResults to, int64_t rows, int64_t inner) {
  const int64_t row = global_index();
  if (row >= rows) return;
  const float* from = x + first_of_column(row, of.classes, inner);
  const int64_t label = of.label(row), classes = label < 0 ? 0 : of.classes;
  float most = -INFINITY, sum = 0, smoothed = 0;
  for (int64_t c = 0; c < classes; ++c) most = Maximum{}(most, from[c * inner]);
  for (int64_t c = 0; c < classes; ++c) sum += expf(from[c * inner] - most);
  if (sum != sum) most = sum;
  const float log_sum = logf(sum);
  for (int64_t c = 0; of.of_class != 0 && c < classes; ++c)
    smoothed += of.share(c) * ((from[c * inner] - most) - log_sum);
  store_loss(of, to, row, label, label < 0 ? 0.0f : from[label * inner], most, log_sum, smoothed);
}

__global__ void __launch_bounds__(kColumnThreads)
    cross_entropy_grad_columns(const float* x, ClassLabels of, RowLossSaved saved, float* grad, int64_t rows,
                               int64_t inner) {
  const int64_t row = global_index();
  if (row >= rows) return;
  float all_shares = 0;
  for (int64_t c = 0; of.of_class != 0 && of.weights != nullptr && c < of.classes; ++c)
    all_shares += of.share(c);
  const RowSlope slope(of, saved, row, of.label(row), all_shares);
  const int64_t first = first_of_column(row, of.classes, inner);
  for (int64_t c = 0, at = first; c < of.classes; ++c, at += inner) grad[at] = slope.at(of, c, x[at]);
}

ClassLabels labels_of(const ClassLossArguments& a) {
  return {{a.labels, a.wide_labels}, a.weights, a.classes, a.ignore_index, a.of_label, a.of_class};
}

}  // namespace

cudaError_t cross_entropy_by_row(const ClassLossArguments& a, const RowLossResults& results,
                                 cudaStream_t stream) {
  const int64_t rows = a.outer * a.inner;
  if (a.inner > 1)
    return launch(cross_entropy_columns, launch_each(rows, stream, kColumnThreads), a.logits, labels_of(a),
                  results, rows, a.inner);
  return launch_rows<float>(rows, a.classes, stream, [&](auto row, const LaunchConfig& config) {
    return launch(cross_entropy_rows<typename decltype(row)::type>, config, a.logits, labels_of(a), results,
                  rows);
  });
}

cudaError_t cross_entropy_grad(const ClassLossArguments& a, const RowLossSaved& saved, float* grad_logits,
                               cudaStream_t stream) {
  const int64_t rows = a.outer * a.inner;
  if (a.inner > 1)
    return launch(cross_entropy_grad_columns, launch_each(rows, stream, kColumnThreads), a.logits,
                  labels_of(a), saved, grad_logits, rows, a.inner);
  return launch_rows<float>(rows, a.classes, stream, [&](auto row, const LaunchConfig& config) {
    return launch(cross_entropy_grad_rows<typename decltype(row)::type>, config, a.logits, labels_of(a),
                  saved, grad_logits, rows);
  });
}

cudaError_t cross_entropy(const CrossEntropyArguments& arguments, cudaStream_t stream) {
  return with_float(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const LaunchConfig rows{dim3(static_cast<unsigned>(arguments.rows)), dim3(threads_for(arguments.classes)),
                            0, stream};
    const cudaError_t error =
        launch(row_losses<T>, rows, static_cast<const T*>(arguments.logits),
               Indices{arguments.labels, arguments.wide_labels}, arguments.losses, arguments.classes);
    if (error != cudaSuccess) return error;
    return launch(mean_loss<T>, LaunchConfig{dim3(1), dim3(threads_for(arguments.rows)), 0, stream},
                  static_cast<const float*>(arguments.losses), static_cast<T*>(arguments.result),
                  arguments.rows);
  });
}

}  // namespace librt::cuda
