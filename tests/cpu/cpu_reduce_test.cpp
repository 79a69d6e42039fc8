// Reductions, softmax, normalization and optimizer steps.
#include "tests/cpu/cpu_support.h"

#include <cmath>

namespace librt::test {
namespace {

template <class Attributes>
void check_reduce(DType dtype, double low, double high) {
  const std::pair<Shape, std::vector<int64_t>> cases[] = {
      {Shape{}, {}},
      {Shape{7}, {}},
      {Shape{3, 4, 5}, {}},
      {Shape{3, 4, 5}, {0}},
      {Shape{3, 4, 5}, {1}},
      {Shape{3, 4, 5}, {-1}},
      {Shape{3, 4, 5}, {0, 2}},
      {Shape{2, 3, 4, 5}, {1, 3}},
      {Shape{400, 64}, {0}},
      {Shape{501, 10}, {0}},
      {Shape{501, 10}, {1}},
      {Shape{40, 1100}, {0}},
      {Shape{64, 400}, {1}},
      {Shape{2, 30, 30, 16}, {1, 2}},
      {Shape{131072}, {}},
      {Shape{33, 4097}, {}},
      {Shape{3, 0, 5}, {0}},
      {Shape{2, 1, 5}, {1}},
  };
  for (const auto& [shape, axes] : cases)
    for (const bool keep : {true, false}) {
      Attributes attributes;
      attributes.axes = axes;
      attributes.keep_dims = keep;
      SCOPED_TRACE(text(name_of(dtype), shape, keep));
      std::optional<ops::Tolerance> tolerance;
      if (dtype == DType::F32) tolerance = {1e-4, 2e-3};
      if (dtype == DType::F16) tolerance = {2e-3, 1e-2};
      if (dtype == DType::BF16) tolerance = {1e-2, 1e-2};
      check_node(cpu_device(), make_node(attributes, 1), {ramp(dtype, shape, low, high)}, 0, tolerance);
    }
}

TEST(CpuReduce, Floats) {
  check_reduce<op::ReduceSumAttributes>(DType::F32, -1, 1);
  check_reduce<op::ReduceMeanAttributes>(DType::F32, -1, 1);
  check_reduce<op::ReduceMaxAttributes>(DType::F32, -1, 1);
  check_reduce<op::ReduceMinAttributes>(DType::F32, -1, 1);
  check_reduce<op::ReduceProdAttributes>(DType::F32, 0.99, 1.01);
  check_reduce<op::ReduceSumAttributes>(DType::F64, -1, 1);
  for (const DType dtype : {DType::F16, DType::BF16}) {
    check_reduce<op::ReduceMaxAttributes>(dtype, -1, 1);
    check_reduce<op::ReduceSumAttributes>(dtype, 0, 0.01);
    check_reduce<op::ReduceMeanAttributes>(dtype, 0, 1);
  }
}

TEST(CpuReduce, Integers) {
  for (const DType dtype : {DType::I8, DType::U8, DType::I32, DType::I64}) {
    check_reduce<op::ReduceSumAttributes>(dtype, 0, 9);
    check_reduce<op::ReduceMaxAttributes>(dtype, 0, 99);
    check_reduce<op::ReduceMinAttributes>(dtype, 0, 99);
    check_reduce<op::ReduceMeanAttributes>(dtype, dtype == DType::U8 ? 0 : -9, 9);
  }
  check_reduce<op::ReduceProdAttributes>(DType::I64, -3, 3);
}

TEST(CpuReduce, NanWins) {
  auto x = f32(Shape{5, 70});
  reinterpret_cast<float*>(x.bytes.data())[3 * 70 + 40] = std::nanf("");
  for (const int64_t axis : {0, 1}) {
    op::ReduceMaxAttributes most;
    most.axes = {axis};
    check_node(cpu_device(), make_node(most, 1), {x});
    op::ReduceMinAttributes least;
    least.axes = {axis};
    check_node(cpu_device(), make_node(least, 1), {x});
    op::ArgMaxAttributes arg;
    arg.axis = axis;
    check_node(cpu_device(), make_node(arg, 1), {x});
  }
}

TEST(CpuReduce, Arg) {
  for (const DType dtype : {DType::F32, DType::I32, DType::U8, DType::F16})
    for (const int64_t axis : {0, 1, -1})
      for (const bool last : {false, true}) {
        op::ArgMaxAttributes most;
        most.axis = axis;
        most.select_last = last;
        check_node(cpu_device(), make_node(most, 1), {ramp(dtype, Shape{6, 9, 5}, 0, 6)});
        op::ArgMinAttributes least;
        least.axis = axis;
        least.select_last = last;
        least.keep_dims = false;
        check_node(cpu_device(), make_node(least, 1), {ramp(dtype, Shape{6, 9, 5}, 0, 6)});
      }
}

/// Rows of several chunks, with equal elements in different chunks, and NaN.
TEST(CpuReduce, ArgOfLongRows) {
  for (const DType dtype : {DType::F32, DType::I32})
    for (const bool last : {false, true})
      for (const Shape& shape : {Shape{5, 1300}, Shape{7, 512}, Shape{40, 3, 130}}) {
        ops::HostTensor x = ramp(dtype, shape, 0, 9);
        if (dtype == DType::F32) {
          auto* numbers = reinterpret_cast<float*>(x.bytes.data());
          numbers[700] = numbers[900] = std::nanf("");
        }
        op::ArgMaxAttributes most;
        most.axis = 1;
        most.select_last = last;
        check_node(cpu_device(), make_node(most, 1), {x});
        op::ArgMinAttributes least;
        least.axis = 1;
        least.select_last = last;
        check_node(cpu_device(), make_node(least, 1), {x});
      }
}

/// Rows that are filtered by a bound before sorting, and rows that are not; equal elements and NaN.
TEST(CpuTopK, LongRows) {
  for (const double range : {1e6, 5.0})
    for (const bool largest : {false, true})
      for (const int64_t k : {1, 10, 100})
        for (const Shape& shape : {Shape{3, 300}, Shape{2, 2100}, Shape{2, 1500, 18}}) {
          SCOPED_TRACE(text(shape, " k ", k, largest ? " largest" : " least", " range ", range));
          ops::HostTensor x = ramp(DType::F32, shape, -range, range);
          auto* numbers = reinterpret_cast<float*>(x.bytes.data());
          for (int64_t i = 0; i < shape.elements(); ++i)
            if (range < 10) numbers[i] = std::floor(numbers[i]);
          numbers[1] = -0.0f;
          numbers[200] = numbers[290] = std::nanf("");
          op::TopKAttributes top;
          top.axis = 1;
          top.largest = largest;
          check_node(cpu_device(), make_node(top, 2, 2), {x, ints_tensor({k})});
        }
}

TEST(CpuScan, RowsAndColumns) {
  for (const DType dtype : {DType::F32, DType::F64, DType::I64, DType::U32, DType::I16})
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true})
        for (const int64_t extent : {1, 7, 16, 100})
          for (const int64_t axis : {0, 1}) {
            op::CumSumAttributes sum;
            sum.axis = axis;
            sum.exclusive = exclusive;
            sum.reverse = reverse;
            const Shape shape = axis == 0 ? Shape{extent, 5, 4} : Shape{5, extent};
            SCOPED_TRACE(
                text(name_of(dtype), shape, exclusive ? " exclusive" : "", reverse ? " reverse" : ""));
            check_node(cpu_device(), make_node(sum, 1), {ramp(dtype, shape, -3, 4)});
            op::CumProdAttributes product;
            product.axis = axis;
            product.exclusive = exclusive;
            product.reverse = reverse;
            check_node(cpu_device(), make_node(product, 1), {ramp(dtype, shape, 1, 1.05)});
          }
}

