// Operators decomposed into others: against plain formulas, at several extents of dynamic dimensions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/element.h"
#include "runtime/ops/evaluate.h"
#include "tests/support/importer_model.h"

namespace librt::onnx {
namespace {

using test::ImporterModel;
using test::values_of;

void strings(rt_onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(3);
  attribute->set_s(value);
}

void ints(rt_onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(7);
  for (const int64_t value : values) attribute->add_ints(value);
}

ops::HostTensor run(const ModelGraph& model, std::span<const ConstTensorView> inputs) {
  auto outputs = ops::evaluate_graph(model.entries[0].graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? std::move((*outputs)[0]) : ops::HostTensor();
}

/// Values without a regular pattern.
std::vector<float> noise(size_t count) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = std::sin(static_cast<float>(i * i + 3 * i) * 1.7f);
  return numbers;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(static_cast<double>(found[i]), wanted[i], 1e-5 * (1 + std::abs(wanted[i]))) << i;
}

// Leibniz formula: sum over all permutations of four.
double leibniz(const float* m) {
  int order[] = {0, 1, 2, 3};
  double sum = 0;
  do {
    int inversions = 0;
    double product = 1;
    for (int i = 0; i < 4; ++i) {
      product *= static_cast<double>(m[4 * i + order[i]]);
      for (int j = i + 1; j < 4; ++j) inversions += order[i] > order[j] ? 1 : 0;
    }
    sum += inversions % 2 == 0 ? product : -product;
  } while (std::next_permutation(std::begin(order), std::end(order)));
  return sum;
}

TEST(ImporterOperators, Det) {
  ImporterModel model(11);
  model.input("x", {"b", "4", "4"});
  model.node("Det", {"x"}, {"y"});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  for (const int64_t batch : {1, 3}) {
    std::vector<float> x = noise(static_cast<size_t>(16 * batch));
    if (batch == 3) {
      x[0] = x[4] = 0;                                       // requires a row exchange
      for (size_t i = 0; i < 4; ++i) x[20 + i] = x[16 + i];  // singular
    }
    const ConstTensorView inputs[] = {{x.data(), {DType::F32, {batch, 4, 4}}}};
    std::vector<double> wanted;
    for (int64_t i = 0; i < batch; ++i) wanted.push_back(leibniz(&x[static_cast<size_t>(16 * i)]));
    expect_near(values_of(run(*graph, inputs)), wanted);
  }
}

/// Reshape of x[n,4] or, if transposed, [4,n] to [n + less, last].
ImporterModel reshape_by_extent(bool transposed, int64_t less, int64_t last) {
  ImporterModel model(17);
  model.input("x", {"n", "4"});
  model.integers("axis", {1}, {0});
  model.integers("less", {1}, {less});
  model.integers("last", {1}, {last});
  model.node("Shape", {"x"}, {"extents"});
  model.node("Gather", {"extents", "axis"}, {"n"});
  model.node("Add", {"n", "less"}, {"first"});
  model.node("Concat", {"first", "last"}, {"shape"}, {{"axis", 0}});
  if (transposed) model.node("Transpose", {"x"}, {"t"});
  model.node("Reshape", {transposed ? "t" : "x", "shape"}, {"y"});
  model.output("y");
  return model;
}

/// An entry 0 copies a dimension. Where an entry is an extent that can be 0 only if nothing is left to
/// reshape, the result has that extent, without a case for 0.
TEST(ImporterOperators, ReshapeToExtents) {
  for (const bool transposed : {false, true}) {
    ImporterModel model = reshape_by_extent(transposed, 0, 4);
    const auto imported = model.convert();
    ASSERT_TRUE(imported.ok()) << imported.status().message() << model.reasons();
    const Graph& graph = imported->entries[0].graph;
    const Value &x = graph[graph.inputs[0]], &y = graph[graph.outputs[0]];
    EXPECT_EQ(y.dims, x.dims) << transposed;
    for (const int64_t n : {1, 3, 5}) {
      const std::vector<float> values = noise(static_cast<size_t>(4 * n));
      const ConstTensorView inputs[] = {{values.data(), {DType::F32, {n, 4}}}};
      EXPECT_EQ(run(*imported, inputs).info.shape, (Shape{n, 4}));
    }
  }
  // [n - 3, 4] fits x[n,4] for n = 3 alone, where 0 copies the 3; so does [n - 3, -1], which is [3, 4].
  for (const int64_t last : {4, -1}) {
    ImporterModel model = reshape_by_extent(false, -3, last);
    const auto imported = model.convert();
    ASSERT_TRUE(imported.ok()) << imported.status().message() << model.reasons();
    const std::vector<float> values = noise(12);
    const ConstTensorView inputs[] = {{values.data(), {DType::F32, {3, 4}}}};
    const ops::HostTensor y = run(*imported, inputs);
    EXPECT_EQ(y.info.shape, (Shape{3, 4}));
    EXPECT_EQ(values_of(y), values);
  }
}

/// PyTorch's align_corners puts the corners on each other, whatever its scale_factor leaves of the extent; in
/// ONNX's definition, which counts for others, the last position is that of an extent that is not whole.
TEST(ImporterOperators, CornersThatPyTorchAligns) {
  for (const bool pytorch : {true, false}) {
    ImporterModel model(17);
    if (pytorch) model.proto.set_producer_name("pytorch");
    model.input("x", {"b", "1", "n"});
    model.floats("scales", {3}, {1.0f, 1.0f, 0.7f});
    auto& node = model.node("Resize", {"x", "", "scales"}, {"y"});
    strings(node, "mode", "linear");
    strings(node, "coordinate_transformation_mode", "align_corners");
    model.output("y");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    for (const int64_t n : {5, 10, 11}) {
      const std::vector<float> x = noise(static_cast<size_t>(2 * n));
      const ConstTensorView inputs[] = {{x.data(), {DType::F32, {2, 1, n}}}};
      const int64_t length = n * 7 / 10;
      const double last = pytorch ? static_cast<double>(length) : static_cast<double>(n) * 0.7;
      std::vector<double> wanted;
      for (int64_t row = 0; row < 2; ++row)
        for (int64_t i = 0; i < length; ++i) {
          const double at = static_cast<double>(i * (n - 1)) / (last - 1), low = std::floor(at + 1e-6);
          const auto value = [&](double p) {
            const auto inside = std::min(static_cast<int64_t>(p), n - 1);
            return static_cast<double>(x[static_cast<size_t>(row * n + inside)]);
          };
          wanted.push_back((1 - at + low) * value(low) + (at - low) * value(low + 1));
        }
      expect_near(values_of(run(*graph, inputs)), wanted);
    }
  }
}

/// y[k] = sum over n < length of x[n] exp(-+ 2 pi i n k / length), of rows of complex numbers; half: x is the
/// first half of a spectrum, y is real.
std::vector<double> fourier(const std::vector<float>& x, int64_t rows, int64_t samples, int64_t length,
                            int64_t bins, bool half) {
  std::vector<double> y;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < bins; ++k) {
      double real = 0, imaginary = 0;
      for (int64_t n = 0; n < std::min(samples, half ? length / 2 + 1 : length); ++n) {
        const auto at = static_cast<size_t>(2 * (row * samples + n));
        const double angle = (half ? 2 : -2) * 3.14159265358979323846 * static_cast<double>(n * k % length) /
                             static_cast<double>(length);
        const double a = static_cast<double>(x[at]), b = static_cast<double>(x[at + 1]);
        const double factor =
            !half ? 1 : (n == 0 || 2 * n == length ? 1.0 : 2.0) / static_cast<double>(length);
        real += factor * (a * std::cos(angle) - b * std::sin(angle));
        imaginary += factor * (a * std::sin(angle) + b * std::cos(angle));
      }
      y.push_back(real);
      if (!half) y.push_back(imaginary);
    }
  return y;
}

/// A length that is computed: that of the signal, as exporters write it, or another one.
TEST(ImporterOperators, TransformOfAComputedLength) {
  for (const char* kind : {"own", "other", "half", "half_of_own"}) {
    const std::string_view name = kind;
    const bool half = name.starts_with("half");
    ImporterModel model(20);
    model.input("x", {"b", "n", "2"});
    model.input("like", {"m"});
    model.node("Shape", {name == "own" ? "x" : "like"}, {"length"},
               name == "own" ? ImporterModel::Integers{{"start", 1}, {"end", 2}} : ImporterModel::Integers{});
    model.integers("axis", {}, {1});
    model.node("DFT", {"x", name == "half_of_own" ? "" : "length", "axis"}, {"y"},
               half ? ImporterModel::Integers{{"inverse", 1}, {"onesided", 1}} : ImporterModel::Integers{});
    model.output("y");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << kind << graph.status().message() << model.reasons();
    for (const auto& [b, n, m] : {std::array<int64_t, 3>{1, 4, 4}, {2, 5, 3}, {1, 3, 8}, {2, 5, 9}}) {
      const std::vector<float> x = noise(static_cast<size_t>(2 * b * n)), like(static_cast<size_t>(m));
      const ConstTensorView inputs[] = {{x.data(), {DType::F32, {b, n, 2}}},
                                        {like.data(), {DType::F32, {m}}}};
      const int64_t length = name == "own" ? n : name == "half_of_own" ? 2 * (n - 1) : m;
      expect_near(values_of(run(*graph, inputs)), fourier(x, b, n, length, length, half));
    }
  }
}

/// Entries of a shape replaced, as exporters write index_copy and index_fill: the shape stays known.
TEST(ImporterOperators, ShapesOfReplacedEntries) {
  for (const bool tuples : {false, true}) {
    ImporterModel model(18);
    model.input("x", {"b", "n", "3"});
    model.node("Shape", {"x"}, {"shape"});
    model.integers("at", tuples ? std::vector<int64_t>{2, 1} : std::vector<int64_t>{2}, {1, -1});
    model.integers("entries", {2}, {4, 2});
    model.node(tuples ? "ScatterND" : "ScatterElements", {"shape", "at", "entries"}, {"wanted"});
    model.integers("one", {1}, {1});
    model.node("Expand", {"one", "wanted"}, {"y"});
    model.output("y");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    const Graph& body = graph->entries[0].graph;
    const std::vector<Dim>& dims = body[body.outputs[0]].dims;
    ASSERT_EQ(dims.size(), 3u);
    EXPECT_EQ(body.symbols[static_cast<size_t>(dims[0].symbol)].name, "b");
    EXPECT_EQ(dims[1].extent, 4);
    EXPECT_EQ(dims[2].extent, 2);
    for (const Node& node : body.nodes) EXPECT_NE(node.kind(), OpKind::ScatterElements);
    for (const Node& node : body.nodes) EXPECT_NE(node.kind(), OpKind::ScatterND);
  }
}

/// Starts whose number only a run has: as many as axes are named, else one.
TEST(ImporterOperators, SlicesFromAnEntryOfAList) {
  ImporterModel model(18);
  model.input("x", {"6", "2"});
  model.input("offsets", {"n"}, ImporterModel::kInt64);
  model.input("i", {"1"}, ImporterModel::kInt64);
  model.integers("one", {1}, {1});
  model.node("Add", {"i", "one"}, {"j"});
  model.node("Add", {"j", "one"}, {"k"});
  model.node("Slice", {"offsets", "i", "j"}, {"start"});
  model.node("Slice", {"offsets", "j", "k"}, {"end"});
  model.node("Slice", {"x", "start", "end"}, {"y"});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  const std::vector<float> x = noise(12);
  const std::vector<int64_t> offsets{0, 2, 5}, i{1};
  const ConstTensorView inputs[] = {
      {x.data(), {DType::F32, {6, 2}}}, {offsets.data(), {DType::I64, {3}}}, {i.data(), {DType::I64, {1}}}};
  std::vector<double> wanted;
  for (size_t at = 4; at < 10; ++at) wanted.push_back(static_cast<double>(x[at]));
  expect_near(values_of(run(*graph, inputs)), wanted);
}

TEST(ImporterOperators, AffineGridOfOpenSize) {
  for (const int64_t corners : {0, 1}) {
    ImporterModel model(20);
    model.input("theta", {"b", "2", "3"});
    model.input("image", {"b", "3", "h", "w"});
    model.node("Shape", {"image"}, {"size"});
    model.node("AffineGrid", {"theta", "size"}, {"y"}, {{"align_corners", corners}});
    model.output("y");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    for (const auto& [b, h, w] : {std::array<int64_t, 3>{1, 2, 3}, {2, 5, 4}, {3, 1, 7}}) {
      const std::vector<float> theta = noise(static_cast<size_t>(6 * b)),
                               image(static_cast<size_t>(3 * b * h * w));
      const ConstTensorView inputs[] = {{theta.data(), {DType::F32, {b, 2, 3}}},
                                        {image.data(), {DType::F32, {b, 3, h, w}}}};
      const auto at = [&](int64_t i, int64_t n) {
        const auto p = static_cast<double>(i), count = static_cast<double>(n);
        if (corners != 0) return n == 1 ? 0 : 2 * p / (count - 1) - 1;
        return (2 * p + 1) / count - 1;
      };
      std::vector<double> wanted;
      for (int64_t n = 0; n < b; ++n)
        for (int64_t i = 0; i < h; ++i)
          for (int64_t j = 0; j < w; ++j)
            for (int64_t k = 0; k < 2; ++k) {
              const float* row = &theta[static_cast<size_t>(6 * n + 3 * k)];
              wanted.push_back(static_cast<double>(row[0]) * at(j, w) +
                               static_cast<double>(row[1]) * at(i, h) + static_cast<double>(row[2]));
            }
      const ops::HostTensor y = run(*graph, inputs);
      EXPECT_EQ(y.info.shape, (Shape{b, h, w, 2}));
      expect_near(values_of(y), wanted);
    }
  }
}

// ONNX rejects parts that do not sum to the axis; before opset 18 equal parts must divide it.
TEST(ImporterOperators, SplitOfAnOpenAxisIsRefusedWhereThePartsDoNotFit) {
  const auto try_all = [](ImporterModel& model, std::span<const int64_t> fitting, bool others_fit) {
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    for (int64_t n = 0; n < 9; ++n) {
      const std::vector<float> x = noise(static_cast<size_t>(2 * n));
      const ConstTensorView inputs[] = {{x.data(), {DType::F32, {2, n}}}};
      const auto outputs = ops::evaluate_graph(graph->entries[0].graph, inputs);
      const bool fits = others_fit || std::find(fitting.begin(), fitting.end(), n) != fitting.end();
      EXPECT_EQ(outputs.ok(), fits) << n << ": " << outputs.status().message();
      if (!outputs.ok()) continue;
      int64_t whole = 0;
      for (const auto& output : *outputs) whole += output.info.shape[1];
      EXPECT_EQ(whole, n);
    }
  };
  for (const int64_t opset : {13, 18}) {
    ImporterModel evenly(opset);
    evenly.input("x", {"2", "n"});
    evenly.node("Split", {"x"}, {"a", "b", "c"}, {{"axis", 1}});
    for (const char* name : {"a", "b", "c"}) evenly.output(name);
    try_all(evenly, std::array<int64_t, 3>{0, 3, 6}, opset == 18);
  }
  ImporterModel sized(13);  // n / 2 and 3
  sized.input("x", {"2", "n"});
  sized.node("Shape", {"x"}, {"shape"});
  sized.integers("one", {1}, {1});
  sized.integers("two", {1}, {2});
  sized.integers("three", {1}, {3});
  sized.node("Gather", {"shape", "one"}, {"n"});
  sized.node("Div", {"n", "two"}, {"half"});
  sized.node("Concat", {"half", "three"}, {"sizes"}, {{"axis", 0}});
  sized.node("Split", {"x", "sizes"}, {"a", "b"}, {{"axis", 1}});
  for (const char* name : {"a", "b"}) sized.output(name);
  try_all(sized, std::array<int64_t, 2>{5, 6}, false);
}

TEST(ImporterOperators, SizesOfASplitAreOneForEachPart) {
  ImporterModel model(13);
  model.input("x", {"2", "n"});
  model.node("Shape", {"x"}, {"shape"});
  model.integers("one", {1}, {1});
  model.node("Gather", {"shape", "one"}, {"sizes"});
  model.node("Split", {"x", "sizes"}, {"a", "b"}, {{"axis", 1}});
  for (const char* name : {"a", "b"}) model.output(name);
  const auto result = model.convert();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("expected 2 sizes to split into, found 1"), std::string::npos)
      << result.status().message();
}

