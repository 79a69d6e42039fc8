#include "tools/rttrain/device_loss.h"

#include <chrono>
#include <cstdio>
#include <thread>

namespace rt::train {
namespace {

constexpr auto kBetweenTries = std::chrono::seconds(1);

bool is_loss(const rt::Status& status) {
  return status.code() == rt::Code::DeviceLost;
}

/// Tries until a session can be made, or a signal ends it.
rt::Result<rt::Trainer> wait_for_device(const rt::Model& model, const rt::SessionOptions& options) {
  std::fprintf(stderr, "rttrain: waits until '%s' can be used again\n", options.backend.c_str());
  for (;;) {
    auto trainer = rt::Trainer::create(model, options);
    const bool try_again =
        !trainer && (trainer.status().code() == rt::Code::Device || is_loss(trainer.status()));
    if (!try_again || g_stop != 0) return trainer;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace

rt::Result<Outcome> train_through_device_loss(const rt::Model& model, rt::SessionOptions options, bool resume,
                                              OnDeviceLost on_loss, const TrainOn& train) {
  std::optional<uint64_t> saved_step;
  auto trainer = rt::Trainer::create(model, options);
  for (bool is_first = true;; is_first = false) {
    if (!trainer) return trainer.status();
    options.backend = trainer->session().device().backend;  // of "auto"
    options.prefer.clear();
    const std::optional<uint64_t> saved_before = saved_step;
    rt::Result<Outcome> outcome = train(*trainer, options, resume, saved_step);
    if (outcome || !is_loss(outcome.status()) || on_loss == OnDeviceLost::Stop) return outcome;
    if (!is_first && saved_step == saved_before) return outcome;  // lost again, without progress
    if (on_loss == OnDeviceLost::Wait && options.backend == "cuda")
      return rt::Status(rt::Code::DeviceLost,
                        outcome.status().message() + "; continue with rttrain --resume, in a new process");
    resume = saved_step.has_value();
    const std::string from = resume ? "step " + std::to_string(*saved_step) : std::string("the start");
    std::fprintf(stderr, "rttrain: %s\nrttrain: goes on from %s\n", outcome.status().message().c_str(),
                 from.c_str());
    trainer = rt::Status(rt::Code::DeviceLost, "");  // the lost session is freed before the next one is made
    if (on_loss == OnDeviceLost::Cpu) {
      options.backend = "cpu";
      options.device.clear();
      trainer = rt::Trainer::create(model, options);
    } else {
      trainer = wait_for_device(model, options);
    }
  }
}

}  // namespace rt::train
