// The loops of simd/gemm.h for every instruction set, and products larger than the blocks of support/gemm.h.
#include <algorithm>
#include <cmath>

#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/integer_winograd.h"
#include "backends/cpu/support/gemm.h"
#include "backends/cpu/support/integer_gemm.h"
#include "tests/cpu/cpu_support.h"
#include "tests/cpu/integer_tile.h"

namespace librt::test {
namespace {

/// Small integers, whose products and sums are exact.
std::vector<float> numbers(int64_t count, int64_t seed) {
  std::vector<float> made(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    made[static_cast<size_t>(i)] = static_cast<float>((i * 7 + seed) % 13 - 6);
  return made;
}

template <class Check>
void on_every_set(const Check& check) {
  const cpu::Simd* sets[3] = {};
  const int count = cpu::available_simd(sets);
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(sets[i]->name);
    check(sets[i]->loops<cpu::GemmLoops>());
  }
}

TEST(CpuGemm, TilesWriteTheirPartOnly) {
  on_every_set([](const cpu::GemmLoops& loops) {
    constexpr int64_t kStride = cpu::GemmLoops::kMostColumns + 3;
    ASSERT_LE(loops.rows, cpu::GemmLoops::kMostRows);
    ASSERT_LE(loops.columns, cpu::GemmLoops::kMostColumns);
    for (const int64_t k : {1, 2, 17})
      for (int64_t m = 1; m <= loops.rows; ++m)
        for (int64_t n = 1; n <= loops.columns; ++n)
          for (const bool accumulate : {false, true}) {
            const auto a = numbers(k * loops.rows, 1), b = numbers(k * loops.columns, 5);
            const auto before = numbers((loops.rows + 1) * kStride, 3);
            auto y = before;
            loops.tile(a.data(), b.data(), k, y.data(), kStride, m, n, accumulate);
            int wrong = 0;
            for (int64_t i = 0; i <= loops.rows; ++i)
              for (int64_t j = 0; j < kStride; ++j) {
                const auto at = static_cast<size_t>(i * kStride + j);
                float expected = before[at];
                if (i < m && j < n) {
                  expected = accumulate ? before[at] : 0;
                  for (int64_t p = 0; p < k; ++p)
                    expected += a[static_cast<size_t>(p * loops.rows + i)] *
                                b[static_cast<size_t>(p * loops.columns + j)];
                }
                wrong += y[at] == expected ? 0 : 1;
              }
            ASSERT_EQ(wrong, 0) << "k " << k << " m " << m << " n " << n << " accumulate " << accumulate;
          }
  });
}

/// Rows that are not packed, next to each other or apart.
TEST(CpuGemm, TilesOfRowsInPlace) {
  on_every_set([](const cpu::GemmLoops& loops) {
    if (loops.rows_tile == nullptr) GTEST_SKIP() << "this instruction set has none";
    constexpr int64_t kStride = cpu::GemmLoops::kMostColumns + 3;
    for (const int64_t k : {1, 2, 17})
      for (const int64_t apart : {k, k + 5})
        for (int64_t n = 1; n <= loops.columns; ++n)
          for (const bool accumulate : {false, true}) {
            const auto a = numbers((loops.rows - 1) * apart + k, 1), b = numbers(k * loops.columns, 5);
            const auto before = numbers(loops.rows * kStride, 3);
            auto y = before;
            loops.rows_tile(a.data(), apart, b.data(), k, y.data(), kStride, n, accumulate);
            int wrong = 0;
            for (int64_t i = 0; i < loops.rows; ++i)
              for (int64_t j = 0; j < kStride; ++j) {
                const auto at = static_cast<size_t>(i * kStride + j);
                float expected = before[at];
                if (j < n) {
                  expected = accumulate ? before[at] : 0;
                  for (int64_t p = 0; p < k; ++p)
                    expected +=
                        a[static_cast<size_t>(i * apart + p)] * b[static_cast<size_t>(p * loops.columns + j)];
                }
                wrong += y[at] == expected ? 0 : 1;
              }
            ASSERT_EQ(wrong, 0) << "k " << k << " apart " << apart << " n " << n << " accumulate "
                                << accumulate;
          }
  });
}

TEST(CpuGemm, Panels) {
  on_every_set([](const cpu::GemmLoops& loops) {
    for (const int64_t width : {loops.rows, loops.columns})
      for (const int64_t k : {1, 3, 4, 11, 400}) {
        const auto x = numbers(width * (k + 2), 2);
        std::vector<float> gathered(static_cast<size_t>(k * width + 1), 77.0f), copied = gathered;
        for (int64_t count = 1; count <= width; ++count) {
          SCOPED_TRACE(text("width ", width, " k ", k, " count ", count));
          cpu::gather_rows(loops, x.data(), k + 2, count, k, gathered.data(), width);
          loops.copy(x.data(), width, count, k, copied.data(), width);
          int wrong = 0;
          for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < width; ++j) {
              const auto at = static_cast<size_t>(i * width + j);
              wrong += gathered[at] == (j < count ? x[static_cast<size_t>(j * (k + 2) + i)] : 0) ? 0 : 1;
              wrong += copied[at] == (j < count ? x[at] : 0) ? 0 : 1;
            }
          ASSERT_EQ(wrong, 0);
          ASSERT_TRUE(gathered.back() == 77 && copied.back() == 77);
        }
      }
  });
}

TEST(CpuGemm, DepthwisePoints) {
  on_every_set([](const cpu::GemmLoops& loops) {
    for (const int64_t taps : {0, 1, 9})
      for (int64_t channels = 1; channels < 150; channels += channels < 20 ? 1 : 43) {
        const auto x = numbers(9 * channels, 1), weight = numbers(9 * channels, 4);
        const float *from[9], *weights[9];
        for (int64_t tap = 0; tap < taps; ++tap) {
          from[tap] = x.data() + tap * channels;
          weights[tap] = weight.data() + tap * channels;
        }
        std::vector<float> y(static_cast<size_t>(channels + 1), 77.0f), sums = y;
        loops.depthwise(from, weights, taps, channels, y.data());
        loops.multiply_add(x.data(), weight.data(), sums.data(), channels);
        int wrong = 0;
        for (int64_t c = 0; c < channels; ++c) {
          const auto at = static_cast<size_t>(c);
          float expected = 0;
          for (int64_t tap = 0; tap < taps; ++tap) expected += from[tap][c] * weights[tap][c];
          wrong += y[at] == expected ? 0 : 1;
          wrong += sums[at] == 77 + x[at] * weight[at] ? 0 : 1;
        }
        ASSERT_EQ(wrong, 0) << "taps " << taps << " channels " << channels;
        ASSERT_TRUE(y.back() == 77 && sums.back() == 77);
      }
  });
}

TEST(CpuGemm, IntegerTilesWriteTheirPartOnly) {
  const cpu::Simd* sets[3] = {};
  const int count = cpu::available_simd(sets);
  for (int set = 0; set < count; ++set) {
    SCOPED_TRACE(sets[set]->name);
    const auto& loops = sets[set]->loops<cpu::IntegerGemmLoops>();
    check_integer_tile(loops.pairs);
    if (sets[set]->dot_products && loops.dot.run != nullptr) check_integer_tile(loops.dot);
  }
}

/// Every row against the one in plain loops, which conformance compares with the composite's body.
void check_against_plain(const Node& node, const NodeInputs& inputs, const std::string& plain) {
  const auto want = run_node(cpu_device(), node, inputs, {.row = plain});
  ASSERT_TRUE(want.ok()) << want.status().message();
  for (const uint32_t constants : {0u, 2u}) {
    const auto rows = rows_for(cpu_device(), node, inputs, constants);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    for (const std::string& row : *rows) {
      SCOPED_TRACE(text(row, constants != 0 ? ", constant weights" : ""));
      const auto got = run_node(cpu_device(), node, inputs, {.constants = constants, .row = row});
      ASSERT_TRUE(got.ok()) << got.status().message();
      EXPECT_TRUE(near(got->outputs[0], want->outputs[0], {}));
    }
  }
}

/// Larger than a block, depths that are no multiple of four, zero points and both signs of both operands.
TEST(CpuGemm, IntegerProductsOfSeveralBlocks) {
  for (const DType a : {DType::U8, DType::I8})
    for (const DType b : {DType::U8, DType::I8})
      for (const auto& [m, k, n] : {std::array<int64_t, 3>{131, 301, 143}, {1, 64, 70}, {300, 2, 33}}) {
        SCOPED_TRACE(text(name_of(a), " ", name_of(b), " ", m, " x ", k, " x ", n));
        const double low_a = a == DType::I8 ? -128 : 0, low_b = b == DType::I8 ? -128 : 0;
        const auto x = ramp(a, Shape{m, k}, low_a, low_a + 255, 1),
                   w = ramp(b, Shape{k, n}, low_b, low_b + 255, 2);
        check_against_plain(make_node(op::MatMulIntegerAttributes{}, 2), {x, w}, "matmul_integer.plain");
        check_against_plain(
            make_node(op::MatMulIntegerAttributes{}, 4),
            {x, w, ramp(a, Shape{m, 1}, low_a, low_a + 255, 3), ramp(b, Shape{n}, low_b, low_b + 255, 4)},
            "matmul_integer.plain");
      }
  const auto bytes = [](const Shape& shape, uint64_t seed) { return ramp(DType::U8, shape, 0, 255, seed); };
  const Node batches = make_node(op::MatMulIntegerAttributes{}, 4);
  check_against_plain(batches,
                      {bytes(Shape{2, 3, 14, 35}, 1), bytes(Shape{3, 35, 36}, 2), bytes(Shape{3, 14, 1}, 3),
                       bytes(Shape{3, 1, 36}, 4)},
                      "matmul_integer.plain");
  check_against_plain(
      batches,
      {bytes(Shape{3, 14, 35}, 1), bytes(Shape{35, 36}, 2), bytes(Shape{3, 14, 1}, 3), bytes(Shape{36}, 4)},
      "matmul_integer.plain");
  for (const int64_t groups : {1, 3, 36}) {
    op::ConvIntegerAttributes conv;
    conv.groups = static_cast<int32_t>(groups);
    for (const int64_t kernel : {1, 3}) {
      conv.pads = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
      for (const DType type : {DType::U8, DType::I8}) {
        SCOPED_TRACE(text("groups ", groups, " kernel ", kernel, " ", name_of(type)));
        const double low = type == DType::I8 ? -128 : 0;
        check_against_plain(
            make_node(conv, 4),
            {ramp(DType::U8, Shape{2, 9, 11, 36}, 0, 255, 1),
             ramp(type, Shape{72 / (groups == 36 ? 2 : 1), kernel, kernel, 36 / groups}, low, low + 255, 2),
             scalar_tensor(DType::U8, 131), scalar_tensor(type, 5)},
            "conv_integer.plain");
      }
    }
  }
}

/// Our own rows of a requantized matmul or convolution against its parts: the integer one in plain loops, and
/// Requantize. (oneDNN's round otherwise.) tried: counts Winograd's.
template <class Quantized, class Integer>
void check_requantized(Quantized quantized, Integer integer, const std::string& plain,
                       const ops::HostTensor& x, const ops::HostTensor& w, int64_t channels,
                       op::Activation activation, int* tried = nullptr) {
  const ops::HostTensor x_zero = scalar_tensor(x.info.dtype, 7);
  const NodeInputs last{ramp(DType::F32, Shape{channels}, 0.0001, 0.001, 3),
                        ramp(DType::F32, Shape{channels}, -3, 3, 4), scalar_tensor(DType::F32, 0.3),
                        scalar_tensor(DType::U8, 90)};
  const auto sums = run_node(cpu_device(), make_node(std::move(integer), 3), {x, w, x_zero}, {.row = plain});
  ASSERT_TRUE(sums.ok()) << sums.status().message();
  op::RequantizeAttributes requantize;
  requantize.to = quantized.to = static_cast<uint8_t>(DType::U8);
  op::EpilogueAttributes epilogue;
  epilogue.activation = activation;
  epilogue.alpha = -2.5f;
  epilogue.beta = 7.0f;
  quantized.epilogue = std::make_unique<op::EpilogueAttributes>(epilogue);
  requantize.epilogue = std::make_unique<op::EpilogueAttributes>(epilogue);
  const auto want = run_node(cpu_device(), make_node(std::move(requantize), 5),
                             {sums->outputs[0], last[0], last[1], last[2], last[3]});
  ASSERT_TRUE(want.ok()) << want.status().message();
  constexpr uint32_t kConstants = 0b1111110;
  const Node node = make_node(std::move(quantized), 7);
  const NodeInputs inputs{x, w, last[0], x_zero, last[1], last[2], last[3]};
  const auto rows = rows_for(cpu_device(), node, inputs, kConstants);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  for (const std::string& row : *rows) {
    if (!row.ends_with(".gemm") && !row.ends_with(".winograd")) continue;
    SCOPED_TRACE(row);
    const auto got = run_node(cpu_device(), node, inputs, {.constants = kConstants, .row = row});
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_TRUE(near(got->outputs[0], want->outputs[0], {}));
    if (tried != nullptr && row.ends_with(".winograd")) ++*tried;
  }
}

/// More rows and columns than a block has, channels beyond a depthwise chunk, and remainders of all.
TEST(CpuGemm, RequantizedBlocks) {
  const auto weight = [](const Shape& shape) { return ramp(DType::I8, shape, -127, 127, 2); };
  using enum op::Activation;
  for (const auto& [type, activation] :
       {std::pair{DType::U8, None}, {DType::I8, Relu}, {DType::U8, Clip}, {DType::I8, Silu}}) {
    SCOPED_TRACE(text(name_of(type), " ", op::EnumNameActivation(activation)));
    const double low = type == DType::I8 ? -128 : 0;
    const auto x = [&type = type, low](const Shape& shape) { return ramp(type, shape, low, low + 255, 1); };
    for (const auto& [m, k, n] :
         {std::array<int64_t, 3>{231, 301, 1143}, {1, 64, 70}, {300, 2, 33}, {19, 40001, 3}})
      check_requantized(op::QuantizedMatMulAttributes{}, op::MatMulIntegerAttributes{},
                        "matmul_integer.plain", x(Shape{m, k}), weight(Shape{k, n}), n, activation);
    for (const auto& [groups, channels, kernel] :
         {std::array<int64_t, 3>{1, 36, 3}, {3, 36, 3}, {36, 36, 3}, {700, 700, 5}, {18, 18, 7}}) {
      SCOPED_TRACE(text("groups ", groups, " kernel ", kernel));
      op::QuantizedConvAttributes conv;
      op::ConvIntegerAttributes integer;
      integer.groups = conv.groups = groups;
      integer.pads = conv.pads = {kernel / 2, kernel / 2 + 1, 0, kernel / 2};
      check_requantized(std::move(conv), std::move(integer), "conv_integer.plain",
                        x(Shape{2, 9, 11, channels}),
                        weight(Shape{channels, kernel, kernel, channels / groups}), channels, activation);
    }
  }
}

/// The transforms around products of one channel each, and tiles of 16-bit integers, for every instruction
/// set.
TEST(CpuGemm, IntegerWinogradLoops) {
  using Loops = cpu::IntegerWinogradLoops;
  constexpr int64_t kChannels = 64;
  const cpu::Simd* sets[3] = {};
  const int count = cpu::available_simd(sets);
  for (int set = 0; set < count; ++set) {
    SCOPED_TRACE(sets[set]->name);
    const auto& loops = sets[set]->loops<Loops>();
    for (const DType type : {DType::I8, DType::U8}) {
      const double low = type == DType::I8 ? -128 : 0;
      const auto patch = ramp(type, Shape{Loops::kPoints, kChannels}, low, low + 255, 1),
                 window = ramp(DType::I8, Shape{9, kChannels}, -128, 127, 2);
      const uint8_t* elements[Loops::kPoints];
      for (int64_t i = 0; i < Loops::kPoints; ++i)
        elements[i] = reinterpret_cast<const uint8_t*>(patch.bytes.data()) + i * kChannels;
      const auto* taps = reinterpret_cast<const int8_t*>(window.bytes.data());
      std::vector<int16_t> v(Loops::kPoints * kChannels), u(v.size());
      std::vector<int32_t> m(v.size()), y(4 * kChannels + 1, 77);
      loops.patch[type == DType::I8 ? 0 : 1](elements, kChannels, v.data(), kChannels);
      for (int64_t c = 0; c < kChannels; c += Loops::kChannels)
        loops.weights(taps + c, kChannels, u.data() + c, kChannels);
      for (size_t i = 0; i < m.size(); ++i) m[i] = v[i] * u[i];
      loops.results(m.data(), kChannels, kChannels, y.data());
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t c = 0; c < kChannels; ++c) {
          int32_t want = 0;
          for (int64_t tap = 0; tap < 9; ++tap) {
            const uint8_t x = elements[(i / 2 + tap / 3) * 4 + i % 2 + tap % 3][c];
            want += (type == DType::I8 ? static_cast<int8_t>(x) : x) * taps[tap * kChannels + c];
          }
          ASSERT_EQ(y[static_cast<size_t>(i * kChannels + c)], want) << "result " << i << ", channel " << c;
        }
      ASSERT_EQ(y.back(), 77);
    }
    const cpu::IntegerTile& tile = sets[set]->loops<cpu::IntegerGemmLoops>().wide_pairs;
    const int64_t rows = tile.rows, columns = tile.columns, stride = columns + 3;
    constexpr int64_t kCount = 5, kStep = 2 * kCount + 6;
    std::vector<int16_t> a(static_cast<size_t>(rows * kStep)), b(static_cast<size_t>(kCount * columns * 2));
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<int16_t>(static_cast<int>(i * 389 % 2041) - 1020);
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = static_cast<int16_t>(static_cast<int>(i * 571 % 2305) - 1152);
    for (int64_t rows_of = 1; rows_of <= rows; ++rows_of)
      for (int64_t n = 1; n <= columns; ++n) {
        std::vector<int32_t> y(static_cast<size_t>((rows + 1) * stride), 7);
        tile.run(reinterpret_cast<const uint8_t*>(a.data()), 2 * kStep,
                 reinterpret_cast<const uint8_t*>(b.data()), kCount, y.data(), stride, rows_of, n);
        for (int64_t i = 0; i <= rows; ++i)
          for (int64_t j = 0; j < stride; ++j) {
            int32_t want = i < rows_of && j < n ? 0 : 7;
            for (int64_t k = 0; i < rows_of && j < n && k < 2 * kCount; ++k)
              want += a[static_cast<size_t>(i * kStep + k)] *
                      b[static_cast<size_t>((k / 2 * columns + j) * 2 + k % 2)];
            ASSERT_EQ(y[static_cast<size_t>(i * stride + j)], want) << rows_of << " x " << n;
          }
      }
  }
}

