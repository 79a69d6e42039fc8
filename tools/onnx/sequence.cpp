// Operators on sequences and optionals: evaluated during import, on lists of values.
//
// A sequence whose length is unknown during import has elements of one shape and is stored as a stack of
// them, so that its length is an extent. Loops over sequences are in sequence_control.cpp.
#include <algorithm>
#include <limits>

#include "runtime/core/element.h"
#include "tools/onnx/attribute.h"
#include "tools/onnx/importer.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {

namespace {

using Kind = Sequence::Kind;

/// Whether the list is not empty and has one type and rank, with no known extents that differ; dynamic ones
/// are compared at run time.
bool may_stack(const Emitter& emit, const std::vector<ValueId>& values) {
  return !values.empty() && std::all_of(values.begin(), values.end(), [&](ValueId id) {
    const Value &value = emit.value(id), &first = emit.value(values[0]);
    return value.dtype == first.dtype && std::equal(value.dims.begin(), value.dims.end(), first.dims.begin(),
                                                    first.dims.end(), [](const Dim& a, const Dim& b) {
                                                      return !a.is_known() || !b.is_known() ||
                                                             a.extent == b.extent;
                                                    });
  });
}

}  // namespace

// --- the lists

ValueId Importer::add_sequence(Sequence sequence) {
  if (sequence.frame == nullptr) sequence.frame = frame_;
  // Lists are copied at every change, so the total number of their entries is bounded.
  constexpr size_t kMostEntries = size_t{1} << 26;
  sequence_entries_ += sequence.elements.size();
  if (sequence_entries_ > kMostEntries) {
    builder().fail(unsupported("the model has too many changes of long sequences"));
    sequence.elements.clear();
  }
  sequences_.push_back(std::move(sequence));
  return kFirstSequence + static_cast<ValueId>(sequences_.size() - 1);
}

const Sequence* Importer::sequence_of(ValueId id) const {
  const size_t index = id - kFirstSequence;
  return is_sequence(id) && index < sequences_.size() ? &sequences_[index] : nullptr;
}

std::vector<ValueId> Importer::elements_of(const Sequence& sequence) {
  std::vector<ValueId> elements;
  const auto* from = static_cast<const Frame*>(sequence.frame);
  for (const ValueId id : sequence.elements) elements.push_back(within(*frame_, from, id));
  return elements;
}

ValueId Importer::stack_of(const Sequence& sequence) {
  const auto* from = static_cast<const Frame*>(sequence.frame);
  if (sequence.kind == Kind::Stacked) return within(*frame_, from, sequence.stack);
  std::vector<ValueId> parts = elements_of(sequence);
  if (sequence.kind != Kind::List || !may_stack(builder(), parts)) {
    builder().fail(unsupported("its tensors have different shapes, so they cannot be stacked"));
    return kNoValue;
  }
  const int axis = 0;
  for (ValueId& part : parts) part = unsqueeze(builder(), part, {&axis, 1});
  return concat(builder(), parts, 0);
}

Result<std::optional<int64_t>> Importer::position_of(const rt_onnx::NodeProto& node, ValueId id) {
  if (id == kNoValue || is_sequence(id)) return invalid_model(node.op_type(), ": expected a position");
  const auto known = builder().known_value(id);
  if (!known) return std::optional<int64_t>();
  if (known->info.elements() != 1 || is_float(known->info.dtype))
    return invalid_model(node.op_type(), ": expected a position, found ", known->info);
  return std::optional(load_integer(known->data, known->info.dtype, 0));
}

// --- operators

Importer::SequenceResult Importer::sequence_construct(const rt_onnx::NodeProto&,
                                                      std::span<const ValueId> inputs) {
  for (const ValueId id : inputs)
    if (id == kNoValue || is_sequence(id) || builder().value(id).dtype != builder().value(inputs[0]).dtype)
      return invalid_model("a sequence holds tensors of one type");
  return std::vector{add_sequence({.kind = Kind::List, .elements = {inputs.begin(), inputs.end()}})};
}

Importer::SequenceResult Importer::sequence_empty(const rt_onnx::NodeProto&, std::span<const ValueId>) {
  return std::vector{add_sequence({.kind = Kind::List})};
}

Importer::SequenceResult Importer::sequence_length(const rt_onnx::NodeProto& node,
                                                   std::span<const ValueId> inputs) {
  RT_ASSIGN(const Sequence sequence, expect_sequence(node, inputs));
  if (sequence.kind == Kind::Stacked)
    return std::vector{reshape_to(builder(), dims_product(builder(), stack_of(sequence), 0, 1), {})};
  if (sequence.kind == Kind::Growing) return growing_error();
  const auto count = static_cast<int64_t>(sequence.elements.size());
  return std::vector{reshape_to(builder(), builder().ints({&count, 1}), {})};
}

