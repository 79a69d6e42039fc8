#include "runtime/session/memory/verify_data.h"

namespace librt {
namespace {

Device& cpu_of(DeviceSet& devices) {
  for (size_t i = 0; i < devices.size(); ++i)
    if (devices.device(i).info().type == DeviceType::Cpu) return devices.device(i);
  return devices.chosen();
}

struct Work {
  const DataChecks& checks;
  const std::vector<DataChecks::Item>& items;
};

void verify_one(void* context, size_t index) noexcept {
  const Work& work = *static_cast<const Work*>(context);
  (void)work.checks.verify(work.items[index].data);  // a failure is repeated below
}

}  // namespace

Status verify_data(const DataChecks* checks, std::vector<DataChecks::Item> items, DeviceSet& devices) {
  if (checks == nullptr) return {};
  checks->keep_pending(items);
  Work work{*checks, items};
  cpu_of(devices).for_each(items.size(), verify_one, &work);
  for (const DataChecks::Item& item : items)
    RT_TRY(checks->verify(item.data).in("data of '", *item.name, "'"));
  return {};
}

Status verify_data(const DataChecks* checks, const Graph& graph, DeviceSet& devices) {
  std::vector<DataChecks::Item> items;
  if (checks != nullptr) DataChecks::collect(graph, items);
  return verify_data(checks, std::move(items), devices);
}

}  // namespace librt
