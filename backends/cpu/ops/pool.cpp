// Pooling and its gradients. Channels are the innermost dimension of both layouts, so that every tap is a
// vector operation on a run of channels. Gradients are split among threads by sample and block of channels,
// because the windows of one sample overlap. Forward pooling also takes 16-bit floats.
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/device/device.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/quantized.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/simd/window.h"
#include "backends/cpu/support/element_types.h"
#include "backends/cpu/support/widen_blocks.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {
namespace {

/// Always three spatial axes (missing ones have extent 1), and the addresses of runs of channels.
struct Pool {
  std::array<WindowAxis, 3> axes{};
  int64_t images = 0;  ///< samples, or samples x channel blocks
  int64_t width = 0;   ///< channels of one run
  int64_t in_points = 1, out_points = 1;
  int64_t taps = 1;

  template <class T>
  const T* in(const T* x, int64_t image, int64_t point) const noexcept {
    return x + (image * in_points + point) * width;
  }
};

Pool make_pool(const PoolGeometry& geometry, LayoutId layout) {
  Pool pool;
  const int missing = kMaxSpatialRank - geometry.rank;
  for (int i = 0; i < geometry.rank; ++i)
    pool.axes[static_cast<size_t>(i + missing)] = geometry.axes[static_cast<size_t>(i)];
  const int64_t blocks = layout == kBlocked16 ? geometry.channels / kBlock : 1;
  pool.images = geometry.batch * blocks;
  pool.width = geometry.channels / std::max<int64_t>(blocks, 1);
  for (const WindowAxis& axis : pool.axes) {
    pool.in_points *= axis.input;
    pool.out_points *= axis.output;
    pool.taps *= axis.kernel;
  }
  return pool;
}

struct Taps {
  int64_t begin, end;
};
/// The taps of window `window` that lie inside the input.
Taps inside(const WindowAxis& axis, int64_t window) noexcept {
  Taps taps{0, axis.kernel};
  while (taps.begin < taps.end && axis.position(window, taps.begin) < 0) ++taps.begin;
  while (taps.end > taps.begin && axis.position(window, taps.end - 1) >= axis.input) --taps.end;
  return taps;
}

/// body(point) for every input point in the window of output point `out`, in row-major order.
template <class Body>
void for_taps(const Pool& pool, int64_t out, const Body& body) noexcept {
  const auto& [d, h, w] = pool.axes;
  const int64_t ow = out % w.output, oh = out / w.output % h.output, od = out / w.output / h.output;
  const Taps in_d = inside(d, od), in_h = inside(h, oh), in_w = inside(w, ow);
  for (int64_t i = in_d.begin; i < in_d.end; ++i)
    for (int64_t j = in_h.begin; j < in_h.end; ++j) {
      const int64_t row = (d.position(od, i) * h.input + h.position(oh, j)) * w.input;
      for (int64_t k = in_w.begin; k < in_w.end; ++k) body(row + w.position(ow, k));
    }
}

int64_t divisor(const Pool& pool, int64_t out, bool count_include_pad) noexcept {
  const auto& [d, h, w] = pool.axes;
  const int64_t count = average_count(w, out % w.output, count_include_pad) *
                        average_count(h, out / w.output % h.output, count_include_pad) *
                        average_count(d, out / w.output / h.output, count_include_pad);
  return std::max<int64_t>(count, 1);
}

LayoutId layout_of(const TensorInfo& info, Producers producers, size_t input) {
  return info.dtype == DType::F32 && producers.size() > input && producers[input] == kBlocked16 &&
                 can_block(info)
             ? kBlocked16
             : kDense;
}

/// The loops of pools by rows: y = combine(y, x), and the windows along one row.
template <class T>
struct RowLoop {
  void (*combine)(T* y, const T* x, int64_t n);
  WindowLoops::PoolRow<T> windows;
  decltype(RowLoops::scale) scale;  ///< of averages
};
RowLoop<float> row_loop(const Simd& simd, bool max, float) {
  return {
      simd.loops<RowLoops>().accumulate[static_cast<int>(max ? ReduceFunction::Max : ReduceFunction::Sum)],
      simd.loops<WindowLoops>().pool_row[max ? 1 : 0], simd.loops<RowLoops>().scale};
}
RowLoop<int8_t> row_loop(const Simd& simd, bool, int8_t) {
  return {simd.loops<QuantizedLoops>().max_i8, simd.loops<WindowLoops>().max_row_i8, nullptr};
}
RowLoop<uint8_t> row_loop(const Simd& simd, bool, uint8_t) {
  return {simd.loops<QuantizedLoops>().max_u8, simd.loops<WindowLoops>().max_row_u8, nullptr};
}

/// For few channels or overlapping windows: the input rows of a row of windows are combined first, in
/// segments that stay in L1, with the neutral element in the padding; then the windows along the result.
template <bool kMax, class T>
KernelPtr make_by_rows(const Simd& simd, const Pool& pool, bool count_pad, LayoutId layout) {
  constexpr int64_t kBuffer = 16384 / sizeof(T);
  constexpr T kLeast = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                            : std::numeric_limits<T>::lowest();
  constexpr T kNeutral = kMax ? kLeast : T{0};
  const WindowAxis& across = pool.axes[2];
  const int64_t capacity = kBuffer / std::max<int64_t>(pool.width, 1);
  const int64_t segment = std::clamp<int64_t>((capacity - across.reach()) / across.stride + 1, 1,
                                              std::max<int64_t>(across.output, 1));
  const int64_t buffered = ((segment - 1) * across.stride + across.reach()) * pool.width;
  std::vector<int64_t> counts;
  counts.reserve(static_cast<size_t>(std::max<int64_t>(across.output, 0)));
  for (int64_t i = 0; i < across.output; ++i) counts.push_back(average_count(across, i, count_pad));
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(max_threads() * buffered) * sizeof(T);
  return make_kernel(
      [=, loop = row_loop(simd, kMax, T{}), counts = std::move(counts)](const Call& call) noexcept {
        const WindowAxis &d = pool.axes[0], &h = pool.axes[1], &w = pool.axes[2];
        const int64_t lines = d.output * h.output;
        parallel_for(
            pool.images * lines, w.output * pool.width * pool.taps * static_cast<int64_t>(sizeof(T)) / 4, 1,
            [&](int64_t begin, int64_t end) noexcept {
              T* buffer = call.scratch<T>() + thread_index() * buffered;
              for (int64_t line = begin; line < end; ++line) {
                const int64_t image = line / lines, od = line % lines / h.output, oh = line % h.output;
                const Taps in_d = inside(d, od), in_h = inside(h, oh);
                const int64_t rest = average_count(d, od, count_pad) * average_count(h, oh, count_pad);
                for (int64_t first = 0; first < w.output; first += segment) {
                  const int64_t n = std::min(segment, w.output - first);
                  const int64_t columns = (n - 1) * w.stride + w.reach(), left = w.position(first, 0);
                  const int64_t low = std::clamp<int64_t>(-left, 0, columns),
                                high = std::clamp<int64_t>(w.input - left, low, columns);
                  std::fill(buffer, buffer + low * pool.width, kNeutral);
                  std::fill(buffer + high * pool.width, buffer + columns * pool.width, kNeutral);
                  T* middle = buffer + low * pool.width;
                  const int64_t count = (high - low) * pool.width;
                  bool empty = true;
                  for (int64_t i = in_d.begin; i < in_d.end; ++i)
                    for (int64_t j = in_h.begin; j < in_h.end; ++j) {
                      const int64_t row = (d.position(od, i) * h.input + h.position(oh, j)) * w.input;
                      const T* from = pool.in(call.in<T>(0), image, row + left + low);
                      if (empty)
                        std::memcpy(middle, from, static_cast<size_t>(count) * sizeof(T));
                      else
                        loop.combine(middle, from, count);
                      empty = false;
                    }
                  if (empty) std::fill(middle, middle + count, kNeutral);
                  T* out = call.out<T>() + (line * w.output + first) * pool.width;
                  loop.windows(buffer, out, n, pool.width, w.stride, w.kernel, w.dilation);
                  if constexpr (!kMax) {
                    for (int64_t i = 0; i < n;) {  // windows that hold equally many elements
                      const int64_t same = counts[static_cast<size_t>(first + i)];
                      int64_t last = i + 1;
                      while (last < n && counts[static_cast<size_t>(first + last)] == same) ++last;
                      float* to = out + i * pool.width;
                      loop.scale(to, to, 1.0f / static_cast<float>(std::max<int64_t>(same * rest, 1)),
                                 (last - i) * pool.width);
                      i = last;
                    }
                  }
                }
              }
            });
      },
      requirements, {layout, 1, 1});
}

/// One window after the other; each vector of channels stays in a register.
template <bool kMax>
KernelPtr make_by_windows(const Simd& simd, const Pool& pool, bool count_pad, LayoutId layout) {
  const auto combine = simd.loops<WindowLoops>().pool_window[kMax ? 1 : 0];
  const auto scale = simd.loops<RowLoops>().scale;
  return make_kernel(
      [=](const Call& call) noexcept {
        const auto window = [=, &call](int64_t i) noexcept {
          constexpr size_t kMost = 32;
          std::array<int64_t, kMost> offsets;
          size_t count = 0;
          bool more = false;
          const float* x = pool.in(call.in<float>(0), i / pool.out_points, 0);
          float* out = call.out<float>() + i * pool.width;
          const auto flush = [&]() noexcept {
            if (count == 0) return;
            combine(x, offsets.data(), static_cast<int64_t>(count), more, out, pool.width);
            more = true;
            count = 0;
          };
          const int64_t point = i % pool.out_points;
          for_taps(pool, point, [&](int64_t from) noexcept {
            offsets[count++] = from * pool.width;
            if (count == kMost) flush();
          });
          flush();
          if (!more)
            std::fill(out, out + pool.width, kMax ? -std::numeric_limits<float>::infinity() : 0.0f);
          else if (!kMax)
            scale(out, out, 1.0f / static_cast<float>(divisor(pool, point, count_pad)), pool.width);
        };
        parallel_for(pool.images * pool.out_points, pool.width * pool.taps, 1,
                     [&](int64_t begin, int64_t end) noexcept {
                       for (int64_t i = begin; i < end; ++i) window(i);
                     });
      },
      {}, {layout, 1, 1});
}

/// Of 16-bit floats, which are widened a block of channels at a time.
template <bool kMax>
KernelPtr make_half(const Simd& simd, const Pool& pool, bool count_pad, DType dtype) {
  const auto combine =
      simd.loops<RowLoops>().accumulate[static_cast<int>(kMax ? ReduceFunction::Max : ReduceFunction::Sum)];
  return make_kernel([=, &simd](const Call& call) noexcept {
    const auto reduce_window = [=, &call, &simd](int64_t i, int64_t channel, int64_t count) noexcept {
      float widened[kWideBlock], joined[kWideBlock];
      const int64_t image = i / pool.out_points, point = i % pool.out_points;
      bool first = true;
      for_taps(pool, point, [&](int64_t from) noexcept {
        const int64_t at = (image * pool.in_points + from) * pool.width + channel;
        widen_block(simd, dtype, call.in<uint16_t>(0) + at, first ? joined : widened, count);
        if (!first) combine(joined, widened, count);
        first = false;
      });
      if (first)
        std::fill(joined, joined + count, kMax ? -std::numeric_limits<float>::infinity() : 0.0f);
      else if (!kMax)
        simd.loops<RowLoops>().scale(joined, joined,
                                     1.0f / static_cast<float>(divisor(pool, point, count_pad)), count);
      narrow_block(simd, dtype, joined, call.out<uint16_t>() + i * pool.width + channel, count);
    };
    parallel_for(pool.images * pool.out_points, pool.width * pool.taps, 1,
                 [&](int64_t begin, int64_t end) noexcept {
                   for (int64_t i = begin; i < end; ++i)
                     for (int64_t channel = 0; channel < pool.width; channel += kWideBlock)
                       reduce_window(i, channel, std::min(kWideBlock, pool.width - channel));
                 });
  });
}

template <class Attributes, bool kMax>
Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers producers) {
  const auto& attributes = node.as<Attributes>();
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), attributes));
  const LayoutId layout = layout_of(node.input(0), producers, 0);
  const Pool pool = make_pool(geometry, layout);
  bool count_pad = false;
  if constexpr (!kMax) count_pad = attributes.count_include_pad;
  const DType dtype = node.dtype(0);
  if (dtype != DType::F32) return make_half<kMax>(device.simd(), pool, count_pad, dtype);
  constexpr int64_t kFewChannels = 32;
  if (pool.width < kFewChannels || (pool.axes[2].stride == 1 && pool.axes[2].kernel < pool.axes[2].output))
    return make_by_rows<kMax, float>(device.simd(), pool, count_pad, layout);
  return make_by_windows<kMax>(device.simd(), pool, count_pad, layout);
}

