#include "runtime/geometry/custom.h"

#include <algorithm>

namespace librt {
namespace {

constexpr size_t kMostValues = 1 << 20;  ///< more than any list has

Result<int64_t> extent_of(const NodeView& node, int64_t number) {
  if (number >= 0) return number;
  const int64_t place = -1 - number, input = place / kMaxRank, axis = place % kMaxRank;
  if (input < static_cast<int64_t>(node.input_count()))
    if (const auto i = static_cast<size_t>(input); node.has(i) && axis < node.shape(i).rank())
      return node.shape(i)[static_cast<int>(axis)];
  return invalid_argument("expected an operand ", input, " with an axis ", axis);
}

}  // namespace

Result<bool> CustomAttributeReader::next(CustomAttribute& to) {
  if (rest_.empty()) return false;
  const std::string_view one = rest_.substr(0, rest_.find(' '));
  const size_t colon = one.find(':');
  if (colon == 0 || colon >= one.size() || one.size() - colon < 3)
    return invalid_argument("'", rest_, "' is no description of attributes");
  to = {one.substr(0, colon), one[colon + 1], 0, 0};
  const size_t list = std::string_view("ifs").find(to.type);
  bool valid = list < std::size(lists_);
  for (const char digit : one.substr(colon + 2)) {
    valid = valid && digit >= '0' && digit <= '9' && to.count <= kMostValues;
    to.count = 10 * to.count + static_cast<size_t>(digit - '0');
  }
  const List values = valid ? lists_[list] : List{};
  if (!valid || to.count > values.size - values.used)
    return invalid_argument("attribute '", one, "': expected a type and as many of ", values.size, " values");
  to.first = values.used;
  lists_[list].used += to.count;
  rest_.remove_prefix(std::min(one.size() + 1, rest_.size()));
  return true;
}

Status infer_custom(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::CustomAttributes>();
  if (attributes.name.empty()) return invalid_argument("expected the name of an operator, found none");
  CustomAttributeReader reader(attributes);
  CustomAttribute attribute;
  for (bool more = true; more;) {
    RT_ASSIGN(more, reader.next(attribute));
  }
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
    if (!info.shape.checked_elements())
      return invalid_argument("the result ", info, " is too large" RT_FEW_ELEMENTS);
  }
  return {};
}

}  // namespace librt
