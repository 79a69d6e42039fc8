#include "backends/vulkan/dispatch/commands.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/core/exception.h"

namespace librt::vulkan {
namespace {

constexpr uint32_t kSetsPerPool = 64;
/// So that later submissions can be smaller, or larger, as the device turns out to be slower, or faster.
constexpr double kPartsPerSubmission = 4;
constexpr VkPipelineStageFlags kWork = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kAllAccess = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                     VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

uint64_t ceil_div(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

uint64_t handle_of(VkBuffer buffer) {
  return reinterpret_cast<uint64_t>(buffer);
}

/// Tensors begin at multiples of 64 bytes, so a range may be widened to whole vec4s without overlapping a
/// neighbour.
uint64_t bound_bytes(uint64_t bytes) {
  return std::max<uint64_t>((bytes + 15) & ~uint64_t{15}, 16);
}

}  // namespace

Result<std::unique_ptr<VulkanCommands>> VulkanCommands::create(VulkanDevice& device,
                                                               const RecordOptions& options) {
  std::unique_ptr<VulkanCommands> commands(new VulkanCommands(device));
  RT_TRY(commands->start(options));
  return commands;
}

Status VulkanCommands::failed(const char* what, VkResult result) const {
  return Status::make(device_.note(result), "device '", device_.info().name, "': ", what, " failed with ",
                      result_name(result));
}

Status VulkanCommands::start(const RecordOptions& options) {
  slots_.assign(options.slots.begin(), options.slots.end());
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i] == nullptr)
      return invalid_argument("slot ", i, " has no slab; Vulkan kernels do not work on host addresses");
  profile_ = options.profile;
  span_names_.assign(options.span_names.begin(), options.span_names.end());
  if (profile_ && device_.plan().timestamp_bits == 0)
    return unsupported("device '", device_.info().name, "' has no timestamps, so it cannot be profiled");

  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = device_.plan().queue_family;
  VkResult result = api_.vkCreateCommandPool(device_.handle(), &pool, nullptr, &pool_);
  if (result != VK_SUCCESS) return failed("creating a command pool", result);
  result = submissions_.open();
  if (result != VK_SUCCESS) return failed("creating a fence", result);
  budget_ = device_.pace().budget();
  if (device_.pace().is_limited())
    estimates_.assign(options.span_seconds.begin(), options.span_seconds.end());
  stop_ = options.stop;
  stoppable_ = options.stoppable;
  if (profile_) {
    query_capacity_ = options.spans + 2;
    VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = query_capacity_;
    result = api_.vkCreateQueryPool(device_.handle(), &queries, nullptr, &queries_);
    if (result != VK_SUCCESS) return failed("creating timestamps", result);
  }
  RT_TRY(begin_part(0));
  if (profile_) api_.vkCmdResetQueryPool(commands_, queries_, 0, query_capacity_);
  return {};
}

Status VulkanCommands::begin_part(uint32_t first_step) {
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkResult result = api_.vkAllocateCommandBuffers(device_.handle(), &allocate, &commands_);
  if (result != VK_SUCCESS) return failed("allocating a command buffer", result);
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  result = api_.vkBeginCommandBuffer(commands_, &begin);
  if (result != VK_SUCCESS) return failed("beginning a command buffer", result);
  parts_.push_back({.commands = commands_, .first_step = first_step});
  buffers_.push_back(commands_);
  // Covers writes of earlier parts and submissions, and of the host.
  hazards_.clear();
  const VkMemoryBarrier before{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                               VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT, kAllAccess};
  api_.vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, kWork,
                            0, 1, &before, 0, nullptr, 0, nullptr);
  return {};
}

Status VulkanCommands::make_room(double seconds, uint32_t first_step) {
  double& filled = parts_.back().seconds;
  if (filled > 0 && filled + seconds > budget_ / kPartsPerSubmission) {
    const char* const name = label_open_ && span_ < span_names_.size() ? span_names_[span_] : nullptr;
    label(nullptr);  // a label ends in its command buffer
    const VkResult result = api_.vkEndCommandBuffer(commands_);
    if (result != VK_SUCCESS) return failed("ending a command buffer", result);
    RT_TRY(begin_part(first_step));
    label(name);
  }
  parts_.back().seconds += seconds;
  return {};
}

