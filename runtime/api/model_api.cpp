// rt_model_* of rt.h.
#include "runtime/api/handles.h"
#include "runtime/model/reader.h"

namespace {

using librt::Status;
using librt::api::guarded;

const librt::Graph* graph_of(const rt_model* model, const char* entry) noexcept {
  if (model == nullptr) return nullptr;
  if (entry != nullptr && *entry != 0) return model->graph->entry(entry);
  if (const librt::Graph* graph = model->graph->entry("infer")) return graph;
  return model->graph->entries.size() == 1 ? &model->graph->entries.front().graph : nullptr;
}

Status keep(librt::Result<librt::ModelGraph> loaded, rt_model** model,
            std::span<const std::byte> mapped = {}) {
  if (!loaded.ok()) return std::move(loaded).status();
  auto handle = std::make_unique<rt_model>();
  handle->graph = std::make_shared<const librt::ModelGraph>(std::move(loaded).value());
  handle->mapped = mapped;
  *model = handle.release();
  return {};
}

/// The reader's limits and checks. A limit of 0 keeps the default.
Status limits_from(const rt_model_options* given, librt::ReadLimits& limits, bool& copy) {
  rt_model_options c;
  RT_TRY(librt::api::take_in(given, c, "rt_model_options"));
  copy = c.copy != 0;
  limits.verify = c.skip_checksums != 0 ? librt::Verify::Never : librt::Verify::AtFirstUse;
  const auto lower = [](uint64_t& limit, uint64_t asked) { limit = asked != 0 ? asked : limit; };
  lower(limits.nodes, c.max_nodes);
  lower(limits.values, c.max_values);
  lower(limits.graph_bytes, c.max_graph_bytes);
  lower(limits.memory, c.max_data_bytes);
  return {};
}

Status spec_at(const rt_model* model, const char* entry, size_t index, bool input, rt_tensor_spec* spec) {
  const librt::Graph* graph = graph_of(model, entry);
  if (graph == nullptr)
    return Status::make(librt::Code::NotFound, "the model has no entry '", entry != nullptr ? entry : "infer",
                        "'");
  const auto& ids = input ? graph->inputs : graph->outputs;
  if (index >= ids.size())
    return librt::invalid_argument(input ? "input " : "output ", index, ": the entry has ", ids.size());
  return librt::api::hand_out(librt::api::spec_of(*graph, (*graph)[ids[index]]), spec, "rt_tensor_spec");
}

}  // namespace

