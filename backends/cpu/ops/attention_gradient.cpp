// Gradients of attention without materializing the score matrix: first blocks of rows, for grad_query and
// three statistics per row, then blocks of keys, for grad_key and grad_value. No two threads add to the same
// element, so results do not depend on the thread count.
#include "backends/cpu/simd/attention_gradient.h"
#include "backends/cpu/support/attention_geometry.h"

namespace librt::cpu {
namespace {

struct Gradient {
  AttentionGeometry g;
  const Simd& simd;

  int64_t key_blocks() const { return (g.keys + kAttentionKeys - 1) / kAttentionKeys; }
  int64_t statistics_floats() const {  // a multiple of the alignment of the per-thread scratch
    return (g.batch * g.groups * g.rows * kAttentionStatistics + 15) / 16 * 16;
  }

  AttentionGradRows block(const Call& call, int64_t pair, int64_t block, SeenBlock& seen) const {
    const int64_t row = pair * g.rows + block * kAttentionRows;
    AttentionGradRows task;
    task.rows = block_of_rows(g, call, pair, block, seen);
    task.rows.scratch =
        call.scratch<float>() + statistics_floats() + thread_index() * attention_grad_scratch(g.d, g.e);
    task.y = call.in<float>(kOutput) + row * g.e;
    task.grad_y = call.in<float>(kGradOutput) + row * g.e;
    task.statistics = call.scratch<float>() + row * kAttentionStatistics;
    task.grad_q = call.out<float>(0) + row * g.d;
    return task;
  }

  void block_of_queries(const Call& call, int64_t item) const {
    SeenBlock seen;
    simd.loops<AttentionGradLoops>().attention_grad_rows(
        block(call, item / g.blocks, spread(item % g.blocks, g.blocks), seen));
  }

  void block_of_keys(const Call& call, int64_t item) const {
    const int64_t pair = item / key_blocks(), at = spread(item % key_blocks(), key_blocks()) * kAttentionKeys;
    AttentionGradKeys task;
    task.begin = at, task.end = std::min(at + kAttentionKeys, g.keys);
    task.grad_k = call.out<float>(1) + pair * g.keys * g.d;
    task.grad_v = call.out<float>(2) + pair * g.keys * g.e;
    if (g.blocks == 0) {
      std::fill(task.grad_k + task.begin * g.d, task.grad_k + task.end * g.d, 0.0f);
      std::fill(task.grad_v + task.begin * g.e, task.grad_v + task.end * g.e, 0.0f);
    }
    for (int64_t i = 0; i < g.blocks; ++i) {
      SeenBlock seen;
      task.rows = block(call, pair, i, seen);
      task.first = i == 0, task.last = i + 1 == g.blocks;
      simd.loops<AttentionGradLoops>().attention_grad_keys(task);
    }
  }

  void run(const Call& call) const {
    parallel_for(g.items(), kAttentionRows * g.keys * (2 * g.d + g.e) / 4, 1,
                 [&](int64_t begin, int64_t end) noexcept {
                   for (int64_t i = begin; i < end; ++i) block_of_queries(call, i);
                 });
    parallel_for(g.batch * g.groups * key_blocks(), kAttentionKeys * g.rows * (g.d + g.e) / 2, 1,
                 [&](int64_t begin, int64_t end) noexcept {
                   for (int64_t i = begin; i < end; ++i) block_of_keys(call, i);
                 });
  }
};

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const Gradient gradient{attention_geometry<op::AttentionGradAttributes>(node), device.simd()};
  const AttentionGeometry& g = gradient.g;
  Requirements requirements;
  requirements.scratch =
      static_cast<size_t>(gradient.statistics_floats() + max_threads() * attention_grad_scratch(g.d, g.e)) *
      sizeof(float);
  return make_kernel([gradient](const Call& call) noexcept { gradient.run(call); }, requirements);
}

}  // namespace

std::span<const KernelRow> rows_attention_gradient();
std::span<const KernelRow> rows_attention_gradient() {
  static constexpr KernelRow kRows[] = {
      row<create, supports_attention>(OpKind::AttentionGrad, "attention_grad", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
