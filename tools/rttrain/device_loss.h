// A training whose device is lost: it ends, or goes on from its last checkpoint, on the CPU or on the device
// once it works again.
//
// Knows: sessions, the step that the checkpoint holds. Must not know: what a training does.
#pragma once

#include <functional>
#include <optional>

#include "tools/rttrain/loop.h"

namespace rt::train {

enum class OnDeviceLost : uint8_t { Stop, Cpu, Wait };

/// Trains on the trainer, which has these options: from the checkpoint if `resume`, else from the start. Sets
/// saved_step when this run writes or reads the checkpoint.
using TrainOn = std::function<rt::Result<Outcome>(rt::Trainer& trainer, const rt::SessionOptions& options,
                                                  bool resume, std::optional<uint64_t>& saved_step)>;

/// The outcome of `train` on a trainer with these options; called again, with another trainer, after a device
/// was lost. resume: of the first call. An error when the device is lost again before a later step was saved,
/// or, with Wait, when no session of this process can use it (CUDA) or a signal ends the waiting.
rt::Result<Outcome> train_through_device_loss(const rt::Model& model, rt::SessionOptions options, bool resume,
                                              OnDeviceLost on_loss, const TrainOn& train);

}  // namespace rt::train
