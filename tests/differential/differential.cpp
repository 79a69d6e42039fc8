// Models with dynamic dimensions against the same models with static ones.
//
//   differential --pairs 500 --seed 1          random models at 20 random extents each
//   differential --pairs 1 --seed 4711 -v      one of them again, printed
//   differential --model FILE.onnx             a model from a file
//
// Results must be equal in shape and values; both models must reject the same inputs; every dimension claimed
// by the compiled file must match the run. A model with a fault is minimized before it is printed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/differential/check.h"
#include "tests/differential/generator.h"
#include "tests/differential/known.h"
#include "tests/differential/minimize.h"
#include "tests/differential/workers.h"
#include "tools/cli/command_line.h"

namespace {

using namespace librt::test;
using Json = nlohmann::ordered_json;

struct Settings {
  int64_t pairs = 500, seed = 1;
  int extents = 20, jobs = 2, minimize = 12, show = 4;
  int64_t refusals = 0;
  unsigned seconds = 60;
  bool verbose = false, quick = false, without_empty = false;
  std::string backend = "cpu", model, save;
};

// Messages that differ only in numbers and names count as one reason.
std::string reason_of(const std::string& message) {
  std::string reason;
  bool quoted = false, digits = false;
  for (const char c : message.substr(0, message.find('\n'))) {
    if (c == '\'') quoted = !quoted;
    const bool digit = c >= '0' && c <= '9';
    if (quoted ? c == '\'' : !(digit && digits)) reason += digit ? '#' : c;
    digits = digit;
  }
  return reason.substr(0, 160);
}

bool same_fault(const Finding& a, const Finding& b) {
  if (a.fault != b.fault) return false;
  const bool says_why = a.fault == Fault::RefusedRun || a.fault == Fault::RefusedConversion;
  return !says_why || reason_of(a.what) == reason_of(b.what);
}

// The finding is replaced by that of the smaller model.
rt_onnx::ModelProto smaller(const rt_onnx::ModelProto& model, Finding& finding, const CheckOptions& options) {
  CheckOptions exact = options;
  exact.sessions_of_fixed = finding.what.starts_with("fixed") ? 1 : 0;
  const auto still_wrong = [&](const rt_onnx::ModelProto& candidate) {
    const Verdict verdict = check_pair(candidate, {finding.at}, exact);
    const Finding* again = verdict.find(finding.fault);
    if (again == nullptr || !same_fault(*again, finding)) return false;
    finding.what = again->what;
    return true;
  };
  return minimize(model, still_wrong, 200);
}

std::string ops_of(const rt_onnx::ModelProto& model) {
  std::string ops;
  for (const auto& node : model.graph().node()) ops += (ops.empty() ? "" : " ") + std::string(node.op_type());
  return ops;
}

// The result of one pair as a line of JSON.
Json check_model(const rt_onnx::ModelProto& model, const std::string& name, const Settings& settings,
                 const std::vector<Assignment>& assignments, bool minimizes) {
  CheckOptions options;
  options.backend = settings.backend;
  options.sessions_of_fixed = settings.quick ? 0 : 5;
  const Verdict verdict = check_pair(model, assignments, options);
  Json json = {{"name", name},
               {"compared", verdict.compared},
               {"refused", verdict.refused},
               {"left_out", verdict.left_out},
               {"findings", Json::array()}};
  for (const Finding& first : verdict.findings) {
    Finding finding = first;
    const rt_onnx::ModelProto small = minimizes ? smaller(model, finding, options) : model;
    json["findings"].push_back({{"fault", static_cast<int>(finding.fault)},
                                {"what", finding.what},
                                {"at", finding.at},
                                {"ops", ops_of(small)},
                                {"model", minimizes ? readable(small) : ""}});
    if (!settings.save.empty()) {
      std::filesystem::create_directories(settings.save);
      std::ofstream file(settings.save + "/" + name + ".onnx", std::ios::binary);
      file << small.SerializeAsString();
    }
  }
  return json;
}

Json check_seed(int64_t seed, const Settings& settings, int& minimized) {
  const auto number = static_cast<uint64_t>(seed);
  const rt_onnx::ModelProto model = Generator(number).generate();
  const auto assignments = random_assignments(model, settings.extents, number, !settings.without_empty);
  if (settings.verbose)
    std::fprintf(stderr, "seed %lld\n%s", static_cast<long long>(seed), readable(model).c_str());
  Json json = check_model(model, "seed " + std::to_string(seed), settings, assignments,
                          minimized < settings.minimize);
  if (!json["findings"].empty()) ++minimized;
  return json;
}

std::string at_text(const Json& at) {
  std::string line;
  for (const auto& [name, extent] : at.items())
    line += (line.empty() ? "" : " ") + name + "=" + std::to_string(extent.get<int64_t>());
  return line;
}

/// Findings over all pairs.
class Report {
 public:
  explicit Report(const Settings& settings) : settings_(settings) {}

  void add(const WorkResult& result) {
    ++pairs_;
    if (!result.crash.empty()) {
      ++crashes_;
      std::printf("CRASH seed %lld: %s\n", static_cast<long long>(result.number), result.crash.c_str());
    } else {
      add(Json::parse(result.line));
    }
  }
  void add(const Json& json) {
    compared_ += json["compared"].get<int64_t>();
    refused_ += json["refused"].get<int64_t>();
    left_out_ += json["left_out"].get<int64_t>();
    bool refusal = false;
    for (const Json& finding : json["findings"]) {
      const auto fault = static_cast<Fault>(finding["fault"].get<int>());
      const bool says_why = fault == Fault::RefusedRun || fault == Fault::RefusedConversion;
      const std::string why = finding["what"].get<std::string>();
      Group& group = groups_[fault][says_why ? reason_of(why) : finding["ops"].get<std::string>()];
      ++group.count;
      ++counts_[fault];
      refusal = refusal || says_why;
      const std::string model = finding["model"].get<std::string>();
      if (group.model.empty() || (!model.empty() && model.size() < group.model.size()))
        group = {.count = group.count,
                 .name = json["name"].get<std::string>(),
                 .what = why,
                 .at = at_text(finding["at"]),
                 .model = model};
    }
    if (refusal) ++refusing_;
  }

