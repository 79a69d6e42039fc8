#include "tools/onnx/importer.h"

#include <algorithm>
#include <numeric>

#include "tools/onnx/constant_input.h"
#include "tools/onnx/ml.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {

namespace {

constexpr size_t kShownProblems = 20;
constexpr int kStringType = 8;  // of ONNX's element types

std::string normal_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::string shown_domain(const std::string& domain) {
  return domain.empty() ? "ai.onnx" : domain;
}

// Exporters write an empty name or "?" for an anonymous dimension.
bool is_nameless(const rt_onnx::TensorShapeProto::Dimension& dim) {
  return dim.dim_param().empty() || dim.dim_param().find_first_not_of("? ") == std::string::npos;
}

/// For an operator without an importer; at_other_opset: another opset has one.
std::string advice_for(std::string_view domain, bool at_other_opset) {
  if (at_other_opset) return "the operator is not supported at this opset; export with another opset";
  if (domain.starts_with("com.microsoft") || domain.starts_with("com.ms."))
    return text("the operator is a contrib operator of ONNX Runtime; ", kWithoutFusion);
  if (!domain.empty() && !domain.starts_with("ai.onnx"))
    return "the operator is a custom operator; export without runtime-specific optimization, express it as a "
           "model-local function, or keep it for a kernel of the application (--custom-domain)";
  return "the operator is not supported; express it with the operators that rtconvert --list-ops shows, or "
         "as a model-local function";
}

/// Data movement: operators whose results are elements of their first input.
bool moves_only(std::string_view domain, std::string_view op) {
  constexpr std::string_view kOps[] = {"Identity", "Reshape", "Flatten",   "Squeeze", "Unsqueeze",
                                       "Gather",   "Slice",   "Transpose", "Expand",  "Tile"};
  return domain.empty() && std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

}  // namespace

const Importer::Scope* Importer::Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent)
    if (scope->names.contains(name)) return scope;
  return nullptr;
}

std::optional<ValueId> Importer::lookup(const Scope& scope, const std::string& name) {
  const Scope* binds = scope.find(name);
  if (binds == nullptr) return std::nullopt;
  return within(*frame_, binds->frame, binds->names.at(name));
}

bool Importer::Scope::is_absent(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent)
    if (scope->absent.contains(name)) return true;
  return false;
}

void Importer::problem(std::string message) {
  ++problem_count_;
  if (problems_.size() < kShownProblems) problems_.push_back(std::move(message));
}

Status Importer::run(rt_onnx::ModelProto& model) {
  RT_TRY(read_header(model));
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  builder().graph().name = graph.name();
  builder().fit_symbols(report_.warnings);
  report_.onnx_nodes = static_cast<size_t>(graph.node_size());
  Scope scope{.parent = nullptr,
              .frame = &root_,
              .opsets = &opsets_,
              .attributes = nullptr,
              .depth = 0,
              .prefix = ""};
  read_constants(graph);
  add_initializers(graph, scope);
  add_inputs(graph, scope);
  check_options(graph);
  read_custom(graph);
  if (problem_count_ == 0) add_nodes(graph.node(), scope);
  if (problem_count_ == 0) check_custom();
  if (problem_count_ == 0 && report_.unsupported.empty()) add_outputs(graph, scope);
  RT_TRY(std::move(stopped_));
  RT_TRY(summary());
  return builder().take_failure();
}

