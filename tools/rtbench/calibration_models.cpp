#include "tools/rtbench/calibration_models.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/model/reader.h"
#include "runtime/session/prepare/shapes.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/writer.h"
#include "tools/compiler/zoo/layers.h"

namespace librt::bench {
namespace {

using compiler::Layers;

// What a size means is said by the family's graph.
struct Size {
  int64_t a, b;
  int repeats;
};

const std::vector<Size>& sizes_of(Family family) {
  static const std::array<std::vector<Size>, kFamilies> kSizes{{
      {{16, 64, 8}, {32, 256, 6}, {64, 512, 4}, {128, 768, 4}, {512, 1024, 2}},  // rows, width
      {{7, 32, 8}, {14, 64, 8}, {14, 256, 6}, {28, 256, 4}, {56, 256, 3}},       // side, channels
      // Few weights, which stay in caches: those that do not are counted by the last family.
      {{7, 16, 8}, {14, 32, 8}, {28, 64, 6}, {28, 128, 4}, {56, 128, 2}},             // side, channels
      {{16, 32, 6}, {56, 32, 4}, {224, 32, 3}},                                       // side, output channels
      {{7, 64, 8}, {14, 256, 8}, {56, 96, 4}, {112, 96, 3}},                          // side, channels
      {{4, 16, 6}, {12, 64, 4}, {12, 256, 3}},                                        // heads, sequence
      {{8, 32, 3}, {32, 64, 3}, {64, 128, 2}, {64, 384, 2}},                          // steps, width
      {{1, 64, 8}, {1, 512, 6}, {1, 1024, 4}, {1, 3072, 4}},                          // rows, width
      {{16, 16, 8}, {256, 64, 8}, {1024, 256, 8}, {1024, 2048, 4}, {4096, 4096, 3}},  // [a,b]
      {{4, 256, 8}, {64, 256, 8}, {1024, 256, 6}, {16384, 256, 4}},                   // rows, width
      {{14, 32, 6}, {56, 64, 4}, {112, 64, 3}},                                       // side, channels
      {{6, 0, 5}, {16, 0, 5}, {40, 0, 4}},                                            // side of 4 axes
      {{64, 64, 6}, {4096, 64, 6}, {65536, 64, 4}},                                   // rows, width
      {{7, 16, 8}, {7, 64, 6}, {14, 128, 3}, {28, 128, 2}},                           // side, channels
      {{16, 512, 8}, {16, 1024, 8}, {16, 2048, 7}},                                   // rows, width
  }};
  return kSizes[static_cast<size_t>(family)];
}

ValueId input_of(Layers& net, const std::vector<int64_t>& extents) {
  std::vector<Dim> dims;
  for (const int64_t extent : extents) dims.push_back({.extent = extent});
  return net.builder().input("x", DType::F32, std::move(dims));
}

ValueId larger(Layers& net, ValueId a, ValueId b) {
  return net.builder().emit(op::MaximumAttributes{}, {a, b});
}

ValueId attention(Layers& net, ValueId x) {
  return net.builder().emit(op::AttentionAttributes{}, {x, x, x});
}

ValueId lstm(Layers& net, ValueId x, const std::string& name, int64_t steps, int64_t width) {
  op::LSTMAttributes attributes;
  attributes.hidden = width;
  const ValueId weight = net.weight(name + ".w", {1, 4 * width, width}, width);
  const ValueId recurrent = net.weight(name + ".r", {1, 4 * width, width}, width);
  const ValueId inputs[] = {x, weight, recurrent};
  const ValueId y = net.builder().emit_many(make_op(std::move(attributes)), inputs, 3)[0];
  return net.builder().reshape(y, net.builder().ints(std::vector<int64_t>{steps, 1, width}));
}

ValueId gather(Layers& net, ValueId x, int64_t rows) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < rows; ++i) indices.push_back(i * 7919 % rows);
  return net.builder().emit(op::GatherAttributes{}, {x, net.builder().ints(indices)});
}

ValueId transposed(Layers& net, ValueId x, int which) {
  static constexpr std::array<std::array<int64_t, 4>, 5> kOrders{
      {{0, 2, 3, 1}, {0, 3, 1, 2}, {0, 2, 1, 3}, {1, 0, 2, 3}, {0, 1, 3, 2}}};
  const auto& order = kOrders[static_cast<size_t>(which) % kOrders.size()];
  return net.builder().transpose(x, {order.begin(), order.end()});
}

