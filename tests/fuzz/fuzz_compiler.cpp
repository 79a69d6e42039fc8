// Whatever a valid model computes, it computes after the compiler's passes, too: with all of them or with
// some, the optimized graph is valid, can be written and read, has the same inputs and outputs, and on the
// reference backend the same results; or the compiler refuses it with a Status.
//
// An input is as in model_input.h; its bytes choose passes, options, shapes and values. Results may differ by
// a multiple of what rounding does to them: the first graph is run again with its inputs and constants
// changed in the last bits, which shows where a graph amplifies that, or jumps. Values near the limits of
// float are left out.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "runtime/core/element.h"
#include "runtime/graph/attributes.h"
#include "runtime/graph/print.h"
#include "tests/fuzz/model_input.h"
#include "tests/fuzz/random.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/writer.h"

namespace {

using librt::DType;
using librt::Graph;
using librt::ModelGraph;
using librt::Value;
using librt::fuzz::accepted;
using librt::fuzz::Choices;
using librt::fuzz::Random;

constexpr size_t kMostInputBytes = 1 << 16;
constexpr double kMostWork = 3e5;  // flops and bytes of a run: the reference is slow
constexpr size_t kMostNodes = 200;
/// Constants and attributes that may lead out of the range of float when they are folded.
constexpr double kLargest = 1e4, kSmallest = 1e-4;
constexpr int64_t kExtents[] = {2, 1, 3, 4, 5, 8, 17, 6};

[[noreturn]] void wrong(const std::string& what, const ModelGraph& before, const ModelGraph& after) {
  std::fprintf(stderr, "%s\n--- before\n", what.c_str());
  for (const auto& entry : before.entries) std::fprintf(stderr, "%s\n", print(entry.graph).c_str());
  std::fprintf(stderr, "--- after\n");
  for (const auto& entry : after.entries) std::fprintf(stderr, "%s\n", print(entry.graph).c_str());
  std::abort();
}

// --- what can be compared

bool is_tame(double value) {
  const double size = std::abs(value);
  return size == 0 || (size >= kSmallest && size <= kLargest);
}

bool is_tame(const librt::OpAttributes& op) {
  for (const librt::AttributeField& field : librt::fields_of(op.type)) {
    if (field.type == librt::FieldType::F32 && !is_tame(double{field.of<float>(op.value)})) return false;
    if (field.type == librt::FieldType::F64 && !is_tame(field.of<double>(op.value))) return false;
    if (field.type != librt::FieldType::F32List) continue;
    for (const float value : field.of<std::vector<float>>(op.value))
      if (!is_tame(double{value})) return false;
  }
  return true;
}

bool is_tame(const Graph& graph) {
  for (const Value& value : graph.values) {
    if (value.quantization)
      for (const float scale : value.quantization->scale)
        if (!is_tame(double{scale})) return false;
    if (value.role != librt::Role::Constant || !librt::is_float(value.dtype)) continue;
    for (int64_t i = 0; i < value.info().elements(); ++i)
      if (!is_tame(librt::load_element(value.data.data, value.dtype, i))) return false;
  }
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const librt::Node& node) {
    return is_tame(node.op) && std::all_of(node.bodies.begin(), node.bodies.end(),
                                           [](const Graph& body) { return is_tame(body); });
  });
}

/// The relative rounding of the coarsest type of float in the graph, some bits above its last one.
double rounding_of(const Graph& graph) {
  double rounding = 0x1p-20;
  for (const Value& value : graph.values) {
    if (value.dtype == DType::F16) rounding = std::max(rounding, 0x1p-8);
    if (value.dtype == DType::BF16) rounding = std::max(rounding, 0x1p-5);
    if (librt::is_float(value.dtype) && librt::size_of(value.dtype) == 1) rounding = std::max(rounding, 0.5);
  }
  for (const librt::Node& node : graph.nodes)
    for (const Graph& body : node.bodies) rounding = std::max(rounding, rounding_of(body));
  return rounding;
}

