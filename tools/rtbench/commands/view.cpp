// rtbench view: a trace as a table.
#include <cstdio>
#include <string_view>

#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/data/file.h"
#include "tools/rtbench/commands/commands.h"
#include "tools/rtbench/report/trace.h"

namespace librt::bench {

int view_command(int argc, char** argv) {
  tools::CommandLine app(
      "Prints a trace as a table by node: calls, time without and with the events inside, operations and "
      "bytes per second where the trace has them.");
  std::string path;
  unsigned top = 20;
  app.add_option("TRACE", path, "Chrome trace (JSON): of rtbench --trace, or of another program")->required();
  app.add_option("--top", top, "Rows of each thread; 0: all")->capture_default_str();
  app.set_up_help({.program = "rtbench view",
                   .examples = {"rtbench zoo:lenet5 --trace trace.json", "rtbench view trace.json --top 5"},
                   .notes = {"The timeline itself: open the trace in https://ui.perfetto.dev, which reads it "
                             "in the browser without sending it anywhere, or in chrome://tracing."}});
  if (const auto code = app.parse(argc, argv)) return *code;
  const auto bytes = tools::read_file(path);
  if (!bytes.ok()) return tools::report_failure("rtbench", bytes.status());
  const auto trace = read_trace({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (!trace.ok()) return tools::report_failure("rtbench", Status(trace.status()).in(path));
  std::fputs(trace_table(*trace, top).c_str(), stdout);
  std::fprintf(stderr, "rtbench: for the timeline, open %s in https://ui.perfetto.dev\n", path.c_str());
  return tools::kFine;
}

}  // namespace librt::bench
