// GatherElements, GatherND, ScatterElements and ScatterND: flat positions are computed from the indices
// first, then rows are read or written there. Scatters give the same result in every run: without a reduction
// the last of equal indices is selected before anything is written, with one the indices are sorted and the
// updates of equal ones combined in order.
#include "backends/vulkan/steps/sort.h"
#include "runtime/geometry/indexing.h"

namespace librt::vulkan {
namespace {

using op::ScatterReduction;

constexpr size_t kMaxIndexAxes = 6;

/// What both kinds of index have in common once the positions are known.
struct IndexCounts {
  int64_t count = 0;  ///< indices or tuples
  int64_t rows = 0;   ///< of the data, of `inner` elements
  int64_t inner = 1;
};

int64_t index_words(const NodeView& node) {
  return static_cast<int64_t>(size_of(node.dtype(1)) / sizeof(int32_t));
}

struct Elements {
  template <class Attributes>
  static Result<ElementPlan> plan(const NodeView& node) {
    const auto axis = normalized_axis(node.as<Attributes>().axis, node.shape(0).rank());
    if (!axis) return unsupported("an axis outside the rank of x");
    const ElementPlan plan = element_plan(node.shape(0), node.shape(1), *axis);
    if (plan.rank > static_cast<int>(kMaxIndexAxes))
      return unsupported(plan.rank, " axes along which x and indices differ, at most ", kMaxIndexAxes,
                         " are supported");
    return plan;
  }
  static IndexCounts counts(const NodeView& node, const ElementPlan&) {
    return {.count = node.input(1).elements(), .rows = node.input(0).elements(), .inner = 1};
  }
  static void record(Program& program, const NodeView& node, const ElementPlan& plan, const Ref& targets) {
    program.dispatch_each(Shader::index_elements, node.input(1).elements(), 64)
        .push(node.input(1).elements())
        .push(index_words(node))
        .push(plan.rank)
        .push(plan.axis)
        .push_axes(std::span(plan.indices).first(kMaxIndexAxes), 1)
        .push_axes(std::span(plan.data).first(kMaxIndexAxes), 1)
        .read(0, in(1))
        .write(1, targets);
  }
};

struct Tuples {
  template <class Attributes>
  static Result<TuplePlan> plan(const NodeView& node) {
    int batch = 0;
    if constexpr (requires(Attributes a) { a.batch_dimensions; })
      batch = static_cast<int>(node.as<Attributes>().batch_dimensions);
    const TuplePlan plan = tuple_plan(node.shape(0), node.shape(1), batch);
    if (plan.length > static_cast<int>(kMaxIndexAxes))
      return unsupported("tuples of ", plan.length, " indices, at most ", kMaxIndexAxes, " are supported");
    return plan;
  }
  static IndexCounts counts(const NodeView&, const TuplePlan& plan) {
    return {.count = plan.tuples, .rows = plan.rows, .inner = plan.inner};
  }
  static void record(Program& program, const NodeView& node, const TuplePlan& plan, const Ref& targets) {
    program.dispatch_each(Shader::index_tuples, plan.tuples, 64)
        .push(plan.tuples)
        .push(index_words(node))
        .push(plan.in_batch)
        .push(plan.length)
        .push_axes(std::span(plan.extent).first(kMaxIndexAxes), 1)
        .read(0, in(1))
        .write(1, targets);
  }
};

/// Elements of `size` bytes, `inner` of them per row, moved in the largest units that fit a row.
struct Units {
  size_t size;
  int64_t inner;
};
Units units_of(DType dtype, int64_t inner) {
  Units units{size_of(dtype), inner};
  while (units.size < 16 && units.inner % 2 == 0 && units.inner > 0) {
    units.size *= 2;
    units.inner /= 2;
  }
  return units;
}
Shader of_size(size_t size, Shader one, Shader two, Shader four, Shader eight, Shader sixteen) {
  return size == 1 ? one : size == 2 ? two : size == 4 ? four : size == 8 ? eight : sixteen;
}

uint64_t words(int64_t count) {
  return static_cast<uint64_t>(std::max<int64_t>(count, 1)) * sizeof(uint32_t);
}

template <class Kind, class Attributes>
Status gather_supports(const Device& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  return Kind::template plan<Attributes>(node).status();
}

template <class Kind, class Attributes>
Result<KernelPtr> create_gather(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const auto plan, Kind::template plan<Attributes>(node));
  const IndexCounts counts = Kind::counts(node, plan);
  auto program = std::make_unique<Program>("gather_places");
  if (counts.rows == 0) {  // nothing to read; the shape rule allows no indices
    program->fill(out(0), 0);
    return finish(std::move(program));
  }
  const Ref targets = program->scratch(words(counts.count));
  Kind::record(*program, node, plan, targets);
  const Units units = units_of(node.dtype(0), counts.inner);
  const Shader shader = of_size(units.size, Shader::gather_1, Shader::gather_2, Shader::gather_4,
                                Shader::gather_8, Shader::gather_16);
  program->dispatch_each(shader, counts.count * units.inner, cast(device).plan().elementwise_lanes)
      .push(counts.count * units.inner)
      .push(counts.count)
      .push(units.inner)
      .push(counts.rows)
      .push(1)
      .read(0, in(0))
      .write(1, out(0))
      .read(2, targets);
  return finish(std::move(program));
}

template <class Kind, class Attributes>
Status scatter_supports(const Device& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  RT_TRY(Kind::template plan<Attributes>(node).status());
  if (node.as<Attributes>().reduction == ScatterReduction::None) return {};
  const DType dtype = node.dtype(0);
  if (dtype != DType::F32 && dtype != DType::I32 && dtype != DType::I64)
    return unsupported("reductions of ", name_of(dtype));
  return {};
}

void record_last(Program& program, const NodeView& node, const IndexCounts& counts, const Ref& targets,
                 uint32_t lanes) {
  const Ref winner = program.scratch(words(counts.rows));
  program.fill(winner, 0);
  program.dispatch_each(Shader::scatter_winner, counts.count, 64)
      .push(counts.count)
      .read(0, targets)
      .write(1, winner);
  const Units units = units_of(node.dtype(0), counts.inner);
  const Shader shader = of_size(units.size, Shader::scatter_last_1, Shader::scatter_last_2,
                                Shader::scatter_last_4, Shader::scatter_last_8, Shader::scatter_last_16);
  program.dispatch_each(shader, counts.count * units.inner, lanes)
      .push(counts.count * units.inner)
      .push(units.inner)
      .read(0, in(2))
      .write(1, out(0))
      .read(2, targets)
      .read(3, winner);
}

void record_reduction(Program& program, const NodeView& node, const IndexCounts& counts, const Ref& targets,
                      ScatterReduction reduction, const DevicePlan& plan) {
  const SortedRows sorted =
      add_sort(program, plan, Shader::topk_load_u32, targets, {.length = counts.count, .kept = counts.count});
  const Shader shader = node.dtype(0) == DType::F32   ? Shader::scatter_reduce_f32
                        : node.dtype(0) == DType::I32 ? Shader::scatter_reduce_i32
                                                      : Shader::scatter_reduce_i64;
  const uint64_t function = reduction == ScatterReduction::Add       ? 0
                            : reduction == ScatterReduction::Maximum ? 1
                            : reduction == ScatterReduction::Minimum ? 2
                                                                     : 3;
  program.dispatch_each(shader, counts.count * counts.inner, plan.elementwise_lanes)
      .spec(function)
      .push(counts.count * counts.inner)
      .push(counts.inner)
      .read(0, in(2))
      .write(1, out(0))
      .read(2, sorted.keys)
      .read(3, sorted.positions);
}

template <class Kind, class Attributes>
Result<KernelPtr> create_scatter(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const ScatterReduction reduction = node.as<Attributes>().reduction;
  const DevicePlan& device_plan = cast(device).plan();
  RT_ASSIGN(const auto plan, Kind::template plan<Attributes>(node));
  const IndexCounts counts = Kind::counts(node, plan);
  auto program = std::make_unique<Program>("scatter_places");
  program->in_place(0);
  program->copy(out(0), in(0));
  if (counts.count == 0 || node.input(0).elements() == 0) return finish(std::move(program));
  const Ref targets = program->scratch(words(counts.count));
  Kind::record(*program, node, plan, targets);
  if (reduction == ScatterReduction::None)
    record_last(*program, node, counts, targets, device_plan.elementwise_lanes);
  else
    record_reduction(*program, node, counts, targets, reduction, device_plan);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create_gather<Elements, op::GatherElementsAttributes>,
        gather_supports<Elements, op::GatherElementsAttributes>>(OpKind::GatherElements, "gather_elements",
                                                                 kAnyDType),
    row<create_gather<Tuples, op::GatherNDAttributes>, gather_supports<Tuples, op::GatherNDAttributes>>(
        OpKind::GatherND, "gather_nd", kAnyDType),
    row<create_scatter<Elements, op::ScatterElementsAttributes>,
        scatter_supports<Elements, op::ScatterElementsAttributes>>(OpKind::ScatterElements,
                                                                   "scatter_elements", kAnyDType),
    row<create_scatter<Tuples, op::ScatterNDAttributes>, scatter_supports<Tuples, op::ScatterNDAttributes>>(
        OpKind::ScatterND, "scatter_nd", kAnyDType),
};

}  // namespace

std::span<const KernelRow> rows_indexed() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
