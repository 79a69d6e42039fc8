#include "tools/rttrain/checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string_view>
#include <vector>

#include "tools/data/array.h"

namespace rt::train {
namespace {

/// Both remove what they take from the start of `rest`; false if it does not begin so.
bool take_text(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}
bool take_number(std::string_view& rest, uint64_t& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return error == std::errc();
}

}  // namespace

rt::Status check_checkpoint_files(const LoopOptions& options) {
  for (const std::string* path : {&options.checkpoint, &options.best}) {
    if (path->empty()) continue;
    std::error_code error;
    const auto folder = std::filesystem::absolute(*path, error).parent_path();
    if (std::filesystem::is_directory(*path, error) || access(folder.c_str(), W_OK | X_OK) != 0)
      return bad_data(*path + ": expected a file in a folder that can be written to");
    if (std::filesystem::is_fifo(*path, error))  // to open it would wait for a reader after the training
      return bad_data(*path + ": expected a file that can be read again, found a pipe");
    if (!options.resume && !options.overwrite && std::filesystem::is_regular_file(*path, error))
      return bad_data(
          *path + ": a file of this name exists; " +
          (path == &options.checkpoint ? "continue it with --resume, " : "continue with --resume, ") +
          "replace it with --overwrite, or name another file");
  }
  return {};
}

Checkpoints::Checkpoints(rt::Trainer& trainer, const Ranks& ranks, const LoopOptions& options, size_t samples,
                         std::string monitor)
    : trainer_(trainer), ranks_(ranks), options_(options), samples_(samples), monitor_(std::move(monitor)) {}

std::string Checkpoints::text() const {
  if (options_.checkpoint.empty()) return "; nothing is saved (no --checkpoint)";
  return saved_step_ ? "; " + options_.checkpoint + " holds step " + std::to_string(*saved_step_)
                     : "; no checkpoint was written yet";
}

std::vector<std::pair<std::string, std::string>> Checkpoints::must_be_equal() const {
  return {{"rttrain.batch_size", std::to_string(options_.batch)},
          {"rttrain.seed", std::to_string(options_.seed)},
          {"rttrain.samples", std::to_string(samples_)},
          {"rttrain.order", std::string(options_.shuffle ? "shuffled" : "file") +
                                (options_.drop_last ? ", last batch dropped" : "")},
          {"rttrain.data", options_.data_text}};
}

// With sharding the other ranks store their states in separate files with the step in their names. The
// first rank's file, written after all of them, determines which ones are valid; those of the previous
// checkpoint are removed afterwards.
std::string Checkpoints::file_beside(const std::string& path, const Position& position) const {
  return path + ".step" + std::to_string(position.step) + ".rank" + std::to_string(ranks_.rank());
}

// A finite loss does not imply finite states: the gradient, or the update, may overflow.
rt::Status Checkpoints::check_states(const Position& position) {
  for (const std::string& name : options_.float_states) {
    const auto state = trainer_.session().read_state(name);
    if (!state) return state.status();
    const auto place = librt::tools::first_nonfinite(static_cast<librt::DType>(state->dtype()), state->data(),
                                                     static_cast<size_t>(state->elements()));
    if (!place) continue;
    return bad_data("step " + std::to_string(position.step) + " left a value that is not finite in '" + name +
                    "', element " + std::to_string(*place) +
                    ", which is not saved; lower --lr, or go on with --allow-nonfinite" + text());
  }
  return {};
}

rt::Status Checkpoints::save(const std::string& path, const Position& position) {
  if (!options_.allow_nonfinite && (options_.sharded || ranks_.is_first()))
    if (rt::Status status = check_states(position); !status) return status;
  if (!options_.sharded) return ranks_.is_first() ? save_states(path, path, position) : rt::Status();
  const std::string part = file_beside(path, position);
  if (!ranks_.is_first())
    if (rt::Status status = save_states(path, part, position); !status) return status;
  if (rt::Status status = ranks_.meet(); !status) return status;
  if (ranks_.is_first())
    if (rt::Status status = save_states(path, path, position); !status) return status;
  if (rt::Status status = ranks_.meet(); !status) return status;
  std::string& before = parts_[path];
  if (!ranks_.is_first() && !before.empty() && before != part) std::remove(before.c_str());
  before = part;
  remove_old_parts(path, part);
  return {};
}

// Killed runs leave parts, whole or not, of steps that no later run returns to. A rank removes its own; the
// first one has none and removes those of ranks that this run does not have.
void Checkpoints::remove_old_parts(const std::string& path, const std::string& kept) {
  namespace fs = std::filesystem;
  if (!cleaned_.insert(path).second) return;
  const fs::path folder = fs::absolute(path).parent_path();
  const std::string prefix = fs::path(path).filename().string() + ".step",
                    last = fs::path(kept).filename().string();
  std::vector<fs::path> old;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::string_view rest = name;
    uint64_t step = 0, rank = 0;
    const bool is_part = take_text(rest, prefix) && take_number(rest, step) && take_text(rest, ".rank") &&
                         take_number(rest, rank) && (rest.empty() || rest.starts_with(".partial-"));
    if (!is_part || name == last) continue;
    if (rank == ranks_.rank() || (ranks_.is_first() && rank >= ranks_.count())) old.push_back(at->path());
  }
  for (const fs::path& file : old) fs::remove(file, error);
}

// path: the checkpoint that `file` is, or is a part of.
rt::Status Checkpoints::save_states(const std::string& path, const std::string& file,
                                    const Position& position) {
  auto pairs = must_be_equal();
  for (auto& pair : pairs_of(position)) pairs.push_back(std::move(pair));
  pairs.emplace_back("rttrain.monitor", monitor_);
  pairs.insert(pairs.end(), options_.notes.begin(), options_.notes.end());
  rt::Status status = trainer_.session().save_checkpoint(file, pairs);
  if (status && path == options_.checkpoint) {
    is_behind_ = false;
    saved_step_ = position.step;
  }
  return status;
}

rt::Status Checkpoints::finish(const Position& position) {
  return options_.checkpoint.empty() || !is_behind_ ? rt::Status() : save(options_.checkpoint, position);
}

rt::Status Checkpoints::load(Position& position) {
  if (rt::Status status = load(options_.checkpoint, position); !status) return status;
  if (options_.sharded && !ranks_.is_first()) {
    const std::string& part = parts_[options_.checkpoint] = file_beside(options_.checkpoint, position);
    Position same;
    if (rt::Status status = load(part, same); !status) return status;
  }
  // The best value of another metric says nothing about this one's.
  if (trainer_.session().checkpoint_value("rttrain.monitor").value_or(monitor_) != monitor_) {
    position.best = std::numeric_limits<double>::quiet_NaN();
    position.waiting = 0;
  }
  saved_step_ = position.step;
  if (ranks_.is_first())
    std::fprintf(stderr, "rttrain: continues after step %lu\n", static_cast<unsigned long>(position.step));
  return {};
}

rt::Status Checkpoints::load(const std::string& file, Position& position) {
  rt::Session& session = trainer_.session();
  if (rt::Status status = session.load_checkpoint(file); !status) return status;
  std::string key;
  if (!read_position(session, position, key))
    return bad_data(file + ": has no " + key + "; it was not written by rttrain");
  for (const auto& [name, value] : must_be_equal()) {
    const std::string found = session.checkpoint_value(name).value_or("");
    if (found != value)
      return bad_data(file + ": was written with " + name + " = " + found + ", now it is " + value +
                      "; continue with the same, or the batches would differ");
  }
  return {};
}

}  // namespace rt::train
