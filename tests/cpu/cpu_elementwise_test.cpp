// Unary, binary, comparison, select and cast kernels.
#include "tests/cpu/cpu_support.h"

#include <cmath>
#include <limits>

#include "backends/cpu/support/block_quantization.h"

namespace librt::test {
namespace {

const Shape kShapes[] = {Shape{}, Shape{0}, Shape{1}, Shape{3, 5, 7}, Shape{40000}};

template <class Attributes>
void check_unary(double low, double high, Attributes attributes = {}) {
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    // A 16-bit result may round to either neighbour of the reference.
    std::optional<ops::Tolerance> tolerance;
    if (dtype == DType::F16) tolerance = {2e-3, 1e-4};
    if (dtype == DType::BF16) tolerance = {1e-2, 1e-3};
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(text(name_of(dtype), shape));
      check_node(cpu_device(), make_node(attributes, 1), {ramp(dtype, shape, low, high)}, 0, tolerance);
    }
  }
}

TEST(CpuUnary, Functions) {
  check_unary<op::AbsAttributes>(-3, 3);
  check_unary<op::NegAttributes>(-3, 3);
  check_unary<op::ExpAttributes>(-10, 10);
  check_unary<op::LogAttributes>(0.001, 50);
  check_unary<op::SqrtAttributes>(0, 50);
  check_unary<op::ReciprocalAttributes>(0.1, 10);
  check_unary<op::SinAttributes>(-50, 50);
  check_unary<op::CosAttributes>(-50, 50);
  check_unary<op::TanhAttributes>(-10, 10);
  check_unary<op::SigmoidAttributes>(-20, 20);
  check_unary<op::ReluAttributes>(-3, 3);
  check_unary<op::ErfAttributes>(-5, 5);
  check_unary<op::FloorAttributes>(-5, 5);
  check_unary<op::CeilAttributes>(-5, 5);
  check_unary<op::RoundAttributes>(-5, 5);
  check_unary<op::SignAttributes>(-1, 1);
  check_unary<op::SoftplusAttributes>(-30, 30);
  check_unary<op::LeakyReluAttributes>(-3, 3);
  check_unary<op::EluAttributes>(-5, 3);
  check_unary<op::HardSigmoidAttributes>(-5, 5);
  check_unary<op::HardSwishAttributes>(-5, 5);
  op::ClipAttributes clip;
  clip.minimum = -0.5f;
  clip.maximum = 1.25f;
  check_unary(-3, 3, clip);
}

TEST(CpuUnary, Composites) {
  // Their bodies come from the compiler; the reference here is the formula in double.
  const auto x = f32(Shape{1000}, -8, 8);
  const auto check = [&](Node node, double (*formula)(double)) {
    auto got = run_node(cpu_device(), node, {x});
    ASSERT_TRUE(got.ok()) << got.status().message();
    ops::HostTensor want(x.info);
    for (int64_t i = 0; i < 1000; ++i)
      reinterpret_cast<float*>(want.bytes.data())[i] =
          static_cast<float>(formula(static_cast<double>(reinterpret_cast<const float*>(x.bytes.data())[i])));
    EXPECT_TRUE(near(got->outputs[0], want, {1e-5, 2e-6}));
  };
  check(make_node(op::GeluAttributes{}, 1), [](double v) { return 0.5 * v * (1 + std::erf(v * M_SQRT1_2)); });
  op::GeluAttributes approximate;
  approximate.tanh_approximation = true;
  check(make_node(approximate, 1),
        [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); });
  check(make_node(op::SiluAttributes{}, 1), [](double v) { return v / (1 + std::exp(-v)); });
}

