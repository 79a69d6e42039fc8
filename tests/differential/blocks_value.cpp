// Arithmetic, reductions, TopK, results of unknown extent, and control flow: operators that read extents or
// create new ones.
#include "tests/differential/blocks.h"

namespace librt::test {

namespace {

bool scalar(Generator& g) {
  g.give_scalar(g.scalar().name);
  return true;
}

bool two_scalars(Generator& g) {
  const Scalar a = g.scalar(), b = g.scalar();
  const char* op = g.random.pick<const char*>({"Add", "Sub", "Mul", "Min", "Max", "Div", "Mod", "Where"});
  if ((std::string_view(op) == "Div" || std::string_view(op) == "Mod") && b.least() < 1) return false;
  if (std::string_view(op) == "Mul" && a.most() * b.most() > 400) return false;
  if (std::string_view(op) == "Where") {
    const std::string less = g.draft.node(
        g.random.pick<const char*>({"Less", "Greater", "Equal", "GreaterOrEqual"}), {a.name, b.name});
    g.give_scalar(g.draft.node("Where", {less, a.name, g.plus(b.name, 1)}));
  } else {
    g.give_scalar(g.draft.node(op, {a.name, b.name}));
  }
  return true;
}

bool count_of_elements(Generator& g) {
  const Item* item = g.any(1, 3);
  if (item == nullptr) return false;
  if (g.random.chance(50))
    g.give_scalar(g.draft.node("Size", {item->name}));
  else
    g.give_scalar(g.draft.node("ReduceProd", {g.draft.node("Shape", {item->name})}, {{"keepdims", 0}}));
  return true;
}

bool combine(Generator& g) {  // of two tensors that broadcast
  const Item* first = g.any(1, 4);
  if (first == nullptr) return false;
  std::vector<const Item*> others;
  for (const Item& item : g.tensors()) {
    bool fits = item.name != first->name && item.rank() <= first->rank();
    for (size_t sample = 0; fits && sample < item.dims.size(); ++sample)
      for (size_t i = 0; i < item.axes(); ++i) {
        const int64_t a = first->dims[sample][first->axes() - 1 - i];
        const int64_t b = item.dims[sample][item.axes() - 1 - i];
        fits = fits && (a == b || a == 1 || b == 1);
      }
    if (fits) others.push_back(&item);
  }
  if (others.empty()) return false;
  const Item& second = *g.random.pick(others);
  const char* op = g.random.pick<const char*>({"Add", "Sub", "Mul", "Max", "Min"});
  g.give(g.draft.node(op, {first->name, second.name}), first->exact && second.exact);
  return true;
}

bool activate(Generator& g) {
  const Item* item = g.any();
  if (item == nullptr) return false;
  const int64_t kind = g.random.below(4);
  if (kind == 0)
    g.give(g.draft.node("Sigmoid", {item->name}), false);
  else
    g.give(g.draft.node(g.random.pick<const char*>({"Relu", "Neg", "Abs"}), {item->name}), item->exact);
  return true;
}

bool softmax(Generator& g) {
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  g.give(g.draft.node("Softmax", {item->name}, {{"axis", g.spelled(*item, g.axis_of(*item))}}), false);
  return true;
}

bool reduce(Generator& g) {
  const Item* item = g.any();
  if (item == nullptr) return false;
  Extents axes = {g.spelled(*item, g.axis_of(*item))};
  const std::string op =
      g.random.pick<const char*>({"ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"});
  const bool exact = item->exact && op != "ReduceMean";
  g.give(g.reduce(op, item->name, axes, g.random.chance(40)), exact);
  return true;
}

bool centred(Generator& g) {  // x - x.mean(axis, keepdim)
  const Item* item = g.any();
  if (item == nullptr) return false;
  const std::string middle = g.mean(item->name, {static_cast<int64_t>(g.axis_of(*item))}, true);
  g.give(g.draft.node("Sub", {item->name, middle}), false);
  return true;
}

bool divided_by_extent(Generator& g) {  // x.sum(axis) / x.shape[axis]
  const Item* item = g.any();
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const std::string n = g.draft.node("Cast", {g.extent(at.name, axis, at.axes())}, {{"to", kOnnxFloat}});
  const std::string sum = g.reduce("ReduceSum", at.name, {static_cast<int64_t>(axis)}, g.random.chance(50));
  g.give(g.draft.node("Div", {sum, n}), false);
  return true;
}

bool largest(Generator& g) {  // topk(x, min(n, k))
  const Item* item = g.any(1, 3);
  if (item == nullptr || !item->exact) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const int64_t most = g.random.between(1, 8);
  std::string k = g.draft.ints({most});
  if (g.random.chance(70))
    k = g.as_list(g.draft.node("Min", {g.extent(at.name, axis, at.axes()), g.draft.number(most)}));
  const Names found = g.draft.nodes("TopK", {at.name, k}, 2,
                                    {{"axis", static_cast<int64_t>(axis)}, {"largest", g.random.below(2)}});
  g.give(found[0], true);
  if (g.random.chance(50)) g.give(g.draft.node("Cast", {found[1]}, {{"to", kOnnxFloat}}), true);
  return true;
}

bool running_sum(Generator& g) {
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const auto axis = g.draft.number(g.spelled(*item, g.axis_of(*item)));
  g.give(g.draft.node("CumSum", {item->name, axis},
                      {{"exclusive", g.random.below(2)}, {"reverse", g.random.below(2)}}),
         item->exact);
  return true;
}

bool where_true(Generator& g) {  // NonZero of a condition: a data-dependent number
  const Item* item = g.any(1, 3);
  if (item == nullptr || !item->exact) return false;
  const std::string above = g.draft.node("Greater", {item->name, g.draft.floats({}, {0.5f})});
  switch (g.random.below(3)) {
    case 0: {
      const std::string index = g.draft.node("NonZero", {above});
      g.give(g.draft.node("Cast", {index}, {{"to", kOnnxFloat}}), true);
      g.give_scalar(g.extent(index, 1, 2));
      return true;
    }
    case 1: {
      const std::string index =
          g.draft.node("Transpose", {g.draft.node("NonZero", {above})}, {{"perm", Extents{1, 0}}});
      g.give(g.draft.node("GatherND", {item->name, index}), true);
      return true;
    }
    default: {
      const std::string flat = g.draft.node("Reshape", {above, g.draft.ints({-1})});
      const std::string values = g.draft.node("Reshape", {item->name, g.draft.ints({-1})});
      g.give(g.draft.node("Compress", {values, flat}, {{"axis", 0}}), true);
    }
  }
  return true;
}

bool masked(Generator& g) {  // where(arange(n) < length, x, 0)
  const Item* item = g.any(1, 4);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t last = at.axes() - 1;
  const Scalar length = g.scalar();
  const std::string range =
      g.draft.node("Range", {g.draft.number(0), g.extent(at.name, last, at.axes()), g.draft.number(1)});
  const std::string inside = g.draft.node("Less", {range, length.name});
  g.give(g.draft.node("Where", {inside, at.name, g.draft.floats({}, {0.0f})}), at.exact);
  return true;
}

bool causal(Generator& g) {  // the lower triangle of [n, n]
  const Scalar n = g.scalar();
  if (n.most() > 100) return false;
  const std::string shape = g.draft.node("Concat", {g.as_list(n.name), g.as_list(n.name)}, {{"axis", 0}});
  const std::string ones =
      g.draft.node("Add", {g.draft.node("ConstantOfShape", {shape}), g.draft.floats({}, {1.0f})});
  g.give(g.draft.node("Trilu", {ones}, {{"upper", g.random.below(2)}}), true);
  return true;
}

bool similarity(Generator& g) {  // x x^T
  const Item* item = g.any(2, 4);
  if (item == nullptr) return false;
  Extents order;
  for (int i = 0; i < item->rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const std::string transposed = g.draft.node("Transpose", {item->name}, {{"perm", order}});
  g.give(g.draft.node("MatMul", {item->name, transposed}), false);
  return true;
}

bool choose(Generator& g) {  // if n > c: crop, else pad
  const Item* item = g.any(1, 3);
  if (item == nullptr) return false;
  const Item at = *item;
  const size_t axis = g.axis_of(at);
  const Scalar n = g.scalar();
  const int64_t limit = g.random.pick<int64_t>({1, 8, 16, 30, 64});
  const char* op = g.random.pick<const char*>({"Greater", "Less", "Equal"});
  const std::string condition = g.draft.node(op, {n.name, g.draft.number(limit)});
  g.draft.begin_body();
  const std::string cut =
      g.slice(at.name, g.draft.ints({0}), g.draft.ints({limit}), static_cast<int64_t>(axis));
  const rt_onnx::GraphProto yes = g.draft.take_body({cut});
  g.draft.begin_body();
  std::string other;
  switch (g.random.below(3)) {
    case 0: other = g.draft.node("Concat", {at.name, at.name}, {{"axis", static_cast<int64_t>(axis)}}); break;
    case 1: other = g.draft.node("Neg", {at.name}); break;
    default: {
      Extents pads(2 * at.axes(), 0);
      pads[axis + at.axes()] = 5;
      other = g.draft.node("Pad", {at.name, g.draft.ints(pads)});
    }
  }
  const rt_onnx::GraphProto no = g.draft.take_body({other});
  g.give(g.draft.node("If", {condition}, {{"then_branch", yes}, {"else_branch", no}}), at.exact);
  return true;
}

bool choose_number(Generator& g) {  // an If of extents
  const Scalar n = g.scalar();
  const std::string condition = g.draft.node("Greater", {n.name, g.draft.number(g.random.between(1, 40))});
  g.draft.begin_body();
  const rt_onnx::GraphProto yes = g.draft.take_body({g.floor_div(n.name, 2)});
  g.draft.begin_body();
  const rt_onnx::GraphProto no = g.draft.take_body({g.plus(n.name, 1)});
  g.give_scalar(g.draft.node("If", {condition}, {{"then_branch", yes}, {"else_branch", no}}));
  return true;
}

// Trip count of a loop: a small computed value.
std::string trips(Generator& g) {
  if (g.random.chance(30)) return g.draft.number(g.random.below(4));
  return g.draft.node("Min", {g.scalar().name, g.draft.number(g.random.between(1, 5))});
}

bool loop_of_rows(Generator& g) {  // a result per iteration, stacked
  const Item* item = g.any(1, 3);
  if (item == nullptr) return false;
  const Item at = *item;
  const std::string count = trips(g), start = g.draft.floats({}, {0.25f});
  g.draft.begin_body();
  const std::string i = g.draft.body_input(kOnnxInt64, 0), condition = g.draft.body_input(kOnnxBool, 0);
  const std::string carried = g.draft.body_input(kOnnxFloat, 0);
  const std::string more = g.draft.node("Identity", {condition});
  const std::string next = g.draft.node("Add", {carried, g.draft.floats({}, {1.0f})});
  std::string row = g.draft.node("Add", {at.name, carried});
  if (g.random.chance(50)) row = g.reduce("ReduceMax", row, {0}, false);
  const rt_onnx::GraphProto body = g.draft.take_body({more, next, row});
  g.give(g.draft.nodes("Loop", {count, g.draft.flag(true), start}, 2, {{"body", body}})[1], at.exact);
  return true;
}

bool loop_that_grows(Generator& g) {  // the carried value grows with every iteration
  const Item* item = g.any(1, 2);
  if (item == nullptr) return false;
  const Item at = *item;
  const auto axis = static_cast<int64_t>(g.axis_of(at));
  const std::string count = trips(g);
  g.draft.begin_body();
  const std::string i = g.draft.body_input(kOnnxInt64, 0), condition = g.draft.body_input(kOnnxBool, 0);
  const std::string carried = g.draft.body_input(kOnnxFloat, at.rank());
  const std::string more = g.draft.node("Identity", {condition});
  const std::string piece = g.slice(at.name, g.draft.ints({0}), g.draft.ints({2}), axis);
  const std::string longer = g.draft.node("Concat", {carried, piece}, {{"axis", axis}});
  const rt_onnx::GraphProto body = g.draft.take_body({more, longer});
  g.give(g.draft.node("Loop", {count, g.draft.flag(true), at.name}, {{"body", body}}), at.exact);
  return true;
}

bool loop_of_numbers(Generator& g) {  // doubles or halves an extent
  const Scalar n = g.scalar();
  if (n.most() > 60) return false;
  const std::string count = trips(g);
  const bool halves = g.random.chance(60);
  g.draft.begin_body();
  const std::string i = g.draft.body_input(kOnnxInt64, 0), condition = g.draft.body_input(kOnnxBool, 0);
  const std::string carried = g.draft.body_input(kOnnxInt64, 0);
  const std::string more = g.draft.node("Identity", {condition});
  const std::string next = halves ? g.floor_div(carried, 2) : g.plus(carried, 3);
  const rt_onnx::GraphProto body = g.draft.take_body({more, next});
  g.give_scalar(g.draft.node("Loop", {count, g.draft.flag(true), n.name}, {{"body", body}}));
  return true;
}

}  // namespace

std::vector<Block> value_blocks() {
  return {{"scalar", 4, scalar},
          {"two_scalars", 6, two_scalars},
          {"count_of_elements", 2, count_of_elements},
          {"combine", 9, combine},
          {"activate", 3, activate},
          {"softmax", 3, softmax},
          {"reduce", 6, reduce},
          {"centred", 4, centred},
          {"divided_by_extent", 3, divided_by_extent},
          {"largest", 5, largest},
          {"running_sum", 3, running_sum},
          {"where_true", 5, where_true},
          {"masked", 4, masked},
          {"causal", 3, causal},
          {"similarity", 3, similarity},
          {"choose", 5, choose},
          {"choose_number", 3, choose_number},
          {"loop_of_rows", 4, loop_of_rows},
          {"loop_that_grows", 3, loop_that_grows},
          {"loop_of_numbers", 3, loop_of_numbers}};
}

std::vector<Block> all_blocks() {
  std::vector<Block> all = window_blocks();
  for (const auto& more : {movement_blocks(), value_blocks()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace librt::test
