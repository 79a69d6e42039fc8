#include "tools/onnx/untie.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "runtime/core/status.h"
#include "tools/compiler/name_pattern.h"
#include "tools/onnx/code_constants.h"
#include "tools/onnx/graph_edit.h"
#include "tools/onnx/initializer.h"
#include "tools/onnx/nested_weights.h"
#include "tools/onnx/tensor_proto.h"
#include "tools/onnx/weight_uses.h"
#include "tools/onnx/weights_file.h"

namespace librt::onnx {
namespace {

/// Uses of one parameter.
struct Parameter {
  std::string key, owner;  ///< owner: its module, where known
  std::string name;        ///< in PyTorch, where the file shows it
  bool is_own = false;     ///< the initializer is named after its module
  bool stays = false;      ///< keeps the initializer whatever its name is
  std::vector<const WeightUse*> uses;

  bool is_statistic() const { return uses[0]->role.is_statistic; }
  const std::string& alias() const { return uses[0]->alias; }
  std::set<std::string> kinds() const {
    std::set<std::string> all;
    for (const WeightUse* use : uses) all.insert(use->role.kind);
    return all;
  }
};

/// A module that is used again is "layers.0_1" in the names of its nodes.
std::string without_counts(const std::string& module) {
  std::string plain;
  for (size_t at = 0; at < module.size(); ++at) {
    size_t end = at + 1;
    while (module[at] == '_' && end < module.size() && module[end] >= '0' && module[end] <= '9') ++end;
    if (end > at + 1 && (end == module.size() || module[end] == '.'))
      at = end - 1;
    else
      plain += module[at];
  }
  return plain;
}

/// Whether a node of module `a` may read a parameter of module `b`: one contains the other.
bool is_within(const std::string& a, const std::string& b) {
  const auto nested = [&](const std::string& node) {
    return node == b || node.empty() || node.starts_with(b + ".") || b.starts_with(node + ".");
  };
  return nested(a) || nested(without_counts(a));
}

/// The module in a parameter's name; none in names that exporters generate ("onnx::MatMul_12",
/// "/layers.0/Constant_output_0").
std::optional<std::string> module_in(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || name.starts_with('/') || name.find("::") != std::string::npos)
    return std::nullopt;
  return name.substr(0, dot);
}

/// Whether the node does not compute with the elements, as code that takes a parameter apart does.
bool moves_elements(const WeightRole& role) {
  constexpr std::array<std::string_view, 14> kMoves{
      "Concat",    "Expand", "Gather", "Identity", "Pad",  "Reshape",   "ScatterElements",
      "ScatterND", "Slice",  "Split",  "Squeeze",  "Tile", "Transpose", "Unsqueeze"};
  return std::ranges::find(kMoves, role.kind) != kMoves.end();
}

std::string joined(const std::set<std::string>& parts, const char* between) {
  std::string all;
  for (const std::string& part : parts) append(all, all.empty() ? "" : between, part);
  return all;
}

class Untie {
 public:
  Untie(rt_onnx::ModelProto& model, const UntieOptions& options)
      : graph_(*model.mutable_graph()),
        options_(options),
        uses_(graph_),
        reader_(options.external_folder),
        original_names_(listed_names(graph_)) {}

  Untied run() {
    for (const FloatTensor& weight : float_tensors(graph_)) split(weight.name, *weight.tensor);
    remove_unused();
    return {std::move(report_), std::move(transposed_)};
  }

 private:
  /// The exporter generated the name ("val_88"), and the parameter's original one is known and not taken.
  bool has_better_name(const WeightUse& use, const std::string& name) const {
    return use.alias.empty() && !use.parameter.empty() && use.parameter != name &&
           !uses_.is_taken(use.parameter) && !original_names_.contains(name);
  }

  // All elements have the same bits.
  bool is_uniform(rt_onnx::TensorProto tensor) {
    const auto read = reader_.read(tensor);
    if (!read.ok() || read->data.size == 0) return false;
    const size_t element = size_of(read->info.dtype);
    return std::memcmp(read->data.data, read->data.data + element, read->data.size - element) == 0;
  }

