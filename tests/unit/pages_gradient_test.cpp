// Gradient rules of matmuls, convolutions, pools and movement, against central differences in f64, with
// static and with symbolic extents.
#include <algorithm>
#include <random>

#include "tests/unit/page_test_support.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/train/autodiff.h"

namespace librt::test {
namespace {

using compiler::Builder;

/// An input of the node under test: floats are differentiated, integers are constants of the graph.
using Inputs = std::vector<std::optional<ops::HostTensor>>;

ops::HostTensor ints(const std::vector<int64_t>& values) {
  return integers(DType::I64, values);
}

/// Distinct values in random order, so that maxima are unique.
ops::HostTensor distinct(const Shape& shape, uint32_t seed) {
  ops::HostTensor out(TensorInfo{.dtype = DType::F64, .shape = shape});
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.37 * static_cast<double>(i) - 0.185 * static_cast<double>(values.size());
  std::shuffle(values.begin(), values.end(), std::mt19937(seed));
  for (size_t i = 0; i < values.size(); ++i)
    store_element(out.bytes.data(), DType::F64, static_cast<int64_t>(i), values[i] / 3);
  return out;
}
/// The same for several operands, with different seeds.
ops::HostTensor operand(const Shape& shape) {
  static uint32_t seed = 0;
  return distinct(shape, ++seed);
}

struct Problem {
  Graph graph;
  std::vector<size_t> differentiated;  ///< the node inputs that are inputs of the graph
};

/// loss = sum(y y) of y = node(inputs), and its gradients, as outputs. symbolic[axis]: that axis of input 0
/// is a separate symbol.
template <class Attributes>
Result<Problem> problem(const Attributes& attributes, const Inputs& inputs,
                        const std::vector<bool>& symbolic) {
  Problem out;
  Builder builder(out.graph);
  std::vector<ValueId> ids;
  std::vector<ValueId> wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) {
      ids.push_back(kNoValue);
      continue;
    }
    const TensorInfo& info = inputs[i]->info;
    if (!is_float(info.dtype)) {
      ids.push_back(builder.constant(info, Blob::copy_of(inputs[i]->bytes.data(), inputs[i]->bytes.size())));
      continue;
    }
    std::vector<Dim> dims;
    for (int axis = 0; axis < info.shape.rank(); ++axis) {
      const int64_t extent = info.shape[axis];
      const bool open =
          axis < static_cast<int>(symbolic.size()) && symbolic[static_cast<size_t>(axis)] && i == 0;
      dims.push_back(open ? Dim{.symbol = out.graph.symbol(text("axis", axis))} : Dim{.extent = extent});
    }
    ids.push_back(builder.input(text("input", i), info.dtype, dims));
    wanted.push_back(ids.back());
    out.differentiated.push_back(i);
  }
  const ValueId y = builder.emit_many(make_op(Attributes(attributes)), ids, 1)[0];
  const ValueId loss = builder.reduce_sum(builder.mul(y, y), {}, false);
  RT_TRY(Status(builder.status()));
  RT_ASSIGN(const std::vector<ValueId> gradients, compiler::differentiate(builder, loss, wanted));
  builder.output(loss);
  for (ValueId id : gradients) {
    if (id == kNoValue) return internal_error("expected a gradient for every input, found none");
    builder.output(id);
  }
  RT_TRY(Status(builder.status()));
  return out;
}

