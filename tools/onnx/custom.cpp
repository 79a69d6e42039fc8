// Nodes that the application computes (ImportOptions::custom_domains, custom_outputs): their results as the
// model or the user declares them, their attributes as they are.
#include "tools/onnx/custom.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "runtime/geometry/custom.h"
#include "runtime/model/attributes.h"
#include "tools/onnx/attribute.h"
#include "tools/onnx/importer.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {

namespace {

constexpr std::string_view kExpected = "expected a signature such as [N,C],[C]->f32[N,C], found '";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// -1 for one that is too large.
int64_t number_of(std::string_view digits) {
  int64_t number = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

/// Tensors that commas separate; false after an error.
bool parse_tensors(std::string_view text, bool with_types, std::vector<CustomSignature::Tensor>& all) {
  while (!text.empty()) {
    if (!all.empty()) {
      if (text.front() != ',') return false;
      text.remove_prefix(1);
    }
    const size_t open = text.find('['), close = text.find(']');
    if (close == std::string_view::npos || open > close) return false;
    CustomSignature::Tensor& tensor = all.emplace_back();
    if (open > 0) {
      tensor.type = dtype_from_name(text.substr(0, open));
      if (!with_types || !tensor.type) return false;
    }
    std::string_view dims = text.substr(open + 1, close - open - 1);
    tensor.any_shape = dims == "*";
    while (!dims.empty() && !tensor.any_shape) {
      const size_t end = std::min(dims.find(','), dims.size());
      const std::string_view dim = dims.substr(0, end);
      if (dim.empty() || (is_number(dim) && number_of(dim) < 0) ||
          dim.find_first_of("*[]>") != std::string_view::npos || end + 1 == dims.size())
        return false;
      tensor.dims.emplace_back(dim);
      dims.remove_prefix(std::min(end + 1, dims.size()));
    }
    text.remove_prefix(close + 1);
  }
  return true;
}

/// What a node is, as options name it.
std::string full_name(const rt_onnx::NodeProto& node) {
  return node.domain() + ":" + node.op_type();
}

/// Where the extents of a node's results come from.
class Results {
 public:
  Results(compiler::Builder& builder, std::span<const ValueId> inputs) : builder_(builder), inputs_(inputs) {}

  /// Binds the names of a signature; an error where the inputs are others.
  Status bind(const CustomSignature& signature);
  Status add(const CustomSignature::Tensor& output);
  /// As the model declares it.
  Status add(const rt_onnx::TypeProto& declared, const std::map<std::string, int64_t>& given);
  std::vector<int64_t> take() { return std::move(numbers_); }

 private:
  const std::vector<Dim>& dims(size_t input) const { return builder_.value(inputs_[input]).dims; }
  bool has(size_t input) const { return input < inputs_.size() && inputs_[input] != kNoValue; }
  void add_like(size_t input) {
    for (size_t axis = 0; axis < dims(input).size(); ++axis) add_extent(input, axis);
  }
  void add_extent(size_t input, size_t axis) {
    const int64_t extent = dims(input)[axis].extent;
    numbers_.push_back(extent >= 0 ? extent : custom_extent_of(input, static_cast<int>(axis)));
  }

  struct Place {
    size_t input, axis;
  };
  compiler::Builder& builder_;
  std::span<const ValueId> inputs_;
  std::map<std::string, Place> places_;
  std::optional<size_t> any_shape_;
  std::vector<int64_t> numbers_;
};

Status Results::bind(const CustomSignature& signature) {
  if (inputs_.size() > signature.inputs.size())
    return cannot("expected at most the ", signature.inputs.size(), " inputs of its signature, found ",
                  inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const CustomSignature::Tensor& tensor = signature.inputs[i];
    if (!has(i)) continue;
    if (tensor.any_shape) {
      if (!any_shape_) any_shape_ = i;
      continue;
    }
    if (tensor.dims.size() != dims(i).size())
      return cannot("expected input ", i, " of rank ", tensor.dims.size(), " by its signature, found ",
                    builder_.value(inputs_[i]).info());
    for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
      const std::string& name = tensor.dims[axis];
      int64_t wanted = -1;
      if (is_number(name)) {
        wanted = number_of(name);
      } else if (const auto [at, fresh] = places_.try_emplace(name, Place{i, axis}); !fresh) {
        wanted = dims(at->second.input)[at->second.axis].extent;
      }
      if (const int64_t extent = dims(i)[axis].extent; wanted >= 0 && extent >= 0 && extent != wanted)
        return cannot("expected extent ", wanted, " for ", name, ", axis ", axis, " of input ", i, ", found ",
                      extent);
    }
  }
  return {};
}

Status Results::add(const CustomSignature::Tensor& output) {
  if (!output.type && !has(0)) return cannot("a result without a type needs a first input, which has it");
  numbers_.push_back(
      static_cast<int64_t>(output.type.value_or(has(0) ? builder_.value(inputs_[0]).dtype : DType::F32)));
  if (output.any_shape) {
    if (!any_shape_) return cannot("no input has the shape [*] that a result has");
    numbers_.push_back(static_cast<int64_t>(dims(*any_shape_).size()));
    add_like(*any_shape_);
    return {};
  }
  numbers_.push_back(static_cast<int64_t>(output.dims.size()));
  for (const std::string& name : output.dims) {
    const auto place = places_.find(name);
    if (is_number(name))
      numbers_.push_back(number_of(name));
    else if (place != places_.end())
      add_extent(place->second.input, place->second.axis);
    else
      return cannot("the signature's ", name, " is no extent of an input that the node has");
  }
  return {};
}

Status Results::add(const rt_onnx::TypeProto& declared, const std::map<std::string, int64_t>& given) {
  const auto& tensor = declared.tensor_type();
  const auto type = tools::element_type_of_onnx(tensor.elem_type());
  if (!declared.has_tensor_type() || !type || !tensor.has_shape())
    return cannot("the model declares a result without a type of librt and a shape; give --custom-output");
  numbers_.push_back(static_cast<int64_t>(*type));
  numbers_.push_back(tensor.shape().dim_size());
  for (const auto& dim : tensor.shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() < 0)
      return cannot("the model declares a result with the extent ", dim.dim_value(),
                    "; give --custom-output");
    if (dim.has_dim_value()) {
      numbers_.push_back(dim.dim_value());
      continue;
    }
    if (const auto extent = given.find(dim.dim_param()); extent != given.end()) {
      numbers_.push_back(extent->second);
      continue;
    }
    const size_t before = numbers_.size();
    for (size_t i = 0; i < inputs_.size() && numbers_.size() == before; ++i) {
      if (!has(i)) continue;
      for (size_t axis = 0; axis < dims(i).size() && numbers_.size() == before; ++axis) {
        const int32_t symbol = dims(i)[axis].symbol;
        if (symbol >= 0 && builder_.graph().symbols[static_cast<size_t>(symbol)].name == dim.dim_param())
          add_extent(i, axis);
      }
    }
    if (numbers_.size() == before)
      return cannot("the model declares a result with the extent '", dim.dim_param(),
                    "', which no input of the node has; give --custom-output");
  }
  return {};
}

