#include "backends/cpu/support/matmul_gemm.h"

#include "backends/cpu/support/gemm.h"
#include "backends/cpu/support/packing_kernel.h"

namespace librt::cpu {
namespace {

constexpr uint64_t kKey = 0x67656d6d00ull;  ///< of packed weights

/// All matrices of b as panels: [matrix][panel][k][columns].
void pack_matrices(const GemmBlocks& blocks, const MatMulGeometry& g, const float* b, float* to) noexcept {
  const GemmLoops& loops = *blocks.loops;
  const int64_t panels = blocks.column_panels(), panel_floats = loops.columns * g.k;
  parallel_for(g.b_batch.elements() * panels, panel_floats, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i) {
      const float* matrix = b + i / panels * g.k * g.n;
      const int64_t first = i % panels * loops.columns, count = std::min(loops.columns, g.n - first);
      if (g.transpose_b)
        gather_rows(loops, matrix + first * g.k, g.k, count, g.k, to + i * panel_floats, loops.columns);
      else
        loops.copy(matrix + first, g.n, count, g.k, to + i * panel_floats, loops.columns);
    }
  });
}

}  // namespace

KernelPtr make_matmul_gemm(const CpuDevice& device, MatMulGeometry g, const void* constant_b,
                           const Finish& finish, const EpilogueInputs& inputs) {
  int64_t products = g.batch.elements();
  if (g.b_batch.elements() == 1 && !g.transpose_a && g.a_batch.elements() == products) {
    g.m *= products;  // one weight for all batches: their rows form one GEMM
    products = 1;
    g.batch = g.a_batch = g.b_batch = Shape{};
  }
  const GemmBlocks blocks(device.simd(), g.m, g.n, g.k);
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(device.info().threads * blocks.workspace()) * sizeof(float);
  const PackedOperand b(constant_b,
                        static_cast<size_t>(g.b_batch.elements() * blocks.packed()) * sizeof(float),
                        kKey + (g.transpose_b ? 1 : 0), 1, requirements);
  auto body = [=](const Call& call) noexcept {
    const GemmLoops& loops = *blocks.loops;
    const bool in_place = blocks.in_place(g.k);
    const float* a = call.in<float>(0);
    const float* bias = inputs.bias >= 0 ? call.in<float>(static_cast<size_t>(inputs.bias)) : nullptr;
    const float* residual =
        inputs.residual >= 0 ? call.in<float>(static_cast<size_t>(inputs.residual)) : nullptr;
    const float* const panels =
        b.panels(call, [&](float* to) noexcept { pack_matrices(blocks, g, call.in<float>(1), to); });
    multiply_panels(
        blocks, products,
        [&](int64_t product, int64_t panel, int64_t k0, int64_t steps, float* to) noexcept -> PanelA {
          const float* matrix = a + g.operand_index(g.a_batch, product) * g.m * g.k;
          const int64_t first = panel * loops.rows, count = std::min(loops.rows, g.m - first);
          if (g.transpose_a)
            loops.copy(matrix + k0 * g.m + first, g.m, count, steps, to, loops.rows);
          else if (count == loops.rows && in_place)
            return {matrix + first * g.k + k0, g.k};
          else
            gather_rows(loops, matrix + first * g.k + k0, g.k, count, steps, to, loops.rows);
          return {to};
        },
        [&](int64_t product, int64_t panel, int64_t k0, int64_t, float*) noexcept {
          return panels + g.operand_index(g.b_batch, product) * blocks.packed() +
                 (panel * g.k + k0) * loops.columns;
        },
        [&](int64_t product) noexcept { return call.out<float>() + product * g.m * g.n; }, g.n,
        [&](int64_t product, Range rows, Range columns) noexcept {
          finish.run_block(call.out<float>(), bias, residual, product * g.m * g.n, rows, columns, g.n);
        },
        call.scratch<float>());
  };
  return make_packing_kernel(
      device,
      [=](float* to) noexcept { pack_matrices(blocks, g, static_cast<const float*>(constant_b), to); },
      std::move(body), requirements);
}

}  // namespace librt::cpu
