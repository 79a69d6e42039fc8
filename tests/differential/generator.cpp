#include "tests/differential/generator.h"

#include <algorithm>
#include <set>

#include "tests/differential/check.h"
#include "tools/data/compare.h"

namespace librt::test {

namespace {

constexpr int64_t kLargestSample = 30'000;  ///< largest element count of a value at the samples
constexpr size_t kRankLimit = 5;

Extents dims_of_input(const rt_onnx::ValueInfoProto& input, const Assignment& at) {
  Extents dims;
  for (const auto& dim : input.type().tensor_type().shape().dim())
    dims.push_back(dim.dim_param().empty() ? dim.dim_value() : at.at(std::string(dim.dim_param())));
  return dims;
}

int64_t count_of(const Extents& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

std::set<std::string> names_read(const rt_onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& node : graph.node()) {
    for (const auto& input : node.input()) names.insert(std::string(input));
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) {
        names.merge(names_read(attribute.g()));
        for (const auto& output : attribute.g().output()) names.insert(std::string(output.name()));
      }
  }
  return names;
}

}  // namespace

bool Item::is_fixed(size_t axis) const {
  for (const Extents& sample : dims)
    if (sample[axis] != dims[0][axis]) return false;
  return true;
}

int64_t Item::least(size_t axis) const {
  int64_t least = dims[0][axis];
  for (const Extents& sample : dims) least = std::min(least, sample[axis]);
  return least;
}

int64_t Scalar::least() const {
  return *std::min_element(values.begin(), values.end());
}

int64_t Scalar::most() const {
  return *std::max_element(values.begin(), values.end());
}

Generator::Generator(uint64_t seed) : random(seed), draft(random.chance(25) ? 18 : 17) {
  add_inputs();
}

void Generator::add_inputs() {
  static const std::vector<Names> kShapes = {
      {"b", "n"},           {"b", "n"},      {"b", "n"},           {"n"},           {"b", "n", "3"},
      {"b", "2", "n"},      {"b", "1", "n"}, {"b", "n", "m"},      {"n", "m"},      {"n", "n"},
      {"b", "2", "n", "m"}, {"2", "n", "4"}, {"1", "3", "n", "m"}, {"b", "n", "4"}, {"1", "n"}};
  const Names first = random.pick(kShapes);
  draft.input("x", kOnnxFloat, first);
  if (random.chance(35)) draft.input("y", kOnnxFloat, random.chance(40) ? first : random.pick(kShapes));
  const bool counted = random.chance(10);
  if (counted) draft.input("k", kOnnxInt64, {});
  const std::vector<Assignment> samples = {
      {{"b", 2}, {"n", 24}, {"m", 20}}, {{"b", 3}, {"n", 37}, {"m", 12}}, {{"b", 4}, {"n", 66}, {"m", 31}}};
  for (size_t i = 0; i < samples.size(); ++i) {
    samples_.push_back({});
    for (const std::string& name : symbols_of(draft.model)) samples_.back()[name] = samples[i].at(name);
  }
  for (const auto& input : draft.model.graph().input()) {
    if (input.name() == "k") continue;
    Item item{.name = std::string(input.name())};
    for (const Assignment& sample : samples_) item.dims.push_back(dims_of_input(input, sample));
    tensors_.push_back(std::move(item));
  }
  if (counted) {
    new_scalars_ = {"k"};
    measure();
  }
}

const Item* Generator::any(int least, int most) {
  std::vector<const Item*> found;
  for (const Item& item : tensors_)
    if (item.rank() >= least && item.rank() <= most) found.push_back(&item);
  if (found.empty()) return nullptr;
  return random.chance(60) ? found.back() : random.pick(found);
}

size_t Generator::axis_of(const Item& item) {
  std::vector<size_t> open;
  for (size_t axis = 0; axis < item.axes(); ++axis)
    if (item.is_open(axis)) open.push_back(axis);
  if (!open.empty() && random.chance(85)) return random.pick(open);
  return static_cast<size_t>(random.below(item.rank()));
}