Status Importer::read_header(const rt_onnx::ModelProto& model) {
  report_.producer = model.producer_name();
  if (!model.producer_version().empty()) report_.producer += " " + model.producer_version();
  report_.ir_version = model.ir_version();
  for (const auto& import : model.opset_import()) {
    const std::string domain = normal_domain(import.domain());
    const auto [entry, fresh] = opsets_.emplace(domain, import.version());
    if (!fresh && entry->second != import.version())
      return invalid_model("the domain ", shown_domain(domain), " is imported at versions ", entry->second,
                           " and ", import.version());
  }
  // Before IR version 3 models did not name an opset; version 1 was meant.
  if (model.opset_import().empty() && model.ir_version() < 3) opsets_[""] = 1;
  report_.opset = opsets_.contains("") ? opsets_[""] : 0;
  if (report_.opset > kNewestKnownOpset)
    report_.warnings.push_back(
        text("the model is of opset ", report_.opset, ", the newest known one is ", kNewestKnownOpset,
             ": operators are taken as in that one, which may be wrong; export with an "
             "earlier opset, or compare results with those of another runtime"));
  for (const auto& function : model.functions()) {
    const std::string key =
        normal_domain(function.domain()) + "\n" + function.name() + "\n" + function.overload();
    if (!functions_.emplace(key, &function).second)
      return invalid_model("the function ", shown_domain(function.domain()), ".", function.name(),
                           " is there twice");
  }
  if (!model.has_graph()) return invalid_model("the file has no graph; is it an ONNX model?");
  if (model.graph().sparse_initializer_size() > 0)
    return unsupported("the model has sparse initializers; store them as dense ones");
  return {};
}

void Importer::bind(Scope& scope, const std::string& name, ValueId id) {
  if (name.empty()) return;
  if (!scope.names.emplace(name, id).second)
    problem(text("'", name,
                 "' is defined twice; every name may be an input, an initializer or a node's output once"));
}

void Importer::note_type(ValueId id, int onnx_type) {
  if (id != kNoValue && tools::narrow_type_of_onnx(onnx_type) != nullptr)
    frame_->narrow_types[id] = onnx_type;
}

void Importer::add_initializers(rt_onnx::GraphProto& graph, Scope& scope) {
  for (rt_onnx::TensorProto& proto : *graph.mutable_initializer()) {
    ValueId id = kNoValue;
    if (proto.data_type() == kStringType) {
      const auto strings = add_strings(proto);
      if (strings.ok())
        id = *strings;
      else
        problem(text("initializer '", proto.name(), "': ", strings.status().message()));
      if (id != kNoValue) builder().graph()[id].name = proto.name();
      bind(scope, proto.name(), id);
      continue;
    }
    auto read = initializers_.read(proto);
    if (read.ok()) {
      id = builder().constant(read->info, std::move(read->data));
      if (id != kNoValue) builder().graph()[id].name = proto.name();
      note_type(id, proto.data_type());
    } else if (read.status().code() == Code::Unsupported) {
      report_value("initializer", proto.name(), read.status().message());
    } else {
      problem(text("initializer '", proto.name(), "': ", read.status().message()));
    }
    bind(scope, proto.name(), id);
  }
}

Result<ValueId> Importer::add_strings(const rt_onnx::TensorProto& proto) {
  Shape shape;
  if (proto.dims_size() > kMaxRank) return unsupported("rank ", proto.dims_size(), " is beyond ", kMaxRank);
  int64_t count = 1;
  for (int64_t extent : proto.dims()) {
    if (extent < 0 || extent > proto.string_data_size())
      return invalid_model("an extent of ", extent, " for ", proto.string_data_size(), " strings");
    count = std::min<int64_t>(count * extent, int64_t{proto.string_data_size()} + 1);
    shape.push_back(extent);
  }
  if (count != proto.string_data_size())
    return invalid_model("the extents ask for other than its ", proto.string_data_size(), " strings");
  std::vector<int64_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), int64_t{0});
  const ValueId id = builder().constant({.dtype = DType::I64, .shape = shape},
                                        Blob::copy_of(positions.data(), positions.size() * sizeof(int64_t)));
  frame_->strings[id] = std::make_shared<const std::vector<std::string>>(proto.string_data().begin(),
                                                                         proto.string_data().end());
  return id;
}

