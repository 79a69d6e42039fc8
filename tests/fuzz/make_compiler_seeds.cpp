// Writes the seeds of fuzz_compiler into a folder, besides those of fuzz_session: what the passes look for,
// spelled out as exporters do, and random models of tests/differential as they were imported.
//
//   make_compiler_seeds FOLDER
#include <cmath>
#include <cstdio>
#include <string>

#include "runtime/core/element.h"
#include "tests/differential/generator.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/writer.h"
#include "tools/onnx/import.h"

namespace librt::test {
namespace {

constexpr uint64_t kRandomModels = 40;
constexpr size_t kMostBytes = 32 << 10;

using compiler::Builder;

ValueId weights(Builder& build, Shape shape, uint64_t seed, double low = -1, double high = 1) {
  const TensorInfo info{.dtype = DType::F32, .shape = shape};
  std::vector<std::byte> bytes(info.bytes());
  for (int64_t i = 0; i < info.elements(); ++i) {
    const auto unit = static_cast<double>((split_mix(seed) >> 11) % 1000) / 999;
    store_element(bytes.data(), info.dtype, i, low + (high - low) * unit);
  }
  return build.constant(info, Blob::own(std::move(bytes)));
}

/// Channels-first, as exporters have it: convolution, scale and offset per channel, residual addition, Relu,
/// pool.
void convolution(Builder& build) {
  const ValueId x = build.input(
      "x", DType::F32, {{.symbol = build.graph().symbol("n")}, {.extent = 4}, {.extent = 6}, {.extent = 6}});
  const auto to_last = [&](ValueId value) { return build.transpose(value, {0, 2, 3, 1}); };
  const auto to_first = [&](ValueId value) { return build.transpose(value, {0, 3, 1, 2}); };
  op::ConvAttributes conv;
  conv.pads = {1, 1, 1, 1};
  ValueId y = to_first(build.emit(conv, {to_last(x), weights(build, {4, 3, 3, 4}, 1)}));
  y = build.mul(y, weights(build, {4, 1, 1}, 2, 0.5, 1.5));
  y = build.add(y, weights(build, {4, 1, 1}, 3));
  y = build.emit(op::ReluAttributes{}, {build.add(y, x)});
  op::MaxPoolAttributes pool;
  pool.kernel = {2, 2};
  pool.strides = {2, 2};
  build.output(to_first(build.emit(pool, {to_last(y)})));
}

/// LayerNorm, a projection, Gelu, a residual addition, HardSwish, Silu.
void transformer_block(Builder& build) {
  const ValueId x = build.input("x", DType::F32, {{.symbol = build.graph().symbol("n")}, {.extent = 8}});
  const ValueId centered = build.sub(x, build.reduce_mean(x, {-1}));
  const ValueId variance = build.reduce_mean(build.mul(centered, centered), {-1});
  const ValueId deviation =
      build.emit(op::SqrtAttributes{}, {build.add(variance, build.scalar(1e-3, DType::F32))});
  ValueId y = build.add(build.mul(build.div(centered, deviation), weights(build, {8}, 1, 0.5, 1.5)),
                        weights(build, {8}, 2));
  y = build.add(build.emit(op::MatMulAttributes{}, {y, weights(build, {8, 8}, 3)}), weights(build, {8}, 4));
  const ValueId error =
      build.emit(op::ErfAttributes{}, {build.div(y, build.scalar(std::sqrt(2.0), DType::F32))});
  y = build.mul(build.mul(y, build.add(error, build.scalar(1, DType::F32))), build.scalar(0.5, DType::F32));
  y = build.add(build.emit(op::MatMulAttributes{}, {y, weights(build, {8, 8}, 5)}), x);
  build.output(build.mul(y, build.emit(op::SigmoidAttributes{}, {y})));
}

/// Heads cut out of projections, scaled products, a mask of constants, Softmax.
void attention(Builder& build) {
  const Dim length{.symbol = build.graph().symbol("n")};
  const ValueId x = build.input("x", DType::F32, {{.extent = 2}, length, {.extent = 8}});
  const std::vector<int64_t> heads = {0, 0, 2, 4}, joined = {0, 0, 8};
  const auto head = [&](uint64_t seed, std::vector<int64_t> order) {
    const ValueId projected = build.emit(op::MatMulAttributes{}, {x, weights(build, {8, 8}, seed)});
    return build.transpose(build.reshape(projected, build.ints(heads)), std::move(order));
  };
  ValueId scores = build.emit(op::MatMulAttributes{}, {head(1, {0, 2, 1, 3}), head(2, {0, 2, 3, 1})});
  scores = build.div(scores, build.scalar(2, DType::F32));
  const ValueId shares = build.emit(op::SoftmaxAttributes{}, {scores});
  const ValueId mixed = build.emit(op::MatMulAttributes{}, {shares, head(3, {0, 2, 1, 3})});
  build.output(build.reshape(build.transpose(mixed, {0, 2, 1, 3}), build.ints(joined)));
}

/// Dequantize, a product, quantize, twice.
void quantized(Builder& build) {
  const ValueId x = build.input("x", DType::F32, {{.symbol = build.graph().symbol("n")}, {.extent = 8}});
  const auto rounded = [&](ValueId value, double scale) {
    op::QuantizeLinearAttributes quantize;
    quantize.to = static_cast<uint8_t>(DType::I8);
    const ValueId by = build.scalar(scale, DType::F32), zero = build.scalar(3, DType::I8);
    op::DequantizeLinearAttributes dequantize;
    dequantize.to = static_cast<uint8_t>(DType::F32);
    return build.emit(dequantize, {build.emit(quantize, {value, by, zero}), by, zero});
  };
  ValueId y = build.emit(op::MatMulAttributes{},
                         {rounded(x, 1.0 / 32), rounded(weights(build, {8, 8}, 1), 1.0 / 64)});
  y = build.emit(op::ReluAttributes{}, {rounded(build.add(y, weights(build, {8}, 2)), 1.0 / 16)});
  build.output(rounded(build.add(y, rounded(x, 1.0 / 32)), 1.0 / 16));
}

Status write_pattern(const std::string& path, void (*write)(Builder&)) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  Graph& graph = model.entries.back().graph;
  Builder build(graph);
  write(build);
  RT_TRY(Status(build.status()));
  RT_TRY(compiler::expand_composites(graph, model.states));
  return compiler::write_model(model, path);
}

Status write_seeds(const std::string& folder) {
  const std::pair<const char*, void (*)(Builder&)> patterns[] = {{"convolution", convolution},
                                                                 {"transformer_block", transformer_block},
                                                                 {"attention", attention},
                                                                 {"quantized", quantized}};
  for (const auto& [name, write] : patterns)
    RT_TRY(write_pattern(folder + "/pattern_" + name + ".rt", write).in(name));
  size_t written = 0;
  for (uint64_t seed = 1; seed <= kRandomModels; ++seed) {
    const std::string bytes = Generator(seed).generate().SerializeAsString();
    onnx::ImportReport report;
    auto model = onnx::import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
    if (!model.ok()) continue;  // which the differential test reports
    for (ModelGraph::Entry& entry : model->entries)
      RT_TRY(compiler::expand_composites(entry.graph, model->states));
    RT_ASSIGN(const auto file, compiler::serialize_model(*model));
    if (file.size() > kMostBytes) continue;
    RT_TRY(compiler::write_model(*model, text(folder, "/random_", seed, ".rt")));
    ++written;
  }
  if (written < kRandomModels / 2)
    return invalid_argument("only ", written, " of ", kRandomModels, " random models are seeds");
  return {};
}

}  // namespace
}  // namespace librt::test

int main(int count, char** arguments) {
  const librt::Status status = count == 2 ? librt::test::write_seeds(arguments[1])
                                          : librt::invalid_argument("usage: make_compiler_seeds FOLDER");
  if (!status.ok()) std::fprintf(stderr, "make_compiler_seeds: %s\n", status.message().c_str());
  return status.ok() ? 0 : 2;
}