std::string Generator::extent(const std::string& tensor, size_t axis, size_t rank) {
  const auto index = static_cast<int64_t>(axis);
  switch (random.below(3)) {
    case 0: {
      const std::string list = draft.node("Shape", {tensor}, {{"start", index}, {"end", index + 1}});
      return draft.node("Squeeze", {list, draft.ints({0})});
    }
    case 1:
      return draft.node("Gather",
                        {draft.node("Shape", {tensor}), draft.number(index - static_cast<int64_t>(rank))});
    default: return draft.node("Gather", {draft.node("Shape", {tensor}), draft.number(index)});
  }
}

std::string Generator::as_list(const std::string& scalar) {
  if (random.chance(30)) return draft.node("Reshape", {scalar, draft.ints({-1})});
  return unsqueeze(scalar, {0});
}

std::string Generator::floor_div(const std::string& a, int64_t divisor) {
  if (random.chance(30)) {  // as exporters write floor(a / divisor)
    const std::string real = draft.node("Cast", {a}, {{"to", kOnnxFloat}});
    const std::string quotient = draft.node("Div", {real, draft.floats({}, {static_cast<float>(divisor)})});
    return draft.node("Cast", {draft.node("Floor", {quotient})}, {{"to", kOnnxInt64}});
  }
  return binary("Div", a, draft.number(divisor));
}

std::string Generator::ceil_div(const std::string& a, int64_t divisor) {
  switch (random.below(3)) {
    case 0: {
      const std::string real = draft.node("Cast", {a}, {{"to", kOnnxFloat}});
      const std::string quotient = draft.node("Div", {real, draft.floats({}, {static_cast<float>(divisor)})});
      return draft.node("Cast", {draft.node("Ceil", {quotient})}, {{"to", kOnnxInt64}});
    }
    case 1: return binary("Div", plus(a, divisor - 1), draft.number(divisor));
    default: {  // -(-a // divisor), with the remainder that truncation leaves
      const std::string rest = draft.node("Mod", {a, draft.number(divisor)});
      const std::string more = draft.node("Greater", {rest, draft.number(0)});
      const std::string one = draft.node("Cast", {more}, {{"to", kOnnxInt64}});
      return binary("Add", binary("Div", a, draft.number(divisor)), one);
    }
  }
}

std::string Generator::reduce(const std::string& op, const std::string& tensor, const Extents& axes,
                              bool keep) {
  // Before opset 18 only ReduceSum takes axes as an input.
  if (draft.opset >= 18 || op == "ReduceSum")
    return draft.node(op, {tensor, draft.ints(axes)}, {{"keepdims", keep ? 1 : 0}});
  return draft.node(op, {tensor}, {{"axes", axes}, {"keepdims", keep ? 1 : 0}});
}

std::string Generator::mean(const std::string& tensor, const Extents& axes, bool keep) {
  return reduce("ReduceMean", tensor, axes, keep);
}

std::string Generator::slice(const std::string& tensor, const std::string& start, const std::string& end,
                             int64_t axis, int64_t step) {
  return draft.node("Slice", {tensor, start, end, draft.ints({axis}), draft.ints({step})});
}

std::string Generator::shape_with(const Item& item,
                                  const std::vector<std::pair<size_t, std::string>>& replaced) {
  Names parts;
  for (size_t axis = 0; axis < item.axes(); ++axis) {
    std::string part;
    for (const auto& [at, name] : replaced)
      if (at == axis) part = name;
    if (part.empty())
      part = item.is_fixed(axis) && random.chance(50) ? draft.ints({item.dims[0][axis]})
                                                      : as_list(extent(item.name, axis, item.axes()));
    parts.push_back(part);
  }
  return parts.size() == 1 ? parts[0] : draft.node("Concat", parts, {{"axis", 0}});
}

std::string Generator::weights(const Extents& dims) {
  std::vector<float> values;
  for (int64_t i = 0; i < count_of(dims); ++i)
    values.push_back(static_cast<float>(random.between(-4, 4)) / 4);
  return draft.floats(dims, values);
}

void Generator::give(const std::string& tensor, bool exact) {
  new_tensors_.emplace_back(tensor, exact);
}

