// Output of rtbench: tables, JSON, the closing recommendation, a Chrome trace.
#pragma once

#include <string>
#include <vector>

#include "tools/rtbench/machine.h"
#include "tools/rtbench/measure.h"

namespace librt::bench {

/// One line per measurement, for a terminal.
std::string table(const std::vector<Measurement>& measurements);
/// The ops of one measurement, slowest first, with a total by operator.
std::string profile_table(const Measurement& measurement, size_t most);
/// "Use cpu up to batch 8, vulkan from batch 32 (3.1x)." And which lower precisions are slower than fp32.
std::string advice(const std::vector<Measurement>& measurements);
std::string to_json(const std::vector<Measurement>& measurements, const std::string& sentence,
                    const Machine& machine);
/// Trace events as chrome://tracing and Perfetto read them; one thread per measurement.
std::string chrome_trace(const std::vector<Measurement>& measurements);
/// Devices, what they can do, and why a backend has none.
std::string devices_table(const rt::Devices& devices);
std::string devices_json(const rt::Devices& devices);

}  // namespace librt::bench
