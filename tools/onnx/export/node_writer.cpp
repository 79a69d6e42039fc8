#include "tools/onnx/export/node_writer.h"

#include <cstring>

#include "runtime/core/element.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {

std::string NodeWriter::in(size_t i) {
  return has(i) ? writer.dense(*scope.forms[node.inputs[i]]) : std::string();
}

Names NodeWriter::ins() {
  Names names;
  for (size_t i = 0; i < node.inputs.size(); ++i) names.push_back(in(i));
  return names;
}

std::string NodeWriter::in_first(size_t i) {
  return has(i) ? writer.channels_first(*scope.forms[node.inputs[i]]) : std::string();
}

bool NodeWriter::prefers_first(size_t i) const {
  if (!has(i)) return false;
  const Forms& forms = *scope.forms[node.inputs[i]];
  return forms.dense.empty() && !forms.first.empty();
}

std::string NodeWriter::out(size_t i) {
  Forms& forms = *scope.forms[node.outputs[i]];
  return forms.dense = forms.name;
}

std::string NodeWriter::out_first(size_t i) {
  Forms& forms = *scope.forms[node.outputs[i]];
  if (forms.rank < 3) return out(i);
  return forms.first = writer.fresh(text(forms.name, "/channels_first"));
}

Names NodeWriter::outs() {
  Names names;
  for (size_t i = 0; i < node.outputs.size(); ++i) names.push_back(out(i));
  return names;
}

void NodeWriter::add(const std::string& op, const Names& inputs, const Names& outputs,
                     const Attributes& attributes) {
  writer.add(op, inputs, outputs, attributes);
}

std::string NodeWriter::emit(const std::string& op, const Names& inputs, const Attributes& attributes) {
  std::string result = writer.fresh(text(writer.node_name(), "/", op));
  add(op, inputs, {result}, attributes);
  return result;
}

std::string NodeWriter::name() const {
  return std::string(librt::name_of(node.kind()));
}

std::string NodeWriter::longs(const Longs& values) {
  std::string result = writer.fresh(text(writer.node_name(), "/constant"));
  writer.initializer(result, tools::onnx_type_of(DType::I64), {static_cast<int64_t>(values.size())})
      .set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return result;
}

std::string NodeWriter::number(double value, DType type, bool scalar) {
  std::byte bytes[8] = {};
  store_element(bytes, type, 0, value);
  std::string result = writer.fresh(text(writer.node_name(), "/constant"));
  writer.initializer(result, tools::onnx_type_of(type), scalar ? Longs() : Longs{1})
      .set_raw_data(bytes, size_of(type));
  return result;
}

std::optional<Longs> NodeWriter::known_longs(size_t i) const {
  if (!has(i)) return {};
  const Value& value = input(i);
  if (value.role != Role::Constant || value.dtype != DType::I64) return {};
  Longs values(value.data.size / sizeof(int64_t));
  std::memcpy(values.data(), value.data.data, values.size() * sizeof(int64_t));
  return values;
}

int NodeWriter::onnx_type(DType type) {
  return tools::onnx_type_of(type);
}

std::string NodeWriter::cast(const std::string& x, DType to) {
  return emit("Cast", {x}, {{"to", int64_t{tools::onnx_type_of(to)}}});
}

std::string NodeWriter::transposed(const std::string& x, const Longs& permutation) {
  return emit("Transpose", {x}, {{"perm", permutation}});
}

std::string NodeWriter::reshaped(const std::string& x, const Longs& shape) {
  return emit("Reshape", {x, longs(shape)});
}

// export_rows_STEM() of each file of rows.
#define RT_EXPORTER(stem) std::span<const ExportRow> export_rows_##stem();
#include "tools/exporters.inc"
#undef RT_EXPORTER

const ExportRow* export_row(OpKind kind) {
  constexpr std::span<const ExportRow> (*kRows[])() = {
#define RT_EXPORTER(stem) export_rows_##stem,
#include "tools/exporters.inc"
#undef RT_EXPORTER
  };
  for (const auto rows : kRows)
    for (const ExportRow& row : rows())
      if (row.kind == kind) return &row;
  return nullptr;
}

}  // namespace librt::onnx
