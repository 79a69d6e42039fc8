// Operators decomposed by the importer: inverse trigonometric functions, Fourier transforms, random numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <numbers>

#include "runtime/core/philox.h"
#include "runtime/ops/evaluate.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

/// A model of one node; an integer given as a constant operand becomes an initializer.
struct OneNode {
  rt_onnx::ModelProto proto;
  rt_onnx::NodeProto* node = nullptr;

  OneNode(const char* op, int64_t opset, int outputs = 1) {
    proto.set_ir_version(8);
    proto.add_opset_import()->set_version(opset);
    node = proto.mutable_graph()->add_node();
    node->set_op_type(op);
    for (int i = 0; i < outputs; ++i) {
      node->add_output(std::string("y") + static_cast<char>('0' + i));
      proto.mutable_graph()->add_output()->set_name(node->output(i));
    }
  }
  /// Extents below 0 are symbols.
  OneNode& input(std::initializer_list<int64_t> extents) {
    auto& made = *proto.mutable_graph()->add_input();
    made.set_name(std::string("x") + static_cast<char>('0' + node->input_size()));
    node->add_input(made.name());
    auto& tensor = *made.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(1);
    tensor.mutable_shape();
    for (int64_t extent : extents) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      if (extent < 0)
        dim.set_dim_param(std::string(1, static_cast<char>('a' - 1 - extent)));
      else
        dim.set_dim_value(extent);
    }
    return *this;
  }
  OneNode& constant(int64_t value, int type = 7) {
    auto& made = *proto.mutable_graph()->add_initializer();
    made.set_name(std::string("c") + static_cast<char>('0' + node->input_size()));
    made.set_data_type(type);
    if (type == 7)
      made.add_int64_data(value);
    else
      made.add_int32_data(static_cast<int32_t>(value));
    node->add_input(made.name());
    return *this;
  }
  OneNode& absent() {
    node->add_input("");
    return *this;
  }
  OneNode& attribute(const char* name, int64_t value) {
    auto& made = *node->add_attribute();
    made.set_name(name);
    made.set_type(2);
    made.set_i(value);
    return *this;
  }
  Result<ModelGraph> convert() const {
    const std::string bytes = proto.SerializeAsString();
    ImportReport report;
    return import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
  }
  std::vector<ops::HostTensor> run(std::initializer_list<const ops::HostTensor*> inputs) const {
    const auto model = convert();
    EXPECT_TRUE(model.ok()) << model.status().message();
    if (!model.ok()) return {};
    std::vector<ConstTensorView> views;
    for (const auto* input : inputs) views.push_back(input->view());
    auto result = ops::evaluate_graph(model->entries[0].graph, views);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(result).value() : std::vector<ops::HostTensor>{};
  }
};

ops::HostTensor floats(const Shape& shape, const std::vector<double>& values) {
  ops::HostTensor tensor(TensorInfo{DType::F32, shape});
  for (size_t i = 0; i < values.size(); ++i) tensor.view().as<float>()[i] = static_cast<float>(values[i]);
  return tensor;
}

void check_function(const char* op, double (*f)(double), const std::vector<double>& at) {
  const auto x = floats({static_cast<int64_t>(at.size())}, at);
  const auto y = OneNode(op, 9).input({static_cast<int64_t>(at.size())}).run({&x});
  ASSERT_EQ(y.size(), 1u) << op;
  for (size_t i = 0; i < at.size(); ++i) {
    const double got = static_cast<double>(y[0].view().as<float>()[i]),
                 want = f(static_cast<double>(x.view().as<float>()[i]));
    if (std::isnan(want) || std::isinf(want))
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << op << " at " << at[i] << ": " << got;
    else
      EXPECT_LE(std::fabs(got - want), 1e-6 * std::fabs(want)) << op << " at " << at[i];
  }
}

