// Traces in Chrome's format, of rtbench and of other programs, whole and damaged.
#include "tools/rtbench/report/trace.h"

#include <gtest/gtest.h>

namespace librt::bench {
namespace {

TEST(Trace, AddsUpByNode) {
  const auto trace = read_trace(R"({"traceEvents": [
    {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "rtbench"}},
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "lenet5 cpu batch 1"}},
    {"name": "conv1", "cat": "Conv", "ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 1000, "args": {"kernel": "conv.direct", "flops": 4e6, "bytes": 1e6}},
    {"name": "relu", "cat": "Relu", "ph": "X", "pid": 1, "tid": 1, "ts": 1000, "dur": 250},
    {"name": "conv1", "cat": "Conv", "ph": "X", "pid": 1, "tid": 1, "ts": 1250, "dur": 3000, "args": {"kernel": "conv.direct", "flops": 4e6, "bytes": 1e6}}
  ], "displayTimeUnit": "ms"})");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->threads.size(), 1u);
  const TraceThread& thread = trace->threads[0];
  EXPECT_EQ(thread.process + "/" + thread.name, "rtbench/lenet5 cpu batch 1");
  ASSERT_EQ(thread.rows.size(), 2u);
  EXPECT_EQ(thread.rows[0].name, "conv1");
  EXPECT_EQ(thread.rows[0].calls, 2u);
  EXPECT_EQ(thread.rows[0].total_us, 4000);
  EXPECT_EQ(thread.rows[0].least_us, 1000);
  EXPECT_EQ(thread.rows[0].most_us, 3000);
  EXPECT_EQ(thread.span_us, 4250);
  const std::string table = trace_table(*trace, 1);
  EXPECT_NE(table.find("rtbench, lenet5 cpu batch 1: 2 nodes, 3 events"), std::string::npos) << table;
  EXPECT_NE(table.find("94.1"), std::string::npos) << table;     // share of conv1
  EXPECT_NE(table.find("  2.0  "), std::string::npos) << table;  // GFLOP/s
  EXPECT_NE(table.find("and 1 more: 0.2500 ms, 5.9 %"), std::string::npos) << table;
}

TEST(Trace, TimeOfInnerEventsIsNotCountedTwice) {
  const auto trace = read_trace(R"([
    {"name": "outer", "ph": "B", "pid": "p", "tid": "t", "ts": "10"},
    {"name": "inner", "ph": "X", "pid": "p", "tid": "t", "ts": 20, "dur": 30},
    {"name": "counter", "ph": "C", "pid": "p", "tid": "t", "ts": 21},
    {"ph": "E", "pid": "p", "tid": "t", "ts": 110},
    {"ph": "E", "pid": "p", "tid": "t", "ts": 111},
    {"name": "open", "ph": "B", "pid": "p", "tid": "t", "ts": 120}
  ])");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->threads.size(), 1u);
  EXPECT_EQ(trace->threads[0].process, "process p");
  EXPECT_EQ(trace->threads[0].self_us, 100);
  EXPECT_EQ(trace->threads[0].rows[0].name, "outer");
  EXPECT_EQ(trace->threads[0].rows[0].self_us, 70);
  EXPECT_EQ(trace->left_out, 1u);
  EXPECT_EQ(trace->incomplete, 2u);
}

TEST(Trace, RefusesWhatIsNone) {
  const auto message = [](const char* text) {
    const auto trace = read_trace(text);
    return trace.ok() ? std::string("it was read") : trace.status().message();
  };
  EXPECT_EQ(message(""), "expected a Chrome trace in JSON; reading ended at byte 1");
  EXPECT_EQ(message("{}"), "expected a Chrome trace, found JSON without \"traceEvents\"");
  EXPECT_EQ(message("3"), "expected an array of trace events, found number");
  EXPECT_EQ(message("[1]"), "event 0: expected an object, found number");
  EXPECT_EQ(message(R"([{"ph": "X", "name": "a", "ts": 0}])"),
            "event 0: expected microseconds of at least 0 in \"dur\"");
  EXPECT_EQ(message(R"([{"ph": "X", "ts": "soon", "dur": 1}])"),
            "event 0: expected a time in microseconds in \"ts\"");
  EXPECT_EQ(message(R"([{"ph": "M"}, {"name": 3}])"), "event 1: expected a phase of one letter in \"ph\"");
}

TEST(Trace, NamesCannotMoveTheCursor) {
  const auto trace = read_trace(R"([{"name": "\u001b[2Jgone", "ph": "X", "ts": 0, "dur": 1}])");
  ASSERT_TRUE(trace.ok());
  EXPECT_NE(trace_table(*trace, 0).find("?[2Jgone"), std::string::npos);
  EXPECT_EQ(trace_table(*read_trace("[]"), 0), "the trace has no spans\n");
}

}  // namespace
}  // namespace librt::bench
