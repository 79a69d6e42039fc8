// Compares the checksums of a model's data before it is used.
//
// Knows: which device has threads for it. Must not know: which data; how checksums are computed.
#pragma once

#include <vector>

#include "runtime/graph/data_checks.h"
#include "runtime/session/device/device_set.h"

namespace librt {

/// On the threads of a CPU device, if one is open. checks: null for none. Code::InvalidModel names the first
/// damaged item.
Status verify_data(const DataChecks* checks, std::vector<DataChecks::Item> items, DeviceSet& devices);
/// The constants of a graph.
Status verify_data(const DataChecks* checks, const Graph& graph, DeviceSet& devices);

}  // namespace librt
