#include "tools/onnx/opened_batch.h"

#include <algorithm>

#include "runtime/core/element.h"
#include "tools/onnx/node.h"

namespace librt::onnx {
namespace {

/// The batch that --open-batch made dynamic, as part of a value.
struct BatchPart {
  std::vector<int64_t> dims;  ///< of the value with a batch of 1
  int64_t elements = 1;       ///< their product
  int axis = 0;               ///< that is a multiple of the batch
};

std::optional<BatchPart> batch_part(NodeContext& c, ValueId x) {
  const std::vector<Symbol>& symbols = c.emit.graph().symbols;
  const auto batch = std::find_if(symbols.begin(), symbols.end(),
                                  [](const Symbol& symbol) { return symbol.name == kOpenedBatch; });
  if (!c.options.open_batch || batch == symbols.end()) return std::nullopt;
  compiler::ExtentTable& table = c.emit.extents();
  const auto at = [&](compiler::Extent extent, int64_t value) {
    std::vector<int64_t> values(symbols.size(), 1);
    values[static_cast<size_t>(batch - symbols.begin())] = value;
    return table.evaluate(extent, values);
  };
  BatchPart part;
  size_t axes = 0;
  for (const compiler::Extent dim : c.emit.known(x).dims) {
    if (dim.is_unknown()) return std::nullopt;
    const auto one = at(dim, 1), two = at(dim, 2);
    if (!one || !two || *one <= 0) return std::nullopt;
    if (!dim.is_constant()) {
      const auto found = table.symbols_of(dim);
      if (found.size() != 1 || found[0] != batch - symbols.begin() || *two != 2 * *one) return std::nullopt;
      part.axis = static_cast<int>(part.dims.size());
      ++axes;
    }
    part.dims.push_back(*one);
    if (__builtin_mul_overflow(part.elements, *one, &part.elements)) return std::nullopt;
  }
  if (axes != 1) return std::nullopt;
  return part;
}

/// The entry of a shape that takes the batch: a 1 where the batch lies in the order of the elements; else the
/// entry there, or the one before it if that would be the last, which holds features. The batch may be the
/// outer or the inner part of its axis.
size_t entry_of_batch(const BatchPart& from, const std::vector<int64_t>& shape) {
  int64_t before = 1;
  for (int axis = 0; axis < from.axis; ++axis) before *= from.dims[static_cast<size_t>(axis)];
  const int64_t inner = before * from.dims[static_cast<size_t>(from.axis)];
  for (const int64_t place : {before, inner}) {
    int64_t product = 1;
    for (size_t i = 0; i < shape.size() && product <= place; product *= shape[i++])
      if (shape[i] == 1 && product == place) return i;
  }
  int64_t product = 1;
  size_t i = 0;
  while (i + 1 < shape.size() && product * shape[i] <= before) product *= shape[i++];
  return i > 0 && i + 1 == shape.size() ? i - 1 : i;
}

}  // namespace

bool is_opened_batch(const Graph& graph, const Dim& dim) {
  return !dim.is_known() && dim.symbol >= 0 &&
         graph.symbols[static_cast<size_t>(dim.symbol)].name == kOpenedBatch;
}

bool leads_with_batch(const NodeContext& c, ValueId x) {
  const std::vector<Dim>& dims = c.emit.value(x).dims;
  return c.options.open_batch && !dims.empty() && is_opened_batch(c.emit.graph(), dims[0]);
}

std::optional<Extent> leading_batch(const NodeContext& c, std::span<const ValueId> values) {
  for (const ValueId x : values)
    if (x != kNoValue && leads_with_batch(c, x)) return Extent::dim(c.emit, x, 0);
  return std::nullopt;
}

ValueId with_batch(NodeContext& c, ValueId x, int axis, const Extent& batch) {
  if (x == kNoValue || c.emit.value(x).rank() <= axis) return x;
  if (c.emit.value(x).dims[static_cast<size_t>(axis)].extent != 1) return x;
  std::vector<Extent> extents = extents_of(c.emit, x);
  extents[static_cast<size_t>(axis)] = batch;
  return c.emit.emit(op::ExpandAttributes{}, {x, shape_vector(c.emit, extents)});
}

ValueId reshape_with_batch(NodeContext& c, ValueId shape, bool allow_zero) {
  const auto part = batch_part(c, c.input(0));
  const auto known = part ? c.emit.known_value(shape) : std::nullopt;
  if (!known || known->info.elements() == 0) return kNoValue;
  std::vector<int64_t> wanted;
  int64_t product = 1;
  for (int64_t i = 0; i < known->info.elements(); ++i) {
    int64_t entry = load_integer(known->data, DType::I64, i);
    if (entry == 0 && !allow_zero && i < c.rank()) entry = part->dims[static_cast<size_t>(i)];
    if (entry == 0 || entry < -1) return kNoValue;
    wanted.push_back(entry);
    if (__builtin_mul_overflow(product, std::max<int64_t>(entry, 1), &product)) return kNoValue;
  }
  if (std::count(wanted.begin(), wanted.end(), -1) > 1) return kNoValue;  // Reshape's error
  for (int64_t& entry : wanted)
    if (entry < 0) entry = part->elements / product;
  wanted[entry_of_batch(*part, wanted)] = -1;
  return c.emit.reshape(c.input(0), c.emit.ints(wanted));
}

}  // namespace librt::onnx