/// Odd sizes, padding on each side, several blocks, several chunks of channels, few tiles; and the largest
/// sums that it takes, of both signs.
TEST(CpuGemm, WinogradOfBytes) {
  if (cpu::best_simd().dot_products) GTEST_SKIP() << "the CPU has dot products of bytes, which are faster";
  using Padding = std::vector<int64_t>;
  struct Size {
    Shape x;
    int64_t channels;
    Padding pads;
  };
  const Size sizes[] = {
      {{2, 9, 11, 32}, 48, {1, 1, 1, 1}},  {{1, 37, 61, 48}, 32, {0, 1, 2, 0}},
      {{1, 9, 9, 64}, 272, {0, 0, 0, 0}},  {{3, 7, 7, 160}, 144, {1, 1, 1, 1}},
      {{1, 5, 4, 32}, 32, {3, 4, 2, 3}},   {{1, 1, 40, 32}, 32, {1, 1, 1, 1}},
      {{1, 6, 8, 1824}, 32, {1, 1, 1, 1}},
  };
  int tried = 0;
  for (const Size& size : sizes)
    for (const DType type : {DType::U8, DType::I8})
      for (const bool extreme : {false, true}) {
        SCOPED_TRACE(
            text(size.x, " to ", size.channels, " channels, ", name_of(type), extreme ? ", extremes" : ""));
        const double low = type == DType::I8 ? -128 : 0, high = low + 255;
        const double most = type == DType::I8 ? low : high;
        op::QuantizedConvAttributes conv;
        op::ConvIntegerAttributes integer;
        integer.pads = conv.pads = size.pads;
        const Shape weight{size.channels, 3, 3, size.x.back()};
        check_requantized(std::move(conv), std::move(integer), "conv_integer.plain",
                          ramp(type, size.x, extreme ? most : low, extreme ? most : high, 1),
                          ramp(DType::I8, weight, -128, extreme ? -128 : 127, 2), size.channels,
                          op::Activation::Relu, &tried);
      }
  EXPECT_EQ(tried, static_cast<int>(std::size(sizes)) * 4);
  // 4 y might leave 32 bits.
  op::QuantizedConvAttributes conv;
  conv.to = static_cast<uint8_t>(DType::F32);
  conv.pads = {1, 1, 1, 1};
  const auto rows =
      rows_for(cpu_device(), make_node(std::move(conv), 3),
               {ramp(DType::U8, Shape{1, 6, 8, 1840}, 0, 255, 1),
                ramp(DType::I8, Shape{32, 3, 3, 1840}, -128, 127, 2), scalar_tensor(DType::F32, 0.3)},
               0b110);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  for (const std::string& row : *rows) EXPECT_FALSE(row.ends_with(".winograd"));
}

