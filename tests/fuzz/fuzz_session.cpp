// For any model file and any inputs, a session runs or returns a Status; librt blames itself for none of
// them.
//
// An input is a .rt file, followed by bytes that choose backend, options, shapes and values (Choices). They
// may end early. Mutations change the model's graph (model_mutator.h) or these bytes; the container's own
// bytes are for fuzz_reader.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "runtime/core/element.h"
#include "runtime/model/format.h"
#include "runtime/model/reader.h"
#include "tests/fuzz/model_mutator.h"
#include "tools/compiler/writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

using librt::Blob;
using librt::ModelGraph;
using librt::fuzz::Random;

constexpr uint64_t kMemory = 32 << 20;       // bytes of a session
constexpr size_t kMostInputBytes = 1 << 18;  // larger inputs are not given
// Flops and bytes of a run: enough for several blocks of every vector loop, a few milliseconds with
// sanitizers.
constexpr double kMostWork = 4e6;
constexpr double kMostReferenceWork = 3e5;  // the reference is slow
constexpr size_t kMostChoices = 96;         // bytes

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

/// Bytes that decide, one after the other; zeros past their end.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t next() { return at_ < size_ ? data_[at_++] : uint8_t{0}; }
  bool rarely() { return next() >= 240; }
  template <class List>
  const auto& pick(const List& list) {
    return list[next() % std::size(list)];
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

bool accepted(const rt::Status& status) {
  if (status.ok()) return true;
  if (!status.message().empty() && status.code() != rt::Code::Internal) return false;
  std::fprintf(stderr, "a status that no input may have: code %d, '%s'\n", static_cast<int>(status.code()),
               status.message().c_str());
  std::abort();
}

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

bool too_much(const rt::Session& session, double most) {
  double work = 0;
  for (const rt_profile_entry& entry : session.profile()) work += entry.flops + entry.bytes;
  return !(work <= most);
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
  options.memory_limit = kMemory;
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
    if (too_much(*session, reference ? kMostReferenceWork : kMostWork)) return;
    const bool ran =
        apart ? accepted(session->submit()) && accepted(session->wait()) : accepted(session->run());
    if (ran) read_results(*session);
  }
}

// --- mutations

struct Parts {
  std::vector<std::byte> file;
  std::vector<uint8_t> choices;
};

/// The file ends where its header says.
Parts parts_of(const uint8_t* data, size_t size) {
  librt::FileHeader header;
  size_t end = size;
  if (size >= sizeof header) {
    std::memcpy(&header, data, sizeof header);
    end = static_cast<size_t>(std::min<uint64_t>(size, header.file_bytes));
  }
  const auto* first = reinterpret_cast<const std::byte*>(data);
  return {{first, first + end}, {data + end, data + size}};
}

librt::Result<ModelGraph> model_of(const std::vector<std::byte>& file) {
  return librt::read_model(Blob::copy_of(file.data(), file.size()),
                           {.nodes = 1000, .values = 10000, .graph_bytes = 16 << 20, .memory = kMemory});
}

/// The input's new size; 0 if it does not fit.
size_t write(const ModelGraph& model, const std::vector<uint8_t>& choices, uint8_t* data, size_t most) {
  const auto file = librt::compiler::serialize_model(model);
  if (!file.ok() || file->size() + choices.size() > most) return 0;
  std::memcpy(data, file->data(), file->size());
  std::copy(choices.begin(), choices.end(), data + file->size());
  return file->size() + choices.size();
}

}  // namespace

/// Without the backends nothing would be tested.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const auto found = rt::Devices::list();
  size_t devices = 0;
  for (const auto& backend : found.ok() ? found->backends : std::vector<rt::Devices::Backend>()) {
    if (backend.name != "cpu" && backend.name != "reference") continue;
    devices += backend.reason.empty() ? 1 : 0;
    if (!backend.reason.empty())
      std::fprintf(stderr, "%s: %s\n", backend.name.c_str(), backend.reason.c_str());
  }
  if (devices != 2) std::abort();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Parts parts = parts_of(data, size);
  const auto model = rt::Model::from_memory(parts.file);
  if (!accepted(model.status())) return 0;
  Choices choices(parts.choices.data(), parts.choices.size());
  use(*model, choices);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  Parts parts = parts_of(data, size);
  auto model = model_of(parts.file);
  if (!model.ok()) return LLVMFuzzerMutate(data, size, most);
  if (random.one_in(3)) {
    const size_t had = parts.choices.size();
    parts.choices.resize(kMostChoices);
    parts.choices.resize(LLVMFuzzerMutate(parts.choices.data(), std::min(had, kMostChoices), kMostChoices));
  } else {
    librt::fuzz::mutate(*model, random);
  }
  const size_t written = write(*model, parts.choices, data, most);
  return written != 0 ? written : size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t most, unsigned seed) {
  Random random(seed);
  const Parts parts = parts_of(data, size), other_parts = parts_of(other, other_size);
  auto model = model_of(parts.file);
  const auto from = model_of(other_parts.file);
  if (!model.ok() || !from.ok() || !librt::fuzz::splice(*model, *from, random)) return 0;
  return write(*model, parts.choices.empty() ? other_parts.choices : parts.choices, out, most);
}