  static int64_t elements_of(const rt_onnx::TensorProto& tensor) {
    int64_t count = 1;
    for (const int64_t extent : tensor.dims()) count = extent <= 0 || count > (1 << 30) ? 0 : count * extent;
    return count;
  }

  void split(const std::string& name, const rt_onnx::TensorProto& tensor) {
    std::vector<WeightUse> uses = uses_.of(name);
    separate_neutral(name, tensor, uses);
    if (uses.empty() || (uses.size() == 1 && !has_better_name(uses[0], name))) return;
    const auto is_layer = [](const WeightUse& use) { return use.role.is_layer; };
    // A single element is a parameter only if all uses are operands of layers; larger tensors need one such
    // use or a module in the name.
    if (elements_of(tensor) == 1 ? !std::all_of(uses.begin(), uses.end(), is_layer)
                                 : std::none_of(uses.begin(), uses.end(), is_layer) && !module_in(name))
      return;
    if (looks_of(tensor, reader_) != Looks::Other) return;
    const bool uniform = is_uniform(tensor);
    std::vector<Parameter> parameters = group(name, uses, uniform);
    SharedWeight report{.name = name, .parameters = {}, .kept = why_kept(name, parameters, uniform)};
    if (!report.kept.empty()) keep_together(parameters);
    const bool splits = parameters.size() > 1;
    if (splits) report.kept.clear();
    if (splits || has_better_name(*parameters[0].uses[0], name))
      give_each_its_own(name, tensor, parameters, report.parameters);
    if (!splits) report.parameters.clear();
    if (parameters.size() > 1 || !report.kept.empty()) report_.push_back(std::move(report));
  }

  /// The exporter stores ones and zeros that no parameter stands for with a parameter that equals them: they
  /// get a tensor of their own.
  void separate_neutral(const std::string& name, const rt_onnx::TensorProto& tensor,
                        std::vector<WeightUse>& uses) {
    const auto is_neutral = [](const WeightUse& use) { return use.role.is_neutral && is_direct(use); };
    const auto neutral = std::stable_partition(uses.begin(), uses.end(), std::not_fn(is_neutral));
    if (neutral != uses.begin() && neutral != uses.end()) {
      rt_onnx::TensorProto* copy = graph_.add_initializer();
      *copy = tensor;
      copy->set_name(unique(name));
      for (auto use = neutral; use != uses.end(); ++use) use->node->set_input(use->input, copy->name());
    }
    uses.erase(neutral, uses.end());
  }

  /// The module of a use; that of its first call where another use is one. Not for uniform weights, which
  /// also modules share that are only named so ("batch_normalization_1"), nor where the file has other
  /// parameters of the module.
  std::optional<std::string> module_of(const WeightUse& use, const std::vector<WeightUse>& uses) const {
    if (!use.module) return std::nullopt;
    std::string first = without_counts(*use.module);
    const auto is_first = [&](const WeightUse& other) { return other.module == first; };
    if (first == *use.module || std::none_of(uses.begin(), uses.end(), is_first)) return use.module;
    const std::string prefix = *use.module + ".";
    const auto is_own = [&](const rt_onnx::TensorProto& each) { return each.name().starts_with(prefix); };
    const auto& all = graph_.initializer();
    return std::any_of(all.begin(), all.end(), is_own) ? *use.module : first;
  }

  /// use.parameter, of the same module.
  std::string parameter_of(const WeightUse& use, const std::vector<WeightUse>& uses) const {
    const std::optional<std::string> module = module_of(use, uses);
    if (!module || !use.parameter.starts_with(*use.module + ".")) return use.parameter;
    return *module + use.parameter.substr(use.module->size());
  }