void Importer::add_inputs(const rt_onnx::GraphProto& graph, Scope& scope) {
  find_branch_inputs(graph);
  std::unordered_map<std::string, int> seen;
  for (const auto& input : graph.input()) {
    if (input.name().empty()) {
      problem("a graph input has no name");
    } else if (++seen[input.name()] > 1) {
      problem(text("input '", input.name(), "' is listed twice"));
    } else if (!scope.names.contains(input.name())) {  // else an initializer gives it its value
      add_input(input, scope);
    }
  }
}

void Importer::add_input(const rt_onnx::ValueInfoProto& input, Scope& scope) {
  const std::string& name = input.name();
  if (input.type().has_optional_type() && input.type().optional_type().elem_type().has_tensor_type()) {
    // Inputs of a session are never optional.
    report_.warnings.push_back(text("input '", name, "' is optional in the model; it must always be given"));
    rt_onnx::ValueInfoProto given = input;
    *given.mutable_type() = input.type().optional_type().elem_type();
    return add_input(given, scope);
  }
  const auto& tensor = input.type().tensor_type();
  const auto type = tools::element_type_of_onnx(tensor.elem_type());
  if (!input.type().has_tensor_type() || !type) {
    report_value(
        "input", name,
        tensor.elem_type() == kStringType
            ? "strings are not supported; encode them as numbers before the model (in scikit-learn: an "
              "OrdinalEncoder outside of the exported pipeline)"
        : input.type().has_tensor_type()
            ? text("elements of type ", tools::onnx_type_name(tensor.elem_type()), " are not supported")
            : "how many tensors a sequence or map holds is not known; export the model with tensors as "
              "inputs");
    return bind(scope, name, kNoValue);
  }
  if (const auto baked = options_.constants.find(name); baked != options_.constants.end()) {
    const ValueId id = builder().constant(baked->second.info, baked->second.data);
    if (id != kNoValue) builder().graph()[id].name = name;
    note_type(id, tensor.elem_type());
    return bind(scope, name, id);
  }
  if (!tensor.has_shape()) {
    report_value("input", name, "has no shape, so its rank is unknown; export the model with input shapes");
    return bind(scope, name, kNoValue);
  }
  std::vector<Dim> dims = input_dims(name, tensor.shape());
  const ValueId id = builder().input(name, static_cast<DType>(*type), std::move(dims));
  if (id == kNoValue) problem(builder().take_failure().message());
  model_inputs_.push_back(name);
  note_type(id, tensor.elem_type());
  bind(scope, name, id);
}

void Importer::see_symbol(const std::string& symbol) {
  if (symbols_known_.insert(symbol).second) symbols_seen_.push_back(symbol);
}

void Importer::find_branch_inputs(const rt_onnx::GraphProto& graph) {
  std::map<std::string, std::set<std::string>> readers;  // of each name: which branches, "" for all else
  for (const auto& output : graph.output()) readers[output.name()].insert("");
  for (int i = 0; i < graph.node_size(); ++i) {
    const auto& node = graph.node(i);
    for (const std::string& input : node.input()) readers[input].insert("");
    const bool chosen =
        node.op_type() == "If" && node.input_size() == 1 && !options_.constants.contains(node.input(0));
    for (const auto& attribute : node.attribute()) {
      const std::string branch = chosen ? text(attribute.name() == "then_branch" ? "then" : "else", i) : "";
      if (attribute.has_g())
        each_outer_name(attribute.g(), [&](const std::string& name) { readers[name].insert(branch); });
      for (const auto& body : attribute.graphs())
        each_outer_name(body, [&](const std::string& name) { readers[name].insert(""); });
    }
  }
  const auto branch_of = [&](const std::string& name) {
    const auto found = readers.find(name);
    return found == readers.end() || found->second.size() != 1 ? std::string() : *found->second.begin();
  };
  std::map<std::string, std::set<std::string>> users;  // of each symbol: which branches
  const auto each_symbol = [&](const auto& visit) {
    for (const auto& input : graph.input())
      for (const auto& dim : input.type().tensor_type().shape().dim())
        if (!dim.dim_param().empty()) visit(input.name(), dim.dim_param());
  };
  each_symbol(
      [&](const std::string& input, const std::string& symbol) { users[symbol].insert(branch_of(input)); });
  each_symbol([&](const std::string& input, const std::string& symbol) {
    const std::string branch = branch_of(input);
    if (!branch.empty() && users[symbol].size() > 1)
      branch_symbols_[input][symbol] = text(symbol, " of the ", branch.substr(0, 4), " branch");
  });
}