std::optional<std::string> Generator::derived(const Scalar& from, std::vector<int64_t>& values) {
  const int64_t k = random.pick<int64_t>({2, 2, 3, 4, 5, 7, 8, 16, 32, 64, 160});
  const auto each = [&](auto&& function) {
    for (int64_t& value : values) value = function(value);
  };
  const auto constant = [&](int64_t number) { return draft.number(number); };
  const std::string& a = from.name;
  switch (random.below(14)) {
    case 0: each([&](int64_t v) { return v / k; }); return floor_div(a, k);
    case 1: each([&](int64_t v) { return (v + k - 1) / k; }); return ceil_div(a, k);
    case 2: each([&](int64_t v) { return v % k; }); return draft.node("Mod", {a, constant(k)});
    case 3: each([&](int64_t v) { return std::min(v, k); }); return draft.node("Min", {a, constant(k)});
    case 4: each([&](int64_t v) { return std::max(v, k); }); return draft.node("Max", {constant(k), a});
    case 5: each([&](int64_t v) { return v - k; }); return binary("Sub", a, constant(k));
    case 6: each([&](int64_t v) { return v + k; }); return plus(a, k);
    case 7:
      if (from.most() > 200) return std::nullopt;
      each([](int64_t v) { return v * 2; });
      return times(a, 2);
    case 8: each([&](int64_t v) { return v / k * k; }); return times(floor_div(a, k), k);
    case 9: each([&](int64_t v) { return (v + k - 1) / k * k; }); return times(ceil_div(a, k), k);
    case 10: {  // a if a < k else k // 2
      each([&](int64_t v) { return v < k ? v : k / 2; });
      const std::string less = draft.node(random.chance(50) ? "Less" : "LessOrEqual", {a, constant(k)});
      for (size_t i = 0; i < values.size(); ++i)
        if (from.values[i] == k) return std::nullopt;
      return draft.node("Where", {less, a, constant(k / 2)});
    }
    case 11: {  // half of it, in floating point
      each([](int64_t v) { return v / 2; });
      const std::string real = draft.node("Cast", {a}, {{"to", kOnnxFloat}});
      const std::string half = draft.node("Mul", {real, draft.floats({}, {0.5f})});
      return draft.node("Cast", {draft.node("Floor", {half})}, {{"to", kOnnxInt64}});
    }
    case 12: {  // padding to a multiple
      each([&](int64_t v) { return (k - v % k) % k; });
      const std::string rest = draft.node("Mod", {a, constant(k)});
      return draft.node("Mod", {binary("Sub", constant(k), rest), constant(k)});
    }
    default: each([](int64_t v) { return v - 1; }); return binary("Sub", a, constant(1));
  }
}

Scalar Generator::scalar() {
  Scalar from;
  const Item& item = tensors_[static_cast<size_t>(random.below(static_cast<int64_t>(tensors_.size())))];
  if (!scalars_.empty() && (random.chance(50) || item.rank() == 0)) {
    from = random.pick(scalars_);
  } else if (item.rank() == 0) {
    from = {.name = draft.number(3), .values = std::vector<int64_t>(samples_.size(), 3)};
  } else {
    const size_t axis = axis_of(item);
    from.name = extent(item.name, axis, item.axes());
    for (const Extents& dims : item.dims) from.values.push_back(dims[axis]);
  }
  for (int steps = static_cast<int>(random.below(3)); steps > 0; --steps) {
    std::vector<int64_t> values = from.values;
    if (const auto name = derived(from, values)) from = {.name = *name, .values = values};
  }
  return from;
}

bool Generator::measure() {
  Names outputs;
  for (const auto& [name, exact] : new_tensors_) outputs.push_back(name);
  outputs.insert(outputs.end(), new_scalars_.begin(), new_scalars_.end());
  draft.set_outputs(outputs);
  std::vector<Item> items;
  std::vector<Scalar> scalars;
  for (const auto& [name, exact] : new_tensors_) items.push_back({.name = name, .exact = exact});
  for (const std::string& name : new_scalars_) scalars.push_back({.name = name});
  for (const Assignment& sample : samples_) {
    const rt_onnx::ModelProto fixed = with_extents(draft.model, sample);
    std::string error;
    bool too_large = false;
    const auto results = run_fixed(fixed, make_inputs(fixed, 1), error, &too_large);
    if (!results || results->size() != outputs.size()) return false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const tools::Array& result = (*results)[i];
      if (i >= items.size()) {
        if (result.dims.empty())
          scalars[i - items.size()].values.push_back(static_cast<int64_t>(tools::element_of(result, 0)));
        continue;
      }
      if (count_of(result.dims) > kLargestSample || result.dims.size() > kRankLimit) return false;
      items[i].dims.push_back(result.dims);
    }
  }
  for (Item& item : items) tensors_.push_back(std::move(item));
  for (Scalar& scalar : scalars)
    if (scalar.values.size() == samples_.size()) scalars_.push_back(std::move(scalar));
  new_tensors_.clear();
  new_scalars_.clear();
  return true;
}

