#include "backends/vulkan/steps/gemm.h"

#include <algorithm>

#include "backends/vulkan/dispatch/split.h"
#include "backends/vulkan/self_tests/self_test.h"

namespace librt::vulkan {
namespace {

Shader shader_of(const TiledGemm& gemm, Load load) {
  if (gemm.matrices) return Shader::gemm_matrices;
#define RT_LOADS(form) \
  { Shader::gemm_##form##_buffer, Shader::gemm_##form##_texel, Shader::gemm_##form##_subgroup }
  constexpr Shader kShaders[2][2][3] = {{RT_LOADS(nn), RT_LOADS(nt)}, {RT_LOADS(tn), RT_LOADS(tt)}};
#undef RT_LOADS
  return kShaders[gemm.a.transposed][gemm.b.transposed][static_cast<size_t>(load)];
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
Tile choose_tile(const TiledGemm& gemm, const DevicePlan& plan, Load load) {
  Tile tile{8, 8, plan.tile_lanes, plan.tile_lanes, load == Load::Buffer ? load : Load::Texel};
  const auto lanes_and_columns = static_cast<int64_t>(tile.lanes * tile.columns);
  if (load == Load::Subgroup && plan.subgroup_tiles && gemm.m >= 8 && 2 * gemm.n > lanes_and_columns) {
    // Wider tiles take longer to compile, which large GEMMs repay.
    if (gemm.m >= 32) tile.rows = 16;
    tile.load = Load::Subgroup;
    return tile;
  }
  // A transposed A is loaded in vec4s of four rows.
  if (gemm.m < 8) tile.rows = gemm.m < 4 && !gemm.a.transposed ? 1 : 4;
  if (gemm.n < 8 || gemm.m == 1) tile.columns = 4;
  tile.lanes_n = lanes_along_n(plan, ceil_div(gemm.m, tile.rows), ceil_div(gemm.n, tile.columns));
  return tile;
}

/// The axes of a GEMM: two of the batch, m, n, k.
enum Axis : size_t { kOuter, kInner, kM, kN, kK, kAxes };

StridedOperand strided_matrix(const GemmOperand& factor, int64_t element, Axis rows, Axis columns) {
  StridedOperand operand{factor.ref, std::vector<int64_t>(kAxes, 0), element};
  operand.strides[kOuter] = factor.batch_strides[0] * 4 * element;
  operand.strides[kInner] = factor.batch_strides[1] * 4 * element;
  operand.strides[rows] = factor.row_stride * 4 * element;
  operand.strides[columns] = element;
  return operand;
}

/// The result or the bias, from strides in elements.
StridedOperand strided_elements(const Ref& ref, const TiledGemm& gemm, int64_t element, int64_t batch,
                                int64_t row, int64_t column) {
  StridedOperand operand{ref, {batch * gemm.batch[1], batch, row, column, 0}, element};
  for (int64_t& stride : operand.strides) stride *= element;
  return operand;
}

/// Whether the result can be stored, and the bias read, four elements at a time.
bool whole_vec4s(const TiledGemm& gemm) {
  return gemm.n % 4 == 0 &&
         (!gemm.epilogue.has_bias || (gemm.bias_column == 1 && gemm.bias_row == 0 && gemm.bias_batch == 0));
}

struct StridedOperands {
  StridedOperand a, b, result, bias, residual;
  DType stored;  ///< the result's type
};

Tile trusted_tile(Program& program, const VulkanDevice& device, const TiledGemm& gemm, bool vec4s,
                  bool texel);

/// given: for a self-test; null selects the best trusted tile.
void add_part(Program& program, const VulkanDevice& device, const TiledGemm& gemm,
              const StridedOperands& operands, const Part& part, const Tile* given) {
  const auto window = [&](const StridedOperand& operand) { return window_of(device, operand, part); };
  const bool opens = part.first[kK] == 0, closes = part.first[kK] + part.count[kK] == gemm.k;
  const Window a = window(operands.a), b = window(operands.b), result = window(operands.result);
  const Window bias = window(operands.bias);
  EpiloguePlan epilogue = gemm.epilogue;
  epilogue.has_residual = epilogue.has_residual || !opens;
  if (!closes) {
    epilogue.has_bias = false;
    epilogue.activation = {};
  }
  TiledGemm sizes;
  sizes.dtype = gemm.dtype;
  sizes.m = part.count[kM];
  sizes.n = part.count[kN];
  sizes.matrices = gemm.matrices;
  sizes.a.transposed = gemm.a.transposed;
  sizes.b.transposed = gemm.b.transposed;
  const size_t element = size_of(gemm.dtype);
  const bool texel = through_texels(device, std::max(a.bytes(), b.bytes()), element);
  const bool vec4s = whole_vec4s(gemm);
  const Tile tile = given != nullptr ? *given : trusted_tile(program, device, sizes, vec4s, texel);
  const int64_t row_tiles = ceil_div(sizes.m, tile.group_rows());
  const int64_t column_groups = ceil_div(sizes.n, tile.group_columns());
  const int64_t batches = part.count[kOuter] * part.count[kInner];
  Step& step =
      program.dispatch(shader_of(sizes, tile.load),
                       static_cast<uint64_t>(row_tiles * column_groups * batches), tile.invocations());
  step.loops(part.count[kK] / 4 + 4);
  step.spec(tile.rows).spec(tile.columns).spec(tile.lanes_n).spec(vec4s);
  epilogue.specialize(step);
  const StridedOperand& added = opens ? operands.residual : operands.result;
  const DType added_type = opens ? gemm.dtype : operands.stored;
  step.spec(element_of(gemm.dtype)).spec(element_of(operands.stored)).spec(element_of(added_type));
  if (const MatrixPlan* plan = tile.matrices)
    step.spec(plan->m)
        .spec(plan->n)
        .spec(plan->k)
        .spec(plan->subgroups / plan->subgroups_n)
        .spec(plan->step)
        .spec(gemm.a.transposed)
        .spec(gemm.b.transposed);
  const auto push_strides = [&](const StridedOperand& operand, int64_t unit = 1) {
    step.push(operand.strides[kOuter] / operand.element / unit)
        .push(operand.strides[kInner] / operand.element / unit);
  };
  step.push(sizes.m).push(sizes.n).push(part.count[kK]);
  step.push(gemm.a.row_stride).push(gemm.b.row_stride);
  step.push(row_tiles).push(column_groups).push(part.count[kOuter]).push(part.count[kInner]);
  push_strides(operands.a, 4);
  push_strides(operands.b, 4);
  push_strides(operands.result);
  push_strides(operands.bias);
  step.push(gemm.n).push(gemm.bias_row).push(gemm.bias_column);
  step.push(a.first / 4).push(b.first / 4).push(result.first).push(bias.first);
  step.push(epilogue.activation.alpha).push(epilogue.activation.beta);
  const Window residual = epilogue.has_residual ? window(added) : result;
  step.push(residual.first - result.first);
  const bool through_views = tile.load != Load::Buffer;
  step.matrix(0, a.ref, through_views, element).matrix(1, b.ref, through_views, element);
  step.write(2, result.ref);
  if (epilogue.has_bias) step.read(3, bias.ref);
  if (epilogue.has_residual) step.read(4, residual.ref);
}

/// stored: the result's type.
void add_parts(Program& program, const VulkanDevice& device, const TiledGemm& gemm, DType stored,
               const Ref& result, const Tile* tile) {
  if (gemm.m * gemm.n * gemm.batch[0] * gemm.batch[1] == 0) return;
  const auto strided_result = [&](const Ref& ref, DType type) {
    return strided_elements(ref, gemm, static_cast<int64_t>(size_of(type)), gemm.m * gemm.n, gemm.n, 1);
  };
  const auto element = static_cast<int64_t>(size_of(gemm.dtype));
  StridedOperands operands{
      gemm.a.transposed ? strided_matrix(gemm.a, element, kK, kM) : strided_matrix(gemm.a, element, kM, kK),
      gemm.b.transposed ? strided_matrix(gemm.b, element, kN, kK) : strided_matrix(gemm.b, element, kK, kN),
      strided_result(result, stored),
      strided_elements(in(gemm.epilogue.bias), gemm, element, gemm.bias_batch, gemm.bias_row,
                       gemm.bias_column),
      strided_result(in(gemm.epilogue.residual), gemm.dtype),
      stored};
  const int64_t extents[] = {gemm.batch[0], gemm.batch[1], gemm.m, gemm.n, gemm.k};
  const int64_t multiples[] = {1, 1, 4, 4, 4};
  const auto cut = [&] {
    const StridedOperand all[] = {operands.a, operands.b, operands.result, operands.bias};
    return parts_of(device, extents, multiples, all);
  };
  std::vector<Part> parts = cut();
  const bool splits_k = std::ranges::any_of(parts, [&](const Part& p) { return p.count[kK] < gemm.k; });
  const bool wide = stored != DType::F32 && (!whole_vec4s(gemm) || splits_k);
  const int64_t count = gemm.batch[0] * gemm.batch[1] * gemm.m * gemm.n;
  Ref wide_result;
  if (wide) {
    wide_result = program.scratch(static_cast<uint64_t>(count) * sizeof(float));
    operands.result = strided_result(wide_result, DType::F32);
    operands.stored = DType::F32;
    parts = cut();
  }
  for (const Part& part : parts) add_part(program, device, gemm, operands, part, tile);
  if (wide) add_narrowing(program, device, count, wide_result, result, stored);
}

/// A GEMM with a full tile and partial ones.
SelfTest gemm_test(const VulkanDevice& device, const TiledGemm& like, bool vec4s, const Tile& tile) {
  TiledGemm gemm;
  gemm.dtype = like.dtype;
  gemm.matrices = like.matrices;
  gemm.m = tile.group_rows() + 3;
  gemm.n = tile.group_columns() + (vec4s ? 4 : 3);
  gemm.k = 12 + (tile.matrices == nullptr ? 0 : tile.matrices->step);
  const auto factor = [](size_t input, bool transposed, int64_t columns) {
    GemmOperand result{.ref = in(input), .transposed = transposed};
    result.row_stride = ceil_div(columns, 4);
    return result;
  };
  const bool a_transposed = like.a.transposed, b_transposed = like.b.transposed;
  gemm.a = factor(0, a_transposed, a_transposed ? gemm.m : gemm.k);
  gemm.b = factor(1, b_transposed, b_transposed ? gemm.k : gemm.n);
  SelfTest test{.program = std::make_unique<Program>("self-test"), .inputs = {}, .expected = {}};
  test.inputs = {small_integers((a_transposed ? gemm.k : gemm.m) * gemm.a.row_stride * 4, 1),
                 small_integers((b_transposed ? gemm.n : gemm.k) * gemm.b.row_stride * 4, 2)};
  const auto element = [](const std::vector<float>& values, const GemmOperand& f, int64_t row,
                          int64_t column) {
    const int64_t at = f.transposed ? column * f.row_stride * 4 + row : row * f.row_stride * 4 + column;
    return values[static_cast<size_t>(at)];
  };
  for (int64_t m = 0; m < gemm.m; ++m)
    for (int64_t n = 0; n < gemm.n; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < gemm.k; ++k)
        sum += element(test.inputs[0], gemm.a, m, k) * element(test.inputs[1], gemm.b, k, n);
      test.expected.push_back(sum);
    }
  for (auto& input : test.inputs) input = stored_as(gemm.dtype, input);
  add_parts(*test.program, device, gemm, DType::F32, out(0), &tile);
  return test;
}

/// The fastest tile whose pipeline gives right results on this device, last one without wide registers;
/// declines if there is none.
Tile trusted_tile(Program& program, const VulkanDevice& device, const TiledGemm& gemm, bool vec4s,
                  bool texel) {
  std::vector<Tile> tiles;
  const uint32_t lanes = device.plan().tile_lanes;
  if (gemm.matrices) {
    tiles.push_back(matrix_tile(device.plan().half_matrices));
  } else {
    for (const Load load : {Load::Subgroup, Load::Texel, Load::Buffer})
      if (texel || load == Load::Buffer) tiles.push_back(choose_tile(gemm, device.plan(), load));
    tiles.push_back({gemm.a.transposed ? 4u : 1u, 4, lanes, lanes, Load::Buffer});
  }
  std::string reasons;
  for (const Tile& tile : tiles) {
    std::vector<uint32_t> constants{tile.lanes,   tile.rows, tile.columns,
                                    tile.lanes_n, vec4s,     element_of(gemm.dtype)};
    if (const MatrixPlan* plan = tile.matrices)
      constants.insert(constants.end(),
                       {plan->m, plan->n, plan->k, plan->step, gemm.a.transposed, gemm.b.transposed});
    const Status trusted = device.self_tests().trusted(shader_of(gemm, tile.load), constants,
                                                       [&] { return gemm_test(device, gemm, vec4s, tile); });
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

void add_gemm(Program& program, const VulkanDevice& device, const TiledGemm& gemm, const Ref& result) {
  add_parts(program, device, gemm, gemm.dtype, result, nullptr);
}

}  // namespace librt::vulkan
