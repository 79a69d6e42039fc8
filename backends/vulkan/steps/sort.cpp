// Blocks of a row are sorted in shared memory. If few entries are wanted, only the first half of each block
// is kept, and pairs of halves are merged until one block is left; if many are, the blocks are merged in
// device memory until the row is sorted.
#include "backends/vulkan/steps/sort.h"

#include <algorithm>
#include <bit>

namespace librt::vulkan {
namespace {

constexpr int64_t kMaxBlock = 1024;

/// Entries of a block, a power of two.
int64_t block_of(const SortRows& sort) {
  const auto length = static_cast<uint64_t>(std::max<int64_t>(sort.length, 2));
  return std::min(kMaxBlock, static_cast<int64_t>(std::bit_ceil(length)));
}

/// Entries per row after the first step.
int64_t first_stride(const SortRows& sort) {
  const int64_t block = block_of(sort);
  if (sort.length <= block) return sort.kept;
  if (sort.kept > block / 2) return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(sort.length)));
  return ceil_div(sort.length, block) * (block / 2);
}

class Sorter {
 public:
  Sorter(Program& program, const DevicePlan& plan, const SortRows& sort)
      : program_(program),
        sort_(sort),
        block_(block_of(sort)),
        lanes_(std::min(static_cast<uint32_t>(block_ / 2), plan.elementwise_lanes)) {}

  SortedRows run(Shader load, const Ref& from) {
    const bool whole = sort_.length > block_ && sort_.kept > block_ / 2;
    const int64_t stride = first_stride(sort_);
    int64_t blocks = whole ? stride / block_ : ceil_div(sort_.length, block_);
    SortedRows entries = book(stride);
    sort_blocks(load, from, nullptr, entries, blocks, sort_.length, 1);
    if (whole) merge_rows(entries);
    while (!whole && blocks > 1) {
      const int64_t length = entries.stride;
      blocks = ceil_div(length, block_);
      const SortedRows next = book(blocks == 1 ? sort_.kept : blocks * (block_ / 2));
      sort_blocks(merge_shader(), entries.keys, &entries.positions, next, blocks, length, block_ / 2);
      entries = next;
    }
    return entries;
  }

 private:
  Shader merge_shader() const { return sort_.wide ? Shader::topk_merge_64 : Shader::topk_merge_32; }

  SortedRows book(int64_t stride) {
    const auto entries = static_cast<uint64_t>(sort_.rows * stride);
    return {program_.scratch(entries * (sort_.wide ? 8 : 4)), program_.scratch(entries * 4), stride};
  }

  void sort_blocks(Shader shader, const Ref& from, const Ref* from_positions, const SortedRows& to,
                   int64_t blocks, int64_t length, int64_t sorted) {
    Step& step = program_.dispatch(shader, static_cast<uint64_t>(sort_.rows * blocks), lanes_);
    step.spec(static_cast<uint64_t>(block_))
        .spec(static_cast<uint64_t>(sorted))
        .spec(sort_.largest)
        .push(sort_.rows)
        .push(blocks)
        .push(length)
        .push(sort_.inner)
        .push(to.stride / blocks)
        .read(0, from)
        .write(1, to.keys)
        .write(2, to.positions);
    if (from_positions != nullptr) step.read(3, *from_positions);
  }

  /// From sorted blocks to sorted rows, whose stride is a power of two.
  void merge_rows(const SortedRows& entries) {
    const int64_t count = sort_.rows * entries.stride / 2;
    for (int64_t size = 2 * block_; size <= entries.stride; size *= 2) {
      for (int64_t distance = size / 2; distance >= block_; distance /= 2)
        program_.dispatch_each(sort_.wide ? Shader::topk_step_64 : Shader::topk_step_32, count, 64)
            .spec(distance == size / 2)
            .push(count)
            .push(distance)
            .write(0, entries.keys)
            .write(1, entries.positions);
      // In place: a block is fully read before any of it is written.
      sort_blocks(merge_shader(), entries.keys, &entries.positions, entries, entries.stride / block_,
                  entries.stride, block_);
    }
  }

  Program& program_;
  SortRows sort_;
  int64_t block_;
  uint32_t lanes_;
};

}  // namespace

uint64_t sort_bytes(const SortRows& sort) {
  return static_cast<uint64_t>(sort.rows) * static_cast<uint64_t>(first_stride(sort)) * (sort.wide ? 8 : 4);
}

SortedRows add_sort(Program& program, const DevicePlan& plan, Shader load, const Ref& from,
                    const SortRows& sort) {
  return Sorter(program, plan, sort).run(load, from);
}

}  // namespace librt::vulkan
