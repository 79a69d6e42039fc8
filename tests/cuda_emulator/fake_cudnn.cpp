// cuDNN for the emulated device: descriptors with typed attributes that are checked when finalized, graphs of
// one convolution with an epilogue, engines with notes, plans, accumulation in double. Of the engines
// proposed by the heuristics, all but the last are unsuitable: one cannot be built, one is less accurate, one
// is nondeterministic, one needs too much memory.
#include "tests/cuda_emulator/fake_cudnn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/libraries/cudnn_api.h"
#include "cuda_emulator/device.h"
#include "tests/cuda_emulator/fake_numbers.h"

namespace {

using namespace librt::cuda::cudnn_api;  // NOLINT: the library that this file replaces
using cuda_emulator::load;
using cuda_emulator::store;

enum Engine : int { CannotBeBuilt, LessExact, NotTheSame, TooMuchMemory, Good, kEngines };
constexpr int64_t kWorkspace = 512, kTooMuch = int64_t{1} << 33;

thread_local std::string last_error;
Status fail(Status status, std::string why) {
  last_error = std::move(why);
  return status;
}

/// Five axes: outer, channels, three spatial ones; missing ones have extent 1.
struct Tensor {
  cudaDataType_t type = CUDA_R_32F;
  std::array<int64_t, 5> extent{1, 1, 1, 1, 1}, stride{};
  int64_t id = 0;
  bool is_virtual = false;

  int64_t offset(const std::array<int64_t, 5>& at) const {
    int64_t sum = 0;
    for (size_t i = 0; i < 5; ++i) sum += (extent[i] == 1 ? 0 : at[i]) * stride[i];
    return sum;
  }
  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t e : extent) product *= e;
    return product;
  }
};
struct Window {
  std::array<int64_t, 3> stride{1, 1, 1}, dilation{1, 1, 1}, before{}, after{};
};
struct Operation {
  DescriptorKind kind = DescriptorKind::OperationPointwise;
  Window window;
  PointwiseMode mode = PointwiseMode::Add;
  double lower = 0, upper = HUGE_VAL, slope = 0, beta = 1;
  /// For a convolution x, weight, y; for a pointwise operation two operands and the result.
  std::array<Tensor, 3> tensors;
  bool has_second = false;

  size_t result() const {
    return kind == DescriptorKind::OperationConvolutionBackwardData     ? 0
           : kind == DescriptorKind::OperationConvolutionBackwardFilter ? 1
                                                                        : 2;
  }
};
using Program = std::vector<Operation>;

struct Attributes {
  AttributeType type;
  int64_t count;
  std::vector<std::byte> bytes;
};
struct Object {
  DescriptorKind kind;
  bool finalized = false;
  std::map<Attribute, Attributes> attributes;
  std::shared_ptr<const Program> program;  ///< of a graph and the objects derived from it
  int engine = 0;

  template <class T>
  std::vector<T> all(Attribute attribute) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return {};
    std::vector<T> values(static_cast<size_t>(found->second.count));
    for (size_t i = 0; i < values.size(); ++i)
      std::memcpy(&values[i], found->second.bytes.data() + i * sizeof(T), sizeof(T));
    return values;
  }
  template <class T>
  T one(Attribute attribute, T otherwise = {}) const {
    const std::vector<T> values = all<T>(attribute);
    return values.empty() ? otherwise : values[0];
  }
  bool has(Attribute attribute) const { return attributes.count(attribute) > 0; }
};
Object& object_of(Descriptor descriptor) {
  return *static_cast<Object*>(descriptor);
}

// --- allowed attributes of descriptors