bool Generator::try_block() {
  static const std::vector<Block> blocks = all_blocks();
  static const int64_t total = [] {
    int64_t sum = 0;
    for (const Block& block : blocks) sum += block.weight;
    return sum;
  }();
  int64_t place = random.below(total);
  const Block* chosen = blocks.data();
  while (place >= chosen->weight) place -= (chosen++)->weight;
  const Draft before = draft;
  if (chosen->add(*this) && !(new_tensors_.empty() && new_scalars_.empty()) && measure()) return true;
  draft = before;
  new_tensors_.clear();
  new_scalars_.clear();
  return false;
}

rt_onnx::ModelProto Generator::generate() {
  const int64_t blocks = random.between(1, 6);
  int64_t added = 0;
  for (int tries = 0; added < blocks && tries < 40; ++tries) added += try_block() ? 1 : 0;
  // Unread values become outputs, some averaged over all axes but the first, so that a wrong extent shows as
  // a wrong value.
  const std::set<std::string> read = names_read(draft.model.graph());
  Names outputs;
  for (const Item& item : tensors_) {
    if (read.contains(item.name)) continue;
    if (item.name == "x" || item.name == "y") continue;
    const bool averaged = item.rank() > 1 && random.chance(40);
    Extents axes;
    for (int axis = 1; axis < item.rank(); ++axis) axes.push_back(axis);
    outputs.push_back(averaged ? mean(item.name, axes, false) : item.name);
    if (averaged && random.chance(30)) outputs.push_back(item.name);
  }
  for (const Scalar& scalar : scalars_)
    if (!read.contains(scalar.name) && scalar.name != "k") outputs.push_back(scalar.name);
  if (outputs.empty()) outputs.push_back(mean("x", {0}, false));
  draft.set_outputs(outputs);
  return draft.model;
}

namespace {

int64_t largest_input(const rt_onnx::ModelProto& model, const Assignment& at) {
  int64_t most = 0;
  for (const auto& input : model.graph().input()) most = std::max(most, count_of(dims_of_input(input, at)));
  return most;
}

}  // namespace

std::vector<Assignment> random_assignments(const rt_onnx::ModelProto& model, int count, uint64_t seed,
                                           bool with_empty) {
  constexpr int64_t kLargestInput = 4'000;  // elements
  Random random(seed ^ 0x5eed);
  const Names symbols = symbols_of(model);
  const int64_t beyond = std::min<int64_t>(largest_constant(model), 1'000) + random.between(1, 40);
  const auto draw = [&]() -> int64_t {
    const int64_t kind = random.below(100);
    if (kind < 10) return 1;
    if (kind < 14) return with_empty ? 0 : 1;
    if (kind < 40) return random.between(2, 9);
    if (kind < 60) return random.pick<int64_t>({11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67});
    if (kind < 75) return random.pick<int64_t>({8, 16, 24, 32, 40, 64, 96, 128, 160, 320});
    return random.between(10, 200);
  };
  std::vector<Assignment> all;
  for (int i = 0; i < count; ++i) {
    Assignment at;
    for (const std::string& name : symbols) at[name] = i == 0 ? 1 : draw();
    // The value above every constant for each symbol one after the other, with the other symbols small.
    const std::string kept =
        i >= 1 && i <= static_cast<int>(symbols.size()) ? symbols[static_cast<size_t>(i) - 1] : "";
    if (!kept.empty()) at[kept] = beyond;
    for (int tries = 0; tries < 20 && largest_input(model, at) > kLargestInput; ++tries) {
      auto largest = at.end();
      for (auto entry = at.begin(); entry != at.end(); ++entry)
        if (entry->first != kept && (largest == at.end() || entry->second > largest->second)) largest = entry;
      if (largest != at.end()) largest->second = largest->second / 3 + 1;
    }
    all.push_back(std::move(at));
  }
  return all;
}

}  // namespace librt::test
