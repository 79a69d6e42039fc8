// Sequences through branches, loops and SequenceMap.
//
// A Loop with a known trip count is unrolled, so that its sequences stay lists. Otherwise lists of constant
// length are carried as that many tensors; those that a Loop appends to become scan outputs: list
// comprehensions with torch.stack or torch.cat are exported like this.
#include <algorithm>

#include "runtime/core/element.h"
#include "tools/onnx/attribute.h"
#include "tools/onnx/importer.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {

namespace {

constexpr int64_t kMostWrittenOut = 1024;

/// Merges the first two axes.
ValueId merge_first_axes(Emitter& emit, ValueId x) {
  if (x == kNoValue) return x;
  std::vector<ValueId> extents{dims_product(emit, x, 0, 2)};
  for (int axis = 2; axis < emit.value(x).rank(); ++axis)
    extents.push_back(dims_product(emit, x, axis, axis + 1));
  return emit.reshape(x, concat_values(emit, std::move(extents)));
}

}  // namespace

Importer::Packing Importer::unpack(std::vector<ValueId>& values) {
  Packing packing;
  std::vector<ValueId> tensors;
  for (const ValueId id : values) {
    if (!is_sequence(id)) {
      packing.push_back({});
      tensors.push_back(id);
      continue;
    }
    const Sequence sequence = *sequence_of(id);
    std::vector<ValueId> own = elements_of(sequence);
    if (sequence.kind == Sequence::Kind::Stacked) own = {stack_of(sequence)};
    packing.push_back({.is_tensor = false, .kind = sequence.kind, .count = own.size()});
    tensors.insert(tensors.end(), own.begin(), own.end());
  }
  values = std::move(tensors);
  return packing;
}

std::vector<ValueId> Importer::pack(std::span<const ValueId> values, const Packing& packing) {
  std::vector<ValueId> packed;
  size_t next = 0;
  for (const Part& part : packing) {
    if (next + part.count > values.size()) return {};  // after a failure
    const auto own = values.subspan(next, part.count);
    next += part.count;
    if (part.is_tensor)
      packed.push_back(own[0]);
    else if (part.kind == Sequence::Kind::Stacked)
      packed.push_back(add_sequence({.kind = part.kind, .stack = own[0]}));
    else
      packed.push_back(add_sequence({.kind = part.kind, .elements = {own.begin(), own.end()}}));
  }
  packed.insert(packed.end(), values.begin() + static_cast<int64_t>(next), values.end());
  return packed;
}

void Importer::add_sequence_output(const std::string& name, ValueId id) {
  const Sequence sequence = *sequence_of(id);
  if (sequence.kind == Sequence::Kind::Nothing)
    return problem(text("output '", name, "' is an optional that holds nothing"));
  if (sequence.kind == Sequence::Kind::Stacked) {
    report_.warnings.push_back(
        text("output '", name,
             "' is a sequence of tensors of one shape: it becomes one output, with the "
             "tensors along a new first axis"));
    return add_output(name, stack_of(sequence));
  }
  const std::vector<ValueId> elements = elements_of(sequence);
  report_.warnings.push_back(text("output '", name, "' is a sequence of ", elements.size(),
                                  " tensors, which become separate outputs: ", name, "_0, .."));
  for (size_t i = 0; i < elements.size(); ++i) add_output(text(name, '_', i), elements[i]);
}

// --- Loop

struct Importer::SequenceLoop {
  const std::string& name;
  const Scope& scope;
  const rt_onnx::GraphProto& body;
  ValueId trips = kNoValue, condition = kNoValue;
  std::vector<ValueId> carried;
  int iteration_rank = 0, condition_rank = 0;

  LoopParts parts() const {
    return {.name = name,
            .trips = trips,
            .condition = condition,
            .carried = {},
            .iteration_rank = iteration_rank,
            .condition_rank = condition_rank};
  }
};

bool Importer::may_write_out(const rt_onnx::GraphProto& body, size_t times) {
  constexpr size_t kMostBytes = size_t{256} << 20;
  written_out_ += times;  // a body without nodes takes time as well
  return written_out_ <= options_.max_nodes && body.ByteSizeLong() <= kMostBytes / std::max<size_t>(times, 1);
}