/// Appends an attribute; false for a type that kernels do not get.
bool add_attribute(const rt_onnx::AttributeProto& from, op::CustomAttributes& to) {
  char type = 'i';
  size_t count = 1;
  switch (from.type()) {
    case kInt: to.ints.push_back(from.i()); break;
    case kInts:
      count = static_cast<size_t>(from.ints_size());
      to.ints.insert(to.ints.end(), from.ints().begin(), from.ints().end());
      break;
    case kFloat:
      type = 'f';
      to.floats.push_back(from.f());
      break;
    case kFloats:
      type = 'f';
      count = static_cast<size_t>(from.floats_size());
      to.floats.insert(to.floats.end(), from.floats().begin(), from.floats().end());
      break;
    case kString:
      type = 's';
      count = from.s().size();
      to.text += from.s();
      break;
    default: return false;
  }
  append(to.attributes, to.attributes.empty() ? "" : " ", from.name(), ":", type, count);
  return true;
}

Status add_attributes(const rt_onnx::NodeProto& node, op::CustomAttributes& to) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name().find_first_of(": ") != std::string::npos || attribute.name().empty())
      return cannot("'", attribute.name(), "' is no name of an attribute");
    if (!add_attribute(attribute, to))
      return cannot("attribute '", attribute.name(),
                    "': a kernel of the application gets integers, floats and a string; pass it as an input");
  }
  const size_t numbers = std::max({to.ints.size(), to.floats.size(), to.outputs.size()});
  const size_t bytes = std::max(to.text.size(), to.attributes.size());
  if (numbers > kMaxAttributeLength || bytes > kMaxAttributeBytes)
    return cannot("its attributes have ", numbers, " numbers or ", bytes, " bytes, at most ",
                  kMaxAttributeLength, " and ", kMaxAttributeBytes, " are kept; pass them as inputs");
  return {};
}

}  // namespace

