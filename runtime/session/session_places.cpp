// Inputs and outputs in memory of a device.
#include <algorithm>

#include "runtime/session/session.h"

namespace librt {

/// On a device with host_memory the place is an ordinary host address.
bool Session::is_external(const Place& place) const noexcept {
  return place.memory != nullptr && !devices().chosen().info().host_memory;
}

Result<Session::Place> Session::check_place(std::string_view what, uint64_t bytes, const MemoryPtr& memory,
                                            uint64_t offset) const {
  if (memory->handle() == nullptr) return invalid_argument(what, ": the memory has been freed");
  if (offset > memory->bytes() || bytes > memory->bytes() - offset)
    return invalid_argument(what, ": expected memory of ", bytes, " bytes at the offset ", offset,
                            ", found memory of ", memory->bytes());
  const DeviceInfo& info = devices().chosen().info();
  const size_t alignment = devices().alignment();
  const uint64_t beyond = (reinterpret_cast<uintptr_t>(memory->address()) + offset) % alignment;
  if (beyond != 0)
    return invalid_argument(what, ": expected an address that is a multiple of ", alignment, " on ",
                            info.backend, ", found one ", beyond,
                            " bytes beyond it; choose another offset, or copy to aligned memory");
  if (partitioned_ != nullptr && !info.host_memory)
    return unsupported(
        what, ": the shapes of entry '", graph_->name,
        "' depend on data, so it runs in parts with values on the host between them; bind host "
        "memory");
  Place place{memory, std::shared_ptr<Block>(memory, &memory->block()), static_cast<size_t>(offset),
              static_cast<size_t>(bytes)};
  if (memory->devices() == shared_.devices || info.host_memory) {
    if (info.host_memory && memory->block().host() == nullptr)
      return invalid_argument(what, ": expected host memory for a session on ", info.backend,
                              ", found memory of ", memory->devices()->chosen().info().backend);
    return place;
  }
  const Device& owner = memory->devices()->chosen();
  if (owner.info().backend != info.backend || devices().interop() == nullptr)
    return invalid_argument(what, ": expected memory of ", info.backend, ", found memory of ",
                            owner.info().backend, "; make it for this session (rt_memory_create)");
  auto slab = devices().interop()->share(memory->block().slab(), owner);
  if (!slab.ok()) return std::move(slab).status().in(what);
  struct View {
    MemoryPtr memory;
    Block block;
  };
  const auto view = std::make_shared<View>(View{memory, Block(devices().chosen(), std::move(*slab))});
  place.block = std::shared_ptr<Block>(view, &view->block);
  return place;
}

/// An output must not be where something else is read or written during a run.
Status Session::check_overlap(std::string_view what, const Place& place, bool output, size_t index) const {
  const auto base = [](const Place& at) {
    return at.memory->address() != nullptr ? reinterpret_cast<uintptr_t>(at.memory->address()) + at.offset
                                           : at.offset;
  };
  const auto meets = [&](const Place& other) {
    if (other.memory == nullptr || place.bytes == 0 || other.bytes == 0) return false;
    const bool addressed = place.memory->address() != nullptr && other.memory->address() != nullptr;
    if (other.memory != place.memory && !addressed) return false;
    return base(place) < base(other) + other.bytes && base(other) < base(place) + place.bytes;
  };
  for (size_t k = 0; k < outputs_.size(); ++k)
    if (!(output && k == index) && meets(outputs_[k].place))
      return invalid_argument(what, ": its memory overlaps that of output '",
                              (*graph_)[graph_->outputs[k]].name, "'; bind other memory");
  for (size_t i = 0; output && i < inputs_.size(); ++i)
    if (meets(inputs_[i].place))
      return invalid_argument(what, ": its memory overlaps that of input '",
                              (*graph_)[graph_->inputs[i]].name,
                              "', which a run may still read; bind other memory");
  return {};
}

void Session::put(Place& to, Place place, bool output, size_t index) {
  if (to.memory == nullptr && place.memory == nullptr) return;
  const bool external = is_external(place);
  if (external && shared_.external_inputs.size() + shared_.external_outputs.size() == 0) {
    shared_.external_inputs.resize(inputs_.size());
    shared_.external_outputs.resize(outputs_.size());
  }
  std::vector<External>& all = output ? shared_.external_outputs : shared_.external_inputs;
  if (index < all.size())
    all[index] =
        external ? External{place.block.get(), place.offset, place.bytes, place.memory->id()} : External{};
  to = std::move(place);
  const auto none = [](const External& at) { return at.block == nullptr; };
  if (!std::ranges::all_of(shared_.external_inputs, none) ||
      !std::ranges::all_of(shared_.external_outputs, none))
    return;
  shared_.external_inputs.clear();
  shared_.external_outputs.clear();
}

Status Session::bind_input(size_t index, const TensorInfo& info, const MemoryPtr& memory, uint64_t offset) {
  RT_TRY(check_index(index, inputs_.size(), "input"));
  // Any address that is not null: the place is checked below.
  RT_TRY(check_input(index, {memory.get(), info}, info.bytes()));
  const std::string what = text("input '", (*graph_)[graph_->inputs[index]].name, "'");
  RT_ASSIGN(Place place, check_place(what, info.bytes(), memory, offset));
  RT_TRY(check_overlap(what, place, false, index));
  if (devices().chosen().info().host_memory) {
    RT_TRY(bind_input(index, {place.block->host() + offset, info}, info.bytes()));
  } else {
    if (whole_->reads_while_planning(index))
      return unsupported(what,
                         ": its values determine shapes, so they are needed on the host; set it, or bind "
                         "host memory");
    inputs_[index].bound = inputs_[index].direct = false;
    input_views_[index] = {nullptr, info};
  }
  put(inputs_[index].place, std::move(place), false, index);
  return {};
}

Status Session::bind_output(size_t index, uint64_t bytes, const MemoryPtr& memory, uint64_t offset) {
  RT_TRY(check_index(index, outputs_.size(), "output"));
  const std::string what = text("output '", (*graph_)[graph_->outputs[index]].name, "'");
  if (memory->read_only()) return invalid_argument(what, ": the memory is read-only; bind it to inputs only");
  RT_ASSIGN(Place place, check_place(what, bytes, memory, offset));
  RT_TRY(check_overlap(what, place, true, index));
  Output& output = outputs_[index];
  output.bound = is_external(place) ? nullptr : place.block->host() + offset;
  output.bound_bytes = place.bytes;
  put(output.place, std::move(place), true, index);
  return {};
}

Status Session::check_places() const {
  const auto check = [](const Place& place, const char* what, const std::string& name) -> Status {
    if (place.memory == nullptr || place.memory->handle() != nullptr) return {};
    return invalid_argument(what, " '", name, "': its memory has been freed; bind other memory");
  };
  for (size_t i = 0; i < inputs_.size(); ++i)
    RT_TRY(check(inputs_[i].place, "input", (*graph_)[graph_->inputs[i]].name));
  for (size_t k = 0; k < outputs_.size(); ++k)
    RT_TRY(check(outputs_[k].place, "output", (*graph_)[graph_->outputs[k]].name));
  return {};
}

Status Session::wait_for(const SyncPoint& point) {
  if (Interop* interop = devices().interop(); interop != nullptr) return interop->wait_for(point);
  return unsupported("the session runs on ", devices().chosen().info().backend,
                     ", which waits for no device: wait for the event before the run");
}

Status Session::signal(const SyncPoint& point) {
  if (Interop* interop = devices().interop(); interop != nullptr) return interop->signal(point);
  return unsupported("the session runs on ", devices().chosen().info().backend,
                     ", whose work is done when a run returns: signal the event then");
}

}  // namespace librt