struct Known {
  DescriptorKind kind;
  Attribute attribute;
  AttributeType type;
  bool required = true;
};
using Type = AttributeType;
constexpr Known kKnown[] = {
    {DescriptorKind::Tensor, Attribute::TensorDataType, Type::DataType},
    {DescriptorKind::Tensor, Attribute::TensorDimensions, Type::Int64},
    {DescriptorKind::Tensor, Attribute::TensorStrides, Type::Int64},
    {DescriptorKind::Tensor, Attribute::TensorUniqueId, Type::Int64},
    {DescriptorKind::Tensor, Attribute::TensorByteAlignment, Type::Int64},
    {DescriptorKind::Tensor, Attribute::TensorIsVirtual, Type::Boolean, false},
    {DescriptorKind::Convolution, Attribute::ConvolutionSpatialDims, Type::Int64},
    {DescriptorKind::Convolution, Attribute::ConvolutionComputeType, Type::DataType},
    {DescriptorKind::Convolution, Attribute::ConvolutionMode, Type::ConvolutionMode},
    {DescriptorKind::Convolution, Attribute::ConvolutionFilterStrides, Type::Int64},
    {DescriptorKind::Convolution, Attribute::ConvolutionDilations, Type::Int64},
    {DescriptorKind::Convolution, Attribute::ConvolutionPrePaddings, Type::Int64},
    {DescriptorKind::Convolution, Attribute::ConvolutionPostPaddings, Type::Int64},
    {DescriptorKind::OperationConvolutionForward, Attribute::ForwardX, Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionForward, Attribute::ForwardW, Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionForward, Attribute::ForwardY, Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionForward, Attribute::ForwardConvolution, Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionForward, Attribute::ForwardAlpha, Type::Float},
    {DescriptorKind::OperationConvolutionForward, Attribute::ForwardBeta, Type::Float},
    {DescriptorKind::OperationConvolutionBackwardData, Attribute::BackwardDataDx, Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionBackwardData, Attribute::BackwardDataW, Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionBackwardData, Attribute::BackwardDataDy, Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionBackwardData, Attribute::BackwardDataConvolution,
     Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionBackwardData, Attribute::BackwardDataAlpha, Type::Float},
    {DescriptorKind::OperationConvolutionBackwardData, Attribute::BackwardDataBeta, Type::Float},
    {DescriptorKind::OperationConvolutionBackwardFilter, Attribute::BackwardFilterX, Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionBackwardFilter, Attribute::BackwardFilterDw,
     Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionBackwardFilter, Attribute::BackwardFilterDy,
     Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionBackwardFilter, Attribute::BackwardFilterConvolution,
     Type::BackendDescriptor},
    {DescriptorKind::OperationConvolutionBackwardFilter, Attribute::BackwardFilterAlpha, Type::Float},
    {DescriptorKind::OperationConvolutionBackwardFilter, Attribute::BackwardFilterBeta, Type::Float},
    {DescriptorKind::Pointwise, Attribute::PointwiseMode, Type::PointwiseMode},
    {DescriptorKind::Pointwise, Attribute::PointwiseMathPrecision, Type::DataType},
    {DescriptorKind::Pointwise, Attribute::PointwiseReluLowerClip, Type::Double, false},
    {DescriptorKind::Pointwise, Attribute::PointwiseReluUpperClip, Type::Double, false},
    {DescriptorKind::Pointwise, Attribute::PointwiseReluLowerClipSlope, Type::Double, false},
    {DescriptorKind::Pointwise, Attribute::PointwiseSwishBeta, Type::Double, false},
    {DescriptorKind::OperationPointwise, Attribute::OperationPointwiseDescriptor, Type::BackendDescriptor},
    {DescriptorKind::OperationPointwise, Attribute::OperationPointwiseX, Type::BackendDescriptor},
    {DescriptorKind::OperationPointwise, Attribute::OperationPointwiseB, Type::BackendDescriptor, false},
    {DescriptorKind::OperationPointwise, Attribute::OperationPointwiseY, Type::BackendDescriptor},
    {DescriptorKind::OperationGraph, Attribute::GraphHandle, Type::LibraryHandle},
    {DescriptorKind::OperationGraph, Attribute::GraphOperations, Type::BackendDescriptor},
    {DescriptorKind::EngineHeuristics, Attribute::HeuristicsOperationGraph, Type::BackendDescriptor},
    {DescriptorKind::EngineHeuristics, Attribute::HeuristicsMode, Type::HeuristicMode},
    {DescriptorKind::ExecutionPlan, Attribute::PlanHandle, Type::LibraryHandle},
    {DescriptorKind::ExecutionPlan, Attribute::PlanConfiguration, Type::BackendDescriptor},
    {DescriptorKind::VariantPack, Attribute::PackUniqueIds, Type::Int64},
    {DescriptorKind::VariantPack, Attribute::PackDataPointers, Type::VoidPointer},
    {DescriptorKind::VariantPack, Attribute::PackWorkspace, Type::VoidPointer},
};