std::vector<ValueId> Importer::unroll(const SequenceLoop& loop, int64_t trips) {
  std::vector<ValueId> carried = loop.carried;
  std::vector<Sequence> scanned(static_cast<size_t>(loop.body.output_size()) - 1 - carried.size());
  for (int64_t i = 0; i < trips; ++i) {
    builder().set_scope(loop.name);
    const std::vector<int64_t> ones(static_cast<size_t>(loop.iteration_rank), 1);
    std::vector<ValueId> inputs{
        builder().reshape(builder().ints({&i, 1}), builder().ints(ones)),
        builder().reshape(builder().scalar(1, DType::Bool),
                          builder().ints(std::vector<int64_t>(static_cast<size_t>(loop.condition_rank), 1)))};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<ValueId> results = add_graph(loop.body, text(loop.name, '/', i), loop.scope, inputs);
    if (results.empty() || !builder().status().ok()) return {};
    const bool tensors =
        !is_sequence(results[0]) &&
        std::none_of(results.begin() + 1 + static_cast<int64_t>(carried.size()), results.end(), is_sequence);
    if (!tensors) {
      builder().fail(invalid_model("its body gives a sequence where a tensor is expected"));
      return {};
    }
    const auto goes_on = builder().known_value(results[0]);
    if (!goes_on || goes_on->info.elements() != 1) {
      builder().fail(unsupported("a Loop with sequences whose end depends on data"));
      return {};
    }
    const auto own = results.begin() + 1;
    const auto scans = own + static_cast<int64_t>(carried.size());
    carried.assign(own, scans);
    for (size_t s = 0; s < scanned.size(); ++s) scanned[s].elements.push_back(scans[static_cast<int64_t>(s)]);
    if (load_element(goes_on->data, goes_on->info.dtype, 0) == 0) break;
  }
  builder().set_scope(loop.name);
  for (Sequence& scan : scanned) {
    scan.frame = frame_;
    carried.push_back(stack_of(scan));
  }
  return carried;
}

std::vector<ValueId> Importer::carry_lists(const SequenceLoop& loop) {
  LoopParts parts = loop.parts();
  parts.carried = loop.carried;
  const Packing packing = unpack(parts.carried);
  std::vector<ValueId> outputs = emit_loop(parts, [&](std::span<const ValueId> own) -> std::vector<ValueId> {
    std::vector<ValueId> inputs = pack(own.subspan(2), packing);
    inputs.insert(inputs.begin(), own.begin(), own.begin() + 2);
    std::vector<ValueId> results = add_graph(loop.body, loop.name, loop.scope, inputs);
    if (results.empty()) return {};
    const auto scans = results.begin() + 1 + static_cast<int64_t>(loop.carried.size());
    std::vector<ValueId> next(results.begin() + 1, scans), all{results[0]};
    if (unpack(next) != packing) {
      builder().fail(unsupported("a sequence's length changes from one iteration to the next"));
      return {};
    }
    all.insert(all.end(), next.begin(), next.end());
    all.insert(all.end(), scans, results.end());
    return all;
  });
  return outputs.empty() ? outputs : pack(outputs, packing);
}

