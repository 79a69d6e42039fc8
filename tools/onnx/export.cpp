#include "tools/onnx/export.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "runtime/core/convert_floats.h"
#include "tools/compiler/quantize/quantize_aware.h"
#include "tools/data/file.h"
#include "tools/data/safetensors.h"
#include "tools/onnx/code_constants.h"
#include "tools/onnx/import.h"
#include "tools/onnx/model_file.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/retie.h"
#include "tools/onnx/tensor_proto.h"
#include "tools/onnx/untie.h"
#include "tools/onnx/weights_file.h"

namespace librt::onnx {
namespace {

template <class T>
void set_elements(rt_onnx::TensorProto& tensor, const std::vector<T>& elements) {
  tools::clear_elements(tensor);
  tensor.set_raw_data(elements.data(), elements.size() * sizeof(T));
}

/// The state's elements in the type and order of the file. origin: index there by element of the state.
Blob moved_back(const State& state, DType type, const std::vector<uint32_t>& origin) {
  const size_t size = size_of(type);
  std::vector<std::byte> trained(origin.size() * size), elements(origin.size() * size);
  convert_floats(state.initial.data, state.info.dtype, trained.data(), type, state.info.elements());
  for (size_t i = 0; i < origin.size(); ++i)
    std::memcpy(elements.data() + origin[i] * size, trained.data() + i * size, size);
  return Blob::own(std::move(elements));
}

/// The type of an exportable weight: f32, f16 or bf16.
std::optional<DType> float_type(DType type) {
  switch (type) {
    case DType::F32: return DType::F32;
    case DType::F16: return DType::F16;
    case DType::BF16: return DType::BF16;
    default: return {};
  }
}

/// By name; a weight may be there in several layouts.
using Constants = std::multimap<std::string_view, const Value*>;

/// Those of bodies come before those of the graph that holds them.
void add_constants(const Graph& graph, Constants& constants) {
  for (const Node& node : graph.nodes)
    for (const Graph& body : node.bodies) add_constants(body, constants);
  for (const Value& value : graph.values)
    if (value.role == Role::Constant) constants.emplace(value.name, &value);
}

class Exporter {
 public:
  Exporter(std::string folder, const std::vector<State>& states) : folder_(std::move(folder)) {
    for (const State& state : states) {
      if (state.kind != StateKind::Parameter && state.kind != StateKind::Statistic) continue;
      if (compiler::is_range(state))
        ++ranges_;
      else
        states_.push_back(&state);
    }
  }

  /// Whether the file has a weight for each state.
  bool finds_all(rt_onnx::ModelProto& model) const {
    const Weights weights = weights_of(model);
    return std::all_of(states_.begin(), states_.end(),
                       [&](const State* state) { return weights.contains(state->name); });
  }

  /// pending: of the weights, whose elements read the states.
  Status run(rt_onnx::ModelProto& model, std::vector<PendingElements>& pending) {
    const Weights weights = weights_of(model);
    std::string problems;
    for (const State* state : states_) {
      const auto found = weights.find(state->name);
      if (const std::string problem = set_problem(*state, found == weights.end() ? nullptr : found->second);
          !problem.empty())
        append(problems, text("\n  '", state->name, "': ", problem));
    }
    if (!problems.empty())
      return invalid_argument("the checkpoint does not belong to this ONNX file", problems,
                              "\n  give the file that the trained model was converted from");
    RT_TRY(find_origins(model));
    for (const State* state : states_) {
      rt_onnx::TensorProto* const tensor = weights.at(state->name);
      tools::clear_elements(*tensor);
      const DType type = types_[state->name];
      const auto elements = [state, type, origin = std::move(origins_[state->name])]() -> Result<Blob> {
        return moved_back(*state, type, origin);
      };
      pending.push_back({tensor, static_cast<size_t>(state->info.elements()) * size_of(type), elements});
    }
    return {};
  }

  ExportedWeights exported() const { return {.count = states_.size(), .ranges = ranges_ / 2, .file = {}}; }

 private:
  std::string set_problem(const State& state, const rt_onnx::TensorProto* tensor) {
    if (tensor == nullptr) return "there is no initializer of this name";
    std::string error;
    const auto outline = tools::outline_of(*tensor, error);
    if (!outline) return error;
    const std::optional<DType> type = float_type(outline->type);
    if (!type || outline->narrow != nullptr || !is_exchangeable(state.info.dtype))
      return text("expected f32, f16 or bf16, found ", name_of(outline->type));
    const size_t elements = outline->bytes / size_of(*type);
    if (elements != static_cast<size_t>(state.info.elements()))
      return text("the checkpoint has ", state.info, ", the file ", elements, " elements");
    if (state.initial.size != state.info.bytes()) return "the checkpoint holds no values for it";
    types_[state.name] = *type;
    return {};
  }

  // The importer permutes elements (convolution weights become channels-last). Importing the model with every
  // weight's elements replaced by their indices gives the permutation. 16-bit types take two imports, one for
  // each half of the index.
  Status find_origins(const rt_onnx::ModelProto& model) {
    RT_TRY(import_numbered(model, 0));
    const auto is_narrow = [](const auto& pair) { return pair.second != DType::F32; };
    if (std::any_of(types_.begin(), types_.end(), is_narrow)) RT_TRY(import_numbered(model, 16));
    for (const auto& [name, origin] : origins_) {
      std::vector<bool> seen(origin.size());
      for (uint32_t from : origin) {
        if (from >= seen.size() || seen[from])
          return unsupported("weight '", name, "': the import computes with it, which cannot be undone");
        seen[from] = true;
      }
    }
    return {};
  }

