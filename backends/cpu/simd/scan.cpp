// Prefix sums and products of a row, and down columns. The log2(lanes) steps within a vector do not depend on
// earlier vectors; only one addition per vector does.
#include "backends/cpu/simd/scan.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

template <bool kProduct, class T>
RT_INLINE T combine(T a, T b) {
  return kProduct ? a * b : a + b;
}
/// Lane i becomes lane i - kBy (or i + kBy), or that of `filling`.
template <int kBy, bool kReverse, class V, int... kI>
RT_INLINE V shifted(V v, V filling, std::integer_sequence<int, kI...>) {
  constexpr int kWidth = sizeof...(kI);
  if constexpr (kReverse)
    return __builtin_shufflevector(v, filling, (kI + kBy < kWidth ? kI + kBy : kWidth + kI)...);
  else
    return __builtin_shufflevector(v, filling, (kI >= kBy ? kI - kBy : kWidth + kI)...);
}
template <bool kProduct, bool kReverse, int kWidth, int kBy = 1, class V>
RT_INLINE V scan_vector(V v, V neutral) {
  if constexpr (kBy < kWidth) {
    const V sum = combine<kProduct>(v, shifted<kBy, kReverse>(v, neutral, Lanes<kWidth>{}));
    return scan_vector<kProduct, kReverse, kWidth, 2 * kBy>(sum, neutral);
  }
  return v;
}

template <class T, bool kProduct, bool kReverse>
void scan(const T* x, T* y, int64_t n, bool exclusive) {
  using V = Vector<T>;
  constexpr int kWidth = kLanes<T>;
  constexpr T kNeutral = kProduct ? 1 : 0;
  const V neutral = V{} + kNeutral;
  T total = kNeutral;
  int64_t done = 0;
  for (; done + kWidth <= n; done += kWidth) {
    const int64_t at = kReverse ? n - done - kWidth : done;
    const V within = scan_vector<kProduct, kReverse, kWidth>(load<V>(x + at), neutral);
    const V first = exclusive ? shifted<1, kReverse>(within, neutral, Lanes<kWidth>{}) : within;
    store(y + at, combine<kProduct>(V{} + total, first));
    total = combine<kProduct>(total, within[kReverse ? 0 : kWidth - 1]);
  }
  for (; done < n; ++done) {
    const int64_t at = kReverse ? n - done - 1 : done;
    const T next = combine<kProduct>(total, x[at]);
    y[at] = exclusive ? total : next;
    total = next;
  }
}

template <class T, bool kProduct>
void scan_row(const void* x, void* y, int64_t n, bool exclusive, bool reverse) {
  (reverse ? scan<T, kProduct, true> : scan<T, kProduct, false>)(static_cast<const T*>(x), static_cast<T*>(y),
                                                                 n, exclusive);
}

/// kVectors vectors of neighbouring columns, whose totals stay in registers. y may be x.
template <class T, bool kProduct, int kVectors>
void scan_block(const T* x, T* y, int64_t extent, int64_t step, bool exclusive) {
  using V = Vector<T>;
  V total[kVectors];
  for (V& each : total) each = V{} + T{kProduct};
  for (int64_t row = 0; row < extent; ++row, x += step, y += step)
    for (int v = 0; v < kVectors; ++v) {
      const V next = combine<kProduct>(total[v], load<V>(x + v * kLanes<T>));
      store(y + v * kLanes<T>, exclusive ? total[v] : next);
      total[v] = next;
    }
}

/// Floor: x read and y written once; the totals stay in L1, those of short rows in registers: a pass over
/// part of a long row would read a line of each page.
template <class T, bool kProduct>
void scan_columns(const void* from, void* to, int64_t extent, int64_t stride, int64_t n, bool exclusive,
                  bool reverse, bool past_caches) {
  const auto* x = static_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  constexpr int64_t kRun = 4096 / static_cast<int64_t>(sizeof(T));
  alignas(kLineBytes) T total[kRun], line[kRun];
  int64_t first = 0;
  if (!past_caches && stride <= kRun) {
    constexpr int kVectors = 4;
    const int64_t start = reverse ? (extent - 1) * stride : 0, step = reverse ? -stride : stride;
    for (; first + kVectors * kLanes<T> <= n; first += kVectors * kLanes<T>)
      scan_block<T, kProduct, kVectors>(x + start + first, y + start + first, extent, step, exclusive);
    for (; first + kLanes<T> <= n; first += kLanes<T>)
      scan_block<T, kProduct, 1>(x + start + first, y + start + first, extent, step, exclusive);
  }
  for (; first < n; first += kRun) {
    const int64_t count = n - first < kRun ? n - first : kRun;
    for (int64_t i = 0; i < count; ++i) total[i] = kProduct ? 1 : 0;
    for (int64_t step = 0; step < extent; ++step) {
      const int64_t at = (reverse ? extent - 1 - step : step) * stride + first;
      const T* row = x + at;
      T* out = past_caches ? line : y + at;
      if (exclusive) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) {
          const T next = combine<kProduct>(total[i], row[i]);
          out[i] = total[i];
          total[i] = next;
        }
      } else {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) {
          const T next = combine<kProduct>(total[i], row[i]);
          out[i] = next;
          total[i] = next;
        }
      }
      if (past_caches) stream_bytes(line, y + at, count * static_cast<int64_t>(sizeof(T)));
    }
  }
  if (past_caches) finish_streams();
}

template <class T>
constexpr void fill(ScanLoops& table, ScanCode code) {
  const int type = static_cast<int>(code);
  table.scan_row[0][type] = &scan_row<T, false>;
  table.scan_row[1][type] = &scan_row<T, true>;
  table.scan_columns[0][type] = &scan_columns<T, false>;
  table.scan_columns[1][type] = &scan_columns<T, true>;
}

constexpr ScanLoops make_loops() {
  ScanLoops table{};
  fill<float>(table, ScanCode::F32);
  fill<double>(table, ScanCode::F64);
  fill<uint32_t>(table, ScanCode::U32);
  fill<uint64_t>(table, ScanCode::U64);
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(ScanLoops);