TEST(ImportTrigonometry, KeepsDigitsNearZeroAndAtTheEnds) {
  const double nan = std::nan(""), inf = INFINITY;
  const std::vector<double> unit{0,     1e-30,     1e-7,       -1e-7, 1e-4, -3e-3, 0.1, -0.5, 0.7071, 0.9,
                                 -0.99, 0.9999999, -0.9999999, 1,     -1,   1.01,  -2,  1e20, nan};
  check_function(
      "Asin", [](double x) { return std::asin(x); }, unit);
  check_function(
      "Acos", [](double x) { return std::acos(x); }, unit);
  check_function(
      "Atanh", [](double x) { return std::atanh(x); }, unit);
  check_function("Atan", [](double x) { return std::atan(x); },
                 {0, 1e-30, -1e-7, 0.3, -0.42, 1, -1.5, 1e9, inf, -inf, nan});
  check_function("Asinh", [](double x) { return std::asinh(x); },
                 {0, 1e-30, -1e-7, 1e-4, -1e-3, 0.1, 1, -7, 9999, 10001, -1e10, 1e19, 3e38, inf, -inf, nan});
  check_function("Acosh", [](double x) { return std::acosh(x); },
                 {1, 1.0000001, 1.0001, 1.5, 2, 100, 1e10, 1e19, 3e38, inf, 0.5, -1, nan});
}

// --- DFT
// -----------------------------------------------------------------------------------------------

using Complex = std::complex<double>;

/// DFT of `samples` values, truncated or padded to `length`.
std::vector<Complex> transform(std::vector<Complex> x, size_t length, bool inverse) {
  x.resize(length);
  std::vector<Complex> y(length);
  for (size_t k = 0; k < length; ++k) {
    for (size_t n = 0; n < length; ++n)
      y[k] += x[n] * std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi *
                                         static_cast<double>(n * k % length) / static_cast<double>(length));
    if (inverse) y[k] /= static_cast<double>(length);
  }
  return y;
}

struct Dft {
  int64_t extent, parts, length;  ///< length 0: not given
  bool inverse, onesided, symbolic;
};

// x [2, extent, 3, parts], along axis 1.
void check_dft(const Dft& dft) {
  const int64_t length = dft.length > 0 ? dft.length : dft.extent;
  std::vector<double> values;
  for (int64_t i = 0; i < 6 * dft.extent * dft.parts; ++i)
    values.push_back(static_cast<double>((i * 7 + 3) % 13) - 6);
  const auto x = floats({2, dft.extent, 3, dft.parts}, values);
  OneNode node("DFT", 17);
  if (dft.symbolic)
    node.input({-1, -2, 3, dft.parts});
  else
    node.input({2, dft.extent, 3, dft.parts});
  if (dft.length > 0) node.constant(dft.length);
  node.attribute("axis", 1).attribute("inverse", dft.inverse).attribute("onesided", dft.onesided);
  const auto y = node.run({&x});
  ASSERT_EQ(y.size(), 1u);
  const int64_t bins = dft.onesided ? length / 2 + 1 : length;
  ASSERT_EQ(y[0].info.shape, (Shape{2, bins, 3, 2}));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t c = 0; c < 3; ++c) {
      std::vector<Complex> row;
      for (int64_t n = 0; n < dft.extent; ++n) {
        const auto at = static_cast<size_t>(((b * dft.extent + n) * 3 + c) * dft.parts);
        row.push_back({values[at], dft.parts == 2 ? values[at + 1] : 0});
      }
      const auto want = transform(row, static_cast<size_t>(length), dft.inverse);
      for (int64_t k = 0; k < bins; ++k) {
        const float* got = y[0].view().as<float>() + ((b * bins + k) * 3 + c) * 2;
        EXPECT_NEAR(static_cast<double>(got[0]), want[static_cast<size_t>(k)].real(), 1e-4);
        EXPECT_NEAR(static_cast<double>(got[1]), want[static_cast<size_t>(k)].imag(), 1e-4);
      }
    }
}

TEST(ImportDft, AgreesWithTheSum) {
  for (int64_t extent : {1, 2, 7, 16})
    for (int64_t parts : {1, 2})
      for (int64_t length : {0, 5, 16, 20})
        for (const bool inverse : {false, true})
          for (const bool onesided : {false, true})
            for (const bool symbolic : {false, true}) {
              if (onesided && (inverse || parts == 2)) continue;
              SCOPED_TRACE(testing::Message() << extent << " " << parts << " " << length << " " << inverse
                                              << onesided << symbolic);
              check_dft({extent, parts, length, inverse, onesided, symbolic});
            }
}

