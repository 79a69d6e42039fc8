#include "runtime/session/memory/constants.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace librt {

namespace {
uint64_t aligned(uint64_t bytes, const Device& device) {
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
    uint64_t bytes = 0;
    for (const Wanted& constant : wanted) {
      if (locations_[{constant.device, constant.data}].block != nullptr) continue;
      if (device == nullptr) device = constant.device;
      if (device == constant.device) bytes += aligned(constant.bytes, *device);
    }
    if (device == nullptr) return {};
    RT_ASSIGN(BlockPtr block, Block::allocate(*device, bytes));
    allocated_bytes_ += static_cast<size_t>(bytes);
    uint64_t offset = 0;
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
  auto image = std::ranges::find_if(images_, [&](const Image& known) { return known.device == &device; });
  if (image == images_.end()) image = images_.insert(images_.end(), Image{.device = &device});
  entry->second.offset = image->size;
  image->size += aligned(bytes, device);
}

Status PlanConstants::commit() {
  for (Image& image : images_) {
    RT_TRY(image.bytes.reserve(image.size));
    std::memset(image.bytes.data(), 0, static_cast<size_t>(image.size));
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

uint64_t PlanConstants::missing_bytes() const noexcept {
  uint64_t bytes = 0;
  for (const Image& image : images_) {
    const Block* slab = slab_of(*image.device);
    const uint64_t have = slab != nullptr ? slab->size() : 0;
    bytes += image.size > have ? image.size - have : 0;
  }
  return bytes;
}

Status PlanConstants::load() {
  for (const Image& image : images_) {
    auto slab = std::ranges::find_if(slabs_, [&](const auto& known) { return known.first == image.device; });
    if (slab == slabs_.end()) slab = slabs_.insert(slabs_.end(), {image.device, nullptr});
    BlockPtr& block = slab->second;
    if (block == nullptr || block->size() < image.size) {
      block.reset();
      RT_ASSIGN(block, Block::allocate(*image.device, image.size));
    }
    RT_TRY(block->upload(0, {image.bytes.data(), static_cast<size_t>(image.size)}));
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

bool PackedKey::operator<(const PackedKey& other) const noexcept {
  return std::tie(device, row, packed_key, bytes, constants) <
         std::tie(other.device, other.row, other.packed_key, other.bytes, other.constants);
}

size_t PackedStore::want(Request request) {
  request.index = locations_.size();
  locations_.push_back({});  // first: abandon() looks up what is known, also after an exception
  if (request.key.packed_key != 0)
    if (const auto [known, added] = known_.try_emplace(request.key, request.index); !added) {
      locations_.pop_back();
      return known->second;
    }
  request.shared =
      request.shared && pool_ != nullptr && request.key.packed_key != 0 && request.device->info().host_memory;
  wanted_bytes_ += aligned(request.key.bytes, *request.device);
  wanted_.push_back(std::move(request));
  return locations_.size() - 1;
}

void PackedStore::abandon() noexcept {
  wanted_.clear();
  wanted_bytes_ = 0;
  std::erase_if(known_, [&](const auto& entry) { return locations_[entry.second].block == nullptr; });
}

Status PackedStore::commit(const StopSignal& stop, size_t& done, size_t total) {
  struct Abandon {
    PackedStore& store;
    ~Abandon() { store.abandon(); }
  } const abandon_what_failed{*this};
  if (pool_ != nullptr) RT_TRY(commit_shared(stop, done, total));
  for (size_t i = 0; i < wanted_.size(); ++i)
    if (locations_[wanted_[i].index].block == nullptr) RT_TRY(commit_own(i, stop, done, total));
  return {};
}

Status PackedStore::pack(const Request& request, std::byte* target) {
  Status status = request.kernel->pack({target, request.key.bytes});
  for (const std::span<const std::byte> source : request.mapped) discard_pages(source.data(), source.size());
  return std::move(status).in("packing weights");
}

Status PackedStore::commit_shared(const StopSignal& stop, size_t& done, size_t total) {
  const std::lock_guard lock(pool_->mutex);
  std::vector<std::byte*>& addresses = pool_->addresses;
  std::vector<size_t> places;
  uint64_t missing = 0;
  for (Request& request : wanted_) {
    if (!request.shared) continue;
    request.key.device = nullptr;
    places.push_back(pool_->known.try_emplace(request.key, addresses.size()).first->second);
    addresses.resize(std::max(addresses.size(), places.back() + 1));
    if (addresses[places.back()] == nullptr) missing += aligned(request.key.bytes, *request.device);
  }
  std::byte* target = nullptr;
  if (missing > 0) {
    AlignedBytes block;
    RT_TRY(block.reserve_huge(missing, target));
    pool_->blocks.push_back(std::move(block));
  }
  size_t i = 0;
  for (const Request& request : wanted_) {
    if (!request.shared) continue;
    RT_TRY(stop.report(RT_STAGE_WEIGHTS, done++, total));
    const auto bytes = static_cast<size_t>(aligned(request.key.bytes, *request.device));
    const size_t place = places[i++];
    if (addresses[place] != nullptr) {
      found_bytes_ += bytes;
    } else {
      RT_TRY(pack(request, target));
      addresses[place] = target;
      target += bytes;
    }
    RT_ASSIGN(BlockPtr view, Block::wrap(*request.device, addresses[place], request.key.bytes));
    blocks_.push_back(std::move(view));
    locations_[request.index] = {blocks_.back().get(), 0};
    allocated_bytes_ += bytes;
  }
  return {};
}

Status PackedStore::commit_own(size_t first, const StopSignal& stop, size_t& done, size_t total) {
  Device& device = *wanted_[first].device;
  const auto is_member = [&](const Request& request) {
    return request.device == &device && locations_[request.index].block == nullptr;
  };
  uint64_t bytes = 0;
  for (const Request& request : wanted_)
    if (is_member(request)) bytes += aligned(request.key.bytes, device);
  RT_ASSIGN(BlockPtr allocated, Block::allocate(device, bytes));
  Block* const block = allocated.get();
  blocks_.push_back(std::move(allocated));
  allocated_bytes_ += static_cast<size_t>(bytes);
  const bool direct = device.info().host_memory && block->host() != nullptr;
  AlignedBytes staging;
  uint64_t offset = 0;
  for (const Request& request : wanted_) {
    if (!is_member(request)) continue;
    RT_TRY(stop.report(RT_STAGE_WEIGHTS, done++, total));
    const size_t size = request.key.bytes;
    if (!direct) RT_TRY(staging.reserve(size));
    std::byte* const target = direct ? block->host() + offset : staging.data();
    RT_TRY(pack(request, target));
    if (!direct) RT_TRY(block->upload(offset, {target, size}).in("packing weights"));
    locations_[request.index] = {block, offset};
    offset += aligned(size, device);
  }
  return {};
}

}  // namespace librt
