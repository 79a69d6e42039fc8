// Runs single nodes through the reference evaluator on small tensors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "runtime/core/element.h"
#include "runtime/ops/evaluate.h"

namespace librt::test {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline ops::HostTensor tensor(DType dtype, Shape shape, const std::vector<double>& values) {
  ops::HostTensor out(TensorInfo{.dtype = dtype, .shape = shape});
  EXPECT_EQ(out.info.elements(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    store_element(out.bytes.data(), dtype, static_cast<int64_t>(i), values[i]);
  return out;
}
inline ops::HostTensor f32(Shape shape, const std::vector<double>& values) {
  return tensor(DType::F32, shape, values);
}
inline ops::HostTensor integers(DType dtype, const std::vector<int64_t>& values) {
  ops::HostTensor out(TensorInfo{.dtype = dtype, .shape = {static_cast<int64_t>(values.size())}});
  for (size_t i = 0; i < values.size(); ++i)
    store_integer(out.bytes.data(), dtype, static_cast<int64_t>(i), values[i]);
  return out;
}

inline std::vector<double> numbers(const ops::HostTensor& x) {
  std::vector<double> out;
  for (int64_t i = 0; i < x.info.elements(); ++i)
    out.push_back(load_element(x.bytes.data(), x.info.dtype, i));
  return out;
}
inline std::vector<int64_t> integers(const ops::HostTensor& x) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < x.info.elements(); ++i)
    out.push_back(load_integer(x.bytes.data(), x.info.dtype, i));
  return out;
}

/// Infers and evaluates one node; std::nullopt is an absent input.
template <class Attributes>
Result<std::vector<ops::HostTensor>> run_all(Attributes attributes,
                                             const std::vector<std::optional<ops::HostTensor>>& inputs) {
  Node node;
  node.op = make_op(std::move(attributes));
  node.name = "node";
  std::vector<Operand> operands;
  std::vector<ConstTensorView> views;
  for (const auto& input : inputs) {
    operands.push_back(input ? Operand{.present = true, .info = input->info, .value = input->bytes.data()}
                             : Operand{});
    views.push_back(input ? input->view() : ConstTensorView{});
  }
  return ops::evaluate_node({.node = node, .inputs = operands}, views);
}

template <class Attributes>
Result<ops::HostTensor> run_one(Attributes attributes,
                                const std::vector<std::optional<ops::HostTensor>>& inputs) {
  RT_ASSIGN(std::vector<ops::HostTensor> results, run_all(std::move(attributes), inputs));
  return std::move(results[0]);
}

/// Equal up to `tolerance`; NaN equals NaN.
inline void expect_values(const std::vector<double>& got, const std::vector<double>& want,
                          double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    else if (std::isinf(want[i]))
      EXPECT_EQ(got[i], want[i]) << "element " << i;
    else
      EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
  }
}

template <class Attributes>
void expect_result(Attributes attributes, const std::vector<std::optional<ops::HostTensor>>& inputs,
                   const ops::HostTensor& want, double tolerance = 1e-6) {
  const auto got = run_one(std::move(attributes), inputs);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(text(got->info), text(want.info));
  expect_values(numbers(*got), numbers(want), tolerance);
}

template <class Attributes>
void expect_error(Attributes attributes, const std::vector<std::optional<ops::HostTensor>>& inputs,
                  std::string_view part) {
  const auto got = run_one(std::move(attributes), inputs);
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.status().message().find(part), std::string::npos) << got.status().message();
}

}  // namespace librt::test
