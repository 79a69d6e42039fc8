#include "backends/vulkan/steps/integer_gemm.h"

#include <algorithm>
#include <cstring>

#include "backends/vulkan/self_tests/self_test.h"
#include "backends/vulkan/steps/gemm.h"

namespace librt::vulkan {
namespace {

enum class Variant : uint8_t { Dot, Subgroup, Texel, Buffer, Matrices };

/// As the tiles of floating-point GEMM: with cooperative matrices, lanes are subgroups.
struct IntegerTile {
  uint32_t rows, columns, lanes, lanes_n;
  Variant variant;
  const MatrixPlan* matrices = nullptr;

  uint32_t invocations() const { return matrices == nullptr ? lanes : matrices->lanes; }
};

Shader shader_of(const IntegerGemm& gemm, Variant variant) {
  constexpr Shader kShaders[2][5] = {
      {Shader::gemm_integer_dot, Shader::gemm_integer_subgroup, Shader::gemm_integer_texel,
       Shader::gemm_integer_buffer, Shader::gemm_integer_matrices},
      {Shader::gemm_integer_conv_dot, Shader::gemm_integer_conv_subgroup, Shader::gemm_integer_conv_texel,
       Shader::gemm_integer_conv_buffer, Shader::gemm_integer_matrices_conv}};
  return kShaders[gemm.windows != nullptr][static_cast<size_t>(variant)];
}

/// As for f32: wide tiles take longer to compile, which large GEMMs repay.
IntegerTile choose_tile(const IntegerGemm& gemm, const DevicePlan& plan, Variant variant) {
  IntegerTile tile{8, 8, plan.tile_lanes, plan.tile_lanes, variant};
  if (gemm.n <= 4 * tile.lanes) tile.columns = 4;
  if (variant == Variant::Subgroup) {
    constexpr int64_t kLarge = int64_t{1} << 23;
    if (gemm.m >= 32 && gemm.m * gemm.n * gemm.k >= kLarge) tile.rows = 16;
    return tile;
  }
  if (gemm.m < 8) tile.rows = gemm.m < 4 ? 1 : 4;
  tile.lanes_n = lanes_along_n(plan, ceil_div(gemm.m, tile.rows), ceil_div(gemm.n, tile.columns));
  return tile;
}

/// Whether results are stored, and scales read, four at a time.
bool whole_vec4s(const IntegerGemm& gemm) {
  return (gemm.n | gemm.c_row | gemm.batch_channels | gemm.c_batch[0] | gemm.c_batch[1]) % 4 == 0;
}

void add_tiles(Program& program, const IntegerGemm& gemm, const Ref& result, const IntegerTile& tile) {
  const int64_t row_tiles = ceil_div(gemm.m, tile.rows * (tile.lanes / tile.lanes_n));
  const int64_t column_groups = ceil_div(gemm.n, tile.columns * tile.lanes_n);
  const int64_t batches = gemm.batch[0] * gemm.batch[1];
  const ConvSides* windows = gemm.windows;
  if (!whole_vec4s(gemm)) gemm.requantize.clear(program, result);
  Step& step =
      program.dispatch(shader_of(gemm, tile.variant),
                       static_cast<uint64_t>(row_tiles * column_groups * batches), tile.invocations());
  gemm.requantize.specialize(step);
  step.spec(tile.rows).spec(tile.columns).spec(tile.lanes_n);
  step.spec(gemm.a_signed ? 128 : 0).spec(gemm.b_signed ? 0 : 128);
  step.spec(static_cast<uint64_t>(gemm.zero_a)).spec(static_cast<uint64_t>(gemm.zero_b));
  step.spec(whole_vec4s(gemm));
  if (const MatrixPlan* plan = tile.matrices)
    step.spec(plan->m).spec(plan->n).spec(plan->k).spec(plan->subgroups / plan->subgroups_n).spec(plan->step);
  step.push(gemm.m).push(gemm.n).push(gemm.k);
  step.push(ceil_div(windows != nullptr ? windows->group_in() : gemm.k, kIntegerBlock));
  step.push(gemm.a_row).push(row_tiles).push(column_groups);
  for (const auto* pair : {&gemm.batch, &gemm.a_batch, &gemm.b_batch, &gemm.c_batch})
    step.push((*pair)[0]).push((*pair)[1]);
  step.push(gemm.c_row).push(gemm.batch_channels);
  gemm.requantize.push(step);
  if (windows != nullptr) {
    step.push(windows->out_extent[0]).push(windows->out_extent[1]);
    step.push(windows->in_extent[0]).push(windows->in_extent[1]);
    push_axis_pairs(step, *windows);
  }
  const bool texel = tile.variant == Variant::Subgroup || tile.variant == Variant::Texel;
  step.matrix(0, gemm.a, texel).matrix(1, gemm.b, texel);
  gemm.requantize.bind(step, result);
  if (gemm.zero_a != ZeroPoint::None) step.read(7, gemm.a_zero);
  if (gemm.zero_b != ZeroPoint::None) step.read(8, gemm.b_zero);
}

// --- self-tests

/// Bytes reinterpreted as the floats that a SelfTest takes.
std::vector<float> as_floats(const std::vector<int8_t>& bytes) {
  std::vector<float> words(bytes.size() / sizeof(float));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

std::vector<int8_t> test_bytes(int64_t count, int64_t seed) {
  std::vector<int8_t> bytes;
  for (const float value : small_integers(count, seed)) bytes.push_back(static_cast<int8_t>(value * 25));
  return bytes;
}

/// i8 in a full tile and partial ones: rows of two blocks, or 3x3 windows of one.
SelfTest gemm_test(bool windows, bool vec4s, const IntegerTile& tile) {
  IntegerGemm gemm;
  ConvSides sides;
  gemm.m = tile.rows * (tile.lanes / tile.lanes_n) + 3;
  gemm.n = tile.columns * tile.lanes_n + (vec4s ? 4 : 3);
  gemm.k = windows ? 9 * kIntegerBlock : 2 * kIntegerBlock;
  gemm.a_row = windows ? 1 : 2;
  constexpr int64_t kWidth = 7;
  if (windows) {
    gemm.m = ceil_div(gemm.m, kWidth) * kWidth;
    sides.batch = 1;
    sides.in_channels = kIntegerBlock;
    sides.out_channels = gemm.n;
    sides.in_extent = sides.out_extent = {gemm.m / kWidth, kWidth, 1};
    for (size_t i = 0; i < 2; ++i) {
      sides.axes[i].kernel = 3;
      sides.axes[i].stride = sides.axes[i].dilation = sides.axes[i].pad_begin = 1;
    }
    gemm.windows = &sides;
  }
  gemm.a = in(0);
  gemm.b = in(1);
  gemm.a_signed = true;
  gemm.c_row = gemm.n;
  gemm.requantize = {.result = 1, .scale = 2};
  const std::vector<int8_t> a = test_bytes(gemm.m * gemm.a_row * kIntegerBlock, 1);
  const std::vector<int8_t> b = test_bytes(gemm.k * gemm.n, 2);
  const auto left = [&](int64_t row, int64_t k) -> int {
    if (!windows) return a[static_cast<size_t>(row * gemm.k + k)];
    const int64_t tap = k / kIntegerBlock, y = row / kWidth + tap / 3 - 1, x = row % kWidth + tap % 3 - 1;
    if (y < 0 || y >= sides.in_extent[0] || x < 0 || x >= kWidth) return 0;
    return a[static_cast<size_t>((y * kWidth + x) * kIntegerBlock + k % kIntegerBlock)];
  };
  SelfTest test{.program = std::make_unique<Program>("self-test"), .inputs = {}, .expected = {}};
  for (int64_t row = 0; row < gemm.m; ++row)
    for (int64_t column = 0; column < gemm.n; ++column) {
      int sum = 0;
      for (int64_t k = 0; k < gemm.k; ++k)
        sum +=
            left(row, k) *
            b[static_cast<size_t>((k / kIntegerBlock * gemm.n + column) * kIntegerBlock + k % kIntegerBlock)];
      test.expected.push_back(static_cast<float>(sum));
    }
  test.inputs = {as_floats(a), as_floats(b), {1.0f}};
  add_tiles(*test.program, gemm, out(0), tile);
  return test;
}

}  // namespace

void add_integer_gemm(Program& program, const VulkanDevice& device, const IntegerGemm& gemm,
                      const Ref& result) {
  const DevicePlan& plan = device.plan();
  const bool texel = plan.texel_loads && plan.max_binding_bytes / 16 <= device.facts().max_texel_elements;
  std::vector<IntegerTile> tiles;
  const MatrixPlan& matrices = plan.byte_matrices;
  const bool lanes_share_windows = matrices.step == 0 || matrices.lanes % (matrices.step / 16) == 0;
  if (plan.use_matrices && matrices.listed() && gemm.m >= matrices.m && gemm.n >= matrices.n &&
      (gemm.windows == nullptr || lanes_share_windows))
    tiles.push_back({matrices.rows, matrices.columns, matrices.subgroups, matrices.subgroups_n,
                     Variant::Matrices, &matrices});
  if (device.facts().features.integer_dot) tiles.push_back(choose_tile(gemm, plan, Variant::Dot));
  if (texel && plan.subgroup_tiles && gemm.m >= 8)
    tiles.push_back(choose_tile(gemm, plan, Variant::Subgroup));
  if (texel) tiles.push_back(choose_tile(gemm, plan, Variant::Texel));
  tiles.push_back(choose_tile(gemm, plan, Variant::Buffer));
  tiles.push_back({1, 4, plan.tile_lanes, plan.tile_lanes, Variant::Buffer});
  std::string reasons;
  for (const IntegerTile& tile : tiles) {
    const Status trusted = device.self_tests().trusted(
        shader_of(gemm, tile.variant), {tile.lanes, tile.rows, tile.columns, tile.lanes_n, whole_vec4s(gemm)},
        [&] { return gemm_test(gemm.windows != nullptr, whole_vec4s(gemm), tile); });
    if (trusted.ok()) return add_tiles(program, gemm, result, tile);
    append(reasons, reasons.empty() ? "" : "; ", trusted.message());
  }
  program.decline(Status(Code::Unsupported, reasons));
}

Ref packed_columns(Program& program, const VulkanDevice& device, const Ref& source,
                   const ByteColumns& columns, const uint8_t* constant) {
  const uint8_t flip = columns.is_signed ? 0 : 128;
  if (constant != nullptr)
    return program.packed(columns.packed_bytes(), [=](std::span<std::byte> target) {
      std::ranges::fill(target, std::byte{0});
      size_t row = 0;
      for (int64_t matrix = 0; matrix < columns.matrices; ++matrix)
        for (int64_t first = 0; first < columns.k; first += kIntegerBlock)
          for (int64_t n = 0; n < columns.n; ++n, row += kIntegerBlock)
            for (int64_t k = first; k < std::min(first + kIntegerBlock, columns.k); ++k) {
              const int64_t at = matrix * columns.matrix_stride + k * columns.k_stride + n * columns.n_stride;
              target[row + static_cast<size_t>(k - first)] = static_cast<std::byte>(constant[at] ^ flip);
            }
    });
  const Ref target = program.scratch(columns.packed_bytes());
  const int64_t count = columns.matrices * columns.blocks() * columns.n;
  program.dispatch_each(Shader::pack_columns, count, device.plan().elementwise_lanes)
      .spec(flip)
      .push(count)
      .push(columns.n)
      .push(columns.k)
      .push(columns.matrix_stride)
      .push(columns.k_stride)
      .push(columns.n_stride)
      .read(0, source)
      .write(1, target);
  return target;
}

Ref packed_rows(Program& program, const VulkanDevice& device, const Ref& source, const ConvSides& sides,
                bool is_signed, const Ref* zero) {
  const uint64_t bytes = packed_rows_bytes(sides);
  const Ref target = program.scratch(bytes);
  const auto count = static_cast<int64_t>(bytes) / kIntegerBlock;
  // Padding past K is multiplied by zeros and must not count in the row sums of a.
  Step& step = program.dispatch_each(Shader::pack_rows, count, device.plan().elementwise_lanes)
                   .spec(zero != nullptr)
                   .spec(is_signed ? 128 : 0);
  step.push(count);
  push_sides(step, sides);
  step.push(ceil_div(sides.taps() * sides.group_in(), kIntegerBlock));
  step.read(0, source).write(2, target);
  if (zero != nullptr) step.read(1, *zero);
  return target;
}

}  // namespace librt::vulkan
