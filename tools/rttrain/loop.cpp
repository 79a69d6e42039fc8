#include "tools/rttrain/loop.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

namespace rt::train {

volatile std::sig_atomic_t g_stop = 0;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a validation run measured: accuracy for class labels, mean squared error otherwise.
struct Measure {
  const char* name = "accuracy";
  double value = 0;
};

// Where a run stands; all that is needed, with the states, to continue it bit for bit.
struct Position {
  uint64_t epoch = 0;  ///< epochs finished
  uint64_t batch = 0;  ///< batches done of the epoch in progress
  uint64_t step = 0;   ///< steps since the beginning
};

class Loop {
 public:
  Loop(rt::Trainer& trainer, const Dataset& training, const Dataset* validation, const LoopOptions& options)
      : trainer_(trainer), training_(training), validation_(validation), options_(options) {}

  rt::Status run() {
    if (rt::Status status = trainer_.set_learning_rate(options_.learning_rate); !status) return status;
    if (options_.resume)
      if (rt::Status status = load(); !status) return status;
    if (validation_ != nullptr) {
      auto session = trainer_.open("infer");
      if (!session) return session.status();
      infer_.emplace(std::move(*session));
    }
    while (position_.epoch < options_.epochs && !g_stop)
      if (rt::Status status = epoch(); !status) return status;
    if (g_stop) {
      if (options_.checkpoint.empty()) {
        std::fprintf(stderr, "rttrain: stopped after step %lu; nothing saved (no --checkpoint)\n",
                     static_cast<unsigned long>(position_.step));
        return {};
      }
      if (rt::Status status = save(); !status) return status;
      std::fprintf(stderr, "rttrain: stopped after step %lu; continue with --resume\n",
                   static_cast<unsigned long>(position_.step));
    }
    return {};
  }

 private:
  rt::Status epoch() {
    const auto order = epoch_order(training_.size(), options_.seed, position_.epoch, options_.shuffle);
    const size_t batches = options_.drop_last ? order.size() / options_.batch
                                              : (order.size() + options_.batch - 1) / options_.batch;
    if (batches == 0)
      return {rt::Code::InvalidArgument, "the batch size " + std::to_string(options_.batch) +
                                             " exceeds the number of samples, " +
                                             std::to_string(order.size())};
    const Clock::time_point start = Clock::now();
    double loss_sum = 0;
    size_t seen = 0;
    for (; position_.batch < batches && !g_stop; ++position_.batch, ++position_.step) {
      const size_t first = position_.batch * options_.batch;
      const size_t count = std::min(options_.batch, order.size() - first);
      for (const Column& column : training_.columns()) {
        const rt::Tensor tensor = training_.batch(column, order, first, count);
        if (rt::Status status = trainer_.session().set_input(column.input, tensor); !status) return status;
      }
      const auto loss = trainer_.step();
      if (!loss) return loss.status();
      if (!std::isfinite(*loss))
        return {rt::Code::InvalidArgument, "the loss is not finite after step " +
                                               std::to_string(position_.step + 1) +
                                               "; lower --lr, or check the data for NaN"};
      loss_sum += static_cast<double>(*loss) * static_cast<double>(count);
      seen += count;
      if (options_.progress) show_progress(start, batches, loss_sum / static_cast<double>(seen), seen);
    }
    if (options_.progress) std::fprintf(stderr, "\r\033[K");
    if (position_.batch < batches) return {};  // stopped by a signal
    const double seconds = seconds_since(start);
    position_.batch = 0;
    ++position_.epoch;
    Measure measure;
    if (validation_ != nullptr)
      if (rt::Status status = validate(measure); !status) return status;
    report(loss_sum / static_cast<double>(std::max<size_t>(seen, 1)), static_cast<double>(seen) / seconds,
           measure);
    return options_.checkpoint.empty() ? rt::Status() : save();
  }

  void show_progress(Clock::time_point start, size_t batches, double loss, size_t seen) {
    const double elapsed = seconds_since(start);
    if (elapsed - last_shown_ < 0.2 && last_shown_ <= elapsed) return;
    last_shown_ = elapsed;
    const double done = static_cast<double>(position_.batch + 1) / static_cast<double>(batches);
    std::fprintf(stderr,
                 "\r\033[Kepoch %lu/%lu  %3.0f %%  loss %.4f  %.0f samples/s  %.0f s left in this epoch",
                 static_cast<unsigned long>(position_.epoch + 1), static_cast<unsigned long>(options_.epochs),
                 100 * done, loss, static_cast<double>(seen) / elapsed, elapsed / done * (1 - done));
  }