void disturb(void* data, DType dtype, int64_t count, double by, Random& random) {
  for (int64_t i = 0; i < count; ++i)
    librt::store_element(data, dtype, i,
                         librt::load_element(data, dtype, i) * (random.one_in(2) ? 1 + by : 1 - by));
}

void disturb(Graph& graph, double by, Random& random) {
  for (Value& value : graph.values) {
    if (value.role != librt::Role::Constant || !librt::is_float(value.dtype)) continue;
    std::vector<std::byte> bytes(value.data.data, value.data.data + value.data.size);
    disturb(bytes.data(), value.dtype, value.info().elements(), by, random);
    value.data = librt::Blob::own(std::move(bytes));
  }
  for (librt::Node& node : graph.nodes)
    for (Graph& body : node.bodies) disturb(body, by, random);
}

// --- running

struct Array {
  DType dtype = DType::F32;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;

  bool operator==(const Array& other) const = default;
  int64_t count() const { return static_cast<int64_t>(bytes.size() / librt::size_of(dtype)); }
};
using Arrays = std::vector<Array>;

Array array_of(const rt::Tensor& tensor) {
  const auto* data = static_cast<const std::byte*>(tensor.data());
  return {DType{static_cast<uint8_t>(tensor.dtype())},
          {tensor.dims().begin(), tensor.dims().end()},
          {data, data + tensor.bytes()}};
}

/// Tensors for the inputs; nullopt: they would be too large. Floats are multiples of 1/64 in [-2, 2).
std::optional<Arrays> make_inputs(const Graph& graph, Choices& choices) {
  Arrays arrays;
  std::map<std::string, int64_t> symbols;
  for (const librt::ValueId id : graph.inputs) {
    const Value& value = graph[id];
    Array& array = arrays.emplace_back();
    array.dtype = value.dtype;
    size_t bytes = librt::size_of(value.dtype);
    for (const librt::Dim& dim : value.dims) {
      int64_t extent = dim.extent;
      if (!dim.is_known()) {
        const std::string name = dim.symbol < 0 ? "" : graph.symbols[static_cast<size_t>(dim.symbol)].name;
        const auto [entry, fresh] = symbols.try_emplace(name, 0);
        if (fresh || name.empty()) entry->second = choices.pick(kExtents);
        extent = entry->second;
      }
      array.dims.push_back(extent);
      bytes *= static_cast<size_t>(extent);
      if (bytes > kMostInputBytes) return std::nullopt;
    }
    array.bytes.resize(bytes);
    const size_t kind = choices.next() % 4, first = choices.next();
    for (int64_t i = 0; i < array.count(); ++i) {
      const size_t number = (static_cast<size_t>(i) + first) * 37 % 257;
      if (librt::is_float(value.dtype))
        librt::store_element(array.bytes.data(), value.dtype, i,
                             kind == 1 ? 0 : static_cast<double>(number % 256) / 64 - 2);
      else
        librt::store_integer(array.bytes.data(), value.dtype, i,
                             value.dtype == DType::Bool ? static_cast<int64_t>(number % 2)
                             : kind == 1                ? 0
                                                        : static_cast<int64_t>(number % (kind == 2 ? 3 : 9)));
    }
  }
  return arrays;
}

/// What an entry gives: outputs and states, or why not.
struct Outcome {
  Arrays results;
  rt::Status status;
  bool too_much = false;
};