// The symbol that the window fixes is in all extents, which are too large then: an error, and nothing after
// it.
TEST(ImporterOperators, AFixedSymbolThatDoesNotFitElsewhereIsAnError) {
  ImporterModel model(17);
  model.import("com.microsoft", 1);
  for (const char* name : {"x", "past"}) model.input(name, {"n", "n", "n"});
  model.input("w", {"4", "2147483648", "32"});
  model.input("bias", {"1099511627776"});
  model.node("CausalConvWithState", {"x", "w", "bias", "past"}, {"y"}, {{"dilation", 4}})
      .set_domain("com.microsoft");
  model.output("y");
  const auto result = model.convert();
  EXPECT_FALSE(result.ok());
}

// What a run would find is found at conversion, with the node's name.
TEST(ImporterOperators, IndicesIntoAnAxisWithoutElementsAreRefused) {
  for (const char* operation : {"Gather", "GatherElements", "GatherND"}) {
    ImporterModel model(17);
    model.input("x", {"n", "0"});
    model.integers("indices", {1, 1}, {0});
    const std::string name = operation;
    if (name == "GatherND") model.integers("pair", {1, 2}, {0, 0});
    if (name == "GatherND")
      model.node(operation, {"x", "pair"}, {"y"});
    else
      model.node(operation, {"x", "indices"}, {"y"}, {{"axis", 1}});
    model.output("y");
    const auto graph = model.convert();
    ASSERT_FALSE(graph.ok()) << operation;
    EXPECT_NE((graph.status().message() + model.reasons()).find("expected an axis with elements to index"),
              std::string::npos)
        << operation << ": " << graph.status().message() << model.reasons();
  }
}

