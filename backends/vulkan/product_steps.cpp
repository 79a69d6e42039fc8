#include "backends/vulkan/product_steps.h"

#include <algorithm>

namespace rt::vulkan {
namespace {

Shader shader_of(const TiledProduct& product, Load load) {
#define RT_LOADS(form) \
  { Shader::gemm_##form##_buffer, Shader::gemm_##form##_texel, Shader::gemm_##form##_subgroup }
  constexpr Shader kShaders[2][2][3] = {{RT_LOADS(nn), RT_LOADS(nt)}, {RT_LOADS(tn), RT_LOADS(tt)}};
#undef RT_LOADS
  return kShaders[product.a.transposed][product.b.transposed][static_cast<size_t>(load)];
}

struct RegisterTile {
  uint32_t rows, columns, lanes, lanes_n;
  Load load;
};

/// Tiles of 8x8 keep the loads few; fewer rows where there are few, so that none are computed in vain.
RegisterTile choose_tile(const TiledProduct& product, const DevicePlan& plan, bool texel) {
  RegisterTile tile{8, 8, plan.tile_lanes, plan.tile_lanes, texel ? Load::Texel : Load::Buffer};
  const auto lanes_and_columns = static_cast<int64_t>(tile.lanes * tile.columns);
  if (texel && plan.subgroup_tiles && product.m >= 8 && 2 * product.n > lanes_and_columns) {
    // Wider tiles take longer to compile, which large products earn back.
    if (product.m >= 32) tile.rows = 16;
    tile.load = Load::Subgroup;
    return tile;
  }
  // A transposed A is loaded in vec4s of four rows.
  if (product.m < 8) tile.rows = product.m < 4 && !product.a.transposed ? 1 : 4;
  if (product.n < 8 || product.m == 1) tile.columns = 4;
  const auto column_tiles = static_cast<uint64_t>(ceil_div(product.n, tile.columns));
  const auto row_tiles = static_cast<uint64_t>(ceil_div(product.m, tile.rows));
  uint32_t lanes_n = 1;
  while (lanes_n < tile.lanes && (lanes_n < column_tiles || tile.lanes / lanes_n > row_tiles)) {
    if (!plan.texel_loads && lanes_n >= 16 && tile.lanes / lanes_n <= row_tiles) break;
    lanes_n *= 2;
  }
  tile.lanes_n = std::min(lanes_n, tile.lanes);
  return tile;
}

}  // namespace

void add_product(Program& program, const VulkanDevice& device, const TiledProduct& product,
                 const Ref& result) {
  const bool texel = through_texels(device, std::max(product.a.bytes, product.b.bytes));
  const RegisterTile tile = choose_tile(product, device.plan(), texel);
  const bool fours =
      product.n % 4 == 0 && (!product.epilogue.has_bias ||
                             (product.bias_column == 1 && product.bias_row == 0 && product.bias_batch == 0));
  const int64_t row_tiles = ceil_div(product.m, tile.rows * (tile.lanes / tile.lanes_n));
  const int64_t column_groups = ceil_div(product.n, tile.columns * tile.lanes_n);
  const int64_t batches = product.batch[0] * product.batch[1];
  Step& step = program.dispatch(shader_of(product, tile.load),
                                static_cast<uint64_t>(row_tiles * column_groups * batches), tile.lanes);
  step.spec(tile.rows).spec(tile.columns).spec(tile.lanes_n).spec(fours);
  product.epilogue.specialize(step);
  step.push(product.m).push(product.n).push(product.k).push(product.a.row_stride).push(product.b.row_stride);
  step.push(row_tiles).push(column_groups).push(product.batch[0]).push(product.batch[1]);
  step.push(product.a.batch_strides[0]).push(product.a.batch_strides[1]);
  step.push(product.b.batch_strides[0]).push(product.b.batch_strides[1]);
  step.push(product.m * product.n).push(product.bias_batch).push(product.bias_row).push(product.bias_column);
  step.push(product.epilogue.alpha).push(product.epilogue.beta);
  step.matrix(0, product.a.ref, texel).matrix(1, product.b.ref, texel).write(2, result);
  product.epilogue.bind(step);
}

}  // namespace rt::vulkan