std::vector<Dim> Importer::input_dims(const std::string& name, const rt_onnx::TensorShapeProto& shape) {
  std::vector<Dim> dims;
  for (int axis = 0; axis < shape.dim_size(); ++axis) {
    const auto& dim = shape.dim(axis);
    const bool opens = options_.open_batch && axis == 0 && dim.dim_value() == 1;
    if (dim.has_dim_value() && dim.dim_value() >= 0 && !opens) {
      dims.push_back({.extent = dim.dim_value()});
      continue;
    }
    std::string symbol = opens ? kOpenedBatch : is_nameless(dim) ? text(name, "_", axis) : dim.dim_param();
    opened_batch_ = opened_batch_ || opens;
    see_symbol(symbol);
    auto given = options_.dims.find(symbol);
    if (const auto own = branch_symbols_.find(name); axis > 0 && own != branch_symbols_.end())
      if (const auto apart = own->second.find(symbol); apart != own->second.end()) {
        symbol = apart->second;
        see_symbol(symbol);
        if (given == options_.dims.end()) given = options_.dims.find(symbol);
      }
    if (given != options_.dims.end())
      dims.push_back({.extent = given->second});
    else
      dims.push_back({.extent = -1, .symbol = builder().symbol(symbol)});
  }
  return dims;
}

void Importer::read_constants(rt_onnx::GraphProto& graph) {
  for (const auto& input : graph.input()) {
    const auto given = options_.constants.find(input.name());
    if (given == options_.constants.end()) continue;
    auto constant = constant_for(input, given->second, options_.dims);
    if (!constant.ok()) {
      problem(constant.status().message());
      options_.constants.erase(given);
      continue;
    }
    given->second = *std::move(constant);
    for (const auto& dim : input.type().tensor_type().shape().dim())
      if (!dim.dim_param().empty()) see_symbol(dim.dim_param());
    // An input's initializer is its default value, which the constant replaces.
    auto& initializers = *graph.mutable_initializer();
    for (int i = initializers.size(); i-- > 0;)
      if (initializers[i].name() == input.name()) initializers.DeleteSubrange(i, 1);
  }
}

void Importer::check_options(const rt_onnx::GraphProto& graph) {
  if (options_.open_batch && !opened_batch_)
    problem("no input has a first axis of 1 that could become dynamic");
  for (const auto& [name, extent] : options_.dims) {
    if (extent < 0) problem(text("dimension '", name, "': expected an extent, found ", extent));
    if (symbols_known_.contains(name)) continue;
    std::string known;
    for (const std::string& symbol : symbols_seen_) known += (known.empty() ? "" : ", ") + symbol;
    problem(text("there is no dimension named '", name, "'; the model has ", known.empty() ? "none" : known));
  }
  for (const auto& [name, constant] : options_.constants) {
    const auto found = std::find_if(graph.input().begin(), graph.input().end(),
                                    [&wanted = name](const auto& input) { return input.name() == wanted; });
    if (found == graph.input().end())
      problem(text("there is no input named '", name, "' to give a value to"));
  }
}

