#include "backends/cpu/support/streamed_conv.h"

#include "backends/cpu/simd/streamed_conv.h"
#include "backends/cpu/simd/transpose.h"
#include "backends/cpu/support/conv_shape.h"
#include "runtime/core/exception.h"

namespace librt::cpu {
namespace {

constexpr int64_t kOut = StreamedConv::kOut, kRun = StreamedConv::kRun;
/// With more, the accumulators of all positions leave L1.
constexpr int64_t kMostPositions = 256;
/// Smaller weights stay in L2 (512 KB on the smallest CPUs with AVX-512).
constexpr int64_t kLeastWeights = 128 * 1024;
/// Threads share channels, so that each reads all of x, half of which another one has in its L2. With fewer
/// weights for each value of x and the result, oneDNN's direct convolution is as fast or faster: at 9 weights
/// and below in 1x1 convolutions, 2.4 in 3x3 ones.
constexpr int64_t kLeastReuse = 5, kLeastReuse1x1 = 12;

int64_t positions_of(const ConvGeometry& g) {
  return g.batch * points_of(g, &WindowAxis::output);
}
int64_t taps_of(const ConvGeometry& g) {
  return points_of(g, &WindowAxis::kernel);
}
/// Of the taps that read x in some window.
int64_t weights_of(const ConvGeometry& g) {
  return reaching_taps(g).geometry.weight_shape().elements();
}

/// The offset of channel 0 of a point of a sample.
int64_t offset_of(bool blocked, int64_t sample, int64_t point, int64_t points, int64_t channels) {
  return sample * points * channels + point * (blocked ? 16 : channels);
}

/// See StreamedConv::offsets. Taps that read nothing but padding are left out; `taps` are the others.
std::vector<int64_t> offsets_of(const ConvGeometry& g, bool blocked, std::vector<int64_t>& taps) {
  const int64_t positions = positions_of(g);
  std::vector<int64_t> offsets;
  for (int64_t tap = 0; tap < taps_of(g); ++tap) {
    const size_t before = offsets.size();
    bool reaches = false;
    for (int64_t position = 0; position < positions; ++position) {
      // From the last axis to the first; what remains of the position is the sample.
      int64_t place = position, at_tap = tap, points = 1, point = 0;
      bool inside = true;
      for (int i = g.rank; i-- > 0;) {
        const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
        const int64_t at = axis.position(place % axis.output, at_tap % axis.kernel);
        inside = inside && at >= 0 && at < axis.input;
        point += at * points;
        points *= axis.input;
        place /= axis.output;
        at_tap /= axis.kernel;
      }
      offsets.push_back(inside ? offset_of(blocked, place, point, points, g.input_channels) : -1);
      reaches = reaches || inside;
    }
    if (reaches || (taps.empty() && tap + 1 == taps_of(g)))  // one at least
      taps.push_back(tap);
    else
      offsets.resize(before);
  }
  return offsets;
}

/// See StreamedConv::results.
std::vector<int64_t> results_of(const ConvGeometry& g, bool blocked) {
  const int64_t points = points_of(g, &WindowAxis::output);
  std::vector<int64_t> results;
  for (int64_t position = 0; position < positions_of(g); ++position)
    results.push_back(offset_of(blocked, position / points, position % points, points, g.output_channels));
  return results;
}

/// What a kernel and its tasks share.
struct Shared {
  ConvGeometry geometry;
  StreamedConv conv;
  std::vector<int64_t> offsets, results;
  const StreamedConvLoops* loops = nullptr;
  EpilogueInputs inputs;
  UnaryLoops::Unary activation = nullptr;
  float alpha = 0, beta = 0;
  std::vector<int64_t> taps;  ///< those of the weight that are packed: they read x in some window
  int64_t zeros = 0;          ///< floats after the packed weights
  LayoutId layout = kDense;   ///< of x, the residual and the result