/// k beyond a block's depth, more panels than a block has, and remainders of both.
TEST(CpuGemm, ProductsOfSeveralBlocks) {
  const ops::Tolerance tolerance{1e-4, 1e-3};
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{131, 801, 1043}, {3, 769, 40}, {513, 385, 2}}) {
    op::MatMulAttributes matmul;
    SCOPED_TRACE(text(m, " x ", k, " x ", n));
    check_node(cpu_device(), make_node(matmul, 2), {f32(Shape{m, k}, -1, 1, 1), f32(Shape{k, n}, -1, 1, 2)},
               2, tolerance);
  }
  // Rows of a multiple of 4 KB, with few columns and with many.
  for (const int64_t n : {40, 700})
    check_node(cpu_device(), make_node(op::MatMulAttributes{}, 2),
               {f32(Shape{31, 1024}, -1, 1, 1), f32(Shape{1024, n}, -1, 1, 2)}, 2, tolerance);
  op::ConvAttributes conv;
  check_node(cpu_device(), make_node(conv, 2),  // windows of one element: the image's rows in place
             {f32(Shape{2, 9, 7, 60}, -1, 1, 1), f32(Shape{40, 1, 1, 60}, -1, 1, 2)}, 2, tolerance);
  conv.groups = 3;
  check_node(cpu_device(), make_node(conv, 2),
             {f32(Shape{2, 9, 7, 60}, -1, 1, 1), f32(Shape{66, 1, 1, 20}, -1, 1, 2)}, 2, tolerance);
  conv.groups = 1;
  conv.pads = {1, 1, 1, 1};
  conv.strides = {2, 1};
  check_node(cpu_device(), make_node(conv, 2),
             {f32(Shape{2, 11, 9, 100}, -1, 1, 1), f32(Shape{70, 3, 3, 100}, -1, 1, 2)}, 2, tolerance);
  conv.groups = 100;
  check_node(cpu_device(), make_node(conv, 2),
             {f32(Shape{2, 11, 9, 100}, -1, 1, 1), f32(Shape{100, 3, 3, 1}, -1, 1, 2)}, 2, tolerance);
  op::ConvWeightGradAttributes weight;  // 1200 points
  weight.pads = {1, 1, 1, 1};
  weight.kernel = {3, 3};
  for (const int64_t groups : {1, 2, 24}) {
    weight.groups = static_cast<int32_t>(groups);
    SCOPED_TRACE(groups);
    check_node(cpu_device(), make_node(weight, 2),
               {f32(Shape{3, 20, 20, 24}, -1, 1, 1), f32(Shape{3, 20, 20, 24}, -1, 1, 2)}, 0,
               ops::Tolerance{1e-4, 2e-3});
  }
}