// Counts of the pairs (1,2), (2,3) and the unigrams 1 and 2, with up to one word between.
TEST(ImporterOperators, TfIdfVectorizerCountsWithSkips) {
  ImporterModel model(9);
  model.input("x", {"b", "n"}, ImporterModel::kInt64);
  auto& node = model.node("TfIdfVectorizer", {"x"}, {"y"},
                          {{"max_skip_count", 1}, {"min_gram_length", 1}, {"max_gram_length", 2}});
  strings(node, "mode", "TF");
  ints(node, "pool_int64s", {1, 2, 1, 2, 2, 3});
  ints(node, "ngram_counts", {0, 2});
  ints(node, "ngram_indexes", {4, 0, 1, 2});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  const int64_t x[] = {1, 2, 3, 1, 1, 2, 9, 3, 3, 3};
  const ConstTensorView two[] = {{x, {DType::I64, {2, 5}}}};
  // 1 2 3 1 1: three 1, one 2; 1 2 once; 2 3 once. 2 9 3 3 3: one 2; 2 . 3 once.
  EXPECT_EQ(values_of(run(*graph, two)), (std::vector<float>{1, 1, 1, 0, 3, 1, 0, 1, 0, 0}));
  const ConstTensorView one[] = {{x, {DType::I64, {1, 1}}}};  // shorter than a pair
  EXPECT_EQ(values_of(run(*graph, one)), (std::vector<float>{0, 0, 0, 0, 1}));
  const ConstTensorView none[] = {{x, {DType::I64, {2, 0}}}};
  EXPECT_EQ(values_of(run(*graph, none)), std::vector<float>(10));
}

