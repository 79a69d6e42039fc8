#include "runtime/graph/data_checks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "runtime/core/checksum.h"
#include "runtime/core/order.h"

namespace librt {
namespace {
constexpr auto kBefore = [](const auto& range, const std::byte* data) { return range.data < data; };
}

void DataChecks::collect(const Graph& graph, std::vector<Item>& items) {
  for (const Value& value : graph.values)
    if (value.data.size > 0) items.push_back({value.data.data, &value.name});
  for (const Node& node : graph.nodes)
    for (const Graph& body : node.bodies) collect(body, items);
}

void DataChecks::add(const Blob& blob, uint64_t expected) {
  const auto place = std::lower_bound(ranges_.begin(), ranges_.end(), blob.data, kBefore);
  if (blob.size > 0 && (place == ranges_.end() || place->data != blob.data))
    ranges_.insert(place, {blob.data, blob.size, expected, false});
}

const DataChecks::Range* DataChecks::pending(const std::byte* data) const {
  const auto range = std::lower_bound(ranges_.begin(), ranges_.end(), data, kBefore);
  if (range == ranges_.end() || range->data != data) return nullptr;
  return std::atomic_ref(range->verified).load(std::memory_order_relaxed) ? nullptr : &*range;
}

void DataChecks::keep_pending(std::vector<Item>& items) const {
  std::erase_if(items, [&](const Item& item) { return pending(item.data) == nullptr; });
  const auto key = [&](size_t i) { return std::pair(pending(items[i].data)->size, items[i].data); };
  std::vector<Item> kept;
  for (const size_t i : sorted_order(items.size(), [&](size_t a, size_t b) { return key(a) > key(b); }))
    if (kept.empty() || kept.back().data != items[i].data) kept.push_back(items[i]);
  items = std::move(kept);
}

Status DataChecks::verify(const std::byte* data) const {
  const Range* range = pending(data);
  if (range == nullptr) return {};
  RT_TRY(verify_size());
  if (checksum(data, range->size) != range->expected)
    return invalid_model("the checksum of its ", range->size, " bytes differs; ",
                         path_.empty() ? "the file" : path_.c_str(), " is damaged");
  std::atomic_ref(range->verified).store(true, std::memory_order_relaxed);
  return {};
}

Status DataChecks::verify_size() const {
#if defined(MADV_POPULATE_READ)
  if (file_.empty()) return {};
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto last = reinterpret_cast<uintptr_t>(file_.data() + file_.size() - 1) / page * page;
  if (madvise(reinterpret_cast<void*>(last), page, MADV_POPULATE_READ) != 0 && errno == EFAULT)
    return invalid_model(path_, " was truncated after it was opened");
#endif
  return {};
}

}  // namespace librt
