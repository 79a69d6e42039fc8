// The rows of a family that a build holds: all of them, unless it was made for some models
// (runtime/graph/in_build.h).
//
// Knows: operators and types of rows. Must not know: what they create.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "runtime/backend/kernel_table.h"
#include "runtime/graph/in_build.h"

namespace librt {

/// The rows whose operator, and at least one of whose types, the build holds. What the other rows create is
/// referred to by nothing else, so the compiler leaves it out. static: else GCC 14 gives the table of each
/// file external linkage, though its argument has none, and the linker keeps one of those named alike.
template <const auto& rows>
static std::span<const KernelRow> rows_in_build() noexcept {
  if constexpr (!build::kTrimmed) {
    return rows;
  } else {
    constexpr auto kKept = [](const KernelRow& row) {
      bool typed = false;
      for (int i = 0; i < kDTypeCount; ++i)
        typed = typed || (row.dtypes.contains(static_cast<DType>(i)) && in_build(static_cast<DType>(i)));
      return typed && in_build(row.op);
    };
    static constexpr auto kRows = [kKept] {
      std::array<KernelRow, static_cast<size_t>(std::ranges::count_if(rows, kKept))> kept{};
      std::ranges::copy_if(rows, kept.begin(), kKept);
      return kept;
    }();
    return kRows;
  }
}

}  // namespace librt