Outcome run(const std::vector<std::byte>& file, const std::string& entry, const Arrays& inputs) {
  Outcome outcome;
  const auto fail = [&](rt::Status status) {
    accepted(status);
    outcome.status = std::move(status);
    return outcome;
  };
  const auto model = rt::Model::from_memory(file);
  if (!model) return fail(model.status());
  rt::SessionOptions options;
  options.backend = "reference";
  options.entry = entry;
  options.threads = 1;
  options.profile = true;
  options.memory_limit = librt::fuzz::kMemory;
  options.loop_limit = 100;
  options.time_limit_ms = 2000;
  auto session = rt::Session::create(*model, options);
  if (!session) return fail(session.status());
  for (size_t i = 0; i < inputs.size(); ++i) {
    // const_cast is safe: set_input() only copies from it.
    auto* data = const_cast<std::byte*>(inputs[i].bytes.data());
    const auto tensor =
        rt::Tensor::borrow(rt::DType{static_cast<uint8_t>(inputs[i].dtype)}, inputs[i].dims, data);
    if (rt::Status status = session->set_input(i, tensor); !status) return fail(status);
  }
  if (rt::Status status = session->prepare(); !status) return fail(status);
  outcome.too_much = librt::fuzz::takes_more(*session, kMostWork);
  if (outcome.too_much) return outcome;
  if (rt::Status status = session->run(); !status) return fail(status);
  for (size_t i = 0; i < session->output_count(); ++i) {
    const auto output = session->output(i);
    if (!output) return fail(output.status());
    outcome.results.push_back(array_of(*output));
  }
  for (size_t i = 0; i < rt_session_state_count(session->handle()); ++i) {
    rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
    if (rt_status* status = rt_session_state_spec(session->handle(), i, &spec, nullptr); status != nullptr)
      return fail(rt::Status::take(status));
    const auto state = session->read_state(spec.name);
    if (!state) return fail(state.status());
    outcome.results.push_back(array_of(*state));
  }
  return outcome;
}

// --- comparing

/// Where it differs by more than the tolerance, in words; empty: nowhere. disturbed: of the graph with other
/// last bits.
std::string difference(const Array& got, const Array& want, const std::vector<const Array*>& disturbed,
                       double rounding) {
  if (got.dtype != want.dtype || got.dims != want.dims) return "another type or shape";
  if (got.bytes == want.bytes) return "";
  const auto at = [](const Array& array, int64_t i) {
    return librt::load_element(array.bytes.data(), array.dtype, i);
  };
  double largest = 0, moved = 0;
  for (int64_t i = 0; i < want.count(); ++i) {
    const double value = at(want, i);
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    for (const Array* other : disturbed) {
      if (other->dims != want.dims) return "";  // extents that follow from values which jump
      const double distance = std::abs(at(*other, i) - value);
      if (!std::isfinite(distance) && std::isfinite(value)) return "";
      if (std::isfinite(distance)) moved = std::max(moved, distance);
    }
  }
  const bool real = librt::is_float(want.dtype);
  if (!real && moved > 0) return "";  // an index or a truth that a last bit decides
  if (largest > 1e12) return "";
  const double tolerance = real ? 64 * moved + 16 * rounding * largest + rounding * 0.01 : 0;
  for (int64_t i = 0; i < want.count(); ++i) {
    const double value = at(want, i), found = at(got, i);
    if (!std::isfinite(value)) continue;  // an overflow, which another order of computing may avoid
    if (!(std::abs(found - value) <= tolerance))
      return librt::text("element ", i, " is ", std::to_string(found), ", before ", std::to_string(value),
                         ", tolerance ", std::to_string(tolerance));
  }
  return "";
}

bool same_interface(const Graph& a, const Graph& b) {
  const auto same = [&](const std::vector<librt::ValueId>& of_a, const std::vector<librt::ValueId>& of_b) {
    if (of_a.size() != of_b.size()) return false;
    for (size_t i = 0; i < of_a.size(); ++i) {
      const Value &x = a[of_a[i]], &y = b[of_b[i]];
      if (x.name != y.name || x.dtype != y.dtype || x.rank() != y.rank()) return false;
    }
    return true;
  };
  return same(a.inputs, b.inputs) && same(a.outputs, b.outputs);
}

/// Folded constants may take more memory than what they were computed from.
bool is_limit(rt::Code code) {
  return code == rt::Code::OutOfMemory || code == rt::Code::LimitExceeded || code == rt::Code::Unsupported;
}

