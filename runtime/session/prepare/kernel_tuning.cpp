#include "runtime/session/prepare/kernel_tuning.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/core/element.h"
#include "runtime/core/hash.h"
#include "runtime/graph/attributes.h"

namespace librt {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kPlausible = 4;

/// Key of a timing: operator, attributes, operands and layouts; and the candidate rows, because a later
/// version may have faster ones.
std::string key_of(const NodeView& view, std::span<const KernelRow* const> rows,
                   std::span<const LayoutId> layouts) {
  const std::string attributes = attributes_text(view.node.op);
  std::string key = text(name_of(view.kind()), ".", hex(hash_bytes(attributes.data(), attributes.size())));
  for (size_t i = 0; i < view.input_count(); ++i) {
    if (!view.has(i)) {
      key += " -";
      continue;
    }
    append(key, " ", view.input(i), layouts[i] != kDense ? text("@", layouts[i]) : "",
           view.inputs[i].value != nullptr ? "c" : "");
  }
  std::string names;
  for (const KernelRow* row : rows) append(names, row->name, " ");
  append(key, " ", hex(hash_bytes(names.data(), names.size())));
  return key;
}

/// One kernel with its own memory, ready to be submitted.
struct Trial {
  KernelPtr kernel;
  BlockPtr memory;
  std::vector<BufferRef> inputs, outputs;
  BufferRef scratch, packed;
  CommandListPtr commands;
};

BufferRef take(uint64_t& used, uint64_t bytes, size_t alignment) {
  const BufferRef ref{.slot = 0, .offset = used, .bytes = bytes};
  used += round_up(bytes, alignment);
  return ref;
}

Status fill(Block& memory, const BufferRef& ref, const TensorInfo& info) {
  AlignedBytes bytes;
  RT_TRY(bytes.reserve(ref.bytes));
  const auto size = static_cast<size_t>(ref.bytes);
  std::fill_n(bytes.data(), size, std::byte{0});
  if (is_float(info.dtype) && ref.bytes >= info.bytes())
    for (int64_t i = 0; i < info.elements(); ++i)
      store_element(bytes.data(), info.dtype, i, 0.25 + 0.125 * static_cast<double>(i % 5));
  return memory.upload(ref.offset, {bytes.data(), size});
}

Status prepare(Device& device, const NodeView& view, const KernelRow& row, std::span<const LayoutId> layouts,
               uint64_t most_bytes, Trial& trial) {
  RT_ASSIGN(trial.kernel, row.create(device, view, layouts));
  const Requirements needs = trial.kernel->requirements();
  const size_t alignment = std::max(kHostAlignment, device.info().alignment);
  uint64_t used = 0;
  for (size_t i = 0; i < view.input_count(); ++i) {
    BufferRef ref;
    if (view.has(i) && (i >= 32 || ((needs.replaced_inputs >> i) & 1u) == 0))
      ref = take(used, device.layout_bytes(trial.kernel->input_layout(i), view.input(i)), alignment);
    trial.inputs.push_back(ref);
  }
  for (size_t i = 0; i < view.outputs.size(); ++i)
    trial.outputs.push_back(
        take(used, device.layout_bytes(trial.kernel->output_layout(i), view.output(i)), alignment));
  if (needs.scratch > 0) trial.scratch = take(used, needs.scratch, alignment);
  if (needs.packed > 0) trial.packed = take(used, needs.packed, alignment);
  if (used > most_bytes) return Status(Code::OutOfMemory, "no memory to time a kernel");
  RT_ASSIGN(trial.memory, Block::allocate(device, used));
  for (size_t i = 0; i < view.input_count(); ++i)
    if (trial.inputs[i].present()) RT_TRY(fill(*trial.memory, trial.inputs[i], view.input(i)));
  if (needs.packed > 0) {
    AlignedBytes bytes;
    RT_TRY(bytes.reserve(needs.packed));
    const std::span packed(bytes.data(), static_cast<size_t>(needs.packed));
    RT_TRY(trial.kernel->pack(packed));
    RT_TRY(trial.memory->upload(trial.packed.offset, packed));
  }
  Slab* const slots[] = {&trial.memory->slab()};
  RT_ASSIGN(trial.commands, device.begin({.slots = slots, .spans = 1}));
  RT_TRY(trial.commands->mark(0));
  RT_TRY(trial.kernel->record(*trial.commands, {trial.inputs, trial.outputs, trial.scratch, trial.packed}));
  return trial.commands->finish();
}

/// A node with constants of this share of the largest cache is one of many in its model, whose weights do not
/// all fit: when it runs, its weights come from memory.
constexpr uint64_t kColdShare = 32;

/// Seconds of one run: the best of a few after a warm-up, which is enough where it is long and far from
/// `fastest`, the time of another row. `evicting`: zeros that fill the largest cache, read before each run;
/// or empty.
Result<double> measure(Device& device, const NodeView& view, const KernelRow& row,
                       std::span<const LayoutId> layouts, uint64_t most_bytes, Clock::time_point deadline,
                       std::span<const std::byte> evicting, double fastest) {
  Trial trial;
  RT_TRY(prepare(device, view, row, layouts, most_bytes, trial));
  double best = 1e30;
  for (int run = 0; run < (evicting.empty() ? 6 : 4); ++run) {
    if (run > 0 && !evicting.empty() && std::memchr(evicting.data(), 1, evicting.size()) != nullptr) break;
    const auto start = Clock::now();
    RT_TRY(trial.commands->submit());
    RT_TRY(trial.commands->wait());
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (run > 0) best = std::min(best, seconds);
    if (seconds > 0.1 && seconds > 4 * fastest) return seconds;
    if (run > 1 && Clock::now() > deadline) break;
  }
  // A layout other than the producer's costs a pass over memory.
  for (size_t i = 0; i < view.input_count(); ++i)
    if (view.has(i) && trial.inputs[i].present() && trial.kernel->input_layout(i) != layouts[i])
      best += 2.0 * static_cast<double>(view.input(i).bytes()) / 8e9;
  return best;
}

}  // namespace

