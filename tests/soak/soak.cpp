// Mixed load for a long time, through the public API: a session that serves changing shapes, sessions that
// come and go, and a training that saves, frees and resumes, for each backend, each in a thread of its own.
// One line per interval: memory, descriptors and threads of the process, runs and their latency. Outputs are
// compared with those of the first run of the shape. Started by tools/dev/soak, which makes the models.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "rt/rt.hpp"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/program.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::vector<std::string> models;
  std::string training, folder = ".";
  std::vector<std::string> backends = {"cpu"};
  double seconds = 60, interval = 0;
  int64_t largest_batch = 8;
};

/// Runs of one kind of work since the last line.
class Counter {
 public:
  void add(double seconds) {
    const std::lock_guard lock(mutex_);
    seconds_.push_back(seconds);
  }
  std::vector<double> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(seconds_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<double> seconds_;
};

enum Kind : size_t { kServe, kVisit, kTrain, kKinds };
constexpr std::array<const char*, kKinds> kKindNames = {"serving", "visiting", "training"};

std::atomic<bool> g_stop = false;
std::atomic<int> g_failures = 0;
std::array<Counter, kKinds> g_counters;

void report(const std::string& where, const rt::Status& status) {
  std::fprintf(stderr, "soak: %s: %s\n", where.c_str(), status.message().c_str());
  ++g_failures;
}

/// Seeded by the batch: the same values at each call. Integers are class numbers.
rt::Tensor input_for(const rt::TensorSpec& spec, int64_t batch) {
  std::vector<int64_t> dims;
  for (const rt::Dim& dim : spec.dims) dims.push_back(dim.extent >= 0 ? dim.extent : batch);
  rt::Tensor tensor(spec.dtype, dims);
  std::mt19937 random(static_cast<unsigned>(batch));
  for (float& value : spec.dtype == rt::DType::F32 ? tensor.values<float>() : std::span<float>())
    value = std::uniform_real_distribution<float>(-1, 1)(random);
  for (int64_t& value : spec.dtype == rt::DType::I64 ? tensor.values<int64_t>() : std::span<int64_t>())
    value = std::uniform_int_distribution<int64_t>(0, 9)(random);
  return tensor;
}

rt::Status set_inputs(rt::Session& session, int64_t batch) {
  const auto specs = session.inputs();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name == "learning_rate") continue;
    if (rt::Status status = session.set_input(i, input_for(specs[i], batch)); !status) return status;
  }
  return {};
}

/// First outputs by batch, to compare later ones with.
class Outputs {
 public:
  rt::Status check(rt::Session& session, int64_t batch) {
    const auto output = session.output(0);
    if (!output) return output.status();
    const auto values = output->values<float>();
    auto& first = first_[batch];
    if (first.empty()) first.assign(values.begin(), values.end());
    bool equal = first.size() == values.size();
    for (size_t i = 0; equal && i < first.size(); ++i)
      equal = std::abs(first[i] - values[i]) <= 1e-3f + 1e-3f * std::abs(first[i]);
    return equal ? rt::Status()
                 : rt::Status(rt::Code::Internal,
                              "batch " + std::to_string(batch) + ": other outputs than in the first run");
  }

 private:
  std::map<int64_t, std::vector<float>> first_;
};

rt::Status run_once(rt::Session& session, int64_t batch, Outputs& outputs, Kind kind) {
  if (rt::Status status = set_inputs(session, batch); !status) return status;
  const auto start = Clock::now();
  if (rt::Status status = session.run(); !status) return status;
  g_counters[kind].add(std::chrono::duration<double>(Clock::now() - start).count());
  return outputs.check(session, batch);
}

struct Work {
  const Settings& settings;
  std::string backend;

  int64_t batch(std::mt19937& random) const {
    return std::uniform_int_distribution<int64_t>(1, settings.largest_batch)(random);
  }

  rt::Status serve(const std::string& path) const {
    const auto model = rt::Model::load(path);
    if (!model) return model.status();
    auto session = rt::Session::create(*model, {.backend = backend});
    if (!session) return session.status();
    std::mt19937 random(1);
    Outputs outputs;
    while (!g_stop)
      if (rt::Status status = run_once(*session, batch(random), outputs, kServe); !status) return status;
    return {};
  }

  rt::Status visit() const {
    std::mt19937 random(2);
    std::map<std::string, Outputs> outputs;
    for (size_t turn = 0; !g_stop; ++turn) {
      const std::string& path = settings.models[turn % settings.models.size()];
      const auto model = rt::Model::load(path);
      if (!model) return model.status();
      auto session = rt::Session::create(*model, {.backend = backend});
      if (!session) return session.status();
      for (int run = 0; run < 3; ++run)
        if (rt::Status status = run_once(*session, batch(random), outputs[path], kVisit); !status)
          return status;
    }
    return {};
  }

  /// A few steps, a checkpoint, and a new trainer that goes on from it.
  rt::Status train() const {
    const auto model = rt::Model::load(settings.training);
    if (!model) return model.status();
    const std::string checkpoint = settings.folder + "/soak-" + backend + ".ckpt";
    for (bool begun = false; !g_stop; begun = true) {
      auto trainer = rt::Trainer::create(*model, {.backend = backend});
      if (!trainer) return trainer.status();
      if (begun)
        if (rt::Status status = trainer->session().load_checkpoint(checkpoint); !status) return status;
      if (rt::Status status = trainer->set_learning_rate(1e-4f); !status) return status;
      for (int step = 0; step < 20 && !g_stop; ++step) {
        if (rt::Status status = set_inputs(trainer->session(), 1 + step % settings.largest_batch); !status)
          return status;
        const auto start = Clock::now();
        const auto loss = trainer->step();
        if (!loss) return loss.status();
        if (!std::isfinite(*loss)) return rt::Status(rt::Code::Internal, "the loss is not finite");
        g_counters[kTrain].add(std::chrono::duration<double>(Clock::now() - start).count());
      }
      if (rt::Status status = trainer->session().save_checkpoint(checkpoint); !status) return status;
    }
    std::remove(checkpoint.c_str());
    return {};
  }
};