size_t size_of(AttributeType type) {
  switch (type) {
    case Type::Boolean:
    case Type::Char: return 1;
    case Type::LibraryHandle:
    case Type::Int64:
    case Type::Double:
    case Type::VoidPointer:
    case Type::BackendDescriptor: return 8;
    default: return 4;
  }
}

// --- from descriptors to a program

Status read_tensor(Descriptor from, Tensor& tensor) {
  if (from == nullptr || object_of(from).kind != DescriptorKind::Tensor || !object_of(from).finalized)
    return fail(Status::BadParameter, "not a finalized tensor");
  const Object& object = object_of(from);
  const auto extents = object.all<int64_t>(Attribute::TensorDimensions);
  const auto strides = object.all<int64_t>(Attribute::TensorStrides);
  switch (object.one<DataType>(Attribute::TensorDataType)) {
    case DataType::Float: tensor.type = CUDA_R_32F; break;
    case DataType::Half: tensor.type = CUDA_R_16F; break;
    case DataType::BFloat16: tensor.type = CUDA_R_16BF; break;
  }
  std::copy(extents.begin(), extents.end(), tensor.extent.begin());
  std::copy(strides.begin(), strides.end(), tensor.stride.begin());
  tensor.id = object.one<int64_t>(Attribute::TensorUniqueId);
  tensor.is_virtual = object.one<uint8_t>(Attribute::TensorIsVirtual) != 0;
  return Status::Success;
}

Status check_tensor(const Object& object) {
  const auto extents = object.all<int64_t>(Attribute::TensorDimensions);
  const auto strides = object.all<int64_t>(Attribute::TensorStrides);
  if (extents.size() != strides.size() || extents.size() < 4 || extents.size() > 5)
    return fail(Status::NotSupported, "tensors have 4 or 5 axes");
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] < 1 || strides[i] < 1)
      return fail(Status::BadParameter, "extents and strides are positive");
  return object.one<int64_t>(Attribute::TensorByteAlignment) == 16
             ? Status::Success
             : fail(Status::BadParameter, "an alignment that values do not have");
}

Status check_convolution(const Object& object) {
  const auto axes = static_cast<size_t>(object.one<int64_t>(Attribute::ConvolutionSpatialDims));
  if (axes != 2 && axes != 3) return fail(Status::NotSupported, "convolutions have 2 or 3 spatial axes");
  for (const Attribute each : {Attribute::ConvolutionFilterStrides, Attribute::ConvolutionDilations,
                               Attribute::ConvolutionPrePaddings, Attribute::ConvolutionPostPaddings})
    if (object.all<int64_t>(each).size() != axes)
      return fail(Status::BadParameter, "one number for each axis");
  return Status::Success;
}