void Importer::check_declared(const rt_onnx::ValueInfoProto& output, ValueId id) {
  const Value& value = builder().value(id);
  if (options_.open_batch && !options_.dims.contains(kOpenedBatch) &&
      (value.dims.empty() || value.dims[0].extent >= 0))
    problem(text("output '", output.name(),
                 "': the model fixes the batch: expected a dynamic first axis, found ", value.info(),
                 "; export the model with a dynamic batch, or leave out --open-batch"));
  const auto& declared = output.type().tensor_type();
  const auto type = tools::element_type_of_onnx(declared.elem_type());
  if (!type) return;
  if (static_cast<DType>(*type) != value.dtype)
    problem(text("output '", output.name(), "': declared as ", name_of(*type), ", computed as ",
                 name_of(value.dtype)));
  if (!declared.has_shape()) return;
  bool same = declared.shape().dim_size() == value.rank();
  for (int axis = 0; same && axis < value.rank(); ++axis) {
    const auto& dim = declared.shape().dim(axis);
    const int64_t extent = value.dims[static_cast<size_t>(axis)].extent;
    same = !dim.has_dim_value() || dim.dim_value() <= 0 || extent < 0 || dim.dim_value() == extent;
  }
  if (!same) report_.warnings.push_back(text("output '", output.name(), "' has another shape than declared"));
}

void Importer::report_strings(const std::string& output, ValueId id) {
  const auto list = frame_->strings.find(id);
  if (list == frame_->strings.end()) return;
  const std::string key = "labels." + output;
  report_.warnings.push_back(text("output '", output,
                                  "': strings are returned as indices (i64) into the list of ",
                                  list->second->size(), " in the file's metadata, key ", key));
  report_.metadata[key] = json_list(*list->second);
}

void Importer::add_outputs(const rt_onnx::GraphProto& graph, Scope& scope) {
  if (graph.output().empty()) problem("the graph has no outputs");
  for (const auto& output : graph.output()) {
    const auto found = lookup(scope, output.name());
    if (!found) {
      problem(text("output '", output.name(), "' is not produced by anything"));
      continue;
    }
    if (is_sequence(*found)) {
      add_sequence_output(output.name(), *found);
      continue;
    }
    if (*found == kNoValue) continue;
    check_declared(output, *found);
    report_strings(output.name(), *found);
    add_output(output.name(), *found);
  }
}

void Importer::add_output(const std::string& name, ValueId id) {
  Graph& result = builder().graph();
  // An output must be a distinct value: not an input, a constant, or another output under a second name.
  if (outputs_.contains(id) || result[id].role != Role::Intermediate) {
    builder().set_scope(name);
    id = builder().emit(op::IdentityAttributes{}, {id});
  }
  if (id == kNoValue) return problem(builder().take_failure().message());
  // Outputs keep their positions and need unique names.
  std::string own = name;
  while (!output_names_.try_emplace(own, 1).second) own = text(name, '_', ++output_names_[name]);
  if (own != name)
    report_.warnings.push_back(
        text("output '", name, "' is listed more than once; here it is called '", own, "'"));
  result[id].name = own;
  outputs_.insert(id);
  builder().output(id);
}

// --- nodes ------------------------------------------------------------------------------------------------

void Importer::add_nodes(const NodeList& nodes, Scope& scope) {
  const auto order = topological_order(nodes);
  if (!order.ok()) return problem(order.status().message());
  for (int index : *order) {
    if (++nodes_ > options_.max_nodes) {
      if (nodes_ == options_.max_nodes + 1)
        problem(text("the model has more than ", options_.max_nodes, " nodes once functions are inlined"));
      return;
    }
    if (stopped_.ok())
      stopped_ = compiler::report_progress(options_.progress, "import", nodes_ - 1, report_.onnx_nodes);
    if (!stopped_.ok()) return;
    add_node(nodes[index], index, scope);
  }
}

