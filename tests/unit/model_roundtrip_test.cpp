// Round trip of models: every field, every operator's attributes, from memory, from a file, through a source.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/model/format.h"
#include "runtime/model/reader.h"
#include "runtime/ops/control.h"
#include "tests/unit/model_support.h"
#include "tools/compiler/writer.h"

namespace librt {
namespace {

using compiler::serialize_model;
using compiler::write_model;
using testing::sample_model;

std::vector<std::byte> sample_bytes() {
  return serialize_model(sample_model()).value();
}

TEST(ModelRoundTrip, Memory) {
  const auto read = read_model(testing::blob_of(sample_bytes()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(testing::equal(read.value(), sample_model()));
}

TEST(ModelRoundTrip, SameModelSameBytes) {
  const auto first = sample_bytes();
  EXPECT_EQ(first, sample_bytes());
  const auto read = read_model(testing::blob_of(first));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(serialize_model(read.value()).value(), first);
}

TEST(ModelRoundTrip, File) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("model.rt");
  const Status written = write_model(sample_model(), path);
  ASSERT_TRUE(written.ok()) << written.message();
  EXPECT_EQ(folder.list(), std::vector<std::string>{"model.rt"});
  auto read = load_model(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(testing::equal(read.value(), sample_model()));
  // The mapping lives as long as any weight, beyond the file and the model.
  const Blob weight = read->states[0].initial;
  std::remove(path.c_str());
  read = Status(Code::Internal, "dropped");
  EXPECT_EQ(std::memcmp(weight.data, sample_model().states[0].initial.data, weight.size), 0);
}

TEST(ModelRoundTrip, Source) {
  const auto bytes = sample_bytes();
  uint64_t most = 0;
  const auto read = read_model(Source{bytes.size(), [&](uint64_t offset, size_t size, void* destination) {
                                        most = std::max<uint64_t>(most, offset + size);
                                        std::memcpy(destination, bytes.data() + offset, size);
                                        return Status();
                                      }});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(testing::equal(read.value(), sample_model()));
  EXPECT_LE(most, bytes.size());
}

TEST(ModelRoundTrip, FailingSourceFails) {
  const auto bytes = sample_bytes();
  const auto read_failing_after = [&](int calls) {
    return read_model(Source{bytes.size(), [&, left = calls](uint64_t offset, size_t size, void* to) mutable {
                               if (left-- == 0) return Status(Code::Io, "the cable was pulled");
                               std::memcpy(to, bytes.data() + offset, size);
                               return Status();
                             }});
  };
  int calls = 0;
  for (; !read_failing_after(calls).ok(); ++calls) {
    const Status status = read_failing_after(calls).status();
    EXPECT_EQ(status.code(), Code::Io) << status.message();
    ASSERT_LT(calls, 100);
  }
  EXPECT_GT(calls, 2);
  EXPECT_EQ(read_model(Source{bytes.size(), nullptr}).status().code(), Code::InvalidArgument);
}

TEST(ModelRoundTrip, EqualWeightsAreStoredOnce) {
  const auto read = read_model(testing::blob_of(sample_bytes()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  const auto find = [](const Graph& graph, const char* name) {
    for (const Value& value : graph.values)
      if (value.name == name) return value.data.data;
    return static_cast<const std::byte*>(nullptr);
  };
  const std::byte* bias = find(read->entries[0].graph, "bias");
  EXPECT_NE(bias, nullptr);
  EXPECT_EQ(bias, find(read->entries[1].graph, "same"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bias) % kFileAlignment, 0u);
}

TEST(ModelRoundTrip, EveryOperatorKeepsItsAttributes) {
  ModelGraph model;
  Graph graph;
  graph.name = "infer";
  const Dim n{.symbol = graph.symbol("n")};
  const ValueId x = graph.add_value({.name = "x", .role = Role::Input, .dims = {n}});
  graph.inputs = {x};
  const auto add = [&](OpAttributes op) {
    const ops::Page* page = ops::page_of(op.type);
    ASSERT_NE(page, nullptr);
    Node node{.op = std::move(op), .name = text("n", graph.nodes.size())};
    node.inputs.assign(page->inputs.least, x);
    for (int i = 0; i < page->outputs.least; ++i)
      node.outputs.push_back(graph.add_value({.name = text("v", graph.values.size()), .dims = {n}}));
    if (node.kind() == OpKind::Custom) node.inputs = {x};  // whose results are checked when x is known
    if (page->composite) {
      Graph& body = node.bodies.emplace_back();
      for (size_t i = 0; i < node.inputs.size(); ++i)
        body.inputs.push_back(body.add_value({.name = "x", .role = Role::Input, .dims = {Dim{}}}));
      body.outputs.assign(node.outputs.size(), body.inputs[0]);
    }
    if (ops::is_control(node.kind())) {
      const bool loop = node.kind() == OpKind::Loop;
      Graph body;
      for (const DType dtype : {DType::I64, DType::Bool})
        if (loop) body.inputs.push_back(body.add_value({.dtype = dtype, .role = Role::Input}));
      const bool yes = true;
      const ValueId condition = body.add_constant("", {DType::Bool, {}}, Blob::copy_of(&yes, sizeof yes));
      body.outputs.assign(node.outputs.size() + loop, condition);
      node.bodies.assign(loop ? 1 : 2, body);
      node.inputs.resize(loop ? ops::kLoopHead : 1, kNoValue);
      for (const ValueId output : node.outputs) {
        graph[output].dtype = DType::Bool;
        graph[output].dims.clear();
        if (loop) graph[output].dims.push_back(Dim{});  // one entry for each iteration
      }
    }
    graph.nodes.push_back(std::move(node));
  };
#define RT_OP(Name) add(make_op(op::Name##Attributes{}));
#include "schema/op_list.inc"
#undef RT_OP
  op::ConvAttributes conv;
  conv.strides = {2, 1};
  conv.pads = {1, 2, 3, 4};
  conv.dilations = {1, 3};
  conv.groups = 7;
  conv.epilogue = std::make_unique<op::EpilogueAttributes>();
  conv.epilogue->activation = op::Activation::LeakyRelu;
  conv.epilogue->alpha = 0.125f;
  add(make_op(std::move(conv)));
  op::ResizeAttributes resize;
  resize.mode = op::ResizeMode::Cubic;
  resize.coordinates = op::ResizeCoordinates::HalfPixelSymmetric;
  resize.nearest = op::ResizeNearest::Ceil;
  resize.cubic_a = -0.5f;
  resize.exclude_outside = true;
  add(make_op(std::move(resize)));
  op::ConstantOfShapeAttributes fill;
  fill.dtype = static_cast<uint8_t>(DType::I64);
  fill.value = -3.5;
  add(make_op(std::move(fill)));
  op::ShapeAttributes shape;
  shape.start = -2;
  add(make_op(std::move(shape)));
  graph.outputs = {x};
  model.entries.push_back({"infer", std::move(graph)});

  const auto bytes = serialize_model(model);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto read = read_model(testing::blob_of(bytes.value()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(testing::equal(read.value(), model));
  EXPECT_EQ(read->entries[0].graph.nodes.size(), static_cast<size_t>(kOpCount - 1 + 4));
}

TEST(ModelRoundTrip, UnalignedMemoryIsCopied) {
  const auto bytes = sample_bytes();
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  const auto read = read_model(Blob{.owner = nullptr, .data = shifted.data() + 1, .size = bytes.size()});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(read->states[0].initial.data) % kFileAlignment, 0u);
}

TEST(ModelWriter, RefusesAnInvalidGraph) {
  ModelGraph model = sample_model();
  model.entries[0].graph.nodes[0].inputs[0] = 1000;
  EXPECT_EQ(serialize_model(model).status().code(), Code::InvalidModel);
}

TEST(ModelWriter, FailureLeavesTheOldFile) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("model.rt");
  ASSERT_TRUE(write_model(sample_model(), path).ok());
  ModelGraph broken = sample_model();
  broken.entries[0].graph.outputs = {1000};
  EXPECT_FALSE(write_model(broken, path).ok());
  EXPECT_TRUE(load_model(path).ok());
  EXPECT_EQ(folder.list(), std::vector<std::string>{"model.rt"});
  EXPECT_EQ(write_model(sample_model(), folder.path("missing/model.rt")).code(), Code::Io);
}

/// Exits with 0 if the write fails as it should and leaves no files.
[[noreturn]] void write_with_limit(const ModelGraph& model, const testing::TemporaryFolder& folder) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{4096, 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  const Status status = write_model(model, folder.path("model.rt"));
  const bool clean = folder.list().empty();
  std::filesystem::remove_all(folder.path(""));  // _exit() runs no destructors
  _exit(status.code() == Code::Device && clean ? 0 : 1);
}

TEST(ModelWriter, FullDiskIsAnError) {
  // Simulated by a file size limit, in a separate process that runs this test from the start.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const testing::TemporaryFolder folder;
  ModelGraph model = sample_model();
  std::vector<std::byte> weights(1 << 20);
  model.states[0].info = {DType::U8, {1 << 20}};
  model.states[0].initial = Blob::own(std::move(weights));
  model.entries.clear();
  EXPECT_EXIT(write_with_limit(model, folder), ::testing::ExitedWithCode(0), "");
}

TEST(ModelWriter, DevicesAndLinksStayWhatTheyAre) {
  const testing::TemporaryFolder folder;
  const ModelGraph model = sample_model();
  EXPECT_TRUE(write_model(model, "/dev/null").ok());
  const Status full = write_model(model, "/dev/full");
  EXPECT_EQ(full.code(), Code::Device) << full.message();
  for (const char* device : {"/dev/null", "/dev/full"})
    EXPECT_TRUE(std::filesystem::is_character_file(device));
  const std::filesystem::path target = folder.path("target.rt"), link = folder.path("link.rt");
  std::filesystem::create_symlink(target.filename(), link);  // names no file yet
  ASSERT_TRUE(write_model(model, target.string()).ok());
  std::filesystem::resize_file(target, 10);
  ASSERT_TRUE(write_model(model, link.string()).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(load_model(target.string()).ok());
}

TEST(ModelReader, MissingFile) {
  EXPECT_EQ(load_model("/nonexistent/model.rt").status().code(), Code::NotFound);
  EXPECT_EQ(load_model("/").status().code(), Code::Io);
}

/// A segment beyond 4 GiB, in a sparse file.
TEST(ModelReader, LargeOffsets) {
  constexpr uint64_t kFar = 5ull << 30;
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("large.rt");
  auto bytes = testing::file_of([&](flatbuffers::FlatBufferBuilder& fbb) {
    const auto name = fbb.CreateString("far");
    const std::vector<int64_t> dims = {4};
    const auto dim_list = fbb.CreateVector(dims);
    const auto state = file::CreateState(fbb, name, 0, dim_list, file::StateKind::Parameter, 0);
    const auto states = fbb.CreateVector(&state, 1);
    const float numbers[4] = {1, 2, 3, 4};
    const auto segment = file::CreateSegment(fbb, kFar, sizeof numbers, checksum(numbers, sizeof numbers));
    const auto segments = fbb.CreateVector(&segment, 1);
    const auto entries = fbb.CreateVector(std::vector<flatbuffers::Offset<file::Entry>>());
    fbb.Finish(file::CreateModel(fbb, 0, entries, states, segments), file::ModelIdentifier());
  });
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.file_bytes = header.data_offset + kFar + 16;
  std::memcpy(bytes.data(), &header, sizeof header);
  testing::reseal(bytes);
  {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const float numbers[4] = {1, 2, 3, 4};
    out.seekp(static_cast<std::streamoff>(header.data_offset + kFar));
    out.write(reinterpret_cast<const char*>(numbers), sizeof numbers);
    if (!out.flush()) GTEST_SKIP() << "cannot make a sparse file of 5 GiB in " << path;
  }
  const auto read = load_model(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(reinterpret_cast<const float*>(read->states[0].initial.data)[3], 4);
}

}  // namespace
}  // namespace librt
