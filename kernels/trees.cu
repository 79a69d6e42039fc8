// One thread for each row and tree. Neighbouring threads have neighbouring trees of one row, whose features
// they share in L1; what is read of a tree is its top for most rows.
#include "kernels/trees.h"

#include "kernels/index.cuh"

namespace librt::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    find_leaves(const T* x, const int4* nodes, const T* threshold, const int32_t* roots, int32_t* leaves,
                TreeLeavesArguments a) {
  const int64_t i = global_index();
  if (i >= a.rows * a.trees) return;
  const T* const row = x + i / a.trees * a.features;
  int64_t at = selected(roots[i % a.trees], a.count);
  for (int64_t level = 0; level < a.levels; ++level) {
    const int4 node = nodes[at];
    const T value = row[selected(node.x, a.features)], limit = threshold[at];
    const int relation = (value < limit ? 1 : 0) | (value == limit ? 2 : 0) | (value != value ? 4 : 0);
    const int64_t next = selected((relation & node.w) != 0 ? node.y : node.z, a.count);
    if (next == at) break;  // and in all steps that follow
    at = next;
  }
  leaves[i] = static_cast<int32_t>(at);
}

template <class T>
cudaError_t launch_for(const TreeLeavesArguments& a, cudaStream_t stream) {
  return launch(find_leaves<T>, launch_each(a.rows * a.trees, stream), static_cast<const T*>(a.x),
                reinterpret_cast<const int4*>(a.nodes), static_cast<const T*>(a.threshold), a.roots, a.leaves,
                a);
}

}  // namespace

cudaError_t tree_leaves(const TreeLeavesArguments& a, cudaStream_t stream) {
  return a.type == ElementType::F64 ? launch_for<double>(a, stream) : launch_for<float>(a, stream);
}

}  // namespace librt::cuda