Status read_convolution(const Object& object, Operation& operation) {
  const auto first = [&](Attribute forward, Attribute data, Attribute filter) {
    return object.kind == DescriptorKind::OperationConvolutionForward        ? forward
           : object.kind == DescriptorKind::OperationConvolutionBackwardData ? data
                                                                             : filter;
  };
  const Attribute tensors[] = {
      first(Attribute::ForwardX, Attribute::BackwardDataDx, Attribute::BackwardFilterX),
      first(Attribute::ForwardW, Attribute::BackwardDataW, Attribute::BackwardFilterDw),
      first(Attribute::ForwardY, Attribute::BackwardDataDy, Attribute::BackwardFilterDy)};
  for (size_t i = 0; i < 3; ++i)
    if (const Status status = read_tensor(object.one<Descriptor>(tensors[i]), operation.tensors[i]);
        status != Status::Success)
      return status;
  if (object.one<float>(first(Attribute::ForwardAlpha, Attribute::BackwardDataAlpha,
                              Attribute::BackwardFilterAlpha)) != 1 ||
      object.one<float>(
          first(Attribute::ForwardBeta, Attribute::BackwardDataBeta, Attribute::BackwardFilterBeta)) != 0)
    return fail(Status::NotSupported, "only 1 times the product and 0 times what was there");
  const auto descriptor =
      object.one<Descriptor>(first(Attribute::ForwardConvolution, Attribute::BackwardDataConvolution,
                                   Attribute::BackwardFilterConvolution));
  if (!object_of(descriptor).finalized)
    return fail(Status::BadParameter, "a convolution that is not finalized");
  const auto read_axes = [&](Attribute attribute, std::array<int64_t, 3>& to) {
    const auto values = object_of(descriptor).all<int64_t>(attribute);
    std::copy(values.begin(), values.end(), to.begin());
  };
  Window& window = operation.window;
  read_axes(Attribute::ConvolutionFilterStrides, window.stride);
  read_axes(Attribute::ConvolutionDilations, window.dilation);
  read_axes(Attribute::ConvolutionPrePaddings, window.before);
  read_axes(Attribute::ConvolutionPostPaddings, window.after);
  const auto& [x, w, y] = operation.tensors;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t reach = (w.extent[i + 2] - 1) * window.dilation[i] + 1;
    const int64_t slack = x.extent[i + 2] + window.before[i] + window.after[i] - reach;
    if (window.before[i] < 0 || window.after[i] < 0 || slack < 0 ||
        y.extent[i + 2] != slack / window.stride[i] + 1)
      return fail(Status::BadParameter, "extents of image, filter and result disagree");
  }
  if (x.extent[0] != y.extent[0] || y.extent[1] != w.extent[0] || x.extent[1] % w.extent[1] != 0 ||
      y.extent[1] % (x.extent[1] / w.extent[1]) != 0)
    return fail(Status::BadParameter, "channels of image, filter and result disagree");
  return Status::Success;
}

Status read_pointwise(const Object& object, Operation& operation) {
  const auto function = object.one<Descriptor>(Attribute::OperationPointwiseDescriptor);
  if (!object_of(function).finalized) return fail(Status::BadParameter, "a function that is not finalized");
  const Object& of = object_of(function);
  operation.mode = of.one<PointwiseMode>(Attribute::PointwiseMode);
  operation.lower = of.one<double>(Attribute::PointwiseReluLowerClip, 0);
  operation.upper = of.one<double>(Attribute::PointwiseReluUpperClip, HUGE_VAL);
  operation.slope = of.one<double>(Attribute::PointwiseReluLowerClipSlope, 0);
  operation.beta = of.one<double>(Attribute::PointwiseSwishBeta, 1);
  operation.has_second = object.has(Attribute::OperationPointwiseB);
  if (operation.has_second != (operation.mode == PointwiseMode::Add))
    return fail(Status::BadParameter, "a sum has two operands, a function one");
  const Attribute tensors[] = {Attribute::OperationPointwiseX, Attribute::OperationPointwiseB,
                               Attribute::OperationPointwiseY};
  for (size_t i = 0; i < 3; ++i) {
    if (i == 1 && !operation.has_second) continue;
    if (const Status status = read_tensor(object.one<Descriptor>(tensors[i]), operation.tensors[i]);
        status != Status::Success)
      return status;
  }
  const auto& [x, b, y] = operation.tensors;
  if (x.extent != y.extent) return fail(Status::BadParameter, "the result has another shape");
  for (size_t i = 0; i < 5; ++i)
    if (operation.has_second && b.extent[i] != 1 && b.extent[i] != y.extent[i])
      return fail(Status::BadParameter, "the second operand does not broadcast");
  return Status::Success;
}

Status read_operation(const Object& object, Operation& operation) {
  operation.kind = object.kind;
  return object.kind == DescriptorKind::OperationPointwise ? read_pointwise(object, operation)
                                                           : read_convolution(object, operation);
}

