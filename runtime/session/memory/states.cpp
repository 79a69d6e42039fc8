#include "runtime/session/memory/states.h"

#include <algorithm>

#include "runtime/core/host_memory.h"
#include "runtime/session/memory/memory_limit.h"
#include "runtime/session/memory/verify_data.h"

namespace librt {

Result<std::shared_ptr<StateStore>> StateStore::create(std::shared_ptr<DeviceSet> devices,
                                                       std::shared_ptr<const ModelGraph> model,
                                                       uint64_t memory_limit) {
  auto store = std::make_shared<StateStore>();
  store->devices_ = std::move(devices);
  store->model_ = std::move(model);
  const size_t alignment = store->devices_->alignment();
  for (const State& state : store->model_->states) {
    store->offsets_.push_back(store->bytes_);
    store->bytes_ += round_up(state.info.bytes(), alignment);
  }
  if (memory_limit > 0 && store->bytes_ > memory_limit)
    return Status::make(Code::OutOfMemory, "the model's states take ", bytes_text(store->bytes_),
                        ", the memory limit is ", bytes_text(memory_limit));
  Device& device = store->devices_->chosen();
  const bool on_host = store->devices_->kind(0) == SpaceKind::Host;
  RT_TRY(MemoryLimit::check_machine(store->bytes_, on_host ? host_memory_bytes() : device.info().memory_bytes)
             .in("the model's states"));
  if (store->bytes_ > 0) {
    RT_ASSIGN(store->block_, Block::allocate(device, store->bytes_));
    std::vector<DataChecks::Item> items;
    for (const State& state : store->model_->states) items.push_back({state.initial.data, &state.name});
    RT_TRY(verify_data(store->model_->checks.get(), std::move(items), *store->devices_));
    RT_TRY(store->reset());
  }
  return store;
}

Result<size_t> StateStore::find(std::string_view name) const {
  std::string similar;
  for (size_t i = 0; i < model_->states.size(); ++i) {
    const std::string& known = model_->states[i].name;
    if (known == name) return i;
    if (similar.size() < 200 && (known.find(name) != std::string::npos || model_->states.size() <= 8))
      append(similar, similar.empty() ? "" : ", ", known);
  }
  return Status::make(Code::NotFound, "the model has no state '", name, "'",
                      similar.empty() ? "" : text("; it has ", similar));
}

Status StateStore::read(size_t index, std::span<std::byte> bytes) const {
  if (bytes.empty()) return {};
  return block_->download(offsets_[index], bytes);
}

Status StateStore::write(size_t index, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  return block_->upload(offsets_[index], bytes);
}

Status StateStore::reset() {
  std::vector<std::byte> zeros;
  for (size_t i = 0; i < count(); ++i) {
    const State& model_state = state(i);
    const size_t bytes = model_state.info.bytes();
    if (model_state.initial.data != nullptr) {
      RT_TRY(write(i, {model_state.initial.data, bytes}));
    } else {
      if (zeros.size() < bytes) zeros.resize(bytes);
      RT_TRY(write(i, {zeros.data(), bytes}));
    }
  }
  return {};
}

}  // namespace librt
