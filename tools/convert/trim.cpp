#include "tools/convert/trim.h"

#include <nlohmann/json.hpp>
#include <set>

#include "runtime/core/atomic_file.h"
#include "runtime/core/text.h"
#include "runtime/geometry/elementwise.h"
#include "runtime/geometry/function.h"
#include "runtime/graph/attributes.h"
#include "runtime/model/reader.h"
#include "tools/cli/written_files.h"

namespace librt::convert {
namespace {

struct Needs {
  std::set<OpKind> operators;
  std::set<DType> types;

  void add(OpKind kind) {
    if (kind != OpKind::NONE) operators.insert(kind);
  }
  void add(const Graph& graph);
  void add(const Node& node);
};

void Needs::add(const Graph& graph) {
  for (const Value& value : graph.values) types.insert(value.dtype);
  for (const Node& node : graph.nodes) add(node);
}

void Needs::add(const Node& node) {
  add(node.kind());
  // A kernel has a function in it if the operator of its name is in the build.
  for (const AttributeField& field : fields_of(node.kind())) {
    if (field.type != FieldType::Epilogue) continue;
    const auto& epilogue = field.of<std::unique_ptr<op::EpilogueAttributes>>(node.op.value);
    const FunctionCall activation = function_call(epilogue.get());
    if (activation.function != Function::Identity) add(operator_of(activation).type);
  }
  if (node.kind() == OpKind::Elementwise)
    for (size_t i = 0; i < node.as<op::ElementwiseAttributes>().steps.size(); i += kNumbersPerStep)
      add(static_cast<OpKind>(node.as<op::ElementwiseAttributes>().steps[i]));
  for (const Graph& body : node.bodies) add(body);
}

}  // namespace

Status write_trim(std::span<const std::string> models, const std::string& path, Conversion& made) {
  if (models.empty()) return invalid_argument("--trim: expected compiled models, found none");
  std::vector<tools::NamedFile> read;
  for (const std::string& file : models) read.push_back({"--trim", file});
  const tools::NamedFile written[] = {{"--output", path}};
  if (const std::string conflict = tools::conflict_of(read, written); !conflict.empty())
    return invalid_argument(conflict);
  Needs needs;
  for (const std::string& file : models) {
    RT_ASSIGN(const ModelGraph model, load_model(file));
    for (const ModelGraph::Entry& entry : model.entries) needs.add(entry.graph);
    for (const State& state : model.states) needs.types.insert(state.info.dtype);
  }
  // Sessions compute floats that a device has no kernels for in f32.
  if (needs.types.contains(DType::F16) || needs.types.contains(DType::BF16)) needs.add(OpKind::Cast);
  needs.types.insert(DType::F32);
  nlohmann::ordered_json json = {{"librt_trim", 1}, {"models", models}};
  for (const OpKind kind : needs.operators) json["operators"].push_back(name_of(kind));
  for (const DType dtype : needs.types) json["types"].push_back(name_of(dtype));
  const std::string list = json.dump(2) + "\n";
  AtomicFile file(path);
  RT_TRY(file.open());
  RT_TRY(file.write(list.data(), list.size()));
  RT_TRY(file.commit());
  made.json = json.dump();
  made.text =
      text("file        ", path, ", ", needs.operators.size(), " operators and ", needs.types.size(),
           " types\nbuild       cmake -B build-trim -DRT_TRIM=", path, " -DCMAKE_BUILD_TYPE=MinSizeRel\n");
  return {};
}

}  // namespace librt::convert