void Importer::add_node(const rt_onnx::NodeProto& node, int index, Scope& scope) {
  ++report_.op_counts[node.op_type()];
  const std::string name =
      scope.prefix + (node.name().empty() ? text(node.op_type(), "_", index) : node.name());
  const auto has_reference = [](const auto& attribute) { return attribute.has_ref_attr_name(); };
  rt_onnx::NodeProto resolved;
  const rt_onnx::NodeProto* actual = &node;
  if (scope.attributes != nullptr &&
      std::any_of(node.attribute().begin(), node.attribute().end(), has_reference)) {
    // Inside a function an attribute may refer to one of the call; if the call omits that, it is absent.
    resolved = node;
    resolved.clear_attribute();
    for (const auto& attribute : node.attribute()) {
      if (!attribute.has_ref_attr_name()) {
        *resolved.add_attribute() = attribute;
      } else if (const auto found = scope.attributes->find(attribute.ref_attr_name());
                 found != scope.attributes->end()) {
        auto* copy = resolved.add_attribute();
        *copy = *found->second;
        copy->set_name(attribute.name());
      }
    }
    actual = &resolved;
  }
  const std::string domain = normal_domain(node.domain());
  const auto function = functions_.find(domain + "\n" + node.op_type() + "\n" + node.overload());
  if (is_custom(*actual))
    add_custom(*actual, name, scope);
  else if (function != functions_.end())
    add_call(*function->second, *actual, name, scope);
  else if (const AddControl add = control_importer(domain, node.op_type()); add != nullptr)
    (this->*add)(*actual, name, scope);
  else
    add_operator(*actual, name, scope);
}

bool Importer::resolve_inputs(const rt_onnx::NodeProto& node, const std::string& name, const Scope& scope,
                              std::vector<ValueId>& inputs) {
  bool complete = true;
  for (const std::string& input : node.input()) {
    inputs.push_back(kNoValue);
    if (input.empty() || scope.is_absent(input)) continue;
    const auto found = lookup(scope, input);
    if (!found)
      problem(text("node '", name, "' (", node.op_type(), ") reads '", input, "', which nothing produces"));
    else
      inputs.back() = *found;
    complete = complete && inputs.back() != kNoValue;
  }
  return complete;
}

void Importer::bind_outputs(const rt_onnx::NodeProto& node, Scope& scope, std::span<const ValueId> values,
                            size_t first_new) {
  for (int i = 0; i < node.output_size(); ++i) {
    const auto index = static_cast<size_t>(i);
    const ValueId id = index < values.size() ? values[index] : kNoValue;
    if (id != kNoValue && !is_sequence(id) && id >= first_new) builder().graph()[id].name = node.output(i);
    bind(scope, node.output(i), id);
  }
}

void Importer::report_unsupported(const rt_onnx::NodeProto& node, const std::string& name, int64_t opset,
                                  std::span<const ValueId> inputs, const std::string& message, bool refused) {
  UnsupportedNode entry{.name = name,
                        .op = node.op_type(),
                        .domain = shown_domain(normal_domain(node.domain())),
                        .opset = opset,
                        .dtype = "-",
                        .reason = "",
                        .help = "",
                        .refused = refused};
  for (ValueId input : inputs)
    if (input != kNoValue) {
      entry.dtype = name_of(builder().value(input).dtype);
      break;
    }
  add_unsupported(std::move(entry), message);
}

void Importer::report_value(std::string_view role, const std::string& name, const std::string& message) {
  add_unsupported({.name = name, .op = text("(", role, ")"), .domain = "-", .dtype = "-"}, message);
}

void Importer::add_unsupported(UnsupportedNode entry, const std::string& message) {
  entry.reason = message;
  if (const size_t cut = message.rfind("; "); cut != std::string::npos) {
    entry.reason = message.substr(0, cut);
    entry.help = message.substr(cut + 2);
  }
  report_.unsupported.push_back(std::move(entry));
}

