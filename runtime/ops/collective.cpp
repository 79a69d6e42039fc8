// Collectives between the ranks of data parallel training. Their reference implementation is that of one
// rank: the identity.
#include <cstring>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status infer_all_reduce(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", DTypeSet{DType::F32, DType::F64}));
  return infer_like_first(node, outputs);
}

Status expect_ranks(int64_t ranks) {
  constexpr int64_t kMost = 1 << 20;
  if (ranks >= 1 && ranks <= kMost) return {};
  return invalid_argument("expected 1 to ", kMost, " ranks, found ", ranks);
}

Status infer_all_gather(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const int64_t ranks = node.as<op::AllGatherAttributes>().ranks;
  RT_TRY(expect_ranks(ranks));
  RT_TRY(expect_rank(node, 0, "x", 1, 1));
  if (node.shape(0)[0] > INT64_MAX / ranks)
    return invalid_argument("the parts of ", ranks, " ranks, ", node.input(0), " each, are too large");
  return add_output(outputs, node.dtype(0), {ranks * node.shape(0)[0]});
}

Status infer_rank_shard(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const int64_t ranks = node.as<op::RankShardAttributes>().ranks, all = node.input(0).elements();
  RT_TRY(expect_ranks(ranks));
  return add_output(outputs, node.dtype(0), {all / ranks + (all % ranks != 0)});
}

Status eval_one_rank(const NodeView& node, std::span<const ConstTensorView> inputs,
                     std::span<const TensorView> outputs) {
  if (outputs[0].info.bytes() != inputs[0].info.bytes())
    return unsupported(name_of(node.kind()), " of several ranks has no value in one process");
  if (outputs[0].info.bytes() > 0) std::memcpy(outputs[0].data, inputs[0].data, outputs[0].info.bytes());
  return {};
}

/// Impure: equal nodes are not merged, and none is constant-folded, since every rank must run all of them.
constexpr Page collective_page(OpKind kind, Status (*infer)(const NodeView&, std::vector<TensorInfo>&),
                               ExtentRule extents) {
  return {.kind = kind, .infer = infer, .impure = true, .extents = extents};
}
constexpr const char* kNoGradient = "it runs after the backward pass";

}  // namespace

RT_PAGE(AllReduce) = collective_page(OpKind::AllReduce, infer_all_reduce, ExtentRule::LikeFirst);
RT_COMPILER_PAGE(AllReduce) = {.eval = eval_one_rank, .no_gradient = kNoGradient, .tolerance = {0, 0}};
RT_PAGE(AllGather) = collective_page(OpKind::AllGather, infer_all_gather, ExtentRule::Own);
RT_COMPILER_PAGE(AllGather) = {.eval = eval_one_rank, .no_gradient = kNoGradient, .tolerance = {0, 0}};
RT_PAGE(CollectiveWait) = collective_page(OpKind::CollectiveWait, infer_like_first, ExtentRule::LikeFirst);
RT_COMPILER_PAGE(CollectiveWait) = {.eval = eval_one_rank, .no_gradient = kNoGradient, .tolerance = {0, 0}};
RT_PAGE(RankShard) = collective_page(OpKind::RankShard, infer_rank_shard, ExtentRule::Own);
RT_COMPILER_PAGE(RankShard) = {.eval = eval_one_rank, .no_gradient = kNoGradient, .tolerance = {0, 0}};

}  // namespace librt::ops