/// Large enough for non-temporal stores.
TEST(CpuScan, LargeColumns) {
  for (const DType dtype : {DType::F32, DType::I64}) {
    op::CumSumAttributes sum;
    sum.axis = 0;
    check_node(cpu_device(), make_node(sum, 1), {ramp(dtype, Shape{3, 700001}, -3, 4)});
  }
}

/// Masked values in the first rows, in the last, or everywhere; the results use non-temporal stores.
TEST(CpuSoftmax, MaskedAndLargeColumns) {
  op::SoftmaxAttributes softmax;
  softmax.axis = 1;
  op::LogSoftmaxAttributes logarithm;
  logarithm.axis = 1;
  for (const auto& shape : {Shape{2, 70, 3}, Shape{1, 2100, 1001}}) {
    ops::HostTensor x = f32(shape, -30, 30);
    auto* values = reinterpret_cast<float*>(x.bytes.data());
    for (int64_t k = 0; k < shape[1]; ++k) {
      const auto row = static_cast<size_t>(k * shape[2]);
      if (k < 40) values[row] = -std::numeric_limits<float>::infinity();
      if (k > 30) values[row + 1] = -std::numeric_limits<float>::infinity();
      values[row + 2] = -std::numeric_limits<float>::infinity();
    }
    check_node(cpu_device(), make_node(softmax, 1), {x}, 0, ops::Tolerance{1e-5, 1e-30});
    check_node(cpu_device(), make_node(logarithm, 1), {x}, 0, ops::Tolerance{1e-5, 1e-5});
  }
}

TEST(CpuSoftmax, AnyAxis) {
  for (const int64_t axis : {0, 1, 2, -1})
    for (const auto& shape : {Shape{3, 4, 5}, Shape{2, 130, 70}, Shape{20, 2, 1000}, Shape{20, 13, 10}}) {
      op::SoftmaxAttributes softmax;
      softmax.axis = axis;
      check_node(cpu_device(), make_node(softmax, 1), {f32(shape, -30, 30)}, 0, ops::Tolerance{1e-5, 1e-30});
      op::LogSoftmaxAttributes logarithm;
      logarithm.axis = axis;
      check_node(cpu_device(), make_node(logarithm, 1), {f32(shape, -30, 30)}, 0, ops::Tolerance{1e-5, 1e-5});
    }
}

