// The conformance harness: every operator case on one backend, through the public C API, against the pages'
// reference values. The sessions of many cases share a device.
//
// For each case: compile, write, read back, run; compare types, shapes and values; run again (equal bits);
// run into guarded user memory; with --specials run on NaN, infinities and the like, with --hostile on
// indices and integers outside of what is valid; with --operands run with constants as inputs and inputs as
// constants; run at another batch size and back. Some cases are repeated with failing allocations. A case
// that the backend leaves to the CPU is a gap: gaps.txt must list it with a reason; a listed case that is not
// a gap fails.
//
//   conformance --backend cpu [--filter REGEX] [--every N] [--gaps FILE] [--refused FILE]
//               [--validation] [--specials] [--hostile] [--operands] [--times]
//
// --every N: the Nth case of the list, the 2Nth and so on. --refused: more gaps, whose reasons are those that
// the plan gives. --times: at the end, the CPU seconds of the slowest cases.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <span>
#include <sstream>
#include <string>

#include "rt/rt.h"
#include "runtime/backend/registry.h"
#include "runtime/core/element.h"
#include "tests/cases/case.h"
#include "tests/cases/special.h"
#include "tests/conformance/failing_new.h"
#include "tests/conformance/hostile.h"
#include "tests/support/case_model.h"
#include "tools/compiler/writer.h"