  int64_t block_floats() const noexcept { return conv.taps * conv.channels * kOut; }
  int64_t blocks() const noexcept { return geometry.output_channels / kOut; }
  int64_t weight_floats() const noexcept { return blocks() * block_floats(); }
  int64_t sums_floats() const noexcept { return conv.positions * kOut; }

  /// The results of one block of channels.
  void run_block(const Call& call, int64_t block, float* sums) const noexcept {
    StreamedConv part = conv;
    part.offsets = offsets.data();
    part.results = results.data();
    part.x = call.in<float>(0);
    part.zeros = call.packed<float>() + weight_floats();
    part.weight = call.packed<float>() + block * block_floats();
    part.sums = sums;
    // Where this block's channels begin.
    const int64_t first = block * kOut, plane = block * (kOut / 16) * conv.y_step;
    const float* bias = inputs.bias >= 0 ? call.in<float>(static_cast<size_t>(inputs.bias)) + first : nullptr;
    const float* residual =
        inputs.residual >= 0 ? call.in<float>(static_cast<size_t>(inputs.residual)) + plane : nullptr;
    loops->convolve(part);
    if (bias != nullptr || residual != nullptr) loops->add(part, bias, residual);
    if (activation != nullptr) activation(sums, sums, sums_floats(), alpha, beta);
    loops->put(part, call.out<float>() + plane);
  }

  void run(const Call& call) const noexcept {
    parallel_for(blocks(), conv.positions * block_floats(), 1, [&](int64_t begin, int64_t end) noexcept {
      float* sums = call.scratch<float>() + thread_index() * sums_floats();
      for (int64_t block = begin; block < end; ++block) run_block(call, block, sums);
    });
  }
};

class StreamedConvKernel final : public Kernel {
 public:
  StreamedConvKernel(const CpuDevice& device, Shared shared, const float* weight)
      : shared_(std::make_shared<const Shared>(std::move(shared))),
        transpose_(&device.simd().loops<TransposeLoops>()),
        weight_(weight) {
    requirements_.packed = static_cast<size_t>(shared_->weight_floats() + shared_->zeros) * sizeof(float);
    // The form follows from the weights' shape, their taps, and the zeros.
    requirements_.packed_key = 0x73747265616d6564ull + static_cast<uint64_t>(shared_->zeros);
    for (const int64_t tap : shared_->taps)
      requirements_.packed_key = 31 * requirements_.packed_key + static_cast<uint64_t>(tap);
    requirements_.packed_key |= 1u;
    requirements_.replaced_inputs = 1u << 1;
    requirements_.scratch =
        static_cast<size_t>(device.info().threads * shared_->sums_floats()) * sizeof(float);
    if (shared_->inputs.residual >= 0)
      requirements_.in_place = InPlace{static_cast<uint8_t>(shared_->inputs.residual), 0};
  }

  Requirements requirements() const noexcept override { return requirements_; }
  LayoutId input_layout(size_t i) const noexcept override {
    return i == 0 || static_cast<int>(i) == shared_->inputs.residual ? shared_->layout : kDense;
  }
  LayoutId output_layout(size_t) const noexcept override { return shared_->layout; }

  Status pack(std::span<std::byte> bytes) noexcept override {
    if (bytes.size() < requirements_.packed)
      return internal_error("packing ", requirements_.packed, " bytes into ", bytes.size());
    auto* to = reinterpret_cast<float*>(bytes.data());
    const Shared& shared = *shared_;
    const int64_t channels = shared.conv.channels, all_taps = taps_of(shared.geometry);
    const ThreadScope threads(workers_);  // sessions pack outside of the device's scopes
    parallel_for(shared.blocks(), shared.block_floats(), 1, [&](int64_t begin, int64_t end) noexcept {
      float* panel = to + begin * shared.block_floats();
      for (int64_t block = begin; block < end; ++block)
        for (int64_t first = 0; first < channels; first += kRun)
          for (const int64_t tap : shared.taps) {
            const int64_t count = std::min(kRun, channels - first);
            transpose_->transpose[2](weight_ + (block * kOut * all_taps + tap) * channels + first,
                                     all_taps * channels, panel, kOut, kOut, count, false);
            panel += count * kOut;
          }
    });
    std::fill_n(to + shared.weight_floats(), shared.zeros, 0.0f);
    return {};
  }