struct Sample {
  double seconds = 0, resident_mib = 0;
  size_t descriptors = 0, threads = 0;
};

size_t entries_of(const char* folder) {
  size_t count = 0;
  if (DIR* directory = opendir(folder); directory != nullptr) {
    while (readdir(directory) != nullptr) ++count;
    closedir(directory);
  }
  return count - std::min<size_t>(count, 2);
}

Sample sample(double seconds) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return {seconds, static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20),
          entries_of("/proc/self/fd"), entries_of("/proc/self/task")};
}

double quantile(std::vector<double>& sorted, double share) {
  return sorted.empty() ? std::nan("")
                        : sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

void print(const Sample& now) {
  std::printf("%8.0f %10.1f %6zu %7zu", now.seconds, now.resident_mib, now.descriptors, now.threads);
  for (Counter& counter : g_counters) {
    auto seconds = counter.take();
    std::sort(seconds.begin(), seconds.end());
    std::printf("  %8zu %8.3f %8.3f", seconds.size(), 1e3 * quantile(seconds, 0.5),
                1e3 * quantile(seconds, 0.99));
  }
  std::printf("\n");
  std::fflush(stdout);
}

/// Growth of the last third's mean over the middle third's; the first third is warm-up.
bool has_grown(const std::vector<Sample>& samples) {
  const size_t third = samples.size() / 3;
  if (third == 0) return false;
  const auto mean = [&](size_t first, const auto& value) {
    double sum = 0;
    for (size_t i = first; i < first + third; ++i) sum += value(samples[i]);
    return sum / static_cast<double>(third);
  };
  const size_t middle = samples.size() - 2 * third, last = samples.size() - third;
  const auto resident = [](const Sample& s) { return s.resident_mib; };
  const auto descriptors = [](const Sample& s) { return static_cast<double>(s.descriptors); };
  const double before = mean(middle, resident), after = mean(last, resident);
  const double more = mean(last, descriptors) - mean(middle, descriptors);
  std::printf("resident memory: %.1f MiB in the middle third, %.1f MiB in the last; descriptors: %+.1f\n",
              before, after, more);
  return after > before * 1.02 + 4 || more > 2;
}

int soak(const Settings& settings) {
  std::vector<std::jthread> threads;
  const auto start_thread = [&](const std::string& name, auto work) {
    threads.emplace_back([name, work] {
      if (const rt::Status status = work(); !status) report(name, status);
    });
  };
  for (const std::string& backend : settings.backends) {
    const Work work{settings, backend};
    start_thread("serving on " + backend, [=] { return work.serve(settings.models.front()); });
    start_thread("visiting " + backend, [=] { return work.visit(); });
    if (!settings.training.empty()) start_thread("training on " + backend, [=] { return work.train(); });
  }
  std::printf("%8s %10s %6s %7s", "seconds", "MiB", "files", "threads");
  for (const char* kind : kKindNames) std::printf("  %8s %8s %8s", kind, "p50 ms", "p99 ms");
  std::printf("\n");
  std::vector<Sample> samples;
  const auto start = Clock::now();
  const auto interval =
      std::chrono::duration<double>(settings.interval > 0 ? settings.interval : settings.seconds / 60);
  double elapsed = 0;
  while (elapsed < settings.seconds && g_failures == 0) {
    std::this_thread::sleep_for(interval);
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    samples.push_back(sample(elapsed));
    print(samples.back());
  }
  g_stop = true;
  threads.clear();
  const bool grown = has_grown(samples);
  if (grown) std::fprintf(stderr, "soak: memory or descriptors have grown\n");
  return g_failures > 0 || grown ? librt::tools::kDifferent : librt::tools::kFine;
}

int command_line(int argc, char** argv) {
  Settings settings;
  librt::tools::CommandLine app("Runs mixed load for a long time and prints what the process takes.");
  app.add_option("models", settings.models, "Compiled models; the first one is served")->required();
  app.add_option("--training", settings.training, "Model with the entry train_step");
  app.add_option("--folder", settings.folder, "For checkpoints")->capture_default_str();
  app.add_option("--backend", settings.backends, "Backends, all at once")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "How long")
      ->check(librt::tools::positive())
      ->capture_default_str();
  app.add_option("--interval", settings.interval, "Seconds between two lines; default: a 60th of --seconds")
      ->check(librt::tools::positive());
  app.add_option("--largest-batch", settings.largest_batch, "Batches are 1 to this")
      ->check(librt::tools::positive())
      ->capture_default_str();
  app.set_up_help({.program = "soak",
                   .examples = {"soak net.rt other.rt --training train.rt --seconds 3600"},
                   .notes = {"Exit code 1: an error, other outputs than in the first run, or growth."}});
  if (const auto code = app.parse(argc, argv)) return *code;
  return soak(settings);
}

}  // namespace

int main(int argc, char** argv) {
  return librt::tools::run_program("soak", argc, argv, command_line);
}
