#include "tools/onnx/weight_uses.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "tools/onnx/attribute.h"
#include "tools/onnx/weights_file.h"

namespace librt::onnx {
namespace {

constexpr int kMostBodies = 32;  ///< nested
constexpr size_t kLongestPath = 8;
constexpr const char* kGroupNorm = "aten.group_norm.";

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool is_matmul_or_conv(std::string_view op) {
  return is_one_of(op, {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"});
}

/// The strings of a Python list as it is printed: ['', 'layers.0', "it's"].
std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> entries;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\'' && text[at] != '"') continue;
    const size_t end = text.find(text[at], at + 1);
    if (end == std::string::npos) break;
    entries.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return entries;
}

const std::string* metadata(const rt_onnx::NodeProto& node, std::string_view key) {
  for (const auto& entry : node.metadata_props())
    if (entry.key() == key) return &entry.value();
  return nullptr;
}

/// The argument of the call that the node belongs to: "%p_fc_weight", "None"; empty: there is none.
std::string_view argument_of(const rt_onnx::NodeProto& node, int index) {
  constexpr std::string_view kArguments = "args = (";
  const std::string* call = metadata(node, "pkg.torch.onnx.fx_node");
  size_t at = call == nullptr ? std::string::npos : call->find(kArguments);
  if (at == std::string::npos) return {};
  at += kArguments.size();
  const size_t end = std::min(call->find(')', at), call->size());
  for (int i = 0; i < index; ++i) {
    at = call->find(", ", at);
    if (at >= end) return {};
    at += 2;
  }
  return std::string_view(*call).substr(at, std::min(call->find(',', at), end) - at);
}

/// The module of a node: PyTorch's newer exporter writes metadata, the older one names nodes by the path
/// "/layers.0/linear1/MatMul".
std::optional<std::string> module_of(const rt_onnx::NodeProto& node) {
  if (const std::string* text = metadata(node, "pkg.torch.onnx.name_scopes")) {
    const std::vector<std::string> scopes = listed(*text);
    if (scopes.size() >= 2) return scopes[scopes.size() - 2];
  }
  // "/f/f.0/Gemm" is in "f.0": the children of a Sequential repeat its name.
  std::string_view rest = node.name();
  if (!rest.starts_with('/')) return std::nullopt;
  rest = rest.substr(0, rest.rfind('/'));
  std::string module, last;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string part(rest.substr(0, rest.find('/')));
    rest.remove_prefix(part.size());
    if (!last.empty() && part.starts_with(last + ".")) module.resize(module.size() - last.size());
    if (!module.empty() && module.back() != '.') module += '.';
    module += part;
    last = part;
  }
  return module;
}

/// Whether the path in a node's name is that of a parameter's module: later calls of a module are counted
/// ("fc_1"), and modules that are not called themselves are left out.
bool is_path_to(std::string_view path, std::string_view module) {
  const auto next = [](std::string_view& rest) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    return part;
  };
  while (!path.empty()) {
    const std::string_view part = next(path);
    bool is_found = false;
    while (!is_found && !module.empty()) {
      const std::string_view known = next(module);
      is_found = part == known || (path.empty() && module.empty() && function_of(part) == known);
    }
    if (!is_found) return false;
  }
  return module.empty();
}

}  // namespace

bool has_weight_type(const rt_onnx::TensorProto& tensor) {
  constexpr int kFloat = 1, kHalf = 10, kBfloat = 16;
  const int type = tensor.data_type();
  return type == kFloat || type == kHalf || type == kBfloat;
}

bool is_single_float(const rt_onnx::TensorProto& tensor) {
  return has_weight_type(tensor) &&
         std::all_of(tensor.dims().begin(), tensor.dims().end(), [](int64_t extent) { return extent == 1; });
}

std::vector<FloatTensor> float_tensors(rt_onnx::GraphProto& graph) {
  std::vector<FloatTensor> found;
  const auto add = [&](const std::string& name, rt_onnx::TensorProto* tensor, bool is_node) {
    if (has_weight_type(*tensor)) found.push_back({name, tensor, is_node});
  };
  for (auto& tensor : *graph.mutable_initializer()) add(tensor.name(), &tensor, false);
  for (auto& node : *graph.mutable_node())
    if (auto* const tensor = tensor_of_constant(node)) add(node.output(0), tensor, true);
  return found;
}

// Lines such as "p_fc_weight: PARAMETER target='fc.weight'".
std::map<std::string, std::string> signature_of(const rt_onnx::GraphProto& graph) {
  std::map<std::string, std::string> names;
  for (const auto& entry : graph.metadata_props()) {
    if (!entry.key().ends_with("graph_signature")) continue;
    std::string_view rest = entry.value();
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const size_t colon = line.find(": "), target = line.find(" target='");
      if (line.starts_with("# outputs")) break;
      if (colon == line.npos || target == line.npos) continue;
      const std::string_view name = line.substr(target + 9);
      names.emplace(line.substr(0, colon), name.substr(0, name.find('\'')));
    }
  }
  return names;
}