template <class Attributes>
void check(const Attributes& attributes, const Inputs& inputs, const std::vector<bool>& symbolic = {}) {
  const auto made = problem(attributes, inputs, symbolic);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const auto run = [&](const Inputs& at) {
    std::vector<ConstTensorView> views;
    for (size_t i : made->differentiated) views.push_back(at[i]->view());
    return ops::evaluate_graph(made->graph, views);
  };
  const auto analytic = run(inputs);
  ASSERT_TRUE(analytic.ok()) << analytic.status().message();
  for (size_t k = 0; k < made->differentiated.size(); ++k) {
    const size_t which = made->differentiated[k];
    const ops::HostTensor& gradient = (*analytic)[k + 1];
    ASSERT_EQ(text(gradient.info), text(inputs[which]->info));
    Inputs moved = inputs;
    for (int64_t i = 0; i < gradient.info.elements(); ++i) {
      constexpr double kStep = 1e-4;
      const double x = load_element(inputs[which]->bytes.data(), DType::F64, i);
      double loss[2];
      for (int side = 0; side < 2; ++side) {
        store_element(moved[which]->bytes.data(), DType::F64, i, x + (side == 0 ? kStep : -kStep));
        const auto result = run(moved);
        ASSERT_TRUE(result.ok());
        loss[side] = numbers((*result)[0])[0];
      }
      store_element(moved[which]->bytes.data(), DType::F64, i, x);
      EXPECT_NEAR(numbers(gradient)[static_cast<size_t>(i)], (loss[0] - loss[1]) / (2 * kStep), 1e-6)
          << "input " << which << " element " << i;
    }
  }
}

TEST(PagesGradient, MatMul) {
  struct Case {
    Shape a, b;
    bool transpose_a, transpose_b;
    std::vector<bool> symbolic = {};
  };
  const Case cases[] = {
      {{2, 3}, {3, 4}, false, false},
      {{3, 2}, {3, 4}, true, false},
      {{2, 3}, {4, 3}, false, true},
      {{3, 2}, {4, 3}, true, true},
      {{3}, {3}, false, false},
      {{2, 3}, {3}, false, false},
      {{3}, {3, 2}, false, false},
      {{3}, {2, 3}, true, true},
      {{3, 2}, {3}, true, true},
      {{2, 2, 3}, {3, 2}, false, false},
      {{2, 2, 3}, {2, 3}, false, true},
      {{2, 3, 2}, {3, 2}, true, false},
      {{2, 1, 2, 3}, {3, 3, 2}, false, false},
      {{3}, {2, 3, 2}, false, false},
      {{2, 2, 3}, {3}, false, false},
      {{2, 2, 3}, {3, 2}, false, false, {true, true}},
      {{2, 2, 3}, {3}, false, false, {true, true}},
      {{4, 3}, {3, 2}, false, false, {true}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(text(c.a, " ", c.b, " ", c.transpose_a, c.transpose_b, " symbols ", c.symbolic.size()));
    op::MatMulAttributes attributes;
    attributes.transpose_a = c.transpose_a;
    attributes.transpose_b = c.transpose_b;
    check(attributes, {operand(c.a), operand(c.b)}, c.symbolic);
  }
}

TEST(PagesGradient, Epilogue) {
  op::MatMulAttributes matmul;
  matmul.epilogue = std::make_unique<op::EpilogueAttributes>();
  matmul.epilogue->has_bias = matmul.epilogue->has_residual = true;
  check(matmul, {operand({2, 2, 3}), operand({3, 2}), operand({2, 1}), operand({2, 2, 2})});
  op::ConvAttributes conv;
  conv.epilogue = std::make_unique<op::EpilogueAttributes>(*matmul.epilogue);
  check(conv, {operand({1, 4, 2}), operand({3, 2, 2}), operand({3}), operand({1, 3, 3})});
  conv.epilogue->activation = op::Activation::Relu;
  const Inputs inputs = {operand({1, 4, 2}), operand({3, 2, 2}), operand({3}), operand({1, 3, 3})};
  const auto made = problem(conv, inputs, {});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("without fused activation"), std::string::npos)
      << made.status().message();
}

