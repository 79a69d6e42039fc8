#include "tools/compiler/quantize/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/geometry/windows.h"
#include "tools/compiler/quantize/quantization_edit.h"

namespace librt::compiler {
namespace {

constexpr float kWeightLevels = 127, kValueLevels = 255;

std::span<const float> numbers_of(const Graph& graph, ValueId id) {
  const Blob& data = graph[id].data;
  return {reinterpret_cast<const float*>(data.data), data.size / sizeof(float)};
}

// --- weights

/// A quantized weight: element i belongs to channel i / inner % channels.
struct QuantizedWeight {
  std::vector<std::byte> quantized;
  std::vector<float> scale;
  int64_t inner = 1;
};

QuantizedWeight quantized_weight(const Graph& graph, const Node& node) {
  const Shape shape = graph[node.inputs[1]].info().shape;
  const auto axis = static_cast<int>(weight_axis(node));
  const std::span<const float> weight = numbers_of(graph, node.inputs[1]);
  const int64_t channels = shape[axis];
  QuantizedWeight result;
  result.inner = shape.elements(axis + 1, shape.rank());
  const auto channel_of = [&](size_t i) {
    return static_cast<size_t>(static_cast<int64_t>(i) / result.inner % channels);
  };
  std::vector<float> most(static_cast<size_t>(channels), 0);
  for (size_t i = 0; i < weight.size(); ++i)
    most[channel_of(i)] = std::max(most[channel_of(i)], std::abs(weight[i]));
  for (const float largest : most) result.scale.push_back(std::max(largest / kWeightLevels, 1e-20f));
  result.quantized.resize(weight.size());
  for (size_t i = 0; i < weight.size(); ++i) {
    const float code = std::nearbyint(weight[i] / result.scale[channel_of(i)]);
    result.quantized[i] =
        static_cast<std::byte>(static_cast<int8_t>(std::clamp(code, -kWeightLevels, kWeightLevels)));
  }
  return result;
}

/// For each tap of a convolution's window, in row-major order: the share of windows in which it lies inside
/// the input; in the others it reads zeros. Axes of open extent count as if every tap lay inside.
std::vector<double> shares_inside(const Graph& graph, const Node& node) {
  constexpr int64_t kOpenExtent = 1 << 15;  // longer than any window
  std::vector<double> shares{1};
  const std::vector<Dim>& dims = graph[node.inputs[0]].dims;
  Shape x;
  for (const Dim& dim : dims) x.push_back(dim.is_known() ? dim.extent : kOpenExtent);
  const auto geometry = conv_geometry(x, graph[node.inputs[1]].info().shape, node.as<op::ConvAttributes>());
  if (!geometry.ok()) return shares;
  for (int a = 0; a < geometry->rank; ++a) {
    const WindowAxis& axis = geometry->axes[static_cast<size_t>(a)];
    std::vector<double> finer;
    for (const double share : shares) {
      for (int64_t tap = 0; tap < axis.kernel; ++tap) {
        if (!dims[static_cast<size_t>(a) + 1].is_known()) {
          finer.push_back(share);
          continue;
        }
        int64_t inside = 0;
        for (int64_t window = 0; window < axis.output; ++window) {
          const int64_t position = axis.position(window, tap);
          inside += position >= 0 && position < axis.input;
        }
        finer.push_back(share * static_cast<double>(inside) /
                        static_cast<double>(std::max<int64_t>(axis.output, 1)));
      }
    }
    shares = std::move(finer);
  }
  return shares;
}

/// Per channel: the sum of the weights' rounding errors times the mean of what they are multiplied by.
std::vector<float> mean_errors(const Graph& graph, const Node& node, const QuantizedWeight& weight,
                               const std::vector<double>& mean) {
  const Shape shape = graph[node.inputs[1]].info().shape;
  const std::span<const float> real = numbers_of(graph, node.inputs[1]);
  const size_t channels = weight.scale.size();
  std::vector<double> errors(channels, 0);
  const auto inner = static_cast<size_t>(weight.inner);
  const bool is_conv = node.kind() == OpKind::Conv;
  const std::vector<double> inside = is_conv ? shares_inside(graph, node) : std::vector<double>{1};
  const bool rows = weight_axis(node) == 0;  // inputs are innermost; else [K,N]
  const size_t inputs = rows ? static_cast<size_t>(shape.back()) : mean.size();
  const size_t per_group =
      is_conv ? channels / static_cast<size_t>(node.as<op::ConvAttributes>().groups) : channels;
  for (size_t i = 0; i < real.size(); ++i) {
    const size_t channel = i / inner % channels;
    const size_t input = rows ? i % inputs + channel / per_group * inputs : i / channels;
    if (input >= mean.size()) continue;
    const auto code = static_cast<float>(static_cast<int8_t>(weight.quantized[i]));
    const double expected = mean[input] * inside[i / inputs % inside.size()];
    errors[channel] += static_cast<double>(real[i] - code * weight.scale[channel]) * expected;
  }
  return {errors.begin(), errors.end()};
}

// --- writing

class Writer : public NodeWriter {
 public:
  using NodeWriter::NodeWriter;

