// Writes docs/operators.md, or checks that it matches what this build would write: operator x backend x
// element type x {forward, backward}, determined by preparing every operator case on every backend.
//
//   operators --write FILE | --check FILE
//
// A type is in a cell when all cases of the operator, with their first operand's type replaced by it, are
// prepared on the backend without falling back to another one for a node; in parentheses when only some are.
// The conformance harness checks values.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "rt/rt.h"
#include "runtime/model/reader.h"
#include "runtime/session/prepare/legalize.h"
#include "runtime/session/prepare/partition.h"
#include "runtime/session/prepare/shapes.h"
#include "runtime/session/session.h"
#include "tests/cases/case.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/autodiff.h"
#include "tools/compiler/writer.h"

namespace librt::test {
namespace {

/// The emulated device has the same kernel table as the real one.
struct Column {
  const char* name;
  const char* backend;
};
constexpr Column kColumns[] = {{"cpu", "cpu"}, {"cuda", "cuda_emu"}, {"vulkan", "vulkan"}};
constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64,
                            DType::I32, DType::U32, DType::U64,  DType::I16, DType::U16,
                            DType::I8,  DType::U8,  DType::Bool};

/// The number of an operator's variants in one type, and how many of them run on the backend.
struct Count {
  int all = 0;
  int native = 0;
};
using Row = std::map<std::string, std::map<DType, Count>>;  ///< by "cpu forward" etc.

/// The case with the type of its first operand replaced, in every operand that shares it; nullopt if the
/// first operand is a shape.
std::optional<Case> with_type(const Case& original, DType dtype) {
  const uint32_t shape_operands = ops::page_of(original.op.type)->shape_operands;
  Case c{original.name,    original.op,       original.inputs,
         original.outputs, original.gradient, original.tolerance};
  std::optional<DType> first;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!c.inputs[i] || (i < 32 && ((shape_operands >> i) & 1u) != 0)) continue;
    if (!first) first = c.inputs[i]->info.dtype;
    if (c.inputs[i]->info.dtype == *first) c.inputs[i]->info.dtype = dtype;
  }
  if (!first) return dtype == DType::I64 ? std::optional<Case>(std::move(c)) : std::nullopt;
  return c;
}

struct Operands {
  std::vector<ValueId> ids;
  std::vector<ValueId> differentiable;
};

Operands add_operands(const Case& c, compiler::Builder& builder) {
  const auto values = case_values(c);
  Operands operands;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) {
      operands.ids.push_back(kNoValue);
      continue;
    }
    const ops::HostTensor& value = *values[i];
    if (c.inputs[i]->constant) {
      operands.ids.push_back(
          builder.constant(value.info, Blob::copy_of(value.bytes.data(), value.bytes.size())));
      continue;
    }
    std::vector<Dim> dims;
    for (const int64_t extent : value.info.shape) dims.push_back({.extent = extent});
    operands.ids.push_back(builder.input(text("x", i), value.info.dtype, dims));
    if (is_float(value.info.dtype)) operands.differentiable.push_back(operands.ids.back());
  }
  return operands;
}

ModelGraph empty_model() {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  return model;
}

using ModelPtr = std::shared_ptr<const ModelGraph>;

/// Written and read, like a user's file.
Result<ModelPtr> finished(ModelGraph& model) {
  RT_TRY(compiler::expand_composites(model.entries[0].graph, model.states));
  RT_ASSIGN(const std::vector<std::byte> bytes, compiler::serialize_model(model));
  RT_ASSIGN(ModelGraph read, read_model(Blob::copy_of(bytes.data(), bytes.size())));
  return std::make_shared<const ModelGraph>(std::move(read));
}

/// A model of a single node.
Result<ModelPtr> forward_model(const Case& c) {
  ModelGraph model = empty_model();
  compiler::Builder builder(model.entries[0].graph);
  const Operands operands = add_operands(c, builder);
  for (const ValueId output : builder.emit_many(c.op, operands.ids, c.outputs)) {
    if (!builder.status().ok()) break;
    builder.output(output);
  }
  RT_TRY(Status(builder.status()));
  return finished(model);
}