TEST(ImporterOperators, SpaceToDepthByColumns) {
  for (const bool by_columns : {false, true}) {
    ImporterModel model(28);
    model.input("x", {"b", "2", "h", "w"});
    strings(model.node("SpaceToDepth", {"x"}, {"y"}, {{"blocksize", 2}}), "mode", by_columns ? "CRD" : "DCR");
    model.output("y");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    const std::vector<float> x = noise(2 * 2 * 4 * 2);
    const ConstTensorView inputs[] = {{x.data(), {DType::F32, {2, 2, 4, 2}}}};
    const std::vector<float> y = values_of(run(*graph, inputs));
    ASSERT_EQ(y.size(), x.size());
    for (size_t n = 0; n < 2; ++n)
      for (size_t c = 0; c < 2; ++c)
        for (size_t i = 0; i < 4; ++i)
          for (size_t j = 0; j < 2; ++j) {
            const size_t block = 2 * (i % 2) + j % 2;
            const size_t channel = by_columns ? 4 * c + block : 2 * block + c;
            EXPECT_EQ(y[(n * 8 + channel) * 2 + i / 2], x[((n * 2 + c) * 4 + i) * 2 + j]);
          }
  }
}

// TensorFlow's dilated convolutions are exported with the batch where these operators have channels.
TEST(ImporterOperators, BlocksOfAnyNumberOfChannels) {
  for (const char* mode : {"DCR", "CRD"}) {
    ImporterModel model(28);
    model.input("x", {"n", "c", "h", "w"});
    strings(model.node("SpaceToDepth", {"x"}, {"deep"}, {{"blocksize", 2}}), "mode", mode);
    strings(model.node("DepthToSpace", {"deep"}, {"y"}, {{"blocksize", 2}}), "mode", mode);
    strings(model.node("DepthToSpace", {"x"}, {"z"}, {{"blocksize", 3}}), "mode", mode);
    model.output("y");
    model.output("z");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    for (const int64_t channels : {9, 18}) {
      const std::vector<float> x = noise(static_cast<size_t>(2 * channels * 4 * 2));
      const ConstTensorView inputs[] = {{x.data(), {DType::F32, {2, channels, 4, 2}}}};
      const auto outputs = ops::evaluate_graph(graph->entries[0].graph, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status().message();
      EXPECT_EQ(values_of((*outputs)[0]), x);
      EXPECT_EQ((*outputs)[1].info.shape, (Shape{2, channels / 9, 12, 6}));
      // The last block of 3x3 values comes from the last position.
      const float last = values_of((*outputs)[1]).back();
      EXPECT_EQ(last, x.back());
    }
    const std::vector<float> x = noise(2 * 4 * 4 * 2);
    const ConstTensorView inputs[] = {{x.data(), {DType::F32, {2, 4, 4, 2}}}};
    EXPECT_FALSE(ops::evaluate_graph(graph->entries[0].graph, inputs).ok());  // 4 channels are no blocks of 9
  }
}

/// With the values of one sample, and with none.
TEST(ImporterOperators, NormalizationsOfNoSamples) {
  for (const bool local : {true, false}) {
    ImporterModel model(21);
    model.input("x", {"n", "4", "h"});
    if (local) {
      model.node("LRN", {"x"}, {"y"}, {{"size", 1}});
    } else {
      model.floats("scale", {4}, {1, 1, 1, 2});
      model.floats("bias", {4}, {0, 0, 0, 1});
      model.node("GroupNormalization", {"x", "scale", "bias"}, {"y"}, {{"num_groups", 2}});
    }
    model.output("y");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    const float x[] = {1, -1, 1, -1, 1, -1, 1, -1};
    const ConstTensorView one[] = {{x, {DType::F32, {1, 4, 2}}}}, none[] = {{x, {DType::F32, {0, 4, 2}}}};
    std::vector<double> wanted = {1, -1, 1, -1, 1, -1, 3, -1};
    for (size_t i = 0; local && i < 8; ++i) wanted[i] = static_cast<double>(x[i]) / std::pow(1 + 1e-4, 0.75);
    expect_near(values_of(run(*graph, one)), wanted);
    EXPECT_EQ(run(*graph, none).info.shape, (Shape{0, 4, 2}));
  }
}

/// Cut off towards zero; a cubic filter goes beyond 255 between the last two.
TEST(ImporterOperators, ResizeOfIntegers) {
  for (const bool cubic : {false, true}) {
    ImporterModel model(17);
    model.input("x", {"1", "1", "1", "4"}, ImporterModel::kUint8);
    model.integers("sizes", {4}, {1, 1, 1, 8});
    auto& node = model.node("Resize", {"x", "", "", "sizes"}, {"y"});
    strings(node, "mode", cubic ? "cubic" : "linear");
    model.output("y");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    const uint8_t x[] = {0, 3, 255, 255};
    const ConstTensorView inputs[] = {{x, {DType::U8, {1, 1, 1, 4}}}};
    const ops::HostTensor result = run(*graph, inputs);
    std::vector<int> y;
    for (const std::byte value : result.bytes) y.push_back(std::to_integer<int>(value));
    if (cubic)
      EXPECT_EQ(y[5], 255);
    else
      EXPECT_EQ(y, (std::vector<int>{0, 0, 2, 66, 192, 255, 255, 255}));
  }
}

/// The gradient reads them.
TEST(ImporterOperators, ScalesOfResizeStayConstants) {
  ImporterModel model(17);
  model.input("x", {"1", "1", "7", "5"});
  model.floats("scales", {4}, {1, 1, 0.5f, 0.5f});
  strings(model.node("Resize", {"x", "", "scales"}, {"y"}), "mode", "linear");
  model.output("y");
  const auto converted = model.convert();
  ASSERT_TRUE(converted.ok()) << converted.status().message() << model.reasons();
  const Graph& graph = converted->entries[0].graph;
  const auto resize = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                   [](const Node& node) { return node.kind() == OpKind::Resize; });
  ASSERT_NE(resize, graph.nodes.end());
  const Value& scales = graph[resize->inputs[2]];
  ASSERT_EQ(scales.role, Role::Constant);
  ASSERT_EQ(scales.info().elements(), 2);
  EXPECT_EQ(load_element(scales.data.data, DType::F32, 1), 0.5);
}