TEST(CpuUnary, Integers) {
  for (const DType dtype : {DType::I8, DType::I16, DType::I32, DType::I64}) {
    const auto x = ramp(dtype, Shape{300}, -100, 100);
    check_node(cpu_device(), make_node(op::AbsAttributes{}, 1), {x});
    check_node(cpu_device(), make_node(op::NegAttributes{}, 1), {x});
    check_node(cpu_device(), make_node(op::SignAttributes{}, 1), {x});
    op::ClipAttributes clip;
    clip.minimum = -10.5f;
    clip.maximum = 20.25f;
    check_node(cpu_device(), make_node(clip, 1), {x});
  }
  check_node(cpu_device(), make_node(op::AbsAttributes{}, 1), {ramp(DType::U8, Shape{300}, 0, 255)});
  check_node(cpu_device(), make_node(op::NotAttributes{}, 1), {ramp(DType::Bool, Shape{7, 9}, 0, 1)});
}

TEST(CpuUnary, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> values{0.0,    -0.0,    1,     -1,    inf,  -inf, nan,   88.7,
                                   89,     -87,     -100,  -104,  -110, 1e30, -1e30, 1e-30,
                                   -1e-30, 1.4e-45, 1e-40, 1e20f, 8191, 8193, 1e6,   -1e6};
  const auto x = tensor_of({DType::F32, Shape{static_cast<int64_t>(values.size())}}, values);
  const auto check = [&](Node node, const char* name) {
    SCOPED_TRACE(name);
    check_node(cpu_device(), node, {x}, 0, ops::Tolerance{1e-5, 1e-44});
  };
  check(make_node(op::ExpAttributes{}, 1), "exp");
  check(make_node(op::LogAttributes{}, 1), "log");
  check(make_node(op::TanhAttributes{}, 1), "tanh");
  check(make_node(op::ErfAttributes{}, 1), "erf");
  check(make_node(op::SqrtAttributes{}, 1), "sqrt");
  check(make_node(op::ReluAttributes{}, 1), "relu");
  check(make_node(op::SignAttributes{}, 1), "sign");
  check(make_node(op::FloorAttributes{}, 1), "floor");
  check(make_node(op::AbsAttributes{}, 1), "abs");
  check(make_node(op::SoftplusAttributes{}, 1), "softplus");
  check_node(cpu_device(), make_node(op::SigmoidAttributes{}, 1), {x}, 0, ops::Tolerance{1e-5, 1e-38});
  check_node(cpu_device(), make_node(op::SinAttributes{}, 1), {x}, 0, ops::Tolerance{1e-5, 1e-6});
}

TEST(CpuBinary, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> values{0.0,   -0.0, 1,    -1,  2,        -2,       3,         -3,     0.5,
                                   -0.5,  5.5,  -5.5, inf, -inf,     nan,      1e-40,     -1e-30, 3e38,
                                   -3e38, 127,  -149, 1e9, 16777215, 16777216, -16777217, 0.99,   1e-9};
  const auto n = static_cast<int64_t>(values.size());
  const auto x = tensor_of({DType::F32, Shape{n, 1}}, values);
  const auto y = tensor_of({DType::F32, Shape{n}}, values);
  check_node(cpu_device(), make_node(op::PowAttributes{}, 2), {x, y}, 0, ops::Tolerance{1e-6, 1e-44});
  check_node(cpu_device(), make_node(op::PowAttributes{}, 2), {y, y}, 0, ops::Tolerance{1e-6, 1e-44});
  for (const double exponent : {2.0, 3.0, 1.0, -1.0, 0.5, 0.0, -inf, nan})
    check_node(cpu_device(), make_node(op::PowAttributes{}, 2), {x, scalar_tensor(DType::F32, exponent)}, 0,
               ops::Tolerance{1e-6, 1e-44});
  for (const bool truncated : {false, true}) {
    op::ModAttributes mod;
    mod.truncated = truncated;
    check_node(cpu_device(), make_node(mod, 2), {x, y}, 0, ops::Tolerance{1e-6, 0});
    check_node(cpu_device(), make_node(mod, 2), {f32(Shape{1000}, -50, 50, 1), f32(Shape{1000}, -3, 3, 2)}, 0,
               ops::Tolerance{1e-6, 0});
  }
}

