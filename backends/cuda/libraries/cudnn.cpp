#include "backends/cuda/libraries/cudnn.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "backends/cuda/libraries/cudnn_graph.h"
#include "backends/cuda/libraries/library.h"

namespace librt::cuda {
namespace {

namespace api = cudnn_api;
using api::Attribute;
using api::AttributeType;
using api::Descriptor;
using api::DescriptorKind;
using api::NumericalNote;

constexpr int64_t kMaxWorkspace = int64_t{64} << 20;
constexpr size_t kMaxCachedPlans = 512;  // then all are dropped; kernels keep theirs

struct Library {
  LibraryHandle library;
  api::Functions call;
  size_t version = 0;
  /// A handle is used by one thread at a time.
  std::mutex in_use;
  api::Handle handle = nullptr;

  ~Library() {
    if (handle != nullptr) call.Destroy_(handle);
  }
  std::string version_text() const {
    return text(version / 10000, ".", version / 100 % 100, ".", version % 100);
  }
  /// With `in_use` held. Creating the handle takes time and device memory: delayed until it is needed.
  Status start() {
    return handle != nullptr ? Status() : check_cudnn(call, call.Create_(&handle), "starting");
  }
};

Result<std::shared_ptr<Library>> load() {
  auto loaded = std::make_shared<Library>();
  RT_ASSIGN(loaded->library, open_library(text("libcudnn.so.", api::kMajorVersion)));
  const char* missing = nullptr;
#define RT_FUNCTION(name)                                                                           \
  loaded->call.name##_ = reinterpret_cast<api::name*>(function_of(loaded->library, "cudnn" #name)); \
  if (loaded->call.name##_ == nullptr) missing = "cudnn" #name;
  RT_CUDNN_FUNCTIONS(RT_FUNCTION)
#undef RT_FUNCTION
  if (missing != nullptr) return unsupported("cuDNN: the library found has no function ", missing);
  loaded->version = loaded->call.GetVersion_();
  if (loaded->version / 10000 != api::kMajorVersion)
    return unsupported("cuDNN ", loaded->version_text(), " was found, this build expects ",
                       api::kMajorVersion, ".x");
  return loaded;
}

cudaError_t as_cuda_error(api::Status status) {
  if (status == api::Status::Success) return cudaSuccess;
  if (status == api::Status::HostAllocationFailed || status == api::Status::DeviceAllocationFailed)
    return cudaErrorMemoryAllocation;
  const int category = static_cast<int>(status) / 1000 * 1000;
  return category == static_cast<int>(api::Status::ExecutionFailed) ? cudaErrorLaunchFailure
                                                                    : cudaErrorInvalidValue;
}

/// Why an engine breaks our numerical rules; null if it does not.
const char* objection(std::span<const NumericalNote> notes, ElementType type, bool tf32) {
  for (const NumericalNote note : notes) switch (note) {
      case NumericalNote::TensorCore:
        if (type == ElementType::F32 && !tf32) return "rounds f32 to TF32";
        break;
      case NumericalNote::DownConvertInputs: return "multiplies in a narrower type";
      case NumericalNote::ReducedPrecisionReduction: return "accumulates in less than f32";
      case NumericalNote::NonDeterministic: return "is not deterministic";
      case NumericalNote::Fft:
      case NumericalNote::WinogradTile6x6:
      case NumericalNote::WinogradTile13x13: return "loses precision in a transform";
      default: break;
    }
  return nullptr;
}

/// The device to plan for: a handle's, or one that is only described.
struct Target {
  api::Handle handle = nullptr;
  Descriptor properties = nullptr;
};

/// The engine configurations that the library's heuristics propose for a graph, best first.
class EngineCandidates {
 public:
  explicit EngineCandidates(const api::Functions& call) : made_(call) {}
  Status read(Descriptor graph, const Target& target) {
    const Descriptor heuristics = made_.make(DescriptorKind::EngineHeuristics, "querying the heuristics");
    made_.set(Attribute::HeuristicsOperationGraph, AttributeType::BackendDescriptor, graph);
    made_.set(Attribute::HeuristicsMode, AttributeType::HeuristicMode, api::HeuristicMode::A);
    if (target.properties != nullptr)
      made_.set(Attribute::HeuristicsDeviceProperties, AttributeType::BackendDescriptor, target.properties);
    made_.finalize();
    const auto results = [&] {
      return made_.get(heuristics, Attribute::HeuristicsResults, AttributeType::BackendDescriptor,
                       std::span<Descriptor>(configurations_));
    };
    const int64_t count = results();
    for (int64_t i = 0; i < count; ++i)
      configurations_.push_back(
          made_.make(DescriptorKind::EngineConfiguration, "reading engine configurations"));
    configurations_.resize(static_cast<size_t>(std::min(results(), count)));
    return made_.status();
  }
  std::span<const Descriptor> configurations() const { return configurations_; }

 private:
  CudnnDescriptors made_;
  std::vector<Descriptor> configurations_;
};

/// Ok if the proposal's engine keeps our numerical rules.
Status engine_fits(const api::Functions& call, Descriptor configuration, ElementType type, bool tf32) {
  CudnnDescriptors made(call);
  Descriptor engine = made.make(DescriptorKind::Engine, "querying an engine's notes");
  made.get(configuration, Attribute::ConfigurationEngine, AttributeType::BackendDescriptor,
           std::span<Descriptor>(&engine, 1));
  std::array<NumericalNote, api::kMaxNumericalNotes> notes{};
  const int64_t noted = made.get(engine, Attribute::EngineNumericalNote, AttributeType::NumericalNote,
                                 std::span<NumericalNote>(notes));
  RT_TRY(made.status());
  const auto known = static_cast<size_t>(std::min(noted, api::kMaxNumericalNotes));
  const char* why = objection(std::span(notes).first(known), type, tf32);
  return why == nullptr ? Status() : unsupported("an engine ", why);
}

class PlannedConvolution final : public CudnnConvolution {
 public:
  explicit PlannedConvolution(std::shared_ptr<Library> library)
      : library_(std::move(library)), graph_(library_->call) {}

  /// With `in_use` held if the target has a handle.
  Status prepare(const CudnnRequest& request, const Target& target, CudnnEngines& engines) {
    form_ = request.arguments.form;
    has_bias_ = request.has_bias;
    has_residual_ = request.has_residual;
    const Descriptor graph = cudnn_graph(graph_, request, target.handle);
    std::string refused;
    graph_.get(graph, Attribute::GraphEngineCount, AttributeType::Int64, std::span<int64_t>(&engines.all, 1));
    RT_TRY(graph_.status());
    if (target.handle == nullptr && target.properties == nullptr) return {};
    // Not the library's fallback mode: its generic engines do what our own kernels are for.
    auto candidates = std::make_unique<EngineCandidates>(library_->call);
    RT_TRY(candidates->read(graph, target));
    for (const Descriptor configuration : candidates->configurations()) {
      ++engines.proposed;
      const Status taken = take(configuration, request, target);
      if (taken.ok()) {
        candidates_ = std::move(candidates);
        engines.workspace_bytes = workspace_;
        return {};
      }
      // Dozens of engines are refused for the same reason.
      if (refused.find(taken.message()) == refused.npos)
        append(refused, refused.empty() ? "" : "; ", taken.message());
    }
    return unsupported("cuDNN has no plan for this convolution: ",
                       refused.empty() ? "its heuristics return none" : refused);
  }

  size_t workspace_bytes() const noexcept override { return static_cast<size_t>(workspace_); }

  cudaError_t run(const ConvArguments& a, cudaStream_t stream) const override {
    const Gemm& p = a.gemm;
    const auto address = [](const void* of) { return const_cast<void*>(of); };
    const bool forward = form_ == ConvForm::Forward, data = form_ == ConvForm::Data;
    // The operands in the order of ConvForm, the result in the remaining position.
    std::vector<int64_t> operands{number(CudnnOperand::X), number(CudnnOperand::W), number(CudnnOperand::Y)};
    std::vector<void*> addresses{data ? p.result : address(a.first),
                                 form_ == ConvForm::Weight ? p.result : address(a.second),
                                 forward ? p.result : address(data ? a.first : a.second)};
    if (has_bias_) {
      operands.push_back(number(CudnnOperand::Bias));
      addresses.push_back(address(p.epilogue.bias));
    }
    if (has_residual_) {
      operands.push_back(number(CudnnOperand::Residual));
      addresses.push_back(address(p.epilogue.residual));
    }
    const std::lock_guard lock(library_->in_use);
    const api::Functions& call = library_->call;
    CudnnDescriptors pack(call);
    pack.make(DescriptorKind::VariantPack, "binding addresses");
    pack.set(Attribute::PackUniqueIds, AttributeType::Int64, std::span<const int64_t>(operands));
    pack.set(Attribute::PackDataPointers, AttributeType::VoidPointer, std::span<void* const>(addresses));
    pack.set(Attribute::PackWorkspace, AttributeType::VoidPointer, p.partial);
    const Descriptor bound = pack.finalize();
    if (!pack.status().ok()) return cudaErrorInvalidValue;
    const api::Status status = call.SetStream_(library_->handle, stream);
    if (status != api::Status::Success) return as_cuda_error(status);
    return as_cuda_error(call.BackendExecute_(library_->handle, plan_, bound));
  }

 private:
  static int64_t number(CudnnOperand operand) { return static_cast<int64_t>(operand); }

  /// Ok if the proposal meets our rules and can be built: it becomes the plan.
  Status take(Descriptor configuration, const CudnnRequest& request, const Target& target) {
    RT_TRY(engine_fits(library_->call, configuration, request.arguments.type, request.tf32));
    auto built = std::make_unique<CudnnDescriptors>(library_->call);
    const Descriptor plan = built->make(DescriptorKind::ExecutionPlan, "building a plan");
    if (target.properties != nullptr)
      built->set(Attribute::PlanDeviceProperties, AttributeType::BackendDescriptor, target.properties);
    else
      built->set(Attribute::PlanHandle, AttributeType::LibraryHandle, target.handle);
    built->set(Attribute::PlanConfiguration, AttributeType::BackendDescriptor, configuration);
    built->finalize();
    int64_t workspace = 0;
    built->get(plan, Attribute::PlanWorkspaceSize, AttributeType::Int64, std::span<int64_t>(&workspace, 1));
    RT_TRY(built->status());
    if (workspace > kMaxWorkspace)
      return unsupported("an engine needs a workspace of more than ", bytes_text(kMaxWorkspace));
    workspace_ = workspace;
    plan_ = plan;
    built_ = std::move(built);
    return {};
  }

  std::shared_ptr<Library> library_;
  CudnnDescriptors graph_;
  std::unique_ptr<EngineCandidates> candidates_;  ///< the plan refers to them
  std::unique_ptr<CudnnDescriptors> built_;
  Descriptor plan_ = nullptr;
  int64_t workspace_ = 0;
  ConvForm form_ = ConvForm::Forward;
  bool has_bias_ = false, has_residual_ = false;
};

/// Equal for requests that share a plan.
std::string key_of(const CudnnRequest& request) {
  const ConvArguments& a = request.arguments;
  const ConvWindows& w = a.windows;
  const FunctionCall& activation = a.gemm.epilogue.activation;
  std::string key =
      text(static_cast<int>(a.type), " ", static_cast<int>(a.form), " ", w.batch, " ", w.groups, " ",
           w.input_channels, " ", w.output_channels, " ", static_cast<int>(activation.function), " ",
           activation.alpha, " ", activation.beta, " ", request.has_bias, request.has_residual, request.tf32);
  for (int i = 0; i < 3; ++i)
    append(key, " ", w.input[i], " ", w.output[i], " ", w.kernel[i], " ", w.stride[i], " ", w.pad[i], " ",
           w.dilation[i]);
  return key;
}

class Opened final : public Cudnn {
 public:
  explicit Opened(std::shared_ptr<Library> library) : library_(std::move(library)) {}

  Result<std::shared_ptr<const CudnnConvolution>> plan(const CudnnRequest& request) override {
    RT_TRY(takes(request));
    const std::lock_guard lock(library_->in_use);
    RT_TRY(library_->start());
    std::string key = key_of(request);
    if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
    auto convolution = std::make_shared<PlannedConvolution>(library_);
    CudnnEngines engines;
    RT_TRY(convolution->prepare(request, {.handle = library_->handle}, engines));
    if (plans_.size() >= kMaxCachedPlans) plans_.clear();
    return plans_.emplace(std::move(key), std::move(convolution)).first->second;
  }

  Result<CudnnEngines> dry_run(const CudnnRequest& request, std::string_view properties) override {
    RT_TRY(takes(request));
    CudnnDescriptors described(library_->call);
    Target target;
    if (!properties.empty()) {
      target.properties = described.make(DescriptorKind::DeviceProperties, "reading a device's properties");
      described.set(Attribute::DevicePropertiesJson, AttributeType::Char, std::span<const char>(properties));
      described.finalize();
      RT_TRY(described.status());
    }
    CudnnEngines engines;
    RT_TRY(PlannedConvolution(library_).prepare(request, target, engines));
    return engines;
  }

 private:
  std::shared_ptr<Library> library_;
  std::map<std::string, std::shared_ptr<const CudnnConvolution>> plans_;
};

}  // namespace

Status Cudnn::takes(const CudnnRequest& request) {
  const ConvArguments& a = request.arguments;
  const ConvWindows& w = a.windows;
  if (a.type != ElementType::F32 && a.type != ElementType::F16 && a.type != ElementType::BF16)
    return unsupported("cuDNN: no convolutions of this type");
  if (w.input_pixels() == 0 || w.output_pixels() == 0 || w.taps() == 0 || w.group_in() == 0 ||
      w.group_out() == 0)
    return unsupported("cuDNN: an empty convolution");
  for (int axis = 0; axis < 3; ++axis)
    if (int64_t pad_end = 0; !cudnn_pad_end(w, axis, pad_end))
      return unsupported("cuDNN: along spatial axis ", axis,
                         " windows end before the image by a stride or more");
  return cudnn_has_activation(a.gemm.epilogue.activation);
}

Result<std::shared_ptr<Cudnn>> Cudnn::open() {
  RT_ASSIGN(std::shared_ptr<Library> library, load());
  return std::shared_ptr<Cudnn>(std::make_shared<Opened>(std::move(library)));
}

Result<std::string> Cudnn::installed_version() {
  RT_ASSIGN(const std::shared_ptr<Library> library, load());
  return library->version_text();
}

}  // namespace librt::cuda