/// Tiles that reach beyond the image, more than a block of them, batches, and all of an epilogue.
TEST(CpuGemm, WinogradOfConstantWeights) {
  op::ConvAttributes conv;
  // With vectors that the channels fill, and with others.
  for (const auto& [inputs, outputs] : {std::pair<int64_t, int64_t>{48, 80}, {43, 77}, {18, 31}})
    for (const int64_t pad : {0, 1, 2}) {
      SCOPED_TRACE(text(inputs, " to ", outputs, " channels, pad ", pad));
      conv.pads = {pad, 1, 0, pad};
      check_node(cpu_device(), make_node(conv, 2),
                 {f32(Shape{2, 19, 22, inputs}, -1, 1, 1), f32(Shape{outputs, 3, 3, inputs}, -0.1, 0.1, 2)},
                 2, ops::Tolerance{1e-4, 1e-3});
    }
  conv.pads = {1, 1, 1, 1};
  conv.epilogue = std::make_unique<op::EpilogueAttributes>();
  conv.epilogue->has_bias = conv.epilogue->has_residual = true;
  conv.epilogue->activation = op::Activation::Relu;
  check_node(cpu_device(), make_node(conv, 4),
             {f32(Shape{1, 15, 15, 24}, -1, 1, 1), f32(Shape{36, 3, 3, 24}, -0.1, 0.1, 2),
              f32(Shape{36}, -1, 1, 3), f32(Shape{1, 15, 15, 36}, -1, 1, 4)},
             2, ops::Tolerance{1e-4, 1e-3});
}

