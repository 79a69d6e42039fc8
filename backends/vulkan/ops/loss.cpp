// CrossEntropy and CrossEntropyGrad: losses of rows, and the gradient of logits.
#include <vector>

#include "backends/vulkan/dispatch/split.h"
#include "runtime/geometry/cross_entropy.h"

namespace librt::vulkan {
namespace {

/// Bytes of one of `outer` parts: of logits, labels, and a result by row.
struct PartBytes {
  int64_t logits, labels, by_row;

  PartBytes(const NodeView& node, const CrossEntropyForm& form)
      : logits(form.classes * form.inner * static_cast<int64_t>(sizeof(float))),
        labels(form.inner * static_cast<int64_t>(size_of(node.dtype(1)))),
        by_row(form.inner * static_cast<int64_t>(sizeof(float))) {}
  std::vector<int64_t> all() const { return {logits, labels, by_row}; }
};

Status supports(const Device& device, const NodeView& node) {
  const auto form = cross_entropy_form(node);
  if (!form) return unsupported("an axis outside the input's rank");
  if (form->rows() == 0) return {};
  return rows_fit(device, form->outer, PartBytes(node, *form).all());
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const VulkanDevice& vulkan = cast(device);
  const CrossEntropyForm form = *cross_entropy_form(node);
  const bool gradient = node.kind() == OpKind::CrossEntropyGrad;
  auto program = std::make_unique<Program>(gradient ? "cross_entropy_grad" : "cross_entropy");
  if (gradient) program->in_place(0);
  if (form.rows() == 0) return finish(std::move(program));
  constexpr int64_t kShortRow = 8;
  const bool whole_groups = form.inner == 1 && form.classes > kShortRow;
  const bool weights = node.has(form.weights), smoothing = form.of_class() != 0;
  const PartBytes bytes(node, form);
  for (const Rows& part : ranges_of_rows(vulkan, form.outer, bytes.all())) {
    const Shader rows = gradient ? Shader::cross_entropy_rows_grad : Shader::cross_entropy_rows,
                 columns = gradient ? Shader::cross_entropy_columns_grad : Shader::cross_entropy_columns;
    const int64_t count = part.count * form.inner;
    Step& step = whole_groups ? program->dispatch(rows, static_cast<uint64_t>(count), vulkan.plan().row_lanes)
                              : program->dispatch_each(columns, count, 64);
    step.loops(3 * (whole_groups ? ceil_div(form.classes, vulkan.plan().row_lanes) : form.classes));
    step.spec(weights).spec(smoothing);
    step.push(count).push(form.classes).push(form.inner);
    step.push(static_cast<int64_t>(size_of(node.dtype(1)) / sizeof(int32_t)));
    // Labels of 64 bits saturate at those of 32, which are no classes.
    step.push(form.ignore_index >= 0 && form.ignore_index < form.classes ? form.ignore_index : int64_t{-1});
    step.push(form.of_label()).push(form.of_class());
    step.read(0, rows_of(in(0), part, bytes.logits)).read(1, rows_of(in(1), part, bytes.labels));
    if (weights) step.read(2, in(form.weights));
    if (gradient) {
      for (uint32_t i = 2; i < 5; ++i) step.read(i + 1, rows_of(in(i), part, bytes.by_row));
      step.write(6, rows_of(out(0), part, bytes.logits));
    } else {
      const size_t results[] = {2, 3, 0, 1};  // maximum, log_sum, loss, weight
      for (uint32_t i = 0; i < 4; ++i) step.write(i + 3, rows_of(out(results[i]), part, bytes.by_row));
    }
  }
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::CrossEntropy, "cross_entropy", DTypeSet{DType::F32}),
    row<create, supports>(OpKind::CrossEntropyGrad, "cross_entropy_grad", DTypeSet{DType::F32}),
};

}  // namespace

std::span<const KernelRow> rows_loss() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