// The nodes of a family, one after the other. Convolutions have the activation that they have in most
// networks.
ValueId chain(Layers& net, Family family, const Size& size, int repeats, ValueId x) {
  ValueId before = x;
  for (int i = 0; i < repeats; ++i) {
    const std::string name = "node" + std::to_string(i);
    const ValueId last = x;
    switch (family) {
      case Family::Matmul:
      case Family::Weights:
      case Family::MatrixVector: x = net.linear(name, x, size.b, false); break;
      case Family::Conv1x1: x = net.relu(net.conv(name, x, size.b, {})); break;
      case Family::Conv: x = net.relu(net.conv(name, x, size.b, {.kernel = 3, .padding = 1})); break;
      case Family::ConvDirect: x = net.relu(net.conv(name, x, size.b, {.kernel = 5, .padding = 2})); break;
      case Family::Depthwise:
        x = net.relu(net.conv(name, x, size.b, {.kernel = 3, .padding = 1, .groups = size.b}));
        break;
      case Family::Attention: x = attention(net, x); break;
      case Family::Recurrent: x = lstm(net, x, name, size.a, size.b); break;
      case Family::Reduction:
        x = i % 2 == 0 ? net.layer_norm(name, x) : net.builder().emit(op::SoftmaxAttributes{}, {x});
        break;
      case Family::Pool: x = net.max_pool(x, 3, 1, 1); break;
      case Family::Gather: x = gather(net, x, size.a); break;
      default: x = larger(net, x, before); break;
    }
    before = last;
  }
  return x;
}

// Nodes whose results differ in shape from their operand: side by side, joined by element-wise nodes.
ValueId side_by_side(Layers& net, Family family, const Size& size, int repeats, ValueId x) {
  ValueId joined = kNoValue;
  for (int i = 0; i < repeats; ++i) {
    const ValueId y =
        family == Family::Movement
            ? transposed(net, x, i)
            : net.relu(net.conv("node" + std::to_string(i), x, size.b, {.kernel = 3, .padding = 1}));
    joined = joined == kNoValue ? y : larger(net, joined, y);
  }
  return joined;
}

std::vector<int64_t> input_extents(Family family, const Size& size) {
  switch (family) {
    case Family::Conv1x1:
    case Family::Conv:
    case Family::ConvDirect:
    case Family::Depthwise:
    case Family::Pool: return {1, size.a, size.a, size.b};
    case Family::ConvNarrow: return {1, size.a, size.a, 3};
    case Family::Attention: return {1, size.a, size.b, 64};
    case Family::Recurrent: return {size.a, 1, size.b};
    case Family::Movement: return {size.a, size.a, size.a, size.a};
    default: return {size.a, size.b};
  }
}

Result<ModelGraph> graph_of(Family family, const Size& size, int repeats) {
  Layers net("calibration", 1);
  const ValueId x = input_of(net, input_extents(family, size));
  const bool side = family == Family::Movement || family == Family::ConvNarrow;
  const ValueId y = side ? side_by_side(net, family, size, repeats, x) : chain(net, family, size, repeats, x);
  RT_TRY(Status(net.builder().status()));
  RT_ASSIGN(ModelGraph model, net.finish({{"y", y}}));
  // As it is, but with activations in convolutions: other passes would merge transpositions and reorder.
  compiler::PipelineOptions options;
  for (const compiler::Pass& pass : compiler::all_passes())
    if (pass.name != "expand" && pass.name != "fuse") options.disabled.emplace_back(pass.name);
  RT_TRY(compiler::optimize(model, options, nullptr));
  return model;
}

}  // namespace

size_t calibration_sizes(Family family) {
  return sizes_of(family).size();
}

std::optional<CalibrationModel> calibration_model(Family family, size_t index, int repeats,
                                                  std::string& error) {
  const Size& size = sizes_of(family)[index];
  CalibrationModel made;
  const auto make = [&]() -> Status {
    RT_ASSIGN(ModelGraph graph, graph_of(family, size, repeats > 0 ? repeats : size.repeats));
    RT_ASSIGN(const std::vector<std::byte> bytes, compiler::serialize_model(graph));
    auto kept = std::make_shared<const ModelGraph>(std::move(graph));
    const Graph& entry = kept->entries[0].graph;
    RT_ASSIGN(made.work, workload_of(entry, kept->states, assumed_inputs(entry), ""));
    made.graph = std::move(kept);
    made.model.name = std::string("calibration of ") + kFamilyNames[static_cast<size_t>(family)];
    return store(made.model, bytes);
  };
  if (Status status = make(); !status.ok()) {
    error = text("calibration of ", kFamilyNames[static_cast<size_t>(family)], ": ", status.message());
    return std::nullopt;
  }
  return made;
}

}  // namespace librt::bench
