#include "runtime/core/shape.h"

#include "runtime/core/text.h"

namespace librt {

std::optional<int64_t> Shape::checked_elements() const noexcept {
  int64_t product = 1;
  bool empty = false;
  for (int64_t dim : *this) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (product > kMostTensorElements / dim) return std::nullopt;
    product *= dim;
  }
  return empty ? 0 : product;
}

void append(std::string& out, const Shape& shape) {
  out.push_back('[');
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != 0) out.push_back(',');
    append(out, shape[i]);
  }
  out.push_back(']');
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) noexcept {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  const int shift = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const int64_t x = longer[i + shift];
    const int64_t y = shorter[i];
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[i + shift] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace librt
