// Shape operands emitted by importers: vectors of extents, static ones as constants, dynamic ones from the
// shape of a value.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "runtime/core/status.h"
#include "tools/compiler/builder.h"

namespace librt::onnx {

/// One entry of a shape: a constant, or dimension `axis` of `source`.
struct Extent {
  int64_t number = -1;
  ValueId source = kNoValue;
  int axis = 0;

  static Extent of(int64_t number) { return {.number = number}; }
  /// The dimension as a constant where it is static.
  static Extent dim(const Emitter& emit, ValueId source, int axis);
  bool is_number() const { return source == kNoValue; }
};

/// i64 vector; a constant where all entries are constants.
ValueId shape_vector(Emitter& emit, std::span<const Extent> extents);
ValueId reshape_to(Emitter& emit, ValueId x, std::span<const Extent> extents);
ValueId reshape_to(Emitter& emit, ValueId x, std::initializer_list<int64_t> extents);
/// All dimensions of x.
std::vector<Extent> extents_of(const Emitter& emit, ValueId x);
/// The product of dimensions [first, last) as an i64 vector of one element.
ValueId dims_product(Emitter& emit, ValueId x, int first, int last);
/// Concatenates i64 vectors.
ValueId concat_values(Emitter& emit, std::vector<ValueId> vectors);
/// A scalar or vector of integers as an i64 vector.
ValueId as_vector(Emitter& emit, ValueId x);

/// x, cast where it is of another type; kNoValue stays.
ValueId as_type(Emitter& emit, ValueId x, DType dtype);

/// Values as a constant of a float type.
ValueId float_values(Emitter& emit, const Shape& shape, std::span<const double> values, DType dtype);

/// Gather along the axis.
ValueId take(Emitter& emit, ValueId x, ValueId index, int64_t axis);
/// The first axis becomes axis `to`, which may count from the end.
ValueId move_first_axis(Emitter& emit, ValueId x, int64_t to);

/// Normalizes axes known only at run time (i64) to [0, rank).
ValueId counted_from_start(Emitter& emit, ValueId axes, int rank);
/// A vector of `rank` entries: those of `entries` at `axes` (i64 vectors of one length, known only at run
/// time), `otherwise` at the other axes.
ValueId entries_by_axis(Emitter& emit, ValueId entries, ValueId axes, int rank, int64_t otherwise);

/// Inserts extents of 1 so that the result has 1 at `axes` (of the result's rank, sorted, normalized).
ValueId unsqueeze(Emitter& emit, ValueId x, std::span<const int> axes);
ValueId squeeze(Emitter& emit, ValueId x, std::span<const int> axes);

ValueId slice(Emitter& emit, ValueId x, int64_t axis, int64_t start, int64_t end);
/// With bounds known only at run time: i64 vectors of one element.
ValueId slice_between(Emitter& emit, ValueId x, int64_t axis, ValueId start, ValueId end);
/// x; a run fails unless its axis has this extent, an i64 vector of one element.
ValueId demand_extent(Emitter& emit, ValueId x, int64_t axis, ValueId extent);
/// Parts along the axis; their sizes, an i64 vector of `count` entries, are known only at run time.
std::vector<ValueId> split_by_value(compiler::Builder& emit, ValueId x, int64_t axis, ValueId sizes,
                                    int64_t count);
/// 0, 1 .. count - 1 as i64; a negative count is an error, also one that only a run has. count: a scalar.
ValueId counting(compiler::Builder& emit, ValueId count);
ValueId concat(Emitter& emit, std::span<const ValueId> parts, int64_t axis);

// --- layouts
/// x [N,C,S..] -> [N,S..,C].
ValueId to_channels_last(Emitter& emit, ValueId x);
ValueId to_channels_first(Emitter& emit, ValueId x);
/// Transposes; a constant during import, keeping its name.
ValueId transposed(compiler::Builder& builder, ValueId x, std::vector<int64_t> permutation);

}  // namespace librt::onnx