TEST(ImportDft, HalfSpectrumMakesARealSignal) {
  for (int64_t length : {6, 7}) {
    std::vector<Complex> signal;
    for (int64_t n = 0; n < length; ++n) signal.push_back(static_cast<double>((n * 5 + 2) % 7));
    const auto spectrum = transform(signal, signal.size(), false);
    std::vector<double> half;
    for (int64_t k = 0; k <= length / 2; ++k) {
      half.push_back(spectrum[static_cast<size_t>(k)].real());
      half.push_back(spectrum[static_cast<size_t>(k)].imag());
    }
    const auto x = floats({1, length / 2 + 1, 2}, half);
    const auto y = OneNode("DFT", 20)
                       .input({1, length / 2 + 1, 2})
                       .constant(length)
                       .attribute("inverse", 1)
                       .attribute("onesided", 1)
                       .run({&x});
    ASSERT_EQ(y.size(), 1u);
    ASSERT_EQ(y[0].info.shape, (Shape{1, length, 1}));
    for (int64_t n = 0; n < length; ++n)
      EXPECT_NEAR(static_cast<double>(y[0].view().as<float>()[n]), signal[static_cast<size_t>(n)].real(),
                  1e-5);
  }
}

TEST(ImportStft, FramesOfAnyNumber) {
  std::vector<double> values;
  for (int64_t i = 0; i < 2 * 23; ++i) values.push_back(static_cast<double>((i * 5 + 1) % 9) - 4);
  const auto x = floats({2, 23, 1}, values);
  const auto y = OneNode("STFT", 17).input({-1, -2, 1}).constant(3).absent().constant(8).run({&x});
  ASSERT_EQ(y.size(), 1u);
  ASSERT_EQ(y[0].info.shape, (Shape{2, 6, 5, 2}));
  for (size_t b = 0; b < 2; ++b)
    for (size_t f = 0; f < 6; ++f) {
      std::vector<Complex> frame;
      for (size_t n = 0; n < 8; ++n) frame.push_back(values[b * 23 + f * 3 + n]);
      const auto want = transform(frame, 8, false);
      for (size_t k = 0; k < 5; ++k) {
        const float* got = y[0].view().as<float>() + ((b * 6 + f) * 5 + k) * 2;
        EXPECT_NEAR(static_cast<double>(got[0]), want[k].real(), 1e-4);
        EXPECT_NEAR(static_cast<double>(got[1]), want[k].imag(), 1e-4);
      }
    }
}

// --- random numbers
// -----------------------------------------------------------------------------------------------

// Known answers that come with the paper's own code, Random123.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (PhiloxBlock{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u),
            (PhiloxBlock{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(ImportDropout, DropsTheShareThatIsAsked) {
  const auto x = floats({40, 50}, std::vector<double>(2000, 3.0));
  OneNode node("Dropout", 13, 2);
  node.input({-1, 50}).absent().constant(1, 9);
  const auto y = node.run({&x});
  ASSERT_EQ(y.size(), 2u);
  int kept = 0;
  for (int i = 0; i < 2000; ++i) {
    const bool mask = y[1].view().as<uint8_t>()[i] != 0;
    EXPECT_EQ(y[0].view().as<float>()[i], mask ? 6.0f : 0.0f);
    kept += mask ? 1 : 0;
  }
  EXPECT_NEAR(kept, 1000, 100);  // more than four standard deviations
}

TEST(ImportMultinomial, FollowsTheProbabilities) {
  const auto x = floats({2, 3}, {std::log(0.2), std::log(0.5), std::log(0.3), 0, -INFINITY, -INFINITY});
  const auto y = OneNode("Multinomial", 7).input({2, 3}).attribute("sample_size", 4000).run({&x});
  ASSERT_EQ(y.size(), 1u);
  ASSERT_EQ(y[0].info, (TensorInfo{DType::I32, {2, 4000}}));
  int counts[3] = {};
  for (int i = 0; i < 4000; ++i) {
    ++counts[y[0].view().as<int32_t>()[i]];
    EXPECT_EQ(y[0].view().as<int32_t>()[4000 + i], 0);
  }
  EXPECT_NEAR(counts[0], 800, 120);
  EXPECT_NEAR(counts[1], 2000, 150);
  EXPECT_NEAR(counts[2], 1200, 140);
}

}  // namespace
}  // namespace librt::onnx