/// A model of the gradients of the sum of the node's first output.
Result<ModelPtr> backward_model(const Case& c) {
  ModelGraph model = empty_model();
  Graph& graph = model.entries[0].graph;
  compiler::Builder builder(graph);
  const Operands operands = add_operands(c, builder);
  if (operands.differentiable.empty()) return unsupported("no float operand");
  const ops::CompilerPage* page = ops::compiler_page_of(c.op.type);
  Node node{.op = c.op, .name = c.name, .inputs = operands.ids};
  const std::vector<ValueId> outputs = page->gradient == nullptr && page->body != nullptr
                                           ? page->body(builder, node, operands.ids)
                                           : builder.emit_many(c.op, operands.ids, c.outputs);
  RT_TRY(Status(builder.status()));
  if (!is_float(builder.value(outputs[0]).dtype)) return unsupported("no float result");
  const ValueId loss = builder.emit(
      [] {
        op::ReduceSumAttributes all;
        all.keep_dims = false;
        return all;
      }(),
      {outputs[0]});
  RT_ASSIGN(const auto gradients, compiler::differentiate(builder, loss, operands.differentiable));
  std::set<ValueId> distinct(gradients.begin(), gradients.end());  // operands may share a gradient
  distinct.erase(kNoValue);
  for (const ValueId gradient : distinct) builder.output(gradient);
  RT_TRY(Status(builder.status()));
  if (graph.outputs.empty()) return Status(Code::NotFound, "the gradient is zero");
  return finished(model);
}

/// The devices of a backend, shared by all sessions: opening them takes longer than the checks.
const Result<std::shared_ptr<DeviceSet>>& devices_of(const char* backend) {
  static std::map<std::string, Result<std::shared_ptr<DeviceSet>>> open;
  const auto found = open.find(backend);
  return found != open.end() ? found->second
                             : open.emplace(backend, DeviceSet::open(backend, {})).first->second;
}

bool needs_session(const Graph& graph) {
  const auto by_value = shape_inputs(graph);
  return needs_partition(graph) || std::find(by_value.begin(), by_value.end(), 1) != by_value.end();
}

/// How many nodes leave the backend. A graph whose shapes depend on data is planned by a session; any other
/// one by the pass that chooses the kernels alone, since their compilation for a GPU takes most of a
/// session's time.
Result<size_t> fallbacks_of(const ModelPtr& model, const std::shared_ptr<DeviceSet>& devices) {
  const Graph& graph = model->entries[0].graph;
  if (needs_session(graph)) {
    RT_ASSIGN(const std::unique_ptr<Session> session, Session::create_on(devices, model, {}));
    const auto plans = session->plans();
    return std::accumulate(plans.begin(), plans.end(), size_t{0},
                           [](size_t sum, const Plan* plan) { return sum + plan->program().fallbacks; });
  }
  const std::vector<TensorInfo> inputs = assumed_inputs(graph);
  const std::vector<const std::byte*> values(inputs.size());
  FoldedConstants folded;
  ConvertedConstants converted;
  KernelTuner kernel_tuner{TuningOptions{}};
  RT_ASSIGN(const std::unique_ptr<Program> program, legalize({.graph = graph,
                                                              .states = model->states,
                                                              .devices = *devices,
                                                              .inputs = inputs,
                                                              .values = values,
                                                              .folded = folded,
                                                              .converted = converted,
                                                              .kernel_tuner = kernel_tuner}));
  return program->fallbacks;
}

/// Whether all nodes stay on the backend; false if they cannot be prepared.
bool stays(const ModelPtr& model, const char* backend) {
  const auto& devices = devices_of(backend);
  if (!devices.ok()) return false;
  const Result<size_t> fallbacks = fallbacks_of(model, *devices);
  return fallbacks.ok() && *fallbacks == 0;
}

void count(Row& row, const std::string& direction, DType dtype, const Result<ModelPtr>& model) {
  if (!model.ok()) return;
  for (const Column& column : kColumns) {
    Count& cell = row[text(column.name, " ", direction)][dtype];
    ++cell.all;
    if (stays(*model, column.backend)) ++cell.native;
  }
}

std::string cell_of(const std::map<DType, Count>& types) {
  std::string cell;
  for (const DType dtype : kTypes) {
    const auto found = types.find(dtype);
    if (found == types.end() || found->second.native == 0) continue;
    const bool all = found->second.native == found->second.all;
    cell += text(cell.empty() ? "" : " ", all ? "" : "(", name_of(dtype), all ? "" : ")");
  }
  return cell.empty() ? "-" : cell;
}