template <class Attributes>
void check_binary(DType dtype, double low, double high, Attributes attributes = {}) {
  const std::pair<Shape, Shape> pairs[] = {
      {Shape{}, Shape{}},
      {Shape{5}, Shape{}},
      {Shape{}, Shape{0, 3}},
      {Shape{2, 3, 4, 5}, Shape{2, 3, 4, 5}},
      {Shape{2, 3, 4, 5}, Shape{5}},
      {Shape{2, 3, 4, 5}, Shape{2, 3, 4, 1}},
      {Shape{2, 1, 4, 1}, Shape{1, 3, 1, 5}},
      {Shape{7, 1}, Shape{1, 9}},
      {Shape{3, 1, 1}, Shape{3, 50, 130}},
      {Shape{3, 1}, Shape{2, 3, 7000}},
  };
  std::optional<ops::Tolerance> tolerance;
  if (dtype == DType::F16) tolerance = {2e-3, 1e-4};
  if (dtype == DType::BF16) tolerance = {1e-2, 1e-3};
  for (const auto& [a, b] : pairs) {
    SCOPED_TRACE(text(name_of(dtype), a, b));
    check_node(cpu_device(), make_node(attributes, 2),
               {ramp(dtype, a, low, high, 1), ramp(dtype, b, low, high, 2)}, 0, tolerance);
  }
}

TEST(CpuBinary, Floats) {
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    check_binary<op::AddAttributes>(dtype, -3, 3);
    check_binary<op::MulAttributes>(dtype, -3, 3);
    check_binary<op::MinimumAttributes>(dtype, -3, 3);
    check_binary<op::LessAttributes>(dtype, -1, 1);
  }
  check_binary<op::SubAttributes>(DType::F32, -3, 3);
  check_binary<op::DivAttributes>(DType::F32, 0.5, 3);
  check_binary<op::PowAttributes>(DType::F32, 0.5, 3);
  check_binary<op::MaximumAttributes>(DType::F32, -3, 3);
  check_binary<op::EqualAttributes>(DType::F32, -1, 1);
  check_binary<op::GreaterAttributes>(DType::F32, -1, 1);
  check_binary<op::GreaterOrEqualAttributes>(DType::F32, -1, 1);
  check_binary<op::LessOrEqualAttributes>(DType::F32, -1, 1);
  check_binary<op::ModAttributes>(DType::F32, 1, 1.9);
  op::ModAttributes truncated;
  truncated.truncated = true;
  check_binary(DType::F32, 1, 1.9, truncated);
}

TEST(CpuBinary, Integers) {
  for (const DType dtype :
       {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64}) {
    check_binary<op::AddAttributes>(dtype, 0, 100);
    check_binary<op::SubAttributes>(dtype, 0, 100);
    check_binary<op::MulAttributes>(dtype, 0, 100);
    check_binary<op::DivAttributes>(dtype, 1, 100);
    check_binary<op::ModAttributes>(dtype, 1, 100);
    check_binary<op::PowAttributes>(dtype, 0, 5);
    check_binary<op::MaximumAttributes>(dtype, 0, 100);
    check_binary<op::EqualAttributes>(dtype, 0, 2);
    check_binary<op::LessAttributes>(dtype, 0, 10);
  }
  for (const DType dtype : {DType::I8, DType::I32, DType::I64}) {
    check_binary<op::ModAttributes>(dtype, -100, -1);
    check_binary<op::SubAttributes>(dtype, -100, 100);
    check_binary<op::MinimumAttributes>(dtype, -100, 100);
  }
  check_binary<op::AndAttributes>(DType::Bool, 0, 1);
  check_binary<op::OrAttributes>(DType::Bool, 0, 1);
  check_binary<op::XorAttributes>(DType::Bool, 0, 1);
}

