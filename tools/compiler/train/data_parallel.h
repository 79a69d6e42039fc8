// Data parallel training: what a training step needs so that ranks with parts of a batch take the same step.
//
// Knows: collectives, buckets. Must not know: losses, optimizers' formulas, how ranks talk to each other.
//
// Ranks hold the same weights and differ in their samples. The mean over the whole batch is the sum over the
// ranks of share times the rank's own mean, where a rank's share is the divisor of its mean over the sum of
// all ranks' divisors; so gradients of share times loss only need a sum over ranks. It is done in buckets, in
// the order in which the backward pass produces them, overlapping with it.
#pragma once

#include <functional>
#include <vector>

#include "tools/compiler/builder.h"

namespace librt::compiler {

struct DataParallelOptions {
  bool enabled = false;
  int64_t bucket_bytes = int64_t{2} << 20;  ///< a bucket is closed at this size
};

/// Factors of a rank, f32 scalars.
struct RankShare {
  ValueId of_mean = kNoValue;   ///< its weight in a mean over all samples; they add up to 1
  ValueId of_ranks = kNoValue;  ///< 1 / ranks
};

/// weight: the divisor of the rank's own mean, an f32 scalar.
RankShare emit_rank_share(Builder& builder, ValueId weight);

/// The values flattened and concatenated, [elements]. All have one type and static extents.
ValueId emit_flattened(Builder& builder, std::span<const ValueId> values);
/// Splits `flat` (which may be longer) into values shaped like these.
std::vector<ValueId> emit_like(Builder& builder, ValueId flat, std::span<const ValueId> values);
/// The sum of x over all ranks.
ValueId emit_sum_over_ranks(Builder& builder, ValueId x);
/// The sums of these over all ranks, in one operation.
std::vector<ValueId> emit_sums_over_ranks(Builder& builder, std::span<const ValueId> values);

/// Indices into `values`, bucket by bucket, in the order of the nodes that make them. Values of different
/// kinds are in different buckets.
std::vector<std::vector<size_t>> make_buckets(const Graph& graph, std::span<const ValueId> values,
                                              int64_t bucket_bytes,
                                              const std::function<int(size_t)>& kind_of);

}  // namespace librt::compiler
