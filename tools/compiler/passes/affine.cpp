#include "tools/compiler/passes/affine.h"

#include <cmath>

#include "runtime/core/element.h"

namespace librt::compiler {
std::optional<std::vector<double>> numbers_per_channel(GraphEdit& edit, ValueId id, int64_t channels) {
  if (!edit.is_constant(id) || !is_float(edit.value(id).dtype)) return std::nullopt;
  const Value& value = edit.value(id);
  const TensorInfo info = value.info();
  const int64_t count = info.elements();
  if (count != 1 && (count != channels || info.shape.back() != channels)) return std::nullopt;
  std::vector<double> numbers(static_cast<size_t>(channels));
  for (int64_t i = 0; i < channels; ++i)
    numbers[static_cast<size_t>(i)] = load_element(value.data.data, value.dtype, count == 1 ? 0 : i);
  return numbers;
}

ValueId constant_of(GraphEdit& edit, const TensorInfo& info, std::span<const double> numbers,
                    std::string name) {
  std::vector<std::byte> bytes(info.bytes());
  for (size_t i = 0; i < numbers.size(); ++i)
    store_element(bytes.data(), info.dtype, static_cast<int64_t>(i), numbers[i]);
  const ValueId id = edit.builder().constant(info, Blob::own(std::move(bytes)));
  if (id != kNoValue && !name.empty()) edit.builder().graph()[id].name = std::move(name);
  return id;
}

bool has_plain_epilogue(const op::EpilogueAttributes* epilogue) {
  return epilogue == nullptr || (epilogue->activation == op::Activation::None && !epilogue->has_residual);
}

std::optional<Affine> affine_of(GraphEdit& edit, const Node& node, size_t operand, int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  Affine affine{.factor = std::vector<double>(count, 1), .offset = std::vector<double>(count, 0)};
  if (node.kind() == OpKind::BatchNorm) {
    std::vector<std::vector<double>> parameters;
    for (size_t i = 1; i < 5; ++i) {
      auto numbers = numbers_per_channel(edit, node.inputs[i], channels);
      if (!numbers) return std::nullopt;
      parameters.push_back(std::move(*numbers));
    }
    const double epsilon = static_cast<double>(node.as<op::BatchNormAttributes>().epsilon);
    for (size_t i = 0; i < count; ++i) {
      affine.factor[i] = parameters[0][i] / std::sqrt(parameters[3][i] + epsilon);
      affine.offset[i] = parameters[1][i] - parameters[2][i] * affine.factor[i];
    }
    return affine;
  }
  if (node.inputs.size() != 2) return std::nullopt;
  const auto numbers = numbers_per_channel(edit, node.inputs[1 - operand], channels);
  if (!numbers) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    const double c = (*numbers)[i];
    switch (node.kind()) {
      case OpKind::Mul: affine.factor[i] = c; break;
      case OpKind::Add: affine.offset[i] = c; break;
      case OpKind::Sub:
        if (operand == 1) affine.factor[i] = -1;
        affine.offset[i] = operand == 0 ? -c : c;
        break;
      case OpKind::Div:
        if (operand == 1 || c == 0) return std::nullopt;
        affine.factor[i] = 1 / c;
        break;
      default: return std::nullopt;
    }
  }
  return affine;
}

}  // namespace librt::compiler