Importer::SequenceResult Importer::sequence_at(const rt_onnx::NodeProto& node,
                                               std::span<const ValueId> inputs) {
  RT_ASSIGN(const Sequence sequence, expect_sequence(node, inputs));
  if (inputs.size() != 2) return invalid_model("expected a sequence and a position");
  if (sequence.kind == Kind::Growing) return growing_error();
  RT_ASSIGN(std::optional<int64_t> at, position_of(node, inputs[1]));
  const auto count = static_cast<int64_t>(sequence.elements.size());
  if (sequence.kind == Kind::List && at) {
    if (*at < -count || *at >= count)
      return invalid_model("position ", *at, " is outside a sequence of ", count, " tensors");
    const auto* from = static_cast<const Frame*>(sequence.frame);
    return std::vector{
        within(*frame_, from, sequence.elements[static_cast<size_t>(*at < 0 ? *at + count : *at)])};
  }
  if (sequence.kind == Kind::List && !may_stack(builder(), elements_of(sequence)))
    return position_error(node, inputs[1]);
  const ValueId index = reshape_to(builder(), as_vector(builder(), inputs[1]), {});
  return std::vector{take(builder(), stack_of(sequence), index, 0)};
}

Importer::SequenceResult Importer::sequence_insert(const rt_onnx::NodeProto& node,
                                                   std::span<const ValueId> inputs) {
  RT_ASSIGN(Sequence sequence, expect_sequence(node, inputs));
  if (inputs.size() < 2 || is_sequence(inputs[1])) return invalid_model("expected a sequence and a tensor");
  const bool at_end = inputs.size() < 3 || inputs[2] == kNoValue;
  if (sequence.kind == Kind::Growing && (!at_end || sequence.frame != frame_)) return growing_error();
  if (sequence.kind == Kind::Stacked) {
    if (!at_end) return unsupported("the sequence's length is not known, so only its end can take a tensor");
    const int axis = 0;
    const ValueId parts[] = {stack_of(sequence), unsqueeze(builder(), inputs[1], {&axis, 1})};
    return std::vector{add_sequence({.kind = Kind::Stacked, .stack = concat(builder(), parts, 0)})};
  }
  std::vector<ValueId> elements = elements_of(sequence);
  if (!elements.empty() && builder().value(elements[0]).dtype != builder().value(inputs[1]).dtype)
    return invalid_model("a sequence holds tensors of one type");
  auto at = static_cast<int64_t>(elements.size());
  if (!at_end) {
    RT_ASSIGN(const std::optional<int64_t> given, position_of(node, inputs[2]));
    if (!given) return position_error(node, inputs[2]);
    if (*given < -at || *given > at)
      return invalid_model("position ", *given, " is outside a sequence of ", at, " tensors");
    at = *given < 0 ? *given + at : *given;
  }
  elements.insert(elements.begin() + at, inputs[1]);
  sequence.elements = std::move(elements);
  sequence.frame = frame_;
  return std::vector{add_sequence(std::move(sequence))};
}

Importer::SequenceResult Importer::sequence_erase(const rt_onnx::NodeProto& node,
                                                  std::span<const ValueId> inputs) {
  RT_ASSIGN(Sequence sequence, expect_sequence(node, inputs));
  if (sequence.kind == Kind::Growing) return growing_error();
  int64_t at = -1;
  if (inputs.size() > 1 && inputs[1] != kNoValue) {
    RT_ASSIGN(const std::optional<int64_t> given, position_of(node, inputs[1]));
    if (!given) return position_error(node, inputs[1]);
    at = *given;
  }
  if (sequence.kind == Kind::Stacked) {
    if (at != -1 && at != 0)
      return unsupported("the sequence's length is not known, so only its ends can be taken off");
    const ValueId rest = slice(builder(), stack_of(sequence), 0, at == 0 ? 1 : 0,
                               at == 0 ? std::numeric_limits<int64_t>::max() : -1);
    return std::vector{add_sequence({.kind = Kind::Stacked, .stack = rest})};
  }
  const auto count = static_cast<int64_t>(sequence.elements.size());
  if (at < -count || at >= count)
    return invalid_model("position ", at, " is outside a sequence of ", count, " tensors");
  sequence.elements.erase(sequence.elements.begin() + (at < 0 ? at + count : at));
  return std::vector{add_sequence(std::move(sequence))};
}