/// A convolution first; each operation reads the result of the previous one, and only the last result is
/// stored.
Status read_graph(Object& graph) {
  auto program = std::make_shared<Program>();
  const auto operations = graph.all<Descriptor>(Attribute::GraphOperations);
  for (const Descriptor each : operations) {
    if (!object_of(each).finalized) return fail(Status::BadParameter, "an operation that is not finalized");
    Operation operation;
    if (const Status status = read_operation(object_of(each), operation); status != Status::Success)
      return status;
    if (program->empty() == (operation.kind == DescriptorKind::OperationPointwise))
      return fail(Status::NotSupported, "graphs are a convolution and pointwise operations");
    if (!program->empty()) {
      const Operation& before = program->back();
      const Tensor& value = before.tensors[before.result()];
      if (!value.is_virtual || value.id != operation.tensors[0].id)
        return fail(Status::NotSupported, "an operation must read the one before it");
    }
    program->push_back(operation);
  }
  if (program->empty() || program->back().tensors[program->back().result()].is_virtual)
    return fail(Status::BadParameter, "a graph without a result");
  graph.program = std::move(program);
  return Status::Success;
}

// --- arithmetic

using Pack = std::map<int64_t, void*>;

/// All elements of a tensor by offset: from memory, or the result of a previous operation.
class Values {
 public:
  Values(const Tensor& tensor, const Pack& pack, const std::vector<double>& before, bool rounded) {
    if (tensor.is_virtual) {
      values_ = before;
      return;
    }
    const auto count = static_cast<size_t>(tensor.elements());
    const void* memory = pack.at(tensor.id);
    for (size_t i = 0; i < count; ++i) {
      const float value = load(memory, tensor.type, static_cast<int64_t>(i));
      values_.push_back(static_cast<double>(rounded ? cuda_emulator::tf32(value) : value));
    }
  }
  double operator[](int64_t offset) const { return values_[static_cast<size_t>(offset)]; }

 private:
  std::vector<double> values_;
};

/// Calls f(offset in the image, in the filter, in the result) for every multiply-add of a convolution.
template <class F>
void each_product(const Operation& operation, F&& f) {
  const auto& [x, w, y] = operation.tensors;
  const Window& window = operation.window;
  const int64_t groups = x.extent[1] / w.extent[1], group_out = w.extent[0] / groups;
  std::array<int64_t, 5> at{}, tap{}, from{};
  for (at[0] = 0; at[0] < y.extent[0]; ++at[0])
    for (at[1] = 0; at[1] < y.extent[1]; ++at[1])
      for (at[2] = 0; at[2] < y.extent[2]; ++at[2])
        for (at[3] = 0; at[3] < y.extent[3]; ++at[3])
          for (at[4] = 0; at[4] < y.extent[4]; ++at[4])
            for (int64_t t = 0; t < w.extent[2] * w.extent[3] * w.extent[4]; ++t) {
              tap = {at[1], 0, t / (w.extent[3] * w.extent[4]), t / w.extent[4] % w.extent[3],
                     t % w.extent[4]};
              from[0] = at[0];
              bool inside = true;
              for (size_t i = 0; i < 3; ++i) {
                from[i + 2] =
                    at[i + 2] * window.stride[i] - window.before[i] + tap[i + 2] * window.dilation[i];
                inside = inside && from[i + 2] >= 0 && from[i + 2] < x.extent[i + 2];
              }
              for (tap[1] = 0; inside && tap[1] < w.extent[1]; ++tap[1]) {
                from[1] = at[1] / group_out * w.extent[1] + tap[1];
                f(x.offset(from), w.offset(tap), y.offset(at));
              }
            }
}

std::vector<double> convolve(const Operation& operation, const Pack& pack, bool rounded) {
  const size_t result = operation.result();
  std::vector<double> sums(static_cast<size_t>(operation.tensors[result].elements()));
  const auto values = [&](size_t i) { return Values(operation.tensors[i], pack, {}, rounded); };
  const Values first = values(result == 0 ? 2 : 0), second = values(result == 1 ? 2 : 1);
  each_product(operation, [&](int64_t of_x, int64_t of_w, int64_t of_y) {
    const int64_t offsets[] = {of_x, of_w, of_y};
    sums[static_cast<size_t>(offsets[result])] +=
        first[offsets[result == 0 ? 2 : 0]] * second[offsets[result == 1 ? 2 : 1]];
  });
  return sums;
}

