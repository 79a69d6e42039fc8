#include "backends/vulkan/device/device_plan.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "backends/vulkan/device/pace.h"

namespace librt::vulkan {
namespace {

/// A hundred times what a submission is to take: others may use the device, too.
constexpr uint32_t kWaitSeconds = 60;

std::string lower(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::optional<size_t> as_index(std::string_view wanted) {
  if (wanted.empty() || wanted.size() > 4) return std::nullopt;
  size_t index = 0;
  for (char c : wanted) {
    if (c < '0' || c > '9') return std::nullopt;
    index = index * 10 + static_cast<size_t>(c - '0');
  }
  return index;
}

int preference(DeviceType type) {
  switch (type) {
    case DeviceType::DiscreteGpu: return 4;
    case DeviceType::IntegratedGpu: return 3;
    case DeviceType::VirtualGpu: return 2;
    default: return 1;
  }
}

std::string listing(std::span<const DeviceFacts> devices) {
  std::string out;
  for (size_t i = 0; i < devices.size(); ++i)
    append(out, text(i == 0 ? "" : ", ", i, " = ", devices[i].name));
  return out;
}

/// A compute-only queue does not wait for the desktop; without timestamps nothing can be profiled.
std::optional<uint32_t> find_queue(const DeviceFacts& facts) {
  std::optional<uint32_t> best;
  int best_score = -1;
  for (uint32_t i = 0; i < facts.queues.size(); ++i) {
    const auto& queue = facts.queues[i];
    if (!queue.compute || queue.count == 0) continue;
    const int score = (queue.timestamp_bits > 0 ? 2 : 0) + (queue.graphics ? 0 : 1);
    if (score > best_score) best = i;
    best_score = std::max(best_score, score);
  }
  return best;
}

/// The memory type with the highest score above zero.
template <class Score>
std::optional<uint32_t> best_memory(const DeviceFacts& facts, Score score) {
  std::optional<uint32_t> best;
  int best_score = 0;
  for (uint32_t i = 0; i < facts.memory.size(); ++i) {
    const int value = score(facts.memory[i]);
    if (value > best_score || (best && value == best_score && value > 0 &&
                               facts.memory[i].heap_bytes > facts.memory[*best].heap_bytes)) {
      best = i;
      best_score = value;
    }
  }
  return best;
}

/// Shared memory that gemm_matrices.comp needs for 2-byte operands.
uint64_t shared_bytes(const MatrixPlan& plan) {
  const uint64_t rows = plan.rows * (plan.subgroups / plan.subgroups_n);
  const uint64_t columns = plan.columns * plan.subgroups_n;
  constexpr uint64_t kGap = 16;  // padding bytes after each row
  const auto tile = [&](uint64_t extent) {
    return std::max(plan.step * (2 * extent + kGap), extent * (2 * plan.step + kGap));
  };
  constexpr uint64_t kWindow = 12;  // per row of a convolution
  return tile(rows) + tile(columns) + rows * (4 * columns + kGap + kWindow);
}

/// The largest operation listed, in parts of about 32 x 32 per subgroup and four subgroups per workgroup, or
/// less if shared memory or workgroups are small.
MatrixPlan plan_matrices(const DeviceFacts& facts, Component factors, Component sums) {
  MatrixPlan plan;
  for (const MatrixFacts& matrix : facts.matrices) {
    const bool whole = matrix.m % 4 == 0 && matrix.n % 4 == 0 && matrix.k % 4 == 0;
    if (matrix.factors != factors || matrix.sums != sums || !whole) continue;
    if (matrix.m * matrix.n * matrix.k > plan.m * plan.n * plan.k)
      plan = {.m = matrix.m, .n = matrix.n, .k = matrix.k};
  }
  if (!plan.listed() || facts.subgroup_size == 0) return {};
  const auto multiple = [](uint32_t of, uint32_t wanted) { return (wanted + of - 1) / of * of; };
  // A software device gains nothing from larger parts, which are slow to compile.
  for (uint32_t side = facts.type == DeviceType::SoftwareGpu ? 16 : 32; side >= 8; side /= 2)
    for (const auto& [subgroups, along] : {std::pair{4u, 2u}, std::pair{2u, 2u}, std::pair{1u, 1u}}) {
      plan.rows = multiple(plan.m, side);
      plan.columns = multiple(plan.n, side);
      plan.step = multiple(plan.k, std::max(side, 16u));
      plan.subgroups = subgroups;
      plan.subgroups_n = along;
      plan.lanes = subgroups * facts.subgroup_size;
      if (plan.lanes <= facts.max_invocations && shared_bytes(plan) <= facts.max_shared_bytes) return plan;
    }
  return {};
}

/// Which types hold tensors and what is transferred.
Status plan_memory(const DeviceFacts& facts, DevicePlan& plan) {
  const bool shares_memory = facts.type == DeviceType::IntegratedGpu || facts.type == DeviceType::SoftwareGpu;
  const auto coherent = [](const MemoryTypeFacts& memory) {
    return memory.host_visible && memory.host_coherent;
  };
  uint64_t most = 0;  // bytes of the device's own memory
  for (const MemoryTypeFacts& memory : facts.memory)
    if (memory.device_local) most = std::max(most, memory.heap_bytes);
  const auto tensors = best_memory(facts, [&](const MemoryTypeFacts& memory) {
    if (shares_memory && coherent(memory))
      return 4 + (memory.device_local ? 2 : 0) + (memory.host_cached ? 1 : 0);
    if (!memory.device_local) return 1;
    // A resizable BAR shows the host all of the memory, others a window of 256 MiB.
    if (coherent(memory)) return memory.heap_bytes >= most ? 4 : 2;
    return memory.host_visible ? 2 : 3;
  });
  const auto staging = best_memory(facts, [&](const MemoryTypeFacts& memory) {
    if (!coherent(memory)) return 0;
    return 1 + (memory.host_cached ? 2 : 0) + (memory.device_local ? 0 : 1);
  });
  if (!tensors || !staging)
    return unsupported("device '", facts.name,
                       "' lacks a memory type for tensors or for host-visible staging");
  plan.tensor_memory = *tensors;
  plan.staging_memory = *staging;
  plan.reading_memory = best_memory(facts, [&](const MemoryTypeFacts& memory) {
                          if (!memory.host_visible || !(memory.host_cached || memory.host_coherent)) return 0;
                          return 1 + (memory.host_cached ? 4 : 0) + (memory.host_coherent ? 2 : 0) +
                                 (memory.device_local ? 0 : 1);
                        }).value_or(*staging);
  const MemoryTypeFacts& memory = facts.memory[*tensors];
  // Reading uncached memory is many times slower than a copy into cached memory, if there is any.
  const bool reads_slowly = !memory.host_cached && facts.memory[plan.reading_memory].host_cached;
  plan.mapped = shares_memory && coherent(memory) && !reads_slowly;
  plan.writable = coherent(memory) && !plan.mapped;
  plan.memory_bytes = memory.heap_bytes;
  return {};
}

}  // namespace

Status usable(const DeviceFacts& facts) {
  if (facts.api_version < 101)
    return unsupported("device '", facts.name, "' supports Vulkan ", facts.api_version / 100, ".",
                       facts.api_version % 100, ", 1.1 is needed; update the driver");
  if (!find_queue(facts)) return unsupported("device '", facts.name, "' has no compute queue");
  if (facts.max_push_bytes < kPushBytes)
    return unsupported("device '", facts.name, "' has ", facts.max_push_bytes, " bytes of push constants, ",
                       kPushBytes, " are needed");
  return {};
}

Result<size_t> choose_device(std::span<const DeviceFacts> devices, std::string_view wanted,
                             bool allow_software) {
  if (devices.empty()) return Status::make(Code::NotFound, "the Vulkan drivers list no device");
  if (!wanted.empty()) {
    if (const auto index = as_index(wanted)) {
      if (*index >= devices.size())
        return Status::make(Code::NotFound, "there is no Vulkan device ", *index,
                            "; there are: ", listing(devices));
      RT_TRY(usable(devices[*index]));
      return *index;
    }
    const std::string needle = lower(wanted);
    for (size_t i = 0; i < devices.size(); ++i)
      if (lower(devices[i].uuid) == needle || lower(devices[i].name).find(needle) != std::string::npos) {
        RT_TRY(usable(devices[i]));
        return i;
      }
    return Status::make(Code::NotFound, "no Vulkan device has '", wanted,
                        "' in its name or as its UUID; there are: ", listing(devices));
  }
  std::optional<size_t> best;
  std::string reasons;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (const Status status = usable(devices[i]); !status.ok()) {
      append(reasons, text("; ", status.message()));
      continue;
    }
    if (devices[i].type == DeviceType::SoftwareGpu && !allow_software) {
      append(reasons, text("; device '", devices[i].name,
                           "' runs on the CPU: name it, or set RT_VULKAN_ALLOW_SOFTWARE=1"));
      continue;
    }
    if (!best || preference(devices[i].type) > preference(devices[*best].type)) best = i;
  }
  if (!best) return Status::make(Code::NotFound, "no Vulkan device to choose", reasons);
  return *best;
}

double timestamp_nanoseconds(uint64_t from, uint64_t to, uint32_t bits, double period) noexcept {
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return static_cast<double>((to - from) & mask) * period;
}

Result<DevicePlan> plan_device(const DeviceFacts& facts) {
  RT_TRY(usable(facts));
  DevicePlan plan;
  plan.queue_family = *find_queue(facts);
  if (facts.timestamp_period > 0) plan.timestamp_bits = facts.queues[plan.queue_family].timestamp_bits;
  RT_TRY(plan_memory(facts, plan));

  plan.alignment = std::max<uint64_t>({64, facts.storage_alignment, facts.texel_alignment});
  plan.max_binding_bytes = facts.max_storage_range & ~uint64_t{63};
  if (facts.type != DeviceType::SoftwareGpu) {  // these have no watchdog, and may be as slow as their CPU
    plan.submission_seconds = submission_limit(facts.vendor_id);
    plan.wait_seconds = kWaitSeconds;
  }
  if (facts.type == DeviceType::SoftwareGpu) {
    plan.most_iterations = 65000;
    plan.texel_loads = true;
    plan.use_matrices = false;
    plan.row_lanes = facts.subgroup_size >= 4 && facts.subgroup_size <= 64 ? facts.subgroup_size : 8;
    plan.tile_lanes = plan.row_lanes;
    // A tile has 8 or 16 rows, distributed evenly over the lanes; lanes beyond the subgroup's size do not
    // exist.
    plan.subgroup_tiles = facts.subgroup_shuffle && (facts.subgroup_size == 4 || facts.subgroup_size == 8) &&
                          plan.tile_lanes <= facts.max_invocations;
  }
  if (facts.features.float16) plan.half_matrices = plan_matrices(facts, Component::F16, Component::F32);
  if (facts.features.int8) plan.byte_matrices = plan_matrices(facts, Component::S8, Component::S32);
  if (plan.byte_matrices.step % 16 != 0) plan.byte_matrices = {};
  plan.elementwise_lanes = std::min(plan.elementwise_lanes, facts.max_invocations);
  plan.row_lanes = std::min(plan.row_lanes, facts.max_invocations);
  plan.tile_lanes = std::min(plan.tile_lanes, facts.max_invocations);
  return plan;
}

DeviceInfo describe_device(const DeviceFacts& facts, int index) {
  DeviceInfo info;
  info.backend = "vulkan";
  info.index = index;
  info.name = facts.name;
  info.uuid = facts.uuid;
  info.driver = facts.driver;
  info.type = facts.type;
  info.asynchronous = true;
  info.replays = Replays::CommandBuffer;
  info.wants_estimates = facts.type != DeviceType::SoftwareGpu;
  info.threads = 0;
  if (auto plan = plan_device(facts); plan.ok()) {
    info.memory_bytes = plan->memory_bytes;
    info.max_buffer_bytes = plan->max_binding_bytes;
    info.alignment = plan->alignment;
  } else {
    info.features.push_back("unusable: " + plan.status().message());
  }
  const auto add = [&](bool has, const char* name) {
    if (has) info.features.push_back(name);
  };
  add(facts.type == DeviceType::SoftwareGpu, "software");
  add(facts.features.storage_8bit, "storage_8bit");
  add(facts.features.storage_16bit, "storage_16bit");
  add(facts.features.float16, "fp16");
  add(facts.features.int8, "int8");
  add(facts.features.int64, "int64");
  add(facts.features.integer_dot, "integer_dot");
  add(!facts.matrices.empty(), "cooperative_matrix");
  return info;
}

}  // namespace librt::vulkan
