// TopK by sorting. Blocks of a row are sorted in shared memory. For a small k only the first half of each
// block goes on, and pairs of halves are merged until one block is left; for a large one the blocks are
// merged in device memory until the row is in order.
#include <bit>

#include "backends/vulkan/support.h"

namespace rt::vulkan {
namespace {

constexpr int64_t kMostBlock = 1024;

struct Selection {
  int64_t outer, length, inner, k;
  int64_t rows() const { return outer * inner; }
  /// Entries of a block, a power of two.
  int64_t block() const {
    return std::min<int64_t>(kMostBlock, std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(length, 2))));
  }
  bool sorts_whole_rows() const { return length > block() && k > block() / 2; }
  /// Entries of a row that leave the first step.
  int64_t kept() const {
    if (sorts_whole_rows()) return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
    return length > block() ? ceil_div(length, block()) * (block() / 2) : k;
  }
};

Result<Selection> selection_of(const NodeView& node) {
  const Shape& x = node.shape(0);
  const auto axis = normalized_axis(node.as<op::TopKAttributes>().axis, x.rank());
  if (!axis) return unsupported("an axis outside the input's rank");
  return Selection{x.elements(0, *axis), x[*axis], x.elements(*axis + 1, x.rank()),
                   node.output(0).shape[*axis]};
}

size_t key_bytes(DType dtype) {
  return dtype == DType::I64 ? 8 : 4;
}

Status supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(all_storable(device, node));
  RT_ASSIGN(const Selection selection, selection_of(node));
  const uint64_t bytes = static_cast<uint64_t>(selection.rows()) * static_cast<uint64_t>(selection.kept()) *
                         key_bytes(node.dtype(0));
  if (bytes > cast(device).plan().max_binding_bytes)
    return unsupported("the entries to sort take ", bytes_text(bytes),
                       ", more than the device binds at once");
  return {};
}

/// Keys and places of one step's result.
struct Entries {
  Ref keys, places;
};
Entries book(Program& program, int64_t count, size_t key_size) {
  const auto entries = static_cast<uint64_t>(count);
  return {program.scratch(entries * key_size), program.scratch(entries * sizeof(uint32_t))};
}

Shader load_shader(DType dtype) {
  switch (dtype) {
    case DType::F16: return Shader::topk_load_f16;
    case DType::I32: return Shader::topk_load_i32;
    case DType::I64: return Shader::topk_load_i64;
    case DType::U8: return Shader::topk_load_u8;
    case DType::I8: return Shader::topk_load_i8;
    default: return Shader::topk_load_f32;
  }
}

class Sorter {
 public:
  Sorter(Program& program, const NodeView& node, const Selection& selection, uint32_t lanes)
      : program_(program),
        selection_(selection),
        wide_(key_bytes(node.dtype(0)) == 8),
        largest_(node.as<op::TopKAttributes>().largest),
        lanes_(lanes) {}

  /// The entries in order; `stride` apart from row to row.
  Entries run(DType dtype, int64_t& stride) {
    const int64_t block = selection_.block();
    const size_t key_size = wide_ ? 8 : 4;
    stride = selection_.kept();
    const bool whole = selection_.sorts_whole_rows();
    int64_t blocks = whole ? stride / block : ceil_div(selection_.length, block);
    int64_t keep = stride / blocks;
    Entries entries = book(program_, selection_.rows() * stride, key_size);
    sort_blocks(load_shader(dtype), in(0), nullptr, entries, blocks, selection_.length, keep, 1);
    if (whole) {
      merge_rows(entries, stride);
      return entries;
    }
    while (blocks > 1) {
      const int64_t length = stride;
      blocks = ceil_div(length, block);
      keep = blocks == 1 ? selection_.k : block / 2;
      stride = blocks * keep;
      const Entries next = book(program_, selection_.rows() * stride, key_size);
      sort_blocks(merge_shader(), entries.keys, &entries.places, next, blocks, length, keep, block / 2);
      entries = next;
    }
    return entries;
  }

 private:
  Shader merge_shader() const { return wide_ ? Shader::topk_merge_64 : Shader::topk_merge_32; }

  void sort_blocks(Shader shader, const Ref& from, const Ref* from_places, const Entries& to, int64_t blocks,
                   int64_t length, int64_t keep, int64_t sorted) {
    const auto groups = static_cast<uint64_t>(selection_.rows() * blocks);
    Step& step = program_.dispatch(shader, groups, lanes_);
    step.spec(static_cast<uint64_t>(selection_.block()))
        .spec(static_cast<uint64_t>(sorted))
        .spec(largest_)
        .push(selection_.rows())
        .push(blocks)
        .push(length)
        .push(selection_.inner)
        .push(keep)
        .read(0, from)
        .write(1, to.keys)
        .write(2, to.places);
    if (from_places != nullptr) step.read(3, *from_places);
  }

  /// From sorted blocks to sorted rows of `length` entries, a power of two.
  void merge_rows(const Entries& entries, int64_t length) {
    const int64_t block = selection_.block();
    const int64_t count = selection_.rows() * length / 2;
    for (int64_t size = 2 * block; size <= length; size *= 2) {
      for (int64_t distance = size / 2; distance >= block; distance /= 2)
        program_.dispatch_each(wide_ ? Shader::topk_step_64 : Shader::topk_step_32, count, 64)
            .spec(distance == size / 2)
            .push(count)
            .push(distance)
            .write(0, entries.keys)
            .write(1, entries.places);
      // A block is read whole before any of it is written.
      sort_blocks(merge_shader(), entries.keys, &entries.places, entries, length / block, length, block,
                  block);
    }
  }

  Program& program_;
  Selection selection_;
  bool wide_, largest_;
  uint32_t lanes_;
};

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const DevicePlan& plan = cast(device).plan();
  RT_ASSIGN(const Selection selection, selection_of(node));
  auto program = std::make_unique<Program>("topk");
  program->replaces(1);
  const int64_t count = node.output(0).elements();
  if (count == 0) return finish(std::move(program));
  const auto pairs = static_cast<uint32_t>(selection.block() / 2);
  int64_t stride = 0;
  const Entries entries =
      Sorter(*program, node, selection, std::min(pairs, plan.elementwise_lanes)).run(node.dtype(0), stride);
  const size_t size = size_of(node.dtype(0));
  const Shader store = size == 1   ? Shader::topk_store_1
                       : size == 2 ? Shader::topk_store_2
                       : size == 4 ? Shader::topk_store_4
                                   : Shader::topk_store_8;
  program->dispatch_each(store, count, 64)
      .push(count)
      .push(selection.length)
      .push(selection.inner)
      .push(selection.k)
      .push(stride)
      .read(0, in(0))
      .write(1, out(0))
      .write(2, out(1))
      .read(3, entries.places);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    {OpKind::TopK, "topk", DTypeSet{DType::F32, DType::F16, DType::I32, DType::I64, DType::U8, DType::I8},
     supports, create}};

}  // namespace

std::span<const KernelRow> rows_topk() {
  return kRows;
}

}  // namespace rt::vulkan