  /// Quantizes the value to u8 and dequantizes it. The name is copied: it may point into the graph's values,
  /// which move when one is added.
  ValueId fake_quantize(ValueId value, const Range& range, std::string name) {
    const float low = std::min(range.low, 0.0f), high = std::max(range.high, 0.0f);
    const float scale = std::max((high - low) / kValueLevels, 1e-20f);
    const auto zero = static_cast<uint8_t>(std::clamp(std::nearbyint(-low / scale), 0.0f, kValueLevels));
    const ValueId scale_id = constant(name + "/scale", {.dtype = DType::F32, .shape = {}}, &scale);
    const ValueId zero_id = constant(name + "/zero_point", {.dtype = DType::U8, .shape = {}}, &zero);
    op::QuantizeLinearAttributes quantize;
    quantize.to = static_cast<uint8_t>(DType::U8);
    op::DequantizeLinearAttributes dequantize;
    dequantize.to = static_cast<uint8_t>(DType::F32);
    const std::vector<Dim> dims = graph_[value].dims;
    const ValueId quantized =
        node(quantize, {value, scale_id, zero_id}, name + "/quantized", DType::U8, dims);
    return node(dequantize, {quantized, scale_id, zero_id}, name + "/dequantized", DType::F32, dims);
  }

  /// The Conv or MatMul with its weight quantized and dequantized, reading `x`; only the weight and the bias
  /// are made here. An empty mean leaves the bias unchanged.
  Node matmul(const Node& from, ValueId x, const std::vector<double>& mean, const std::string& name) {
    Node result = from;
    const QuantizedWeight weight = quantized_weight(graph_, from);
    const TensorInfo info = graph_[from.inputs[1]].info();
    const auto channels = static_cast<int64_t>(weight.scale.size());
    const ValueId quantized =
        constant(name + "/weight", {.dtype = DType::I8, .shape = info.shape}, weight.quantized.data());
    const ValueId scale =
        constant(name + "/weight_scale", {.dtype = DType::F32, .shape = {channels}}, weight.scale.data());
    op::DequantizeLinearAttributes dequantize;
    dequantize.to = static_cast<uint8_t>(DType::F32);
    dequantize.axis = weight_axis(from);
    const std::vector<Dim> dims = graph_[from.inputs[1]].dims;
    result.inputs[0] = x;
    result.inputs[1] = node(dequantize, {quantized, scale}, name + "/weight_dequantized", DType::F32, dims);
    if (mean.empty()) return result;
    std::vector<float> bias = mean_errors(graph_, from, weight, mean);
    auto& epilogue = const_cast<std::unique_ptr<op::EpilogueAttributes>&>(epilogue_of(result));
    if (epilogue == nullptr) epilogue = std::make_unique<op::EpilogueAttributes>();
    if (epilogue->has_bias) {
      const std::span<const float> before = numbers_of(graph_, from.inputs[2]);
      for (size_t i = 0; i < bias.size() && i < before.size(); ++i) bias[i] += before[i];
    } else {
      result.inputs.resize(2);
      result.inputs.push_back(kNoValue);
      epilogue->has_bias = true;
    }
    result.inputs[2] = constant(name + "/bias", {.dtype = DType::F32, .shape = {channels}}, bias.data());
    return result;
  }
};

const Observed& of(const std::map<ValueId, Observed>& observed, ValueId value) {
  static const Observed kNothing;
  const auto at = observed.find(value);
  return at == observed.end() ? kNothing : at->second;
}

/// For each value, the union of the ranges of all that share its scale.
std::map<ValueId, Range> shared_ranges(const QuantizationChoice& choice,
                                       const std::map<ValueId, Observed>& observed) {
  std::map<size_t, Range> joined;
  for (size_t i = 0; i < choice.values.size(); ++i) {
    const Range& range = of(observed, choice.values[i]).range;
    Range& all = joined.try_emplace(choice.scale_of[i], range).first->second;
    all = {std::min(all.low, range.low), std::max(all.high, range.high)};
  }
  std::map<ValueId, Range> ranges;
  for (size_t i = 0; i < choice.values.size(); ++i) ranges[choice.values[i]] = joined[choice.scale_of[i]];
  return ranges;
}

}  // namespace

void insert_quantization(Graph& graph, const QuantizationChoice& choice,
                         const std::map<ValueId, Observed>& observed) {
  const std::map<ValueId, Range> ranges = shared_ranges(choice, observed);
  Writer writer(graph);
  rewrite_matmuls(
      graph, choice,
      [&](Node& node, NodeId id, ValueId data) {
        node = writer.matmul(node, node.inputs[0], of(observed, data).mean, name_of_node(node, id));
      },
      [&](ValueId value) {
        const auto range = ranges.find(value);
        return range == ranges.end() ? kNoValue
                                     : writer.fake_quantize(value, range->second, graph[value].name);
      });
}

Graph error_graph(const Graph& graph, const QuantizationChoice& choice,
                  const std::map<ValueId, Observed>& observed) {
  Graph result = graph;
  result.outputs.clear();
  result.nodes.clear();
  Writer writer(result);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    result.nodes.push_back(node);
    if (!std::binary_search(choice.matmuls.begin(), choice.matmuls.end(), id)) continue;
    const std::string name = name_of_node(node, id) + "/error";
    const Observed& input = of(observed, node.inputs[0]);
    const ValueId x = writer.fake_quantize(node.inputs[0], input.range, name);
    Node matmul = writer.matmul(node, x, input.mean, name);
    matmul.name = name;
    Value value = result[node.outputs[0]];
    value.name = name + "/result";
    matmul.outputs = {result.add_value(std::move(value))};
    result.outputs.push_back(node.outputs[0]);
    result.outputs.push_back(matmul.outputs[0]);
    result.nodes.push_back(std::move(matmul));
  }
  return result;
}