  /// In the order of their first use.
  std::vector<Parameter> group(const std::string& name, const std::vector<WeightUse>& uses,
                               bool uniform) const {
    const std::optional<std::string> own = module_in(name);
    const bool has_aliases =
        std::any_of(uses.begin(), uses.end(), [](const WeightUse& use) { return !use.alias.empty(); });
    std::vector<Parameter> parameters;
    std::map<std::string, size_t> by_key;
    std::vector<size_t> order(uses.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto reads_extents = [&](size_t i) { return uses[i].role.kind == "Shape"; };
    std::stable_partition(order.begin(), order.end(), std::not_fn(reads_extents));
    for (const size_t i : order) {
      const WeightUse& use = uses[i];
      if (reads_extents(i) && !parameters.empty()) {  // it may be any of them
        parameters[0].uses.push_back(&use);
        continue;
      }
      Parameter parameter{.name = uniform ? use.parameter : parameter_of(use, uses)};
      const bool loose = !use.role.is_layer && !uniform;  // may be a constant of a formula
      if (!use.alias.empty()) {
        parameter.key = "alias " + use.alias;
      } else if (has_aliases || (loose && (!use.module || !own))) {
        parameter.key = "direct";
        parameter.is_own = true;
      } else if (!parameter.name.empty()) {
        parameter.is_own = use.parameter == name;
        parameter.key = "parameter " + parameter.name;
      } else if (const auto module = uniform ? use.module : module_of(use, uses)) {
        parameter.is_own = own && is_within(*module, *own);
        parameter.owner = parameter.is_own ? *own : *module;
        parameter.key = "module " + parameter.owner;
        if (parameter.is_own && !use.role.leaf.empty() && name.ends_with(use.role.leaf))
          parameter.key = "parameter " + name;  // the same key as from metadata
        else if (use.role.is_statistic && !use.role.leaf.empty() && !parameter.owner.empty())
          parameter.key = text("parameter ", parameter.owner, ".", use.role.leaf);
      } else {
        parameter.key = text("use ", i);
      }
      const bool is_named = !use.alias.empty() || parameter.key.starts_with("parameter ");
      const bool is_part = parameter.is_own && moves_elements(use.role);
      if (!is_named && (use.role.is_statistic || (uniform && !is_part))) parameter.key += " " + use.role.slot;
      const auto [same, fresh] = by_key.try_emplace(parameter.key, parameters.size());
      if (fresh) parameters.push_back(std::move(parameter));
      parameters[same->second].uses.push_back(&use);
    }
    return parameters;
  }

  std::string why_kept(const std::string& name, const std::vector<Parameter>& parameters,
                       bool uniform) const {
    const auto asked = [&](const Parameter& parameter) {
      return compiler::matches_any(options_.tie, parameter.alias());
    };
    if (compiler::matches_any(options_.tie, name) || std::any_of(parameters.begin(), parameters.end(), asked))
      return "by --tie";
    if (parameters.size() == 1) {
      const std::vector<const WeightUse*>& uses = parameters[0].uses;
      const auto same = [&](const WeightUse* use) { return use->role.slot == uses[0]->role.slot; };
      const auto is_layer = [](const WeightUse* use) { return use->role.is_layer; };
      if (uses.size() < 2 || !std::all_of(uses.begin(), uses.end(), is_layer)) return "";
      if (std::all_of(uses.begin(), uses.end(), same))
        return text("one module is used ", uses.size(), " times");
      const std::set<std::string> kinds = parameters[0].kinds();
      return kinds.size() > 1 ? "feeds " + joined(kinds, " and ") : "";
    }
    std::set<std::string> kinds, all;
    for (const Parameter& parameter : parameters) {
      const std::set<std::string> own = parameter.kinds();
      kinds.insert(joined(own, ", "));
      all.insert(own.begin(), own.end());
    }
    if (uniform) return "";
    if (kinds.size() > 1) return "feeds " + joined(all, " and ");
    if (all == std::set<std::string>{"Gather"}) return text("feeds ", parameters.size(), " embeddings");
    const auto is_foreign = [](const Parameter& parameter) {
      return parameter.alias().empty() && !parameter.owner.empty() && !parameter.is_own;
    };
    const std::optional<std::string> own = module_in(name);
    return own && std::all_of(parameters.begin(), parameters.end(), is_foreign)
               ? text("belongs to '", *own, "', which reads it nowhere")
               : "";
  }

  // Merges all but running statistics, which every node updates.
  static void keep_together(std::vector<Parameter>& parameters) {
    const auto together = std::find_if(parameters.begin(), parameters.end(),
                                       [](const Parameter& each) { return !each.is_statistic(); });
    if (together == parameters.end()) return;
    auto end = together + 1;
    for (auto each = end; each != parameters.end(); ++each) {
      if (each->is_statistic())
        std::swap(*end++, *each);
      else
        together->uses.insert(together->uses.end(), each->uses.begin(), each->uses.end());
    }
    parameters.erase(end, parameters.end());
    together->stays = true;
  }

  /// The only parameter that passes through a node; null where several do.
  using Owners = std::map<const rt_onnx::NodeProto*, const Parameter*>;
  static Owners owners_of(const std::vector<Parameter>& parameters) {
    Owners owners;
    for (const Parameter& parameter : parameters)
      for (const WeightUse* use : parameter.uses)
        for (const rt_onnx::NodeProto* node : use->path)
          if (const auto [known, fresh] = owners.try_emplace(node, &parameter); known->second != &parameter)
            known->second = nullptr;
    return owners;
  }

  void give_each_its_own(const std::string& name, const rt_onnx::TensorProto& tensor,
                         const std::vector<Parameter>& parameters, std::vector<std::string>& names) {
    // One keeps the name: the parameter that the name belongs to, else the first without another name.
    const auto direct = [](const Parameter& each) { return each.alias().empty(); };
    const auto own = [&](const Parameter& each) { return direct(each) && each.is_own && fits(each, name); };
    auto keeps =
        std::find_if(parameters.begin(), parameters.end(), [](const Parameter& each) { return each.stays; });
    if (keeps == parameters.end()) keeps = std::find_if(parameters.begin(), parameters.end(), own);
    if (keeps == parameters.end()) keeps = std::find_if(parameters.begin(), parameters.end(), direct);
    if (keeps != parameters.end() && has_better_name(*keeps->uses[0], name)) keeps = parameters.end();
    if (keeps == parameters.end()) unread_.insert(name);
    const Owners owners = owners_of(parameters);
    for (auto each = parameters.begin(); each != parameters.end(); ++each) {
      const Parameter& parameter = *each;
      if (each == keeps) {
        names.insert(names.begin(), name);
        continue;
      }
      const bool is_vector = direct(parameter) && is_folded_reshape(parameter, tensor);
      if (!direct(parameter)) {
        names.push_back(parameter.alias());
        for (rt_onnx::NodeProto* node : parameter.uses[0]->path)
          if (node->op_type() == "Identity" && node->output(0) == parameter.alias()) removed_.insert(node);
      } else {
        names.push_back(unique(name_for(parameter, keeps == parameters.end() ? nullptr : &*keeps, name)));
        if (is_folded_transpose(parameter, name, tensor)) transposed_.insert(names.back());
        redirect(parameter, owners, is_vector ? reshaped(names.back(), tensor) : names.back());
      }
      rt_onnx::TensorProto* copy = graph_.add_initializer();
      *copy = tensor;
      copy->set_name(names.back());
      if (is_vector) copy->mutable_dims()->Truncate(1);
    }
  }

  /// The weight or bias of a group normalization [channels], stored as [channels, 1, 1].
  static bool is_folded_reshape(const Parameter& parameter, const rt_onnx::TensorProto& tensor) {
    const auto& dims = tensor.dims();
    return dims.size() > 1 &&
           std::all_of(dims.begin() + 1, dims.end(), [](int64_t each) { return each == 1; }) &&
           std::ranges::all_of(parameter.uses, [](const WeightUse* use) {
             return use->role.kind == "GroupNormalization" && !use->parameter.empty() && is_direct(*use);
           });
  }

  /// A node that gives the vector `name` the extents of the tensor; returns its result.
  std::string reshaped(const std::string& name, const rt_onnx::TensorProto& tensor) {
    const std::string extents = unique(name + ".extents"), result = unique(name + ".Reshape");
    add_integers(graph_, extents, {tensor.dims().begin(), tensor.dims().end()});
    add_node(graph_, "Reshape", name, result).add_input(extents);
    return result;
  }

  /// The weight of a linear layer [outputs, inputs] with the transpose that PyTorch computes with.
  bool is_folded_transpose(const Parameter& parameter, const std::string& name,
                           const rt_onnx::TensorProto& tensor) const {
    return tensor.dims_size() == 2 &&
           std::all_of(parameter.uses.begin(), parameter.uses.end(), [&](const WeightUse* use) {
             return !use->parameter.empty() && is_direct(*use) && use->node->op_type() == "MatMul" &&
                    use->input == 1 &&
                    (name.starts_with(kFoldedMatMul) || uses_.is_call_of(*use->node, "aten.linear."));
           });
  }

  /// Whether the name ends with the role's leaf ("weight").
  static bool fits(const Parameter& parameter, const std::string& name) {
    const std::string& leaf = parameter.uses[0]->role.leaf;
    return leaf.empty() || name.ends_with(leaf);
  }

  /// What PyTorch would call it. first: the parameter that keeps the name, null if none does.
  static std::string name_for(const Parameter& parameter, const Parameter* first, const std::string& name) {
    const WeightUse& use = *parameter.uses[0];
    if (!parameter.name.empty()) return parameter.name;
    if (parameter.owner.empty()) return name;
    const std::optional<std::string> like = first != nullptr ? first->uses[0]->module : std::nullopt;
    if (use.role.kind != "BatchNormalization" && like && !like->empty() && name.starts_with(*like + "."))
      return parameter.owner + name.substr(like->size());
    std::string leaf = use.role.leaf;
    if (use.role.kind != "BatchNormalization" && module_in(name)) leaf = name.substr(name.rfind('.') + 1);
    return text(parameter.owner, ".", leaf.empty() ? "weight" : leaf);
  }

  std::string unique(const std::string& wanted) {
    std::string name = wanted;
    for (int& copy = copies_.try_emplace(wanted, 1).first->second; uses_.is_taken(name);)
      name = text(wanted, ".", ++copy);
    uses_.take(name);
    return name;
  }

  /// Redirects the uses to the initializer `name`; nodes on the path that other parameters need are copied.
  void redirect(const Parameter& parameter, const Owners& owners, const std::string& name) {
    std::map<const rt_onnx::NodeProto*, std::string> made;
    for (const WeightUse* use : parameter.uses) {
      std::string source = name;
      for (rt_onnx::NodeProto* node : use->path) {
        const auto [entry, fresh] = made.try_emplace(node);
        if (fresh && owners.at(node) == &parameter) {
          node->set_input(0, source);
          entry->second = node->output(0);
        } else if (fresh) {
          rt_onnx::NodeProto* copy = graph_.add_node();
          *copy = *node;
          copy->set_input(0, source);
          copy->set_output(0, unique(text(name, ".", node->op_type())));
          if (!node->name().empty()) copy->set_name(text(node->name(), "/", name));
          entry->second = copy->output(0);
        }
        source = entry->second;
      }
      use->node->set_input(use->input, source);
    }
  }

  void remove_unused() {
    std::erase_if(unread_, [&](const std::string& name) { return uses_.is_output(name); });
    remove_initializers(graph_, unread_);
    auto& nodes = *graph_.mutable_node();
    int kept = 0;
    for (int i = 0; i < nodes.size(); ++i)
      if (!removed_.contains(&nodes[i])) nodes.SwapElements(kept++, i);
    nodes.DeleteSubrange(kept, nodes.size() - kept);
  }

  rt_onnx::GraphProto& graph_;
  const UntieOptions& options_;
  WeightUses uses_;
  InitializerReader reader_;
  std::set<std::string> original_names_;  ///< of parameters and buffers in PyTorch
  std::map<std::string, int> copies_;     ///< the last number that unique() gave, by name
  std::vector<SharedWeight> report_;
  std::set<std::string> transposed_;
  std::set<const rt_onnx::NodeProto*> removed_;
  std::set<std::string> unread_;  ///< initializers without any use left
};

}  // namespace

Untied untie(rt_onnx::ModelProto& model, const UntieOptions& options) {
  if (!model.has_graph()) return {};
  name_nested_weights(model);
  return Untie(model, options).run();
}

}  // namespace librt::onnx