extern "C" {

rt_status* rt_model_load(const char* path, rt_model** model) {
  return rt_model_load_with(path, nullptr, model);
}

rt_status* rt_model_load_with(const char* path, const rt_model_options* options, rt_model** model) {
  return guarded([&]() -> Status {
    if (path == nullptr || model == nullptr)
      return librt::invalid_argument("rt_model_load: a pointer is null");
    *model = nullptr;
    librt::ReadLimits limits;
    bool copy = false;
    RT_TRY(limits_from(options, limits, copy));
    std::span<const std::byte> mapped;
    librt::Result<librt::ModelGraph> loaded = librt::load_model(path, limits, copy, &mapped);
    return keep(std::move(loaded), model, mapped);
  });
}

rt_status* rt_model_load_from_memory(const void* data, size_t bytes, int copy, rt_model** model) {
  rt_model_options options = RT_MODEL_OPTIONS_INIT;
  options.copy = copy;
  return rt_model_load_from_memory_with(data, bytes, &options, model);
}

rt_status* rt_model_load_from_memory_with(const void* data, size_t bytes, const rt_model_options* options,
                                          rt_model** model) {
  return guarded([&]() -> Status {
    if (data == nullptr || model == nullptr)
      return librt::invalid_argument("rt_model_load_from_memory: a pointer is null");
    *model = nullptr;
    librt::ReadLimits limits;
    bool copy = false;
    RT_TRY(limits_from(options, limits, copy));
    librt::Blob blob;
    if (copy) {
      auto memory = std::make_shared<librt::AlignedBytes>();
      RT_TRY(memory->reserve(bytes));
      __builtin_memcpy(memory->data(), data, bytes);
      blob.data = memory->data();
      blob.owner = std::move(memory);
    } else {
      blob.data = static_cast<const std::byte*>(data);
    }
    blob.size = bytes;
    return keep(librt::read_model(std::move(blob), limits), model);
  });
}

rt_status* rt_model_load_from_callback(rt_read_callback read, void* user, uint64_t total_bytes,
                                       rt_model** model) {
  return rt_model_load_from_callback_with(read, user, total_bytes, nullptr, model);
}

rt_status* rt_model_load_from_callback_with(rt_read_callback read, void* user, uint64_t total_bytes,
                                            const rt_model_options* options, rt_model** model) {
  return guarded([&]() -> Status {
    if (read == nullptr || model == nullptr)
      return librt::invalid_argument("rt_model_load_from_callback: a pointer is null");
    *model = nullptr;
    librt::ReadLimits limits;
    bool copy = false;
    RT_TRY(limits_from(options, limits, copy));
    const auto fetch = [&](uint64_t offset, size_t size, void* destination) -> Status {
      const int failed = read(user, offset, destination, size);
      if (failed == 0) return {};
      return Status::make(librt::Code::Io, "the read callback returned ", failed, " for ", size, " bytes at ",
                          offset);
    };
    return keep(librt::read_model(librt::Source{.bytes = total_bytes, .read = fetch}, limits), model);
  });
}

void rt_model_free(rt_model* model) {
  delete model;
}

const char* rt_model_producer(const rt_model* model) {
  return model != nullptr ? model->graph->producer.c_str() : "";
}
size_t rt_model_entry_count(const rt_model* model) {
  return model != nullptr ? model->graph->entries.size() : 0;
}
const char* rt_model_entry_name(const rt_model* model, size_t index) {
  return index < rt_model_entry_count(model) ? model->graph->entries[index].name.c_str() : nullptr;
}

size_t rt_model_input_count(const rt_model* model, const char* entry) {
  const librt::Graph* graph = graph_of(model, entry);
  return graph != nullptr ? graph->inputs.size() : 0;
}
size_t rt_model_output_count(const rt_model* model, const char* entry) {
  const librt::Graph* graph = graph_of(model, entry);
  return graph != nullptr ? graph->outputs.size() : 0;
}
rt_status* rt_model_input(const rt_model* model, const char* entry, size_t index, rt_tensor_spec* spec) {
  return guarded([&] { return spec_at(model, entry, index, true, spec); });
}
rt_status* rt_model_output(const rt_model* model, const char* entry, size_t index, rt_tensor_spec* spec) {
  return guarded([&] { return spec_at(model, entry, index, false, spec); });
}

size_t rt_model_state_count(const rt_model* model) {
  return model != nullptr ? model->graph->states.size() : 0;
}
rt_status* rt_model_state(const rt_model* model, size_t index, rt_tensor_spec* spec, rt_state_kind* kind) {
  return guarded([&]() -> Status {
    if (index >= rt_model_state_count(model))
      return librt::invalid_argument("state ", index, ": the model has ", rt_model_state_count(model));
    const librt::State& state = model->graph->states[index];
    if (kind != nullptr) *kind = static_cast<rt_state_kind>(state.kind);
    return librt::api::hand_out(librt::api::spec_of(state), spec, "rt_tensor_spec");
  });
}

size_t rt_model_metadata_count(const rt_model* model) {
  return model != nullptr ? model->graph->metadata.size() : 0;
}
const char* rt_model_metadata_key(const rt_model* model, size_t index) {
  return index < rt_model_metadata_count(model) ? model->graph->metadata[index].first.c_str() : nullptr;
}
const char* rt_model_metadata_value(const rt_model* model, const char* key) {
  if (model == nullptr || key == nullptr) return nullptr;
  for (const auto& [name, value] : model->graph->metadata)
    if (name == key) return value.c_str();
  return nullptr;
}

}  // extern "C"