void Importer::add_operator(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope) {
  const std::string domain = normal_domain(node.domain());
  const auto version = scope.opsets->find(domain);
  // Of a domain that the model uses without importing it, as some exporters do, ONNX Runtime takes the newest
  // version as well.
  const int64_t opset = version != scope.opsets->end() ? version->second : domain.empty() ? 0 : kNewestOpset;
  std::vector<ValueId> inputs;
  const bool complete = resolve_inputs(node, name, scope, inputs);
  const ImportRow* row = find_import_row(domain, node.op_type(), opset);
  if (row == nullptr) {
    const auto rows = import_rows();
    const bool other = std::any_of(rows.begin(), rows.end(), [&](const ImportRow& candidate) {
      return candidate.domain == domain && candidate.op == node.op_type();
    });
    if (version == scope.opsets->end())
      problem(text("node '", name, "' (", node.op_type(), "): the model does not import its domain ",
                   shown_domain(domain)));
    else
      report_unsupported(node, name, opset, inputs, advice_for(domain, other));
    return bind_nothing(node, scope);
  }
  if (!complete) return bind_nothing(node, scope);
  if (std::any_of(inputs.begin(), inputs.end(), is_sequence) && node.op_type() != "Identity") {
    report_unsupported(node, name, opset, {}, "it reads a sequence or an empty optional, expected tensors");
    return bind_nothing(node, scope);
  }

  builder().set_scope(name);
  const size_t first_new = builder().graph().values.size();
  NodeContext context(builder(), notes(), node, opset, std::move(inputs));
  Status status = row->import(context);
  if (Status failure = builder().take_failure(); !failure.ok()) status = std::move(failure);
  if (moves_only(domain, node.op_type())) context.strings(0);
  if (status.ok()) status = context.check_all_read();
  for (size_t i = 0; i < context.output_count() && status.ok(); ++i)
    if (context.wants(i) && (i >= context.outputs.size() || context.outputs[i] == kNoValue))
      status = cannot("output ", i, " is not supported; leave it out");
  if (status.ok()) {
    if (moves_only(domain, node.op_type()) && !context.inputs.empty())
      if (const StringList list = context.strings(0); list != nullptr)
        for (ValueId output : context.outputs) context.set_strings(output, list);
    if (const int narrow = context.narrow_type(0); narrow != 0)
      for (ValueId output : context.outputs)
        if (output != kNoValue && context.value(output).dtype == context.dtype(0))
          frame_->narrow_types.try_emplace(output, narrow);
    return bind_outputs(node, scope, context.outputs, first_new);
  }
  // Shape inference returns InvalidArgument for what it does not support, such as an element type. Nodes of
  // branches that are never taken may have inputs that no row accepts.
  const bool refused =
      status.code() == Code::InvalidArgument || (frame_->is_optional && status.code() == Code::InvalidModel);
  if (refused || status.code() == Code::Unsupported)
    report_unsupported(node, name, opset, context.inputs, status.message(), refused);
  else
    problem(text("node '", name, "' (", node.op_type(), "): ", status.message()));
  bind_nothing(node, scope);
}

Status Importer::summary() const {
  if (problem_count_ > 0) {
    std::string all = problems_.size() == 1 ? problems_[0] : text(problem_count_, " problems:");
    if (problems_.size() > 1)
      for (const std::string& line : problems_) all += "\n  " + line;
    if (problem_count_ > problems_.size())
      all += text("\n  ... and ", problem_count_ - problems_.size(), " more");
    return invalid_model(all);
  }
  if (report_.unsupported.empty()) return {};
  std::map<std::string, size_t> by_op;
  size_t values = 0;
  for (const UnsupportedNode& node : report_.unsupported) {
    ++by_op[node.op];
    if (node.op.starts_with('(')) ++values;
  }
  std::string ops;
  for (const auto& [op, count] : by_op) ops += text(ops.empty() ? "" : ", ", op, " (", count, ")");
  const size_t found = report_.unsupported.size() - values;
  return unsupported(found, " of ", nodes_, " nodes", values > 0 ? text(" and ", values, " values") : "",
                     " cannot be converted: ", ops);
}

}  // namespace librt::onnx