/// Max pooling of quantized values; a window in the padding gives the least value.
Result<KernelPtr> create_quantized_max(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), node.as<op::MaxPoolAttributes>()));
  const Pool pool = make_pool(geometry, kDense);
  if (node.dtype(0) == DType::I8) return make_by_rows<true, int8_t>(device.simd(), pool, false, kDense);
  return make_by_rows<true, uint8_t>(device.simd(), pool, false, kDense);
}

/// Positions in the flattened [N,C,S] of each window's first largest element; -1 for a window in the padding.
Result<KernelPtr> create_max_indices(CpuDevice&, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::MaxPoolIndicesAttributes>();
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), attributes));
  const Pool pool = make_pool(geometry, kDense);
  return with_type(node.dtype(0), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    return make_kernel([=, column_major = attributes.column_major](const Call& call) noexcept {
      const T* x = call.in<T>(0);
      int64_t* y = call.out<int64_t>();
      // Named references: clang 14 does not let a lambda capture a structured binding.
      const auto &d = pool.axes[0], &h = pool.axes[1], &w = pool.axes[2];
      const int64_t channels = pool.width;
      parallel_for(
          pool.images * pool.out_points, channels * pool.taps, 1, [&](int64_t begin, int64_t end) noexcept {
            for (int64_t i = begin; i < end; ++i) {
              const int64_t image = i / pool.out_points;
              const T* in = x + image * pool.in_points * channels;
              for (int64_t c = 0; c < channels; ++c) {
                int64_t best_index = -1;
                decltype(widen(T{})) best{};
                for_taps(pool, i % pool.out_points, [&](int64_t from) noexcept {
                  const auto value = widen(in[from * channels + c]);
                  const bool wins = best_index < 0 || value > best || (value != value && best == best);
                  best = wins ? value : best;
                  best_index = wins ? from : best_index;
                });
                if (best_index >= 0 && column_major)
                  best_index = best_index / (h.input * w.input) +
                               (best_index / w.input % h.input + best_index % w.input * h.input) * d.input;
                y[i * channels + c] =
                    best_index < 0 ? -1 : (image * channels + c) * pool.in_points + best_index;
              }
            }
          });
    });
  });
}

