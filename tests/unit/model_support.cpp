#include "tests/unit/model_support.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/model/format.h"

namespace librt::testing {
namespace {

bool equal(const Blob& a, const Blob& b) {
  return a.size == b.size && (a.size == 0 || std::memcmp(a.data, b.data, a.size) == 0);
}

bool equal(const Value& a, const Value& b) {
  if (a.quantization.has_value() != b.quantization.has_value()) return false;
  if (a.quantization && (a.quantization->scale != b.quantization->scale ||
                         a.quantization->zero_point != b.quantization->zero_point ||
                         a.quantization->axis != b.quantization->axis))
    return false;
  return a.name == b.name && a.dtype == b.dtype && a.role == b.role && a.dims == b.dims &&
         a.state == b.state && equal(a.data, b.data);
}

bool equal(const Graph& a, const Graph& b);

bool equal(const Node& a, const Node& b) {
  if (!(a.op == b.op) || a.name != b.name || a.inputs != b.inputs || a.outputs != b.outputs ||
      a.unknown_op != b.unknown_op || a.bodies.size() != b.bodies.size())
    return false;
  for (size_t i = 0; i < a.bodies.size(); ++i)
    if (!equal(a.bodies[i], b.bodies[i])) return false;
  return true;
}

bool equal(const Symbol& a, const Symbol& b) {
  return a.name == b.name && a.bound == b.bound;
}
bool equal(const StateUpdate& a, const StateUpdate& b) {
  return a.state == b.state && a.value == b.value;
}
bool equal(const State& a, const State& b) {
  return a.name == b.name && a.info == b.info && a.kind == b.kind && equal(a.initial, b.initial);
}
bool equal(const ModelGraph::Entry& a, const ModelGraph::Entry& b) {
  return a.name == b.name && equal(a.graph, b.graph);
}

template <class Items>
bool all_equal(const Items& a, const Items& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!equal(a[i], b[i])) return false;
  return true;
}
bool equal(const Graph& a, const Graph& b) {
  return a.name == b.name && all_equal(a.symbols, b.symbols) && all_equal(a.values, b.values) &&
         all_equal(a.nodes, b.nodes) && a.inputs == b.inputs && a.outputs == b.outputs &&
         all_equal(a.state_updates, b.state_updates);
}

ValueId intermediate(Graph& graph, std::string name, std::vector<Dim> dims) {
  return graph.add_value({.name = std::move(name), .dims = std::move(dims)});
}

ValueId input(Graph& graph, std::string name, std::vector<Dim> dims) {
  const ValueId id = graph.add_value({.name = std::move(name), .role = Role::Input, .dims = std::move(dims)});
  graph.inputs.push_back(id);
  return id;
}

Graph silu_body(std::vector<Dim> dims) {
  Graph body;
  const int32_t symbol = body.symbol("batch");
  for (Dim& dim : dims)
    if (!dim.is_known()) dim.symbol = symbol;
  const ValueId x = input(body, "x", dims);
  const ValueId s = intermediate(body, "s", dims);
  const ValueId y = intermediate(body, "y", dims);
  body.nodes.push_back({.op = make_op(op::SigmoidAttributes{}), .name = "s", .inputs = {x}, .outputs = {s}});
  body.nodes.push_back({.op = make_op(op::MulAttributes{}), .name = "y", .inputs = {x, s}, .outputs = {y}});
  body.outputs = {y};
  return body;
}

}  // namespace