std::set<std::string> listed_names(const rt_onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& [key, name] : signature_of(graph)) names.insert(name);
  return names;
}

void remove_initializers(rt_onnx::GraphProto& graph, const std::set<std::string>& names) {
  auto& tensors = *graph.mutable_initializer();
  int left = 0;
  for (int i = 0; i < tensors.size(); ++i)
    if (!names.contains(tensors[i].name())) tensors.SwapElements(left++, i);
  tensors.DeleteSubrange(left, tensors.size() - left);
}

std::string_view function_of(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end == name.npos || end + 1 == name.size() || name[end] != '_') return name;
  return name.substr(0, end);
}

bool is_direct(const WeightUse& use) {
  return std::all_of(use.path.begin(), use.path.end(),
                     [](const rt_onnx::NodeProto* node) { return node->op_type() == "Identity"; });
}

WeightUses::WeightUses(rt_onnx::GraphProto& graph) : signature_(signature_of(graph)) {
  for (const auto& output : graph.output()) outputs_.insert(output.name());
  for (const auto& input : graph.input()) names_.insert(input.name());
  add_graph(graph, 0);
}

void WeightUses::add_graph(rt_onnx::GraphProto& graph, int depth) {
  for (const auto& tensor : graph.initializer()) names_.insert(tensor.name());
  for (auto& node : *graph.mutable_node()) {
    for (int i = 0; i < node.input_size(); ++i)
      if (!node.input(i).empty()) reads_[node.input(i)].push_back({&node, i, depth > 0});
    for (const std::string& output : node.output()) {
      names_.insert(output);
      makers_[output] = node.op_type();
    }
    if (const auto module = depth == 0 ? module_of(node) : std::nullopt) {
      Module& entry = modules_[*module];
      entry.matmuls += node.op_type() == "MatMul";
      entry.has_others = entry.has_others || !is_one_of(node.op_type(), {"MatMul", "Add"});
      for (const std::string& input : node.input())
        if (node.op_type() == "Add" && input.ends_with(".bias")) entry.bias = input;
    }
    if (depth >= kMostBodies) continue;  // the importer refuses it
    each_body(node, [&](rt_onnx::GraphProto& body) { add_graph(body, depth + 1); });
  }
  if (depth > 0)
    for (const auto& output : graph.output()) outputs_.insert(output.name());
}

std::vector<WeightUse> WeightUses::of(const std::string& name) const {
  std::vector<WeightUse> found;
  collect(name, {}, found);
  return found;
}

