// Attention and its gradients without materializing the score matrix.
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "backends/cuda/kernel.h"
#include "kernels/attention_gradient.h"
#include "runtime/core/shape.h"

namespace librt::cuda {
namespace {

enum AttentionInput : size_t { kQuery, kKey, kValue, kMask, kKvLength, kQueryPosition, kOutput, kGradOutput };

Status supports(const CudaDevice&, const NodeView& node) {
  if (node.has(kMask) && node.dtype(kMask) != DType::Bool && node.dtype(kMask) != DType::F32 &&
      node.dtype(kMask) != node.dtype(kQuery))
    return unsupported("no masks of type ", name_of(node.dtype(kMask)), " with queries of type ",
                       name_of(node.dtype(kQuery)));
  constexpr int64_t kMax = int64_t{1} << 30;
  const Shape &q = node.shape(kQuery), &v = node.shape(kValue);
  const int64_t chunks = (v[3] + 127) / 128, rows = q.elements(0, 3);
  if (rows >= kMax || v[2] >= kMax || q[3] >= kMax || v[3] >= kMax ||
      rows / 8 * std::max<int64_t>(chunks, 1) >= kMax)
    return unsupported("2^30 rows, keys or columns or more");
  return {};
}

Status supports_tensor(const CudaDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  if (node.dtype(kQuery) == DType::BF16 && device.facts().compute_capability < 80)
    return unsupported("bf16 on tensor cores needs compute capability 8.0");
  const int64_t d = node.shape(kQuery)[3], e = node.shape(kValue)[3];
  if (d % 8 != 0 || e % 8 != 0 || d > 128 || e > 128 || d == 0)
    return unsupported("heads of ", d, " and ", e, " columns; multiples of 8 of at most 128 are supported");
  return {};
}

template <class Attributes>
AttentionArguments arguments_of(const NodeView& node) {
  const auto& attributes = node.as<Attributes>();
  const Shape &q = node.shape(kQuery), &v = node.shape(kValue);
  AttentionArguments a;
  a.type = element_type(node.dtype(kQuery));
  a.batch = static_cast<int>(q[0]);
  a.heads = static_cast<int>(q[1]);
  a.groups = static_cast<int>(v[1]);
  a.queries = static_cast<int>(q[2]);
  a.keys = static_cast<int>(v[2]);
  a.d = static_cast<int>(q[3]);
  a.e = static_cast<int>(v[3]);
  a.scale = attributes.scale != 0 ? attributes.scale : 1 / std::sqrt(static_cast<float>(a.d));
  a.softcap = attributes.softcap;
  a.left = attributes.left_window;
  a.right = attributes.causal ? 0 : attributes.right_window;
  a.one_position = node.has(kQueryPosition) && node.input(kQueryPosition).elements() == 1;
  if (node.has(kMask)) {
    a.mask_type = element_type(node.dtype(kMask));
    const Shape& mask = node.shape(kMask);
    int64_t stride = 1;
    for (int axis = 3, own = mask.rank() - 1; own >= 0; --axis, --own) {
      a.mask_strides[axis] = mask[own] == 1 ? 0 : stride;
      stride *= mask[own];
    }
  }
  return a;
}

AttentionArguments bound(AttentionArguments a, const Call& call) {
  a.query = call.in(kQuery);
  a.key = call.in(kKey);
  a.value = call.in(kValue);
  a.mask = call.in(kMask);
  a.kv_length = call.in<int64_t>(kKvLength);
  a.query_position = call.in<int64_t>(kQueryPosition);
  return a;
}

template <AttentionAlgorithm kAlgorithm>
Result<KernelPtr> create(CudaDevice& device, const NodeView& node) {
  AttentionArguments arguments = arguments_of<op::AttentionAttributes>(node);
  arguments.algorithm = kAlgorithm;
  arguments.splits = attention_splits(arguments, device.facts().multiprocessors);
  Requirements requirements;
  requirements.scratch = attention_partial_bytes(arguments);
  return make_kernel(
      [arguments](const Call& call) {
        AttentionArguments a = bound(arguments, call);
        a.y = call.out();
        a.partial = call.scratch<float>();
        return attention(a, call.stream);
      },
      requirements);
}

Result<KernelPtr> create_gradient(CudaDevice&, const NodeView& node) {
  const AttentionArguments arguments = arguments_of<op::AttentionGradAttributes>(node);
  Requirements requirements;
  requirements.scratch = attention_statistics_bytes(arguments);
  return make_kernel(
      [arguments](const Call& call) {
        AttentionGradArguments g;
        g.attention = bound(arguments, call);
        g.attention.y = const_cast<void*>(call.in(kOutput));
        g.grad_y = call.in(kGradOutput);
        g.grad_query = call.out(0);
        g.grad_key = call.out(1);
        g.grad_value = call.out(2);
        g.statistics = call.scratch<float>();
        return attention_gradient(g, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_attention();
std::span<const KernelRow> rows_attention() {
  static constexpr KernelRow kRows[] = {
      row<create<AttentionAlgorithm::Tensor>, supports_tensor>(OpKind::Attention, "attention.tensor",
                                                               DTypeSet{DType::F16, DType::BF16}, 10),
      row<create<AttentionAlgorithm::Plain>, supports>(OpKind::Attention, "attention.plain", kShortFloats),
      row<create_gradient, supports>(OpKind::AttentionGrad, "attention_grad", kShortFloats),
  };
  return kRows;
}

}  // namespace librt::cuda
