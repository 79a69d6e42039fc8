// fuse: MatMul and Conv take the additions and the activation that follow them into their epilogue,
//     y = activation(x W + bias + residual),
// where nothing else reads the values in between. Reassociates where a residual was added before the bias.
// Where residuals are unwanted, existing ones become additions again.
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/passes/pattern.h"

namespace librt::compiler {
namespace {

using Epilogue = op::EpilogueAttributes;

}  // namespace

std::optional<op::EpilogueAttributes> activation_of(const Node& node) {
  const FunctionCall call = function_call(node);
  const auto activation = activation_of(call.function);
  if (!activation || *activation == op::Activation::None) return std::nullopt;
  Epilogue epilogue;
  epilogue.activation = *activation;
  epilogue.alpha = call.alpha;
  epilogue.beta = call.beta;
  return epilogue;
}

namespace {

const std::unique_ptr<Epilogue>* epilogue_slot(const Node& node) {
  if (node.kind() == OpKind::Conv) return &node.as<op::ConvAttributes>().epilogue;
  if (node.kind() == OpKind::MatMul) return &node.as<op::MatMulAttributes>().epilogue;
  return nullptr;
}

/// The addend as a vector over the last axis of y, or kNoValue when it varies along others.
ValueId as_bias(GraphEdit& edit, ValueId addend, ValueId y) {
  const Value& value = edit.value(addend);
  const int64_t channels = edit.value(y).dims.back().extent;
  if (!value.is_static() || channels < 1 || value.dtype != edit.value(y).dtype) return kNoValue;
  const Shape shape = value.info().shape;
  if (shape.rank() == 0 || shape.elements() != channels || shape.back() != channels) return kNoValue;
  if (shape.rank() == 1) return addend;
  return edit.emit(op::ReshapeAttributes{}, {addend, edit.builder().ints(std::array{channels})});
}

/// The two main inputs, and the bias and residual that are present.
std::vector<ValueId> operands_of(const Node& matmul) {
  std::vector<ValueId> inputs = matmul.inputs;
  std::erase(inputs, kNoValue);
  return inputs;
}

/// The MatMul or Conv with another epilogue and other operands.
ValueId emit_matmul(GraphEdit& edit, NodeId matmul, const Epilogue& epilogue,
                    const std::vector<ValueId>& inputs) {
  OpAttributes op = edit.node(matmul).op;
  auto owned = std::make_unique<Epilogue>(epilogue);
  if (op.type == OpKind::Conv)
    static_cast<op::ConvAttributes*>(op.value)->epilogue = std::move(owned);
  else
    static_cast<op::MatMulAttributes*>(op.value)->epilogue = std::move(owned);
  edit.name_after(matmul);
  return edit.builder().emit_many(std::move(op), inputs, 1)[0];
}

/// Replaces `last` by the node with a new epilogue and operands.
void put(GraphEdit& edit, NodeId matmul, NodeId last, const Epilogue& epilogue,
         const std::vector<ValueId>& inputs) {
  const std::string name = edit.node(matmul).name;
  const ValueId old = edit.node(last).outputs[0];
  const ValueId fused = emit_matmul(edit, matmul, epilogue, inputs);
  if (fused == kNoValue) return;
  edit.replace(old, fused);
  // Profiles should show the name of the MatMul or Conv.
  edit.builder().graph().nodes[edit.producer_id(fused)].name = name;
}

/// Fuses `add`, the only reader of the MatMul or Conv, as bias or residual; false where that is impossible.
bool absorb_add(GraphEdit& edit, NodeId matmul, NodeId add, bool residuals) {
  const ValueId y = edit.node(matmul).outputs[0];
  if (!edit.same_info(y, edit.node(add).outputs[0])) return false;
  const ValueId addend = edit.node(add).inputs[edit.node(add).inputs[0] == y ? 1 : 0];
  const auto& present = *epilogue_slot(edit.node(matmul));
  Epilogue epilogue = present == nullptr ? Epilogue{} : *present;
  std::vector<ValueId> inputs = operands_of(edit.node(matmul));
  if (addend == y) return false;
  if (!epilogue.has_bias) {
    if (const ValueId bias = as_bias(edit, addend, y); bias != kNoValue) {
      epilogue.has_bias = true;
      inputs.insert(inputs.begin() + 2, bias);
      put(edit, matmul, add, epilogue, inputs);
      return true;
    }
  }
  if (!residuals || epilogue.has_residual || edit.is_constant(addend) || !edit.same_info(addend, y))
    return false;
  epilogue.has_residual = true;
  inputs.push_back(addend);
  put(edit, matmul, add, epilogue, inputs);
  return true;
}

bool absorb_activation(GraphEdit& edit, NodeId matmul, NodeId activation) {
  const auto wanted = activation_of(edit.node(activation));
  if (!wanted) return false;
  const auto& present = *epilogue_slot(edit.node(matmul));
  Epilogue epilogue = present == nullptr ? Epilogue{} : *present;
  epilogue.activation = wanted->activation;
  epilogue.alpha = wanted->alpha;
  epilogue.beta = wanted->beta;
  put(edit, matmul, activation, epilogue, operands_of(edit.node(matmul)));
  return true;
}

/// Replaces a MatMul or Conv with residual and activation by separate nodes: activation(product + residual).
void split_residual(GraphEdit& edit, NodeId matmul) {
  Epilogue epilogue = **epilogue_slot(edit.node(matmul));
  const OpAttributes activation = operator_of(function_call(&epilogue));
  std::vector<ValueId> inputs = operands_of(edit.node(matmul));
  const ValueId residual = inputs.back(), old = edit.node(matmul).outputs[0];
  inputs.pop_back();
  epilogue.has_residual = false;
  epilogue.activation = op::Activation::None;
  ValueId result = emit_matmul(edit, matmul, epilogue, inputs);
  if (result != kNoValue) result = edit.emit(op::AddAttributes{}, {result, residual});
  if (result != kNoValue && activation.type != OpKind::Identity)
    result = edit.builder().emit_many(OpAttributes(activation), std::array{result}, 1)[0];
  if (result != kNoValue) edit.replace(old, result);
}

void fuse_after(GraphEdit& edit, NodeId matmul, bool residuals) {
  const auto& present = *epilogue_slot(edit.node(matmul));
  const ValueId y = edit.node(matmul).outputs[0];
  if (!residuals && present != nullptr && present->has_residual) return split_residual(edit, matmul);
  if (present != nullptr && present->activation != op::Activation::None) return;
  if (edit.use_count(y) != 1 || edit.is_output(y) || !is_float(edit.value(y).dtype)) return;
  const NodeId reader = edit.users(y)[0];
  // The new node is visited later and continues from there.
  if (edit.node(reader).kind() == OpKind::Add)
    absorb_add(edit, matmul, reader, residuals);
  else
    absorb_activation(edit, matmul, reader);
}

/// ConvTranspose has a bias but no epilogue.
void fuse_bias(GraphEdit& edit, NodeId id) {
  const ValueId y = edit.node(id).outputs[0];
  if (edit.input(edit.node(id), 3) != kNoValue || edit.use_count(y) != 1 || edit.is_output(y)) return;
  const NodeId add = edit.users(y)[0];
  if (edit.node(add).kind() != OpKind::Add || !edit.same_info(y, edit.node(add).outputs[0])) return;
  const ValueId bias = as_bias(edit, edit.node(add).inputs[edit.node(add).inputs[0] == y ? 1 : 0], y);
  if (bias == kNoValue) return;
  std::vector<ValueId> inputs = edit.node(id).inputs;
  inputs.resize(3, kNoValue);
  inputs.push_back(bias);
  edit.rewrite(add, edit.node(id).as<op::ConvTransposeAttributes>(), inputs);
}

}  // namespace

Status fuse(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  for (NodeId id = 0; id < edit.node_count() && edit.status().ok(); ++id) {
    if (!edit.is_alive(id)) continue;
    if (epilogue_slot(edit.node(id)) != nullptr) fuse_after(edit, id, context.residuals);
    if (edit.is_alive(id, OpKind::ConvTranspose)) fuse_bias(edit, id);
  }
  return edit.finish();
}

}  // namespace librt::compiler