// TensorFlow's crop_and_resize is exported with a region for each image of a loop.
TEST(ImporterOperators, ResizeOfARegionThatIsAnInput) {
  for (const bool some_axes : {false, true}) {
    ImporterModel model(some_axes ? 18 : 17);
    model.input("x", {"1", "1", "h", "3"});
    model.input("roi", {some_axes ? "2" : "8"});
    model.integers("sizes", {some_axes ? 1 : 4},
                   some_axes ? std::vector<int64_t>{3} : std::vector<int64_t>{1, 1, 3, 3});
    auto& node = model.node("Resize", {"x", "roi", "", "sizes"}, {"y"});
    strings(node, "coordinate_transformation_mode", "tf_crop_and_resize");
    strings(node, "mode", "linear");
    if (some_axes) ints(node, "axes", {2});
    model.output("y");
    const auto graph = model.convert();
    ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
    const float x[] = {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42};
    // Rows from 0.25 to 0.75 of the way, and from the end back to beyond the start.
    const float rois[][8] = {{0, 0, 0.25f, 0, 1, 1, 0.75f, 1}, {0, 0, 1, 0, 1, 1, -0.5f, 1}};
    const std::vector<float> wanted[] = {{10, 11, 12, 20, 21, 22, 30, 31, 32},
                                         {40, 41, 42, 10, 11, 12, 0, 0, 0}};
    for (size_t i = 0; i < 2; ++i) {
      const float ends[] = {rois[i][2], rois[i][6]};
      const ConstTensorView inputs[] = {
          {x, {DType::F32, {1, 1, 5, 3}}},
          some_axes ? ConstTensorView{ends, {DType::F32, {2}}} : ConstTensorView{rois[i], {DType::F32, {8}}}};
      expect_near(values_of(run(*graph, inputs)), {wanted[i].begin(), wanted[i].end()});
    }
  }
}

