// rttrain: fine-tunes a model that was compiled with `rtconvert --train`.
//
// Knows: the command line. The loop is in loop.cpp, data in dataset.cpp; librt is used through its public
// headers.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "tools/common/exit_code.h"
#include "tools/common/openmp_wait.h"
#include "tools/rttrain/loop.h"

namespace {

void stop(int) {
  rt::train::g_stop = 1;
}

void stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second Ctrl-C ends the program at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// The inputs of train_step that come from data.
std::vector<rt::TensorSpec> data_inputs(const rt::Model& model) {
  std::vector<rt::TensorSpec> inputs = model.inputs("train_step");
  std::erase_if(inputs, [](const rt::TensorSpec& input) { return input.name == "learning_rate"; });
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  rt::tools::spin_briefly();
  using namespace rt::tools;
  CLI::App app(
      "Fine-tunes a model compiled with `rtconvert MODEL.onnx -o MODEL.rt --train`.\n"
      "The weights after training are in the checkpoint; `rtconvert MODEL.rt --checkpoint FILE -o NEW.rt` "
      "puts them into a model.");
  app.footer(kExitCodeHelp);
  std::string model_path, data_path, validation_path;
  double scale = 1;
  rt::SessionOptions session;
  rt::train::LoopOptions loop;
  bool no_shuffle = false;
  app.add_option("model", model_path, "Compiled model (.rt) with the entry train_step")->required();
  app.add_option("--data", data_path,
                 "Training data (.npz): one array for each input, first axis counts samples")
      ->required();
  app.add_option("--validate", validation_path, "Validation data (.npz), measured after each epoch");
  app.add_option("--epochs", loop.epochs, "Passes over the training data")->capture_default_str();
  app.add_option("--batch", loop.batch, "Samples in a step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lr", loop.learning_rate, "Learning rate")->capture_default_str();
  app.add_option("--scale", scale, "Factor for float inputs, for example 0.00392157 for bytes");
  app.add_option("--backend", session.backend, "cpu, vulkan, cuda, reference or auto")->capture_default_str();
  app.add_option("--device", session.device, "Device of the backend: index, part of its name, or UUID");
  app.add_option("--threads", session.threads, "CPU threads; 0: all this process may use");
  app.add_option("--checkpoint", loop.checkpoint, "Written after each epoch, and on Ctrl-C or SIGTERM");
  app.add_flag("--resume", loop.resume, "Continue from --checkpoint")->needs("--checkpoint");
  app.add_option("--seed", loop.seed, "Order of the samples")->capture_default_str();
  app.add_flag("--no-shuffle", no_shuffle, "Take the samples in file order");
  app.add_flag("--drop-last", loop.drop_last, "Leave out the last, smaller batch of an epoch");
  app.add_flag("--deterministic", session.deterministic, "Equal results from run to run");
  app.add_flag("--json", loop.json, "One JSON object for each epoch");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kFine : kBadInput;
  }
  loop.shuffle = !no_shuffle;
  loop.progress = isatty(STDERR_FILENO) != 0;

  const auto model = rt::Model::load(model_path);
  if (!model) return report_failure("rttrain", model.status());
  const std::vector<rt::TensorSpec> inputs = data_inputs(*model);
  if (inputs.empty()) {
    std::fprintf(stderr, "rttrain: %s has no entry train_step; compile it with rtconvert --train\n",
                 model_path.c_str());
    return kBadInput;
  }
  const auto training = rt::train::Dataset::load(data_path, inputs, scale);
  if (!training) return report_failure("rttrain", training.status());
  std::optional<rt::train::Dataset> validation;
  if (!validation_path.empty()) {
    auto loaded = rt::train::Dataset::load(validation_path, inputs, scale);
    if (!loaded) return report_failure("rttrain", loaded.status());
    validation = std::move(*loaded);
  }
  auto trainer = rt::Trainer::create(*model, session);
  if (!trainer) return report_failure("rttrain", trainer.status());
  const rt::DeviceInfo device = trainer->session().device();
  std::fprintf(stderr, "rttrain: %zu samples on %s (%s)\n", training->size(), device.backend.c_str(),
               device.name.c_str());
  stop_on_signals();
  const rt::Status status =
      rt::train::run_training(*trainer, *training, validation ? &*validation : nullptr, loop);
  return status ? kFine : report_failure("rttrain", status);
}
