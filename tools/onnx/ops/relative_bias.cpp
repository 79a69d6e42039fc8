// Biases of attention scores by the distance of key and query, as ONNX Runtime fuses them (com.microsoft):
// T5's (Raffel et al. 2020, arXiv:1910.10683) and WavLM's gated one (Chen et al. 2022, arXiv:2110.13900).
#include <array>
#include <cmath>

#include "tools/onnx/heads.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// The bucket of each distance up to max_distance, after which all are in the last: one for each of the first
/// half, then logarithmically wider ones. In f32, as T5 computes them.
std::vector<int64_t> buckets_by_distance(int64_t buckets, int64_t max_distance) {
  const int64_t exact = buckets / 2;
  std::vector<int64_t> found;
  for (int64_t distance = 0; distance <= max_distance; ++distance) {
    if (distance < exact) {
      found.push_back(distance);
      continue;
    }
    const float share = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                        std::log(static_cast<float>(max_distance) / static_cast<float>(exact));
    const auto wide = static_cast<int64_t>(share * static_cast<float>(buckets - exact));
    found.push_back(std::min(exact + wide, buckets - 1));
  }
  return found;
}

// (table [buckets,H], queries, keys): [1,H,queries,keys]
Status relative_position_bias(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  const bool both_ways = c.integer("is_bidirectional", 0) != 0;
  const int64_t max_distance = c.integer("max_distance", 0);
  const int64_t all = c.rank() == 2 ? c.extent(0, 0) : -1, buckets = both_ways ? all / 2 : all;
  constexpr int64_t kFarthest = 1 << 20;
  if (buckets < 2 || max_distance <= buckets / 2 || max_distance > kFarthest)
    return invalid_model(
        "expected a table [buckets,heads] and a max_distance above half of the buckets, found ", all,
        " buckets and ", max_distance);
  compiler::Builder& e = c.emit;
  const auto positions = [&](size_t input) {
    return counting(e, reshape_to(e, e.cast(c.input(input), DType::I64), {}));
  };
  const auto integer = [&](int64_t n) { return e.scalar(static_cast<double>(n), DType::I64); };
  const ValueId distance = e.sub(unsqueeze(e, positions(2), {{0}}),
                                 unsqueeze(e, positions(1), {{1}}));  // of the key after the query
  const ValueId magnitude = both_ways ? e.emit(op::AbsAttributes{}, {distance})
                                      : e.emit(op::MaximumAttributes{}, {e.neg(distance), integer(0)});
  const ValueId known = e.emit(op::MinimumAttributes{}, {magnitude, integer(max_distance)});
  ValueId bucket = take(e, e.ints(buckets_by_distance(buckets, max_distance)), known, 0);
  if (both_ways) {
    const ValueId after = e.emit(op::GreaterAttributes{}, {distance, integer(0)});
    bucket = e.add(bucket, e.emit(op::WhereAttributes{}, {after, integer(buckets), integer(0)}));
  }
  const ValueId rows = take(e, c.input(0), bucket, 0);  // [queries,keys,H]
  return c.result(unsqueeze(e, e.transpose(rows, {2, 0, 1}), {{0}}));
}

enum GatedBiasInput : size_t { kBiasQuery, kBiasOfQuery, kDistances, kGateWeight, kGateBias, kGateScale };

// u (r scale - 1) + 2 times the bias, where u and r are sigmoids of the sums over halves of query weight +
// bias
Status gated_relative_position_bias(NodeContext& c) {
  RT_TRY(c.expect_inputs(6, 7));
  if (c.has(6)) return cannot("token_offset is not supported; export with padding");
  const int64_t heads = c.integer("num_heads", 0);
  const int64_t width = c.rank(kGateWeight) == 2 ? c.extent(kGateWeight, 1) : -1;
  if (heads < 1 || width < 2 || width % 2 != 0)
    return invalid_model("expected num_heads and a weight [size,D] of even D, found ", heads,
                         " and D = ", width);
  if (c.rank(kBiasQuery) != 3) return invalid_model("expected queries [B,S,width], found rank ", c.rank());
  Emitter& e = c.emit;
  RT_ASSIGN(const ValueId query, split_heads(e, e.add(c.input(kBiasQuery), c.input(kBiasOfQuery)), heads));
  const ValueId projected =
      e.add(e.emit(op::MatMulAttributes{}, {query, c.input(kGateWeight)}), c.input(kGateBias));
  if (!e.status().ok()) return {};
  std::vector<Extent> halves = extents_of(e, query);
  halves.back() = Extent::of(2);
  halves.push_back(Extent::of(width / 2));
  const ValueId sums = e.reduce_sum(reshape_to(e, projected, halves), {4}, false);  // [B,H,S,2]
  const ValueId gates = e.emit(op::SigmoidAttributes{}, {sums});
  const ValueId update = slice(e, gates, 3, 0, 1), reset = slice(e, gates, 3, 1, 2);
  const ValueId inner = e.sub(e.mul(reset, c.input(kGateScale)), e.scalar_like(1, reset));
  const ValueId factor = e.add(e.mul(update, inner), e.scalar_like(2, reset));
  return c.result(e.mul(factor, c.input(kDistances)));
}

constexpr ImportRow kRelativeBiasRows[] = {
    {"com.microsoft", "RelativePositionBias", 1, kNewestOpset, relative_position_bias},
    {"com.microsoft", "GatedRelativePositionBias", 1, kNewestOpset, gated_relative_position_bias},
};

}  // namespace

std::span<const ImportRow> rows_relative_bias() {
  return kRelativeBiasRows;
}

}  // namespace librt::onnx