TEST(ImporterOperators, SliceByStepsThatAreInputs) {
  ImporterModel model(17);
  model.input("x", {"n", "m"});
  for (const char* name : {"starts", "ends", "steps"}) model.input(name, {"2"}, ImporterModel::kInt64);
  model.integers("axes", {2}, {-1, 0});
  model.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  const std::vector<float> x = noise(3 * 7);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  // NumPy's rule for each combination, by definition: positions start, start + step, ... before the end.
  const auto positions = [](int64_t extent, int64_t start, int64_t end, int64_t step) {
    const int64_t first = step < 0 ? -1 : 0, last = step < 0 ? extent - 1 : extent;
    const auto bound = [&](int64_t at, int64_t lowest) {
      return std::clamp(at < 0 ? at + extent : at, std::min(lowest, last), last);
    };
    std::vector<int64_t> found;
    start = bound(start, 0), end = bound(end, first);
    if (step > 0 ? start < end : start > end)
      for (int64_t left = (step > 0 ? end - start - 1 : start - end - 1); left >= 0;) {
        found.push_back(start);
        if (step > left || step < -left) break;
        start += step, left -= step > 0 ? step : -step;
      }
    return found;
  };
  const int64_t bounds[] = {0, 2, 6, 9, -1, -3, -9, kMost, kLeast};
  for (const int64_t start : bounds)
    for (const int64_t end : bounds)
      for (const int64_t step : {int64_t{1}, int64_t{2}, int64_t{-1}, int64_t{-3}, kMost, -kMost}) {
        const int64_t starts[] = {start, 0}, ends[] = {end, 3}, steps[] = {step, 2};
        const ConstTensorView inputs[] = {{x.data(), {DType::F32, {3, 7}}},
                                          {starts, {DType::I64, {2}}},
                                          {ends, {DType::I64, {2}}},
                                          {steps, {DType::I64, {2}}}};
        std::vector<float> wanted;
        for (const size_t row : {0, 2})
          for (const int64_t column : positions(7, start, end, step))
            wanted.push_back(x[row * 7 + static_cast<size_t>(column)]);
        EXPECT_EQ(values_of(run(*graph, inputs)), wanted) << start << " " << end << " " << step;
      }
  const int64_t none[] = {0, 0};
  const ConstTensorView inputs[] = {{x.data(), {DType::F32, {3, 7}}},
                                    {none, {DType::I64, {2}}},
                                    {none, {DType::I64, {2}}},
                                    {none, {DType::I64, {2}}}};
  EXPECT_FALSE(ops::evaluate_graph(graph->entries[0].graph, inputs).ok());
  // An empty axis has no positions, whatever the bounds.
  const int64_t back[] = {-1, -1}, before[] = {-9, -9};
  const ConstTensorView empty[] = {{x.data(), {DType::F32, {3, 0}}},
                                   {back, {DType::I64, {2}}},
                                   {before, {DType::I64, {2}}},
                                   {back, {DType::I64, {2}}}};
  EXPECT_TRUE(values_of(run(*graph, empty)).empty());
}