/// (x, grad_output) -> grad_x: each window's gradient goes to the first of its largest elements.
Result<KernelPtr> create_max_grad(CpuDevice& device, const NodeView& node, Producers producers) {
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(node.shape(0), node.as<op::MaxPoolGradAttributes>()));
  const LayoutId layout = can_block(node.input(0)) && (layout_of(node.input(0), producers, 0) == kBlocked16 ||
                                                       layout_of(node.input(1), producers, 1) == kBlocked16)
                              ? kBlocked16
                              : kDense;
  const Pool pool = make_pool(geometry, layout);
  // Channels of one work item, so that one image is split among threads.
  const int64_t run = std::min<int64_t>(pool.width, 64), runs = run == 0 ? 0 : (pool.width + run - 1) / run;
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(max_threads() * pool.taps) * sizeof(int64_t);
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        const float *x = call.in<float>(0), *g = call.in<float>(1);
        float* grad = call.out<float>();
        parallel_for(
            pool.images * runs, pool.in_points * run * 4, 1, [&](int64_t begin, int64_t end) noexcept {
              int64_t* offsets = call.scratch<int64_t>() + thread_index() * pool.taps;
              for (int64_t i = begin; i < end; ++i) {
                const int64_t image = i / runs, channel = i % runs * run,
                              width = std::min(run, pool.width - channel);
                const float* in = pool.in(x, image, 0) + channel;
                float* to = grad + image * pool.in_points * pool.width + channel;
                for (int64_t p = 0; p < pool.in_points; ++p)
                  std::fill(to + p * pool.width, to + p * pool.width + width, 0.0f);
                for (int64_t out = 0; out < pool.out_points; ++out) {
                  int64_t count = 0;
                  for_taps(pool, out, [&](int64_t from) noexcept { offsets[count++] = from * pool.width; });
                  const float* from = g + (image * pool.out_points + out) * pool.width + channel;
                  if (count > 0) simd.loops<WindowLoops>().max_gradient(in, from, to, offsets, count, width);
                }
              }
            });
      },
      requirements, {layout, 3, 1});
}