std::vector<ValueId> Importer::grow_lists(const SequenceLoop& loop) {
  LoopParts parts = loop.parts();
  for (const ValueId id : loop.carried)
    if (!is_sequence(id)) parts.carried.push_back(id);
  std::vector<size_t> appended(loop.carried.size());
  const std::vector<ValueId> values =
      emit_loop(parts, [&](std::span<const ValueId> own) -> std::vector<ValueId> {
        std::vector<ValueId> inputs(own.begin(), own.begin() + 2);
        size_t tensors = 2;
        for (size_t i = 0; i < loop.carried.size(); ++i)
          inputs.push_back(is_sequence(loop.carried[i])
                               ? add_sequence({.kind = Sequence::Kind::Growing, .carried = i})
                               : own[tensors++]);
        const std::vector<ValueId> results = add_graph(loop.body, loop.name, loop.scope, inputs);
        if (results.empty()) return {};
        std::vector<ValueId> all{results[0]}, grown;
        for (size_t i = 0; i < loop.carried.size(); ++i) {
          const Sequence* sequence = sequence_of(results[1 + i]);
          if (!is_sequence(loop.carried[i])) {
            all.push_back(results[1 + i]);
            continue;
          }
          if (sequence == nullptr || sequence->kind != Sequence::Kind::Growing || sequence->carried != i ||
              sequence->frame != frame_) {
            builder().fail(growing_error());
            return {};
          }
          appended[i] = sequence->elements.size();
          grown.insert(grown.end(), sequence->elements.begin(), sequence->elements.end());
        }
        all.insert(all.end(), grown.begin(), grown.end());
        all.insert(all.end(), results.begin() + 1 + static_cast<int64_t>(loop.carried.size()), results.end());
        return all;
      });
  if (values.empty()) return {};
  builder().set_scope(loop.name + "/stack");
  std::vector<ValueId> outputs;
  size_t tensor = 0, scan = parts.carried.size();
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    if (!is_sequence(loop.carried[i])) {
      outputs.push_back(values[tensor++]);
      continue;
    }
    const std::vector<ValueId> own(values.begin() + static_cast<int64_t>(scan),
                                   values.begin() + static_cast<int64_t>(scan + appended[i]));
    scan += appended[i];
    outputs.push_back(appended_to(loop.carried[i], own));
  }
  outputs.insert(outputs.end(), values.begin() + static_cast<int64_t>(scan), values.end());
  return outputs;
}

ValueId Importer::appended_to(ValueId initial, std::vector<ValueId> scans) {
  if (scans.empty()) return initial;
  ValueId stack = scans[0];
  if (scans.size() > 1) {  // in the order in which each iteration appends them
    const int axis = 1;
    for (ValueId& scan : scans) scan = unsqueeze(builder(), scan, {&axis, 1});
    stack = merge_first_axes(builder(), concat(builder(), scans, 1));
  }
  const Sequence before = *sequence_of(initial);
  if (before.kind == Sequence::Kind::Stacked || !before.elements.empty()) {
    const ValueId parts[] = {stack_of(before), stack};
    stack = concat(builder(), parts, 0);
  }
  return add_sequence({.kind = Sequence::Kind::Stacked, .stack = stack});
}

void Importer::add_sequence_loop(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope,
                                 const std::vector<ValueId>& inputs) {
  const rt_onnx::GraphProto& body = find_attribute(node, "body")->g();
  SequenceLoop loop{.name = name,
                    .scope = scope,
                    .body = body,
                    .trips = inputs[0],
                    .condition = inputs[1],
                    .carried = {inputs.begin() + 2, inputs.end()}};
  const bool absent = std::count(loop.carried.begin(), loop.carried.end(), kNoValue) > 0;
  if (absent || static_cast<size_t>(body.input_size()) != inputs.size() ||
      static_cast<size_t>(body.output_size()) < inputs.size() - 1 || is_sequence(inputs[0]) ||
      is_sequence(inputs[1])) {
    problem(text("node '", name, "' (Loop): ", loop.carried.size(), " carried values do not fit its body"));
    return bind_nothing(node, scope);
  }
  loop.iteration_rank = body.input(0).type().tensor_type().shape().dim_size();
  loop.condition_rank = body.input(1).type().tensor_type().shape().dim_size();
  const size_t first_new = builder().graph().values.size();
  const auto number = [&](ValueId id) -> std::optional<int64_t> {
    const auto known = id == kNoValue ? std::nullopt : builder().known_value(id);
    if (!known || known->info.elements() != 1) return std::nullopt;
    return load_integer(known->data, known->info.dtype, 0);
  };
  const std::optional<int64_t> goes = loop.condition == kNoValue ? 1 : number(loop.condition);
  const std::optional<int64_t> trips = goes == 0 ? 0 : number(loop.trips);
  if (trips && goes && *trips <= kMostWrittenOut &&
      may_write_out(body, static_cast<size_t>(std::max<int64_t>(*trips, 0))))
    return finish_control(node, name, scope, unroll(loop, *trips), first_new);
  const bool has_lists = std::any_of(loop.carried.begin(), loop.carried.end(), [&](ValueId id) {
    const Sequence* sequence = sequence_of(id);
    return sequence != nullptr && sequence->kind == Sequence::Kind::List && !sequence->elements.empty();
  });
  if (has_lists) {
    const auto problems = problems_.size(), count = problem_count_, refused = report_.unsupported.size();
    std::vector<ValueId> outputs = carry_lists(loop);
    if (!outputs.empty() && builder().status().ok())
      return finish_control(node, name, scope, std::move(outputs), first_new);
    // The lists change their lengths; grow_lists() finds the discarded problems again.
    (void)builder().take_failure();
    problems_.resize(problems);
    problem_count_ = count;
    report_.unsupported.resize(refused);
  }
  finish_control(node, name, scope, grow_lists(loop), first_new);
}