/// Along one axis, in pieces of three taps; dilated ones in tiles of every first position.
TEST(CpuGemm, WinogradAlongOneAxis) {
  for (const int64_t kernel : {3, 4, 7, 11})
    for (const int64_t dilation : {1, 2, 5})
      for (const bool ends : {false, true}) {
        SCOPED_TRACE(text(kernel, " taps, dilation ", dilation, ends ? ", with an epilogue" : ""));
        const int64_t reach = (kernel - 1) * dilation, before = reach / 2, length = 83;
        op::ConvAttributes conv;
        conv.dilations = {dilation};
        conv.pads = {before, reach - before - 1};
        NodeInputs inputs{f32(Shape{2, length, 43}, -1, 1, 1), f32(Shape{41, kernel, 43}, -0.1, 0.1, 2)};
        if (ends) {
          conv.epilogue = std::make_unique<op::EpilogueAttributes>();
          conv.epilogue->has_bias = conv.epilogue->has_residual = true;
          conv.epilogue->activation = op::Activation::LeakyRelu;
          conv.epilogue->alpha = 0.1f;
          inputs.push_back(f32(Shape{41}, -1, 1, 3));
          inputs.push_back(f32(Shape{2, length - 1, 41}, -1, 1, 4));
        }
        const Node node = make_node(conv, inputs.size());
        const auto rows = rows_for(cpu_device(), node, inputs, 2);
        ASSERT_TRUE(rows.ok()) << rows.status().message();
        EXPECT_EQ(std::ranges::count(*rows, "conv.winograd"), 1);
        check_node(cpu_device(), node, inputs, 2, ops::Tolerance{1e-4, 1e-3});
      }
}