/// Compares an entry of the model before and after. A model that never runs may be refused at any stage.
/// refused: by the compiler.
void compare(const ModelGraph& before, const std::vector<std::byte>& file, const ModelGraph& after,
             const rt::Status& refused, size_t entry, bool values, Choices& choices) {
  const Graph& graph = before.entries[entry].graph;
  const std::string& name = before.entries[entry].name;
  const auto inputs = make_inputs(graph, choices);
  if (!inputs) return;
  const Outcome want = run(file, name, *inputs);
  if (!want.status.ok() || want.too_much) return;
  if (!refused.ok() && is_limit(refused.code())) return;
  if (!refused.ok()) wrong("optimize: " + std::string(refused.message()), before, after);
  const auto written = librt::compiler::serialize_model(after);
  if (!written.ok()) wrong("writing: " + written.status().message(), before, after);
  const Outcome got = run(*written, name, *inputs);
  if (got.too_much || (!got.status.ok() && is_limit(got.status.code()))) return;
  if (!got.status.ok())
    wrong("the optimized model fails: " + std::string(got.status.message()), before, after);
  if (got.results.size() != want.results.size()) wrong("another number of results", before, after);
  if (!values || got.results == want.results) return;
  const double rounding = rounding_of(graph);
  std::vector<Outcome> disturbed;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}}) {
    Random random(seed);
    ModelGraph model = before;
    disturb(model.entries[entry].graph, rounding, random);
    Arrays near = *inputs;
    for (Array& array : near)
      if (librt::is_float(array.dtype))
        disturb(array.bytes.data(), array.dtype, array.count(), rounding, random);
    const auto bytes = librt::compiler::serialize_model(model);
    if (!bytes.ok()) return;
    disturbed.push_back(run(*bytes, name, near));
    if (!disturbed.back().status.ok() || disturbed.back().results.size() != want.results.size()) return;
  }
  for (size_t i = 0; i < want.results.size(); ++i) {
    const std::string found = difference(got.results[i], want.results[i],
                                         {&disturbed[0].results[i], &disturbed[1].results[i]}, rounding);
    if (!found.empty()) wrong(librt::text("entry '", name, "', result ", i, ": ", found), before, after);
  }
}

librt::compiler::PipelineOptions chosen_options(Choices& choices) {
  librt::compiler::PipelineOptions options;
  const uint8_t how = choices.next();
  static constexpr std::array<DType, 8> kPrecisions = {DType::F32, DType::F32, DType::F32, DType::F32,
                                                       DType::F32, DType::F32, DType::F16, DType::BF16};
  options.precision = kPrecisions[how & 7];
  options.compute_f32 = (how & 8) == 0;
  options.residuals = (how & 16) == 0;
  options.widen = (how & 32) != 0;
  if ((how & 64) == 0) return options;
  for (const librt::compiler::Pass& pass : librt::compiler::all_passes())
    // Bodies must be there in a file.
    if (choices.next() >= 192 && pass.name != "expand") options.disabled.emplace_back(pass.name);
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  librt::fuzz::require_backends({"reference"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parts = librt::fuzz::parts_of(data, size);
  const auto model = librt::fuzz::model_of(parts.file);
  if (!model.ok() || model->entries.empty()) return 0;
  size_t nodes = 0;
  bool tame = true;
  for (const auto& entry : model->entries) {
    nodes += entry.graph.nodes.size();
    tame = tame && is_tame(entry.graph);
  }
  if (nodes > kMostNodes) return 0;
  Choices choices(parts.choices.data(), parts.choices.size());
  const auto options = chosen_options(choices);
  ModelGraph optimized = *model;
  const librt::Status status = librt::compiler::optimize(optimized, options, nullptr);
  if (status.message().empty() != status.ok() || status.code() == librt::Code::Internal)
    wrong("optimize: " + status.message(), *model, optimized);
  for (size_t i = 0; i < model->entries.size(); ++i)
    if (status.ok() && !same_interface(model->entries[i].graph, optimized.entries[i].graph))
      wrong("other inputs or outputs", *model, optimized);
  // Values in 16 bits may overflow where the model's do not.
  const bool values = tame && options.precision == DType::F32;
  const size_t entry = choices.next() % model->entries.size();
  const rt::Status refused =
      status.ok() ? rt::Status()
                  : rt::Status(rt::Code{static_cast<uint8_t>(status.code())}, status.message());
  compare(*model, parts.file, optimized, refused, entry, values, choices);
  return 0;
}