size_t equalize_channels(Graph& graph) {
  const auto made_by = producers(graph);
  const auto uses = use_counts(graph);
  const auto is_shared = [&](ValueId id) { return id < uses.size() && uses[id] != 1; };
  const auto depthwise = [](const Node& node, int64_t channels) {
    return node.as<op::ConvAttributes>().groups == channels && channels > 1;
  };
  size_t pairs = 0;
  for (Node& second : graph.nodes) {
    if (second.kind() != OpKind::Conv || !is_matmul_or_conv(graph, second) || !made_by[second.inputs[0]])
      continue;
    Node& first = graph.nodes[*made_by[second.inputs[0]]];
    if (first.kind() != OpKind::Conv || !is_matmul_or_conv(graph, first) || uses[first.outputs[0]] != 1)
      continue;
    const auto& epilogue = epilogue_of(first);
    if (epilogue != nullptr && epilogue->activation != op::Activation::None &&
        epilogue->activation != op::Activation::Relu)
      continue;
    const int64_t channels = graph[first.inputs[1]].dims[0].extent;
    if (!depthwise(first, channels) && !depthwise(second, channels)) continue;
    if (is_shared(first.inputs[1]) || is_shared(second.inputs[1])) continue;
    const bool second_depthwise = second.as<op::ConvAttributes>().groups == channels;
    if (!second_depthwise && second.as<op::ConvAttributes>().groups != 1) continue;
    const std::span<const float> w1 = numbers_of(graph, first.inputs[1]),
                                 w2 = numbers_of(graph, second.inputs[1]);
    const auto count = static_cast<size_t>(channels);
    const size_t row = w1.size() / count, taps = w2.size() / count;
    const auto input_of = [&](size_t i) { return second_depthwise ? i / taps : i % count; };
    std::vector<float> most1(count, 0), most2(count, 0), factor(count, 1);
    for (size_t i = 0; i < w1.size(); ++i) most1[i / row] = std::max(most1[i / row], std::abs(w1[i]));
    for (size_t i = 0; i < w2.size(); ++i) most2[input_of(i)] = std::max(most2[input_of(i)], std::abs(w2[i]));
    for (size_t c = 0; c < count; ++c)
      if (most1[c] > 0 && most2[c] > 0) factor[c] = std::clamp(std::sqrt(most1[c] / most2[c]), 1e-3f, 1e3f);
    const auto scaled = [&](ValueId id, const auto& by) {
      const std::span<const float> from = numbers_of(graph, id);
      std::vector<float> numbers(from.begin(), from.end());
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = by(i, numbers[i]);
      return graph.add_constant(graph[id].name + "/equalized", graph[id].info(),
                                Blob::copy_of(numbers.data(), numbers.size() * sizeof(float)));
    };
    const ValueId new1 = scaled(first.inputs[1], [&](size_t i, float w) { return w / factor[i / row]; });
    const ValueId new2 = scaled(second.inputs[1], [&](size_t i, float w) { return w * factor[input_of(i)]; });
    if (epilogue != nullptr && epilogue->has_bias)
      first.inputs[2] = scaled(first.inputs[2], [&](size_t i, float b) { return b / factor[i]; });
    first.inputs[1] = new1;
    second.inputs[1] = new2;
    ++pairs;
  }
  return pairs;
}

}  // namespace librt::compiler
