#include "tools/compiler/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "runtime/graph/node_view.h"
#include "runtime/graph/verify.h"
#include "runtime/ops/control.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/shape/symbols.h"

namespace librt::compiler {
namespace {

// The order matters: comments state what a pass needs its predecessors to have done. A name may occur more
// than once; disabling it skips all of its runs.
constexpr Pass kPasses[] = {
    {"write_out", "write out what an earlier compilation joined (see elementwise)", write_out_elementwise},
    {"dead_code", "remove dead nodes", dead_code},
    {"canonicalize", "remove no-op nodes, bring the others into canonical form", canonicalize},
    {"fold", "fold constants and static shapes", fold_known},
    {"branches", "inline the branch of an If with a constant condition", branches},
    {"common_subexpr", "eliminate common subexpressions", common_subexpr},
    // Shape arithmetic is folded now. Layout is channels-last before anything looks for "per channel".
    {"layout", "sink Transposes until they cancel", layout},
    {"canonicalize", "remove nodes that the layout made trivial", canonicalize},
    {"fold", "transpose constants", fold_known},
    {"batch_norm", "fold per-channel scales and offsets into the preceding weights", batch_norm},
    {"parallel_conv", "add the weights of convolutions whose results are added", parallel_conv},
    {"batch_norm", "fold those of such sums", batch_norm},
    // Before composites are recognized, since Casts would hide their patterns.
    {"precision", "compute 16-bit models in f32", precision},
    {"canonicalize", "collapse chains of Casts", canonicalize},
    {"fold", "widen small constants", fold_known},
    {"common_subexpr", "eliminate common subexpressions", common_subexpr},
    {"recognize", "recognize decomposed Silu, HardSwish, Gelu, LayerNorm and RmsNorm", recognize},
    {"one_hot", "look up rows of weights for one-hot vectors, and of functions of constants", one_hot},
    {"attention", "recognize decomposed scaled dot-product attention", attention},
    {"rotary", "recognize decomposed rotary position embeddings", rotary},
    {"fuse", "fuse additions and activations into the epilogues of MatMul and Conv", fuse},
    {"fold", "reshape biases", fold_known},
    {"common_subexpr", "eliminate common subexpressions", common_subexpr},
    {"quantize", "replace dequantize, op, quantize by integer operators", quantize},
    {"fold", "dequantize constants that are still read as floats", fold_all},
    {"common_subexpr", "eliminate common subexpressions", common_subexpr},
    // After all pattern matching, for the same reason.
    {"half", "compute MatMul, Conv and the nodes between them in f16 or bf16 (if requested)", half},
    {"canonicalize", "collapse chains of Casts", canonicalize},
    {"fold", "narrow constants", fold},
    {"common_subexpr", "eliminate common subexpressions", common_subexpr},
    // Other passes do not look into the nodes that it makes.
    {"elementwise", "join chains of element-wise operators into one node each", elementwise},
    {"expand", "build the bodies of composites", expand},
    {"order", "reorder nodes to reduce peak memory", order},
};

Status check_names(const PipelineOptions& options) {
  for (const std::string& name : options.disabled) {
    if (std::any_of(std::begin(kPasses), std::end(kPasses),
                    [&](const Pass& pass) { return pass.name == name; }))
      continue;
    std::string known;
    std::set<std::string_view> names;
    for (const Pass& pass : kPasses)
      if (names.insert(pass.name).second) append(known, text(known.empty() ? "" : ", ", pass.name));
    return invalid_argument("pass '", name, "': there is no such pass; the passes are ", known);
  }
  return {};
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Bodies that a page can write are written again at the end, for the optimized node.
void drop_bodies(Graph& graph) {
  for (Node& node : graph.nodes) {
    const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
    if (page != nullptr && page->body != nullptr) node.bodies.clear();
  }
}

/// What a file may leave to a default, as passes expect it: no absent operands at the end (after those that a
/// Loop lists always), and a Transpose that reverses the axes has their order.
void spell_out(Graph& graph) {
  for (Node& node : graph.nodes) {
    const size_t listed = node.kind() == OpKind::Loop ? ops::kLoopHead : 0;
    while (node.inputs.size() > listed && node.inputs.back() == kNoValue) node.inputs.pop_back();
    if (node.kind() != OpKind::Transpose || node.inputs.empty()) continue;
    auto& permutation = node.as<op::TransposeAttributes>().permutation;
    if (!permutation.empty() || node.inputs[0] >= graph.values.size()) continue;
    for (int axis = graph[node.inputs[0]].rank(); axis-- > 0;) permutation.push_back(axis);
  }
}

/// report: null for a body, whose passes are not listed.
Status optimize_graph(Graph& graph, const std::string& name, const std::vector<State>& states,
                      const PipelineOptions& options, std::set<std::string>& unmatched,
                      PipelineReport* report) {
  drop_bodies(graph);
  spell_out(graph);
  RT_TRY(verify(graph, &states));
  InferenceCache inferred;
  const PassContext context{.states = states,
                            .inferred = &inferred,
                            .dtype = options.precision,
                            .keep_fp32 = options.keep_fp32,
                            .unmatched = &unmatched,
                            .residuals = options.residuals,
                            .widen = options.widen};
  size_t done = 0;
  for (const Pass& pass : kPasses) {
    RT_TRY(report_progress(options.progress, "optimize", done++, std::size(kPasses)));
    if (contains(options.disabled, pass.name) || (pass.name == "precision" && !options.compute_f32)) continue;
    const auto start = std::chrono::steady_clock::now();
    const size_t before = graph.nodes.size(), given = inferred.given();
    RT_TRY(pass.run(graph, context).in(text("pass '", pass.name, "'")));
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    if (report != nullptr)
      report->passes.push_back({.entry = name,
                                .pass = std::string(pass.name),
                                .nodes_before = before,
                                .nodes_after = graph.nodes.size(),
                                .milliseconds = spent.count()});
    if (inferred.given() != given) continue;  // it changed nothing
    inferred.clear();
    if (options.verify) RT_TRY(verify(graph, &states).in(text("after pass '", pass.name, "'")));
  }
  drop_unused_symbols(graph);
  for (Node& node : graph.nodes)
    for (Graph& body : node.bodies)
      if (ops::is_control(node.kind()))
        RT_TRY(optimize_graph(body, name, states, options, unmatched, nullptr).in(describe(node)));
  return {};
}

Status write_out_chains(Graph& graph, const std::vector<State>& states) {
  RT_TRY(write_out_elementwise(graph, {.states = states}));
  for (Node& node : graph.nodes)
    for (Graph& body : node.bodies)
      if (ops::is_control(node.kind())) RT_TRY(write_out_chains(body, states));
  return {};
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

std::span<const Pass> all_passes() {
  return kPasses;
}

std::string PipelineReport::table() const {
  std::string out = text(padded("entry", 14), padded("pass", 18), padded("nodes", 16), "ms\n");
  for (const PassReport& pass : passes) {
    const auto tenths = static_cast<int64_t>(std::llround(pass.milliseconds * 10));
    append(out, text(padded(pass.entry, 14), padded(pass.pass, 18),
                     padded(text(pass.nodes_before, " -> ", pass.nodes_after), 16), tenths / 10, '.',
                     tenths % 10, '\n'));
  }
  return out;
}

Status optimize(ModelGraph& model, const PipelineOptions& options, PipelineReport* report) {
  RT_TRY(check_names(options));
  for (const std::string& name : options.entries)
    if (model.entry(name) == nullptr)
      return invalid_argument("entry '", name, "': the model has no such entry");
  std::set<std::string> unmatched(options.keep_fp32.begin(), options.keep_fp32.end());
  for (ModelGraph::Entry& entry : model.entries) {
    if (!options.entries.empty() && !contains(options.entries, entry.name)) continue;
    RT_TRY(optimize_graph(entry.graph, entry.name, model.states, options, unmatched, report)
               .in(text("entry '", entry.name, "'")));
  }
  if (!unmatched.empty() && options.precision != DType::F32)
    return invalid_argument("keep in fp32: no node is named like '", *unmatched.begin(),
                            "'; rtconvert --inspect shows the names");
  return {};
}

Status write_out_chains(ModelGraph& model) {
  for (ModelGraph::Entry& entry : model.entries)
    RT_TRY(write_out_chains(entry.graph, model.states).in(text("entry '", entry.name, "'")));
  return {};
}

Status run_pass(std::string_view name, Graph& graph, const std::vector<State>& states) {
  for (const Pass& pass : kPasses)
    if (pass.name == name) return pass.run(graph, {.states = states});
  return check_names({.disabled = {std::string(name)}});
}

}  // namespace librt::compiler
