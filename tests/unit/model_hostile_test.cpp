// Damaged and hostile files: always a Status with the position of the fault, never a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/graph/data_checks.h"
#include "runtime/graph/verify.h"
#include "runtime/model/format.h"
#include "runtime/model/reader.h"
#include "tests/unit/model_support.h"
#include "tools/compiler/writer.h"

namespace librt {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using testing::blob_of;

std::vector<std::byte> sample_bytes() {
  return compiler::serialize_model(testing::sample_model()).value();
}

/// The file is rejected as an invalid model, with `expected` in the message.
void expect_refused(const std::vector<std::byte>& bytes, std::string_view expected,
                    const ReadLimits& limits = {}) {
  const auto read = read_model(blob_of(bytes), limits);
  ASSERT_FALSE(read.ok()) << "accepted; expected: " << expected;
  EXPECT_EQ(read.status().code(), Code::InvalidModel) << read.status().message();
  EXPECT_NE(read.status().message().find(expected), std::string::npos) << read.status().message();
}

// --- damage
// ---------------------------------------------------------------------------------------------------

TEST(ModelDamage, EveryTruncation) {
  const auto bytes = sample_bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    auto part = bytes;
    part.resize(size);
    const auto read = read_model(blob_of(std::move(part)));
    ASSERT_FALSE(read.ok()) << size;
    ASSERT_EQ(read.status().code(), Code::InvalidModel) << size;
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  expect_refused(longer, "should have");
}

TEST(ModelDamage, EveryBitOfHeaderAndFlatBufferIsNoticed) {
  const auto bytes = sample_bytes();
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  auto damaged = bytes;
  for (size_t bit = 0; bit < (header.graph_offset + header.graph_bytes) * 8; ++bit) {
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto read = read_model(blob_of(damaged));
    ASSERT_FALSE(read.ok()) << "bit " << bit;
    ASSERT_EQ(read.status().code(), Code::InvalidModel) << "bit " << bit;
    damaged[bit / 8] = bytes[bit / 8];
  }
}

TEST(ModelDamage, FlippedBitsWithCorrectedChecksums) {
  const auto bytes = sample_bytes();
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  size_t accepted = 0;
  for (size_t bit = 0; bit < (header.graph_offset + header.graph_bytes) * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    testing::reseal(damaged);
    const auto read = read_model(blob_of(std::move(damaged)));
    if (read.ok())
      ++accepted;
    else
      ASSERT_EQ(read.status().code(), Code::InvalidModel) << "bit " << bit << ": " << read.status().message();
  }
  EXPECT_GT(accepted, 0u);  // changed letters in names, changed constants
}

TEST(ModelDamage, DataIsCompared) {
  auto bytes = sample_bytes();
  bytes.back() ^= std::byte{1};
  expect_refused(bytes, "checksum");
  expect_refused(bytes, "checksum", {.verify = Verify::AtFirstUse});  // small: while reading
  EXPECT_TRUE(read_model(blob_of(bytes), {.verify = Verify::Never}).ok());
}

TEST(ModelDamage, LargeDataIsComparedAtFirstUse) {
  ModelGraph model = testing::sample_model();
  State& state = model.states.emplace_back();
  state.name = "large";
  state.info = {.dtype = DType::F32, .shape = {2048}};
  state.initial = Blob::own(std::vector<std::byte>(8192, std::byte{1}));
  auto bytes = compiler::serialize_model(model).value();
  const auto sound = read_model(blob_of(bytes), {.verify = Verify::AtFirstUse});
  ASSERT_TRUE(sound.ok()) << sound.status().message();
  EXPECT_TRUE(sound->checks->verify(sound->states.back().initial.data).ok());
  EXPECT_TRUE(sound->checks->verify(sound->states.back().initial.data + 1).ok());  // no range begins here
  const auto place = std::search_n(bytes.begin(), bytes.end(), 8192, std::byte{1});
  *(place + 5000) ^= std::byte{16};
  expect_refused(bytes, "the checksum of 8192 bytes");
  const auto damaged = read_model(blob_of(bytes), {.verify = Verify::AtFirstUse});
  ASSERT_TRUE(damaged.ok()) << damaged.status().message();
  for (int again = 0; again < 2; ++again) {
    const Status status = damaged->checks->verify(damaged->states.back().initial.data);
    EXPECT_EQ(status.code(), Code::InvalidModel);
    EXPECT_EQ(status.message(), "the checksum of its 8192 bytes differs; the file is damaged");
  }
}

/// Every size around the switches between the ways to compute it.
TEST(ModelDamage, ChecksumsOfLongRangesDoNotDependOnTheProcessor) {
  std::vector<std::byte> bytes(70'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 >> 3);
  EXPECT_EQ(checksum(bytes.data(), 4095), 0xb872ca2b025f705bu);
  EXPECT_EQ(checksum(bytes.data(), 4096), 0x0e6e0796ab5608abu);
  EXPECT_EQ(checksum(bytes.data() + 1, 69'999), 0xe6fcc9162d968a8cu);
}

TEST(ModelDamage, OtherFiles) {
  expect_refused({}, "truncated");
  expect_refused(std::vector<std::byte>(64), "not a compiled model");
  expect_refused(std::vector<std::byte>(4096, std::byte{0xff}), "not a compiled model");
  std::vector<std::byte> onnx(4096);
  for (size_t i = 0; const int byte : {0x08, 0x08, 0x12, 0x07}) onnx[i++] = static_cast<std::byte>(byte);
  expect_refused(onnx, "ONNX file: compile it with `rtconvert");
  auto checkpoint = sample_bytes();
  std::memcpy(checkpoint.data(), kCheckpointMagic.data(), kCheckpointMagic.size());
  expect_refused(checkpoint, "this is a checkpoint");
  auto newer = sample_bytes();
  newer[8] = std::byte{2};
  testing::reseal(newer);
  expect_refused(newer, "format version 2");
}

// --- hostile graphs
// -------------------------------------------------------------------------------------------

struct Sketch {
  FlatBufferBuilder& fbb;
  std::vector<Offset<file::Value>> values;
  std::vector<Offset<file::Node>> nodes;

  uint32_t value(std::vector<file::Dim> dims, file::Role role = file::Role::Intermediate,
                 uint32_t data = kNoValue, uint8_t dtype = 0) {
    const auto list = fbb.CreateVectorOfStructs(dims);
    values.push_back(file::CreateValue(fbb, fbb.CreateString("v"), dtype, role, list, data));
    return static_cast<uint32_t>(values.size() - 1);
  }
  void node(op::Op kind, Offset<void> attributes, std::vector<uint32_t> in, std::vector<uint32_t> out,
            std::vector<Offset<file::Graph>> bodies = {}, const char* op_name = "Future") {
    const auto name = fbb.CreateString("hostile");
    const auto written = fbb.CreateString(op_name);
    const auto inputs = fbb.CreateVector(in);
    const auto outputs = fbb.CreateVector(out);
    const auto body_list = fbb.CreateVector(bodies);
    nodes.push_back(file::CreateNode(fbb, kind, attributes, name, inputs, outputs, body_list, written));
  }
  void relu(uint32_t in, uint32_t out) { node(op::Op::Relu, op::CreateRelu(fbb).Union(), {in}, {out}); }
  Offset<file::Graph> graph(std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
                            std::vector<file::StateUpdate> updates = {}) {
    const auto value_list = fbb.CreateVector(values);
    const auto node_list = fbb.CreateVector(nodes);
    const auto input_list = fbb.CreateVector(inputs);
    const auto output_list = fbb.CreateVector(outputs);
    const auto update_list = fbb.CreateVectorOfStructs(updates);
    return file::CreateGraph(fbb, 0, 0, value_list, node_list, input_list, output_list, update_list);
  }
};

using Draw = std::function<Offset<file::Graph>(Sketch&)>;
std::vector<std::byte> drawn(const Draw& draw) {
  return testing::file_of_graph([&](FlatBufferBuilder& fbb) {
    Sketch sketch{fbb, {}, {}};
    return draw(sketch);
  });
}
constexpr auto kInput = file::Role::Input;

TEST(ModelHostile, ASoundSketchIsAccepted) {
  const auto read = read_model(blob_of(drawn([](Sketch& s) {
    const auto x = s.value({{4, -1}}, kInput), y = s.value({{4, -1}});
    s.relu(x, y);
    return s.graph({x}, {y});
  })));
  // Inputs and outputs may share names; outputs must have distinct names.
  EXPECT_TRUE(read.ok()) << read.status().message();
}

TEST(ModelHostile, Order) {
  expect_refused(drawn([](Sketch& s) {
                   const auto a = s.value({{4, -1}}), b = s.value({{4, -1}});
                   s.relu(a, b);
                   s.relu(b, a);
                   return s.graph({}, {a});
                 }),
                 "entry 'infer'");
  expect_refused(drawn([](Sketch& s) {
                   const auto a = s.value({{4, -1}});
                   s.relu(a, a);
                   return s.graph({}, {a});
                 }),
                 "not produced before it is used");
  expect_refused(drawn([](Sketch& s) {
                   const auto x = s.value({{4, -1}}, kInput), y = s.value({{4, -1}});
                   s.relu(x, y);
                   s.relu(x, y);
                   return s.graph({x}, {y});
                 }),
                 "produced twice");
  expect_refused(drawn([](Sketch& s) {
                   const auto x = s.value({{4, -1}}, kInput);
                   s.relu(x, x);
                   return s.graph({x}, {x});
                 }),
                 "produced twice");
}

TEST(ModelHostile, IdsOutOfRange) {
  for (const uint32_t id : {7u, 0x7fffffffu, 0xfffffffeu, 0xffffffffu}) {
    expect_refused(drawn([&](Sketch& s) {
                     const auto y = s.value({{4, -1}});
                     s.relu(id, y);
                     return s.graph({}, {y});
                   }),
                   "hostile");
    expect_refused(drawn([&](Sketch& s) {
                     const auto x = s.value({{4, -1}}, kInput);
                     s.relu(x, id);
                     return s.graph({x}, {x});
                   }),
                   "output");
    expect_refused(drawn([&](Sketch& s) { return s.graph({id}, {}); }), "input");
    expect_refused(drawn([&](Sketch& s) { return s.graph({}, {id}); }), "output");
    expect_refused(drawn([&](Sketch& s) { return s.graph({}, {}, {{id, id}}); }), "state update");
    expect_refused(drawn([&](Sketch& s) {
                     s.value({{4, -1}}, file::Role::State, id);
                     return s.graph({}, {});
                   }),
                   "state");
    if (id != kNoValue)
      expect_refused(drawn([&](Sketch& s) {
                       s.value({{4, -1}}, file::Role::Constant, id);
                       return s.graph({}, {});
                     }),
                     "segment");
  }
}

TEST(ModelHostile, Shapes) {
  const auto one_value = [](std::vector<file::Dim> dims, uint8_t dtype = 0, file::Role role = kInput) {
    return drawn([&](Sketch& s) {
      const auto x = s.value(dims, role, kNoValue, dtype);
      return s.graph(role == kInput ? std::vector<uint32_t>{x} : std::vector<uint32_t>{}, {});
    });
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  expect_refused(one_value(std::vector<file::Dim>(9, {1, -1})), "rank 9");
  expect_refused(one_value(std::vector<file::Dim>(100000, {1, -1})), "rank 100000");
  expect_refused(one_value({{1ll << 40, -1}, {1ll << 40, -1}}), "limit");
  expect_refused(one_value({{kMost, -1}}), "limit");
  expect_refused(one_value({{kMost, -1}, {kMost, -1}, {-1, -1}}), "too large");
  expect_refused(one_value({{1ll << 36, -1}}), "limit");
  expect_refused(one_value({{-2, -1}}), "negative");
  expect_refused(one_value({{std::numeric_limits<int64_t>::min(), -1}}), "negative");
  expect_refused(one_value({{-1, 0}}), "symbol");
  expect_refused(one_value({{-1, -2}}), "symbol");
  expect_refused(one_value({{-1, std::numeric_limits<int32_t>::max()}}), "symbol");
  expect_refused(one_value({{4, -1}}, 13), "element type");
  expect_refused(one_value({{4, -1}}, 255), "element type");
  expect_refused(one_value({{4, -1}}, 0, static_cast<file::Role>(77)), "role");
  expect_refused(one_value({{4, -1}}, 0, file::Role::Constant), "bytes");
}

TEST(ModelHostile, States) {
  const auto with_state = [](std::vector<int64_t> dims, uint32_t segment, uint64_t offset = 0,
                             uint64_t bytes = 16) {
    return testing::file_of(
        [&](FlatBufferBuilder& fbb) {
          const auto list = fbb.CreateVector(dims);
          const auto name = fbb.CreateString("w");
          const auto state = file::CreateState(fbb, name, 0, list, file::StateKind::Parameter, segment);
          const auto states = fbb.CreateVector(&state, 1);
          const auto place = file::CreateSegment(fbb, offset, bytes, 0);
          const auto places = fbb.CreateVector(&place, 1);
          const auto entries = fbb.CreateVector(std::vector<Offset<file::Entry>>());
          fbb.Finish(file::CreateModel(fbb, 0, entries, states, places), file::ModelIdentifier());
        },
        std::vector<std::byte>(128));
  };
  EXPECT_TRUE(read_model(blob_of(with_state({4}, 0))).ok());
  EXPECT_TRUE(read_model(blob_of(with_state({4}, kNoValue))).ok());
  expect_refused(with_state({1ll << 35}, kNoValue), "limit");
  expect_refused(with_state({-4}, 0), "valid");
  expect_refused(with_state(std::vector<int64_t>(9, 1), 0), "rank 9");
  expect_refused(with_state({5}, 0), "bytes");
  expect_refused(with_state({4}, 1), "segment 1 of 1");
  expect_refused(with_state({4}, 0, 128), "outside");
  expect_refused(with_state({4}, 0, 32), "multiple");
  expect_refused(with_state({4}, 0, std::numeric_limits<uint64_t>::max() - 63), "outside");
  expect_refused(with_state({4}, 0, 0, std::numeric_limits<uint64_t>::max()), "outside");
}

Offset<file::Graph> nested(Sketch& outer, int depth) {
  Sketch s{outer.fbb, {}, {}};
  const auto x = s.value({{4, -1}}, kInput), y = s.value({{4, -1}});
  if (depth == 0)
    s.relu(x, y);
  else
    s.node(op::Op::NONE, 0, {x}, {y}, {nested(s, depth - 1)});
  return s.graph({x}, {y});
}

TEST(ModelHostile, Nesting) {
  EXPECT_TRUE(read_model(blob_of(drawn([](Sketch& s) { return nested(s, kMaxBodyDepth); }))).ok());
  for (const int depth : {kMaxBodyDepth + 1, 30, 100, 1000})
    expect_refused(drawn([&](Sketch& s) { return nested(s, depth); }), depth < 60 ? "nested" : "");
}

/// Twelve levels of graphs that reference the graph below many times: a small file that would expand into a
/// huge one.
TEST(ModelHostile, Amplification) {
  expect_refused(drawn([](Sketch& s) {
                   auto below = nested(s, 0);
                   for (int level = 0; level < kMaxBodyDepth; ++level) {
                     Sketch next{s.fbb, {}, {}};
                     const auto x = next.value({{4, -1}}, kInput);
                     const auto y = next.value({{4, -1}});
                     next.node(op::Op::NONE, 0, {x}, {y}, {below});
                     next.nodes.assign(100, next.nodes[0]);
                     below = next.graph({x}, {y});
                   }
                   return below;
                 }),
                 "");
  expect_refused(drawn([](Sketch& s) {
                   const auto x = s.value({{4, -1}}, kInput);
                   s.values.assign(100000, s.values[0]);
                   return s.graph({x}, {x});
                 }),
                 "");
}

TEST(ModelHostile, Limits) {
  const auto bytes = sample_bytes();
  EXPECT_TRUE(
      read_model(blob_of(bytes), {.nodes = 100, .values = 100, .graph_bytes = 1 << 20, .memory = 100}).ok());
  expect_refused(bytes, "nodes", {.nodes = 3});
  expect_refused(bytes, "values", {.values = 10});
  expect_refused(bytes, "limit", {.graph_bytes = 1000});
  expect_refused(bytes, "limit", {.memory = 20});
}

// --- operators
// ------------------------------------------------------------------------------------------------

std::vector<std::byte> one_node(const std::function<void(Sketch&, uint32_t x, uint32_t y)>& add) {
  return drawn([&](Sketch& s) {
    const auto x = s.value({{4, -1}}, kInput), y = s.value({{4, -1}});
    add(s, x, y);
    return s.graph({x}, {y});
  });
}

TEST(ModelHostile, UnknownOperator) {
  expect_refused(one_node([](Sketch& s, uint32_t x, uint32_t y) { s.node(op::Op::NONE, 0, {x}, {y}); }),
                 "body");
  expect_refused(one_node([](Sketch& s, uint32_t x, uint32_t y) {
                   s.node(static_cast<op::Op>(250), op::CreateRelu(s.fbb).Union(), {x}, {y});
                 }),
                 "(Future)");
  const auto read = read_model(blob_of(one_node([](Sketch& s, uint32_t x, uint32_t y) {
    s.node(static_cast<op::Op>(250), op::CreateRelu(s.fbb).Union(), {x}, {y}, {nested(s, 0)});
  })));
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Node& node = read->entries[0].graph.nodes[0];
  EXPECT_EQ(node.kind(), OpKind::NONE);
  EXPECT_EQ(node.unknown_op, "Future");
  EXPECT_EQ(node.bodies.size(), 1u);
  const auto again = compiler::serialize_model(read.value());
  ASSERT_TRUE(again.ok()) << again.status().message();
  const auto second = read_model(blob_of(again.value()));
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_TRUE(testing::equal(read.value(), second.value()));
}

TEST(ModelHostile, ControlFlow) {
  const auto empty = [](Sketch& s, std::vector<uint8_t> inputs, std::vector<uint8_t> outputs) {
    Sketch body{s.fbb};
    std::vector<uint32_t> in, out;
    for (const uint8_t dtype : inputs) in.push_back(body.value({}, kInput, kNoValue, dtype));
    for (const uint8_t dtype : outputs) {
      out.push_back(body.value({}, file::Role::Intermediate, kNoValue, dtype));
      body.node(op::Op::Identity, op::CreateIdentity(s.fbb).Union(), {in[0]}, {out.back()}, {}, "Identity");
    }
    return body.graph(in, out);
  };
  const auto loop = [&](std::vector<uint32_t> in, int64_t carried, auto bodies) {
    return one_node([&](Sketch& s, uint32_t x, uint32_t y) {
      for (uint32_t& id : in)
        if (id == 0) id = x;
      s.node(op::Op::Loop, op::CreateLoop(s.fbb, carried).Union(), in, {y}, bodies(s), "Loop");
    });
  };
  const auto none = [](Sketch&) { return std::vector<Offset<file::Graph>>(); };
  constexpr auto kI64 = static_cast<uint8_t>(DType::I64), kBool = static_cast<uint8_t>(DType::Bool);
  expect_refused(loop({kNoValue, kNoValue}, 0, none), "bodies");
  expect_refused(loop({0}, 0, none), "operands");
  const auto body = [&](std::vector<uint8_t> in, std::vector<uint8_t> out) {
    return [=](Sketch& s) { return std::vector{empty(s, in, out)}; };
  };
  expect_refused(loop({kNoValue, kNoValue}, 0, body({kI64}, {kI64, kI64})), "inputs");
  expect_refused(loop({kNoValue, kNoValue}, 0, body({kI64, kBool}, {kI64})), "outputs");
  expect_refused(loop({kNoValue, kNoValue, kNoValue}, 1, body({kI64, kBool, 0}, {kI64, 0})), "absent");
  expect_refused(loop({kNoValue, kNoValue}, 1, body({kI64, kBool}, {kI64, kI64})), "");
  expect_refused(loop({kNoValue, kNoValue}, -1, body({kI64, kBool}, {kI64, kI64})), "carried");
  // The condition is no bool.
  expect_refused(loop({kNoValue, kNoValue}, 0, body({kI64, kBool}, {kI64, kI64})), "condition");
}

/// A field added by a newer version: ignoring it would change the computation.
TEST(ModelHostile, NewerAttribute) {
  const auto newer = [](Sketch& s, uint32_t x, uint32_t y, bool body) {
    const auto start = s.fbb.StartTable();
    s.fbb.AddElement<int32_t>(4 + 2 * 5, 1, 0);
    const Offset<void> attributes(s.fbb.EndTable(start));
    std::vector<Offset<file::Graph>> bodies;
    if (body) bodies.push_back(nested(s, 0));
    s.node(op::Op::Relu, attributes, {x}, {y}, bodies, "Relu");
  };
  expect_refused(one_node([&](Sketch& s, uint32_t x, uint32_t y) { newer(s, x, y, false); }),
                 "newer version");
  const auto read =
      read_model(blob_of(one_node([&](Sketch& s, uint32_t x, uint32_t y) { newer(s, x, y, true); })));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->entries[0].graph.nodes[0].kind(), OpKind::NONE);
  EXPECT_EQ(read->entries[0].graph.nodes[0].unknown_op, "Relu");
}

TEST(ModelHostile, Attributes) {
  expect_refused(one_node([](Sketch& s, uint32_t x, uint32_t y) { s.node(op::Op::Relu, 0, {x}, {y}); }), "");
  expect_refused(
      one_node([](Sketch& s, uint32_t x, uint32_t y) {
        const auto epilogue = op::CreateEpilogue(s.fbb, static_cast<op::Activation>(200));
        s.node(op::Op::MatMul, op::CreateMatMul(s.fbb, false, false, epilogue).Union(), {x, x}, {y});
      }),
      "activation");
  expect_refused(one_node([](Sketch& s, uint32_t x, uint32_t y) {
                   const auto axes = s.fbb.CreateVector(std::vector<int64_t>(100000));
                   s.node(op::Op::ReduceSum, op::CreateReduceSum(s.fbb, axes).Union(), {x}, {y});
                 }),
                 "axes");
}

TEST(ModelHostile, OperatorRules) {
  expect_refused(one_node([](Sketch& s, uint32_t x, uint32_t y) {
                   s.node(op::Op::Relu, op::CreateRelu(s.fbb).Union(), {x, x}, {y}, {}, "Relu");
                 }),
                 "node 0 'hostile' (Relu): 2 inputs, expected 1");
  expect_refused(one_node([](Sketch& s, uint32_t x, uint32_t y) {
                   const auto z = s.value({{4, -1}});
                   s.node(op::Op::Relu, op::CreateRelu(s.fbb).Union(), {x}, {y, z});
                 }),
                 "outputs");
  expect_refused(one_node([](Sketch& s, uint32_t, uint32_t y) {
                   s.node(op::Op::Relu, op::CreateRelu(s.fbb).Union(), {kNoValue}, {y});
                 }),
                 "absent");
  expect_refused(one_node([](Sketch& s, uint32_t x, uint32_t y) {
                   s.node(op::Op::ReduceSum, op::CreateReduceSum(s.fbb).Union(), {x}, {y});
                 }),
                 "its operator gives f32[1]");
  expect_refused(one_node([](Sketch& s, uint32_t x, uint32_t y) {
                   s.node(op::Op::Silu, op::CreateSilu(s.fbb).Union(), {x}, {y});
                 }),
                 "body");
}

TEST(ModelHostile, Bodies) {
  expect_refused(drawn([](Sketch& s) {
                   const auto x = s.value({{5, -1}}, kInput), y = s.value({{5, -1}});
                   s.node(op::Op::NONE, 0, {x}, {y}, {nested(s, 0)});
                   return s.graph({x}, {y});
                 }),
                 "body");
  expect_refused(one_node([](Sketch& s, uint32_t x, uint32_t y) {
                   s.node(op::Op::NONE, 0, {x, x}, {y}, {nested(s, 0)});
                 }),
                 "body");
}

}  // namespace
}  // namespace librt
