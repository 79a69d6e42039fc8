#include "tools/data/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "runtime/core/element.h"

namespace librt::tools {
namespace {

std::string number_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::vector<int64_t> index_of(size_t flat, const std::vector<int64_t>& dims) {
  std::vector<int64_t> index(dims.size());
  for (size_t axis = dims.size(); axis-- > 0;) {
    index[axis] = static_cast<int64_t>(flat % static_cast<size_t>(dims[axis]));
    flat /= static_cast<size_t>(dims[axis]);
  }
  return index;
}

std::string list_text(const std::vector<int64_t>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? "," : "") + std::to_string(values[i]);
  return out + "]";
}

}  // namespace

double element_of(const Array& array, size_t i) noexcept {
  return load_element(array.bytes.data(), array.type, static_cast<int64_t>(i));
}

Array converted(const Array& array, DType type) {
  Array out{.name = array.name, .type = type, .dims = array.dims, .bytes = {}};
  const size_t count = array.bytes.size() / size_of(array.type);
  out.bytes.resize(count * size_of(type));
  const bool integers = !is_float(array.type) && !is_float(type);
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<int64_t>(i);
    if (integers)
      store_integer(out.bytes.data(), type, at, load_integer(array.bytes.data(), array.type, at));
    else
      store_element(out.bytes.data(), type, at, element_of(array, i));
  }
  return out;
}

std::string describe(const Array& array) {
  return std::string(name_of(array.type)) + list_text(array.dims);
}

void RelativeError::add(const Array& got, const Array& want) {
  if (!is_float(want.type)) return;
  const size_t count = std::min(got.bytes.size(), want.bytes.size()) / size_of(want.type);
  for (size_t i = 0; i < count; ++i) {
    const double expected = element_of(want, i), distance = std::fabs(element_of(got, i) - expected);
    difference_ =
        std::isnan(distance) ? std::numeric_limits<double>::infinity() : std::max(difference_, distance);
    largest_ = std::max(largest_, std::fabs(expected));
  }
}

Difference compare(const Array& got, const Array& want, double rtol, double atol) {
  Difference result;
  if (got.type != want.type || got.dims != want.dims) {
    result.text = "is " + describe(got) + ", expected " + describe(want);
    return result;
  }
  result.same_kind = true;
  result.elements = got.bytes.size() / size_of(got.type);
  double worst = -1;
  for (size_t i = 0; i < result.elements; ++i) {
    const double a = element_of(got, i);
    const double b = element_of(want, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double distance = std::fabs(a - b);
    if (std::isfinite(distance)) result.largest = std::max(result.largest, distance);
    const double allowed = atol + rtol * std::fabs(b);
    if (distance <= allowed && std::isfinite(b)) continue;
    ++result.outside;
    const double excess = std::isfinite(distance) ? distance / (allowed > 0 ? allowed : 1e-300) : INFINITY;
    if (excess > worst) {
      worst = excess;
      result.where = index_of(i, got.dims);
      result.got = a;
      result.want = b;
    }
  }
  result.text = result.outside == 0
                    ? "agrees; largest difference " + number_text(result.largest)
                    : std::to_string(result.outside) + " of " + std::to_string(result.elements) +
                          " elements differ; worst at " + list_text(result.where) + ": " +
                          number_text(result.got) + ", expected " + number_text(result.want) + " (rtol " +
                          number_text(rtol) + ", atol " + number_text(atol) + ")";
  return result;
}

}  // namespace librt::tools
