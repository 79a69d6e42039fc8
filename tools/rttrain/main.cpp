// rttrain: fine-tunes a model that was compiled with `rtconvert --train`.
//
// Knows: the order in which command line, model, data and loop are put together. librt is used through its
// public headers.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/cli/cache_folder.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/onnx_model.h"
#include "tools/cli/program.h"
#include "tools/data/array.h"
#include "tools/data/public_status.h"
#include "tools/rttrain/device_loss.h"
#include "tools/rttrain/fixed_batch.h"
#include "tools/rttrain/lock.h"
#include "tools/rttrain/loop.h"
#include "tools/rttrain/model_facts.h"
#include "tools/rttrain/options.h"
#include "tools/rttrain/steps.h"

namespace {

using rt::train::bad_data;
using rt::train::Options;

// Facts about the data that a user of the trained model needs.
std::vector<std::pair<std::string, std::string>> notes_of(const rt::train::DataFacts& facts) {
  std::vector<std::pair<std::string, std::string>> notes;
  const auto add = [&](const char* key, const auto& list) {
    // Names of folders and columns may be invalid UTF-8, which JSON requires.
    if (!list.empty())
      notes.emplace_back(key,
                         nlohmann::json(list).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  add("data.classes", facts.classes);
  add("data.features", facts.features);
  add("data.mean", facts.mean);
  add("data.deviation", facts.deviation);
  return notes;
}

void stop(int) {
  rt::train::g_stop = 1;
}

void stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second Ctrl-C ends the program at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Of a terminal that closes; the shell and the system may both send it. Under nohup it stays ignored.
  action.sa_flags = 0;
  struct sigaction before = {};
  if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
}

// Values chosen by rtconvert --memory, unless the command line overrides them.
rt::Status read_plan(const rt::Model& model, size_t ranks, Options& options) {
  rt::Status problem;
  const auto read = [&](const char* key, const librt::tools::Option* option, auto& value) {
    const auto text = model.metadata(key);
    if (!text || option->count() > 0) return;
    const char* const end = text->data() + text->size();
    if (const auto [last, code] = std::from_chars(text->data(), end, value);
        code != std::errc() || last != end)
      problem = bad_data(options.model + ": metadata " + key + ": expected a number, found " +
                         librt::tools::in_quotes(*text));
  };
  read("train.memory", options.memory, options.session.memory_limit);
  read("train.batch", options.batch, options.loop.batch);
  read("train.micro_batch", options.micro_batch, options.loop.micro_batch);
  if (options.loop.batch == 0)
    problem = bad_data(options.model + ": metadata train.batch: expected a number above 0, found 0");
  if (!problem) return problem;
  rt::train::LoopOptions& loop = options.loop;
  if (options.micro_batch->count() > 0 || loop.micro_batch == 0) return {};
  // --batch may be another one than that of the plan.
  if (loop.micro_batch >= loop.batch)
    loop.micro_batch = 0;
  else if (loop.batch % ranks == 0)
    loop.micro_batch = rt::train::equal_part(loop.batch / ranks, loop.micro_batch);
  return {};
}

// --lr, or the default of the model's optimizer.
rt::Status choose_learning_rate(const rt::Model& model, bool is_first, Options& options) {
  if (options.learning_rate->count() > 0) return {};
  const std::string optimizer = model.metadata("train.optimizer").value_or("");
  const auto rate = rt::train::default_learning_rate(optimizer);
  if (!rate)
    return bad_data(options.model + " does not say a known optimizer ('" + optimizer +
                    "'), and so there is no default learning rate; set --lr");
  options.loop.learning_rate = *rate;
  if (is_first)
    std::fprintf(stderr, "rttrain: learning rate %g, the default for %s; --lr sets another\n",
                 static_cast<double>(*rate), optimizer.c_str());
  return {};
}

// What carries the all-reduce of the gradients; empty for one rank.
std::string together_text(size_t ranks, const rt::Session& session) {
  if (ranks == 1) return {};
  const auto [carrier, reason] = session.collectives();
  std::string out = ", " + std::to_string(ranks) + " ranks over " + (carrier.empty() ? "MPI" : carrier);
  if (carrier.empty() && session.device().backend != "cpu") out += ", by way of host memory";
  return reason.empty() ? out : out + " (" + reason + ")";
}

// Unequal parts: what would be wrong with them is refused.
rt::Status check_share(const rt::train::Ranks& ranks, const Options& options) {
  const rt::train::LoopOptions& loop = options.loop;
  if (loop.share.is_equal()) return {};
  if (!loop.share.weights.empty() && loop.share.weights.size() != ranks.count())
    return bad_data("--share " + options.share + ": expected a number for each of " +
                    std::to_string(ranks.count()) + " processes, found " +
                    std::to_string(loop.share.weights.size()));
  if (loop.micro_batch > 0)
    return bad_data(
        "--share " + options.share +
        ": micro-batches have one size on all ranks, so that parts are equal; leave out --micro-batch, "
        "or take --share equal");
  if (loop.share.is_measured && options.session.memory_limit > 0)
    return bad_data(
        "--share auto measures with a session of its own, for which --memory has no room; give a number "
        "for each process, such as --share 3,1");
  return {};
}

// Sessions without a communicator cannot know that the ranks of a machine share its GPUs.
rt::Status choose_gpu(const rt::train::Ranks& ranks, Options& options) {
  if (ranks.count() == 1) return {};
  std::array<char, 256> own{};
  gethostname(own.data(), own.size() - 1);
  const auto machines = ranks.gather(own.data());
  if (!machines) return machines.status();
  if (options.session.backend != "cuda" || !options.session.device.empty()) return {};
  const auto all = rt::Devices::list();
  if (!all) return all.status();
  const auto gpus = std::count_if(all->devices.begin(), all->devices.end(),
                                  [](const rt::DeviceInfo& device) { return device.backend == "cuda"; });
  const auto before = std::count(machines->begin(),
                                 machines->begin() + static_cast<std::ptrdiff_t>(ranks.rank()), own.data());
  if (gpus > 0) options.session.device = std::to_string(before % gpus);
  return {};
}

// With --deterministic: sums in an order that does not depend on the number of ranks, or why that is not
// possible. A sharded model has one number of ranks.
rt::Status choose_order(const rt::Model& model, const rt::train::Ranks& ranks, Options& options) {
  using namespace rt::train;
  if (options.deterministic != "ranks" || options.loop.sharded) return {};
  std::string problem = order_problem(model, options.micro_batch->count() > 0 ? options.loop.micro_batch : 0);
  if (problem.empty() && ranks.count() > 1 && options.session.threads == 0)
    problem = "on the CPU the order of sums follows from the number of threads, too; give --threads";
  if (!problem.empty() && ranks.count() > 1)
    return bad_data("--deterministic: results that are equal for any number of ranks are not possible: " +
                    problem + "; or --deterministic=run, for results that are equal on " +
                    std::to_string(ranks.count()) + " ranks");
  if (!problem.empty()) return {};
  options.loop.ordered_sums = true;
  options.loop.gradients = gradient_states(model.states());
  options.session.communicator = nullptr;
  return {};
}

// What all ranks must have in common, as read and chosen.
rt::Status compare_ranks(rt::train::Ranks& ranks, const Options& options, const rt::train::Source& training,
                         const rt::train::Source* validation) {
  using namespace rt::train;
  if (ranks.count() == 1) return {};
  Facts facts = options.facts;
  const auto add_file = [&](const char* name, const std::string& path) {
    const auto digest = librt::tools::digest_of_file(path);
    if (digest) set_fact(facts, name, *digest);
    return as_public(digest.status());
  };
  const auto add_samples = [&](const std::string& name, const Source& source) {
    set_fact(facts, "number of " + name, std::to_string(source.size()));
    set_fact(facts, "content of " + name, source.digest().text());
  };
  set_fact(facts, "version of librt", rt_version());
  set_fact(facts, "--batch", std::to_string(options.loop.batch));
  set_fact(facts, "--micro-batch", std::to_string(options.loop.micro_batch));
  set_fact(facts, "--lr", number_text(options.loop.learning_rate));
  if (rt::Status status = add_file("content of the model", options.model); !status) return status;
  if (options.loop.resume)
    if (rt::Status status = add_file("content of --checkpoint", options.loop.checkpoint); !status)
      return status;
  add_samples("training samples", training);
  if (validation != nullptr) add_samples("validation samples", *validation);
  return compare_facts(ranks, facts);
}

rt::Result<rt::train::Outcome> train(Options& options, rt::train::Ranks& ranks) {
  using namespace rt::train;
  if (rt::Status status = check(options); !status) return status;
  if (ranks.count() > 1 && options.on_device_lost != "stop")
    return bad_data("--on-device-lost " + options.on_device_lost + " is for one process, not for " +
                    std::to_string(ranks.count()) + " ranks");
  const auto locks = ranks.is_first() ? CheckpointLocks::take(options.loop) : CheckpointLocks();
  if (!locks) return locks.status();
  const auto augmentation = parse_augmentation(options.augment);
  if (!augmentation) return augmentation.status();
  if (librt::tools::is_onnx_file(options.model))
    return bad_data(options.model + " is an ONNX file, without a training step; compile it with `rtconvert " +
                    options.model +
                    " -o MODEL.rt --train --loss cross_entropy --optimizer adam` (or another "
                    "loss and optimizer), and give MODEL.rt");
  const auto model = rt::Model::load(options.model, options.load);
  if (!model) return model.status();
  const std::vector<rt::TensorSpec> inputs = data_inputs(*model);
  if (inputs.empty())
    return bad_data(options.model + " has no entry train_step; compile it with rtconvert --train");
  const auto shards = shards_of(*model, options.model, ranks.count());
  if (!shards) return shards.status();
  options.loop.sharded = *shards > 0;
  options.session.communicator = ranks.communicator();

  DataFacts facts;
  if (rt::Status status = read_scoring(*model, options.loop.scoring); !status) return status;
  if (options.validates() && model->metadata("train.loss") == "ctc" && !options.loop.scoring.blank)
    return bad_data(options.model +
                    " does not say which class is the blank; compile it again, or leave out --validate");
  const int64_t classes = class_count(*model, inputs, options.loop.scoring);
  options.loop.classes = static_cast<size_t>(classes);
  options.data.ignored_label = options.loop.scoring.ignored;
  const Part training_part{0, 1 - options.validate_fraction, options.loop.seed};
  const auto training = open_source(options.training, options.data, training_part, inputs, classes, facts);
  if (!training) return training.status();
  if (rt::Status status = read_plan(*model, ranks.count(), options); !status) return status;
  const BatchChoice batch{
      .fixed = fixed_batch(inputs),
      .ranks = ranks.count(),
      .accumulates = !model->inputs("accumulate").empty(),
      .is_given = options.batch->count() > 0 || model->metadata("train.batch").has_value()};
  if (rt::Status status = fit_batch(batch, options.loop); !status) return status;
  if (batch.fixed > 0 && !batch.is_given && ranks.is_first())
    std::fprintf(stderr, "rttrain: --batch %zu, as the model's inputs fix their first axis\n",
                 options.loop.batch);
  const auto transform = Transform::create((*training)->columns(), options.normalization, *augmentation);
  if (!transform) return transform.status();
  rt::Result<SourcePtr> validation = SourcePtr();
  if (options.validates()) {
    const bool part = options.validation.paths.empty();
    validation =
        open_source(part ? options.training : options.validation, options.data,
                    part ? Part{training_part.end, 1, options.loop.seed} : Part{}, inputs, classes, facts);
    if (!validation) return validation.status();
  }
  const auto plain = Transform::create((*training)->columns(), options.normalization, {});
  if (!plain) return plain.status();

  if (rt::Status status = choose_learning_rate(*model, ranks.is_first(), options); !status) return status;
  if (rt::Status status = choose_order(*model, ranks, options); !status) return status;
  if (rt::Status status = check_share(ranks, options); !status) return status;
  if (rt::Status status = check_last_batch(batch, options.loop, (*training)->size(),
                                           *validation == nullptr ? 0 : (*validation)->size());
      !status)
    return status;
  if (rt::Status status = compare_ranks(ranks, options, **training, validation->get()); !status)
    return status;
  if (options.loop.ordered_sums)
    if (rt::Status status = choose_gpu(ranks, options); !status) return status;
  options.loop.progress = options.loop.progress && ranks.is_first();
  auto log = ranks.is_first() ? RunLog::open(options.log, options.tensorboard, options.loop.resume)
                              : RunLog::open({}, {}, false);
  if (!log) return log.status();
  options.loop.data_text = data_text(options);
  for (const rt::StateSpec& state : model->states())
    if (librt::is_float(static_cast<librt::DType>(state.dtype)))
      options.loop.float_states.push_back(state.name);
  options.loop.notes = notes_of(facts);
  stop_on_signals();
  const Samples training_samples{**training, *transform};
  std::optional<Samples> validation_samples;
  if (*validation != nullptr) validation_samples.emplace(Samples{**validation, *plain});
  const auto on_loss = options.on_device_lost == "cpu"    ? OnDeviceLost::Cpu
                       : options.on_device_lost == "wait" ? OnDeviceLost::Wait
                                                          : OnDeviceLost::Stop;
  const auto train_on = [&](rt::Trainer& trainer, const rt::SessionOptions& session, bool resume,
                            std::optional<uint64_t>& saved_step) -> rt::Result<Outcome> {
    const rt::DeviceInfo device = trainer.session().device();
    if (options.loop.ordered_sums)
      if (rt::Status status = compare_facts(ranks, {{"device", device.backend + " (" + device.name + ")"}});
          !status)
        return status;
    if (ranks.is_first())
      std::fprintf(stderr, "rttrain: %zu samples on %s (%s)%s\n", (*training)->size(), device.backend.c_str(),
                   device.name.c_str(), together_text(ranks.count(), trainer.session()).c_str());
    options.loop.resume = resume;
    Budget budget(*model, trainer, session, session.memory_limit);
    return run_training(trainer, budget, training_samples,
                        validation_samples ? &*validation_samples : nullptr, *log, ranks, options.loop,
                        saved_step);
  };
  return train_through_device_loss(*model, options.session, options.loop.resume, on_loss, train_on);
}

int run(Options& options, rt::train::Ranks& ranks) {
  using namespace librt::tools;
  const std::string name = ranks.count() > 1 ? "rttrain: rank " + std::to_string(ranks.rank()) : "rttrain";
  // Not run_program() alone: the other ranks wait for one that fails (below).
  try {
    const auto outcome = train(options, ranks);
    if (!outcome) return report_failure(name.c_str(), outcome.status());
    if (*outcome != rt::train::Outcome::Finished || options.target.empty()) return kFine;
    if (ranks.is_first())
      std::fprintf(stderr, "rttrain: the target %s was not reached\n", options.target.c_str());
    return kDifferent;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: not enough memory\n", name.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: an error that it did not expect: %s\n", name.c_str(), error.what());
  }
  return kBadMachine;
}

// Without the other ranks: mpirun ends them. MPI's threads may still run.
[[noreturn]] void end_alone(int code) {
  std::fflush(nullptr);
  _exit(code);
}

int command_line(int argc, char** argv) {
  using namespace librt::tools;
  CommandLine app(
      "Fine-tunes a model compiled with `rtconvert MODEL.onnx -o MODEL.rt --train`.\n"
      "The weights after training are in the checkpoint; `rtconvert MODEL.rt --checkpoint FILE -o NEW.rt` "
      "puts them into a model.");
  Options options;
  declare(app, options);
  app.set_up_help(
      {.program = "rttrain",
       .examples = {"rttrain net.rt --data train/ --validate test/ --augment flip,crop=4 --epochs 5 --lr "
                    "0.001 --checkpoint net.ckpt",
                    "rttrain net.rt --data train.npz --epochs 5 --checkpoint net.ckpt --resume",
                    "mpirun -n 4 rttrain net.rt --data train/ --epochs 5    (compiled with --data-parallel)"},
       .notes = {"Ctrl-C, SIGTERM and SIGHUP end a run after its step: with --checkpoint it is saved and "
                 "the exit code is 0. A second Ctrl-C or SIGTERM ends it at once. Exit code 1 means that the "
                 "target was not reached.",
                 librt::tools::kCacheHelp}});
  if (const auto code = app.parse(argc, argv)) return *code;
  options.facts = rt::train::facts_of(app);
  auto ranks = rt::train::Ranks::join(options.ranks);
  if (!ranks) end_alone(report_failure("rttrain", ranks.status()));
  const int code = run(options, *ranks);
  if (ranks->count() > 1 && code != kFine && code != kDifferent && !ranks->have_refused()) end_alone(code);
  if (rt::Status status = ranks->leave(); !status) end_alone(report_failure("rttrain", status));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return librt::tools::run_program("rttrain", argc, argv, command_line);
}
