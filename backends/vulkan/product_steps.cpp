#include "backends/vulkan/product_steps.h"

#include <algorithm>

#include "backends/vulkan/self_test.h"
#include "backends/vulkan/split.h"

namespace rt::vulkan {
namespace {

Shader shader_of(const TiledProduct& product, Load load) {
  if (product.matrices) return Shader::gemm_matrices;
#define RT_LOADS(form) \
  { Shader::gemm_##form##_buffer, Shader::gemm_##form##_texel, Shader::gemm_##form##_subgroup }
  constexpr Shader kShaders[2][2][3] = {{RT_LOADS(nn), RT_LOADS(nt)}, {RT_LOADS(tn), RT_LOADS(tt)}};
#undef RT_LOADS
  return kShaders[product.a.transposed][product.b.transposed][static_cast<size_t>(load)];
}

/// Rows and columns per invocation, lanes per workgroup and along the columns; with cooperative matrices,
/// lanes are subgroups.
struct Tile {
  uint32_t rows, columns, lanes, lanes_n;
  Load load;
  const MatrixPlan* matrices = nullptr;

  int64_t group_rows() const { return rows * (lanes / lanes_n); }
  int64_t group_columns() const { return columns * lanes_n; }
  uint32_t invocations() const { return matrices == nullptr ? lanes : matrices->lanes; }
};

Tile matrix_tile(const MatrixPlan& plan) {
  return {plan.rows, plan.columns, plan.subgroups, plan.subgroups_n, Load::Buffer, &plan};
}

/// Tiles of 8x8 need few loads; fewer rows where there are few, so that none are computed in vain.
/// load: the fastest kind allowed.
Tile choose_tile(const TiledProduct& product, const DevicePlan& plan, Load load) {
  Tile tile{8, 8, plan.tile_lanes, plan.tile_lanes, load == Load::Buffer ? load : Load::Texel};
  const auto lanes_and_columns = static_cast<int64_t>(tile.lanes * tile.columns);
  if (load == Load::Subgroup && plan.subgroup_tiles && product.m >= 8 && 2 * product.n > lanes_and_columns) {
    // Wider tiles take longer to compile, which large GEMMs repay.
    if (product.m >= 32) tile.rows = 16;
    tile.load = Load::Subgroup;
    return tile;
  }
  // A transposed A is loaded in vec4s of four rows.
  if (product.m < 8) tile.rows = product.m < 4 && !product.a.transposed ? 1 : 4;
  if (product.n < 8 || product.m == 1) tile.columns = 4;
  tile.lanes_n = lanes_along_n(plan, ceil_div(product.m, tile.rows), ceil_div(product.n, tile.columns));
  return tile;
}

/// The axes of a GEMM: two of the batch, m, n, k.
enum Axis : size_t { kOuter, kInner, kM, kN, kK, kAxes };

Walk walk_factor(const ProductFactor& factor, int64_t element, Axis rows, Axis columns) {
  Walk walk{factor.ref, std::vector<int64_t>(kAxes, 0), element};
  walk.strides[kOuter] = factor.batch_strides[0] * 4 * element;
  walk.strides[kInner] = factor.batch_strides[1] * 4 * element;
  walk.strides[rows] = factor.row_stride * 4 * element;
  walk.strides[columns] = element;
  return walk;
}

/// Walk over the result or the bias, from strides in elements.
Walk walk_elements(const Ref& ref, const TiledProduct& product, int64_t element, int64_t batch, int64_t row,
                   int64_t column) {
  Walk walk{ref, {batch * product.batch[1], batch, row, column, 0}, element};
  for (int64_t& stride : walk.strides) stride *= element;
  return walk;
}

/// Whether the result can be stored, and the bias read, four elements at a time.
bool whole_fours(const TiledProduct& product) {
  return product.n % 4 == 0 &&
         (!product.epilogue.has_bias ||
          (product.bias_column == 1 && product.bias_row == 0 && product.bias_batch == 0));
}

struct ProductWalks {
  Walk a, b, result, bias, residual;
  DType stored;  ///< the result's type
};

Tile trusted_tile(Program& program, const VulkanDevice& device, const TiledProduct& product, bool fours,
                  bool texel);

/// given: for a self-test; null selects the best trusted tile.
void add_part(Program& program, const VulkanDevice& device, const TiledProduct& product,
              const ProductWalks& walks, const Part& part, const Tile* given) {
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
  sizes.dtype = product.dtype;
  sizes.m = part.count[kM];
  sizes.n = part.count[kN];
  sizes.matrices = product.matrices;
  sizes.a.transposed = product.a.transposed;
  sizes.b.transposed = product.b.transposed;
  const size_t element = size_of(product.dtype);
  const bool texel = through_texels(device, std::max(a.bytes(), b.bytes()), element);
  const bool fours = whole_fours(product);
  const Tile tile = given != nullptr ? *given : trusted_tile(program, device, sizes, fours, texel);
  const int64_t row_tiles = ceil_div(sizes.m, tile.group_rows());
  const int64_t column_groups = ceil_div(sizes.n, tile.group_columns());
  const int64_t batches = part.count[kOuter] * part.count[kInner];
  Step& step =
      program.dispatch(shader_of(sizes, tile.load),
                       static_cast<uint64_t>(row_tiles * column_groups * batches), tile.invocations());
  step.spec(tile.rows).spec(tile.columns).spec(tile.lanes_n).spec(fours);
  epilogue.specialize(step);
  const Walk& added = opens ? walks.residual : walks.result;
  const DType added_type = opens ? product.dtype : walks.stored;
  step.spec(element_of(product.dtype)).spec(element_of(walks.stored)).spec(element_of(added_type));
  if (const MatrixPlan* plan = tile.matrices)
    step.spec(plan->m)
        .spec(plan->n)
        .spec(plan->k)
        .spec(plan->subgroups / plan->subgroups_n)
        .spec(plan->step)
        .spec(product.a.transposed)
        .spec(product.b.transposed);
  const auto push_strides = [&](const Walk& walk, int64_t unit = 1) {
    step.push(walk.strides[kOuter] / walk.element / unit).push(walk.strides[kInner] / walk.element / unit);
  };
  step.push(sizes.m).push(sizes.n).push(part.count[kK]);
  step.push(product.a.row_stride).push(product.b.row_stride);
  step.push(row_tiles).push(column_groups).push(part.count[kOuter]).push(part.count[kInner]);
  push_strides(walks.a, 4);
  push_strides(walks.b, 4);
  push_strides(walks.result);
  push_strides(walks.bias);
  step.push(product.n).push(product.bias_row).push(product.bias_column);
  step.push(a.first / 4).push(b.first / 4).push(result.first).push(bias.first);
  step.push(epilogue.alpha).push(epilogue.beta);
  const Window residual = epilogue.has_residual ? window(added) : result;
  step.push(residual.first - result.first);
  const bool through_views = tile.load != Load::Buffer;
  step.matrix(0, a.ref, through_views, element).matrix(1, b.ref, through_views, element);
  step.write(2, result.ref);
  if (epilogue.has_bias) step.read(3, bias.ref);
  if (epilogue.has_residual) step.read(4, residual.ref);
}

/// stored: the result's type.
void add_parts(Program& program, const VulkanDevice& device, const TiledProduct& product, DType stored,
               const Ref& result, const Tile* tile) {
  if (product.m * product.n * product.batch[0] * product.batch[1] == 0) return;
  const auto walk_result = [&](const Ref& ref, DType type) {
    return walk_elements(ref, product, static_cast<int64_t>(size_of(type)), product.m * product.n, product.n,
                         1);
  };
  const auto element = static_cast<int64_t>(size_of(product.dtype));
  ProductWalks walks{product.a.transposed ? walk_factor(product.a, element, kK, kM)
                                          : walk_factor(product.a, element, kM, kK),
                     product.b.transposed ? walk_factor(product.b, element, kN, kK)
                                          : walk_factor(product.b, element, kK, kN),
                     walk_result(result, stored),
                     walk_elements(in(product.epilogue.bias), product, element, product.bias_batch,
                                   product.bias_row, product.bias_column),
                     walk_result(in(product.epilogue.residual), product.dtype),
                     stored};
  const int64_t extents[] = {product.batch[0], product.batch[1], product.m, product.n, product.k};
  const int64_t multiples[] = {1, 1, 4, 4, 4};
  const auto cut = [&] {
    const Walk all[] = {walks.a, walks.b, walks.result, walks.bias};
    return parts_of(device, extents, multiples, all);
  };
  std::vector<Part> parts = cut();
  const bool sums_meet = std::ranges::any_of(parts, [&](const Part& p) { return p.count[kK] < product.k; });
  const bool wide = stored != DType::F32 && (!whole_fours(product) || sums_meet);
  const int64_t count = product.batch[0] * product.batch[1] * product.m * product.n;
  Ref wide_result;
  if (wide) {
    wide_result = program.scratch(static_cast<uint64_t>(count) * sizeof(float));
    walks.result = walk_result(wide_result, DType::F32);
    walks.stored = DType::F32;
    parts = cut();
  }
  for (const Part& part : parts) add_part(program, device, product, walks, part, tile);
  if (wide) add_narrowing(program, device, count, wide_result, result, stored);
}

/// A GEMM with a full tile and partial ones.
SelfTest product_test(const VulkanDevice& device, const TiledProduct& like, bool fours, const Tile& tile) {
  TiledProduct product;
  product.dtype = like.dtype;
  product.matrices = like.matrices;
  product.m = tile.group_rows() + 3;
  product.n = tile.group_columns() + (fours ? 4 : 3);
  product.k = 12 + (tile.matrices == nullptr ? 0 : tile.matrices->step);
  const auto factor = [](size_t input, bool transposed, int64_t columns) {
    ProductFactor result{.ref = in(input), .transposed = transposed};
    result.row_stride = ceil_div(columns, 4);
    return result;
  };
  const bool a_transposed = like.a.transposed, b_transposed = like.b.transposed;
  product.a = factor(0, a_transposed, a_transposed ? product.m : product.k);
  product.b = factor(1, b_transposed, b_transposed ? product.k : product.n);
  SelfTest test{.program = std::make_unique<Program>("self-test"), .inputs = {}, .expected = {}};
  test.inputs = {whole_numbers((a_transposed ? product.k : product.m) * product.a.row_stride * 4, 1),
                 whole_numbers((b_transposed ? product.n : product.k) * product.b.row_stride * 4, 2)};
  const auto element = [](const std::vector<float>& values, const ProductFactor& f, int64_t row,
                          int64_t column) {
    const int64_t at = f.transposed ? column * f.row_stride * 4 + row : row * f.row_stride * 4 + column;
    return values[static_cast<size_t>(at)];
  };
  for (int64_t m = 0; m < product.m; ++m)
    for (int64_t n = 0; n < product.n; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < product.k; ++k)
        sum += element(test.inputs[0], product.a, m, k) * element(test.inputs[1], product.b, k, n);
      test.expected.push_back(sum);
    }
  for (auto& input : test.inputs) input = stored_as(product.dtype, input);
  add_parts(*test.program, device, product, DType::F32, out(0), &tile);
  return test;
}

/// The fastest tile whose pipeline gives right results on this device, last one without wide registers;
/// declines if there is none.
Tile trusted_tile(Program& program, const VulkanDevice& device, const TiledProduct& product, bool fours,
                  bool texel) {
  std::vector<Tile> tiles;
  const uint32_t lanes = device.plan().tile_lanes;
  if (product.matrices) {
    tiles.push_back(matrix_tile(device.plan().half_matrices));
  } else {
    for (const Load load : {Load::Subgroup, Load::Texel, Load::Buffer})
      if (texel || load == Load::Buffer) tiles.push_back(choose_tile(product, device.plan(), load));
    tiles.push_back({product.a.transposed ? 4u : 1u, 4, lanes, lanes, Load::Buffer});
  }
  std::string reasons;
  for (const Tile& tile : tiles) {
    std::vector<uint32_t> constants{tile.lanes,   tile.rows, tile.columns,
                                    tile.lanes_n, fours,     element_of(product.dtype)};
    if (const MatrixPlan* plan = tile.matrices)
      constants.insert(constants.end(),
                       {plan->m, plan->n, plan->k, plan->step, product.a.transposed, product.b.transposed});
    const Status trusted = device.self_tests().trusted(
        shader_of(product, tile.load), constants, [&] { return product_test(device, product, fours, tile); });
    if (trusted.ok()) return tile;
    append(reasons, reasons.empty() ? "" : "; ", trusted.message());
  }
  program.decline(Status(Code::Unsupported, reasons));
  return tiles.back();
}

}  // namespace

uint32_t lanes_along_n(const DevicePlan& plan, int64_t row_tiles, int64_t column_tiles) {
  const uint32_t lanes = plan.tile_lanes;
  uint32_t lanes_n = 1;
  while (lanes_n < lanes && (lanes_n < column_tiles || lanes / lanes_n > row_tiles)) {
    if (!plan.texel_loads && lanes_n >= 16 && lanes / lanes_n <= row_tiles) break;
    lanes_n *= 2;
  }
  return std::min(lanes_n, lanes);
}

Status matrices_support(const VulkanDevice& device, DType dtype, int64_t m, int64_t n) {
  const DevicePlan& plan = device.plan();
  const MatrixPlan& matrices = plan.half_matrices;
  if (dtype != DType::F16 || !matrices.listed())
    return unsupported("the device lists no cooperative matrices of ", name_of(dtype));
  if (!plan.use_matrices)
    return unsupported(
        "cooperative matrices are not used (RT_VULKAN_MATRICES; software devices emulate them)");
  if (m < matrices.m || n < matrices.n)
    return unsupported("a result of ", m, " x ", n, " is less than one cooperative matrix, ", matrices.m,
                       " x ", matrices.n);
  return {};
}

void add_product(Program& program, const VulkanDevice& device, const TiledProduct& product,
                 const Ref& result) {
  add_parts(program, device, product, product.dtype, result, nullptr);
}

}  // namespace rt::vulkan
