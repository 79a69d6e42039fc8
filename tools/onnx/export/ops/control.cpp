// If and Loop: ONNX's bodies read values of the graphs around them by name, librt's get them as inputs. And
// operators of the application, with their domain.
#include "runtime/ops/control.h"

#include <deque>

#include "runtime/geometry/custom.h"
#include "tools/onnx/export/node_writer.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

Result<bool> write_if(NodeWriter& n) {
  Names captured;
  for (size_t i = 1; i < n.node.inputs.size(); ++i) captured.push_back(n.in(i));
  RT_ASSIGN(auto yes, n.writer.body(n.node.bodies[0], captured));
  RT_ASSIGN(auto no, n.writer.body(n.node.bodies[1], captured));
  n.add("If", {n.in(0)}, n.outs(), {{"then_branch", yes.release()}, {"else_branch", no.release()}});
  return true;
}

Result<bool> write_loop(NodeWriter& n) {
  const auto carried = static_cast<size_t>(n.as<op::LoopAttributes>().carried);
  Names inputs, given(ops::kLoopHead + carried);
  for (size_t i = 0; i < n.node.inputs.size(); ++i)
    (i < ops::kLoopHead + carried ? inputs : given).push_back(n.in(i));
  RT_ASSIGN(auto body, n.writer.body(n.node.bodies[0], given));
  n.add("Loop", inputs, n.outs(), {{"body", body.release()}});
  return true;
}

/// One value is written as a number, several or none as a list.
Attribute custom_attribute(const char* name, const CustomAttribute& from, const op::CustomAttributes& all) {
  const auto part = [&](const auto& list) {
    const auto first = list.begin() + static_cast<ptrdiff_t>(from.first);
    return std::decay_t<decltype(list)>(first, first + static_cast<ptrdiff_t>(from.count));
  };
  if (from.type == 's') return {name, part(all.text)};
  if (from.type == 'f' && from.count == 1) return {name, all.floats[from.first]};
  if (from.type == 'f') return {name, part(all.floats)};
  if (from.count == 1) return {name, all.ints[from.first]};
  return {name, part(all.ints)};
}

Result<bool> write_custom(NodeWriter& n) {
  const auto& custom = n.as<op::CustomAttributes>();
  CustomAttributeReader reader(custom);
  std::deque<std::string> names;
  Attributes attributes;
  for (CustomAttribute one;;) {
    RT_ASSIGN(const bool more, reader.next(one));
    if (!more) break;
    attributes.push_back(custom_attribute(names.emplace_back(one.name).c_str(), one, custom));
  }
  const Names inputs = n.ins(), outputs = n.outs();
  n.writer.add(custom.name, inputs, outputs, attributes).set_domain(custom.domain);
  n.writer.require_domain(custom.domain);
  for (size_t i = 0; i < outputs.size(); ++i) n.writer.declare(n.scope.graph, n.node.outputs[i], outputs[i]);
  return true;
}

constexpr ExportRow kControl[] = {
    {OpKind::If, write_if},
    {OpKind::Loop, write_loop},
    {OpKind::Custom, write_custom},
};

}  // namespace

std::span<const ExportRow> export_rows_control() {
  return kControl;
}

}  // namespace librt::onnx