Importer::SequenceResult Importer::concat_from_sequence(const rt_onnx::NodeProto& node,
                                                        std::span<const ValueId> inputs) {
  RT_ASSIGN(const Sequence sequence, expect_sequence(node, inputs));
  if (sequence.kind == Kind::Growing) return growing_error();
  const bool adds_axis = integer_of(node, "new_axis", 0) != 0;
  const bool stacked = sequence.kind == Kind::Stacked;
  const std::vector<ValueId> parts = stacked ? std::vector{stack_of(sequence)} : elements_of(sequence);
  if (parts.empty()) return unsupported("the sequence is empty, so the shape of the result is unknown");
  const int rank = builder().value(parts[0]).rank() - (stacked ? 1 : 0) + (adds_axis ? 1 : 0);
  const auto axis = normalized_axis(integer_of(node, "axis", 0), rank);
  if (!axis) return invalid_model("axis ", integer_of(node, "axis", 0), " is outside the rank ", rank);
  if (!stacked) {
    std::vector<ValueId> joined = parts;
    if (adds_axis)
      for (ValueId& part : joined) part = unsqueeze(builder(), part, {&*axis, 1});
    return std::vector{joined.size() == 1 ? joined[0] : concat(builder(), joined, *axis)};
  }
  const ValueId moved = move_first_axis(builder(), parts[0], *axis);
  if (adds_axis || moved == kNoValue) return std::vector{moved};
  // Merges the stack axis with the axis of concatenation.
  std::vector<ValueId> extents;
  for (int i = 0; i <= rank; ++i)
    if (i != *axis + 1) extents.push_back(dims_product(builder(), moved, i, i == *axis ? i + 2 : i + 1));
  return std::vector{builder().reshape(moved, concat_values(builder(), std::move(extents)))};
}

Importer::SequenceResult Importer::split_to_sequence(const rt_onnx::NodeProto& node,
                                                     std::span<const ValueId> inputs) {
  if (inputs.empty() || inputs[0] == kNoValue || std::any_of(inputs.begin(), inputs.end(), is_sequence))
    return invalid_model("expected a tensor");
  const ValueId x = inputs[0];
  const int rank = builder().value(x).rank();
  const auto axis = normalized_axis(integer_of(node, "axis", 0), rank);
  if (!axis) return invalid_model("axis ", integer_of(node, "axis", 0), " is outside the rank ", rank);
  const bool is_given = inputs.size() > 1 && inputs[1] != kNoValue;
  const bool keeps = is_given || integer_of(node, "keepdims", 1) != 0;
  const int64_t extent = builder().value(x).dims[static_cast<size_t>(*axis)].extent;
  std::vector<int64_t> sizes;
  bool is_scalar = true;
  if (is_given) {
    is_scalar = builder().value(inputs[1]).rank() == 0;
    const auto known = builder().known_value(inputs[1]);
    if (!known && !is_scalar && builder().value(inputs[1]).dims[0].is_known())
      return std::vector{
          add_sequence({.kind = Kind::List,
                        .elements = split_by_value(builder(), x, *axis, as_vector(builder(), inputs[1]),
                                                   builder().value(inputs[1]).dims[0].extent)})};
    if (!known) return position_error(node, inputs[1]);
    for (int64_t i = 0; i < known->info.elements(); ++i)
      sizes.push_back(load_integer(known->data, known->info.dtype, i));
  } else {
    sizes = {1};
  }
  if (is_scalar && sizes[0] < 1) return invalid_model("split: expected a size above 0, found ", sizes[0]);
  constexpr int64_t kMostParts = 4096;
  if (is_scalar && (extent < 0 || extent > kMostParts * sizes[0])) {
    // The number of parts is dynamic or large; they have one shape if each has extent 1.
    if (sizes[0] != 1)
      return unsupported("parts of ", sizes[0], " along an axis of ", extent < 0 ? "open" : "large",
                         " extent, the last of which may be smaller; fix the extent with --dim");
    std::vector<int64_t> permutation{*axis};
    for (int i = 0; i < rank; ++i)
      if (i != *axis) permutation.push_back(i);
    ValueId stack = *axis == 0 ? x : builder().transpose(x, std::move(permutation));
    const int kept = *axis + 1;
    if (keeps) stack = unsqueeze(builder(), stack, {&kept, 1});
    return std::vector{add_sequence({.kind = Kind::Stacked, .stack = stack})};
  }
  if (is_scalar) {
    const int64_t size = sizes[0];
    sizes.clear();
    for (int64_t at = 0; at < extent; at += size) sizes.push_back(std::min(size, extent - at));
  }
  Sequence parts{.kind = Kind::List};
  int64_t at = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || at > std::numeric_limits<int64_t>::max() - size)
      return invalid_model("split: a size below 0, or sizes that are too large");
    const ValueId part = slice(builder(), x, *axis, at, at + size);
    parts.elements.push_back(keeps ? part : squeeze(builder(), part, {&*axis, 1}));
    at += size;
  }
  if (extent >= 0 && at != extent)
    return invalid_model("split: the sizes add up to ", at, ", the axis has ", extent);
  return std::vector{add_sequence(std::move(parts))};
}

