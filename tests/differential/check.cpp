#include "tests/differential/check.h"

#include <cmath>

#include "runtime/core/element.h"
#include "runtime/core/random.h"
#include "runtime/model/reader.h"
#include "runtime/ops/evaluate.h"
#include "tests/onnx_node/runner.h"
#include "tools/compiler/pipeline.h"
#include "tools/convert/run_session.h"
#include "tools/data/compare.h"
#include "tools/onnx/import.h"

namespace librt::test {

using tools::Array;

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::None: return "none";
    case Fault::WrongResult: return "wrong result";
    case Fault::ResultOfInvalid: return "result though the fixed model is refused";
    case Fault::DroppedCheck: return "a node that the fixed model is refused for is not needed";
    case Fault::WrongClaim: return "wrong claim";
    case Fault::RefusedRun: return "refused though the fixed model works";
    case Fault::RefusedConversion: return "open model not converted";
  }
  return "";
}

const Finding* Verdict::find(Fault fault) const {
  for (const Finding& finding : findings)
    if (finding.fault == fault) return &finding;
  return nullptr;
}

namespace {

// The reference interpreter takes about 20 ns per element and operand.
constexpr int64_t kLargestValue = 400'000;
constexpr double kRelative = 5e-4, kAbsolute = 2e-4;
constexpr const char* kAsImported = "as imported";

Result<ModelGraph> import_model(const rt_onnx::ModelProto& model) {
  const std::string bytes = model.SerializeAsString();
  onnx::ImportReport report;
  auto imported = onnx::import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
  if (!imported.ok() && !report.unsupported.empty())
    return unsupported(report.unsupported[0].op, ": ", report.unsupported[0].reason);
  return imported;
}

bool is_large(const Graph& graph) {
  for (const Value& value : graph.values)
    if (value.is_static() && value.info().shape.elements() > kLargestValue) return true;
  return false;
}

Extents dims_of(const TensorInfo& info) {
  const auto dims = info.shape.dims();
  return {dims.begin(), dims.end()};
}

Array array_of(const ops::HostTensor& tensor) {
  return {.name = "",
          .type = static_cast<DType>(tensor.info.dtype),
          .dims = dims_of(tensor.info),
          .bytes = tensor.bytes};
}

std::string shown(std::span<const int64_t> dims) {
  std::string line = "[";
  for (const int64_t dim : dims) line += (line.size() > 1 ? "," : "") + std::to_string(dim);
  return line + "]";
}

// Out-of-range indices are detected by the reference only: a device does not check them. A shape's entry that
// happens to be 0 where there is no dimension to copy is taken for an empty dimension, and so is one of a
// tensor without elements where the dimension to copy would not fit.
bool is_about_values(const std::string& error) {
  return error.find("expected indices in") != std::string::npos ||
         error.find("copies a dimension that the input does not have") != std::string::npos ||
         error.find("expected a shape of 0 elements") != std::string::npos;
}

/// The static claims of a graph about the dimensions of its values, compared with those of a run.
class Claims {
 public:
  Claims(const Graph& graph, const Assignment& at) : graph_(graph), extents_(at) {}

  void check(ValueId id, const TensorInfo& found) {
    const Value& value = graph_[id];
    const Extents dims = dims_of(found);
    if (dims.size() != value.dims.size()) return wrong(id, dims);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const Dim& dim = value.dims[axis];
      if (dim.is_known() && dim.extent != dims[axis]) return wrong(id, dims);
      if (dim.symbol < 0) continue;
      const Symbol& symbol = graph_.symbols[static_cast<size_t>(dim.symbol)];
      const auto [entry, fresh] = extents_.emplace(symbol.name, dims[axis]);
      if (entry->second != dims[axis] || (symbol.bound > 0 && dims[axis] > symbol.bound))
        return wrong(id, dims);
    }
  }
  const std::string& problem() const { return problem_; }

 private:
  void wrong(ValueId id, const Extents& found) {
    if (!problem_.empty()) return;
    std::string claim;
    for (const Dim& dim : graph_[id].dims) {
      claim += claim.empty() ? "[" : ",";
      if (dim.is_known())
        claim += std::to_string(dim.extent);
      else
        claim += dim.symbol < 0 ? "?" : graph_.symbols[static_cast<size_t>(dim.symbol)].name;
    }
    problem_ = text("'", graph_[id].name, "' is ", claim, "] in the graph, ", shown(found), " in the run");
  }

  const Graph& graph_;
  Assignment extents_;
  std::string problem_;
};

