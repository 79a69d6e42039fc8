// WeightQuantizedMatMul: weights of 8 or 4 bits are dequantized in registers or, if x has many rows, once per
// run into scratch. Groups of other sizes than multiples of 32 are left to the node's body.
#include "backends/vulkan/self_tests/self_test.h"
#include "backends/vulkan/steps/gemm.h"
#include "backends/vulkan/steps/integer_gemm.h"

namespace librt::vulkan {
namespace {

constexpr int64_t kStep = 32;  ///< extent of k that the shader processes at once
/// From this many rows on, dequantizing each weight once costs less than doing so for every tile.
constexpr int64_t kManyRows = 64;

struct Problem {
  int64_t m = 0, n = 0, k = 0, group = 0, bits = 8;
  bool has_bias = false;

  /// The weight as columns of bytes.
  ByteColumns columns() const { return {.k = k * bits / 8, .n = n, .k_stride = 1, .n_stride = k * bits / 8}; }
};

struct Operands {
  Ref x, weight, scale, bias, y;
};

struct Tile {
  uint32_t rows, lanes, lanes_n;
  Load load;
};

Shader shader_of(Load load) {
  constexpr Shader kShaders[] = {Shader::gemm_weights_buffer, Shader::gemm_weights_texel,
                                 Shader::gemm_weights_subgroup};
  return kShaders[static_cast<size_t>(load)];
}

Tile choose_tile(const Problem& problem, const DevicePlan& plan, Load load) {
  Tile tile{8, plan.tile_lanes, plan.tile_lanes, load};
  if (problem.m < 8) tile.rows = problem.m < 4 ? 1 : 4;
  if (load != Load::Subgroup)
    tile.lanes_n = lanes_along_n(plan, ceil_div(problem.m, tile.rows), ceil_div(problem.n, 4));
  return tile;
}

void add_tiles(Program& program, const Problem& problem, const Operands& operands, const Tile& tile) {
  const int64_t row_tiles = ceil_div(problem.m, tile.rows * (tile.lanes / tile.lanes_n));
  const int64_t column_groups = ceil_div(problem.n, 4 * tile.lanes_n);
  Step& step =
      program.dispatch(shader_of(tile.load), static_cast<uint64_t>(row_tiles * column_groups), tile.lanes);
  step.spec(tile.rows).spec(tile.lanes_n).spec(static_cast<uint64_t>(problem.bits));
  step.spec(problem.has_bias).spec(problem.n % 4 == 0);
  step.push(problem.m).push(problem.n).push(problem.k);
  step.push(problem.k / problem.group).push(problem.group / kStep).push(row_tiles).push(column_groups);
  const bool texel = tile.load != Load::Buffer;
  step.matrix(0, operands.x, texel).matrix(1, operands.weight, texel).matrix(2, operands.scale, texel);
  if (problem.has_bias) step.read(3, operands.bias);
  step.write(4, operands.y);
}

/// Two groups, and columns that do not fill the last tile; all scales are 2.
SelfTest gemm_test(int64_t bits, const Tile& tile) {
  Problem problem{.k = 2 * kStep, .group = kStep, .bits = bits};
  problem.m = tile.rows * (tile.lanes / tile.lanes_n) + 1;
  problem.n = 4 * tile.lanes_n + 3;
  SelfTest test{.program = std::make_unique<Program>("self-test"), .inputs = {}, .expected = {}};
  const ByteColumns columns = problem.columns();
  std::vector<float> words(columns.packed_bytes() / sizeof(float));
  const auto bytes = std::as_writable_bytes(std::span(words));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + i / 11);
  const auto weight = [&](int64_t k, int64_t n) {
    const int64_t at = k * bits / 8;
    const auto byte = std::to_integer<uint8_t>(bytes[static_cast<size_t>(
        (at / kIntegerBlock * problem.n + n) * kIntegerBlock + at % kIntegerBlock)]);
    if (bits == 8) return static_cast<int>(static_cast<int8_t>(byte));
    return static_cast<int>(k % 2 == 0 ? byte & 15 : byte >> 4) - 8;
  };
  const std::vector<float> x = small_integers(problem.m * problem.k, 1);
  for (int64_t m = 0; m < problem.m; ++m)
    for (int64_t n = 0; n < problem.n; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < problem.k; ++k)
        sum += x[static_cast<size_t>(m * problem.k + k)] * static_cast<float>(weight(k, n));
      test.expected.push_back(2 * sum);
    }
  test.inputs = {x, words, std::vector<float>(static_cast<size_t>(2 * round_up4(problem.n)), 2.0f)};
  add_tiles(*test.program, problem, {in(0), in(1), in(2), {}, out(0)}, tile);
  return test;
}