std::string backward_note(OpKind kind) {
  const ops::CompilerPage* page = ops::compiler_page_of(kind);
  return page->no_gradient != nullptr ? text("none: ", page->no_gradient) : "";
}

constexpr const char* kIntroduction = R"(# Operators

What runs where. Written by `build/bin/operators --write docs/operators.md`; a test fails when it is stale.

An element type stands in a cell when the backend runs the operator itself, or its body, in all forms that the
operator's test cases have; in parentheses: in some of them, the others run on the CPU with copies. `-`: it does not.
The type is that of the first operand. Backward: the gradients of a float result with respect to all float operands.
Cases: how many forms are tested against the reference on every backend. CUDA's columns come from the emulated device.

)";

std::string header() {
  std::string names = "| operator |", line = "|---|";
  for (const Column& column : kColumns) {
    names += text(" ", column.name, " forward | ", column.name, " backward |");
    line += "---|---|";
  }
  return text(kIntroduction, names, " cases |\n", line, "---|\n");
}

std::string table() {
  std::map<OpKind, std::vector<const Case*>> cases;
  for (const Case& c : all_cases()) cases[c.op.type].push_back(&c);
  std::string result = header();
  std::map<std::string, OpKind> sorted;
  for (int i = 1; i < kOpCount; ++i)
    sorted[std::string(name_of(static_cast<OpKind>(i)))] = static_cast<OpKind>(i);
  for (const auto& [name, kind] : sorted) {
    Row row;
    std::string note = backward_note(kind);
    for (const Case* c : cases[kind]) {
      for (const DType dtype : kTypes)
        if (const auto typed = with_type(*c, dtype)) count(row, "forward", dtype, forward_model(*typed));
      if (!note.empty() || !c->inputs[0] || c->inputs[0]->info.dtype != DType::F32) continue;
      const auto backward = backward_model(*c);
      if (backward.status().code() == Code::NotFound) note = "zero";
      count(row, "backward", DType::F32, backward);
    }
    result += text("| `", name, "` |");
    for (const Column& column : kColumns) {
      std::string backward;
      if (note.empty())
        backward = cell_of(row[text(column.name, " backward")]);
      else if (&column == kColumns)
        backward = note;
      result += text(" ", cell_of(row[text(column.name, " forward")]), " | ", backward, " |");
    }
    result += text(" ", cases[kind].size(), " |\n");
  }
  return result;
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The first line that differs.
int check(const char* path, const std::string& now) {
  const std::string then = read_file(path);
  if (then == now) {
    std::printf("%s is up to date\n", path);
    return 0;
  }
  const auto [a, b] = std::mismatch(now.begin(), now.end(), then.begin(), then.end());
  const size_t at = static_cast<size_t>(a - now.begin());
  const size_t start = at == 0 ? 0 : now.rfind('\n', at - 1) + 1;
  std::printf(
      "%s is stale; write it again with --write\n  now:  %s\n  file: %s\n", path,
      now.substr(start, now.find('\n', at) - start).c_str(),
      then.substr(std::min(start, then.size()), then.find('\n', std::min(at, then.size())) - start).c_str());
  return 1;
}

/// A backend without a device would give an empty column.
bool all_devices() {
  for (const auto& [name, backend] : kColumns) {
    rt_device_list* list = nullptr;
    rt_status_free(rt_devices_list(&list));
    bool found = false;
    for (size_t i = 0; list != nullptr && i < rt_device_list_count(list); ++i) {
      rt_device_info info = RT_DEVICE_INFO_INIT;
      rt_status_free(rt_device_list_get(list, i, &info));
      found = found || std::string(info.backend) == backend;
    }
    rt_device_list_free(list);
    if (found) continue;
    std::printf("SKIPPED: no device of the backend %s\n", backend);
    return false;
  }
  return true;
}

}  // namespace
}  // namespace librt::test

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "--write" && mode != "--check") {
    std::fputs("usage: operators --write FILE | --check FILE\n", stderr);
    return 2;
  }
  if (!librt::test::all_devices()) return 77;
  const std::string table = librt::test::table();
  if (mode == "--check") return librt::test::check(argv[2], table);
  std::ofstream file(argv[2], std::ios::binary);
  file << table;
  file.close();
  return file.good() ? 0 : 3;
}
