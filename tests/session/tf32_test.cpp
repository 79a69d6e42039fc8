// f32 matmuls with operands rounded to TF32: only when the session requests it, and rejected where it is not
// supported. argv[1]: the backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/session/session.h"
#include "tests/support/backend_main.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;

using test::backend_name;
bool has_tf32 = false;

constexpr int64_t kRows = 70, kDepth = 52, kColumns = 68;

/// All values need the full 24-bit significand.
std::vector<float> numbers(int64_t count, double step) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(static_cast<double>(i) * step) + 1.0 / 3);
  return values;
}

const std::vector<float>& first() {
  static const std::vector<float> values = numbers(kRows * kDepth, 0.7);
  return values;
}
const std::vector<float>& second() {
  static const std::vector<float> values = numbers(kDepth * kColumns, 1.3);
  return values;
}

/// y = a b, as a matmul or as a 1x1 convolution.
std::shared_ptr<const ModelGraph> matmul_model(bool as_convolution) {
  auto model = std::make_shared<ModelGraph>();
  Graph graph;
  graph.name = "infer";
  Builder build(graph);
  if (as_convolution) {
    const ValueId x = build.input("a", DType::F32, {{.extent = 1}, {.extent = kRows}, {.extent = kDepth}});
    const ValueId weight =
        build.input("b", DType::F32, {{.extent = kColumns}, {.extent = 1}, {.extent = kDepth}});
    op::ConvAttributes attributes;
    attributes.strides = attributes.dilations = {1};
    attributes.pads = {0, 0};
    build.output(build.emit(std::move(attributes), {x, weight}));
  } else {
    const ValueId a = build.input("a", DType::F32, {{.extent = kRows}, {.extent = kDepth}});
    const ValueId b = build.input("b", DType::F32, {{.extent = kColumns}, {.extent = kDepth}});
    op::MatMulAttributes attributes;
    attributes.transpose_b = true;
    build.output(build.emit(attributes, {a, b}));
  }
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  model->entries.push_back({"infer", std::move(graph)});
  return model;
}

Result<std::unique_ptr<Session>> open(const std::shared_ptr<const ModelGraph>& model,
                                      const std::string& precision) {
  SessionOptions options{.backend = backend_name, .strict = true};
  options.precision = precision;
  options.deterministic = true;  // no timing: selects the first row that supports it
  return Session::create(model, options);
}

/// The largest difference from accumulation in double, relative to the largest result.
double error_of(bool as_convolution, const std::string& precision) {
  auto session = open(matmul_model(as_convolution), precision);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) return 0;
  const Shape a = as_convolution ? Shape{1, kRows, kDepth} : Shape{kRows, kDepth};
  const Shape b = as_convolution ? Shape{kColumns, 1, kDepth} : Shape{kColumns, kDepth};
  EXPECT_TRUE((*session)->set_input(0, {first().data(), {DType::F32, a}}, first().size() * 4).ok());
  EXPECT_TRUE((*session)->set_input(1, {second().data(), {DType::F32, b}}, second().size() * 4).ok());
  const Status status = (*session)->run();
  EXPECT_TRUE(status.ok()) << status.message();
  const auto y = (*session)->output(0);
  EXPECT_TRUE(y.ok());
  if (!y.ok()) return 0;
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      double want = 0;
      for (int64_t k = 0; k < kDepth; ++k)
        want += static_cast<double>(first()[static_cast<size_t>(i * kDepth + k)]) *
                static_cast<double>(second()[static_cast<size_t>(j * kDepth + k)]);
      worst = std::max(worst, std::abs(want - static_cast<double>(y->as<float>()[i * kColumns + j])));
      largest = std::max(largest, std::abs(want));
    }
  return worst / largest;
}

TEST(Tf32, IsComputedWhereItIsAskedFor) {
  if (!has_tf32) GTEST_SKIP() << backend_name << " has no TF32";
  for (const bool as_convolution : {false, true}) {
    EXPECT_LT(error_of(as_convolution, ""), 1e-6);
    EXPECT_LT(error_of(as_convolution, "fp32"), 1e-6);
    const double error = error_of(as_convolution, "tf32");
    EXPECT_GT(error, 1e-5);
    EXPECT_LT(error, 1e-3);
  }
}

TEST(Tf32, IsRefusedElsewhere) {
  if (has_tf32) GTEST_SKIP() << backend_name << " has TF32";
  const auto session = open(matmul_model(false), "tf32");
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), Code::Unsupported);
  for (const std::string& word : {std::string("tf32"), backend_name, std::string("fp32")})
    EXPECT_NE(session.status().message().find(word), std::string::npos) << session.status().message();
}

TEST(Tf32, IsNotSharedWithASessionWithoutIt) {
  if (!has_tf32) GTEST_SKIP() << backend_name << " has no TF32";
  const auto model = matmul_model(false);
  auto plain = open(model, "");
  ASSERT_TRUE(plain.ok());
  SessionOptions options{.backend = backend_name};
  options.precision = "tf32";
  const auto session = Session::create(model, options, plain->get());
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.status().message().find("without precision 'tf32'"), std::string::npos)
      << session.status().message();
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(
      argc, argv, [](librt::Device& device) { librt::has_tf32 = librt::has_feature(device.info(), "tf32"); });
}