/// Evaluates the graph; wrong claims about its values are added to `problem`.
Result<std::vector<Array>> evaluate(const ModelGraph& model, const std::vector<Array>& inputs,
                                    const Assignment& at, std::string& problem) {
  const Graph& graph = model.entries[0].graph;
  std::vector<ConstTensorView> views;
  Claims claims(graph, at);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const void* bytes = inputs[i].bytes.empty() ? "" : static_cast<const void*>(inputs[i].bytes.data());
    views.push_back({bytes, {.dtype = inputs[i].type, .shape = Shape(std::span(inputs[i].dims))}});
    claims.check(graph.inputs[i], views.back().info);
  }
  const auto observe = [&](NodeId id, std::span<const ConstTensorView> results) {
    const Node& node = graph.nodes[id];
    for (size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue) claims.check(node.outputs[i], results[i].info);
  };
  RT_ASSIGN(const auto results, ops::evaluate_graph(graph, views, nullptr, observe));
  problem = claims.problem();
  std::vector<Array> outputs;
  for (const ops::HostTensor& result : results) outputs.push_back(array_of(result));
  return outputs;
}

double largest_of(const Array& array) {
  double largest = 0;
  const size_t size = size_of(array.type);
  for (size_t i = 0; i < array.bytes.size() / size; ++i) {
    const double value = std::abs(tools::element_of(array, i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

// Empty when equal.
std::string difference(const std::vector<Array>& got, const std::vector<Array>& want) {
  if (got.size() != want.size()) return text(got.size(), " outputs, expected ", want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const bool real = want[i].type == DType::F32;
    const auto found = tools::compare(got[i], want[i], real ? kRelative : 0,
                                      real ? kAbsolute + 1e-5 * largest_of(want[i]) : 0);
    if (!found.equal()) return text("output ", i, ": ", found.text);
  }
  return "";
}

/// The dynamic model in all its forms.
struct Open {
  ModelGraph imported, compiled;
  std::unique_ptr<convert::Runner> session;
};

// Empty, or the reason for failure.
std::string convert_open(const rt_onnx::ModelProto& model, const std::string& backend, Open& open) {
  auto imported = import_model(model);
  if (!imported.ok()) return "import: " + imported.status().message();
  open.imported = *imported;
  if (Status status = compiler::expand_composites(open.imported.entries[0].graph, open.imported.states);
      !status.ok())
    return "expanding: " + status.message();
  std::string error;
  auto file = compile(*imported, error);
  if (!file) return error;
  if (backend != "reference") {
    open.session = convert::Runner::open(*file, backend, false, error);
    if (open.session == nullptr) return error;
  }
  auto compiled = read_model(Blob::own(std::move(*file)));
  if (!compiled.ok()) return "reading: " + compiled.status().message();
  open.compiled = std::move(*compiled);
  return "";
}

std::optional<std::vector<Array>> run_on(convert::Runner& session, const std::vector<Array>& inputs,
                                         std::string& error) {
  if (!session.run(inputs, error)) return std::nullopt;
  std::vector<Array> outputs;
  for (size_t i = 0; i < session.output_count(); ++i) {
    const auto output = session.output(i, error);
    if (!output) return std::nullopt;
    outputs.push_back({.name = "",
                       .type = output->type,
                       .dims = output->dims,
                       .bytes = {output->bytes.begin(), output->bytes.end()}});
  }
  return outputs;
}

class Pair {
 public:
  Pair(const rt_onnx::ModelProto& model, const CheckOptions& options) : model_(model), options_(options) {
    refusal_ = convert_open(model, options.backend, open_);
  }

  void check(const Assignment& at) {
    const rt_onnx::ModelProto fixed = with_extents(model_, at);
    const std::vector<Array> inputs = make_inputs(fixed, options_.seed);
    std::string error;
    bool too_large = false;
    const auto want = run_fixed(fixed, inputs, error, &too_large);
    if (too_large || (!want && is_about_values(error))) {
      ++verdict_.left_out;
      return;
    }
    if (!refusal_.empty()) {
      if (want) found(Fault::RefusedConversion, refusal_, at);
      ++(want ? verdict_.compared : verdict_.refused);
      return;
    }
    ++(want ? verdict_.compared : verdict_.refused);
    judge(kAsImported, evaluate_open(open_.imported, inputs, at), want, error, at);
    judge("compiled", evaluate_open(open_.compiled, inputs, at), want, error, at);
    if (open_.session != nullptr) {
      Outcome outcome;
      outcome.outputs = run_on(*open_.session, inputs, outcome.error);
      judge("session", outcome, want, error, at);
    }
    if (want && options_.sessions_of_fixed > 0 && ++runs_ % options_.sessions_of_fixed == 0)
      check_session_of_fixed(fixed, inputs, *want, at);
  }
  Verdict take() { return std::move(verdict_); }

 private:
  struct Outcome {
    std::optional<std::vector<Array>> outputs;
    std::string error;
    std::string claim;
  };

  static Outcome evaluate_open(const ModelGraph& model, const std::vector<Array>& inputs,
                               const Assignment& at) {
    Outcome outcome;
    auto results = evaluate(model, inputs, at, outcome.claim);
    if (results.ok())
      outcome.outputs = std::move(*results);
    else
      outcome.error = results.status().message();
    return outcome;
  }

  void judge(const char* form, const Outcome& open, const std::optional<std::vector<Array>>& want,
             const std::string& error, const Assignment& at) {
    if (!open.outputs) {
      if (want) found(Fault::RefusedRun, text(form, ": ", open.error), at);
      return;
    }
    if (!want) {
      const bool as_imported = std::string_view(form) == kAsImported;
      found(as_imported ? Fault::ResultOfInvalid : Fault::DroppedCheck,
            text(form, ": ", open.outputs->empty() ? "" : tools::describe(open.outputs->front()),
                 ", the fixed model: ", error),
            at);
      return;
    }
    if (!open.claim.empty()) found(Fault::WrongClaim, text(form, ": ", open.claim), at);
    if (const std::string other = difference(*open.outputs, *want); !other.empty())
      found(Fault::WrongResult, text(form, ": ", other), at);
  }

  // The static model's own passes and kernels, so that their faults are not attributed to dynamic shapes.
  void check_session_of_fixed(const rt_onnx::ModelProto& fixed, const std::vector<Array>& inputs,
                              const std::vector<Array>& want, const Assignment& at) {
    auto model = import_model(fixed);
    std::string error;
    const auto file = model.ok() ? compile(*model, error) : std::nullopt;
    const std::string backend = options_.backend == "reference" ? "cpu" : options_.backend;
    const auto session = file ? convert::Runner::open(*file, backend, false, error) : nullptr;
    const auto got = session ? run_on(*session, inputs, error) : std::nullopt;
    if (!got) return found(Fault::RefusedRun, "fixed and compiled: " + error, at);
    if (const std::string other = difference(*got, want); !other.empty())
      found(Fault::WrongResult, "fixed and compiled: " + other, at);
  }

  void found(Fault fault, std::string what, const Assignment& at) {
    if (verdict_.find(fault) == nullptr) verdict_.findings.push_back({fault, std::move(what), at});
  }

  const rt_onnx::ModelProto& model_;
  CheckOptions options_;
  Open open_;
  std::string refusal_;
  int runs_ = 0;
  Verdict verdict_;
};

}  // namespace

Verdict check_pair(const rt_onnx::ModelProto& model, const std::vector<Assignment>& assignments,
                   const CheckOptions& options) {
  Pair pair(model, options);
  for (const Assignment& at : assignments) pair.check(at);
  return pair.take();
}

std::vector<Array> make_inputs(const rt_onnx::ModelProto& fixed, uint64_t seed) {
  std::vector<Array> inputs;
  uint64_t state = seed;
  for (const auto& input : fixed.graph().input()) {
    const auto& tensor = input.type().tensor_type();
    TensorInfo info;
    info.dtype = tensor.elem_type() == kOnnxInt64 ? DType::I64 : DType::F32;
    Extents dims;
    for (const auto& dim : tensor.shape().dim()) dims.push_back(dim.dim_value());
    info.shape = Shape(std::span<const int64_t>(dims));
    ops::HostTensor values(info);
    for (int64_t i = 0; i < info.elements(); ++i) {
      const uint64_t bits = split_mix(state);
      const double value =
          info.dtype == DType::I64 ? static_cast<double>(bits % 7) : static_cast<double>(bits % 512) / 64 - 4;
      store_element(values.bytes.data(), info.dtype, i, value);
    }
    inputs.push_back(array_of(values));
  }
  return inputs;
}

std::optional<std::vector<Array>> run_fixed(const rt_onnx::ModelProto& fixed,
                                            const std::vector<Array>& inputs, std::string& error,
                                            bool* too_large) {
  auto model = import_model(fixed);
  if (!model.ok()) {
    error = model.status().message();
    return std::nullopt;
  }
  if (too_large != nullptr && is_large(model->entries[0].graph)) {
    *too_large = true;
    return std::nullopt;
  }
  return run_reference(*model, inputs, error);
}

}  // namespace librt::test
