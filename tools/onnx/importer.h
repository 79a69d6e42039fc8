// The walk over an ONNX model: names and scopes, functions and branches, and error reports.
//
// Knows: ONNX's graph rules. Must not know: what the operators mean (onnx/ops). Private to the importer's
// folder; users include import.h.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/graph/graph.h"
#include "tools/compiler/builder.h"
#include "tools/onnx/import.h"
#include "tools/onnx/initializer.h"
#include "tools/onnx/node.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/sequence.h"
#include "tools/onnx/sort.h"

namespace librt::onnx {

class Importer : private BodyWriter {
 public:
  Importer(Graph& graph, ImportOptions options, ImportReport& report)
      : root_(graph, options.untie),
        options_(std::move(options)),
        report_(report),
        initializers_(options_.external_folder) {}

  /// Takes the weights out of the message.
  Status run(rt_onnx::ModelProto& model);

  /// Operators imported by this class itself, in addition to those of onnx/ops.
  static std::vector<SupportedOp> walked_ops();

 private:
  using Opsets = std::map<std::string, int64_t, std::less<>>;
  using Attributes = std::map<std::string, const rt_onnx::AttributeProto*, std::less<>>;

  /// A graph under construction: the entry's, or a body of one of its nodes. Values that a body captures from
  /// the graphs around it become inputs of the body, or constants if they are known. For training, what is
  /// computed from weights is computed in the body again, so that gradients reach them.
  struct Frame {
    Frame(Graph& graph, bool trains) : builder(graph), for_training(trains) {}
    /// A body of one of outer's nodes.
    explicit Frame(Frame* outer)
        : builder(own),
          parent(outer),
          depth(outer->depth + 1),
          for_training(outer->for_training),
          is_optional(outer->is_optional) {
      builder.within(outer->builder);
    }

    /// The value in this graph for a value of the parent; captures it if necessary.
    ValueId capture(ValueId outer);
    /// A constant with what the parent knows of the value; kNoValue: nothing.
    ValueId known_constant(ValueId outer);
    /// Copies of the parent's nodes that compute the value from weights alone; kNoValue: none do.
    ValueId copy_computation(ValueId outer);
    /// Dims of the parent's value for an input of this graph: with names for those that have none.
    std::vector<Dim> dims_of(ValueId outer);

    Graph own;
    compiler::Builder builder;
    Frame* parent = nullptr;
    std::map<ValueId, ValueId> known = {};  ///< values of the parent that were captured before
    std::vector<ValueId> captured = {};     ///< those of them that became inputs, in order
    std::vector<std::string> fitted = {};   ///< what symbols of a branch have become
    NarrowTypes narrow_types = {};
    ValuesByInput positions = {};
    StringLists strings = {};
    int depth = 0;
    bool for_training = false;
    bool is_optional = false;  ///< in a branch, which is dropped where its nodes do not fit their inputs
  };
  /// Writes a body into the current frame, which is new: takes the body's own inputs, returns its outputs;
  /// none after a problem, which has been reported.
  using WriteBody = std::function<std::vector<ValueId>(std::span<const ValueId> inputs)>;
  struct LoopParts {
    std::string name;
    ValueId trips = kNoValue, condition = kNoValue;
    std::vector<ValueId> carried;
    int iteration_rank = 0, condition_rank = 0;
    std::vector<std::string> warnings = {};  ///< of values that are carried otherwise than the model says
  };
  /// For each carried value, axes whose extents differ from one iteration to the next.
  using Varying = std::vector<std::vector<bool>>;
  struct ScanParts {
    std::string name;
    std::vector<ValueId> states, scans;
    std::vector<int64_t> input_axes, output_axes;  ///< one for each scanned input or output; none: all 0
    std::vector<int64_t> input_reversed, output_reversed;
    ValueId trips = kNoValue;  ///< instead of the scanned inputs' extent
  };

  /// Names in scope. A name bound to kNoValue is a value that could not be imported; nodes that read it are
  /// skipped, since the reason is reported already.
  struct Scope {
    const Scope* parent = nullptr;
    Frame* frame = nullptr;  ///< of the values below
    const Opsets* opsets = nullptr;
    const Attributes* attributes = nullptr;  ///< of the call, inside a function
    int depth = 0;
    std::string prefix;  ///< of node names inside functions and branches
    std::unordered_map<std::string, ValueId> names = {};
    std::set<std::string> absent = {};  ///< inputs of a function that the call omits