VulkanCommands::~VulkanCommands() {
  static_cast<void>(submissions_.wait());
  if (device_.is_hung()) return;
  for (VkBufferView view : views_) api_.vkDestroyBufferView(device_.handle(), view, nullptr);
  for (VkDescriptorPool pool : descriptor_pools_)
    api_.vkDestroyDescriptorPool(device_.handle(), pool, nullptr);
  if (queries_ != VK_NULL_HANDLE) api_.vkDestroyQueryPool(device_.handle(), queries_, nullptr);
  if (pool_ != VK_NULL_HANDLE) api_.vkDestroyCommandPool(device_.handle(), pool_, nullptr);
}

void VulkanCommands::barrier() {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                               VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, kAllAccess};
  api_.vkCmdPipelineBarrier(commands_, kWork, kWork, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void VulkanCommands::order(std::span<const HazardTracker::Access> accesses) {
  if (hazards_.add(accesses)) barrier();
}

void VulkanCommands::label(const char* name) noexcept {
  if (api_.vkCmdBeginDebugUtilsLabelEXT == nullptr || api_.vkCmdEndDebugUtilsLabelEXT == nullptr) return;
  if (label_open_) api_.vkCmdEndDebugUtilsLabelEXT(commands_);
  label_open_ = name != nullptr;
  if (!label_open_) return;
  VkDebugUtilsLabelEXT text{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
  text.pLabelName = name;
  api_.vkCmdBeginDebugUtilsLabelEXT(commands_, &text);
}

Status VulkanCommands::mark(uint32_t span) noexcept {
  RT_ATTEMPT {
    span_seconds_ = span < estimates_.size() ? static_cast<double>(estimates_[span]) : 0;
    // A kernel that takes long makes room for each dispatch.
    if (span_seconds_ > 0 && span_seconds_ <= budget_) RT_TRY(make_room(span_seconds_, span));
    span_ = span;
    if (!profile_) return {};
    RT_TRY(record_joints());
    if (marks_.size() + 1 >= query_capacity_)
      return invalid_argument("more marks were set than RecordOptions::spans announced (",
                              query_capacity_ - 2, ")");
    barrier();  // so that the work of one span does not count in the next one's time
    hazards_.clear();
    api_.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_,
                             static_cast<uint32_t>(marks_.size()));
    marks_.push_back(span);
    label(span < span_names_.size() ? span_names_[span] : nullptr);
    return {};
  }
  RT_CAUGHT {
    return caught_exception("marking a span");
  }
}

Result<VkBuffer> VulkanCommands::buffer_of(const BufferRef& ref) const {
  if (ref.slot >= slots_.size())
    return internal_error("a kernel refers to slot ", ref.slot, " of ", slots_.size());
  const auto* slab = static_cast<const VulkanSlab*>(slots_[ref.slot]);
  if (ref.offset > slab->size() || ref.bytes > slab->size() - ref.offset)
    return internal_error("a kernel refers to ", ref.bytes, " bytes at ", ref.offset, " in a slab of ",
                          slab->size());
  return slab->buffer();
}

Status VulkanCommands::copy(const BufferRef& destination, const BufferRef& source) noexcept {
  RT_ATTEMPT {
    if (source.bytes != destination.bytes)
      return invalid_argument("copy of ", source.bytes, " bytes to ", destination.bytes);
    if (source.bytes == 0) return {};
    RT_TRY(record_joints());
    RT_ASSIGN(const VkBuffer from, buffer_of(source));
    RT_ASSIGN(const VkBuffer to, buffer_of(destination));
    const HazardTracker::Access accesses[] = {
        {handle_of(from), source.offset, source.offset + source.bytes, false},
        {handle_of(to), destination.offset, destination.offset + destination.bytes, true}};
    order(accesses);
    const VkBufferCopy region{source.offset, destination.offset, source.bytes};
    api_.vkCmdCopyBuffer(commands_, from, to, 1, &region);
    return {};
  }
  RT_CAUGHT {
    return caught_exception("recording a copy");
  }
}

Status VulkanCommands::fill(const BufferRef& destination, uint32_t word) {
  const uint64_t bytes = (destination.bytes + 3) & ~uint64_t{3};
  if (bytes == 0) return {};
  RT_TRY(record_joints());
  RT_ASSIGN(const VkBuffer to, buffer_of(destination));
  const HazardTracker::Access accesses[] = {
      {handle_of(to), destination.offset, destination.offset + bytes, true}};
  order(accesses);
  api_.vkCmdFillBuffer(commands_, to, destination.offset, bytes, word);
  return {};
}

Status VulkanCommands::update(const BufferRef& destination, std::span<const uint32_t> words) {
  if (destination.bytes < words.size_bytes())
    return internal_error("an update of ", words.size_bytes(), " bytes in ", destination.bytes);
  RT_TRY(record_joints());
  RT_ASSIGN(const VkBuffer to, buffer_of(destination));
  const HazardTracker::Access accesses[] = {
      {handle_of(to), destination.offset, destination.offset + words.size_bytes(), true}};
  order(accesses);
  api_.vkCmdUpdateBuffer(commands_, to, destination.offset, words.size_bytes(), words.data());
  return {};
}

Status VulkanCommands::add_joining(std::unique_ptr<Joint> joint, std::span<const BoundRange> operands) {
  std::vector<HazardTracker::Access> accesses;
  for (const BoundRange& operand : operands) {
    RT_ASSIGN(const VkBuffer buffer, buffer_of(operand.range));
    accesses.push_back({handle_of(buffer), operand.range.offset,
                        operand.range.offset + bound_bytes(operand.range.bytes), operand.write});
  }
  if (joint_hazards_.add(accesses)) {
    RT_TRY(record_joints());
    joint_hazards_.add(accesses);
  }
  joint_seconds_ += span_seconds_;
  for (const std::unique_ptr<Joint>& earlier : joints_)
    if (earlier->join(*joint)) return {};
  joints_.push_back(std::move(joint));
  return {};
}

Status VulkanCommands::record_joints() {
  // Recording one dispatches, which comes here again.
  const std::vector<std::unique_ptr<Joint>> joints = std::exchange(joints_, {});
  joint_hazards_.clear();
  if (joints.empty()) return {};
  const double seconds = std::exchange(span_seconds_, std::exchange(joint_seconds_, 0));
  for (const std::unique_ptr<Joint>& joint : joints) RT_TRY(joint->record(*this));
  span_seconds_ = seconds;
  return {};
}

Result<VkDescriptorSet> VulkanCommands::allocate_set(VkDescriptorSetLayout layout) {
  if (sets_left_ == 0) {
    const VkDescriptorPoolSize sizes[] = {
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kSetsPerPool * kStorageBindings},
        {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, kSetsPerPool * kTexelBindings}};
    VkDescriptorPoolCreateInfo create{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    create.maxSets = kSetsPerPool;
    create.poolSizeCount = 2;
    create.pPoolSizes = sizes;
    VkDescriptorPool& pool = descriptor_pools_.emplace_back(VK_NULL_HANDLE);
    const VkResult result = api_.vkCreateDescriptorPool(device_.handle(), &create, nullptr, &pool);
    if (result != VK_SUCCESS) return failed("creating a descriptor pool", result);
    sets_left_ = kSetsPerPool;
  }
  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = descriptor_pools_.back();
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  const VkResult result = api_.vkAllocateDescriptorSets(device_.handle(), &allocate, &set);
  if (result != VK_SUCCESS) return failed("allocating a descriptor set", result);
  --sets_left_;
  return set;
}

Result<VkBufferView> VulkanCommands::texel_view(const VkDescriptorBufferInfo& range, bool pairs) {
  VkBufferViewCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
  create.buffer = range.buffer;
  create.format = pairs ? VK_FORMAT_R32G32_SFLOAT : VK_FORMAT_R32G32B32A32_SFLOAT;
  create.offset = range.offset;
  create.range = range.range;
  VkBufferView& view = views_.emplace_back(VK_NULL_HANDLE);
  const VkResult result = api_.vkCreateBufferView(device_.handle(), &create, nullptr, &view);
  if (result != VK_SUCCESS) return failed("creating a texel view", result);
  return view;
}

Result<VkDescriptorSet> VulkanCommands::descriptor_set(const Pipeline& pipeline,
                                                       std::span<const BoundRange> operands) {
  RT_ASSIGN(const VkDescriptorSet set, allocate_set(pipeline.layout.set));
  constexpr size_t kMost = kStorageBindings + kTexelBindings;
  VkDescriptorBufferInfo buffers[kMost];
  VkBufferView views[kMost];
  VkWriteDescriptorSet writes[kMost];
  uint32_t count = 0;
  const auto add = [&](uint32_t binding, VkDescriptorType type) {
    VkWriteDescriptorSet& write = writes[count];
    write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.dstBinding = binding;
    write.descriptorCount = 1;
    write.descriptorType = type;
    write.pBufferInfo = &buffers[count];
    write.pTexelBufferView = &views[count];
    ++count;
  };
  bool is_bound[kStorageBindings] = {};
  for (const BoundRange& operand : operands) {
    RT_ASSIGN(const VkBuffer buffer, buffer_of(operand.range));
    const uint64_t bytes = bound_bytes(operand.range.bytes);
    if (bytes > device_.plan().max_binding_bytes)
      return unsupported("an operand of ", bytes_text(bytes), " exceeds what device '", device_.info().name,
                         "' binds at once (", bytes_text(device_.plan().max_binding_bytes), ")");
    buffers[count] = {buffer, operand.range.offset, bytes};
    if (operand.texel) {
      RT_ASSIGN(views[count], texel_view(buffers[count], operand.pairs));
      add(kStorageBindings + operand.binding, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER);
    } else {
      is_bound[operand.binding] = true;
      add(operand.binding, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
    }
  }
  for (uint32_t binding = 0; binding < kStorageBindings; ++binding) {
    if (is_bound[binding] || ((pipeline.bindings >> binding) & 1) == 0) continue;
    buffers[count] = {device_.placeholder(), 0, 64};
    add(binding, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
  }
  api_.vkUpdateDescriptorSets(device_.handle(), count, writes, 0, nullptr);
  return set;
}

Status VulkanCommands::dispatch(const Dispatch& work) {
  if (work.groups == 0) return {};
  RT_TRY(record_joints());
  const uint64_t limit = std::min<uint64_t>(device_.facts().max_groups, 65535);
  const uint64_t x = std::min(work.groups, limit);
  const uint64_t y = (work.groups + x - 1) / x;
  if (y > limit)
    return unsupported("a dispatch of ", work.groups, " groups exceeds what device '", device_.info().name,
                       "' runs");
  if (const double seconds = work.share * span_seconds_; span_seconds_ > budget_)
    return dispatch_in_parts(work, limit, seconds);
  return record_groups(work, static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(y), 0);
}

/// A part is some rows of the grid, in which each group finds the index that it has in the whole.
Status VulkanCommands::dispatch_in_parts(const Dispatch& work, uint64_t limit, double seconds) {
  const double most = static_cast<double>(std::min(work.groups, limit));
  const double wanted = std::max(std::ceil(seconds / budget_), 1.0);
  const auto parts = static_cast<uint64_t>(std::min(wanted, most));
  if (wanted > most)
    device_.note_long_work(
        text(shader_code(work.shader).name, ": ", work.groups, " groups take an estimated ",
             std::llround(seconds * device_.pace().factor() * 1000),
             " ms and cannot be submitted in smaller parts; a driver's watchdog may end them"));
  const uint64_t x = std::min(ceil_div(work.groups, parts), limit);
  const uint64_t y = ceil_div(work.groups, x);
  return record_groups(work, static_cast<uint32_t>(x), static_cast<uint32_t>(y),
                       static_cast<uint32_t>(ceil_div(y, parts)), seconds);
}

/// The grid, in dispatches of `rows` rows, which take `seconds` together.
Status VulkanCommands::record_groups(const Dispatch& work, uint32_t x, uint32_t y, uint32_t rows,
                                     double seconds) {
  RT_ASSIGN(const Pipeline pipeline, device_.pipelines().get(work.shader, work.constants, rows < y));
  RT_ASSIGN(const VkDescriptorSet set, descriptor_set(pipeline, work.operands));

  HazardTracker::Access accesses[kStorageBindings + kTexelBindings];
  size_t count = 0;
  for (const BoundRange& operand : work.operands) {
    const auto* slab = static_cast<const VulkanSlab*>(slots_[operand.range.slot]);
    accesses[count++] = {handle_of(slab->buffer()), operand.range.offset,
                         operand.range.offset + bound_bytes(operand.range.bytes), operand.write};
  }
  for (uint32_t row = 0; row < y; row += rows) {
    // Its own part, unless what went before leaves room. A kernel that writes states ends once it has begun.
    if (seconds > 0) RT_TRY(make_room(seconds * rows / y, span_ + 1));
    order({accesses, count});
    api_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    const VkPipelineLayout layout = pipeline.layout.pipeline;
    api_.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, nullptr);
    if (!work.push.empty())
      api_.vkCmdPushConstants(commands_, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              static_cast<uint32_t>(work.push.size_bytes()), work.push.data());
    if (rows == y)
      api_.vkCmdDispatch(commands_, x, y, 1);
    else
      api_.vkCmdDispatchBase(commands_, 0, row, 0, x, std::min(rows, y - row), 1);
  }
  return {};
}

Status VulkanCommands::finish() noexcept {
  RT_ATTEMPT {
    RT_TRY(record_joints());
  }
  RT_CAUGHT {
    return caught_exception("recording kernels");
  }
  label(nullptr);
  if (profile_)
    api_.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_,
                             static_cast<uint32_t>(marks_.size()));
  const VkMemoryBarrier after{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                              VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                              VK_ACCESS_HOST_READ_BIT};
  api_.vkCmdPipelineBarrier(commands_, kWork, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &after, 0, nullptr, 0,
                            nullptr);
  const VkResult result = api_.vkEndCommandBuffer(commands_);
  if (result != VK_SUCCESS) return failed("ending a command buffer", result);
  finished_ = true;
  device_.pipelines().save_later();
  return device_.instance().validation_errors();
}

Status VulkanCommands::bind_host(uint32_t slot, void*, size_t) noexcept {
  return unsupported("slot ", slot,
                     ": Vulkan kernels do not work on host addresses; copy into the slot's slab");
}

Status VulkanCommands::submit() noexcept {
  if (!finished_) return internal_error("submit() before finish()");
  RT_TRY(device_.usable());
  for (size_t first = 0, last = 0; first < parts_.size(); first = last) {
    VkResult result = submissions_.make_room();  // which may change the pace
    if (result != VK_SUCCESS) return failed("waiting for the device", result);
    const double budget = device_.pace().budget();
    double seconds = 0;
    do seconds += parts_[last++].seconds;
    while (last < parts_.size() && seconds + parts_[last].seconds <= budget);
    if (first > 0 && stop_ != nullptr && parts_[first].first_step < stoppable_)
      if (const Status stopped = stop_->check(); !stopped.ok()) {
        RT_TRY(wait());
        return stopped;
      }
    result = submissions_.submit(std::span(buffers_).subspan(first, last - first), seconds);
    if (result != VK_SUCCESS) return failed("submitting", result);
  }
  return {};
}

Status VulkanCommands::wait() noexcept {
  if (const VkResult result = submissions_.wait(); result != VK_SUCCESS)
    return failed("waiting for the device", result);
  return device_.instance().validation_errors();
}

Status VulkanCommands::timings(std::span<uint64_t> nanoseconds) noexcept {
  RT_ATTEMPT {
    if (!profile_) return invalid_argument("timings of a command list that was not begun with profile");
    std::vector<uint64_t> ticks(marks_.size() + 1);
    const VkResult result = api_.vkGetQueryPoolResults(
        device_.handle(), queries_, 0, static_cast<uint32_t>(ticks.size()), ticks.size() * sizeof(uint64_t),
        ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    if (result != VK_SUCCESS) return failed("reading timestamps", result);
    for (size_t i = 0; i < marks_.size(); ++i)
      if (marks_[i] < nanoseconds.size())
        nanoseconds[marks_[i]] += static_cast<uint64_t>(timestamp_nanoseconds(
            ticks[i], ticks[i + 1], device_.plan().timestamp_bits, device_.facts().timestamp_period));
    return {};
  }
  RT_CAUGHT {
    return caught_exception("reading timestamps");
  }
}

}  // namespace librt::vulkan