KernelTuner::DeviceCache& KernelTuner::cache_of(const Device& device) {
  for (DeviceCache& known : caches_)
    if (known.device == &device) return known;
  DeviceCache cache{.device = &device};
  const DeviceInfo& info = device.info();
  const std::string identity =
      text(info.backend, "|", info.name, "|", info.uuid, "|", info.driver, "|", info.threads);
  cache.file = text("tuning-", info.backend, "-", hex(hash_bytes(identity.data(), identity.size())), ".txt");
  note(cache, cache.winners.read(options_.cache_folder, cache.file));
  return caches_.emplace_back(std::move(cache));
}

Result<size_t> KernelTuner::choose(Device& device, const NodeView& view,
                                   const std::vector<const KernelRow*>& rows,
                                   std::span<const LayoutId> producer_layouts, std::string& how) {
  // A row with a negative priority is a last resort. It is not timed against others: its single-threaded
  // loops would win while the machine's other cores are busy, and the result would be cached.
  size_t plausible = 1;
  while (plausible < std::min(rows.size(), kPlausible) && rows[plausible]->priority >= 0) ++plausible;
  if (!options_.enabled || plausible == 1) return size_t{0};
  DeviceCache& cache = cache_of(device);
  const std::string key = key_of(view, std::span(rows).first(plausible), producer_layouts);
  const std::string_view known = cache.winners.find(key);
  for (size_t i = 0; !known.empty() && i < plausible; ++i)
    if (known == rows[i]->name) {
      how = "tuned earlier";
      return i;
    }
  uint64_t constants = 0;
  for (size_t i = 0; i < view.input_count(); ++i)
    if (view.has(i) && view.inputs[i].value != nullptr) constants += view.input(i).bytes();
  const uint64_t largest = device.info().cache_bytes;
  std::span<const std::byte> evicting;
  if (largest > 0 && constants >= largest / kColdShare && largest < most_bytes_ / 4) {
    if (evicting_.capacity() == 0 && evicting_.reserve(largest).ok())
      std::memset(evicting_.data(), 0, evicting_.capacity());  // else all of it is one page of the system's
    evicting = {evicting_.data(), evicting_.capacity()};
  }
  std::optional<size_t> best;
  double best_seconds = 1e30;
  size_t timed = 0;
  for (size_t i = 0; i < plausible; ++i) {
    if (stop_ != nullptr) RT_TRY(stop_->check());
    if (Clock::now() > deadline_) {
      how = "tuning ran out of time";
      return size_t{0};
    }
    const auto seconds =
        measure(device, view, *rows[i], producer_layouts, most_bytes_, deadline_, evicting, best_seconds);
    if (!seconds.ok()) continue;
    ++timed;
    if (!best || *seconds < best_seconds) {
      best = i;
      best_seconds = *seconds;
    }
  }
  if (!best) return size_t{0};
  how = text("fastest of ", timed, ", ", static_cast<int64_t>(best_seconds * 1e6), " us");
  cache.winners.set(key, rows[*best]->name);
  cache.changed = true;
  return *best;
}

void KernelTuner::save() {
  evicting_ = {};
  for (DeviceCache& cache : caches_) {
    if (!cache.changed) continue;
    cache.changed = false;
    note(cache, cache.winners.write(options_.cache_folder, cache.file));
  }
}

void KernelTuner::note(DeviceCache& cache, const Status& status) {
  if (status.ok() || cache.noted) return;
  cache.noted = true;
  append(notes_, "cache: ", status.message(), "\n");
  if (options_.log.listens(RT_LOG_WARNING))
    options_.log.say(RT_LOG_WARNING, text("cache: ", status.message()));
}

}  // namespace librt
