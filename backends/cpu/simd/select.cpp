// Selection by condition, for elements of every size; candidates for the k largest elements.
#include "backends/cpu/simd/select.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

template <class T>
void select_elements(const uint8_t* condition, const void* yes, const void* no, void* result, int64_t n,
                     bool a_advances, bool b_advances) {
  const auto *a = static_cast<const T*>(yes), *b = static_cast<const T*>(no);
  auto* y = static_cast<T*>(result);
  if (a_advances && b_advances) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T first = a[i], second = b[i];
      y[i] = condition[i] != 0 ? first : second;
    }
  } else if (a_advances) {
    const T second = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T first = a[i];
      y[i] = condition[i] != 0 ? first : second;
    }
  } else if (b_advances) {
    const T first = *a;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T second = b[i];
      y[i] = condition[i] != 0 ? first : second;
    }
  } else {
    const T first = *a, second = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = condition[i] != 0 ? first : second;
  }
}

/// An unsigned key for the order of x: the least key comes first.
RT_INLINE uint32_t order_of(float x, bool largest) {
  const uint32_t bits = float_to_bits(x + 0.0f);
  const uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  const uint32_t ascending = x == x ? ordered : ~uint32_t{0};
  return largest ? ~ascending : ascending;
}

/// An upper bound of the k-th least key: the k-th least of the minima of kLanes sets that split the row, of
/// which the upper 16 bits suffice.
template <int kLanes>
uint32_t bound(const uint32_t* keys, int64_t n, int64_t k) {
  uint32_t least[kLanes];
  for (int i = 0; i < kLanes; ++i) least[i] = keys[i];
  int64_t at = kLanes;
  for (; at + kLanes <= n; at += kLanes) {
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) least[i] = keys[at + i] < least[i] ? keys[at + i] : least[i];
  }
  for (int i = 0; at < n; ++i, ++at) least[i] = keys[at] < least[i] ? keys[at] : least[i];
  uint32_t limit = 0;
  for (uint32_t bit = 0x80000000u; bit >= 0x10000u; bit >>= 1) {
    const uint32_t trial = limit | (bit - 1);
    int32_t count = 0;
#pragma omp simd reduction(+ : count)
    for (int i = 0; i < kLanes; ++i) count += least[i] <= trial ? 1 : 0;
    if (count < k) limit |= bit;
  }
  return limit | 0xffffu;
}

int64_t top_candidates(const float* x, int64_t n, int64_t k, bool largest, uint32_t* keys,
                       uint64_t* entries) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) keys[i] = order_of(x[i], largest);
  uint32_t limit = ~uint32_t{0};
  if (k <= 16 && n >= 256)
    limit = bound<64>(keys, n, k);
  else if (k <= 128 && n >= 1024)
    limit = bound<512>(keys, n, k);
  int64_t count = 0;
  constexpr int64_t kRun = 32;
  for (int64_t i = 0; i < n; i += kRun) {
    const int64_t end = i + kRun < n ? i + kRun : n;
    int32_t hits = 0;
#pragma omp simd reduction(| : hits)
    for (int64_t j = i; j < end; ++j) hits |= keys[j] <= limit ? 1 : 0;
    if (hits == 0) continue;
    for (int64_t j = i; j < end; ++j) {
      entries[count] = uint64_t{keys[j]} << 32 | static_cast<uint64_t>(j);
      count += keys[j] <= limit ? 1 : 0;
    }
  }
  return count;
}

/// By insertion: the few elements that rank before the k-th so far.
void top_few(const float* x, int64_t n, int64_t k, bool largest, uint32_t* keys, uint64_t* entries) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) keys[i] = order_of(x[i], largest);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t count = i < k ? i : k;
    // Of equal ones the first stays.
    if (count == k && keys[i] >= static_cast<uint32_t>(entries[k - 1] >> 32)) continue;
    const uint64_t entry = uint64_t{keys[i]} << 32 | static_cast<uint64_t>(i);
    int64_t at = count < k ? count : k - 1;
    for (; at > 0 && entries[at - 1] > entry; --at) entries[at] = entries[at - 1];
    entries[at] = entry;
  }
}

template <class Index>
void element_offsets(const void* from, int64_t extent, int64_t stride, int64_t step, int64_t* offsets,
                     int64_t n) {
  const auto* indices = static_cast<const Index*>(from);
  const int64_t last = extent - 1;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const int64_t index = indices[i];
    const int64_t from_start = index + (index < 0 ? extent : 0);
    const int64_t not_below = from_start < 0 ? 0 : from_start;
    offsets[i] = (not_below < last ? not_below : last) * stride + i * step;
  }
}

constexpr SelectLoops make_loops() {
  SelectLoops table{};
  table.top_candidates = &top_candidates;
  table.top_few = &top_few;
  table.select[0] = &select_elements<uint8_t>;
  table.select[1] = &select_elements<uint16_t>;
  table.select[2] = &select_elements<uint32_t>;
  table.select[3] = &select_elements<uint64_t>;
  table.element_offsets[0] = &element_offsets<int32_t>;
  table.element_offsets[1] = &element_offsets<int64_t>;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(SelectLoops);
