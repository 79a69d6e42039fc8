// Prefix sums and products.
#pragma once

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// The element types of scans; signed integers use the unsigned ones, whose sums have the same bits.
enum class ScanCode : uint8_t { F32, F64, U32, U64, Count };

struct ScanLoops {
  /// y[i] = a sum (or product: [1]) of x[0..i], without x[i] if exclusive, or of x[i..n) if reverse. y may be
  /// x. Integers wrap.
  void (*scan_row[2][static_cast<int>(ScanCode::Count)])(const void* x, void* y, int64_t n, bool exclusive,
                                                         bool reverse);
  /// The same down `extent` rows that are `stride` apart, for any number n of neighbouring columns.
  void (*scan_columns[2][static_cast<int>(ScanCode::Count)])(const void* x, void* y, int64_t extent,
                                                             int64_t stride, int64_t n, bool exclusive,
                                                             bool reverse, bool past_caches);
};
RT_DECLARE_LOOPS(ScanLoops);

}  // namespace librt::cpu
