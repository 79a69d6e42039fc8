// Other engines in the same study: `--peer onnxruntime,openvino`.
//
// Knows: where a peer's series stand, and what to say of them. Must not know: how a peer runs (peer/).
//
// Devices and series of peers are the last of a study, so that a study without them has the same indices.
#pragma once

#include <vector>

#include "tools/rtbench/study/budget.h"
#include "tools/rtbench/study/setup.h"

namespace librt::bench {

/// Whether another engine runs on this device.
bool is_peer(const StudyDevice& device);
/// The study without the devices and series of peers: conclusions about devices rest on it.
Study without_peers(const Study& study);

/// Adds a device, a series and a lane in fp32 for each peer that options.peers names. One that is not
/// installed, or cannot load the model, is an omission with the reason, which is also said on stderr.
/// They load at once, which may take a third of the budget.
void add_peers(const StudyOptions& options, const Budget& budget, Study& study, StudySetup& setup,
               StopRequest& stop);

/// How each peer compares with librt on the CPU at the smallest and the largest batch that both have.
std::vector<Sentence> sentences_of_peers(const Study& study);

}  // namespace librt::bench
