// TreeLeaves.
#include "kernels/trees.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create(CudaDevice&, const NodeView& node) {
  const TreeLeavesArguments arguments{.type = element_type(node.dtype(0)),
                                      .rows = node.shape(0)[0],
                                      .features = node.shape(0)[1],
                                      .count = node.shape(2)[0],
                                      .trees = node.shape(3)[0],
                                      .levels = node.as<op::TreeLeavesAttributes>().levels};
  return make_kernel([arguments](const Call& call) {
    TreeLeavesArguments a = arguments;
    a.x = call.in(0);
    a.nodes = call.in<int32_t>(1);
    a.threshold = call.in(2);
    a.roots = call.in<int32_t>(3);
    a.leaves = call.out<int32_t>();
    return tree_leaves(a, call.stream);
  });
}

}  // namespace

std::span<const KernelRow> rows_trees();
std::span<const KernelRow> rows_trees() {
  static constexpr KernelRow kRows[] = {
      row<create>(OpKind::TreeLeaves, "tree_leaves", DTypeSet{DType::F32, DType::F64})};
  return kRows;
}

}  // namespace librt::cuda