Importer::SequenceResult Importer::optional_of(const rt_onnx::NodeProto&, std::span<const ValueId> inputs) {
  if (!inputs.empty() && inputs[0] != kNoValue) return std::vector{inputs[0]};
  return std::vector{add_sequence({.kind = Kind::Nothing})};
}

Importer::SequenceResult Importer::optional_get(const rt_onnx::NodeProto&, std::span<const ValueId> inputs) {
  const Sequence* sequence = inputs.empty() ? nullptr : sequence_of(inputs[0]);
  if (inputs.size() != 1 || inputs[0] == kNoValue || (sequence != nullptr && sequence->kind == Kind::Nothing))
    return invalid_model("the optional holds nothing");
  return std::vector{inputs[0]};
}

Importer::SequenceResult Importer::optional_has(const rt_onnx::NodeProto&, std::span<const ValueId> inputs) {
  const Sequence* sequence = inputs.empty() ? nullptr : sequence_of(inputs[0]);
  const bool has =
      !inputs.empty() && inputs[0] != kNoValue && (sequence == nullptr || sequence->kind != Kind::Nothing);
  return std::vector{builder().scalar(has ? 1 : 0, DType::Bool)};
}

// --- shared

Status Importer::growing_error() {
  return unsupported(
      "inside a Loop that appends to a sequence, how many tensors it holds is not known; export the model "
      "with a number of iterations that is known, or with tensors instead of lists");
}

Status Importer::position_error(const rt_onnx::NodeProto& node, ValueId id) {
  NodeContext context(builder(), notes(), node, 0, {id});
  return context.not_known(0, node.op_type() == "SplitToSequence" ? "split" : "the position");
}

Result<Sequence> Importer::expect_sequence(const rt_onnx::NodeProto& node, std::span<const ValueId> inputs) {
  const Sequence* sequence = inputs.empty() ? nullptr : sequence_of(inputs[0]);
  if (sequence == nullptr || sequence->kind == Kind::Nothing)
    return invalid_model(node.op_type(), ": expected a sequence as its first input");
  return *sequence;
}

std::span<const Importer::SequenceRow> Importer::sequence_rows() {
  static constexpr SequenceRow kRows[] = {
      {"SequenceConstruct", 11, &Importer::sequence_construct},
      {"SequenceEmpty", 11, &Importer::sequence_empty},
      {"SequenceLength", 11, &Importer::sequence_length},
      {"SequenceAt", 11, &Importer::sequence_at},
      {"SequenceInsert", 11, &Importer::sequence_insert},
      {"SequenceErase", 11, &Importer::sequence_erase},
      {"ConcatFromSequence", 11, &Importer::concat_from_sequence},
      {"SplitToSequence", 11, &Importer::split_to_sequence},
      {"Optional", 15, &Importer::optional_of},
      {"OptionalGetElement", 15, &Importer::optional_get},
      {"OptionalHasElement", 15, &Importer::optional_has},
  };
  return kRows;
}

const Importer::SequenceRow* Importer::sequence_row(const std::string& op) {
  const auto rows = sequence_rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const SequenceRow& row) { return row.op == op; });
  return found == rows.end() ? nullptr : &*found;
}

void Importer::add_sequence_node(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope) {
  std::vector<ValueId> inputs;
  if (!check_control(node, name, scope, {}, inputs)) return bind_nothing(node, scope);
  builder().set_scope(name);
  const size_t first_new = builder().graph().values.size();
  SequenceResult result = (this->*sequence_row(node.op_type())->import)(node, inputs);
  if (!result.ok()) builder().fail(result.status());
  finish_control(node, name, scope, result.ok() ? *std::move(result) : std::vector<ValueId>(), first_new);
}

}  // namespace librt::onnx
