// Traces in Chrome's format, which Perfetto reads: writing those of rtbench is report.h's, reading any is
// here.
//
// Knows: the events of the format. Must not know: files, measuring.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace librt::bench {

/// All events of one name and category on one thread.
struct TraceRow {
  std::string name, category, kernel;
  uint64_t calls = 0;
  double total_us = 0;  ///< from begin to end, added up
  double self_us = 0;   ///< without the events inside of it
  double least_us = 0, most_us = 0;
  double flops = 0, bytes = 0;  ///< of all calls; 0: not in the trace
};

struct TraceThread {
  std::string process, name;  ///< from the trace's metadata, else "process 1", "thread 2"
  std::vector<TraceRow> rows;
  double self_us = 0;  ///< time within events
  double span_us = 0;  ///< from the first event's begin to the last one's end
};

struct Trace {
  std::vector<TraceThread> threads;  ///< in the order in which they appear
  uint64_t left_out = 0;             ///< events that are no spans: counters, flows, instants
  uint64_t incomplete = 0;           ///< begins without an end and ends without a begin
};

/// Reads an array of events, or an object with "traceEvents". Code::InvalidArgument says where it is no
/// trace.
Result<Trace> read_trace(std::string_view text);

/// A table by node for each thread, longest first, `most` rows each (0: all), with a total by category.
std::string trace_table(const Trace& trace, size_t most);

}  // namespace librt::bench
