#include "tools/onnx/node.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/element.h"
#include "tools/onnx/attribute.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {

NodeContext::NodeContext(compiler::Builder& builder, ImportNotes notes, const rt_onnx::NodeProto& proto,
                         int64_t opset_version, std::vector<ValueId> node_inputs)
    : emit(builder),
      node(proto),
      options(notes.options),
      opset(opset_version),
      inputs(std::move(node_inputs)),
      notes_(notes) {}

int NodeContext::narrow_type(size_t i) const {
  const auto found = notes_.narrow.find(input(i));
  return found == notes_.narrow.end() ? 0 : found->second;
}

StringList NodeContext::strings(size_t i) {
  strings_read_.insert(i);
  const auto found = notes_.strings.find(input(i));
  return found == notes_.strings.end() ? nullptr : found->second;
}

ValueId NodeContext::positions_of(ValueId id) {
  ValueId& positions = notes_.positions.try_emplace(id, kNoValue).first->second;
  if (positions == kNoValue) positions = emit.emit(op::NonZeroAttributes{}, {id});
  return positions;
}

void NodeContext::detach_result() {
  notes_.detached.insert(node.output(0));
}

size_t NodeContext::output_count() const {
  return static_cast<size_t>(node.output_size());
}

bool NodeContext::wants(size_t i) const {
  return i < output_count() && !node.output(static_cast<int>(i)).empty();
}

const rt_onnx::AttributeProto* NodeContext::attribute(std::string_view name) {
  read_.emplace(name);
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

const rt_onnx::AttributeProto* NodeContext::typed(std::string_view name, int type) {
  const auto* found = attribute(name);
  // Files of IR version 1 do not store the type.
  if (found != nullptr && found->type() != 0 && found->type() != type) mistyped_.emplace_back(name);
  return found;
}

int64_t NodeContext::integer(std::string_view name, int64_t otherwise) {
  const auto* found = typed(name, kInt);
  return found != nullptr ? found->i() : otherwise;
}

float NodeContext::real(std::string_view name, float otherwise) {
  const auto* found = typed(name, kFloat);
  return found != nullptr ? found->f() : otherwise;
}

std::string NodeContext::string(std::string_view name, std::string_view otherwise) {
  const auto* found = typed(name, kString);
  return found != nullptr ? found->s() : std::string(otherwise);
}

std::optional<std::vector<int64_t>> NodeContext::optional_integers(std::string_view name) {
  const auto* found = typed(name, kInts);
  if (found == nullptr) return std::nullopt;
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

std::vector<int64_t> NodeContext::integers(std::string_view name) {
  return optional_integers(name).value_or(std::vector<int64_t>());
}

std::vector<float> NodeContext::reals(std::string_view name) {
  const auto* found = typed(name, kFloats);
  if (found == nullptr) return {};
  return {found->floats().begin(), found->floats().end()};
}

std::vector<std::string> NodeContext::texts(std::string_view name) {
  const auto* found = typed(name, kStrings);
  if (found == nullptr) return {};
  return {found->strings().begin(), found->strings().end()};
}

const rt_onnx::TensorProto* NodeContext::tensor(std::string_view name) {
  const auto* found = typed(name, kTensor);
  return found != nullptr ? &found->t() : nullptr;
}

void NodeContext::ignore(std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) read_.emplace(name);
}

Status NodeContext::check_all_read() const {
  if (!mistyped_.empty()) return invalid_model("attribute ", mistyped_[0], " has the wrong type");
  std::string unread;
  for (const auto& attribute : node.attribute())
    if (!read_.contains(attribute.name())) unread += (unread.empty() ? "" : ", ") + attribute.name();
  if (unread.empty()) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (notes_.strings.contains(inputs[i]) && !strings_read_.contains(i))
        return cannot("input ", i, " holds strings; remove the string operators from the model");
    return {};
  }
  return cannot("attribute ", unread, " is not understood at opset ", opset,
                "; export the model with another opset or without it");
}

Result<std::vector<int64_t>> NodeContext::known_integers(size_t i, std::string_view what) const {
  const auto known = has(i) ? emit.known_value(inputs[i]) : std::nullopt;
  if (!known) return not_known(i, what);
  if (is_float(known->info.dtype))
    return invalid_model(what, " (input ", i, "): expected integers, found ", known->info);
  std::vector<int64_t> numbers(static_cast<size_t>(known->info.elements()));
  for (size_t k = 0; k < numbers.size(); ++k)
    numbers[k] = load_integer(known->data, known->info.dtype, static_cast<int64_t>(k));
  return numbers;
}

Result<std::vector<double>> NodeContext::known_reals(size_t i, std::string_view what) const {
  const auto known = has(i) ? emit.known_value(inputs[i]) : std::nullopt;
  if (!known) return not_known(i, what);
  std::vector<double> numbers(static_cast<size_t>(known->info.elements()));
  for (size_t k = 0; k < numbers.size(); ++k)
    numbers[k] = load_element(known->data, known->info.dtype, static_cast<int64_t>(k));
  return numbers;
}