// Some exporters do not import the domain of ONNX Runtime's operators that they use.
TEST(ImporterOperators, ADomainThatIsNotImported) {
  ImporterModel model(17);
  model.input("n", {}, ImporterModel::kInt64);
  model.integers("two", {}, {2});
  model.node("Range", {"two", "n"}, {"range"}).set_domain("com.microsoft");
  model.node("Cast", {"range"}, {"y"}, {{"to", ImporterModel::kFloat}});
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  const int64_t n = 5;
  const ConstTensorView inputs[] = {{&n, {DType::I64, {}}}};
  EXPECT_EQ(values_of(run(*graph, inputs)), (std::vector<float>{2, 3, 4}));
}

/// Q [b,4,l,2], K and V [b,2,s,2] and [b,2,s,1]; score_mod doubles, prob_mod halves.
TEST(ImporterOperators, FlexAttentionThroughItsGraphs) {
  ImporterModel model(24);
  model.import("ai.onnx.preview", 1);
  model.input("q", {"b", "4", "l", "2"});
  model.input("k", {"b", "2", "s", "2"});
  model.input("v", {"b", "2", "s", "1"});
  auto& node = model.node("FlexAttention", {"q", "k", "v"}, {"y"});
  node.set_domain("ai.onnx.preview");
  auto& score = model.body(node, "score_mod");
  model.input_of(score, "scores");
  model.node_of(score, "Add", {"scores", "scores"}, {"twice"});
  score.add_output()->set_name("twice");
  auto& prob = model.body(node, "prob_mod");
  model.input_of(prob, "weights");
  model.node_of(prob, "Neg", {"weights"}, {"minus"});
  prob.add_output()->set_name("minus");
  model.output("y");
  const auto graph = model.convert();
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  for (const auto& [b, l, s] : {std::array<int64_t, 3>{1, 1, 1}, {2, 3, 5}}) {
    const std::vector<float> q = noise(static_cast<size_t>(b * 4 * l * 2)),
                             k = noise(static_cast<size_t>(b * 2 * s * 2)),
                             v = noise(static_cast<size_t>(b * 2 * s));
    const ConstTensorView inputs[] = {{q.data(), {DType::F32, {b, 4, l, 2}}},
                                      {k.data(), {DType::F32, {b, 2, s, 2}}},
                                      {v.data(), {DType::F32, {b, 2, s, 1}}}};
    std::vector<double> wanted;
    for (int64_t n = 0; n < b; ++n)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t i = 0; i < l; ++i) {
          double total = 0, sum = 0;
          const float* query = &q[static_cast<size_t>(((n * 4 + h) * l + i) * 2)];
          for (int64_t t = 0; t < s; ++t) {
            const auto key = static_cast<size_t>((n * 2 + h / 2) * s + t);
            const double product = static_cast<double>(query[0]) * static_cast<double>(k[2 * key]) +
                                   static_cast<double>(query[1]) * static_cast<double>(k[2 * key + 1]);
            const double weight = std::exp(2 * product / std::sqrt(2.0));
            total += weight;
            sum += weight * static_cast<double>(v[key]);
          }
          wanted.push_back(-sum / total);
        }
    expect_near(values_of(run(*graph, inputs)), wanted);
  }
}

