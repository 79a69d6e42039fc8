// What comes before the first run: options, session, seeded inputs.
//
// Knows: sessions. Must not know: clocks.
#pragma once

#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "tools/rtbench/measure.h"
#include "tools/rtbench/models.h"

namespace librt::bench {

rt::SessionOptions session_options(const BenchModel& model, const rt::DeviceInfo& device,
                                   const MeasureOptions& options);
/// A session, with the adapter of the options.
rt::Result<rt::Session> open_session(const rt::Model& model, const rt::SessionOptions& session_options,
                                     const MeasureOptions& options);

/// Seeded inputs for a batch size.
rt::Result<std::vector<rt::Tensor>> make_inputs(const BenchModel& model, const rt::Model& loaded,
                                                int64_t batch, const MeasureOptions& options);
rt::Status feed(rt::Session& session, const std::vector<rt::Tensor>& inputs);
/// Copies of the outputs of the last run.
rt::Status collect(rt::Session& session, Outputs& outputs);

/// Resident memory of this process; 0: unknown. Freed memory is returned to the system first.
uint64_t resident_bytes();

}  // namespace librt::bench