namespace {

/// What a value is computed from.
struct Sources {
  std::vector<std::string> inputs;  ///< of the model
  bool extents = false;
  bool others = false;
};

Sources sources_of(const Graph& graph, ValueId id, std::span<const std::string> model_inputs) {
  const auto made_by = producers(graph);
  Sources found;
  std::vector<bool> seen(graph.values.size());
  for (std::vector<ValueId> open{id}; !open.empty();) {
    const ValueId at = open.back();
    open.pop_back();
    if (at >= seen.size() || seen[at]) continue;
    seen[at] = true;
    if (graph[at].role == Role::Constant) continue;
    if (graph[at].role == Role::Input &&
        std::find(model_inputs.begin(), model_inputs.end(), graph[at].name) != model_inputs.end())
      found.inputs.push_back(graph[at].name);
    else if (!made_by[at])
      found.others = true;
    else if (const Node& node = graph.nodes[*made_by[at]]; node.kind() == OpKind::Shape)
      found.extents = true;
    else
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  std::sort(found.inputs.begin(), found.inputs.end());
  return found;
}

}  // namespace

Status NodeContext::not_known(size_t i, std::string_view what) const {
  if (!has(i)) return invalid_model(what, " (input ", i, ") is missing");
  const Sources sources = sources_of(emit.graph(), inputs[i], notes_.model_inputs);
  constexpr size_t kShown = 4;
  if (sources.others || sources.inputs.size() > kShown)
    return cannot(what, " (input ", i,
                  ") must be known, but is computed from data; make it a constant in the model");
  if (sources.inputs.empty())
    return cannot(what, " (input ", i,
                  ") must be known, but depends on dynamic dimensions; fix them with --dim");
  std::string names, choices;
  for (const std::string& name : sources.inputs) {
    names += text(names.empty() ? "'" : ", '", name, "'");
    choices += text(choices.empty() ? "" : " and ", "--constant ", name, "=VALUE");
  }
  return cannot(what, " (input ", i, ") must be known, but is computed from the input ", names, "; give ",
                choices, sources.extents ? ", and fix dynamic dimensions with --dim" : "");
}

Result<ValueId> NodeContext::constant_of(const rt_onnx::TensorProto& proto) {
  std::string error;
  const auto outline = tools::outline_of(proto, error);
  if (!outline) return cannot(error, "; store the tensor as one of librt's types");
  if (proto.data_location() != 0)
    return cannot("an attribute's data is stored in another file; make it an initializer");
  if (outline->dims.size() > kMaxRank)
    return cannot("a tensor of rank ", outline->dims.size(), "; at most ", kMaxRank,
                  " dimensions are supported");
  if (!tools::has_elements(proto, *outline, error)) return invalid_model(error);
  std::vector<std::byte> bytes(outline->bytes);
  if (!tools::copy_elements(proto, *outline, bytes, error)) return invalid_model(error);
  const ValueId id = emit.constant({.dtype = outline->type, .shape = Shape(std::span(outline->dims))},
                                   Blob::own(std::move(bytes)));
  if (outline->narrow != nullptr) set_narrow_type(id, outline->narrow->onnx);
  return id;
}

Status NodeContext::expect_inputs(size_t least, size_t most) const {
  if (inputs.size() < least || inputs.size() > most)
    return invalid_model("expected ", least, least == most ? "" : text(" to ", most), " inputs, found ",
                         inputs.size());
  for (size_t i = 0; i < least; ++i)
    if (inputs[i] == kNoValue) return invalid_model("input ", i, " is missing");
  return {};
}

Result<int> NodeContext::axis(int64_t axis, int rank) const {
  const auto normal = normalized_axis(axis, rank);
  if (!normal) return invalid_model("axis ", axis, " is outside the rank ", rank);
  return *normal;
}

// Defined by the files in onnx/ops, listed by the build.
#define RT_IMPORTER(stem) std::span<const ImportRow> rows_##stem();
#include "tools/importers.inc"
#undef RT_IMPORTER

std::span<const ImportRow> import_rows() {
  static const std::vector<ImportRow> rows = [] {
    std::vector<ImportRow> all;
#define RT_IMPORTER(stem) \
  for (const ImportRow& row : rows_##stem()) all.push_back(row);
#include "tools/importers.inc"
#undef RT_IMPORTER
    std::sort(all.begin(), all.end(), [](const ImportRow& a, const ImportRow& b) {
      return std::tie(a.domain, a.op, a.first_opset) < std::tie(b.domain, b.op, b.first_opset);
    });
    return all;
  }();
  return rows;
}

const ImportRow* find_import_row(std::string_view domain, std::string_view op, int64_t opset) {
  const auto rows = import_rows();
  auto row =
      std::lower_bound(rows.begin(), rows.end(), std::tie(domain, op),
                       [](const ImportRow& a, const auto& key) { return std::tie(a.domain, a.op) < key; });
  for (; row != rows.end() && row->domain == domain && row->op == op; ++row)
    if (opset >= row->first_opset && opset <= row->last_opset) return &*row;
  return nullptr;
}

}  // namespace librt::onnx