/// (input_shape, grad_output) -> grad_x: each window's gradient, divided, goes to all of its elements.
Result<KernelPtr> create_average_grad(CpuDevice& device, const NodeView& node, Producers producers) {
  const auto& attributes = node.as<op::AveragePoolGradAttributes>();
  const TensorInfo& result = node.output(0);
  RT_ASSIGN(const PoolGeometry geometry, pool_geometry(result.shape, attributes));
  const LayoutId layout = can_block(result) ? layout_of(node.input(1), producers, 1) : kDense;
  const Pool pool = make_pool(geometry, layout);
  const int64_t run = std::min<int64_t>(pool.width, 64), runs = run == 0 ? 0 : (pool.width + run - 1) / run;
  const bool count_pad = attributes.count_include_pad;
  return make_kernel(
      [=, &simd = device.simd()](const Call& call) noexcept {
        const float* g = call.in<float>(1);
        float* grad = call.out<float>();
        parallel_for(pool.images * runs, pool.in_points * run * 2, 1,
                     [&](int64_t begin, int64_t end) noexcept {
                       for (int64_t i = begin; i < end; ++i) {
                         const int64_t image = i / runs, channel = i % runs * run,
                                       width = std::min(run, pool.width - channel);
                         float* to = grad + image * pool.in_points * pool.width + channel;
                         for (int64_t p = 0; p < pool.in_points; ++p)
                           std::fill(to + p * pool.width, to + p * pool.width + width, 0.0f);
                         for (int64_t out = 0; out < pool.out_points; ++out) {
                           const float* from = g + (image * pool.out_points + out) * pool.width + channel;
                           const float factor = 1.0f / static_cast<float>(divisor(pool, out, count_pad));
                           for_taps(pool, out, [&](int64_t point) noexcept {
                             simd.loops<RowLoops>().axpy(to + point * pool.width, from, factor, width);
                           });
                         }
                       }
                     });
      },
      {}, {layout, 2, 1});
}

Status supports_average_grad(const CpuDevice&, const NodeView& node) {
  if (node.dtype(1) != DType::F32) return unsupported("no kernel for gradients of ", name_of(node.dtype(1)));
  return {};
}

}  // namespace

std::span<const KernelRow> rows_pool();
std::span<const KernelRow> rows_pool() {
  constexpr DTypeSet kF32{DType::F32}, kShort{DType::F32, DType::F16, DType::BF16};
  static constexpr KernelRow kRows[] = {
      row<create<op::MaxPoolAttributes, true>>(OpKind::MaxPool, "max_pool", kShort),
      row<create_quantized_max>(OpKind::MaxPool, "max_pool.quantized", DTypeSet{DType::U8, DType::I8}),
      row<create<op::AveragePoolAttributes, false>>(OpKind::AveragePool, "average_pool", kShort),
      row<create_max_indices>(OpKind::MaxPoolIndices, "max_pool_indices", kAnyDType),
      row<create_max_grad>(OpKind::MaxPoolGrad, "max_pool_grad", kF32),
      row<create_average_grad, supports_average_grad>(OpKind::AveragePoolGrad, "average_pool_grad",
                                                      DTypeSet{DType::I64}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
