// For any model file and any inputs, a session runs or returns a Status; librt blames itself for none of
// them.
//
// An input is as in model_input.h; its bytes choose backend, options, shapes and values.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "runtime/core/element.h"
#include "tests/fuzz/model_input.h"

namespace {

using librt::fuzz::accepted;
using librt::fuzz::Choices;

constexpr size_t kMostInputBytes = 1 << 18;  // larger inputs are not given
// Flops and bytes of a run: enough for several blocks of every vector loop, a few milliseconds with
// sanitizers.
constexpr double kMostWork = 4e6;
constexpr double kMostReferenceWork = 3e5;  // the reference is slow

constexpr int64_t kExtents[] = {1,         2, 3, 0, 5, 4, 8, 17, 33, 64, 250, 1000, 1 << 20, int64_t{1} << 31,
                                INT64_MAX, -1};
constexpr int64_t kIntegers[] = {0,         -1,   1,    INT64_MIN, INT64_MAX,  int64_t{1} << 32, INT32_MIN,
                                 INT32_MAX, 255,  -129, 1'000'007, -1'000'003, INT64_MIN + 1,    2,
                                 -7,        65536};
constexpr double kReals[] = {std::numeric_limits<double>::quiet_NaN(),
                             0,
                             -0.0,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             3.4e38,
                             -3.4e38,
                             1e-42,
                             1,
                             -1,
                             1e9,
                             -1e9,
                             0.5,
                             65504,
                             1e30,
                             -1e-30};

void fill(void* data, rt::DType type, int64_t count, Choices& choices) {
  const librt::DType dtype{static_cast<uint8_t>(type)};
  const uint8_t kind = choices.next() % 6, first = choices.next();
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i) + first;
    if (dtype == librt::DType::Bool)
      librt::store_integer(data, dtype, i, static_cast<int64_t>(kind + at) % 2);
    else if (kind == 1)
      librt::store_integer(data, dtype, i, 0);
    else if (kind == 2 && librt::is_float(dtype))
      librt::store_element(data, dtype, i, kReals[at % std::size(kReals)]);
    else if (kind == 2)
      librt::store_integer(data, dtype, i, kIntegers[at % std::size(kIntegers)]);
    else if (librt::is_float(dtype))
      librt::store_element(data, dtype, i,
                           kind == 3 ? 1e3 * first : static_cast<double>(at * 37 % 101) / 50 - 1);
    else
      librt::store_integer(data, dtype, i,
                           kind == 3   ? -1 - static_cast<int64_t>(at % 5)
                           : kind == 4 ? first
                                       : static_cast<int64_t>(at % 3));
  }
}

/// Gives the input a shape and values that the declaration allows, or rarely others.
void set_input(rt::Session& session, size_t index, const rt::TensorSpec& spec,
               std::map<std::string, int64_t>& symbols, Choices& choices) {
  std::vector<int64_t> dims;
  for (const rt::Dim& dim : spec.dims) {
    int64_t extent = dim.extent;
    if (extent < 0) {
      const auto [entry, fresh] = symbols.try_emplace(dim.symbol, 0);
      if (fresh || dim.symbol.empty() || choices.rarely()) entry->second = choices.pick(kExtents);
      extent = entry->second;
    } else if (choices.rarely()) {
      extent = choices.pick(kExtents);
    }
    dims.push_back(extent);
  }
  rt::DType dtype = spec.dtype;
  if (choices.rarely()) dtype = rt::DType{static_cast<uint8_t>(choices.next() % 13)};
  size_t bytes = rt::size_of(dtype);
  for (const int64_t dim : dims)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(dim), &bytes) || bytes > kMostInputBytes)
      bytes = std::numeric_limits<size_t>::max() / 2;
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.dtype = static_cast<rt_dtype>(dtype);
  tensor.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims);
  std::vector<std::byte> data(bytes <= kMostInputBytes ? bytes : 0);
  if (!data.empty()) fill(data.data(), dtype, static_cast<int64_t>(bytes / rt::size_of(dtype)), choices);
  tensor.data = data.data();  // too large: no data, which is refused
  tensor.bytes = data.size();
  accepted(rt::Status::take(rt_session_set_input(session.handle(), index, &tensor)));
}

void read_results(rt::Session& session) {
  std::vector<std::byte> copy;
  for (size_t i = 0; i < session.output_count(); ++i) {
    rt_tensor result = RT_TENSOR_INIT;
    if (!accepted(rt::Status::take(rt_session_output(session.handle(), i, &result)))) continue;
    if (result.rank < 0 || result.rank > RT_MAX_RANK) std::abort();
    const auto* first = static_cast<const std::byte*>(result.data);
    copy.assign(first, first + rt::Tensor::borrow(result).bytes());
  }
  for (size_t i = 0; i < rt_session_state_count(session.handle()); ++i) {
    rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
    if (accepted(rt::Status::take(rt_session_state_spec(session.handle(), i, &spec, nullptr))))
      accepted(session.read_state(spec.name).status());
  }
  accepted(session.plan_text().status());
  (void)session.memory();
}

void use(const rt::Model& model, Choices& choices) {
  const uint8_t how = choices.next();
  const bool reference = (how & 1) != 0, apart = (how & 2) != 0;
  static constexpr const char* kPrecisions[] = {"", "", "", "fp16", "bf16", "fp32", "tf32", ""};
  rt::SessionOptions options;
  options.backend = reference ? "reference" : "cpu";
  options.entry = choices.pick(model.entries());
  options.precision = kPrecisions[how >> 5];
  options.threads = 1;
  options.profile = true;
  options.deterministic = (how & 4) != 0;
  options.strict = (how & 24) == 24;
  options.memory_limit = librt::fuzz::kMemory;
  options.plan_cache_bytes = 1 << 20;
  options.loop_limit = 100;
  options.time_limit_ms = 2000;
  auto session = rt::Session::create(model, options);
  if (!accepted(session.status())) return;
  const std::vector<rt::TensorSpec> inputs = session->inputs();
  for (int round = 0; round < 2; ++round) {
    std::map<std::string, int64_t> symbols;
    for (size_t i = 0; i < inputs.size(); ++i) set_input(*session, i, inputs[i], symbols, choices);
    if (!accepted(rt::Status::take(rt_session_prepare(session->handle(), nullptr, 0)))) continue;
    if (librt::fuzz::takes_more(*session, reference ? kMostReferenceWork : kMostWork)) return;
    const bool ran =
        apart ? accepted(session->submit()) && accepted(session->wait()) : accepted(session->run());
    if (ran) read_results(*session);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  librt::fuzz::require_backends({"cpu", "reference"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parts = librt::fuzz::parts_of(data, size);
  const auto model = rt::Model::from_memory(parts.file);
  if (!accepted(model.status())) return 0;
  Choices choices(parts.choices.data(), parts.choices.size());
  use(*model, choices);
  return 0;
}