namespace librt::test {
namespace {

struct Options {
  std::string backend = "cpu";
  std::string filter;
  std::string gaps;
  std::string refused;  ///< as gaps, with the reasons of the plan
  int every = 1;
  bool validation = false;
  bool specials = false;         ///< also NaN, infinities and the like
  bool hostile = false;          ///< also indices and integers outside of what is valid
  bool operands = false;         ///< also with constants as inputs and inputs as constants
  bool times = false;            ///< prints which cases are slowest
  rt_session* device = nullptr;  ///< the session whose device is used; null to open one
};

using Values = std::vector<std::optional<ops::HostTensor>>;

// Error message of one check; empty on success.
using Complaint = std::string;

struct Compiled {
  std::vector<std::byte> bytes;
  std::vector<size_t> inputs;  ///< case input of each graph input
};

Result<Compiled> compile(const Case& c, const Values& values, bool symbolic) {
  RT_ASSIGN(CaseModel made, case_model(c, values, symbolic));
  RT_ASSIGN(std::vector<std::byte> bytes, compiler::serialize_model(made.model));
  return Compiled{std::move(bytes), std::move(made.inputs)};
}

Result<std::vector<ops::HostTensor>> reference(const Case& c, const Values& values) {
  Node node;
  node.op = c.op;
  node.name = c.name;
  std::vector<Operand> operands;
  std::vector<ConstTensorView> views;
  for (const auto& value : values) {
    node.inputs.push_back(value ? static_cast<ValueId>(operands.size()) : kNoValue);
    operands.push_back(value ? Operand{true, value->info, value->bytes.data()} : Operand{});
    views.push_back(value ? value->view() : ConstTensorView{});
  }
  const ops::CompilerPage* page = ops::compiler_page_of(c.op.type);
  if (page->body != nullptr) {  // the reference of a composite is computed from its body
    Graph body;
    compiler::Builder builder(body);
    std::vector<ValueId> inputs;
    std::vector<ConstTensorView> present;
    for (const auto& value : values) {
      if (!value) {
        inputs.push_back(kNoValue);
        continue;
      }
      std::vector<Dim> dims;
      for (int64_t dim : value->info.shape) dims.push_back({.extent = dim});
      inputs.push_back(builder.input(text("x", inputs.size()), value->info.dtype, dims));
      present.push_back(value->view());
    }
    for (ValueId output : page->body(builder, node, inputs)) builder.output(output);
    RT_TRY(Status(builder.status()));
    RT_TRY(compiler::expand_composites(body, {}));
    return ops::evaluate_graph(body, present);
  }
  for (size_t i = 0; i < c.outputs; ++i) node.outputs.push_back(static_cast<ValueId>(values.size() + i));
  return ops::evaluate_node({.node = node, .inputs = operands}, views);
}

Complaint take(rt_status* status) {
  if (status == nullptr) return {};
  FailingNew::disarm();  // the allocations that follow are the harness's own
  std::string message = rt_status_message(status);
  if (message.empty()) message = "error without a message";
  rt_status_free(status);
  return message;
}

rt_tensor c_tensor(const ops::HostTensor& value) {
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.dtype = static_cast<rt_dtype>(value.info.dtype);
  tensor.rank = value.info.shape.rank();
  for (int i = 0; i < tensor.rank; ++i) tensor.dims[i] = value.info.shape[i];
  tensor.data = const_cast<std::byte*>(value.bytes.data());
  tensor.bytes = value.bytes.size();
  return tensor;
}

/// Requirements on results: a tolerance, and whether non-finite values may spread.
struct Demand {
  ops::Tolerance tolerance;
  SpecialRule rule = SpecialRule::Exact;
};

Complaint compare(const rt_tensor& got, const ops::HostTensor& want, const Demand& demand) {
  const ops::Tolerance& tolerance = demand.tolerance;
  TensorInfo info{.dtype = static_cast<DType>(got.dtype),
                  .shape = Shape(std::span<const int64_t>(got.dims, static_cast<size_t>(got.rank)))};
  if (!(info == want.info)) return text("is ", info, ", expected ", want.info);
  for (int64_t i = 0; i < info.elements(); ++i) {
    if (!is_float(info.dtype)) {
      const int64_t a = load_integer(got.data, info.dtype, i);
      const int64_t b = load_integer(want.bytes.data(), info.dtype, i);
      // Quantized values may differ by one step where their page allows it.
      const auto apart = static_cast<double>(std::max(a, b)) - static_cast<double>(std::min(a, b));
      if (a != b && apart > tolerance.absolute)
        return text("element ", i, " of ", info, " is ", a, ", expected ", b);
      continue;
    }
    const double a = load_element(got.data, info.dtype, i);
    const double b = load_element(want.bytes.data(), info.dtype, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (demand.rule == SpecialRule::Spreads && !std::isfinite(a)) continue;
    if (!(std::fabs(a - b) <= tolerance.absolute + tolerance.relative * std::fabs(b)))
      return text("element ", i, " of ", info, " is ", a, ", expected ", b);
  }
  return {};
}

// A model and a session on it, freed together.
class Runner {
 public:
  Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() {
    rt_session_free(session_);
    rt_model_free(model_);
  }

  Complaint open(const Compiled& compiled, const Options& options) {
    if (Complaint c =
            take(rt_model_load_from_memory(compiled.bytes.data(), compiled.bytes.size(), 1, &model_));
        !c.empty())
      return "load: " + c;
    rt_session_options session = RT_SESSION_OPTIONS_INIT;
    session.backend = options.backend.c_str();
    session.validation = options.validation;
    session.deterministic = 1;
    session.share_device_with = options.device;
    Complaint c = take(rt_session_create(model_, &session, &session_));
    return c.empty() ? c : "create: " + c;
  }

  Complaint feed(const Compiled& compiled, const Values& values) {
    static const ops::HostTensor kUnused({.dtype = DType::F32, .shape = {1}});
    for (size_t i = 0; i < compiled.inputs.size(); ++i) {
      const rt_tensor tensor =
          c_tensor(compiled.inputs[i] == SIZE_MAX ? kUnused : *values[compiled.inputs[i]]);
      if (Complaint c = take(rt_session_set_input(session_, i, &tensor)); !c.empty())
        return "set_input: " + c;
    }
    return {};
  }

  Complaint run_and_compare(const std::vector<ops::HostTensor>& want, const ops::Tolerance& tolerance) {
    return run_and_compare(want, Demand{.tolerance = tolerance});
  }
  Complaint run_and_compare(const std::vector<ops::HostTensor>& want, const Demand& demand) {
    if (Complaint c = take(rt_session_run(session_)); !c.empty()) return "run: " + c;
    for (size_t i = 0; i < want.size(); ++i) {
      rt_tensor got = RT_TENSOR_INIT;
      if (Complaint c = take(rt_session_output(session_, i, &got)); !c.empty()) return "output: " + c;
      if (Complaint c = compare(got, want[i], demand); !c.empty()) return text("output ", i, " ", c);
    }
    return {};
  }

  rt_session* session() { return session_; }

 private:
  rt_model* model_ = nullptr;
  rt_session* session_ = nullptr;
};

/// The device that the sessions of many cases share: a driver compiles each pipeline once then, not once per
/// session.
class SharedDevice {
 public:
  /// Opens the device, for the first case and where an earlier case was the last on its device.
  Complaint open(const Compiled& compiled, const Options& options) {
    if (session() != nullptr && cases_++ < kCases) return {};
    cases_ = 1;
    runner_.emplace();
    return runner_->open(compiled, options);
  }
  /// After a failure, which may have been the device's.
  void close() { runner_.reset(); }
  rt_session* session() { return runner_ ? runner_->session() : nullptr; }

 private:
  static constexpr int kCases = 64;  ///< limits the memory of compiled pipelines
  std::optional<Runner> runner_;
  int cases_ = 0;
};

std::vector<std::vector<std::byte>> output_bytes(rt_session* session, size_t count) {
  std::vector<std::vector<std::byte>> all;
  for (size_t i = 0; i < count; ++i) {
    rt_tensor got = RT_TENSOR_INIT;
    rt_status_free(rt_session_output(session, i, &got));
    const auto* data = static_cast<const std::byte*>(got.data);
    int64_t elements = 1;
    for (int32_t axis = 0; axis < got.rank; ++axis) elements *= got.dims[axis];
    const size_t size = static_cast<size_t>(elements) * rt_dtype_size(got.dtype);
    all.emplace_back(data, data + size);
  }
  return all;
}

// Outputs bound to memory between guard regions: values must be right and guards intact.
Complaint check_guarded(Runner& runner, const std::vector<ops::HostTensor>& want,
                        const ops::Tolerance& tolerance) {
  constexpr size_t kWall = 256;
  constexpr std::byte kBrick{0xa5};
  std::vector<std::vector<std::byte>> memory(want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    memory[i].assign(want[i].bytes.size() + 2 * kWall + 64, kBrick);
    rt_tensor bound = c_tensor(want[i]);
    void* start = memory[i].data() + kWall;
    size_t space = want[i].bytes.size() + 64;
    bound.data = std::align(64, want[i].bytes.size(), start, space);
    if (Complaint c = take(rt_session_bind_output(runner.session(), i, &bound)); !c.empty())
      return "bind_output: " + c;
  }
  if (Complaint c = runner.run_and_compare(want, tolerance); !c.empty()) return "into bound memory: " + c;
  for (size_t i = 0; i < want.size(); ++i) {
    const auto* data = memory[i].data();
    void* start = memory[i].data() + kWall;
    size_t space = want[i].bytes.size() + 64;
    const auto* first = static_cast<std::byte*>(std::align(64, want[i].bytes.size(), start, space));
    for (const std::byte* b = data; b < data + memory[i].size(); ++b) {
      const bool inside = b >= first && b < first + want[i].bytes.size();
      if (!inside && *b != kBrick)
        return text("output ", i, ": wrote ", b - first, " bytes from the output's start");
    }
    if (!want[i].bytes.empty()) {
      rt_tensor got = c_tensor(want[i]);
      got.data = const_cast<std::byte*>(first);
      if (Complaint c = compare(got, want[i], Demand{.tolerance = tolerance}); !c.empty())
        return text("bound output ", i, " ", c);
    }
    rt_status_free(rt_session_bind_output(runner.session(), i, nullptr));
  }
  return {};
}

// The case's inputs with another extent on axis 0; constants are unchanged.
Values with_extent(const Case& c, const Values& values, int64_t extent) {
  Case other;
  other.name = c.name;
  other.op = c.op;
  other.inputs = c.inputs;
  int64_t first = -1;
  for (auto& input : other.inputs) {
    if (!input || input->constant || input->info.shape.rank() == 0) continue;
    if (first < 0) first = input->info.shape[0];
    if (input->info.shape[0] != first || !input->values.empty()) continue;
    input->info.shape[0] = extent;
  }
  Values shaped = case_values(other);
  for (size_t i = 0; i < shaped.size(); ++i)
    if (shaped[i] && c.inputs[i]->constant) shaped[i] = values[i];
  return shaped;
}

// The same session at another batch size and then back at the first.
Complaint check_shapes(const Case& c, const Options& options, const Values& values,
                       const ops::Tolerance& tolerance) {
  int64_t extent = 0;
  bool fixed_values = false;
  for (const auto& input : c.inputs)
    if (input && !input->constant && input->info.shape.rank() > 0) {
      if (extent == 0) extent = input->info.shape[0];
      fixed_values |= !input->values.empty();
    }
  if (extent == 0 || fixed_values) return {};
  const auto compiled = compile(c, values, true);
  if (!compiled.ok()) return {};  // the operator ties this axis to an attribute or a constant
  Runner runner;
  if (Complaint complaint = runner.open(*compiled, options); !complaint.empty())
    return "symbolic: " + complaint;
  for (const Values& shaped : {values, with_extent(c, values, extent + 3), values}) {
    const auto want = reference(c, shaped);
    if (!want.ok()) return {};  // the shapes are invalid at this extent
    if (Complaint complaint = runner.feed(*compiled, shaped); !complaint.empty())
      return "symbolic: " + complaint;
    if (Complaint complaint = runner.run_and_compare(*want, tolerance); !complaint.empty())
      return "at another shape: " + complaint;
  }
  return {};
}

// The same session on NaN, infinities, denormals and values near the largest.
Complaint check_specials(const Case& c, Runner& runner, const Compiled& compiled, const Values& values,
                         const ops::Tolerance& tolerance) {
  const SpecialDomain domain = special_domain(c);
  Complaint first;
  int more = 0;
  for_each_special(c, values, [&](const std::string& round, const Values& spoiled) {
    const auto want = reference(c, spoiled);
    Complaint complaint =
        want.ok() ? runner.feed(compiled, spoiled) : "reference: " + want.status().message();
    if (complaint.empty())
      complaint = runner.run_and_compare(*want, Demand{.tolerance = tolerance, .rule = domain.rule});
    if (complaint.empty()) return true;
    if (first.empty())
      first = round + ": " + complaint;
    else
      ++more;
    return true;
  });
  return first.empty() || more == 0 ? first : text(first, ", and in ", more, " more rounds");
}

// Indices, integers and scales outside of what is valid: the result is that of the values which they count
// as, and nothing outside the results is written. The reference backend may refuse them instead.
Complaint check_hostile(const Case& c, const Options& options, const Values& values,
                        const ops::Tolerance& tolerance) {
  for (const HostileCase& hostile : hostile_cases(c, values)) {
    const auto compiled = compile(hostile.test_case, hostile.values, false);
    if (!compiled.ok()) return "hostile: compile: " + compiled.status().message();
    Runner runner;
    if (Complaint complaint = runner.open(*compiled, options); !complaint.empty())
      return "hostile: " + complaint;
    for (const HostileRound& round : hostile.rounds) {
      const auto want = reference(hostile.test_case, round.meant);
      Complaint complaint =
          want.ok() ? runner.feed(*compiled, round.given) : "reference: " + want.status().message();
      if (complaint.empty()) complaint = check_guarded(runner, *want, tolerance);
      const bool refused = options.backend == "reference" && complaint.find("run: ") != std::string::npos &&
                           complaint.find("expected ") != std::string::npos;
      if (!complaint.empty() && !refused) return text("hostile: ", round.name, ": ", complaint);
    }
  }
  return {};
}

/// The case with each operand that is no shape operand a constant or an input, as `constant` says; nullopt if
/// it is so already, or if no input would be left.
std::optional<Case> with_operands(const Case& c, const std::function<bool(size_t operand)>& constant) {
  const uint32_t shape_operands = ops::page_of(c.op.type)->shape_operands;
  Case other{c.name, c.op, c.inputs, c.outputs, c.gradient, c.tolerance, c.special};
  bool differs = false, has_input = false;
  size_t operand = 0;
  for (size_t i = 0; i < other.inputs.size(); ++i) {
    auto& input = other.inputs[i];
    if (!input) continue;
    if (i >= 32 || ((shape_operands >> i) & 1u) == 0) {
      const bool wanted = constant(operand++);
      differs |= input->constant != wanted;
      input->constant = wanted;
    }
    has_input |= !input->constant;
  }
  return differs && has_input ? std::optional(std::move(other)) : std::nullopt;
}

// With all operands as inputs, with the first one alone, and with all but the first: kernels may prepare
// constants.
Complaint check_operands(const Case& c, const Options& options, const Values& values,
                         const std::vector<ops::HostTensor>& want, const ops::Tolerance& tolerance) {
  const std::pair<const char*, bool (*)(size_t)> kinds[] = {
      {"all operands are inputs", [](size_t) { return false; }},
      {"the first operand is an input, the others are constants", [](size_t operand) { return operand > 0; }},
      {"the first operand is a constant, the others are inputs",
       [](size_t operand) { return operand == 0; }}};
  for (const auto& [name, constant] : kinds) {
    const auto other = with_operands(c, constant);
    if (!other) continue;
    const auto compiled = compile(*other, values, false);
    Complaint complaint = compiled.ok() ? Complaint() : "compile: " + compiled.status().message();
    Runner runner;
    if (complaint.empty()) complaint = runner.open(*compiled, options);
    if (complaint.empty()) complaint = runner.feed(*compiled, values);
    for (int run = 0; run < 2 && complaint.empty(); ++run)  // the first must not write to constants
      complaint = runner.run_and_compare(want, tolerance);
    if (!complaint.empty()) return text(name, ": ", complaint);
  }
  return {};
}

// Fails every allocation up to the finished plan once, one after the other: an error or success, no crash,
// and the next attempt works.
Complaint check_allocations(const Compiled& compiled, const Options& options, const Values& values,
                            const std::vector<ops::HostTensor>& want, const ops::Tolerance& tolerance) {
  for (long failing = 0; failing < 4000; failing = failing + 1 + failing / 8) {
    bool failed = false;
    {
      Runner runner;
      FailingNew scope(failing);
      Complaint complaint = runner.open(compiled, options);
      if (complaint.empty()) complaint = runner.feed(compiled, values);
      // Only up to the plan: librt allocates nothing during a run, but oneDNN 2.6 does and ends the process
      // when an allocation fails.
      if (complaint.empty()) complaint = take(rt_session_prepare(runner.session(), nullptr, 0));
      failed = scope.failed();
    }
    if (!failed) break;  // all allocations succeeded before the failing one
  }
  Runner runner;
  Complaint complaint = runner.open(compiled, options);
  if (complaint.empty()) complaint = runner.feed(compiled, values);
  if (complaint.empty()) complaint = runner.run_and_compare(want, tolerance);
  return complaint.empty() ? complaint : "after failed allocations: " + complaint;
}

struct Outcome {
  Complaint complaint;
  std::string gap;  ///< not empty: the reasons why the backend left nodes to the CPU
};

/// The reasons that the plan gives for its fallbacks, one per line.
std::string fallback_reasons(rt_session* session) {
  const char* plan = "";
  rt_status_free(rt_session_plan_text(session, &plan));
  std::istringstream lines(plan);
  std::string reasons;
  constexpr std::string_view kMark = "fallback: ";
  for (std::string line; std::getline(lines, line);)
    if (const size_t at = line.find(kMark); at != std::string::npos)
      append(reasons, reasons.empty() ? "" : "\n", line.substr(at + kMark.size()));
  return reasons.empty() ? "runs on the cpu, and the plan does not say why" : reasons;
}

Outcome run_case(const Case& c, const Options& given, SharedDevice& device, bool with_allocations) {
  const ops::Tolerance tolerance = c.tolerance.value_or(ops::compiler_page_of(c.op.type)->tolerance);
  const Values values = case_values(c);
  const auto want = reference(c, values);
  if (!want.ok()) return {"reference: " + want.status().message(), {}};
  const auto compiled = compile(c, values, false);
  if (!compiled.ok()) return {"compile: " + compiled.status().message(), {}};
  if (Complaint complaint = device.open(*compiled, given); !complaint.empty()) return {complaint, {}};
  Options options = given;
  options.device = device.session();
  Runner runner;
  Complaint complaint = runner.open(*compiled, options);
  if (complaint.empty()) complaint = runner.feed(*compiled, values);
  if (complaint.empty()) complaint = runner.run_and_compare(*want, tolerance);
  if (!complaint.empty()) return {complaint, {}};
  Outcome outcome;
  if (rt_session_fallback_count(runner.session()) > 0) outcome.gap = fallback_reasons(runner.session());
  const auto first = output_bytes(runner.session(), want->size());
  complaint = runner.run_and_compare(*want, tolerance);
  if (complaint.empty() && output_bytes(runner.session(), want->size()) != first)
    complaint = "the second run differs";
  if (complaint.empty()) complaint = check_guarded(runner, *want, tolerance);
  if (complaint.empty() && options.specials)
    complaint = check_specials(c, runner, *compiled, values, tolerance);
  if (complaint.empty() && options.hostile) complaint = check_hostile(c, options, values, tolerance);
  if (complaint.empty() && options.operands) complaint = check_operands(c, options, values, *want, tolerance);
  if (complaint.empty()) complaint = check_shapes(c, options, values, tolerance);
  if (complaint.empty() && with_allocations)
    complaint = check_allocations(*compiled, given, values, *want, tolerance);
  outcome.complaint = complaint;
  return outcome;
}

struct Gap {
  std::string reason;
  bool in_plan = false;  ///< the plan gives this reason
};

// Lines "backend case reason..."; '#' starts a comment.
void read_gaps(const std::string& path, bool in_plan, const std::string& backend,
               std::map<std::string, Gap>& gaps) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t first = line.find(' ');
    const size_t second = line.find(' ', first + 1);
    if (second == std::string::npos || line.substr(0, first) != backend) continue;
    gaps[line.substr(first + 1, second - first - 1)] = {line.substr(second + 1), in_plan};
  }
}

int run_all(const Options& options) {
  std::map<std::string, Gap> gaps;
  read_gaps(options.gaps, false, options.backend, gaps);
  read_gaps(options.refused, true, options.backend, gaps);
  const std::regex filter(options.filter);
  int passed = 0, failed = 0, skipped = 0, index = 0;
  SharedDevice device;
  std::vector<std::pair<double, std::string>> times;
  for (const Case& c : all_cases()) {
    ++index;
    if (index % options.every != 0 || !std::regex_search(c.name, filter)) continue;
    const std::clock_t begin = std::clock();
    // Drivers share this process's operator new and abort when it fails, so Vulkan is excluded.
    const Outcome outcome = run_case(
        c, options, device, index % 16 == 0 && options.backend != "vulkan" && options.backend != "cuda_emu");
    times.emplace_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, c.name);
    const auto listed = gaps.find(c.name);
    if (!outcome.complaint.empty()) {
      device.close();
      ++failed;
      std::printf("FAILED %s: %s\n", c.name.c_str(), outcome.complaint.c_str());
    } else if (!outcome.gap.empty() && listed == gaps.end()) {
      ++failed;
      std::printf("FAILED %s: a gap that is not listed: %s\n", c.name.c_str(), outcome.gap.c_str());
    } else if (!outcome.gap.empty() && listed->second.in_plan &&
               outcome.gap.find(listed->second.reason) == std::string::npos) {
      ++failed;
      std::printf("FAILED %s: listed as a gap because '%s', but the plan says: %s\n", c.name.c_str(),
                  listed->second.reason.c_str(), outcome.gap.c_str());
    } else if (!outcome.gap.empty()) {
      ++skipped;
      std::printf("gap %s: %s\n", c.name.c_str(), listed->second.reason.c_str());
    } else if (listed != gaps.end()) {
      ++failed;
      std::printf("FAILED %s: listed as a gap, but it is none any more; take it off\n", c.name.c_str());
    } else {
      ++passed;
    }
    std::fflush(stdout);
    if (listed != gaps.end()) gaps.erase(listed);
  }
  if (options.filter.empty() && options.every == 1)
    for (const auto& [name, gap] : gaps) {
      ++failed;
      std::printf("FAILED the unknown case %s is listed as a gap\n", name.c_str());
    }
  if (options.times) {
    std::ranges::sort(times, std::greater<>());
    for (const auto& [seconds, name] : std::span(times).first(std::min<size_t>(times.size(), 50)))
      std::printf("%8.3f s %s\n", seconds, name.c_str());
  }
  std::printf("%s: %d passed, %d failed, %d skipped\n", options.backend.c_str(), passed, failed, skipped);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace librt::test

int main(int argc, char** argv) {
  librt::test::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    bool* const flag = argument == "--validation" ? &options.validation
                       : argument == "--specials" ? &options.specials
                       : argument == "--hostile"  ? &options.hostile
                       : argument == "--operands" ? &options.operands
                       : argument == "--times"    ? &options.times
                                                  : nullptr;
    if (flag != nullptr) {
      *flag = true;
      continue;
    }
    std::string every;
    std::string* value = argument == "--backend"   ? &options.backend
                         : argument == "--filter"  ? &options.filter
                         : argument == "--every"   ? &every
                         : argument == "--gaps"    ? &options.gaps
                         : argument == "--refused" ? &options.refused
                                                   : nullptr;
    if (value == nullptr || i + 1 == argc) {
      std::fprintf(stderr, "conformance: unknown argument %s\n", argument.c_str());
      return 2;
    }
    *value = argv[++i];
    if (argument == "--every") options.every = std::max(1, std::atoi(every.c_str()));
  }
  return librt::test::run_all(options);
}
