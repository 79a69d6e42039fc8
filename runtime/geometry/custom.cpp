#include "runtime/geometry/custom.h"

#include <charconv>

namespace librt {
namespace {

Result<int64_t> extent_of(const NodeView& node, int64_t number) {
  if (number >= 0) return number;
  const int64_t place = -1 - number, input = place / kMaxRank, axis = place % kMaxRank;
  if (input < static_cast<int64_t>(node.input_count()))
    if (const auto i = static_cast<size_t>(input); node.has(i) && axis < node.shape(i).rank())
      return node.shape(i)[static_cast<int>(axis)];
  return invalid_argument("expected an operand ", input, " with an axis ", axis,
                          ", of which a result has the extent");
}

}  // namespace

Result<std::vector<CustomAttribute>> custom_attributes(const op::CustomAttributes& attributes) {
  std::vector<CustomAttribute> all;
  size_t ints = 0, floats = 0, text = 0;
  std::string_view rest = attributes.attributes;
  while (!rest.empty()) {
    const size_t colon = rest.find(':'), end = std::min(rest.find(' '), rest.size());
    CustomAttribute& next = all.emplace_back();
    if (colon == 0 || colon >= end || end - colon < 3)
      return invalid_argument("'", rest, "' is no description of attributes");
    next.name = rest.substr(0, colon);
    next.type = rest[colon + 1];
    const char* const last = rest.data() + end;
    const auto number = std::from_chars(rest.data() + colon + 2, last, next.count);
    const size_t size = next.type == 'i'   ? attributes.ints.size()
                        : next.type == 'f' ? attributes.floats.size()
                        : next.type == 's' ? attributes.text.size()
                                           : 0;
    size_t& used = next.type == 'i' ? ints : next.type == 'f' ? floats : text;
    if (number.ec != std::errc() || number.ptr != last || next.count > size - std::min(used, size))
      return invalid_argument("attribute '", rest.substr(0, end), "': expected a type and as many of ", size,
                              " values");
    next.first = used;
    used += next.count;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return all;
}

Status infer_custom(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::CustomAttributes>();
  if (attributes.name.empty()) return invalid_argument("expected the name of an operator, found none");
  RT_TRY(custom_attributes(attributes).status());
  const std::vector<int64_t>& numbers = attributes.outputs;
  for (size_t at = 0; at < numbers.size();) {
    const size_t left = numbers.size() - at;
    const int64_t dtype = numbers[at], rank = left > 1 ? numbers[at + 1] : -1;
    if (dtype < 0 || dtype >= kDTypeCount || rank < 0 || rank > kMaxRank ||
        static_cast<size_t>(rank) > left - 2)
      return invalid_argument("expected a type, a rank and extents for each result, found type ", dtype,
                              " and rank ", rank);
    TensorInfo& info = outputs.emplace_back(TensorInfo{static_cast<DType>(dtype), {}});
    at += 2;
    for (int64_t i = 0; i < rank; ++i) {
      RT_ASSIGN(const int64_t extent, extent_of(node, numbers[at++]));
      info.shape.push_back(extent);
    }
    if (!info.shape.checked_elements()) return invalid_argument("the result ", info, " is too large");
  }
  return {};
}

}  // namespace librt
