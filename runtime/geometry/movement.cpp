#include "runtime/geometry/movement.h"

#include <algorithm>
#include <limits>

namespace librt {

Result<SliceGeometry> slice_geometry(const Shape& x, const op::SliceAttributes& attributes,
                                     std::span<const int64_t> starts, std::span<const int64_t> ends) {
  const size_t count = attributes.axes.empty() ? starts.size() : attributes.axes.size();
  if (starts.size() != count || ends.size() != count || count > static_cast<size_t>(x.rank()))
    return invalid_argument("expected as many starts and ends as axes (", count, ", at most rank ", x.rank(),
                            "), found ", starts.size(), " and ", ends.size());
  if (!attributes.steps.empty() && attributes.steps.size() != count)
    return invalid_argument("expected ", count, " steps or none, found ", attributes.steps.size());
  SliceGeometry geometry;
  geometry.result = x;
  geometry.step.fill(1);
  std::array<bool, kMaxRank> seen{};
  for (size_t i = 0; i < count; ++i) {
    const int64_t named = attributes.axes.empty() ? static_cast<int64_t>(i) : attributes.axes[i];
    const auto axis = normalized_axis(named, x.rank());
    if (!axis) return invalid_argument("expected axes in [", -x.rank(), ", ", x.rank(), "), found ", named);
    const auto at = static_cast<size_t>(*axis);
    if (seen[at]) return invalid_argument("expected each axis once, found ", named, " again");
    seen[at] = true;
    const int64_t extent = x[*axis];
    // A step beyond the extent reads one element whatever its size; the limit keeps products inside int64.
    constexpr int64_t kLimit = int64_t{1} << 60;
    const int64_t step = attributes.steps.empty() ? 1 : std::clamp(attributes.steps[i], -kLimit, kLimit);
    if (step == 0) return invalid_argument("expected steps other than 0, found 0 for axis ", named);
    const auto clamped = [&](int64_t position, int64_t low, int64_t high) {
      return std::clamp(position < 0 ? position + extent : position, low, high);
    };
    int64_t start = 0, length = 0;
    if (step > 0) {
      start = clamped(starts[i], 0, extent);
      length = clamped(ends[i], 0, extent) - start;
    } else if (extent > 0) {
      start = clamped(starts[i], 0, extent - 1);
      length = start - clamped(ends[i], -1, extent - 1);
    }
    const int64_t size = step > 0 ? step : -step;
    geometry.start[at] = start;
    geometry.step[at] = step;
    geometry.result[*axis] = length > 0 ? (length - 1) / size + 1 : 0;
  }
  return geometry;
}

Result<PadGeometry> pad_geometry(const Shape& x, op::PadMode mode, std::span<const int64_t> pads) {
  if (mode < op::PadMode::MIN || mode > op::PadMode::MAX)
    return invalid_argument("expected a known pad mode, found value ", static_cast<int>(mode));
  const auto rank = static_cast<size_t>(x.rank());
  if (pads.size() != 2 * rank)
    return invalid_argument("expected ", 2 * rank, " pads for rank ", rank, ", found ", pads.size());
  constexpr int64_t kLimit = int64_t{1} << 59;
  PadGeometry geometry;
  geometry.result = x;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t before = pads[i], after = pads[i + rank], extent = x[static_cast<int>(i)];
    if (std::min(before, after) < -kLimit || std::max(before, after) > kLimit)
      return invalid_argument("expected pads in [-2^59, 2^59], found ", before, " and ", after);
    const int64_t result = extent + before + after;
    if (result < 0)
      return invalid_argument("expected pads that leave 0 or more of extent ", extent, " of axis ", i,
                              ", found ", before, " and ", after);
    geometry.start[i] = std::max<int64_t>(0, -before);
    geometry.before[i] = std::max<int64_t>(0, before);
    geometry.extent[i] = extent + std::min<int64_t>(0, before) + std::min<int64_t>(0, after);
    if (mode != op::PadMode::Constant && geometry.extent[i] <= 0 && result > 0)
      return invalid_argument("expected elements to pad from on axis ", i, " (mode ",
                              op::EnumNamePadMode(mode), "), found none");
    geometry.result[static_cast<int>(i)] = result;
  }
  return geometry;
}

int64_t pad_source(const PadGeometry& geometry, op::PadMode mode, int axis, int64_t i) noexcept {
  const auto at = static_cast<size_t>(axis);
  const int64_t extent = geometry.extent[at];
  int64_t inside = i - geometry.before[at];
  if (inside < 0 || inside >= extent) {
    switch (mode) {
      case op::PadMode::Constant: return -1;
      case op::PadMode::Edge: inside = inside < 0 ? 0 : extent - 1; break;
      case op::PadMode::Wrap: inside = (inside % extent + extent) % extent; break;
      case op::PadMode::Reflect: {  // a triangle wave; the edge itself is not repeated
        const int64_t period = 2 * (extent - 1);
        inside = period == 0 ? 0 : (inside % period + period) % period;
        if (inside >= extent) inside = period - inside;
        break;
      }
    }
  }
  return geometry.start[at] + inside;
}

Result<Shape> reshape_result(const Shape& x, std::span<const int64_t> shape) {
  if (shape.size() > kMaxRank)
    return invalid_argument("expected a shape of at most ", kMaxRank, " axes, found ", shape.size());
  Shape result(shape);
  int unknown = -1;
  for (int i = 0; i < result.rank(); ++i) {
    if (result[i] >= 0) continue;
    if (result[i] != -1) return invalid_argument("expected extents of 0 or more, or one -1, found ", result);
    if (unknown >= 0) return invalid_argument("expected at most one -1, found ", result);
    unknown = i;
  }
  if (unknown >= 0) {
    result[unknown] = 1;
    const auto known = result.checked_elements();
    if (!known || *known == 0 || x.elements() % *known != 0) {
      result[unknown] = -1;
      return invalid_argument("expected a shape that divides the ", x.elements(), " elements of ", x,
                              ", found ", result);
    }
    result[unknown] = x.elements() / *known;
  }
  if (result.checked_elements() != x.elements())
    return invalid_argument("expected a shape of ", x.elements(), " elements like ", x, ", found ", result);
  return result;
}

}  // namespace librt
