// Attention in tiles of queries and keys, without materializing the scores.
#include <algorithm>
#include <cmath>

#include "backends/vulkan/self_tests/self_test.h"
#include "backends/vulkan/steps/attention.h"

namespace librt::vulkan {
namespace {

Status supports(const Device& device, const NodeView& node) {
  RT_TRY(supports_attention(device, node));
  // A workgroup keeps its rows' results in registers.
  constexpr int64_t kMaxColumns = 1 << 14;
  if (node.shape(kValue)[3] > kMaxColumns)
    return unsupported("values of ", node.shape(kValue)[3], " columns, at most ", kMaxColumns,
                       " are supported");
  return {};
}

/// Tiling of the work; see shaders/attention.comp and, with Load::Subgroup, shaders/attention_lanes.comp.
struct Tiling {
  uint32_t rows, columns, lanes, lanes_n, vec4s;
  int64_t blocks, chunks, splits;
  Load load;
};

/// Rows per lane: as many as registers allow.
Tiling subgroup_tiling(const AttentionProblem& p, uint32_t lanes) {
  constexpr int64_t kMaxVec4s = 32, kMaxRows = 4;  // more are slow to compile
  const int64_t vec4s = ceil_div(p.e, 4);
  Tiling tiling{.columns = 16, .lanes = lanes, .lanes_n = lanes, .splits = 1, .load = Load::Subgroup};
  tiling.chunks = std::max<int64_t>(ceil_div(vec4s, kMaxVec4s), 1);
  tiling.vec4s = static_cast<uint32_t>(std::max<int64_t>(ceil_div(vec4s, tiling.chunks), 1));
  tiling.rows = static_cast<uint32_t>(
      std::clamp<int64_t>(std::min(kMaxVec4s / tiling.vec4s, ceil_div(p.rows, lanes)), 1, kMaxRows));
  tiling.blocks = ceil_div(p.rows, tiling.rows * lanes);
  return tiling;
}

/// load: the fastest kind allowed. Weights of a tile take at most 8 KiB of shared memory.
Tiling choose_tiling(const AttentionProblem& p, const DevicePlan& plan, Load load) {
  if (load == Load::Subgroup && plan.subgroup_tiles && p.rows >= plan.tile_lanes)
    return subgroup_tiling(p, plan.tile_lanes);
  Tiling tiling{.rows = p.e > 64 ? 4u : 8u, .columns = 8, .lanes = plan.tile_lanes, .lanes_n = 8};
  tiling.load = load == Load::Buffer ? load : Load::Texel;
  tiling.lanes_n = std::min(tiling.lanes_n, tiling.lanes);
  if (p.rows < 8) {  // a decoding step: all lanes along keys
    tiling.rows = p.rows <= 1 ? 1 : p.rows <= 4 ? 4 : 8;
    tiling.lanes_n = tiling.lanes;
    if (tiling.lanes > 8) tiling.columns = 4;
  }
  const auto block = static_cast<int64_t>(tiling.lanes / tiling.lanes_n * tiling.rows);
  if (block * tiling.lanes_n * tiling.columns > 2048) tiling.columns = 4;
  tiling.blocks = ceil_div(p.rows, block);
  constexpr int64_t kMaxVec4s = 4;
  const int64_t lane_vec4s = ceil_div(ceil_div(p.e, 4), tiling.lanes_n);
  tiling.chunks = std::max<int64_t>(ceil_div(lane_vec4s, kMaxVec4s), 1);
  tiling.vec4s = static_cast<uint32_t>(std::max<int64_t>(ceil_div(lane_vec4s, tiling.chunks), 1));
  // Enough workgroups to fill a large device, with several tiles of keys each.
  constexpr int64_t kWantedGroups = 256, kMinKeys = 256, kMaxSplits = 64;
  const int64_t groups = std::max<int64_t>(p.batch * p.groups * tiling.blocks * tiling.chunks, 1);
  tiling.splits = plan.texel_loads ? 1
                                   : std::clamp<int64_t>(std::min(kWantedGroups / groups, p.keys / kMinKeys),
                                                         1, kMaxSplits);
  return tiling;
}

Shader shader_of(bool bool_mask, Load load) {
  constexpr Shader kShaders[2][3] = {
      {Shader::attention_float_buffer, Shader::attention_float_texel, Shader::attention_float_subgroup},
      {Shader::attention_bool_buffer, Shader::attention_bool_texel, Shader::attention_bool_subgroup}};
  return kShaders[bool_mask][static_cast<size_t>(load)];
}

/// Rows of q, k and v are whole vec4s.
void add_attention(Program& program, const NodeView& node, const Tiling& tiling, Shader shader, const Ref& q,
                   const Ref& k, const Ref& v) {
  const AttentionProblem p = attention_problem(node);
  const int64_t rows = p.batch * p.groups * p.rows;
  const bool parts = tiling.splits > 1;
  const Ref result =
      parts ? program.scratch(static_cast<uint64_t>(rows * tiling.splits * (p.e + 2)) * sizeof(float))
            : out(0);
  const auto groups =
      static_cast<uint64_t>(p.batch * p.groups * tiling.blocks * tiling.chunks * tiling.splits);
  Step& step = program.dispatch(shader, groups, tiling.lanes);
  const int64_t keys = int64_t{tiling.columns} * tiling.lanes_n;
  step.loops(ceil_div(ceil_div(p.keys, keys), tiling.splits) * (ceil_div(p.d, 4) + keys / 4 + 8));
  step.spec(tiling.rows).spec(tiling.columns).spec(tiling.lanes_n).spec(tiling.vec4s);
  push_attention(step, node, attention_parameters<op::AttentionAttributes>(node), parts,
                 {tiling.blocks, tiling.chunks, tiling.splits});
  const bool texel = tiling.load != Load::Buffer;
  step.matrix(0, q, texel).matrix(1, k, texel).matrix(2, v, texel).write(3, result);
  if (parts)
    program.dispatch_each(Shader::attention_merge, rows * p.e, 64)
        .push(rows * p.e)
        .push(p.e)
        .push(tiling.splits)
        .read(0, result)
        .write(1, out(0));
}

/// One head, with full and partial blocks of queries and tiles of keys.
SelfTest attention_test(Shader shader, Tiling tiling) {
  const bool by_lane = tiling.load == Load::Subgroup;
  const int64_t queries = (by_lane ? tiling.lanes : tiling.lanes / tiling.lanes_n) * tiling.rows + 3;
  const int64_t keys = tiling.splits * (by_lane ? 1 : tiling.lanes_n) * tiling.columns + 5;
  const int64_t d = 12, e = int64_t{4} * tiling.vec4s * (by_lane ? 1 : tiling.lanes_n);
  Node node;
  op::AttentionAttributes attributes;
  attributes.scale = 1.0f / 64;
  node.op = make_op(std::move(attributes));
  const Operand operands[] = {{true, {DType::F32, {1, 1, queries, d}}},
                              {true, {DType::F32, {1, 1, keys, d}}},
                              {true, {DType::F32, {1, 1, keys, e}}}};
  tiling.blocks = 2;
  tiling.chunks = 1;
  SelfTest test{.program = std::make_unique<Program>("self-test"), .inputs = {}, .expected = {}};
  test.inputs = {small_integers(queries * d, 1), small_integers(keys * d, 2), small_integers(keys * e, 3)};
  for (int64_t query = 0; query < queries; ++query) {
    std::vector<double> weights;
    double sum = 0;
    for (int64_t key = 0; key < keys; ++key) {
      double score = 0;
      for (int64_t i = 0; i < d; ++i)
        score += test.inputs[0][static_cast<size_t>(query * d + i)] *
                 test.inputs[1][static_cast<size_t>(key * d + i)];
      weights.push_back(std::exp(score / 64));
      sum += weights.back();
    }
    for (int64_t column = 0; column < e; ++column) {
      double value = 0;
      for (int64_t key = 0; key < keys; ++key)
        value +=
            weights[static_cast<size_t>(key)] / sum * test.inputs[2][static_cast<size_t>(key * e + column)];
      test.expected.push_back(static_cast<float>(value));
    }
  }
  add_attention(*test.program, {.node = node, .inputs = operands}, tiling, shader, in(kQuery), in(kKey),
                in(kValue));
  return test;
}

Result<KernelPtr> build(const VulkanDevice& device, const NodeView& node) {
  RT_TRY(supports(device, node));
  const AttentionProblem p = attention_problem(node);
  auto program = std::make_unique<Program>("attention");
  const Ref q = attention_rows(*program, device, node, kQuery),
            k = attention_rows(*program, device, node, kKey),
            v = attention_rows(*program, device, node, kValue);
  const bool texel = through_texels(device, largest_operand(node, {kQuery, kKey, kValue}));
  const bool bool_mask = node.has(kMask) && node.dtype(kMask) == DType::Bool;
  std::string reasons;
  for (const Load load : {Load::Subgroup, Load::Texel, Load::Buffer}) {
    if (!texel && load != Load::Buffer) continue;
    const Tiling tiling = choose_tiling(p, device.plan(), load);
    const Shader shader = shader_of(bool_mask, tiling.load);
    const Status trusted = device.self_tests().trusted(
        shader, {tiling.lanes, tiling.rows, tiling.columns, tiling.lanes_n, tiling.vec4s, tiling.splits > 1},
        [&] { return attention_test(shader, tiling); });
    if (trusted.ok()) {
      add_attention(*program, node, tiling, shader, q, k, v);
      return finish(std::move(program));
    }
    append(reasons, reasons.empty() ? "" : "; ", trusted.message());
  }
  return Status(Code::Unsupported, reasons);
}

constexpr KernelRow kRows[] = {
    built_row<build>(OpKind::Attention, "attention.tiled", DTypeSet{DType::F32}),
};

}  // namespace

std::span<const KernelRow> rows_attention() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
