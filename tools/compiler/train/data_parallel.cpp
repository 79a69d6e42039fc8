#include "tools/compiler/train/data_parallel.h"

#include <algorithm>
#include <cfloat>
#include <map>
#include <numeric>
namespace librt::compiler {

RankShare emit_rank_share(Builder& builder, ValueId weight) {
  const ValueId values[] = {weight, builder.scalar(1, DType::F32)};
  const std::vector<ValueId> sums = emit_sums_over_ranks(builder, values);
  // If the weights of all ranks are 0: 0, not 0 / 0.
  const ValueId all = builder.emit(op::MaximumAttributes{}, {sums[0], builder.scalar(FLT_MIN, DType::F32)});
  return {.of_mean = builder.div(weight, all),
          .of_ranks = builder.emit(op::ReciprocalAttributes{}, {sums[1]})};
}

ValueId emit_flattened(Builder& builder, std::span<const ValueId> values) {
  std::vector<ValueId> flat;
  for (const ValueId value : values)
    flat.push_back(
        builder.reshape(value, builder.ints(std::vector<int64_t>{builder.value(value).info().elements()})));
  if (flat.size() == 1) return flat[0];
  return builder.emit_many(make_op(op::ConcatAttributes{}), flat, 1)[0];
}

std::vector<ValueId> emit_like(Builder& builder, ValueId flat, std::span<const ValueId> values) {
  std::vector<ValueId> pieces;
  int64_t first = 0;
  for (const ValueId value : values) {
    const Shape shape = builder.value(value).info().shape;
    const std::vector<int64_t> begin{first}, end{first + shape.elements()};
    first = end[0];
    op::SliceAttributes along;
    along.axes = {0};
    ValueId piece = flat;
    if (builder.value(flat).info().elements() != shape.elements())
      piece = builder.emit(along, {flat, builder.ints(begin), builder.ints(end)});
    pieces.push_back(builder.reshape(piece, builder.ints({shape.begin(), shape.end()})));
  }
  return pieces;
}

ValueId emit_sum_over_ranks(Builder& builder, ValueId x) {
  return builder.emit(op::CollectiveWaitAttributes{}, {builder.emit(op::AllReduceAttributes{}, {x})});
}

std::vector<ValueId> emit_sums_over_ranks(Builder& builder, std::span<const ValueId> values) {
  return emit_like(builder, emit_sum_over_ranks(builder, emit_flattened(builder, values)), values);
}

std::vector<std::vector<size_t>> make_buckets(const Graph& graph, std::span<const ValueId> values,
                                              int64_t bucket_bytes,
                                              const std::function<int(size_t)>& kind_of) {
  const auto made_by = producers(graph);
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return made_by[values[a]].value_or(0) < made_by[values[b]].value_or(0);
  });
  struct Open {
    size_t bucket = 0;
    int64_t bytes = 0;
  };
  std::vector<std::vector<size_t>> buckets;
  std::map<int, Open> open;  // by kind
  for (const size_t index : order) {
    const auto [found, is_new] = open.try_emplace(kind_of(index));
    Open& bucket = found->second;
    if (is_new || bucket.bytes >= bucket_bytes) {
      bucket = {.bucket = buckets.size()};
      buckets.emplace_back();
    }
    buckets[bucket.bucket].push_back(index);
    bucket.bytes += static_cast<int64_t>(graph[values[index]].info().bytes());
  }
  return buckets;
}

}  // namespace librt::compiler