// --- SequenceMap

void Importer::add_sequence_map(const rt_onnx::NodeProto& node, const std::string& name, Scope& scope) {
  std::vector<ValueId> inputs;
  if (!check_control(node, name, scope, {"body"}, inputs)) return bind_nothing(node, scope);
  const rt_onnx::GraphProto& body = find_attribute(node, "body")->g();
  const size_t first_new = builder().graph().values.size();
  const auto first = expect_sequence(node, inputs);
  std::vector<ValueId> outputs;
  if (!first.ok())
    builder().fail(first.status());
  else if (first->kind == Sequence::Kind::Growing)
    builder().fail(growing_error());
  else if (first->kind == Sequence::Kind::Stacked)
    outputs = map_stack(body, name, scope, inputs);
  else
    outputs = map_list(body, name, scope, inputs, first->elements.size());
  finish_control(node, name, scope, std::move(outputs), first_new);
}

std::vector<ValueId> Importer::map_list(const rt_onnx::GraphProto& body, const std::string& name,
                                        const Scope& scope, const std::vector<ValueId>& inputs,
                                        size_t count) {
  std::vector<Sequence> made(static_cast<size_t>(body.output_size()));
  if (!may_write_out(body, count)) {
    builder().fail(unsupported("its body is too large to be unrolled for each of ", count, " tensors"));
    return {};
  }
  for (size_t i = 0; i < count; ++i) {
    std::vector<ValueId> own;
    for (const ValueId id : inputs) {
      const Sequence* sequence = sequence_of(id);
      if (sequence == nullptr) {
        own.push_back(id);
      } else if (sequence->kind == Sequence::Kind::List && sequence->elements.size() == count) {
        own.push_back(elements_of(*sequence)[i]);
      } else {
        builder().fail(invalid_model("its sequences have different lengths"));
        return {};
      }
    }
    const std::vector<ValueId> results = add_graph(body, text(name, '/', i), scope, own);
    if (results.size() != made.size()) return {};
    if (std::any_of(results.begin(), results.end(), is_sequence)) {
      builder().fail(invalid_model("its body gives a sequence where a tensor is expected"));
      return {};
    }
    for (size_t k = 0; k < made.size(); ++k) made[k].elements.push_back(results[k]);
  }
  std::vector<ValueId> outputs;
  for (Sequence& sequence : made) outputs.push_back(add_sequence(std::move(sequence)));
  return outputs;
}

std::vector<ValueId> Importer::map_stack(const rt_onnx::GraphProto& body, const std::string& name,
                                         const Scope& scope, std::vector<ValueId> inputs) {
  builder().set_scope(name);
  std::vector<bool> is_stack;
  for (ValueId& id : inputs) {
    is_stack.push_back(is_sequence(id));
    if (is_stack.back()) id = stack_of(Sequence(*sequence_of(id)));
  }
  if (!builder().status().ok()) return {};
  const LoopParts parts{.name = name,
                        .trips = reshape_to(builder(), dims_product(builder(), inputs[0], 0, 1), {}),
                        .carried = {}};
  std::vector<ValueId> outputs = emit_loop(parts, [&](std::span<const ValueId> own) {
    std::vector<ValueId> parts_of;
    builder().set_scope(name + "/part");
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId whole = frame_->capture(inputs[i]);
      parts_of.push_back(is_stack[i] ? take(builder(), whole, own[0], 0) : whole);
    }
    std::vector<ValueId> results = add_graph(body, name, scope, parts_of);
    if (!results.empty()) results.insert(results.begin(), own[1]);
    return results;
  });
  for (ValueId& id : outputs) id = add_sequence({.kind = Sequence::Kind::Stacked, .stack = id});
  return outputs;
}

}  // namespace librt::onnx
