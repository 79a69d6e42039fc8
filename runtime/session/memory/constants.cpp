#include "runtime/session/memory/constants.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace librt {

namespace {
size_t aligned(size_t bytes, const Device& device) {
  return round_up(bytes, std::max(kHostAlignment, device.info().alignment));
}
bool in_place(Device& device, const std::byte* data) noexcept {
  return device.info().host_memory && is_aligned(data, kHostAlignment);
}
}  // namespace

void ConstantStore::want(Device& device, const std::byte* data, size_t bytes) {
  if (bytes == 0) return;
  if (!locations_.try_emplace({&device, data}).second) return;
  wanted_.push_back({&device, data, bytes});
  if (!in_place(device, data)) wanted_bytes_ += aligned(bytes, device);
}

Status ConstantStore::commit() {
  Status status = place(wanted_);
  abandon();
  return status;
}

Status ConstantStore::place(std::span<const Wanted> wanted) {
  for (const Wanted& constant : wanted) {
    if (!in_place(*constant.device, constant.data)) continue;
    RT_ASSIGN(BlockPtr block, Block::wrap(*constant.device, constant.data, constant.bytes));
    in_place_.insert(constant.data);
    locations_[{constant.device, constant.data}] = {block.get(), 0};
    blocks_.push_back(std::move(block));
  }
  while (true) {  // one slab per device that needs copies
    Device* device = nullptr;
    size_t bytes = 0;
    for (const Wanted& constant : wanted) {
      if (locations_[{constant.device, constant.data}].block != nullptr) continue;
      if (device == nullptr) device = constant.device;
      if (device == constant.device) bytes += aligned(constant.bytes, *device);
    }
    if (device == nullptr) return {};
    RT_ASSIGN(BlockPtr block, Block::allocate(*device, bytes));
    allocated_bytes_ += bytes;
    size_t offset = 0;
    for (const Wanted& constant : wanted) {
      MemoryLocation& location = locations_[{constant.device, constant.data}];
      if (constant.device != device || location.block != nullptr) continue;
      RT_TRY(block->upload(offset, {constant.data, constant.bytes}));
      location = {block.get(), offset};
      offset += aligned(constant.bytes, *device);
    }
    blocks_.push_back(std::move(block));
  }
}

void ConstantStore::abandon() noexcept {
  for (const Wanted& constant : wanted_)
    if (const auto found = locations_.find({constant.device, constant.data}); found->second.block == nullptr)
      locations_.erase(found);
  wanted_.clear();
  wanted_bytes_ = 0;
}

MemoryLocation ConstantStore::find(Device& device, const std::byte* data) const {
  const auto found = locations_.find({&device, data});
  return found == locations_.end() ? MemoryLocation{} : found->second;
}

size_t PlanConstants::allocated_bytes(const Slabs& slabs) noexcept {
  size_t bytes = 0;
  for (const auto& [device, block] : slabs) bytes += block != nullptr ? block->size() : 0;
  return bytes;
}

void PlanConstants::want(Device& device, const std::byte* data, size_t bytes) {
  if (bytes == 0) return;
  const auto [entry, added] = places_.try_emplace({&device, data});
  if (!added) return;
  entry->second.bytes = bytes;
  if (in_place(device, data)) return;
  auto image = std::find_if(images_.begin(), images_.end(),
                            [&](const Image& known) { return known.device == &device; });
  if (image == images_.end()) image = images_.insert(images_.end(), Image{.device = &device});
  entry->second.offset = image->size;
  image->size += aligned(bytes, device);
}

Status PlanConstants::commit() {
  for (Image& image : images_) {
    RT_TRY(image.bytes.reserve(image.size));
    std::memset(image.bytes.data(), 0, image.size);
  }
  for (auto& [key, place] : places_) {
    const auto& [device, data] = key;
    if (in_place(*device, data)) {
      RT_ASSIGN(place.in_place, Block::wrap(*device, data, place.bytes));
      continue;
    }
    for (Image& image : images_)
      if (image.device == device) std::memcpy(image.bytes.data() + place.offset, data, place.bytes);
  }
  return {};
}

Block* PlanConstants::slab_of(const Device& device) const noexcept {
  for (const auto& [owner, block] : slabs_)
    if (owner == &device) return block.get();
  return nullptr;
}