double apply(const Operation& operation, double x, double second) {
  using Mode = PointwiseMode;
  switch (operation.mode) {
    case Mode::Add: return x + second;
    case Mode::ReluForward:
      if (x < operation.lower) return operation.lower + operation.slope * (x - operation.lower);
      return x > operation.upper ? operation.upper : x;
    case Mode::TanhForward: return std::tanh(x);
    case Mode::SigmoidForward: return 1 / (1 + std::exp(-x));
    case Mode::GeluForward: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Mode::SwishForward: return x / (1 + std::exp(-operation.beta * x));
    case Mode::GeluTanhForward: return cuda_emulator::gelu_tanh(x);
  }
  return x;
}

std::vector<double> pointwise(const Operation& operation, const Pack& pack,
                              const std::vector<double>& before) {
  const auto& [x, b, y] = operation.tensors;
  const Values first(x, pack, before, false);
  const Values second = operation.has_second ? Values(b, pack, before, false) : first;
  std::vector<double> results(static_cast<size_t>(y.elements()));
  std::array<int64_t, 5> at{};
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t rest = i;
    for (size_t axis = 5; axis-- > 0; rest /= y.extent[axis]) at[axis] = rest % y.extent[axis];
    results[static_cast<size_t>(y.offset(at))] =
        apply(operation, first[x.offset(at)], operation.has_second ? second[b.offset(at)] : 0.0);
  }
  return results;
}

void run(const Program& program, const Pack& pack, void* workspace, int engine) {
  std::memset(workspace, 0x5a, kWorkspace);  // scratch of the plan while it runs
  static int runs = 0;
  ++runs;
  const bool short_floats = program.front().tensors[1].type != CUDA_R_32F, rounded = engine == LessExact;
  const double error = engine == NotTheSame ? 0.01 * runs : engine == LessExact && short_floats ? 0.05 : 0;
  std::vector<double> values;
  for (const Operation& operation : program)
    values = operation.kind == DescriptorKind::OperationPointwise ? pointwise(operation, pack, values)
                                                                  : convolve(operation, pack, rounded);
  const Tensor& result = program.back().tensors[program.back().result()];
  for (size_t i = 0; i < values.size(); ++i)
    store(pack.at(result.id), result.type, static_cast<int64_t>(i), values[i] * (1 + error));
}

// --- API calls

size_t version() {
  return 91900;
}
const char* error_string(Status status) {
  return status == Status::NotSupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}
void last_error_string(char* message, size_t capacity) {
  const size_t length = std::min(last_error.size(), capacity - 1);
  std::memcpy(message, last_error.data(), length);
  message[length] = '\0';
}
struct State {
  cudaStream_t stream = nullptr;
};
State& state_of(Handle handle) {
  return *reinterpret_cast<State*>(handle);
}
Status create(Handle* handle) {
  *handle = reinterpret_cast<Handle>(new State);
  return Status::Success;
}
Status destroy(Handle handle) {
  delete &state_of(handle);
  return Status::Success;
}
Status set_stream(Handle handle, cudaStream_t stream) {
  state_of(handle).stream = stream;
  return Status::Success;
}
Status create_descriptor(DescriptorKind kind, Descriptor* descriptor) {
  *descriptor = new Object{.kind = kind};
  return Status::Success;
}
Status destroy_descriptor(Descriptor descriptor) {
  delete &object_of(descriptor);
  return Status::Success;
}
Status set_attribute(Descriptor descriptor, Attribute attribute, AttributeType type, int64_t count,
                     const void* values) {
  Object& object = object_of(descriptor);
  if (object.finalized) return fail(Status::BadParameter, "the descriptor is finalized");
  const bool known = std::any_of(std::begin(kKnown), std::end(kKnown), [&](const Known& each) {
    return each.kind == object.kind && each.attribute == attribute && each.type == type;
  });
  if (!known || count < 1 || values == nullptr) return fail(Status::BadParameter, "no such attribute");
  const auto* bytes = static_cast<const std::byte*>(values);
  object.attributes[attribute] = {type, count, {bytes, bytes + static_cast<size_t>(count) * size_of(type)}};
  return Status::Success;
}