/// Dequantizes the weights to scratch, then an ordinary matmul.
void add_widened(Program& program, const VulkanDevice& device, const Problem& problem,
                 const Operands& operands) {
  const Ref wide = program.scratch(static_cast<uint64_t>(problem.n * problem.k) * sizeof(float));
  const int64_t count = problem.columns().blocks() * problem.n;
  program.dispatch_each(Shader::widen_weights, count, device.plan().elementwise_lanes)
      .spec(static_cast<uint64_t>(problem.bits))
      .push(count)
      .push(problem.n)
      .push(problem.k)
      .push(problem.group)
      .read(0, operands.weight)
      .read(1, operands.scale)
      .write(2, wide);
  TiledGemm gemm{.m = problem.m, .n = problem.n, .k = problem.k};
  gemm.a = {.ref = operands.x, .row_stride = problem.k / 4};
  gemm.b = {.ref = wide, .transposed = true, .row_stride = problem.k / 4};
  gemm.bias_column = 1;
  gemm.epilogue.has_bias = problem.has_bias;
  gemm.epilogue.bias = operands.bias.index;
  add_gemm(program, device, gemm, operands.y);
}

Result<KernelPtr> build(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  const auto& attributes = node.as<op::WeightQuantizedMatMulAttributes>();
  Problem problem{.n = node.shape(1)[0],
                  .k = node.shape(0).back(),
                  .group = attributes.group_size,
                  .bits = attributes.bits,
                  .has_bias = node.has(3)};
  if (problem.group % kStep != 0)
    return unsupported("groups of ", problem.group, " weights, not a multiple of ", kStep);
  if (node.output(0).elements() == 0) return unsupported("an empty matmul");
  problem.m = node.input(0).elements() / problem.k;
  auto program = std::make_unique<Program>("weight_quantized");
  const ByteColumns columns = problem.columns();
  const int64_t groups = problem.k / problem.group, scales = groups * round_up4(problem.n);
  const uint64_t most = std::max(
      {columns.packed_bytes(), node.input(0).bytes(), static_cast<uint64_t>(scales) * sizeof(float)});
  if (most > device.plan().max_binding_bytes)
    return unsupported("a packed operand of ", bytes_text(most), ", the device binds at most ",
                       bytes_text(device.plan().max_binding_bytes), " at once");
  Operands operands{in(0), {}, {}, in(3), out(0)};
  operands.weight =
      packed_columns(*program, device, in(1), columns, static_cast<const uint8_t*>(node.inputs[1].value));
  operands.scale = padded_copy(*program, device, in(2),
                               {.extents = {groups, problem.n},
                                .strides = {1, groups},
                                .padded_extents = {groups, round_up4(problem.n)}},
                               node.inputs[2].value);
  for (const size_t input : {size_t{1}, size_t{2}})
    if (node.inputs[input].value != nullptr) program->replaces(input);
  const uint64_t wide_bytes = static_cast<uint64_t>(problem.n * problem.k) * sizeof(float);
  if (problem.m >= kManyRows && wide_bytes <= device.plan().max_binding_bytes) {
    add_widened(*program, device, problem, operands);
    return finish(std::move(program));
  }
  std::string reasons;
  for (const Load load : {Load::Subgroup, Load::Texel, Load::Buffer}) {
    if (load != Load::Buffer && !through_texels(device, most)) continue;
    if (load == Load::Subgroup && !device.plan().subgroup_tiles) continue;
    const Tile tile = choose_tile(problem, device.plan(), load);
    const Status trusted = device.self_tests().trusted(
        shader_of(load), {tile.lanes, tile.rows, tile.lanes_n, static_cast<uint32_t>(problem.bits)},
        [&] { return gemm_test(problem.bits, tile); });
    if (trusted.ok()) {
      add_tiles(*program, problem, operands, tile);
      return finish(std::move(program));
    }
    append(reasons, reasons.empty() ? "" : "; ", trusted.message());
  }
  return Status(Code::Unsupported, reasons);
}

constexpr KernelRow kRows[] = {
    built_row<build>(OpKind::WeightQuantizedMatMul, "weight_quantized_matmul", DTypeSet{DType::F32})};

}  // namespace

std::span<const KernelRow> rows_weight_quantized() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
