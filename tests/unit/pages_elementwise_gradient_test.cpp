// Gradient rules and bodies of the elementwise, reduction and normalization pages against central differences
// in f64, through the builder, autodiff and the reference evaluator. Dimensions written -1 are the symbol
// "batch", so that rules are tested without known extents.
#include <cmath>
#include <functional>
#include <random>

#include "tests/unit/page_test_support.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/autodiff.h"

namespace librt::test {
namespace {

using compiler::Builder;
using Inputs = std::span<const ValueId>;

constexpr int64_t kBatch = 3;

struct GradientCase {
  std::string name;
  std::vector<std::vector<int64_t>> shapes;
  std::function<ValueId(Builder&, Inputs)> build;
  double low = -2;
  double high = 2;
};

Shape concrete(const std::vector<int64_t>& dims) {
  Shape shape;
  for (int64_t dim : dims) shape.push_back(dim < 0 ? kBatch : dim);
  return shape;
}

/// loss = sum y^2 / 2 + y: the upstream gradient differs from element to element.
ValueId loss_of(Builder& b, ValueId y) {
  const ValueId half = b.mul(b.mul(y, y), b.scalar_like(0.5, y));
  return b.reduce_sum(b.add(half, y), {}, false);
}

void check_gradients(const GradientCase& test) {
  SCOPED_TRACE(test.name);
  Graph graph;
  const int32_t batch = graph.symbol("batch");
  Builder b(graph);
  std::vector<ValueId> inputs;
  for (const auto& dims : test.shapes) {
    std::vector<Dim> known;
    for (int64_t dim : dims) known.push_back(dim < 0 ? Dim{.symbol = batch} : Dim{.extent = dim});
    inputs.push_back(b.input(text("x", inputs.size()), DType::F64, known));
  }
  const ValueId loss = loss_of(b, test.build(b, inputs));
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  const auto gradients = compiler::differentiate(b, loss, inputs);
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  b.output(loss);
  for (ValueId gradient : *gradients) {
    ASSERT_NE(gradient, kNoValue);
    b.output(gradient);
  }
  ASSERT_TRUE(compiler::expand_composites(graph, {}).ok());

  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(test.low, test.high);
  std::vector<ops::HostTensor> values;
  for (const auto& dims : test.shapes) {
    const Shape shape = concrete(dims);
    std::vector<double> drawn;
    for (int64_t i = 0; i < shape.elements(); ++i) drawn.push_back(uniform(random));
    values.push_back(tensor(DType::F64, shape, drawn));
  }
  const auto run = [&] {
    std::vector<ConstTensorView> views;
    for (const ops::HostTensor& value : values) views.push_back(std::as_const(value).view());
    return ops::evaluate_graph(graph, views);
  };
  const auto at_point = run();
  ASSERT_TRUE(at_point.ok()) << at_point.status().message();
  for (size_t k = 0; k < values.size(); ++k) {
    const ops::HostTensor& gradient = (*at_point)[k + 1];
    ASSERT_EQ(text(gradient.info), text(values[k].info)) << "input " << k;
    for (int64_t i = 0; i < gradient.info.elements(); ++i) {
      const double x = load_element(values[k].bytes.data(), DType::F64, i);
      const auto loss_at = [&](double moved) {
        store_element(values[k].bytes.data(), DType::F64, i, moved);
        const auto result = run();
        return result.ok() ? numbers((*result)[0])[0] : kNaN;
      };
      constexpr double kStep = 1e-5;
      const double want = (loss_at(x + kStep) - loss_at(x - kStep)) / (2 * kStep);
      store_element(values[k].bytes.data(), DType::F64, i, x);
      const double got = load_element(gradient.bytes.data(), DType::F64, i);
      EXPECT_NEAR(got, want, 1e-6 * (1 + std::fabs(want))) << "input " << k << ", element " << i;
    }
  }
}

template <class Attributes>
GradientCase unary(Attributes attributes, double low = -2, double high = 2) {
  return {.name = std::string(name_of(make_op(attributes).type)),
          .shapes = {{-1, 5}},
          .build = [attributes](Builder& b, Inputs x) { return b.emit(attributes, {x[0]}); },
          .low = low,
          .high = high};
}

template <class Attributes>
GradientCase binary(Attributes attributes, double low = -2, double high = 2) {
  return {.name = std::string(name_of(make_op(attributes).type)),
          .shapes = {{-1, 1, 2}, {4, 1}},
          .build =
              [attributes](Builder& b, Inputs x) {
                return b.emit(attributes, {x[0], x[1]});
              },
          .low = low,
          .high = high};
}

/// The body of a composite, inlined.
template <class Attributes>
GradientCase composite(Attributes attributes, std::vector<std::vector<int64_t>> shapes, double low = -2) {
  return {.name = std::string(name_of(make_op(attributes).type)),
          .shapes = std::move(shapes),
          .build =
              [attributes](Builder& b, Inputs x) {
                Node node;
                node.op = make_op(attributes);
                node.inputs.assign(x.begin(), x.end());
                const ops::CompilerPage& page = *ops::compiler_page_of(node.kind());
                return page.gradient != nullptr ? b.emit_node(node)[0] : page.body(b, node, x)[0];
              },
          .low = low};
}

TEST(PagesElementwiseGradient, Unary) {
  check_gradients(unary(op::AbsAttributes{}));
  check_gradients(unary(op::NegAttributes{}));
  check_gradients(unary(op::ExpAttributes{}));
  check_gradients(unary(op::LogAttributes{}, 0.2));
  check_gradients(unary(op::SqrtAttributes{}, 0.2));
  check_gradients(unary(op::ReciprocalAttributes{}, 0.5));
  check_gradients(unary(op::SinAttributes{}));
  check_gradients(unary(op::CosAttributes{}));
  check_gradients(unary(op::ErfAttributes{}));
  op::CastAttributes to_f64;
  to_f64.to = static_cast<uint8_t>(DType::F64);
  check_gradients(unary(to_f64));
}

TEST(PagesElementwiseGradient, Activations) {
  check_gradients(unary(op::TanhAttributes{}));
  check_gradients(unary(op::SigmoidAttributes{}));
  check_gradients(unary(op::ReluAttributes{}));
  check_gradients(unary(op::SoftplusAttributes{}));
  check_gradients(unary(op::LeakyReluAttributes{}));
  op::EluAttributes elu;
  elu.alpha = 0.75f;
  check_gradients(unary(elu));
  check_gradients(unary(op::HardSigmoidAttributes{}, -4, 4));
  check_gradients(unary(op::HardSwishAttributes{}, -5, 5));
  op::ClipAttributes clip;
  clip.minimum = -0.5f;
  clip.maximum = 1;
  check_gradients(unary(clip));
  check_gradients(composite(op::SiluAttributes{}, {{-1, 5}}));
  op::GeluAttributes gelu;
  check_gradients(composite(gelu, {{-1, 5}}));
  gelu.tanh_approximation = true;
  check_gradients(composite(gelu, {{-1, 5}}));
}

TEST(PagesElementwiseGradient, Binary) {
  check_gradients(binary(op::AddAttributes{}));
  check_gradients(binary(op::SubAttributes{}));
  check_gradients(binary(op::MulAttributes{}));
  check_gradients(binary(op::DivAttributes{}, 0.5));
  check_gradients(binary(op::PowAttributes{}, 0.5));
  check_gradients(binary(op::MinimumAttributes{}));
  check_gradients(binary(op::MaximumAttributes{}));
  op::ModAttributes mod;
  check_gradients(binary(mod, 0.5));
  check_gradients(binary(mod));
  mod.truncated = true;
  check_gradients(binary(mod));
  for (double exponent : {2.0, 3.0, -1.0, 1.0})
    check_gradients(
        {.name = text("Pow ", exponent), .shapes = {{-1, 2}}, .build = [exponent](Builder& b, Inputs x) {
           return b.emit(op::PowAttributes{}, {x[0], b.scalar_like(exponent, x[0])});
         }});
  check_gradients({.name = "Where", .shapes = {{-1, 2}, {2}, {-1, 1}}, .build = [](Builder& b, Inputs x) {
                     const ValueId positive = b.emit(op::GreaterAttributes{}, {x[0], b.scalar_like(0, x[0])});
                     const ValueId either = b.emit(op::WhereAttributes{}, {positive, x[1], x[2]});
                     return b.mul(either, x[0]);
                   }});
}

/// At a tie each side gets half of the gradient; the gradient of a power of zero is not NaN.
TEST(PagesElementwiseGradient, SpecialPoints) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", DType::F32, {{.extent = 2}});
  const ValueId y = b.input("y", DType::F32, {{.extent = 2}});
  const ValueId larger = b.reduce_sum(b.emit(op::MaximumAttributes{}, {x, y}), {}, false);
  const ValueId power = b.reduce_sum(b.emit(op::PowAttributes{}, {x, y}), {}, false);
  const std::vector<ValueId> wanted{x, y};
  for (ValueId loss : {larger, power}) {
    const auto gradients = compiler::differentiate(b, loss, wanted);
    ASSERT_TRUE(gradients.ok()) << gradients.status().message();
    for (ValueId gradient : *gradients) b.output(gradient);
  }
  const auto a = f32({2}, {0, 1});
  const auto c = f32({2}, {0, 0});
  const std::vector<ConstTensorView> inputs{a.view(), c.view()};
  const auto got = ops::evaluate_graph(graph, inputs);
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_values(numbers((*got)[0]), {0.5, 1});
  expect_values(numbers((*got)[1]), {0.5, 0});
  expect_values(numbers((*got)[2]), {0, 0});
  expect_values(numbers((*got)[3]), {0, 0});
}

template <class Attributes>
void check_reduction() {
  const std::vector<std::vector<int64_t>> axes_cases{{}, {0}, {1}, {-1}, {0, 2}, {1, 2}};
  for (const auto& axes : axes_cases)
    for (bool keep_dims : {true, false}) {
      Attributes attributes;
      attributes.axes = axes;
      attributes.keep_dims = keep_dims;
      check_gradients({.name = text(name_of(make_op(attributes).type), " ", axes.size(), keep_dims),
                       .shapes = {{2, -1, 2}},
                       .build = [attributes](Builder& b, Inputs x) { return b.emit(attributes, {x[0]}); }});
    }
}

TEST(PagesElementwiseGradient, Reductions) {
  check_reduction<op::ReduceSumAttributes>();
  check_reduction<op::ReduceMeanAttributes>();
  check_reduction<op::ReduceMaxAttributes>();
  check_reduction<op::ReduceMinAttributes>();
  check_reduction<op::ReduceProdAttributes>();
}

/// The gradient of ReduceProd at zeros: with one zero, the product of the others; with two, zero.
TEST(PagesElementwiseGradient, ProductOfZeros) {
  check_gradients({.name = "ReduceProd with zeros", .shapes = {{3, 3}}, .build = [](Builder& b, Inputs x) {
                     op::ReduceProdAttributes rows;
                     rows.axes = {1};
                     const std::array<double, 9> mask{0, 1, 1, 0, 0, 1, 1, 1, 1};
                     const ValueId factors = b.constant({.dtype = DType::F64, .shape = {3, 3}},
                                                        Blob::copy_of(mask.data(), sizeof mask));
                     return b.emit(rows, {b.mul(x[0], factors)});
                   }});
}

TEST(PagesElementwiseGradient, SoftmaxAndLoss) {
  for (int64_t axis : {-1, 0, 1}) {
    op::SoftmaxAttributes softmax;
    softmax.axis = axis;
    check_gradients(unary(softmax));
    op::LogSoftmaxAttributes logarithm;
    logarithm.axis = axis;
    check_gradients(unary(logarithm));
  }
  check_gradients({.name = "SoftmaxCrossEntropy", .shapes = {{-1, 4}}, .build = [](Builder& b, Inputs x) {
                     // Labels that depend on the batch: the argmax of the logits.
                     op::ArgMaxAttributes largest;
                     largest.axis = 1;
                     largest.keep_dims = false;
                     Node node;
                     node.op = make_op(op::SoftmaxCrossEntropyAttributes{});
                     const std::vector<ValueId> inputs{x[0], b.emit(largest, {x[0]})};
                     return ops::compiler_page_of(node.kind())->body(b, node, inputs)[0];
                   }});
}

TEST(PagesElementwiseGradient, Normalization) {
  check_gradients(composite(op::BatchNormAttributes{}, {{-1, 2, 3}, {3}, {3}, {3}, {3}}, 0.2));
  for (int64_t axis : {-1, 1}) {
    op::LayerNormAttributes layer;
    layer.axis = axis;
    check_gradients(composite(layer, {{-1, 2, 3}, {3}, {3}}));
    check_gradients(composite(layer, {{-1, 2, 3}}));
    op::RmsNormAttributes rms;
    rms.axis = axis;
    check_gradients(composite(rms, {{-1, 2, 3}, {3}}));
    check_gradients(composite(rms, {{-1, 2, 3}}));
  }
  check_gradients(
      {.name = "BatchNormTrain", .shapes = {{-1, 2, 3}, {3}, {3}}, .build = [](Builder& b, Inputs x) {
         const std::array<double, 3> zeros{};
         const ValueId running =
             b.constant({.dtype = DType::F64, .shape = {3}}, Blob::copy_of(zeros.data(), sizeof zeros));
         const std::array<ValueId, 5> inputs{x[0], x[1], x[2], running, running};
         return b.emit_many(make_op(op::BatchNormTrainAttributes{}), inputs, 5)[0];
       }});
}

}  // namespace
}  // namespace librt::test
