#include "runtime/session/memory/exchange.h"

#include <algorithm>

#include "runtime/core/byte_count.h"

namespace librt {

uint64_t Exchange::bytes_of(std::span<const Range> inputs, std::span<const Range> outputs, size_t alignment) {
  uint64_t bytes = 0;
  for (const auto ranges : {inputs, outputs})
    for (const Range& range : ranges) bytes += round_up(range.bytes, alignment);
  return std::max<uint64_t>(bytes, alignment);
}

Status Exchange::record(Device& device, size_t alignment, Slab& working_memory, std::span<const Range> inputs,
                        std::span<const Range> outputs) {
  forget_recording();
  device_ = &device;
  if (const uint64_t bytes = bytes_of(inputs, outputs, alignment);
      slab_ == nullptr || slab_->size() < bytes) {
    slab_.reset();
    RT_TRY(check_addressable(bytes));
    RT_ASSIGN(slab_, device.allocate_exchange(static_cast<size_t>(bytes)));
  }
  enum : uint32_t { kExchange, kWorking };
  std::vector<Slab*> slots{slab_.get(), &working_memory};
  for (const auto ranges : {inputs, outputs})
    for (const Range& range : ranges)
      if (range.slab != nullptr) slots.push_back(range.slab);
  uint32_t other = kWorking;  // the slot of the last range that is elsewhere
  uint64_t offset = 0;
  const auto record_copies = [&](std::span<const Range> ranges, std::vector<Range>& own,
                                 bool in) -> Result<CommandListPtr> {
    RT_ASSIGN(CommandListPtr commands, device.begin({.slots = slots}));
    own.clear();
    for (const Range& range : ranges) {
      own.push_back({offset, range.bytes, nullptr});
      offset += round_up(range.bytes, alignment);
      if (range.bytes == 0) continue;
      const BufferRef outside{kExchange, own.back().offset, range.bytes},
          inside{range.slab != nullptr ? ++other : kWorking, range.offset, range.bytes};
      RT_TRY(commands->copy(in ? inside : outside, in ? outside : inside));
    }
    RT_TRY(commands->finish());
    return commands;
  };
  RT_ASSIGN(get_, record_copies(inputs, inputs_, true));
  RT_ASSIGN(put_, record_copies(outputs, outputs_, false));
  return {};
}

void Exchange::forget_recording() noexcept {
  get_.reset();
  put_.reset();
}

Status Exchange::send(size_t input, const void* data) noexcept {
  const Range& range = inputs_[input];
  return device_->upload(*slab_, static_cast<size_t>(range.offset),
                         {static_cast<const std::byte*>(data), range.bytes});
}

Status Exchange::receive(size_t output, void* data) const noexcept {
  const Range& range = outputs_[output];
  return device_->download(*slab_, static_cast<size_t>(range.offset),
                           {static_cast<std::byte*>(data), range.bytes});
}

}  // namespace librt
