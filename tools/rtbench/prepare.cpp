#include "tools/rtbench/prepare.h"

#if defined(__linux__)
#include <malloc.h>
#include <unistd.h>
#endif

#include <bit>
#include <fstream>

#include "tools/data/public_status.h"
#include "tools/data/random.h"
#include "tools/weights/adapter.h"

namespace librt::bench {
namespace {

// A tensor of the input's shape at a batch size.
rt::Result<rt::Tensor> shaped(const rt::TensorSpec& spec, const std::string& batch_name, int64_t batch,
                              const MeasureOptions& options) {
  std::vector<int64_t> dims;
  for (const rt::Dim& dim : spec.dims) {
    int64_t extent = dim.extent;
    if (extent < 0) {
      const auto given = options.dims.find(dim.symbol);
      if (given != options.dims.end())
        extent = given->second;
      else if (dim.symbol == batch_name)
        extent = batch;
      else
        return rt::Status(rt::Code::InvalidArgument, "input '" + spec.name + "' has the dynamic dimension '" +
                                                         dim.symbol + "'; give --dim " + dim.symbol + "=N");
    }
    dims.push_back(extent);
  }
  return rt::Tensor(spec.dtype, dims);
}

// Floats in [-1, 1), i64 and i32 in [0, bound); the bytes of other types are 0 or 1. No float is denormal,
// nor nearly: CPUs take a hundred times as long for a product that is.
void fill(rt::Tensor& tensor, uint64_t bound, uint64_t& state) {
  const auto next = [&state] { return split_mix(state); };
  const auto number = [&next] { return static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f; };
  switch (tensor.dtype()) {
    case rt::DType::F32:
      for (float& value : tensor.values<float>()) value = number();
      break;
    case rt::DType::F64:
      for (double& value : tensor.values<double>()) value = static_cast<double>(number());
      break;
    case rt::DType::BF16:  // the upper half of an f32
      for (uint16_t& value : tensor.values<uint16_t>())
        value = static_cast<uint16_t>(std::bit_cast<uint32_t>(number()) >> 16);
      break;
    case rt::DType::F16:  // sign, exponents 2^-5..2^-1, any fraction
      for (uint16_t& value : tensor.values<uint16_t>()) {
        const uint64_t bits = next();
        value = static_cast<uint16_t>((bits & 0x83ffu) | ((10 + (bits >> 16) % 5) << 10));
      }
      break;
    case rt::DType::I64:
      for (int64_t& value : tensor.values<int64_t>()) value = static_cast<int64_t>(next() % bound);
      break;
    case rt::DType::I32:
      for (int32_t& value : tensor.values<int32_t>()) value = static_cast<int32_t>(next() % bound);
      break;
    default:  // of the other integer types, and bool
      for (size_t i = 0; i < tensor.bytes(); ++i)
        static_cast<uint8_t*>(tensor.data())[i] = static_cast<uint8_t>(next() & 1);
      break;
  }
}

}  // namespace

rt::Result<rt::Model> load(const BenchModel& model, const rt::ModelOptions& options) {
  return rt::Model::load(model.path, options);
}

std::string batch_symbol(const BenchModel& model, const rt::Model& loaded, int64_t& fixed) {
  fixed = 1;
  for (const rt::TensorSpec& input : loaded.inputs(model.entry)) {
    if (input.dims.empty()) continue;
    fixed = input.dims[0].extent;
    return input.dims[0].extent >= 0 ? std::string() : input.dims[0].symbol;
  }
  return {};
}

rt::SessionOptions session_options(const BenchModel& model, const rt::DeviceInfo& device,
                                   const MeasureOptions& options) {
  return {.backend = device.backend,
          .device = std::to_string(device.index),
          .entry = model.entry,
          .precision = is_quantized(model.precision) ? std::string() : model.precision,
          .threads = options.threads,
          .profile = options.profile,
          .tuning = options.tuning,
          .memory_limit = options.memory_limit,
          .time_limit_ms = options.time_limit_ms,
          .no_replay = options.no_replay,
          .custom_operators = options.operators};
}

rt::Result<rt::Session> open_session(const rt::Model& model, const rt::SessionOptions& session_options,
                                     const MeasureOptions& options) {
  auto session = rt::Session::create(model, session_options);
  if (!session || options.adapter.empty()) return session;
  if (const Status status = tools::load_adapter(session->handle(), options.adapter); !status.ok())
    return as_public(status);
  return session;
}

rt::Status feed(rt::Session& session, const std::vector<rt::Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (rt::Status status = session.set_input(i, inputs[i]); !status) return status;
  return {};
}

rt::Status collect(rt::Session& session, Outputs& outputs) {
  outputs.clear();
  for (size_t i = 0; i < session.output_count(); ++i) {
    auto output = session.output(i);
    if (!output) return output.status();
    outputs.push_back(output->clone());
  }
  return {};
}

uint64_t resident_bytes() {
#if defined(__linux__)
  malloc_trim(0);
  uint64_t size = 0, resident = 0;
  if (!(std::ifstream("/proc/self/statm") >> size >> resident)) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
#else
  return 0;
#endif
}

rt::Result<std::vector<rt::Tensor>> make_inputs(const BenchModel& model, const rt::Model& loaded,
                                                int64_t batch, const MeasureOptions& options) {
  if (!model.entry.empty() && loaded.metadata("train.loss") == "ctc")
    return rt::Status(rt::Code::Unsupported,
                      "inputs cannot be generated for the loss ctc: lengths must fit its labels");
  int64_t fixed = 1;
  const std::string symbol = batch_symbol(model, loaded, fixed);
  std::vector<rt::Tensor> inputs;
  uint64_t state = 42;
  for (const rt::TensorSpec& spec : loaded.inputs(model.entry)) {
    auto tensor = shaped(spec, symbol, batch, options);
    if (!tensor) return tensor.status();
    if (!model.entry.empty() && spec.name == "learning_rate") {
      tensor->values<float>()[0] = options.learning_rate;
    } else {
      const auto bound = model.index_bounds.find(spec.name);
      fill(*tensor, bound == model.index_bounds.end() ? 1000 : static_cast<uint64_t>(bound->second), state);
    }
    inputs.push_back(std::move(*tensor));
  }
  return inputs;
}

}  // namespace librt::bench