  void report(double loss, double rate, const Measure& measure) const {
    if (options_.json) {
      nlohmann::ordered_json line = {{"epoch", position_.epoch}, {"step", position_.step}, {"loss", loss}};
      if (validation_ != nullptr) line[std::string("validation_") + measure.name] = measure.value;
      line["samples_per_second"] = rate;
      std::printf("%s\n", line.dump().c_str());
    } else {
      std::printf("epoch %lu/%lu  loss %.6f", static_cast<unsigned long>(position_.epoch),
                  static_cast<unsigned long>(options_.epochs), loss);
      if (validation_ != nullptr) std::printf("  validation %s %.6f", measure.name, measure.value);
      std::printf("  %.0f samples/s\n", rate);
    }
    std::fflush(stdout);
  }

  rt::Status validate(Measure& measure) {
    const Column* labels = validation_->column("labels");
    const Column* target = labels != nullptr ? labels : validation_->column("target");
    std::vector<uint32_t> order(validation_->size());
    std::iota(order.begin(), order.end(), 0u);
    double sum = 0;
    size_t count_of = 0;
    for (size_t first = 0; first < order.size(); first += options_.batch) {
      const size_t count = std::min(options_.batch, order.size() - first);
      for (const Column& column : validation_->columns()) {
        if (&column == target) continue;
        if (rt::Status status =
                infer_->set_input(column.input, validation_->batch(column, order, first, count));
            !status)
          return status;
      }
      if (rt::Status status = infer_->run(); !status) return status;
      auto output = infer_->output(0);
      if (!output) return output.status();
      const auto values = output->values<float>();
      const rt::Tensor expected = validation_->batch(*target, order, first, count);
      if (labels != nullptr) {
        const size_t classes = values.size() / count;
        for (size_t i = 0; i < count; ++i) {
          const auto row = values.subspan(i * classes, classes);
          const auto best = std::max_element(row.begin(), row.end()) - row.begin();
          sum += best == expected.values<int64_t>()[i];
        }
        count_of += count;
      } else {
        const auto wanted = expected.values<float>();
        for (size_t i = 0; i < wanted.size(); ++i)
          sum += static_cast<double>((values[i] - wanted[i]) * (values[i] - wanted[i]));
        count_of += wanted.size();
      }
    }
    measure = {labels != nullptr ? "accuracy" : "mse",
               sum / static_cast<double>(std::max<size_t>(count_of, 1))};
    return {};
  }

  rt::Status save() {
    return trainer_.session().save_checkpoint(options_.checkpoint,
                                              {{"rttrain.epoch", std::to_string(position_.epoch)},
                                               {"rttrain.batch", std::to_string(position_.batch)},
                                               {"rttrain.step", std::to_string(position_.step)},
                                               {"rttrain.batch_size", std::to_string(options_.batch)},
                                               {"rttrain.seed", std::to_string(options_.seed)}});
  }

  rt::Status load() {
    rt::Session& session = trainer_.session();
    if (rt::Status status = session.load_checkpoint(options_.checkpoint); !status) return status;
    uint64_t batch_size = options_.batch, seed = options_.seed;
    struct Field {
      const char* key;
      uint64_t* value;
    };
    const Field fields[] = {{"rttrain.epoch", &position_.epoch},
                            {"rttrain.batch", &position_.batch},
                            {"rttrain.step", &position_.step},
                            {"rttrain.batch_size", &batch_size},
                            {"rttrain.seed", &seed}};
    for (const Field& field : fields) {
      const auto text = session.checkpoint_value(field.key);
      if (!text || std::from_chars(text->data(), text->data() + text->size(), *field.value).ptr !=
                       text->data() + text->size())
        return {rt::Code::InvalidArgument,
                options_.checkpoint + ": has no " + field.key + "; it was not written by rttrain"};
    }
    if (batch_size != options_.batch || seed != options_.seed)
      return {rt::Code::InvalidArgument, options_.checkpoint + ": was written with --batch " +
                                             std::to_string(batch_size) + " --seed " + std::to_string(seed) +
                                             "; continue with the same, or the batches would differ"};
    return {};
  }

  rt::Trainer& trainer_;
  const Dataset& training_;
  const Dataset* validation_;
  const LoopOptions& options_;
  std::optional<rt::Session> infer_;
  Position position_;
  double last_shown_ = 0;
};

}  // namespace

rt::Status run_training(rt::Trainer& trainer, const Dataset& training, const Dataset* validation,
                        const LoopOptions& options) {
  return Loop(trainer, training, validation, options).run();
}

}  // namespace rt::train