size_t PlanConstants::missing_bytes() const noexcept {
  size_t bytes = 0;
  for (const Image& image : images_) {
    const Block* slab = slab_of(*image.device);
    const size_t have = slab != nullptr ? slab->size() : 0;
    bytes += image.size > have ? image.size - have : 0;
  }
  return bytes;
}

Status PlanConstants::load() {
  for (const Image& image : images_) {
    auto slab = std::find_if(slabs_.begin(), slabs_.end(),
                             [&](const auto& known) { return known.first == image.device; });
    if (slab == slabs_.end()) slab = slabs_.insert(slabs_.end(), {image.device, nullptr});
    BlockPtr& block = slab->second;
    if (block == nullptr || block->size() < image.size) {
      block.reset();
      RT_ASSIGN(block, Block::allocate(*image.device, image.size));
    }
    RT_TRY(block->upload(0, {image.bytes.data(), image.size}));
  }
  return {};
}

MemoryLocation PlanConstants::find(Device& device, const std::byte* data) const {
  const auto found = places_.find({&device, data});
  if (found == places_.end()) return {};
  const Place& place = found->second;
  if (place.in_place != nullptr) return {place.in_place.get(), 0};
  return {slab_of(device), place.offset};
}

bool PackedStore::Key::operator<(const Key& other) const noexcept {
  return std::tie(device, row, packed_key, constants) <
         std::tie(other.device, other.row, other.packed_key, other.constants);
}

size_t PackedStore::want(const Request& request) {
  const size_t index = locations_.size();
  if (request.key.packed_key != 0)
    if (const auto [known, added] = shared_.try_emplace(request.key, index); !added) return known->second;
  locations_.push_back({});
  wanted_.push_back(request);
  wanted_index_.push_back(index);
  wanted_bytes_ += aligned(request.bytes, *request.device);
  return index;
}

void PackedStore::abandon() noexcept {
  wanted_.clear();
  wanted_index_.clear();
  wanted_bytes_ = 0;
  std::erase_if(shared_, [&](const auto& entry) { return locations_[entry.second].block == nullptr; });
}

Status PackedStore::commit(const StopSignal& stop, size_t& done, size_t total) {
  const std::vector<Request> wanted = std::move(wanted_);
  const std::vector<size_t> indices = std::move(wanted_index_);
  wanted_.clear();
  wanted_index_.clear();
  wanted_bytes_ = 0;
  const auto forget = [&](Status status) {
    abandon();
    return status;
  };
  AlignedBytes staging;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (locations_[indices[i]].block != nullptr) continue;
    Device& device = *wanted[i].device;
    size_t bytes = 0;
    for (size_t k = i; k < wanted.size(); ++k)
      if (wanted[k].device == &device) bytes += aligned(wanted[k].bytes, device);
    auto allocated = Block::allocate(device, bytes);
    if (!allocated.ok()) return forget(std::move(allocated).status());
    BlockPtr block = std::move(allocated).value();
    size_t offset = 0;
    std::vector<std::pair<size_t, MemoryLocation>> filled;
    for (size_t k = i; k < wanted.size(); ++k) {
      if (wanted[k].device != &device) continue;
      if (Status status = stop.report(RT_STAGE_WEIGHTS, done++, total); !status.ok())
        return forget(std::move(status));
      const bool direct = device.info().host_memory && block->host() != nullptr;
      std::byte* target = direct ? block->host() + offset : nullptr;
      if (!direct) {
        if (Status status = staging.reserve(wanted[k].bytes); !status.ok()) return forget(std::move(status));
        target = staging.data();
      }
      Status status = wanted[k].kernel->pack({target, wanted[k].bytes});
      for (const std::span<const std::byte> source : wanted[k].mapped)
        discard_pages(source.data(), source.size());
      if (status.ok() && !direct) status = block->upload(offset, {target, wanted[k].bytes});
      if (!status.ok()) return forget(std::move(status).in("packing weights"));
      filled.push_back({indices[k], {block.get(), offset}});
      offset += aligned(wanted[k].bytes, device);
    }
    for (const auto& [index, location] : filled) locations_[index] = location;
    allocated_bytes_ += bytes;
    blocks_.push_back(std::move(block));
  }
  return {};
}

}  // namespace librt