Result<CustomSignature> parse_custom_signature(std::string_view text) {
  std::string words(text);
  std::erase(words, ' ');
  CustomSignature signature;
  const size_t arrow = words.find("->");
  if (arrow == std::string::npos ||
      !parse_tensors(std::string_view(words).substr(0, arrow), false, signature.inputs) ||
      !parse_tensors(std::string_view(words).substr(arrow + 2), true, signature.outputs) ||
      signature.outputs.empty())
    return invalid_argument(kExpected, text, "'");
  return signature;
}

bool Importer::is_custom(const rt_onnx::NodeProto& node) {
  const std::string name = full_name(node);
  const bool by_domain = std::find(options_.custom_domains.begin(), options_.custom_domains.end(),
                                   node.domain()) != options_.custom_domains.end();
  const bool by_name = options_.custom_outputs.contains(name);
  if (by_domain) custom_seen_.insert(node.domain());
  if (by_name) custom_seen_.insert(name);
  return by_domain || by_name;
}

void Importer::read_custom(const rt_onnx::GraphProto& graph) {
  if (options_.custom_domains.empty() && options_.custom_outputs.empty()) return;
  for (const auto& [name, signature] : options_.custom_outputs)
    if (const auto parsed = parse_custom_signature(signature); !parsed.ok())
      problem(text("--custom-output ", name, ": ", parsed.status().message()));
  for (const auto* list : {&graph.value_info(), &graph.output()})
    for (const auto& value : *list) declared_.emplace(value.name(), &value.type());
}

void Importer::check_custom() {
  for (const std::string& domain : options_.custom_domains)
    if (!custom_seen_.contains(domain))
      problem(text("--custom-domain ", domain, ": the model has no node of this domain"));
  for (const auto& [name, signature] : options_.custom_outputs)
    if (!custom_seen_.contains(name))
      problem(text("--custom-output ", name, ": the model has no such node; expected DOMAIN:OPERATOR"));
}

Status Importer::describe_custom(const rt_onnx::NodeProto& node, const Scope& scope,
                                 std::span<const ValueId> inputs, op::CustomAttributes& attributes) {
  Results results(builder(), inputs);
  const auto given = options_.custom_outputs.find(full_name(node));
  const auto count = static_cast<size_t>(node.output_size());
  if (given != options_.custom_outputs.end()) {
    RT_ASSIGN(const CustomSignature signature, parse_custom_signature(given->second));
    RT_TRY(results.bind(signature));
    if (count > signature.outputs.size())
      return cannot("expected at most the ", signature.outputs.size(), " results of its signature, found ",
                    count);
    for (size_t i = 0; i < count; ++i) RT_TRY(results.add(signature.outputs[i]));
  } else {
    for (const std::string& name : node.output()) {
      // Names in functions and bodies are others than those of the model.
      const auto declared =
          scope.parent == nullptr && scope.attributes == nullptr ? declared_.find(name) : declared_.end();
      if (declared == declared_.end())
        return cannot("the model does not declare type and shape of its result '", name,
                      "' (value_info); give --custom-output '", full_name(node), "=[N,C]->f32[N]'");
      RT_TRY(results.add(*declared->second, options_.dims));
    }
  }
  attributes.domain = node.domain();
  attributes.name = node.op_type();
  attributes.outputs = results.take();
  return add_attributes(node, attributes);
}

void Importer::add_custom(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope) {
  std::vector<ValueId> inputs;
  if (!resolve_inputs(node, name, scope, inputs)) return bind_nothing(node, scope);
  const size_t first_new = builder().graph().values.size();
  op::CustomAttributes attributes;
  Status status = std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) { return is_sequence(id); })
                      ? cannot("it reads a sequence, expected tensors")
                      : describe_custom(node, scope, inputs, attributes);
  std::vector<ValueId> results;
  if (status.ok()) {
    builder().set_scope(name);
    results =
        builder().emit_many(make_op(std::move(attributes)), inputs, static_cast<size_t>(node.output_size()));
    status = builder().take_failure();
  }
  if (status.ok()) return bind_outputs(node, scope, results, first_new);
  report_unsupported(node, name, opset_of(scope), inputs, status.message());
  bind_nothing(node, scope);
}

}  // namespace librt::onnx