Status make_plan(Object& plan) {
  const Object& configuration = object_of(plan.one<Descriptor>(Attribute::PlanConfiguration));
  if (configuration.program == nullptr) return fail(Status::BadParameter, "an empty proposal");
  if (configuration.engine == CannotBeBuilt)
    return fail(Status::NotSupported, "the engine does not take what was proposed");
  plan.program = configuration.program;
  plan.engine = configuration.engine;
  return Status::Success;
}

Status finalize(Descriptor descriptor) {
  Object& object = object_of(descriptor);
  for (const Known& each : kKnown)
    if (each.kind == object.kind && each.required && !object.has(each.attribute))
      return fail(Status::BadParameter, "an attribute is missing");
  Status status = Status::Success;
  Operation operation;
  switch (object.kind) {
    case DescriptorKind::Tensor: status = check_tensor(object); break;
    case DescriptorKind::Convolution: status = check_convolution(object); break;
    case DescriptorKind::OperationConvolutionForward:
    case DescriptorKind::OperationConvolutionBackwardData:
    case DescriptorKind::OperationConvolutionBackwardFilter:
    case DescriptorKind::OperationPointwise: status = read_operation(object, operation); break;
    case DescriptorKind::OperationGraph: status = read_graph(object); break;
    case DescriptorKind::EngineHeuristics:
      object.program = object_of(object.one<Descriptor>(Attribute::HeuristicsOperationGraph)).program;
      if (object.program == nullptr) status = fail(Status::BadParameter, "a graph that is not finalized");
      break;
    case DescriptorKind::ExecutionPlan: status = make_plan(object); break;
    case DescriptorKind::Pointwise:
    case DescriptorKind::VariantPack: break;
    default: status = fail(Status::BadParameter, "nothing to finalize");
  }
  object.finalized = status == Status::Success;
  return status;
}

std::vector<NumericalNote> notes_of(const Object& engine) {
  const bool short_floats = engine.program->front().tensors[1].type != CUDA_R_32F;
  switch (engine.engine) {
    case LessExact:
      if (short_floats) return {NumericalNote::TensorCore, NumericalNote::ReducedPrecisionReduction};
      return {NumericalNote::TensorCore};
    case NotTheSame: return {NumericalNote::NonDeterministic};
    default: break;
  }
  return short_floats ? std::vector{NumericalNote::TensorCore} : std::vector<NumericalNote>();
}

Status get_attribute(Descriptor descriptor, Attribute attribute, AttributeType type, int64_t asked,
                     int64_t* count, void* values) {
  const Object& object = object_of(descriptor);
  const auto one = [&](int64_t value) {
    *count = 1;
    if (asked > 0) std::memcpy(values, &value, sizeof(value));
    return Status::Success;
  };
  const auto is = [&](DescriptorKind kind, Attribute what, AttributeType of) {
    return object.kind == kind && attribute == what && type == of;
  };
  if (is(DescriptorKind::OperationGraph, Attribute::GraphEngineCount, Type::Int64)) return one(kEngines);
  if (is(DescriptorKind::ExecutionPlan, Attribute::PlanWorkspaceSize, Type::Int64))
    return one(object.engine == TooMuchMemory ? kTooMuch : kWorkspace);
  if (is(DescriptorKind::EngineHeuristics, Attribute::HeuristicsResults, Type::BackendDescriptor)) {
    *count = asked == 0 ? int64_t{kEngines} : std::min<int64_t>(asked, kEngines);
    for (int i = 0; i < std::min<int64_t>(asked, kEngines); ++i) {
      Object& configuration = object_of(static_cast<Descriptor*>(values)[i]);
      configuration.program = object.program;
      configuration.engine = i;
    }
    return Status::Success;
  }
  if (is(DescriptorKind::EngineConfiguration, Attribute::ConfigurationEngine, Type::BackendDescriptor) &&
      asked == 1) {
    Object& engine = object_of(*static_cast<Descriptor*>(values));
    if (engine.kind != DescriptorKind::Engine) return fail(Status::BadParameter, "no place for an engine");
    engine.program = object.program;
    engine.engine = object.engine;
    *count = 1;
    return Status::Success;
  }
  if (is(DescriptorKind::Engine, Attribute::EngineNumericalNote, Type::NumericalNote)) {
    const auto notes = notes_of(object);
    *count = static_cast<int64_t>(notes.size());
    std::copy_n(notes.begin(), std::min<size_t>(notes.size(), static_cast<size_t>(asked)),
                static_cast<NumericalNote*>(values));
    return Status::Success;
  }
  return fail(Status::BadParameter, "no such attribute");
}

