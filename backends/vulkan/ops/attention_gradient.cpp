// Gradients of attention without materializing the scores: blocks of rows along the keys, then blocks of keys
// along the rows. The only scratch is three scalars per row.
#include <algorithm>
#include <cmath>

#include "backends/vulkan/self_tests/self_test.h"
#include "backends/vulkan/steps/attention.h"

namespace librt::vulkan {
namespace {

Status supports(const Device& device, const NodeView& node) {
  RT_TRY(supports_attention(device, node));
  const int64_t d = node.shape(kQuery)[3], e = node.shape(kValue)[3];
  constexpr int64_t kMaxColumns = 1 << 14;  // a workgroup keeps its results in registers
  if (std::min(d, e) == 0 || std::max(d, e) > kMaxColumns)
    return unsupported("rows of ", d, " and ", e, " columns, 1 to ", kMaxColumns, " are supported");
  return {};
}

/// Tiling of one of the two dispatches: each lane has `rows` rows of its block and `columns` of the other
/// side's tile.
struct Tiling {
  Shader shader;
  uint32_t rows, columns, lanes, lanes_n, vec4s;
  int64_t blocks, chunks;

  std::vector<uint32_t> constants() const { return {lanes, rows, columns, lanes_n, vec4s}; }
};

struct Tilings {
  Tiling rows, keys;
  bool texel;
};

Tiling choose_tiling(const DevicePlan& plan, int64_t rows, int64_t columns) {
  constexpr int64_t kMaxVec4s = 4;
  Tiling tiling{};
  tiling.rows = 4, tiling.columns = 4;
  tiling.lanes = plan.tile_lanes;
  tiling.lanes_n = std::min(tiling.lanes, 8u);
  tiling.blocks = ceil_div(rows, int64_t{1} * (tiling.lanes / tiling.lanes_n) * tiling.rows);
  const int64_t lane_vec4s = ceil_div(ceil_div(columns, 4), tiling.lanes_n);
  tiling.chunks = ceil_div(lane_vec4s, kMaxVec4s);
  tiling.vec4s = static_cast<uint32_t>(ceil_div(lane_vec4s, tiling.chunks));
  return tiling;
}

Tilings choose_tilings(const AttentionProblem& p, const DevicePlan& plan, bool texel, bool bool_mask) {
  constexpr Shader kRows[2][2] = {
      {Shader::attention_grad_rows_float_buffer, Shader::attention_grad_rows_float_texel},
      {Shader::attention_grad_rows_bool_buffer, Shader::attention_grad_rows_bool_texel}};
  constexpr Shader kKeys[2][2] = {
      {Shader::attention_grad_keys_float_buffer, Shader::attention_grad_keys_float_texel},
      {Shader::attention_grad_keys_bool_buffer, Shader::attention_grad_keys_bool_texel}};
  Tilings tilings{choose_tiling(plan, p.rows, p.d), choose_tiling(plan, p.keys, std::max(p.d, p.e)), texel};
  tilings.rows.shader = kRows[bool_mask][texel];
  tilings.keys.shader = kKeys[bool_mask][texel];
  return tilings;
}

struct Operands {
  Ref query, key, value, y, grad_y;  ///< rows of all but y are whole vec4s
  Ref grad_query, grad_key, grad_value;
};

void add_gradients(Program& program, const NodeView& node, const AttentionParameters& parameters,
                   const Tilings& tilings, const Operands& operands) {
  const AttentionProblem p = attention_problem(node);
  const Ref statistics =
      program.scratch(static_cast<uint64_t>(p.batch * p.groups * p.rows) * 3 * sizeof(float));
  const auto dispatch = [&](const Tiling& tiling) -> Step& {
    Step& step = program.dispatch(tiling.shader,
                                  static_cast<uint64_t>(p.batch * p.groups * tiling.blocks * tiling.chunks),
                                  tiling.lanes);
    step.spec(tiling.rows).spec(tiling.columns).spec(tiling.lanes_n).spec(tiling.vec4s);
    push_attention(step, node, parameters, false, {tiling.blocks, tiling.chunks, 1});
    step.matrix(0, operands.query, tilings.texel).matrix(1, operands.key, tilings.texel);
    step.matrix(2, operands.value, tilings.texel).matrix(3, operands.grad_y, tilings.texel);
    return step;
  };
  dispatch(tilings.rows).write(7, operands.grad_query).read(8, operands.y).write(9, statistics);
  dispatch(tilings.keys).write(7, operands.grad_key).write(8, operands.grad_value).read(9, statistics);
}

/// In double, for one head: grad_query, grad_key and grad_value concatenated.
std::vector<float> expected_gradients(int64_t queries, int64_t keys, int64_t d, double scale,
                                      const std::vector<std::vector<float>>& inputs) {
  const auto at = [&](size_t input, int64_t row, int64_t column) {
    return static_cast<double>(inputs[input][static_cast<size_t>(row * d + column)]);
  };
  const auto dot = [&](size_t a, int64_t row_a, size_t b, int64_t row_b) {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i) sum += at(a, row_a, i) * at(b, row_b, i);
    return sum;
  };
  enum : size_t { kQ, kK, kV, kY, kGradY };
  std::vector<double> result(static_cast<size_t>((queries + 2 * keys) * d));
  for (int64_t query = 0; query < queries; ++query) {
    double sum = 0;
    for (int64_t key = 0; key < keys; ++key) sum += std::exp(scale * dot(kQ, query, kK, key));
    for (int64_t key = 0; key < keys; ++key) {
      const double weight = std::exp(scale * dot(kQ, query, kK, key)) / sum;
      const double slope = scale * weight * (dot(kGradY, query, kV, key) - dot(kGradY, query, kY, query));
      for (int64_t i = 0; i < d; ++i) {
        result[static_cast<size_t>(query * d + i)] += slope * at(kK, key, i);
        result[static_cast<size_t>((queries + key) * d + i)] += slope * at(kQ, query, i);
        result[static_cast<size_t>((queries + keys + key) * d + i)] += weight * at(kGradY, query, i);
      }
    }
  }
  return {result.begin(), result.end()};
}

/// One head of 64 columns, so that all parts of the result may be bound, with full and partial blocks and
/// tiles.
SelfTest gradient_test(Tilings tilings) {
  constexpr int64_t kColumns = 64;
  const auto longer = [](const Tiling& own, const Tiling& other) {
    return int64_t{1} * std::max(own.lanes / own.lanes_n * own.rows, other.lanes_n * other.columns) + 3;
  };
  const int64_t queries = longer(tilings.rows, tilings.keys), keys = longer(tilings.keys, tilings.rows);
  for (Tiling* tiling : {&tilings.rows, &tilings.keys}) {
    const int64_t block = int64_t{1} * tiling->lanes / tiling->lanes_n * tiling->rows;
    tiling->blocks = ceil_div(tiling == &tilings.rows ? queries : keys, block);
    tiling->chunks = ceil_div(kColumns, int64_t{4} * tiling->lanes_n * tiling->vec4s);
  }
  Node node;
  op::AttentionGradAttributes attributes;
  attributes.scale = 1.0f / 64;
  node.op = make_op(std::move(attributes));
  const Operand of_queries{true, {DType::F32, {1, 1, queries, kColumns}}},
      of_keys{true, {DType::F32, {1, 1, keys, kColumns}}};
  const Operand operands[] = {of_queries, of_keys, of_keys};
  SelfTest test{.program = std::make_unique<Program>("self-test"), .inputs = {}, .expected = {}};
  int64_t seed = 0;
  for (const int64_t rows : {queries, keys, keys, queries, queries})
    test.inputs.push_back(small_integers(rows * kColumns, ++seed));
  test.expected = expected_gradients(queries, keys, kColumns, 1.0 / 64, test.inputs);
  const auto part = [&](int64_t row, int64_t rows) {
    Ref ref = out(0);
    ref.offset = static_cast<uint64_t>(row * kColumns) * sizeof(float);
    ref.bytes = static_cast<uint64_t>(rows * kColumns) * sizeof(float);
    return ref;
  };
  const NodeView view{.node = node, .inputs = operands};
  add_gradients(
      *test.program, view, attention_parameters<op::AttentionGradAttributes>(view), tilings,
      {in(0), in(1), in(2), in(3), in(4), part(0, queries), part(queries, keys), part(queries + keys, keys)});
  return test;
}

Result<KernelPtr> build(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  const AttentionProblem p = attention_problem(node);
  auto program = std::make_unique<Program>("attention_grad");
  if (p.batch * p.groups * p.rows * p.keys == 0) {
    for (const size_t i : {0u, 1u, 2u}) program->fill(out(i), 0);
    return finish(std::move(program));
  }
  Operands operands{attention_rows(*program, device, node, kQuery),
                    attention_rows(*program, device, node, kKey),
                    attention_rows(*program, device, node, kValue),
                    in(kOutput),
                    attention_rows(*program, device, node, kGradOutput),
                    out(0),
                    out(1),
                    out(2)};
  const bool texel = through_texels(device, largest_operand(node, {kQuery, kKey, kValue, kGradOutput}));
  const bool bool_mask = node.has(kMask) && node.dtype(kMask) == DType::Bool;
  const Tilings tilings = choose_tilings(p, device.plan(), texel, bool_mask);
  for (const Tiling* tiling : {&tilings.rows, &tilings.keys})
    RT_TRY(device.self_tests().trusted(tiling->shader, tiling->constants(),
                                       [&] { return gradient_test(tilings); }));
  add_gradients(*program, node, attention_parameters<op::AttentionGradAttributes>(node), tilings, operands);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    built_row<build>(OpKind::AttentionGrad, "attention_grad", DTypeSet{DType::F32}),
};

}  // namespace

std::span<const KernelRow> rows_attention_gradient() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