  Status record(CommandList& commands, const Bindings& bindings) noexcept override {
    RT_ATTEMPT {
      auto body = [shared = shared_](const Call& call) noexcept { shared->run(call); };
      auto kept = std::make_shared<const decltype(body)>(std::move(body));
      return static_cast<Commands&>(commands).add(
          std::make_unique<FunctionTask<decltype(body)>>(std::move(kept), bindings));
    }
    RT_CAUGHT {
      return caught_exception("recording a kernel");
    }
  }

 private:
  std::shared_ptr<const Shared> shared_;
  const TransposeLoops* transpose_;
  const float* weight_;
  Requirements requirements_;
  Workers workers_ = current_workers();  ///< of the device that the kernel is made for
};

}  // namespace

Status supports_streamed_conv(const CpuDevice& device, const ConvGeometry& g) {
  if (device.simd().loops<StreamedConvLoops>().convolve == nullptr)
    return unsupported("this kernel needs AVX-512");
  if (g.groups != 1) return unsupported("groups must be 1, not ", g.groups);
  if (g.input_channels % 16 != 0 || g.output_channels % kOut != 0)
    return unsupported("channels must be multiples of 16 and ", kOut, ", not ", g.input_channels, " and ",
                       g.output_channels);
  const int64_t positions = positions_of(g), weights = weights_of(g);
  if (positions < 1 || positions > kMostPositions)
    return unsupported("needs 1 to ", kMostPositions, " output positions, not ", positions);
  if (weights < kLeastWeights)
    return unsupported("weights must be at least ", kLeastWeights, ", not ", weights);
  const int64_t values = g.input_shape().elements() + g.output_shape().elements();
  const int64_t least = taps_of(g) > 1 ? kLeastReuse : kLeastReuse1x1;
  if (weights < least * values)
    return unsupported("needs ", least, " weights for each of ", values, " values, not ", weights);
  // A thread takes whole blocks of channels.
  if (g.output_channels / kOut < device.info().threads)
    return unsupported("needs ", kOut, " output channels for each of ", device.info().threads,
                       " threads, not ", g.output_channels);
  return {};
}

Result<KernelPtr> make_streamed_conv(const CpuDevice& device, const ConvGeometry& g, const float* weight,
                                     const op::EpilogueAttributes* epilogue, const EpilogueInputs& inputs,
                                     LayoutId layout) {
  const bool blocked = layout == kBlocked16;
  if (g.is_padded() &&
      !all_finite(DType::F32, reinterpret_cast<const std::byte*>(weight), g.weight_shape().elements()))
    return unsupported("the weights of padded windows must be finite");
  Shared shared;
  shared.geometry = g;
  shared.layout = layout;
  shared.offsets = offsets_of(g, blocked, shared.taps);
  shared.results = results_of(g, blocked);
  if (blocked) {
    shared.conv.x_step = 16 * points_of(g, &WindowAxis::input);
    shared.conv.y_step = 16 * points_of(g, &WindowAxis::output);
  }
  if (g.is_padded()) shared.zeros = g.input_channels / 16 * shared.conv.x_step;
  shared.conv.positions = positions_of(g);
  shared.conv.taps = static_cast<int64_t>(shared.taps.size());
  shared.conv.channels = g.input_channels;
  shared.loops = &device.simd().loops<StreamedConvLoops>();
  shared.inputs = inputs;
  if (epilogue != nullptr) {
    shared.activation = activation_of(device.simd(), epilogue->activation);
    shared.alpha = epilogue->alpha;
    shared.beta = epilogue->beta;
  }
  auto kernel = std::make_unique<StreamedConvKernel>(device, std::move(shared), weight);
  return KernelPtr(std::move(kernel));
}

}  // namespace librt::cpu
