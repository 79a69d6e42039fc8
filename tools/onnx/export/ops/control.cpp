// If and Loop. ONNX's bodies read values of the graphs around them by name, librt's get them as inputs.
#include "runtime/ops/control.h"

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

constexpr ExportRow kControl[] = {
    {OpKind::If, write_if},
    {OpKind::Loop, write_loop},
};

}  // namespace

std::span<const ExportRow> export_rows_control() {
  return kControl;
}

}  // namespace librt::onnx
