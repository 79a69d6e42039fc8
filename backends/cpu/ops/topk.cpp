// TopK: positions along the axis, partially sorted by value. Lines are split among threads, each with its own
// scratch.
#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/select.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/support/element_types.h"

namespace librt::cpu {
namespace {

/// An order-preserving map to unsigned integers; NaN above all, -0 as 0.
template <class T>
auto ordered(T x) noexcept {
  const auto value = widen(x);
  using Wide = decltype(widen(x));
  if constexpr (std::is_floating_point_v<Wide>) {
    using Bits = std::conditional_t<sizeof(Wide) == 4, uint32_t, uint64_t>;
    constexpr Bits kTop = Bits{1} << (8 * sizeof(Bits) - 1);
    if (std::isnan(value)) return static_cast<Bits>(~Bits{0});
    const auto bits = std::bit_cast<Bits>(value + Wide{0});
    return static_cast<Bits>((bits & kTop) != 0 ? ~bits : bits | kTop);
  } else {
    return static_cast<uint64_t>(value) ^ (std::is_signed_v<T> ? uint64_t{1} << 63 : 0);
  }
}

template <class Key>
struct Entry {
  Key key;
  uint32_t index;
  bool operator<(const Entry& other) const noexcept {
    return key != other.key ? key < other.key : index < other.index;
  }
};

/// The first k of entries[0, n), in order. A heap suits few of many; else a selection, then a sort.
template <class E>
void select(E* entries, int64_t n, int64_t k) noexcept {
  if (k < n / 64) return std::partial_sort(entries, entries + k, entries + n);
  if (k < n) std::nth_element(entries, entries + k, entries + n);
  std::sort(entries, entries + k);
}

Status supports(const CpuDevice&, const NodeView& node) {
  if (node.input(0).elements() >= int64_t{1} << 32) return unsupported("2^32 elements or more");
  return {};
}

/// Lines of f32: a bound discards most elements before anything is sorted. Lines that are not contiguous are
/// transposed, a few adjacent ones at a time.
KernelPtr make_float(const Simd& simd, int64_t outer, int64_t extent, int64_t inner, int64_t k,
                     bool largest) {
  const int64_t width = std::min<int64_t>(inner, 16), blocks = (inner + width - 1) / width;
  const size_t line = static_cast<size_t>(extent + 15) / 16 * 16;
  const bool few = k > 0 && k <= 8 && extent < 256;
  const size_t bytes =
      line * (sizeof(uint64_t) + sizeof(uint32_t) + static_cast<size_t>(width) * sizeof(float));
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(max_threads()) * bytes;
  return make_kernel(
      [=, &simd](const Call& call) noexcept {
        const float* x = call.in<float>(0);
        float* values = call.out<float>(0);
        int64_t* positions = call.out<int64_t>(1);
        parallel_for(outer * blocks, 4 * extent * width, 1, [&](int64_t begin, int64_t end) noexcept {
          std::byte* own = call.scratch<std::byte>() + static_cast<size_t>(thread_index()) * bytes;
          auto* entries = reinterpret_cast<uint64_t*>(own);
          auto* keys = reinterpret_cast<uint32_t*>(entries + line);
          auto* lines = reinterpret_cast<float*>(keys + line);
          for (int64_t block = begin; block < end; ++block) {
            const int64_t o = block / blocks, first = block % blocks * width;
            const int64_t columns = std::min(width, inner - first);
            const float* from = x + o * extent * inner + first;
            if (inner > 1) {
              simd.loops<TransposeLoops>().transpose[2](from, inner, lines, extent, extent, columns, false);
              from = lines;
            }
            for (int64_t i = 0; i < columns; ++i, from += extent) {
              if (few) {
                simd.loops<SelectLoops>().top_few(from, extent, k, largest, keys, entries);
              } else {
                const int64_t count =
                    simd.loops<SelectLoops>().top_candidates(from, extent, k, largest, keys, entries);
                select(entries, count, k);
              }
              for (int64_t j = 0; j < k; ++j) {
                const int64_t to = (o * k + j) * inner + first + i;
                const auto position = static_cast<int64_t>(entries[j] & 0xffffffffu);
                values[to] = from[position];
                positions[to] = position;
              }
            }
          }
        });
      },
      requirements);
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::TopKAttributes>();
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(attributes.axis, x.rank());
  const int64_t outer = x.elements(0, axis), extent = x[axis], inner = x.elements(axis + 1, x.rank());
  const int64_t k = node.output(0).shape[axis];
  if (node.dtype(0) == DType::F32)
    return make_float(device.simd(), outer, extent, inner, k, attributes.largest);
  return with_type(node.dtype(0), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    using E = Entry<decltype(ordered(T{}))>;
    Requirements requirements;
    requirements.scratch = static_cast<size_t>(max_threads()) * static_cast<size_t>(extent) * sizeof(E);
    return make_kernel(
        [=, largest = attributes.largest](const Call& call) noexcept {
          const T* data = call.in<T>(0);
          T* values = call.out<T>(0);
          int64_t* positions = call.out<int64_t>(1);
          parallel_for(outer * inner, 16 * extent, 1, [&](int64_t begin, int64_t end) noexcept {
            E* entries = call.scratch<E>() + thread_index() * extent;
            for (int64_t line = begin; line < end; ++line) {
              const int64_t o = line / inner, i = line % inner;
              const T* from = data + o * extent * inner + i;
              for (int64_t j = 0; j < extent; ++j) {
                const auto key = ordered(from[j * inner]);
                entries[j] = {largest ? static_cast<decltype(key)>(~key) : key, static_cast<uint32_t>(j)};
              }
              select(entries, extent, k);
              for (int64_t j = 0; j < k; ++j) {
                const int64_t to = (o * k + j) * inner + i, index = entries[j].index;
                values[to] = from[index * inner];
                positions[to] = index;
              }
            }
          });
        },
        requirements);
  });
}

}  // namespace

std::span<const KernelRow> rows_topk();
std::span<const KernelRow> rows_topk() {
  static constexpr KernelRow kRows[] = {row<create, supports>(OpKind::TopK, "topk", kNumericTypes)};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