TEST(CpuNorm, BatchNorm) {
  for (const auto& shape : {Shape{4, 5}, Shape{2, 7, 9, 3}, Shape{3, 20, 20, 32}, Shape{9, 70, 70, 17}}) {
    const auto c = [&](uint64_t seed) { return f32(Shape{shape.back()}, 0.5, 1.5, seed); };
    for (const bool unbiased : {false, true}) {
      op::BatchNormTrainAttributes train;
      train.unbiased = unbiased;
      check_node(cpu_device(), make_node(train, 5, 5), {f32(shape, 90, 100), c(1), c(2), c(3), c(4)}, 0,
                 ops::Tolerance{1e-4, 1e-4});
    }
    check_node(cpu_device(), make_node(op::BatchNormGradAttributes{}, 5, 3),
               {f32(shape, -1, 1, 1), f32(shape, -1, 1, 2), c(1), c(2), c(3)}, 0, ops::Tolerance{1e-4, 1e-4});
    // The composite's formula.
    const NodeInputs inputs{f32(shape), c(1), c(2), c(3), c(4)};
    auto got = run_node(cpu_device(), make_node(op::BatchNormAttributes{}, 5), inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    const auto* x = reinterpret_cast<const float*>(inputs[0]->bytes.data());
    const auto at = [&](size_t input, int64_t channel) {
      return static_cast<double>(reinterpret_cast<const float*>(inputs[input]->bytes.data())[channel]);
    };
    ops::HostTensor want(inputs[0]->info);
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const int64_t k = i % shape.back();
      reinterpret_cast<float*>(want.bytes.data())[i] = static_cast<float>(
          (static_cast<double>(x[i]) - at(3, k)) / std::sqrt(at(4, k) + 1e-5) * at(1, k) + at(2, k));
    }
    EXPECT_TRUE(near(got->outputs[0], want, {1e-5, 1e-5}));
  }
}

TEST(CpuNorm, LayerNorm) {
  for (const bool scale : {false, true})
    for (const bool bias : {false, true}) {
      op::LayerNormAttributes attributes;
      NodeInputs inputs{f32(Shape{3, 4, 100}, 10, 12)};
      inputs.emplace_back(scale ? std::optional(f32(Shape{100}, 0.5, 1.5, 2)) : std::nullopt);
      inputs.emplace_back(bias ? std::optional(f32(Shape{100}, -1, 1, 3)) : std::nullopt);
      auto got = run_node(cpu_device(), make_node(attributes, 3), inputs);
      ASSERT_TRUE(got.ok()) << got.status().message();
      ops::HostTensor want(inputs[0]->info);
      const auto* x = reinterpret_cast<const float*>(inputs[0]->bytes.data());
      for (int64_t row = 0; row < 12; ++row) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < 100; ++i) mean += static_cast<double>(x[row * 100 + i]) / 100;
        for (int64_t i = 0; i < 100; ++i)
          squares += std::pow(static_cast<double>(x[row * 100 + i]) - mean, 2) / 100;
        for (int64_t i = 0; i < 100; ++i) {
          double y = (static_cast<double>(x[row * 100 + i]) - mean) / std::sqrt(squares + 1e-5);
          if (scale) y *= static_cast<double>(reinterpret_cast<const float*>(inputs[1]->bytes.data())[i]);
          if (bias) y += static_cast<double>(reinterpret_cast<const float*>(inputs[2]->bytes.data())[i]);
          reinterpret_cast<float*>(want.bytes.data())[row * 100 + i] = static_cast<float>(y);
        }
      }
      EXPECT_TRUE(near(got->outputs[0], want, {1e-4, 1e-5}));
    }
}

TEST(CpuOptimizer, Steps) {
  const Shape shape{33, 50};
  for (const bool nesterov : {false, true}) {
    op::SgdStepAttributes sgd;
    sgd.momentum = 0.9f;
    sgd.weight_decay = 0.01f;
    sgd.nesterov = nesterov;
    check_node(
        cpu_device(), make_node(sgd, 4, 2),
        {f32(shape, -1, 1, 1), f32(shape, -1, 1, 2), f32(shape, -1, 1, 3), scalar_tensor(DType::F32, 0.1)});
  }
  op::SgdStepAttributes plain;
  check_node(cpu_device(), make_node(plain, 4),
             {f32(shape, -1, 1, 1), f32(shape, -1, 1, 2), std::nullopt, scalar_tensor(DType::F32, 0.1)});
  for (const bool decoupled : {false, true})
    for (const double step : {1, 2, 1000}) {
      op::AdamStepAttributes adam;
      adam.weight_decay = 0.01f;
      adam.decoupled = decoupled;
      check_node(cpu_device(), make_node(adam, 6, 3),
                 {f32(shape, -1, 1, 1), f32(shape, -1, 1, 2), f32(shape, -1, 1, 3), f32(shape, 0.1, 1, 4),
                  scalar_tensor(DType::I32, step), scalar_tensor(DType::F32, 0.001)});
    }
}

}  // namespace
}  // namespace librt::test
