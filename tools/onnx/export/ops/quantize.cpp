// Quantization, narrow floats, random numbers.
#include "tools/onnx/export/node_writer.h"

namespace librt::onnx {
namespace {

bool is_16_bit_integer(DType type) {
  return type == DType::I16 || type == DType::U16;
}

/// x, in the order of axes that the result is written in. With one scale it works element by element.
std::string quantized_operand(NodeWriter& n, bool& first) {
  first = n.rank(1) == 0 && n.prefers_first(0);
  return first ? n.in_first(0) : n.in(0);
}

template <class A>
Attributes grouping(NodeWriter& n, const A& attributes) {
  Attributes all;
  if (n.rank(1) > 0) all.push_back({"axis", attributes.axis});
  if (attributes.block_size == 0) return all;
  n.writer.require_opset(21);
  all.push_back({"block_size", attributes.block_size});
  return all;
}

Result<bool> write_quantize(NodeWriter& n) {
  const auto& quantize = n.as<op::QuantizeLinearAttributes>();
  const auto to = static_cast<DType>(quantize.to);
  bool first = false;
  Names inputs = {quantized_operand(n, first), n.in(1), n.in(2)};
  if (n.dtype(0) != n.dtype(1)) inputs[0] = n.cast(inputs[0], n.dtype(1));  // the type of the division
  Attributes attributes = grouping(n, quantize);
  if (is_16_bit_integer(to)) n.writer.require_opset(21);
  if (!n.has(2) && to != DType::U8) {
    if (n.rank(1) == 0) {
      inputs[2] = n.number(0, to);
    } else {
      n.writer.require_opset(21);
      attributes.push_back({"output_dtype", int64_t{n.onnx_type(to)}});
    }
  }
  n.add("QuantizeLinear", inputs, {first ? n.out_first() : n.out()}, attributes);
  return true;
}

Result<bool> write_dequantize(NodeWriter& n) {
  const auto& dequantize = n.as<op::DequantizeLinearAttributes>();
  bool first = false;
  const Names inputs = {quantized_operand(n, first), n.in(1), n.in(2)};
  const Attributes attributes = grouping(n, dequantize);
  if (is_16_bit_integer(n.dtype())) n.writer.require_opset(21);
  const auto to = static_cast<DType>(dequantize.to);
  const std::string result = first ? n.out_first() : n.out();
  if (to == n.dtype(1))
    n.add("DequantizeLinear", inputs, {result}, attributes);
  else
    n.add("Cast", {n.emit("DequantizeLinear", inputs, attributes)}, {result},
          {{"to", int64_t{n.onnx_type(to)}}});
  return true;
}

Result<bool> write_dynamic_quantize(NodeWriter& n) {
  n.add("DynamicQuantizeLinear", n.ins(), n.outs());
  return true;
}

Result<bool> write_lookup(NodeWriter& n) {
  const bool first = n.prefers_first(0);
  const std::string x = first ? n.in_first(0) : n.in(0);
  const Names inputs = {n.in(1), n.cast(x, DType::I32)};
  n.add("Gather", inputs, {first ? n.out_first() : n.out()});
  return true;
}

Result<bool> write_narrow_float(NodeWriter& n) {
  constexpr int64_t kOnnxTypes[] = {17, 18, 19, 20, 23};  // in the order of op::NarrowFormat
  const auto& narrow = n.as<op::NarrowFloatAttributes>();
  if (narrow.format == op::NarrowFormat::Float4E2M1) n.writer.require_opset(23);
  const std::string rounded = n.emit("Cast", {n.in(0)},
                                     {{"to", kOnnxTypes[static_cast<size_t>(narrow.format)]},
                                      {"saturate", static_cast<int64_t>(narrow.saturate)}});
  n.add("Cast", {rounded}, {n.out()}, {{"to", int64_t{n.onnx_type(n.output().dtype)}}});
  return true;
}

// --- random numbers, of the runtime's own generator: a seed only fixes them where there is no counter

template <class A>
Result<bool> write_random(NodeWriter& n, const char* op, Attributes attributes) {
  const auto& random = n.as<A>();
  const int64_t to = n.onnx_type(static_cast<DType>(random.to));
  attributes.push_back({"dtype", to});
  if (!n.has(1)) attributes.push_back({"seed", static_cast<float>(random.seed)});
  const std::string like = n.emit("ConstantOfShape", {n.in(0)});
  n.add(op, {like}, {n.out()}, attributes);
  return true;
}

Result<bool> write_uniform(NodeWriter& n) {
  const auto& random = n.as<op::RandomUniformAttributes>();
  return write_random<op::RandomUniformAttributes>(n, "RandomUniformLike",
                                                   {{"low", random.low}, {"high", random.high}});
}

Result<bool> write_normal(NodeWriter& n) {
  const auto& random = n.as<op::RandomNormalAttributes>();
  return write_random<op::RandomNormalAttributes>(n, "RandomNormalLike",
                                                  {{"mean", random.mean}, {"scale", random.scale}});
}

constexpr ExportRow kQuantize[] = {
    {OpKind::QuantizeLinear, write_quantize},
    {OpKind::DequantizeLinear, write_dequantize},
    {OpKind::DynamicQuantizeLinear, write_dynamic_quantize},
    {OpKind::Lookup, write_lookup},
    {OpKind::NarrowFloat, write_narrow_float},
    {OpKind::RandomUniform, write_uniform},
    {OpKind::RandomNormal, write_normal},
};

}  // namespace

std::span<const ExportRow> export_rows_quantize() {
  return kQuantize;
}

}  // namespace librt::onnx
