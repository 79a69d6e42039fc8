#include "backends/vulkan/product_steps.h"

#include <algorithm>

#include "backends/vulkan/split.h"

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

/// The axes of a product: two of the batch, m, n, k.
enum Axis : size_t { kOuter, kInner, kM, kN, kK, kAxes };

Walk walk_factor(const ProductFactor& factor, Axis rows, Axis columns) {
  Walk walk{factor.ref, std::vector<int64_t>(kAxes, 0)};
  walk.strides[kOuter] = factor.batch_strides[0] * 16;
  walk.strides[kInner] = factor.batch_strides[1] * 16;
  walk.strides[rows] = factor.row_stride * 16;
  walk.strides[columns] = sizeof(float);
  return walk;
}

/// Of the result or the bias, from strides in elements.
Walk walk_elements(const Ref& ref, const TiledProduct& product, int64_t batch, int64_t row, int64_t column) {
  Walk walk{ref, {batch * product.batch[1], batch, row, column, 0}};
  for (int64_t& stride : walk.strides) stride *= sizeof(float);
  return walk;
}

struct ProductWalks {
  Walk a, b, result, bias, residual;
};

void add_part(Program& program, const VulkanDevice& device, const TiledProduct& product,
              const ProductWalks& walks, const Part& part) {
  const auto window = [&](const Walk& walk) { return window_of(device, walk, part); };
  const bool opens = part.first[kK] == 0, closes = part.first[kK] + part.count[kK] == product.k;
  const Window a = window(walks.a), b = window(walks.b), result = window(walks.result);
  const Window bias = window(walks.bias);
  EpiloguePlan epilogue = product.epilogue;
  epilogue.has_residual = epilogue.has_residual || !opens;
  if (!closes) {
    epilogue.has_bias = false;
    epilogue.activation = 0;
  }
  TiledProduct sizes;
  sizes.m = part.count[kM];
  sizes.n = part.count[kN];
  sizes.a.transposed = product.a.transposed;
  sizes.b.transposed = product.b.transposed;
  const bool texel = through_texels(device, std::max(a.bytes(), b.bytes()));
  const RegisterTile tile = choose_tile(sizes, device.plan(), texel);
  const bool fours =
      product.n % 4 == 0 && (!product.epilogue.has_bias ||
                             (product.bias_column == 1 && product.bias_row == 0 && product.bias_batch == 0));
  const int64_t row_tiles = ceil_div(sizes.m, tile.rows * (tile.lanes / tile.lanes_n));
  const int64_t column_groups = ceil_div(sizes.n, tile.columns * tile.lanes_n);
  const int64_t batches = part.count[kOuter] * part.count[kInner];
  Step& step = program.dispatch(shader_of(sizes, tile.load),
                                static_cast<uint64_t>(row_tiles * column_groups * batches), tile.lanes);
  step.spec(tile.rows).spec(tile.columns).spec(tile.lanes_n).spec(fours);
  epilogue.specialize(step);
  const auto push_strides = [&](const Walk& walk, int64_t unit) {
    step.push(walk.strides[kOuter] / unit).push(walk.strides[kInner] / unit);
  };
  step.push(sizes.m).push(sizes.n).push(part.count[kK]);
  step.push(product.a.row_stride).push(product.b.row_stride);
  step.push(row_tiles).push(column_groups).push(part.count[kOuter]).push(part.count[kInner]);
  push_strides(walks.a, 16);
  push_strides(walks.b, 16);
  push_strides(walks.result, sizeof(float));
  push_strides(walks.bias, sizeof(float));
  step.push(product.n).push(product.bias_row).push(product.bias_column);
  step.push(a.first / 4).push(b.first / 4).push(result.first).push(bias.first);
  step.push(epilogue.alpha).push(epilogue.beta);
  step.matrix(0, a.ref, texel).matrix(1, b.ref, texel).write(2, result.ref);
  if (epilogue.has_bias) step.read(3, bias.ref);
  if (epilogue.has_residual) step.read(4, opens ? window(walks.residual).ref : result.ref);
}

}  // namespace

void add_product(Program& program, const VulkanDevice& device, const TiledProduct& product,
                 const Ref& result) {
  if (product.m * product.n * product.batch[0] * product.batch[1] == 0) return;
  const auto walk_result = [&](const Ref& ref) {
    return walk_elements(ref, product, product.m * product.n, product.n, 1);
  };
  const ProductWalks walks{
      product.a.transposed ? walk_factor(product.a, kK, kM) : walk_factor(product.a, kM, kK),
      product.b.transposed ? walk_factor(product.b, kN, kK) : walk_factor(product.b, kK, kN),
      walk_result(result),
      walk_elements(in(product.epilogue.bias), product, product.bias_batch, product.bias_row,
                    product.bias_column),
      walk_result(in(product.epilogue.residual))};
  const int64_t extents[] = {product.batch[0], product.batch[1], product.m, product.n, product.k};
  const int64_t multiples[] = {1, 1, 4, 4, 4};
  const Walk all[] = {walks.a, walks.b, walks.result, walks.bias};
  for (const Part& part : parts_of(device, extents, multiples, all))
    add_part(program, device, product, walks, part);
}

}  // namespace rt::vulkan