/// What a window reads outside of an image is not there: it meets no infinity of the weights.
TEST(CpuGemm, PaddingMeetsNoInfinity) {
  op::ConvAttributes conv;
  conv.pads = {1, 1, 1, 1};
  auto weight = f32(Shape{5, 3, 3, 4}, -1, 1, 2);
  reinterpret_cast<float*>(weight.bytes.data())[7] = std::numeric_limits<float>::infinity();
  for (const uint32_t constant : {0u, 2u})
    check_node(cpu_device(), make_node(conv, 2), {f32(Shape{1, 6, 6, 4}, 0.5, 1, 1), weight}, constant);
  // Of a size for Winograd, which adds what windows do not read.
  weight = f32(Shape{36, 3, 3, 36}, -1, 1, 2);
  reinterpret_cast<float*>(weight.bytes.data())[7] = std::numeric_limits<float>::infinity();
  RunNodeOptions options;
  options.row = "conv.winograd";
  options.constants = 2;
  const auto got =
      run_node(cpu_device(), make_node(conv, 2), {f32(Shape{1, 15, 15, 36}, 0.5, 1, 1), weight}, options);
  ASSERT_EQ(got.status().code(), Code::Unsupported);
  EXPECT_NE(got.status().message().find("finite"), std::string::npos) << got.status().message();
}

}  // namespace
}  // namespace librt::test