TEST(PagesGradient, Convolutions) {
  op::ConvAttributes conv;
  conv.strides = {2, 1};
  conv.pads = {1, 0, 0, 1};
  conv.dilations = {1, 2};
  conv.groups = 2;
  for (const auto& symbolic : {std::vector<bool>{}, {true}, {true, true, true}})
    check(conv, {operand({2, 5, 4, 2}), operand({4, 2, 2, 1})}, symbolic);
  op::ConvTransposeAttributes transposed;
  transposed.strides = {2};
  transposed.pads = {1, 1};
  transposed.output_padding = {1};
  transposed.groups = 2;
  check(transposed, {operand({1, 3, 4}), operand({4, 3, 1}), std::nullopt, operand({2})});
  check(transposed, {operand({1, 3, 4}), operand({4, 3, 1}), ints({5})}, {true});
  op::ConvWeightGradAttributes gradient;
  gradient.strides = {2};
  gradient.kernel = {2};
  check(gradient, {operand({2, 5, 2}), operand({2, 2, 3})});
}

TEST(PagesGradient, Pools) {
  op::MaxPoolAttributes maximum;
  maximum.kernel = {2, 3};
  maximum.strides = {2, 1};
  maximum.pads = {0, 1, 1, 1};
  maximum.ceil_mode = true;
  check(maximum, {operand({2, 4, 3, 2})}, {true});
  for (bool include : {false, true}) {
    op::AveragePoolAttributes average;
    average.kernel = {3};
    average.strides = {2};
    average.pads = {1, 1};
    average.ceil_mode = true;
    average.count_include_pad = include;
    check(average, {operand({2, 6, 2})});
    check(average, {operand({2, 6, 2})}, {true, true});
    op::AveragePoolGradAttributes gradient;
    gradient.kernel = {3};
    gradient.strides = {2};
    gradient.pads = {1, 1};
    gradient.ceil_mode = true;
    gradient.count_include_pad = include;
    check(gradient, {ints({2, 6, 2}), operand({2, 4, 2})});
  }
}

TEST(PagesGradient, Movement) {
  const std::vector<bool> open = {true, true};
  check(op::IdentityAttributes{}, {operand({2, 2})});
  for (const auto& symbolic : {std::vector<bool>{}, {true}}) {
    check(op::ReshapeAttributes{}, {operand({2, 3}), ints({-1, 3, 1})}, symbolic);
    op::TransposeAttributes transposed;
    transposed.permutation = {2, 0, 1};
    check(transposed, {operand({2, 3, 4})}, symbolic);
    transposed.permutation = {};
    check(transposed, {operand({2, 3, 4})}, symbolic);
  }
  op::ConcatAttributes concat;
  concat.axis = -1;
  check(concat, {operand({2, 1}), operand({2, 3}), operand({2, 2})});
  concat.axis = 0;
  check(concat, {operand({2, 3}), operand({1, 3})}, {true});
  for (const auto& symbolic : {std::vector<bool>{}, open}) {
    op::SliceAttributes slice;
    slice.axes = {1, -3};
    check(slice, {operand({3, 4, 2}), ints({1, -2}), ints({-1, 99})}, symbolic);
    slice.steps = {-2, 2};
    check(slice, {operand({3, 4, 2}), ints({99, 0}), ints({-99, 3})}, symbolic);
    check(op::SliceAttributes{}, {operand({3, 4}), ints({1}), ints({2})}, symbolic);
    check(op::PadAttributes{}, {operand({2, 3}), ints({1, -1, 2, 1}), operand({})}, symbolic);
    check(op::TileAttributes{}, {operand({2, 3}), ints({2, 3})}, symbolic);
    check(op::TileAttributes{}, {operand({2, 3}), ints({1, 2})}, symbolic);
  }
  check(op::ExpandAttributes{}, {operand({2, 1}), ints({3, 2, 4})});
  check(op::PadAttributes{}, {operand({2, 3}), ints({0, 1, 0, 1})}, open);
}

TEST(PagesGradient, Gather) {
  op::GatherAttributes gather;
  gather.axis = 1;
  for (const auto& symbolic : {std::vector<bool>{}, {true}})
    check(gather, {operand({2, 3, 2}), ints({2, 0, -1, 2})}, symbolic);
  op::ScatterAddAttributes scatter;
  check(scatter, {ints({3, 2}), ints({2, 2, 0}), operand({3, 2})});
}

}  // namespace
}  // namespace librt::test
