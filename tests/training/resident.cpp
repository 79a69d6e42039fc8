// resident MODEL.rt BACKEND BUDGET: a few steps of a model compiled with rtconvert --memory, and the memory
// use that the system reports. On the CPU neither resident memory nor heap may grow by more than planned.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "tools/rttrain/budget.h"

namespace {

/// oneDNN's generated kernel code, plans, the heaps of its threads: the same for every batch.
constexpr uint64_t kSlack = 12u << 20;

struct Used {
  uint64_t heap = 0, resident = 0;
};

/// Anonymous memory: mapped files are excluded.
Used used() {
  malloc_trim(0);
  const struct mallinfo2 heap = mallinfo2();
  Used now{.heap = heap.uordblks + heap.hblkhd};
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("RssAnon:")) now.resident = std::stoull(line.substr(8)) << 10;
  return now;
}

int failed(const rt::Status& status) {
  std::printf("FAILED: %s\n", status.message().c_str());
  return 1;
}

std::vector<rt::train::Column> columns_of(const rt::Model& model) {
  std::vector<rt::train::Column> columns;
  for (const rt::TensorSpec& input : model.inputs("train_step")) {
    if (input.dims.empty()) continue;
    rt::train::Column column{.input = input.name, .dtype = input.dtype};
    for (size_t i = 1; i < input.dims.size(); ++i) column.dims.push_back(input.dims[i].extent);
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto model = rt::Model::load(argv[1]);
  if (!model) return failed(model.status());
  const auto number = [&](const char* key) { return std::stoull(model->metadata(key).value_or("0")); };
  const uint64_t batch = number("train.batch"), micro = number("train.micro_batch"),
                 planned = std::stoull(argv[3]);
  const std::vector<rt::train::Column> columns = columns_of(*model);
  rt::SessionOptions options{.backend = argv[2], .memory_limit = number("train.memory")};
  // Excludes the device, its threads and libraries from the measurement.
  const auto warm = rt::Session::create(*model, {.backend = argv[2], .entry = "infer"});
  if (!warm) return failed(warm.status());
  const Used before = used();

  auto trainer = rt::Trainer::create(*model, options);
  if (!trainer) return failed(trainer.status());
  rt::train::Budget budget(*model, *trainer, options, options.memory_limit);
  std::vector<rt::Session> sessions;
  std::vector<std::string> entries = {"infer"};
  if (micro < batch) entries = {"accumulate", "update", "infer"};
  if (micro == batch)
    if (rt::Status status = budget.prepare("train_step", trainer->session(), columns, micro); !status)
      return failed(status);
  for (const std::string& entry : entries) {
    auto session = budget.open(entry);
    if (!session) return failed(session.status());
    sessions.push_back(std::move(*session));
    if (rt::Status status = budget.prepare(entry, sessions.back(), columns, micro); !status)
      return failed(status);
  }
  for (int step = 0; step < 3; ++step) {
    if (micro == batch)
      if (auto loss = trainer->step(); !loss) return failed(loss.status());
    for (rt::Session& session : sessions)
      if (rt::Status status = session.run(); !status) return failed(status);
  }
  const Used after = used();
  const uint64_t heap = after.heap - before.heap, resident = after.resident - before.resident;
  std::printf("planned %lu, taken %lu, heap %lu, resident %lu bytes\n", static_cast<unsigned long>(planned),
              static_cast<unsigned long>(budget.used()), static_cast<unsigned long>(heap),
              static_cast<unsigned long>(resident));
  if (budget.used() != planned) return 1;
  if (std::string_view(argv[2]) != "cpu") return 0;
  // Much less would mean that the wrong quantity is measured.
  return heap <= planned + kSlack && resident <= planned + kSlack && resident >= planned / 2 ? 0 : 1;
}