    bool is_absent(const std::string& name) const;
    /// The scope that binds the name; null if none does.
    const Scope* find(const std::string& name) const;
  };
  /// The value of a name, as one of the graph under construction.
  std::optional<ValueId> lookup(const Scope& scope, const std::string& name);
  static ValueId within(Frame& frame, const Frame* from, ValueId id);

  // --- sequence.cpp: names of sequences and optionals
  using SequenceResult = Result<std::vector<ValueId>>;
  struct SequenceRow {
    std::string_view op;
    int first_opset;
    SequenceResult (Importer::*import)(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  };
  static std::span<const SequenceRow> sequence_rows();
  static const SequenceRow* sequence_row(const std::string& op);
  void add_sequence_node(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);
  ValueId add_sequence(Sequence sequence);
  /// Null for a tensor.
  const Sequence* sequence_of(ValueId id) const;
  /// The tensors of a List, or those appended to a Growing one, as values of the graph under construction.
  std::vector<ValueId> elements_of(const Sequence& sequence);
  /// All tensors along a new first axis; the builder fails where they have different shapes.
  ValueId stack_of(const Sequence& sequence);
  Result<Sequence> expect_sequence(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  /// The integer where it is known.
  Result<std::optional<int64_t>> position_of(const rt_onnx::NodeProto& node, ValueId id);
  Status position_error(const rt_onnx::NodeProto& node, ValueId id);
  static Status growing_error();
  SequenceResult sequence_construct(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult sequence_empty(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult sequence_length(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult sequence_at(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult sequence_insert(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult sequence_erase(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult concat_from_sequence(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult split_to_sequence(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult optional_of(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult optional_get(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);
  SequenceResult optional_has(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs);

  // --- sequence_control.cpp: sequences through branches and loops
  /// A tensor, or the tensors of a sequence, among the values that a body takes or returns.
  struct Part {
    bool is_tensor = true;
    Sequence::Kind kind = Sequence::Kind::List;
    size_t count = 1;
    bool operator==(const Part&) const = default;
  };
  using Packing = std::vector<Part>;
  /// Replaces sequences by their tensors.
  Packing unpack(std::vector<ValueId>& values);
  /// The inverse of unpack(): values correspond to its tensors.
  std::vector<ValueId> pack(std::span<const ValueId> values, const Packing& packing);
  struct SequenceLoop;
  void add_sequence_loop(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope,
                         const std::vector<ValueId>& inputs);
  /// Whether a body may be unrolled this many times.
  bool may_write_out(const rt_onnx::GraphProto& body, size_t times);
  std::vector<ValueId> unroll(const SequenceLoop& loop, int64_t trips);
  std::vector<ValueId> carry_lists(const SequenceLoop& loop);
  std::vector<ValueId> grow_lists(const SequenceLoop& loop);
  /// The sequence extended by what each iteration of a Loop appends, given as scan outputs.
  ValueId appended_to(ValueId initial, std::vector<ValueId> scans);
  std::vector<ValueId> map_list(const rt_onnx::GraphProto& body, const std::string& name, const Scope& scope,
                                const std::vector<ValueId>& inputs, size_t count);
  std::vector<ValueId> map_stack(const rt_onnx::GraphProto& body, const std::string& name, const Scope& scope,
                                 std::vector<ValueId> inputs);
  void add_sequence_map(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);

  // --- flex_attention.cpp
  /// The graph `which` of the node applied to scores or weights; x where it has none.
  ValueId modified_scores(const rt_onnx::NodeProto& node, std::string_view which, const std::string& name,
                          const Scope& scope, ValueId x);
  ValueId flex_attention(const rt_onnx::NodeProto& node, const std::string& name, const Scope& scope,
                         std::span<const ValueId> inputs);
  void add_flex_attention(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);

  Status read_header(const rt_onnx::ModelProto& model);
  /// Makes tensors of options_.constants, and binds the symbols that their shapes determine.
  void read_constants(rt_onnx::GraphProto& graph);
  void add_initializers(rt_onnx::GraphProto& graph, Scope& scope);
  /// Strings, as indices into a list of them.
  Result<ValueId> add_strings(const rt_onnx::TensorProto& proto);
  void add_inputs(const rt_onnx::GraphProto& graph, Scope& scope);
  void add_input(const rt_onnx::ValueInfoProto& input, Scope& scope);
  /// State besides the graph that importers of nodes in the current frame read and write.
  ImportNotes notes() {
    return {frame_->narrow_types, frame_->strings, frame_->positions, report_.warnings, report_.metadata,
            report_.detached,     options_,        model_inputs_,     report_.producer, *this};
  }
  void see_symbol(const std::string& symbol);
  std::vector<Dim> input_dims(const std::string& name, const rt_onnx::TensorShapeProto& shape);
  /// Finds inputs that one branch of an If alone reads, as a decoder's past. In a run that takes the other
  /// branch, callers give them any lengths, whatever they have in common with other inputs by name.
  void find_branch_inputs(const rt_onnx::GraphProto& graph);
  void check_options(const rt_onnx::GraphProto& graph);
  void add_outputs(const rt_onnx::GraphProto& graph, Scope& scope);
  void add_output(const std::string& name, ValueId id);
  /// Adds the tensors of a sequence, named after it.
  void add_sequence_output(const std::string& name, ValueId id);
  void check_declared(const rt_onnx::ValueInfoProto& output, ValueId id);
  void report_strings(const std::string& output, ValueId id);

  void add_nodes(const NodeList& nodes, Scope& scope);
  void add_node(const rt_onnx::NodeProto& node, int index, Scope& scope);
  void add_operator(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);
  // --- custom.cpp: operators of the application
  /// Notes that the option which says so has an effect.
  bool is_custom(const rt_onnx::NodeProto& node);
  void read_custom(const rt_onnx::GraphProto& graph);
  /// Reports options without effect.
  void check_custom();
  Status describe_custom(const rt_onnx::NodeProto& node, const Scope& scope, std::span<const ValueId> inputs,
                         op::CustomAttributes& attributes);
  void add_custom(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);

  void add_call(const rt_onnx::FunctionProto& function, const rt_onnx::NodeProto& node,
                const std::string& name, Scope& scope);
  // --- control.cpp
  using AddControl = void (Importer::*)(const rt_onnx::NodeProto& node, const std::string& name,
                                        Scope& scope);
  /// Null for an operator without bodies or sequences.
  static AddControl control_importer(const std::string& domain, const std::string& op);
  void add_if(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);
  /// A branch of an If whose condition is known only at run time.
  struct Branch {
    std::unique_ptr<Frame> frame;  ///< null: it is dropped, and a run that takes it fails
    std::vector<ValueId> outputs;
    Packing packing;
    std::vector<UnsupportedNode> refused;
  };
  /// then_branch, else_branch
  using BranchGraphs = std::span<const rt_onnx::GraphProto* const, 2>;
  std::vector<ValueId> choose(ValueId condition, const Write& then, const Write& otherwise) override;
  std::vector<ValueId> repeat(ValueId trips, std::vector<ValueId> carried, const Write& write) override;
  /// The body's outputs, written into the current frame.
  std::vector<ValueId> write_body(const Write& write, std::span<const ValueId> inputs);
  /// False after an error that concerns both branches.
  bool add_branch(const rt_onnx::GraphProto& graph, const std::string& name, Scope& scope, Branch& branch);
  /// A branch with invalid shapes does not block the other: a run that takes it fails with `refusal`. False
  /// where both are invalid, which is reported.
  bool drop_refused(std::array<Branch, 2>& branches, const std::string& name, std::string& refusal);
  /// Of two branches of which one squeezes a value and the other passes it on, which gives another rank (how
  /// PyTorch exports x.squeeze(axis)), drops the one that passes it on.
  void drop_unsqueezed(BranchGraphs graphs, std::array<Branch, 2>& branches, const std::string& name,
                       std::string& refusal);
  /// Which of two branches with other types or ranks is kept, true for then_branch, and why: the one that
  /// extents lead to, or the only one that passes values on as they are. nullopt: neither says it.
  std::optional<bool> kept_branch(BranchGraphs graphs, ValueId condition, std::string& reason);
  /// Gives results of one element the lower rank of both; of other types and ranks, drops the branch that is
  /// not kept, and sets `refusal`. Returns why neither can be done; else empty.
  std::string fit_branches(BranchGraphs graphs, std::array<Branch, 2>& branches, const std::string& name,
                           ValueId condition, std::string& refusal);
  /// Both bodies take every value that either captures; that of a refused branch is a copy of the other.
  Node make_if(std::array<Branch, 2>& branches, const std::string& name, ValueId condition,
               const std::string& refusal);
  void add_loop(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);
  void add_scan(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope);
  /// Adds the nodes of an attribute's graph to the current frame; returns its outputs, or none after a
  /// problem. inputs: for the graph's own inputs.
  std::vector<ValueId> add_graph(const rt_onnx::GraphProto& graph, const std::string& name,
                                 const Scope& scope, std::span<const ValueId> inputs);
  /// Emits a Loop; returns its results, or none after a problem.
  std::vector<ValueId> emit_loop(LoopParts parts, const WriteBody& write);
  /// Single elements whose rank an iteration changes keep theirs; one that no node of the body reads takes
  /// that of the body's result, which changes `parts`, so that the body is imported again (true).
  /// before, after: the body's carried values.
  bool fit_carried(LoopParts& parts, Frame& body, std::span<const ValueId> before, std::span<ValueId> after,
                   Varying& varying);
  std::vector<ValueId> emit_scan(const ScanParts& parts, const rt_onnx::GraphProto& body, const Scope& scope);
  std::vector<ValueId> emit_batched_scan(const ScanParts& parts, ValueId lengths,
                                         const rt_onnx::GraphProto& body, const Scope& scope);
  bool check_control(const rt_onnx::NodeProto& node, const std::string& name, const Scope& scope,
                     std::initializer_list<std::string_view> graphs, std::vector<ValueId>& inputs);
  /// Ends the import of a node: binds its results, or reports the builder's failure.
  void finish_control(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope,
                      std::vector<ValueId> outputs, size_t first_new);
  static int64_t opset_of(const Scope& scope);
  /// The node's inputs; false when one is missing (a problem) or could not be imported (reported already).
  bool resolve_inputs(const rt_onnx::NodeProto& node, const std::string& name, const Scope& scope,
                      std::vector<ValueId>& inputs);
  void bind(Scope& scope, const std::string& name, ValueId id);
  void bind_outputs(const rt_onnx::NodeProto& node, Scope& scope, std::span<const ValueId> values,
                    size_t first_new);
  void bind_nothing(const rt_onnx::NodeProto& node, Scope& scope) { bind_outputs(node, scope, {}, 0); }

  /// Nesting depth of functions and bodies.
  static constexpr int kMaxDepth = 32;

  /// Records the ONNX type of a value that is stored in a wider one.
  void note_type(ValueId id, int onnx_type);
  void problem(std::string message);
  void report_unsupported(const rt_onnx::NodeProto& node, const std::string& name, int64_t opset,
                          std::span<const ValueId> inputs, const std::string& message, bool refused = false);
  /// Reports an input or initializer that cannot be represented.
  void report_value(std::string_view role, const std::string& name, const std::string& message);
  /// Moves the text after the last "; " of the message to `help`.
  void add_unsupported(UnsupportedNode entry, const std::string& message);
  Status summary() const;

  compiler::Builder& builder() { return frame_->builder; }
  size_t troubles() const { return problem_count_ + report_.unsupported.size(); }

  Frame root_;
  Frame* frame_ = &root_;  ///< under construction
  ImportOptions options_;
  ImportReport& report_;
  InitializerReader initializers_;
  Opsets opsets_;
  std::map<std::string, const rt_onnx::FunctionProto*> functions_;
  std::vector<std::string> problems_;
  size_t problem_count_ = 0;
  size_t nodes_ = 0;
  Status stopped_;                         ///< by options_.progress
  std::vector<std::string> symbols_seen_;  ///< in the order of the inputs
  std::set<std::string> symbols_known_;    ///< the same
  std::vector<std::string> model_inputs_;
  std::vector<Sequence> sequences_;
  size_t sequence_entries_ = 0;
  size_t written_out_ = 0;  ///< unrolled bodies
  /// By name, the symbols of inputs that one branch alone reads: what its lengths are called apart from
  /// others.
  std::map<std::string, std::map<std::string, std::string>> branch_symbols_;
  bool opened_batch_ = false;  ///< an input's first axis of 1 became `batch`
  std::unordered_set<ValueId> outputs_;
  /// With operators of the application: types of the model's values, by name; the options that have an
  /// effect.
  std::map<std::string, const rt_onnx::TypeProto*> declared_;
  std::set<std::string> custom_seen_;
  /// By name of an output: the number of the last copy of it, or 1.
  std::unordered_map<std::string, int> output_names_;
};

}  // namespace librt::onnx