TEST(ImporterOperators, BitCastOfIntegersAndConstants) {
  ImporterModel model(26);
  model.input("x", {"n"}, ImporterModel::kInt32);
  model.input("f", {"1"});
  model.node("BitCast", {"x"}, {"y"}, {{"to", 12}});
  model.node("BitCast", {"f"}, {"bits"}, {{"to", ImporterModel::kInt32}});
  model.output("y");
  model.output("bits");
  EXPECT_FALSE(model.convert().ok());  // of an unknown float tensor
  ImportOptions options;
  options.constants["f"].numbers = "-2";
  const auto graph = model.convert(options);
  ASSERT_TRUE(graph.ok()) << graph.status().message() << model.reasons();
  const int32_t x[] = {-1, 7};
  const ConstTensorView inputs[] = {{x, {DType::I32, {2}}}};
  const auto outputs = ops::evaluate_graph(graph->entries[0].graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  uint32_t y[2] = {}, bits = 0;
  std::memcpy(y, (*outputs)[0].bytes.data(), sizeof y);
  std::memcpy(&bits, (*outputs)[1].bytes.data(), sizeof bits);
  EXPECT_EQ((*outputs)[0].info.dtype, DType::U32);
  EXPECT_EQ(y[0], 0xffffffffu);
  EXPECT_EQ(y[1], 7u);
  EXPECT_EQ(bits, 0xc0000000u);
}

/// As detectors are exported: scores[mask] and mask.nonzero() are two nodes, and TopK needs their counts to
/// be equal.
TEST(ImporterPositions, OfOneMaskAreOneSymbol) {
  ImporterModel model(17);
  model.input("scores", {"n"});
  model.input("mask", {"n"}, ImporterModel::kBool);
  model.integers("most", {1}, {1000});
  model.integers("one", {1}, {1});
  model.node("NonZero", {"mask"}, {"first"});
  model.node("Transpose", {"first"}, {"places"});
  model.node("GatherND", {"scores", "places"}, {"kept"});
  model.node("NonZero", {"mask"}, {"second"});
  model.node("Shape", {"second"}, {"shape"});
  model.node("Gather", {"shape", "one"}, {"count"});
  model.node("Concat", {"most", "count"}, {"limits"}, {{"axis", 0}});
  model.node("ReduceMin", {"limits"}, {"k"});
  model.node("TopK", {"kept", "k"}, {"best", "order"});
  model.output("best");
  const auto imported = model.convert();
  ASSERT_TRUE(imported.ok()) << imported.status().message() << model.reasons();
  const std::vector<float> scores = {3, 9, 1, 7, 5, 8};
  const auto best = [&](const std::vector<uint8_t>& mask) {
    const ConstTensorView inputs[] = {{scores.data(), {.dtype = DType::F32, .shape = {6}}},
                                      {mask.data(), {.dtype = DType::Bool, .shape = {6}}}};
    return values_of(run(*imported, inputs));
  };
  EXPECT_EQ(best({1, 0, 1, 1, 1, 0}), (std::vector<float>{7, 5, 3, 1}));
  EXPECT_EQ(best({1, 0, 0, 0, 0, 1}), (std::vector<float>{8, 3}));
  EXPECT_EQ(best({0, 0, 0, 0, 0, 0}), std::vector<float>());
}

}  // namespace
}  // namespace librt::onnx
