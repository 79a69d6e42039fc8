// Resize by tables of taps, which the shared geometry computes on the host in double precision.
#include <bit>
#include <cstring>

#include "backends/vulkan/kernel.h"
#include "runtime/geometry/resize.h"

namespace librt::vulkan {
namespace {

constexpr int kMaxSpatial = 3;

Result<ResizeGeometry> geometry_of(const NodeView& node) {
  std::span<const int64_t> sizes;
  if (node.has(1)) {
    RT_TRY(known_on_host(node, 1, "sizes"));
    sizes = node.ints(1);
  }
  std::span<const float> numbers[2];  // scales, roi
  for (size_t i = 0; i < 2; ++i) {
    if (!node.has(i + 2)) continue;
    RT_TRY(known_on_host(node, i + 2, i == 0 ? "scales" : "roi"));
    numbers[i] = {static_cast<const float*>(node.inputs[i + 2].value),
                  static_cast<size_t>(node.input(i + 2).elements())};
  }
  return resize_geometry(node.shape(0), node.as<op::ResizeAttributes>(), sizes, numbers[0], numbers[1]);
}

Status supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_ASSIGN(const ResizeGeometry geometry, geometry_of(node));
  if (geometry.rank > kMaxSpatial) return unsupported(geometry.rank, " spatial axes");
  return {};
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const auto& attributes = node.as<op::ResizeAttributes>();
  RT_ASSIGN(const ResizeGeometry geometry, geometry_of(node));
  std::vector<uint32_t> words;
  std::array<int64_t, kMaxSpatial> start{};
  const int taps = geometry.taps;
  if (node.output(0).elements() > 0) {
    for (int i = 0; i < kMaxSpatial; ++i) {
      const auto axis = static_cast<size_t>(i);
      start[axis] = static_cast<int64_t>(words.size() / 2);
      ResizeTable table{std::vector<int64_t>(static_cast<size_t>(taps), 0),
                        std::vector<double>(static_cast<size_t>(taps), 0)};
      table.weight[0] = 1;
      if (i < geometry.rank) table = resize_table(geometry.axes[axis], attributes, taps);
      for (size_t t = 0; t < table.index.size(); ++t) {
        words.push_back(static_cast<uint32_t>(table.index[t]));
        words.push_back(std::bit_cast<uint32_t>(static_cast<float>(table.weight[t])));
      }
    }
  }
  auto program = std::make_unique<Program>("resize");
  const int64_t count = node.output(0).elements();
  if (count > 0) {
    const uint64_t bytes = words.size() * sizeof(uint32_t);
    const Ref table = program->packed(bytes, [words = std::move(words)](std::span<std::byte> target) {
      std::memcpy(target.data(), words.data(), target.size());
    });
    Step& step = program->dispatch_each(Shader::resize, count, cast(device).plan().elementwise_lanes);
    step.spec(static_cast<uint64_t>(taps)).push(count).push(node.shape(0).back());
    for (const ResizeAxis& axis : std::span(geometry.axes).first(kMaxSpatial)) step.push(axis.input);
    for (const ResizeAxis& axis : std::span(geometry.axes).first(kMaxSpatial)) step.push(axis.output);
    for (int64_t first : start) step.push(first);
    step.push(attributes.extrapolation);
    step.read(0, in(0)).write(1, out(0)).read(2, table);
  }
  for (size_t i = 1; i < 4; ++i)
    if (node.has(i)) program->replaces(i);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {row<create, supports>(OpKind::Resize, "resize", DTypeSet{DType::F32})};

}  // namespace

std::span<const KernelRow> rows_resize() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