ModelGraph sample_model() {
  ModelGraph model;
  model.producer = "unit test";
  model.metadata = {{"author", "someone"}, {"empty", ""}};
  model.states.push_back({.name = "weight",
                          .info = {DType::F32, {4, 3}},
                          .initial = blob_of_values<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})});
  model.states.push_back({.name = "step", .info = {DType::I32, {}}, .kind = StateKind::Counter});

  Graph infer;
  infer.name = "infer";
  const int32_t batch = infer.symbol("batch");
  infer.symbols[0].bound = 64;
  const Dim n{.symbol = batch};
  const ValueId x = input(infer, "x", {n, {.extent = 4}});
  const ValueId w = infer.add_value(
      {.name = "weight", .role = Role::State, .dims = {{.extent = 4}, {.extent = 3}}, .state = 0});
  const ValueId bias = infer.add_constant("bias", {DType::F32, {3}}, blob_of_values<float>({0.5f, -1, 2}));
  const ValueId h = intermediate(infer, "h", {n, {.extent = 3}});
  const ValueId y = intermediate(infer, "y", {n, {.extent = 3}});
  op::MatMulAttributes matmul;
  matmul.epilogue = std::make_unique<op::EpilogueAttributes>();
  matmul.epilogue->has_bias = true;
  infer.nodes.push_back(
      {.op = make_op(std::move(matmul)), .name = "fc", .inputs = {x, w, bias}, .outputs = {h}});
  Node silu{.op = make_op(op::SiluAttributes{}), .name = "act", .inputs = {h}, .outputs = {y}};
  silu.bodies.push_back(silu_body({{}, {.extent = 3}}));
  infer.nodes.push_back(std::move(silu));
  infer.outputs = {y};
  model.entries.push_back({"infer", std::move(infer)});

  Graph step;
  step.name = "train_step";
  const ValueId p = step.add_value(
      {.name = "weight", .role = Role::State, .dims = {{.extent = 4}, {.extent = 3}}, .state = 0});
  const ValueId count =
      step.add_value({.name = "step", .dtype = DType::I32, .role = Role::State, .state = 1});
  const ValueId grad = input(step, "grad", {{.extent = 4}, {.extent = 3}});
  const ValueId one = step.add_constant("one", {DType::I32, {}}, blob_of_values<int32_t>({1}));
  const ValueId same = step.add_constant("same", {DType::F32, {3}}, blob_of_values<float>({0.5f, -1, 2}));
  const ValueId q =
      step.add_constant("quantized", {DType::I8, {2, 3}}, blob_of_values<int8_t>({1, 2, 3, 4, 5, 6}));
  step[q].quantization = Quantization{.scale = {0.5f, 0.25f}, .zero_point = {0, 3}, .axis = 0};
  step.add_constant("empty", {DType::F32, {0, 5}}, {});
  const ValueId t = intermediate(step, "t", {{.extent = 4}, {.extent = 3}});
  const ValueId p_new = intermediate(step, "weight_new", {{.extent = 4}, {.extent = 3}});
  const ValueId count_new = step.add_value({.name = "step_new", .dtype = DType::I32});
  step.nodes.push_back(
      {.op = make_op(op::MulAttributes{}), .name = "scale", .inputs = {grad, same}, .outputs = {t}});
  step.nodes.push_back(
      {.op = make_op(op::SubAttributes{}), .name = "sgd", .inputs = {p, t}, .outputs = {p_new}});
  step.nodes.push_back(
      {.op = make_op(op::AddAttributes{}), .name = "count", .inputs = {count, one}, .outputs = {count_new}});
  step.outputs = {t};
  step.state_updates = {{p, p_new}, {count, count_new}};
  model.entries.push_back({"train_step", std::move(step)});
  return model;
}

bool equal(const ModelGraph& a, const ModelGraph& b) {
  return a.producer == b.producer && a.metadata == b.metadata && all_equal(a.states, b.states) &&
         all_equal(a.entries, b.entries);
}

void reseal(std::vector<std::byte>& file) {
  FileHeader header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.graph_offset <= file.size() && header.graph_bytes <= file.size() - header.graph_offset)
    header.graph_checksum = checksum(file.data() + header.graph_offset, header.graph_bytes);
  header.header_checksum = checksum(&header, kCheckedHeaderBytes);
  std::memcpy(file.data(), &header, sizeof header);
}

std::vector<std::byte> file_of(const std::function<void(flatbuffers::FlatBufferBuilder&)>& write,
                               const std::vector<std::byte>& data) {
  flatbuffers::FlatBufferBuilder fbb;
  write(fbb);
  FileHeader header{.magic = kModelMagic, .graph_offset = 64, .graph_bytes = fbb.GetSize()};
  header.data_offset = align_up(64 + header.graph_bytes);
  header.file_bytes = header.data_offset + data.size();
  std::vector<std::byte> file(header.file_bytes);
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + 64, fbb.GetBufferPointer(), fbb.GetSize());
  if (!data.empty()) std::memcpy(file.data() + header.data_offset, data.data(), data.size());
  reseal(file);
  return file;
}

std::vector<std::byte> file_of_graph(
    const std::function<flatbuffers::Offset<file::Graph>(flatbuffers::FlatBufferBuilder&)>& graph) {
  return file_of([&](flatbuffers::FlatBufferBuilder& fbb) {
    const auto written = graph(fbb);
    const auto name = fbb.CreateString("infer");
    const auto entry = file::CreateEntry(fbb, name, written);
    const auto entries = fbb.CreateVector(&entry, 1);
    fbb.Finish(file::CreateModel(fbb, 0, entries), file::ModelIdentifier());
  });
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "librt-test-XXXXXX").string();
  folder_ = mkdtemp(pattern.data()) != nullptr ? pattern : ".";
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (folder_ != ".") std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> TemporaryFolder::list() const {
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder_))
    names.push_back(item.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace librt::testing