bool WeightUses::passes_on(const Read& read) const {
  const rt_onnx::NodeProto& node = *read.node;
  return !read.in_body && read.input == 0 && node.output_size() == 1 && node.domain().empty() &&
         !outputs_.contains(node.output(0)) &&
         is_one_of(node.op_type(),
                   {"Identity", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Cast"});
}

void WeightUses::collect(const std::string& name, const WeightUse& so_far,
                         std::vector<WeightUse>& found) const {
  const auto reads = reads_.find(name);
  if (reads == reads_.end()) return;
  for (const Read& read : reads->second) {
    WeightUse use = so_far;
    if (passes_on(read) && use.path.size() < kLongestPath) {
      // A node's value ("getitem_3") is not a parameter name where those have paths ("bn.running_mean").
      const std::string& first = use.path.empty() ? name : use.path.front()->input(0);
      const auto has_path = [](const std::string& each) { return each.find('.') != std::string::npos; };
      const bool renames = read.node->op_type() == "Identity" &&
                           (use.path.empty() || use.path.back()->op_type() == "Identity") &&
                           (has_path(read.node->output(0)) || !has_path(first));
      use.path.push_back(read.node);
      if (renames) use.alias = read.node->output(0);
      collect(read.node->output(0), use, found);
      continue;
    }
    use.node = read.node;
    use.input = read.input;
    use.role = role_of(*read.node, read.input);
    use.module = module_of(*read.node);
    use.parameter = parameter_of(*read.node, use.role);
    if (use.parameter.empty()) use.parameter = linear_weight_of(name, use);
    // A name that the exporter made up is none of a parameter.
    if (!use.parameter.empty() && use.alias.starts_with(kFoldedMatMul)) use.alias.clear();
    found.push_back(std::move(use));
  }
}

bool WeightUses::has_call(const rt_onnx::NodeProto& node) const {
  return metadata(node, "pkg.torch.onnx.fx_node") != nullptr;
}

bool WeightUses::is_call_of(const rt_onnx::NodeProto& node, std::string_view function) const {
  const std::string* call = metadata(node, "pkg.torch.onnx.fx_node");
  return call != nullptr && call->find(text("[target=torch.ops.", function)) != std::string::npos;
}

// The call is stored in the metadata, with the names of its operands: "%p_fc_weight".
std::vector<std::string> WeightUses::parameters_of(const rt_onnx::NodeProto& node) const {
  std::vector<std::string> found;
  const std::string* call = metadata(node, "pkg.torch.onnx.fx_node");
  for (size_t at = call == nullptr ? std::string::npos : call->find('%'); at != std::string::npos;
       at = call->find('%', at + 1)) {
    size_t end = at + 1;
    while (end < call->size() &&
           (std::isalnum(static_cast<unsigned char>((*call)[end])) || (*call)[end] == '_'))
      ++end;
    if (const auto entry = signature_.find(call->substr(at + 1, end - at - 1)); entry != signature_.end())
      found.push_back(entry->second);
  }
  return found;
}

std::string WeightUses::parameter_at(const rt_onnx::NodeProto& node, int argument) const {
  const std::string_view name = argument_of(node, argument);
  const auto entry = name.starts_with('%') ? signature_.find(std::string(name.substr(1))) : signature_.end();
  return entry == signature_.end() ? "" : entry->second;
}

// The parameter whose name ends with the role's leaf; of a linear layer's call the operand in that place, as
// a recurrent layer has "weight_ih_l0", and of a group normalization's. A convolution with a folded
// normalization has the metadata of the normalization's call.
std::string WeightUses::parameter_of(const rt_onnx::NodeProto& node, const WeightRole& role) const {
  const std::string* call = metadata(node, "pkg.torch.onnx.fx_node");
  if (call == nullptr || role.leaf.empty()) return "";
  if (role.kind != "BatchNormalization" && call->find("batch_norm") != std::string::npos) return "";
  std::string found;
  for (const std::string& name : parameters_of(node)) {
    if (!name.ends_with(role.leaf) || name == found) continue;
    if (!found.empty()) return "";
    found = name;
  }
  if (!found.empty()) return found;
  const int bias = role.leaf == "weight" ? 0 : 1;
  if (is_call_of(node, "aten.linear.")) return parameter_at(node, 1 + bias);
  return is_call_of(node, kGroupNorm) ? parameter_at(node, 2 + bias) : "";
}

// The older exporter folds the transpose of a linear layer's weight into "onnx::MatMul_12"; the node's name
// has the layer.
std::string WeightUses::linear_weight_of(const std::string& name, const WeightUse& use) const {
  if (!name.starts_with(kFoldedMatMul) || !is_direct(use) || use.input != 1 || !use.module ||
      use.module->empty())
    return "";
  const auto module = modules_.find(*use.module);
  const bool is_linear =
      module != modules_.end() && module->second.matmuls == 1 && !module->second.has_others;
  if (!is_linear) return "";
  // Modules that are not called themselves are not in the node's name, but in that of the bias.
  const std::string owner = module->second.bias.substr(0, module->second.bias.rfind('.'));
  return (is_path_to(*use.module, owner) ? owner : *use.module) + ".weight";
}

WeightRole WeightUses::role_of(const rt_onnx::NodeProto& node, int input) const {
  const std::string& op = node.op_type();
  const std::string slot = op + ":" + std::to_string(input);
  const auto layer = [&](std::string kind, const char* leaf) {
    return WeightRole{.kind = std::move(kind), .slot = slot, .leaf = leaf, .is_layer = true};
  };
  if (op == "BatchNormalization" && input > 0) {
    constexpr std::array kLeaves = {"", "weight", "bias", "running_mean", "running_var"};
    WeightRole role = layer(op, input < 5 ? kLeaves[static_cast<size_t>(input)] : "");
    role.is_statistic = input > 2;
    return role;
  }
  if (is_matmul_or_conv(op)) {
    if (op != "Einsum" && input > 1) return layer("bias", "bias");
    return layer(is_one_of(op, {"MatMul", "Gemm", "Einsum"}) ? "MatMul" : op, "weight");
  }
  if (is_call_of(node, kGroupNorm)) {
    if (op == "InstanceNormalization" && input > 0)
      return {.kind = op, .slot = slot, .leaf = "", .is_neutral = true};
    if (op == "Mul" || op == "Add") {
      const std::string_view given = argument_of(node, op == "Mul" ? 2 : 3);
      if (given.empty() ? parameters_of(node).empty() : !given.starts_with('%'))
        return {.kind = op, .slot = slot, .leaf = "", .is_neutral = true};
      return layer("GroupNormalization", op == "Mul" ? "weight" : "bias");
    }
  }
  if (is_one_of(op,
                {"LayerNormalization", "GroupNormalization", "InstanceNormalization", "RMSNormalization"}))
    return layer(op, input == 1 ? "weight" : "bias");
  if (is_one_of(op, {"LSTM", "GRU", "RNN"})) return layer(op, "");
  if (op == "Gather" && input == 0) return layer(op, "weight");
  if (op == "PRelu") return layer(op, "weight");
  if (op == "Add" && node.input_size() == 2) {
    const auto maker = makers_.find(node.input(1 - input));
    if (maker != makers_.end() && is_matmul_or_conv(maker->second)) return {"bias", "bias", "bias", true};
  }
  return {.kind = op, .slot = slot, .leaf = ""};
}

}  // namespace librt::onnx