  int print() const {
    for (const Fault fault : kFaults) print_groups(fault);
    std::printf("%lld pairs: %lld extents compared, %lld refused by both, %lld left out\n", ll(pairs_),
                ll(compared_), ll(refused_), ll(left_out_));
    int64_t wrong = crashes_;
    for (const Fault fault : kFaults) {
      const auto entry = counts_.find(fault);
      const int64_t count = entry == counts_.end() ? 0 : entry->second;
      std::printf("%8lld pairs: %s\n", ll(count), name_of(fault));
      if (fault == Fault::WrongResult || fault == Fault::ResultOfInvalid || fault == Fault::WrongClaim)
        wrong += count;
    }
    std::printf("%8lld pairs: crashed\n", ll(crashes_));
    return wrong > 0 || refusing_ > settings_.refusals ? 1 : 0;
  }
  void count_pair() { ++pairs_; }

 private:
  struct Group {
    int64_t count = 0;
    std::string name, what, at, model;
  };
  static long long ll(int64_t number) { return number; }

  void print_groups(Fault fault) const {
    const auto entry = groups_.find(fault);
    if (entry == groups_.end()) return;
    std::vector<const Group*> sorted;
    for (const auto& [reason, group] : entry->second) sorted.push_back(&group);
    std::stable_sort(sorted.begin(), sorted.end(), [](const Group* a, const Group* b) {
      const bool printed = !a->model.empty(), other = !b->model.empty();
      return printed != other ? printed : a->count > b->count;
    });
    int shown = 0;
    for (const Group* group : sorted) {
      if (shown++ == settings_.show) break;
      std::printf("%s: %lld pairs as %s, %s\n  %s\n%s\n", name_of(fault), ll(group->count),
                  group->name.c_str(), group->at.c_str(), group->what.c_str(), group->model.c_str());
    }
    if (sorted.size() > static_cast<size_t>(settings_.show))
      std::printf("%s: %zu more kinds\n\n", name_of(fault),
                  sorted.size() - static_cast<size_t>(settings_.show));
  }

  const Settings& settings_;
  int64_t pairs_ = 0, compared_ = 0, refused_ = 0, left_out_ = 0, crashes_ = 0, refusing_ = 0;
  std::map<Fault, int64_t> counts_;
  std::map<Fault, std::map<std::string, Group>> groups_;
};

// Known models first, then seeds.
int run(const Settings& settings) {
  Report report(settings);
  const auto known = known_models();
  const auto try_known = [&](int64_t i) {
    const auto& [name, model] = known[static_cast<size_t>(i)];
    auto assignments =
        random_assignments(model, settings.extents, static_cast<uint64_t>(i), !settings.without_empty);
    assignments.push_back({});
    for (const std::string& symbol : symbols_of(model)) assignments.back()[symbol] = 40;
    return check_model(model, name, settings, assignments, true).dump();
  };
  if (settings.pairs != 1)
    for (const WorkResult& result :
         run_workers(0, static_cast<int64_t>(known.size()), settings.jobs, settings.seconds, try_known))
      report.add(result);
  int minimized = 0;
  const auto try_seed = [&](int64_t seed) { return check_seed(seed, settings, minimized).dump(); };
  for (const WorkResult& result :
       run_workers(settings.seed, settings.pairs, settings.jobs, settings.seconds, try_seed))
    report.add(result);
  return report.print();
}

int run_file(const Settings& settings) {
  rt_onnx::ModelProto model;
  std::ifstream in(settings.model, std::ios::binary);
  if (!model.ParseFromIstream(&in)) {
    std::fprintf(stderr, "%s is no ONNX model\n", settings.model.c_str());
    return 2;
  }
  Report report(settings);
  const auto assignments = random_assignments(model, settings.extents, static_cast<uint64_t>(settings.seed),
                                              !settings.without_empty);
  report.count_pair();
  report.add(check_model(model, settings.model, settings, assignments, settings.minimize > 0));
  return report.print();
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  librt::tools::CommandLine app(
      "Models with open dimensions against the same models with every dimension fixed");
  app.add_option("--pairs", settings.pairs, "How many random models");
  app.add_option("--seed", settings.seed, "Of the first model; the next ones count on");
  app.add_option("--extents", settings.extents, "Assignments of extents that each model is run at");
  app.add_option("--jobs", settings.jobs, "Processes at a time")->check(librt::tools::positive());
  app.add_option("--backend", settings.backend, "Of the open model's session; 'reference': none");
  app.add_option("--minimize", settings.minimize, "How many faulty models each process makes smaller");
  app.add_option("--show", settings.show, "Kinds of each fault that are printed");
  app.add_option("--refusals", settings.refusals,
                 "How many models may be refused open, though they work fixed, before that fails the run");
  app.add_option("--seconds", settings.seconds, "How long one model may take");
  app.add_option("--model", settings.model, "An ONNX file instead of random models");
  app.add_option("--save", settings.save, "Folder for the smallest models that show a fault");
  app.add_flag("--quick", settings.quick, "Leave out sessions of fixed models");
  app.add_flag("--without-empty", settings.without_empty, "No extents of 0");
  app.add_flag("-v,--verbose", settings.verbose, "Print every model");
  if (const auto code = app.parse(argc, argv)) return *code;
  return settings.model.empty() ? run(settings) : run_file(settings);
}
