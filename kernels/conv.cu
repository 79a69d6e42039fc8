// Convolutions as implicit GEMM: the im2col matrix is never materialized; its elements are located while
// tiles are loaded. Groups are the matrices of a batch.
#include "kernels/conv.h"

#include <algorithm>

#include "kernels/conv_direct.cuh"
#include "kernels/conv_operands.cuh"

namespace librt::cuda {
namespace {

/// f(first, second) with the operands of a form.
template <class T, class F>
cudaError_t with_operands(const ConvArguments& a, F&& f) {
  const ConvWindows& w = a.windows;
  const auto *first = static_cast<const T*>(a.first), *second = static_cast<const T*>(a.second);
  const ConvSide side = conv_side(w, a.form == ConvForm::Data);
  const int64_t filter = w.taps() * w.group_in();
  switch (a.form) {
    case ConvForm::Data:
      return f(WindowOperand<T, true>{first, side, Divisor(w.group_out())},
               WeightOperand<T>{second, Divisor(w.group_out()), filter, w.group_in()});
    case ConvForm::Weight:
      return f(MatrixOperand<T, false>{second, w.output_channels, w.group_out()},
               TapOperand<T>{first, side, Divisor(w.group_in()), static_cast<int>(filter)});
    case ConvForm::Forward: break;
  }
  return f(WindowOperand<T, false>{first, side, Divisor(w.group_in())},
           MatrixOperand<T, true>{second, filter, w.group_out()});
}

template <class T>
bool vectors_fit(const ConvArguments& a) {
  constexpr int kWidth = kVectorWidth<T>;
  return a.windows.group_in() % kWidth == 0 &&
         (a.form == ConvForm::Forward || a.windows.group_out() % kWidth == 0);
}

cudaError_t run_plain(const ConvArguments& a, cudaStream_t stream) {
  return launch_plain<4>(a.gemm, vectors_fit<float>(a), stream,
                         [&](auto f) { return with_operands<float>(a, f); });
}

template <class T>
cudaError_t run_tensor(const ConvArguments& a, cudaStream_t stream) {
  return launch_tensor(a.gemm, vectors_fit<T>(a), a.algorithm == ConvAlgorithm::Tensor128, stream,
                       [&](auto f) { return with_operands<T>(a, f); });
}

template <class T>
cudaError_t run_direct(const ConvArguments& a, cudaStream_t stream) {
  const ConvWindows& w = a.windows;
  const auto *first = static_cast<const T*>(a.first), *second = static_cast<const T*>(a.second);
  const bool data = a.form == ConvForm::Data;
  const ConvSide side = conv_side(w, data);
  const int filter = static_cast<int>(w.taps()) * w.group_in();
  if (a.form == ConvForm::Weight) {
    const dim3 grid(static_cast<unsigned>(ceil_div(w.output_channels, kWarpSize)),
                    static_cast<unsigned>(a.gemm.splits), static_cast<unsigned>(filter));
    Gemm p = a.gemm;  // one matrix for all groups
    p.m = w.output_channels;
    p.matrices = 1;
    const cudaError_t error =
        launch(direct_weight_grad_kernel<T>, {grid, dim3(kWarpSize * kPixelLanes), 0, stream}, first, second,
               side, w.output_channels, w.group_out(), w.group_in(), p);
    if (error != cudaSuccess || p.splits == 1) return error;
    return launch_combine_splits<T>(p, stream);
  }
  const int channels = data ? w.input_channels : w.output_channels;
  const int result = data ? w.group_in() : w.group_out(), read = data ? w.group_out() : w.group_in();
  return launch(data ? direct_conv_kernel<T, true> : direct_conv_kernel<T, false>,
                launch_each(static_cast<int64_t>(side.pixels) * channels, stream), first, second, side,
                Divisor(channels), Divisor(result), read, filter, a.gemm);
}

}  // namespace

Gemm conv_gemm(const ConvWindows& w, ConvForm form) {
  Gemm p;
  p.matrices = w.groups;
  p.batch.rank = 1;
  p.batch.extent[0] = w.groups;
  const auto strides = [&](int64_t first, int64_t second, int64_t bias, int64_t result) {
    p.batch.stride[GemmBatch::First][0] = first;
    p.batch.stride[GemmBatch::Second][0] = second;
    p.batch.stride[GemmBatch::Bias][0] = bias;
    p.batch.stride[GemmBatch::Result][0] = result;
  };
  const int64_t filter = w.taps() * w.group_in(), filters = filter * w.group_out();
  switch (form) {
    case ConvForm::Forward:
      p.m = static_cast<int>(w.output_pixels());
      p.n = w.group_out();
      p.k = static_cast<int>(filter);
      p.result_row = w.output_channels;
      strides(w.group_in(), filters, w.group_out(), w.group_out());
      break;
    case ConvForm::Data:
      p.m = static_cast<int>(w.input_pixels());
      p.n = w.group_in();
      p.k = static_cast<int>(w.taps() * w.group_out());
      p.result_row = w.input_channels;
      strides(w.group_out(), filters, w.group_in(), w.group_in());
      break;
    case ConvForm::Weight:
      p.m = w.group_out();
      p.n = static_cast<int>(filter);
      p.k = static_cast<int>(w.output_pixels());
      p.result_row = filter;
      strides(w.group_out(), w.group_in(), 0, filters);
      break;
  }
  return p;
}

int conv_direct_splits(const ConvWindows& w, int multiprocessors) {
  const int64_t blocks =
      std::max<int64_t>(ceil_div(w.output_channels, kWarpSize) * w.taps() * w.group_in(), 1);
  const int64_t wanted = 4 * static_cast<int64_t>(multiprocessors) / blocks;
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, w.output_pixels() / 256), 1, 256));
}

cudaError_t conv(const ConvArguments& a, cudaStream_t stream) {
  switch (a.algorithm) {
    case ConvAlgorithm::Direct:
      return with_float(a.type,
                        [&](auto tag) { return run_direct<typename decltype(tag)::type>(a, stream); });
    case ConvAlgorithm::Tensor64:
    case ConvAlgorithm::Tensor128:
      return with_float(a.type,
                        [&](auto tag) { return run_tensor<typename decltype(tag)::type>(a, stream); });
    case ConvAlgorithm::Plain: break;
  }
  return run_plain(a, stream);
}

}  // namespace librt::cuda