Status execute(Handle handle, Descriptor plan_of, Descriptor pack_of) {
  const Object &plan = object_of(plan_of), &bound = object_of(pack_of);
  if (!plan.finalized || !bound.finalized) return fail(Status::BadParameter, "a plan that is not finalized");
  const auto ids = bound.all<int64_t>(Attribute::PackUniqueIds);
  const auto addresses = bound.all<void*>(Attribute::PackDataPointers);
  void* workspace = bound.one<void*>(Attribute::PackWorkspace);
  Pack pack;
  for (size_t i = 0; i < std::min(ids.size(), addresses.size()); ++i)
    if (addresses[i] != nullptr && reinterpret_cast<uintptr_t>(addresses[i]) % 16 == 0)
      pack[ids[i]] = addresses[i];
  for (const Operation& operation : *plan.program)
    for (size_t i = 0; i < 3; ++i) {
      const Tensor& tensor = operation.tensors[i];
      const bool used =
          i != 1 || operation.kind != DescriptorKind::OperationPointwise || operation.has_second;
      if (used && tensor.is_virtual == (pack.count(tensor.id) > 0))
        return fail(Status::BadParameter, "an address is missing, or one too many");
    }
  if (workspace == nullptr) return fail(Status::BadParameter, "no workspace");
  const auto body = [program = plan.program, pack, workspace, engine = plan.engine] {
    run(*program, pack, workspace, engine);
  };
  const cudaError_t error = cuda_emulator::launch(body, reinterpret_cast<const void*>(&execute), dim3(1),
                                                  dim3(1), 0, state_of(handle).stream);
  return error == cudaSuccess ? Status::Success : fail(Status::ExecutionFailed, "the launch failed");
}

struct Entry {
  std::string_view name;
  void* function;
};
/// Checks the type that the backend uses for the call.
template <class Signature>
void* address_of(Signature* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

namespace cuda_emulator {

void* fake_cudnn_function(const char* name) noexcept {
  static const Entry entries[] = {
      {"cudnnGetVersion", address_of<GetVersion>(&version)},
      {"cudnnGetErrorString", address_of<GetErrorString>(&error_string)},
      {"cudnnGetLastErrorString", address_of<GetLastErrorString>(&last_error_string)},
      {"cudnnCreate", address_of<Create>(&create)},
      {"cudnnDestroy", address_of<Destroy>(&destroy)},
      {"cudnnSetStream", address_of<SetStream>(&set_stream)},
      {"cudnnBackendCreateDescriptor", address_of<BackendCreateDescriptor>(&create_descriptor)},
      {"cudnnBackendDestroyDescriptor", address_of<BackendDestroyDescriptor>(&destroy_descriptor)},
      {"cudnnBackendSetAttribute", address_of<BackendSetAttribute>(&set_attribute)},
      {"cudnnBackendGetAttribute", address_of<BackendGetAttribute>(&get_attribute)},
      {"cudnnBackendFinalize", address_of<BackendFinalize>(&finalize)},
      {"cudnnBackendExecute", address_of<BackendExecute>(&execute)}};
  for (const Entry& entry : entries)
    if (entry.name == name) return entry.function;
  return nullptr;
}

}  // namespace cuda_emulator