TEST(CpuBinary, DivisionByZeroGivesZeroAndNeverTraps) {
  const TensorInfo info{DType::I32, Shape{4}};
  const double least = std::numeric_limits<int32_t>::min();
  const NodeInputs inputs{tensor_of(info, {7, -7, 0, least}), tensor_of(info, {0, 0, 0, -1})};
  auto quotient = run_node(cpu_device(), make_node(op::DivAttributes{}, 2), inputs);
  ASSERT_TRUE(quotient.ok()) << quotient.status().message();
  EXPECT_TRUE(near(quotient->outputs[0], tensor_of(info, {0, 0, 0, least}), {}));
  auto rest = run_node(cpu_device(), make_node(op::ModAttributes{}, 2), inputs);
  ASSERT_TRUE(rest.ok()) << rest.status().message();
  EXPECT_TRUE(near(rest->outputs[0], tensor_of(info, {0, 0, 0, 0}), {}));
}

TEST(CpuSelect, Where) {
  for (const DType dtype : {DType::F32, DType::U8, DType::I64, DType::F16}) {
    const auto c = ramp(DType::Bool, Shape{4, 1, 5}, 0, 1);
    check_node(cpu_device(), make_node(op::WhereAttributes{}, 3),
               {c, ramp(dtype, Shape{4, 3, 5}, 0, 9, 2), ramp(dtype, Shape{}, 0, 9, 3)});
    check_node(cpu_device(), make_node(op::WhereAttributes{}, 3),
               {ramp(DType::Bool, Shape{900}, 0, 1), ramp(dtype, Shape{900}, 0, 9, 2),
                ramp(dtype, Shape{900}, 0, 9, 3)});
  }
}

TEST(CpuCast, AllPairs) {
  for (int from = 0; from < kDTypeCount; ++from)
    for (int to = 0; to < kDTypeCount; ++to) {
      op::CastAttributes cast;
      cast.to = static_cast<uint8_t>(to);
      SCOPED_TRACE(text(name_of(static_cast<DType>(from)), " to ", name_of(static_cast<DType>(to))));
      check_node(cpu_device(), make_node(cast, 1), {ramp(static_cast<DType>(from), Shape{77}, -300, 300)}, 0,
                 ops::Tolerance{0, 0});
    }
}

TEST(CpuCast, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto x = tensor_of({DType::F32, Shape{12}},
                           {0, -0.0, inf, -inf, std::nan(""), 1e10, -1e10, 65519, 65520, 1e-8, 6e-8, 0.1});
  for (int to = 0; to < kDTypeCount; ++to) {
    op::CastAttributes cast;
    cast.to = static_cast<uint8_t>(to);
    SCOPED_TRACE(name_of(static_cast<DType>(to)));
    check_node(cpu_device(), make_node(cast, 1), {x}, 0, ops::Tolerance{0, 0});
  }
}

/// Numbers beyond 32 bits in one block, on its ends, and in none.
TEST(CpuCast, WideNumbersInSomeBlocks) {
  const double two31 = 2147483648.0, inf = std::numeric_limits<double>::infinity();
  for (const DType from : {DType::F32, DType::F64, DType::I64, DType::F16})
    for (const double number : {two31, two31 - 1, -two31, -two31 - 1, -two31 - 1024, 9.2233720368547758e18,
                                -9.2233720368547758e18, 4294967296.0, 65504.0, inf, -inf, std::nan("")}) {
      if (from == DType::I64 && !(std::abs(number) < 9e18)) continue;
      for (const size_t at : {size_t{0}, size_t{511}, size_t{512}, size_t{1299}}) {
        std::vector<double> numbers(1300);
        for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 251) * 0.75 - 90;
        numbers[at] = number;
        const auto x = tensor_of({from, Shape{1300}}, numbers);
        for (int to = 0; to < kDTypeCount; ++to) {
          op::CastAttributes cast;
          cast.to = static_cast<uint8_t>(to);
          SCOPED_TRACE(text(name_of(from), " ", number, " at ", at, " to ", name_of(static_cast<DType>(to))));
          check_node(cpu_device(), make_node(cast, 1), {x}, 0, ops::Tolerance{0, 0});
        }
      }
    }
}

