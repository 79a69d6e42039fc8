#include "tools/rtrun/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/cli/exit_code.h"
#include "tools/data/public_status.h"
#include "tools/data/tokenizer.h"
#include "tools/rtrun/interruptible.h"
#include "tools/rtrun/language_model.h"

namespace rt::run {
namespace {

using Clock = std::chrono::steady_clock;

rt::Status bad(std::string message) {
  return {rt::Code::InvalidArgument, std::move(message)};
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Generator {
 public:
  Generator(LanguageModel& model, rt::Session& session, const GenerateOptions& options)
      : model_(model), session_(session), options_(options), sampler_(options.sampler) {}

  rt::Status run() {
    if (rt::Status status = read_prompt(); !status) return status;
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < options_.count; ++i) {
      const auto logits = model_.next(ids_);
      if (!logits) return logits.status();
      if (const auto nan =
              std::find_if(logits->begin(), logits->end(), [](float x) { return std::isnan(x); });
          nan != logits->end())
        return bad("after " + std::to_string(ids_.size()) + (ids_.size() == 1 ? " token" : " tokens") +
                   " logit " + std::to_string(nan - logits->begin()) +
                   " is NaN: no token can be chosen; f16 overflows beyond 65504, --precision bf16 or fp32 of "
                   "rtconvert does not");
      const int64_t token = sampler_.choose(*logits);
      if (i == 0) first_seconds_ = seconds_since(start);
      const auto& stops = options_.stop_tokens;
      if (std::find(stops.begin(), stops.end(), token) != stops.end()) break;
      accept(token);
    }
    seconds_ = seconds_since(start);
    if (streams()) std::printf("\n");
    if (options_.json) print_json();
    return {};
  }

 private:
  bool streams() const { return !options_.json && !options_.quiet; }

  rt::Status read_prompt() {
    if (!options_.tokenizer.empty()) {
      auto tokenizer = librt::tools::Tokenizer::load(options_.tokenizer);
      if (!tokenizer) return as_public(tokenizer.status());
      tokenizer_ = std::move(*tokenizer);
    }
    ids_ = options_.prompt_tokens;
    if (!options_.prompt.empty()) {
      if (!tokenizer_) return bad("--prompt: the text needs a --tokenizer; or give --prompt-tokens");
      ids_ = tokenizer_->encode(options_.prompt);
    }
    if (ids_.empty()) ids_ = {librt::tools::Tokenizer::kBegin};
    // A kernel would read some other row of the table.
    const int64_t known = model_.vocabulary();
    for (const int64_t id : ids_)
      if (id < 0 || (known >= 0 && id >= known))
        return bad((options_.prompt.empty() ? "--prompt-tokens: token " : "--tokenizer: its token ") +
                   std::to_string(id) + ": expected 0 to " +
                   (known >= 0 ? std::to_string(known - 1) : "2^63") + ", the tokens of the model");
    prompt_size_ = ids_.size();
    // The last token is sampled but not fed back.
    const int64_t needed = static_cast<int64_t>(ids_.size()) + options_.count - 1;
    if (model_.capacity() > 0 && needed > model_.capacity())
      return bad("--generate " + std::to_string(options_.count) + " after a prompt of " +
                 std::to_string(ids_.size()) + " tokens: the model's cache holds " +
                 std::to_string(model_.capacity()) + "; convert with a larger --cache-length");
    for (size_t i = 1; i < ids_.size(); ++i) show(ids_[i - 1], ids_[i]);
    return {};
  }

  void accept(int64_t token) {
    show(ids_.back(), token);
    ids_.push_back(token);
  }

  void show(int64_t previous, int64_t token) {
    const std::string piece = tokenizer_ ? tokenizer_->decode(previous, token) : std::to_string(token) + ' ';
    if (tokenizer_) text_ += piece;
    if (!streams()) return;
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  }

  void print_json() {
    const rt::DeviceInfo device = session_.device();
    const auto generated = static_cast<double>(ids_.size() - prompt_size_);
    nlohmann::ordered_json json;
    json["device"] = {{"backend", device.backend}, {"name", device.name}};
    json["prompt_tokens"] = std::vector<int64_t>(ids_.begin(), ids_.begin() + long(prompt_size_));
    json["tokens"] = std::vector<int64_t>(ids_.begin() + long(prompt_size_), ids_.end());
    if (tokenizer_) json["text"] = text_;
    json["seconds"] = seconds_;
    json["first_token_seconds"] = first_seconds_;
    if (generated > 1) json["tokens_per_second"] = (generated - 1) / (seconds_ - first_seconds_);
    const rt_memory_stats memory = session_.memory();
    json["memory"] = {{"states", memory.states},
                      {"weights", memory.weights},
                      {"peak_planned", memory.peak_planned},
                      {"plans", memory.plans}};
    add_profile(json);
    // Text cut within a character is invalid UTF-8; JSON requires valid UTF-8.
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }

  /// Time of one run by kernel, or by what the plan inserted (Reorder, Copy, Transfer), the longest first.
  void add_profile(nlohmann::ordered_json& json) const {
    struct Kernel {
      uint64_t nanoseconds = 0;
      int64_t nodes = 0;
    };
    std::map<std::string, Kernel> kernels;
    uint64_t total = 0;
    for (const rt_profile_entry& entry : session_.profile()) {
      Kernel& kernel = kernels[entry.kernel[0] != '\0' ? entry.kernel : entry.op];
      kernel.nanoseconds += entry.nanoseconds;
      ++kernel.nodes;
      total += entry.nanoseconds;
    }
    if (total == 0) return;
    const double per_run = 1e-9 / static_cast<double>(session_.profile_runs());
    json["kernel_seconds"] = static_cast<double>(total) * per_run;
    std::vector<std::pair<std::string, Kernel>> sorted(kernels.begin(), kernels.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second.nanoseconds > b.second.nanoseconds;
    });
    for (const auto& [name, kernel] : sorted)
      json["kernels"].push_back({{"kernel", name},
                                 {"nodes", kernel.nodes},
                                 {"seconds", static_cast<double>(kernel.nanoseconds) * per_run}});
  }

  LanguageModel& model_;
  rt::Session& session_;
  const GenerateOptions& options_;
  Sampler sampler_;
  std::optional<librt::tools::Tokenizer> tokenizer_;
  std::vector<int64_t> ids_;
  size_t prompt_size_ = 0;
  std::string text_;
  double seconds_ = 0, first_seconds_ = 0;
};

}  // namespace

int generate(const rt::Model& model, rt::Session& session, const GenerateOptions& options) {
  auto language = LanguageModel::open(
      model, session, {options.token_input, options.position_input, options.mask_input, options.logits});
  if (!language) return librt::tools::report_failure("rtrun", language.status());
  Generator generator(*language, session, options);
  if (rt::Status status = interruptible(session, [&] { return generator.run(); }); !status)
    return librt::tools::report_failure("rtrun", status);
  return librt::tools::kFine;
}

}  // namespace rt::run
