// Writes the seeds of fuzz_session into a folder: a model for each operator case, a second one with a dynamic
// dimension, which the reference runs, and models with a Loop, an If and an operator of the application.
// Fails if an operator has none.
//
//   make_session_seeds FOLDER
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "runtime/geometry/custom.h"
#include "tests/support/case_model.h"
#include "tools/compiler/writer.h"

namespace librt::test {
namespace {

constexpr size_t kMostBytes = 32 << 10;  // larger models take long
constexpr char kOnReference = 1;         // the first choice of fuzz_session, a byte after the model

/// The node of `kind` with one body, or two equal ones: x, negated.
Result<ModelGraph> control_model(OpKind kind) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  Graph body;
  compiler::Builder inner(body);
  Node node;
  node.name = "control";
  compiler::Builder build(model.entries.back().graph);
  const ValueId x = build.input("x", DType::F32, {{.symbol = build.graph().symbol("n")}, {.extent = 3}});
  if (kind == OpKind::Loop) {
    const ValueId trips = build.input("trips", DType::I64, {});
    op::LoopAttributes attributes;
    attributes.carried = 1;
    node.op = make_op(attributes);
    node.inputs = {trips, kNoValue, x};
    inner.input("iteration", DType::I64, {});
    const ValueId condition = inner.input("condition", DType::Bool, {});
    inner.output(inner.emit(op::IdentityAttributes{}, {condition}));
  } else {
    node.op = make_op(op::IfAttributes{});
    node.inputs = {build.input("condition", DType::Bool, {}), x};
  }
  const ValueId captured = inner.input("x", DType::F32, {{.symbol = body.symbol("n")}, {.extent = 3}});
  inner.output(inner.neg(captured));
  if (kind == OpKind::Loop) inner.output(inner.emit(op::ReluAttributes{}, {captured}));
  RT_TRY(Status(inner.status()));
  node.bodies.assign(kind == OpKind::Loop ? 1 : 2, body);
  for (const ValueId result : build.emit_node(std::move(node))) build.output(result);
  RT_TRY(Status(build.status()));
  return model;
}

/// An operator of the application with attributes of each type.
Result<ModelGraph> custom_model() {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  compiler::Builder build(model.entries.back().graph);
  const ValueId x = build.input("x", DType::F32, {{.symbol = build.graph().symbol("n")}, {.extent = 3}});
  op::CustomAttributes attributes;
  attributes.domain = "com.example";
  attributes.name = "Scale";
  attributes.outputs = {static_cast<int64_t>(DType::F32), 2, custom_extent_of(0, 0), custom_extent_of(0, 1)};
  attributes.attributes = "axis:i1 weights:f2 mode:s4";
  attributes.ints = {-1};
  attributes.floats = {0.5f, 2.5f};
  attributes.text = "fast";
  build.output(build.emit(std::move(attributes), {x}));
  RT_TRY(Status(build.status()));
  return model;
}

Status write_seeds(const std::string& folder) {
  std::set<OpKind> missing;
  for (int kind = 1; kind < kOpCount; ++kind) missing.insert(static_cast<OpKind>(kind));
  for (const Case& c : all_cases())
    for (const bool symbolic : {false, true}) {
      const auto made = case_model(c, case_values(c), symbolic);
      if (!made.ok() && symbolic) continue;  // the operator ties this axis to an attribute or a constant
      RT_TRY(Status(made.status()));
      RT_ASSIGN(const auto bytes, compiler::serialize_model(made->model));
      if (bytes.size() > kMostBytes) continue;
      const std::string path = folder + "/" + c.name + (symbolic ? ".dynamic.rt" : ".rt");
      RT_TRY(compiler::write_model(made->model, path));
      if (symbolic) std::ofstream(path, std::ios::binary | std::ios::app).put(kOnReference);
      missing.erase(c.op.type);
    }
  for (const OpKind kind : {OpKind::If, OpKind::Loop, OpKind::Custom}) {
    RT_ASSIGN(const ModelGraph model, kind == OpKind::Custom ? custom_model() : control_model(kind));
    RT_TRY(compiler::write_model(model, folder + "/" + std::string(name_of(kind)) + ".rt"));
    missing.erase(kind);
  }
  if (!missing.empty())
    return invalid_argument("no case of ", name_of(*missing.begin()), "; add one to tests/cases");
  return {};
}

}  // namespace
}  // namespace librt::test

int main(int count, char** arguments) {
  const librt::Status status = count == 2 ? librt::test::write_seeds(arguments[1])
                                          : librt::invalid_argument("usage: make_session_seeds FOLDER");
  if (!status.ok()) std::fprintf(stderr, "make_session_seeds: %s\n", status.message().c_str());
  return status.ok() ? 0 : 2;
}
