// Large graphs take a time that grows with their number of nodes, not with its square.
//
//   large_graphs --check 1000              compares the times at 1000 and 16000 nodes
//   large_graphs --table 100000            a table of times for docs/measurements.md
//   large_graphs --write chain 100000 -o chain.onnx
//
// Times are those of this thread on the CPU, so that other work on the machine does not count.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <numeric>

#include "tests/large_graphs/models.h"
#include "tools/cli/command_line.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/report.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/writer.h"
#include "tools/convert/run_session.h"
#include "tools/onnx/import.h"

namespace {

using librt::Result;
using librt::Status;
using librt::test::LargeModel;

constexpr std::array kStages = {"import", "optimize", "report", "write", "load", "first run"};
constexpr size_t kImport = 0, kOptimize = 1, kReport = 2, kWrite = 3, kLoad = 4, kRun = 5;
using Times = std::array<double, kStages.size()>;  ///< seconds

double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Adds the time of `work` to the stage.
template <class Work>
auto timed(Times& times, size_t stage, Work work) {
  const double start = seconds();
  auto result = work();
  times[stage] += seconds() - start;
  return result;
}

Status add_training(librt::ModelGraph& model) {
  librt::compiler::TrainOptions options;
  options.loss.loss = librt::compiler::Loss::MeanSquaredError;
  return librt::compiler::add_train_entry(model, options, nullptr);
}

/// Zeros, and 2 for each dynamic dimension.
std::vector<librt::tools::Array> inputs_of(const librt::Graph& graph) {
  std::vector<librt::tools::Array> arrays;
  for (const librt::ValueId input : graph.inputs) {
    librt::tools::Array array{.name = graph[input].name, .type = graph[input].dtype, .dims = {}, .bytes = {}};
    for (const librt::Dim& dim : graph[input].dims) array.dims.push_back(dim.is_known() ? dim.extent : 2);
    array.bytes.resize(librt::tools::byte_count(array.type, array.dims).value_or(0));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Status run_file(std::span<const std::byte> file, const librt::Graph& graph, const std::string& backend,
                Times& times) {
  std::string error;
  const auto runner =
      timed(times, kLoad, [&] { return librt::convert::Runner::open(file, backend, false, error); });
  if (runner == nullptr) return librt::internal_error(error);
  const auto inputs = inputs_of(graph);
  if (!timed(times, kRun, [&] { return runner->run(inputs, error); })) return librt::internal_error(error);
  return {};
}

/// The times of one conversion and first run. backend: empty for none.
Result<Times> measure(const LargeModel& large, int count, const std::string& backend) {
  const std::string onnx = large.make(count).SerializeAsString();
  Times times{};
  librt::onnx::ImportOptions options;
  options.untie = large.trains;
  librt::onnx::ImportReport imported;
  auto model = timed(times, kImport, [&] {
    return librt::onnx::import_onnx_bytes(std::as_bytes(std::span(onnx)), options, imported);
  });
  if (large.refused) {
    if (model.ok()) return librt::internal_error("expected a refusal, found a graph");
    return times;
  }
  if (!model.ok()) return std::move(model).status();
  const auto optimize = [&]() -> Status {
    if (large.trains) RT_TRY(add_training(*model));
    return librt::compiler::optimize(*model, {}, nullptr);
  };
  RT_TRY(timed(times, kOptimize, optimize));
  const librt::Graph& graph = model->entries[0].graph;
  const auto report =
      timed(times, kReport, [&] { return librt::compiler::report_of(graph, model->states, {}); });
  if (!report.ok()) return report.status();
  const auto file = timed(times, kWrite, [&] { return librt::compiler::serialize_model(*model); });
  if (!file.ok()) return file.status();
  if (!backend.empty() && large.runs) RT_TRY(run_file(*file, graph, backend, times));
  return times;
}

double total(const Times& times) {
  return std::accumulate(times.begin(), times.end(), 0.0);
}

/// The smallest times of several attempts: other work makes them longer, never shorter.
Result<Times> smallest(const LargeModel& large, int count, const std::string& backend, int attempts) {
  Times best;
  best.fill(1e9);
  for (int i = 0; i < attempts; ++i) {
    RT_ASSIGN(const Times times, measure(large, count, backend));
    for (size_t stage = 0; stage < times.size(); ++stage) best[stage] = std::min(best[stage], times[stage]);
  }
  return best;
}

/// From 1,000 to 16,000, n log n grows 22-fold, and caches that become too small make it up to 90; n^2 grows
/// 256-fold.
bool grows_slowly(const LargeModel& large, int count, const std::string& backend) {
  constexpr int kFactor = 16;
  constexpr double kMostGrowth = 160, kShort = 0.15;
  std::string slow;
  for (int attempts = 1; attempts <= 4; attempts += 3) {
    const auto few = smallest(large, count, backend, attempts),
               many = smallest(large, kFactor * count, backend, attempts);
    if (!few.ok() || !many.ok()) {
      std::printf("%s: %s\n", large.name.data(), (few.ok() ? many : few).status().message().c_str());
      return false;
    }
    slow.clear();
    for (size_t stage = 0; stage < kStages.size(); ++stage)
      if ((*many)[stage] > kShort && (*many)[stage] > kMostGrowth * (*few)[stage])
        librt::append(slow, librt::text(slow.empty() ? "" : ", ", kStages[stage]));
    std::printf("%-22s %7.3f s %7.3f s%s\n", large.name.data(), total(*few), total(*many),
                slow.empty() ? "" : (", grows too fast: " + slow).c_str());
    if (slow.empty()) return true;
  }
  return false;
}

bool print_row(const LargeModel& large, int count, const std::string& backend) {
  const auto times = measure(large, count, backend);
  if (!times.ok()) {
    std::printf("%s: %s\n", large.name.data(), times.status().message().c_str());
    return false;
  }
  std::printf("| `%s`: %s |", large.name.data(), large.what.data());
  for (const double time : *times) std::printf(" %.2f |", time);
  std::printf(" %.2f |\n", std::accumulate(times->begin(), times->begin() + kLoad, 0.0));
  std::fflush(stdout);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  librt::tools::CommandLine app("Converts and runs large graphs.");
  int check = 0, table = 0, write = 0;
  std::string only, output, backend;
  app.add_option("--check", check, "N: compare the times of N and 16 N nodes");
  app.add_option("--table", table, "N: a table of the times at N nodes");
  app.add_option("--write", write, "N: write a model of N nodes to --output");
  app.add_option("--model", only, "only this model");
  app.add_option("--output,-o", output, "an ONNX file");
  app.add_option("--backend", backend, "also load the file and run it once");
  if (const auto code = app.parse(argc, argv)) return *code;
  bool fine = true, found = false;
  if (table > 0) {
    std::printf("| %d nodes |", table);
    for (const char* stage : kStages) std::printf(" %s |", stage);
    std::printf(" conversion |\n|---|---|---|---|---|---|---|---|\n");
  }
  for (const LargeModel& large : librt::test::large_models()) {
    if (!only.empty() && large.name != only) continue;
    found = true;
    if (write > 0) std::ofstream(output, std::ios::binary) << large.make(write).SerializeAsString();
    if (table > 0) fine = print_row(large, table, backend) && fine;
    if (check > 0) fine = grows_slowly(large, check, backend) && fine;
  }
  if (!found) std::printf("there is no model '%s'\n", only.c_str());
  return fine && found ? 0 : 1;
}