  /// Fills origins_; for 16-bit types, with 16 bits of the index from `shift` on.
  Status import_numbered(const rt_onnx::ModelProto& model, int shift) {
    rt_onnx::ModelProto numbered = model;
    const Weights places = weights_of(numbered);
    for (const State* state : states_) {
      const auto count = static_cast<uint32_t>(state->info.elements());
      std::vector<uint32_t> numbers(count);
      std::iota(numbers.begin(), numbers.end(), 0u);
      if (types_[state->name] == DType::F32) {
        set_elements(*places.at(state->name), numbers);
        continue;
      }
      std::vector<uint16_t> halves;
      for (const uint32_t number : numbers) halves.push_back(static_cast<uint16_t>(number >> shift));
      set_elements(*places.at(state->name), halves);
    }
    ImportReport report;
    ImportOptions options;
    options.external_folder = folder_;
    RT_ASSIGN(const ModelGraph imported, import_onnx_proto(numbered, options, report));
    Constants constants;
    add_constants(*imported.entry("infer"), constants);
    for (const State* state : states_) {
      const DType type = types_[state->name];
      const TensorInfo expected{.dtype = type, .shape = state->info.shape};
      // Of several matching ones, the last is the trained one.
      const auto [first, last] = constants.equal_range(state->name);
      auto found = constants.end();
      for (auto each = first; each != last; ++each)
        if (found == constants.end() || each->second->info() == expected) found = each;
      if (found == constants.end() || found->second->info() != expected)
        return invalid_argument("weight '", state->name, "': expected ", expected,
                                " after the import, found ",
                                found == constants.end() ? "none" : text(found->second->info()),
                                "; give the file that the trained model was converted from");
      std::vector<uint32_t>& origin = origins_[state->name];
      origin.resize(static_cast<size_t>(expected.shape.elements()));
      const std::byte* numbers = found->second->data.data;
      if (type == DType::F32) {
        std::memcpy(origin.data(), numbers, expected.bytes());
        continue;
      }
      for (size_t i = 0; i < origin.size(); ++i) {
        uint16_t bits = 0;
        std::memcpy(&bits, numbers + i * sizeof(bits), sizeof(bits));
        origin[i] |= static_cast<uint32_t>(bits) << shift;
      }
    }
    return {};
  }

  std::string folder_;
  std::vector<const State*> states_;
  size_t ranges_ = 0;                                     ///< states: two for each tensor
  std::map<std::string, DType> types_;                    ///< of the file's weights
  std::map<std::string, std::vector<uint32_t>> origins_;  ///< index in the file by element of the state
};

}  // namespace

namespace {

/// The file with the states' values, which are pending, and how many those are. transposed: as of Untied.
Result<ExportedWeights> put_weights(const std::string& source, const std::string& folder,
                                    const std::vector<State>& states, const std::vector<std::string>& tie,
                                    rt_onnx::ModelProto& model, std::vector<PendingElements>& pending,
                                    std::set<std::string>& transposed) {
  RT_ASSIGN(const tools::Bytes bytes, tools::read_file(source, INT_MAX));  // Protocol Buffers hold 2 GiB
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return invalid_model(
        source,
        ": the file is not an ONNX model, is cut short, or has graphs within graphs more than 30 deep");
  if (states.empty()) return ExportedWeights{};
  std::set<std::string> names;
  for (const State& state : states) names.insert(state.name);
  retie(model, folder, names);
  Exporter exporter(folder, states);
  if (!exporter.finds_all(model))
    transposed = untie(model, {.tie = tie, .external_folder = folder}).transposed;
  RT_TRY(exporter.run(model, pending).in(source));
  return exporter.exported();
}

}  // namespace

Result<ExportedWeights> export_weights(const std::string& source, const std::vector<State>& states,
                                       const std::string& target, const std::vector<std::string>& tie,
                                       bool external) {
  rt_onnx::ModelProto model;
  std::vector<PendingElements> pending;
  std::set<std::string> turned;
  const std::string folder = folder_of(source);
  RT_ASSIGN(ExportedWeights exported, put_weights(source, folder, states, tie, model, pending, turned));
  RT_ASSIGN(exported.file, write_model_file(model, std::move(pending), target,
                                            {.external = external, .source_folder = folder}));
  return exported;
}

Result<ExportedWeights> export_safetensors(const std::string& source, const std::vector<State>& states,
                                           const std::string& target, const std::vector<std::string>& tie) {
  rt_onnx::ModelProto model;
  std::vector<PendingElements> pending;
  std::set<std::string> turned;
  const std::string folder = folder_of(source);
  RT_ASSIGN(ExportedWeights exported, put_weights(source, folder, states, tie, model, pending, turned));
  RT_TRY(fill_elements(pending));
  retie(model, folder);
  turned.merge(untie(model, {.tie = tie, .external_folder = folder}).transposed);
  const std::set<std::string> constants = unnamed_constants(model, folder);
  tools::Safetensors content;
  content.metadata.emplace_back("format", "pt");  // what readers of PyTorch's weights ask for
  for (const auto& [name, tensor] : weights_of(model)) {
    const auto type = tools::element_type_of_onnx(tensor->data_type());
    if (!type || !is_float(*type) || tensor->dims_size() == 0 || constants.contains(name)) continue;
    RT_ASSIGN(tools::Array array, weight_array(name, *tensor, folder));
    content.arrays.push_back(turned.contains(name) ? transposed(array) : std::move(array));
  }
  RT_TRY(tools::write_safetensors(target, content));
  exported.count = content.arrays.size();
  return exported;
}

}  // namespace librt::onnx