/// All vector counts with remainders, codebooks with fewer than 256 levels, values exactly on thresholds.
TEST(CpuBlocks, QuantizedValuesOfAllInstructionSets) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const cpu::Simd* sets[3] = {};
  const int count = cpu::available_simd(sets);
  for (const int levels : {2, 17, 255, 256})
    for (const bool negative : {true, false}) {
      std::vector<float> numbers;
      for (int i = 0; i < levels; ++i) {
        const float place = static_cast<float>(i) / static_cast<float>(levels - 1);
        numbers.push_back(negative ? 2 * place - 1 : place * place * place);
      }
      const cpu::Codebook codebook(numbers.data(), levels);
      for (const float scale : {1.5f, 1e-39f, 0.0f, nan})
        for (int n = 1; n < 150; n += n < 20 ? 1 : 43) {
          std::vector<float> x{scale};
          for (int i = 1; i < n; ++i) {
            const auto k = static_cast<size_t>(i * 29 % (levels - 1));
            const float threshold = 0.5f * (numbers[k] + numbers[k + 1]) * scale;
            x.push_back(i % 3 == 0 && scale != 0 ? std::nextafter(threshold, -infinity) : threshold);
          }
          for (int set = 0; set < count; ++set) {
            SCOPED_TRACE(text(sets[set]->name, " levels ", levels, " scale ", scale, " n ", n));
            std::vector<uint8_t> codes(x.size() + 1, 77);
            const float found = codebook.quantize(*sets[set], x.data(), codes.data(), n, !negative);
            EXPECT_TRUE(found == scale || (std::isnan(found) && std::isnan(scale)));
            EXPECT_EQ(codes.back(), 77);
            std::vector<float> back(x.size() + 1, 77);
            codebook.dequantize(*sets[set], codes.data(), scale, back.data(), n);
            EXPECT_EQ(back.back(), 77);
            int wrong = 0;
            for (size_t i = 0; i < x.size(); ++i) {
              // NaN thresholds are never reached; equal thresholds are all reached together.
              size_t code = 0;
              for (size_t k = 1; k < numbers.size(); ++k)
                code += x[i] >= 0.5f * (numbers[k - 1] + numbers[k]) * scale ? 1 : 0;
              if (!negative && x[i] > 0) code = std::max<size_t>(code, 1);
              const float number = numbers[code] * scale;
              wrong += codes[i] != code || !(back[i] == number || std::isnan(number)) ? 1 : 0;
            }
            EXPECT_EQ(wrong, 0);
          }
        }
    }
}

TEST(CpuBlocks, InfinityHasTheLastCode) {
  const float numbers[] = {0, 0.25f, 1};
  const cpu::Simd* sets[3] = {};
  const int count = cpu::available_simd(sets);
  for (int set = 0; set < count; ++set) {
    const float x[] = {std::numeric_limits<float>::infinity(), 1};
    uint8_t codes[2] = {};
    cpu::Codebook(numbers, 3).quantize(*sets[set], x, codes, 2, false);
    EXPECT_EQ(codes[0], 2) << sets[set]->name;
    EXPECT_EQ(codes[1], 0) << sets[set]->name;
  }
}

TEST(CpuRandom, DoublesHaveMoreBits) {
  const auto shape = tensor_of({DType::I64, Shape{2}}, {3, 71});
  op::RandomUniformAttributes uniform;
  uniform.to = static_cast<uint8_t>(DType::F64);
  uniform.seed = 7;
  check_node(cpu_device(), make_node(uniform, 1), {shape}, 1u << 0, ops::Tolerance{1e-15, 0});
  op::RandomNormalAttributes normal;
  normal.to = static_cast<uint8_t>(DType::F64);
  check_node(cpu_device(), make_node(normal, 1), {shape}, 1u << 0, ops::Tolerance{1e-13, 1e-13});
}

}  // namespace
}  // namespace librt::test
