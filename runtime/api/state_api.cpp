// States and checkpoints of rt.h.
#include "runtime/api/handles.h"
#include "runtime/model/checkpoint.h"

namespace {

using librt::Status;
using librt::api::guarded;
using librt::api::SessionUse;

using Wanted = bool (*)(const librt::State&);
bool every_state(const librt::State&) {
  return true;
}
/// State of a trained model, without that of the optimizer.
bool is_weight(const librt::State& state) {
  return state.kind == librt::StateKind::Parameter || state.kind == librt::StateKind::Statistic;
}

/// Every requested state of the session must be in the checkpoint, with its dtype and shape. Reports all
/// problems at once.
Status compare(const librt::StateStore& states, const librt::Checkpoint& checkpoint, Wanted wanted) {
  std::string problems;
  for (size_t i = 0; i < states.count(); ++i) {
    const librt::State& expected = states.state(i);
    if (!wanted(expected)) continue;
    const librt::State* found = checkpoint.tensor(expected.name);
    if (found != nullptr && found->info == expected.info) continue;
    librt::append(problems, "\n  state '", expected.name, "': expected ", expected.info, ", found ",
                  found != nullptr ? librt::text(found->info) : "none");
  }
  if (wanted == is_weight)
    for (const librt::State& tensor : checkpoint.tensors)
      if (is_weight(tensor) && !states.find(tensor.name).ok())
        librt::append(problems, "\n  state '", tensor.name, "': the model has none");
  if (problems.empty()) return {};
  return Status(librt::Code::InvalidModel,
                librt::text("the checkpoint does not belong to this model", problems));
}

rt_status* load(rt_session* session, const char* path, Wanted wanted) {
  return guarded(session, [&]() -> Status {
    if (path == nullptr) return librt::invalid_argument("rt_session_load: the path is null");
    auto checkpoint = librt::read_checkpoint(path);
    if (!checkpoint.ok()) return std::move(checkpoint).status();
    librt::StateStore& states = session->session->states();
    RT_TRY(compare(states, *checkpoint, wanted).in(path));
    bool any = false;
    for (size_t i = 0; i < states.count(); ++i) any = any || wanted(states.state(i));
    if (!any && !checkpoint->tensors.empty())
      return librt::invalid_argument(path,
                                     ": expected a model with states to restore, found one without; load "
                                     "the model that was trained");
    for (size_t i = 0; i < states.count(); ++i)
      if (const librt::State& state = states.state(i); wanted(state))
        RT_TRY(states.write(i, {checkpoint->tensor(state.name)->initial.data, state.info.bytes()}));
    session->session->checkpoint_metadata = std::move(checkpoint->metadata);
    return {};
  });
}

}  // namespace

extern "C" {

size_t rt_session_state_count(const rt_session* session) {
  return session != nullptr ? session->session->model().states.size() : 0;
}
rt_status* rt_session_state_spec(const rt_session* session, size_t index, rt_tensor_spec* spec,
                                 rt_state_kind* kind) {
  return guarded(session, [&]() -> Status {
    const auto& states = session->session->model().states;
    if (index >= states.size())
      return librt::invalid_argument("state ", index, ": the model has ", states.size());
    if (kind != nullptr) *kind = static_cast<rt_state_kind>(states[index].kind);
    return librt::api::hand_out(librt::api::spec_of(states[index]), spec, "rt_tensor_spec");
  });
}

rt_status* rt_session_read_state(rt_session* session, const char* name, rt_tensor* tensor) {
  return guarded(session, [&]() -> Status {
    if (name == nullptr || tensor == nullptr)
      return librt::invalid_argument("rt_session_read_state: a pointer is null");
    rt_tensor given;
    RT_TRY(librt::api::take_in(tensor, given, "rt_tensor"));
    if (given.memory != nullptr)
      return librt::unsupported("state '", name, "': states are copied from and to host memory; set data");
    librt::StateStore& states = session->session->states();
    RT_ASSIGN(const size_t index, states.find(name));
    const librt::TensorInfo& info = states.state(index).info;
    if (given.data != nullptr) {
      if (given.bytes < info.bytes())
        return librt::invalid_argument("state '", name, "': ", info, " takes ", info.bytes(),
                                       " bytes, the tensor has ", given.bytes);
      RT_TRY(states.read(index, {static_cast<std::byte*>(given.data), info.bytes()}));
    }
    rt_tensor out = RT_TENSOR_INIT;
    librt::api::fill(out, info, given.data);
    return librt::api::hand_out(out, tensor, "rt_tensor");
  });
}

rt_status* rt_session_write_state(rt_session* session, const char* name, const rt_tensor* tensor) {
  return guarded(session, [&]() -> Status {
    if (name == nullptr || tensor == nullptr)
      return librt::invalid_argument("rt_session_write_state: a pointer is null");
    rt_tensor given;
    RT_TRY(librt::api::take_in(tensor, given, "rt_tensor"));
    if (given.memory != nullptr)
      return librt::unsupported("state '", name, "': states are copied from and to host memory; set data");
    RT_ASSIGN(const librt::TensorInfo info, librt::api::info_of(given));
    librt::StateStore& states = session->session->states();
    RT_ASSIGN(const size_t index, states.find(name));
    const librt::TensorInfo& expected = states.state(index).info;
    if (!(info == expected))
      return librt::invalid_argument("state '", name, "': expected ", expected, ", found ", info);
    if (given.data == nullptr ? info.bytes() > 0 : given.bytes < info.bytes())
      return librt::invalid_argument("state '", name, "': ", info, " takes ", info.bytes(),
                                     " bytes, the tensor has ", given.data == nullptr ? 0 : given.bytes);
    return states.write(index, {static_cast<const std::byte*>(given.data), info.bytes()});
  });
}

rt_status* rt_session_reset_states(rt_session* session) {
  return guarded(session, [&]() -> Status { return session->session->states().reset(); });
}

rt_status* rt_session_save_checkpoint(rt_session* session, const char* path, const char* const* keys,
                                      const char* const* values, size_t count) {
  return guarded(session, [&]() -> Status {
    if (path == nullptr || (count > 0 && (keys == nullptr || values == nullptr)))
      return librt::invalid_argument("rt_session_save_checkpoint: a pointer is null");
    librt::StateStore& states = session->session->states();
    librt::Checkpoint checkpoint;
    checkpoint.producer = librt::text("librt ", rt_version());
    for (size_t i = 0; i < states.count(); ++i) {
      librt::State state = states.state(i);
      std::vector<std::byte> bytes(state.info.bytes());
      RT_TRY(states.read(i, bytes));
      state.initial = librt::Blob::own(std::move(bytes));
      checkpoint.tensors.push_back(std::move(state));
    }
    for (size_t i = 0; i < count; ++i) {
      if (keys[i] == nullptr || values[i] == nullptr)
        return librt::invalid_argument("checkpoint pair ", i, " is null");
      checkpoint.metadata.emplace_back(keys[i], values[i]);
    }
    return librt::write_checkpoint(path, checkpoint);
  });
}

rt_status* rt_session_load_checkpoint(rt_session* session, const char* path) {
  return load(session, path, every_state);
}
rt_status* rt_session_load_adapter(rt_session* session, const char* path) {
  return load(session, path, is_weight);
}

const char* rt_session_checkpoint_value(const rt_session* session, const char* key) {
  const SessionUse use(session);
  if (!use.ok() || key == nullptr) return nullptr;
  for (const auto& [name, value] : session->session->checkpoint_metadata)
    if (name == key) return value.c_str();
  return nullptr;
}

}  // extern "C"
