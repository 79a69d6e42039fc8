// Signals: discrete Fourier transforms as matmuls with cosine and sine matrices, windows, mel filters.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/core/element.h"
#include "tools/onnx/narrow.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// Transforms with more elements in the matrix of cosines and sines are refused.
constexpr int64_t kMostElements = int64_t{1} << 27;

ValueId real_constant(NodeContext& c, DType dtype, const Shape& shape, const std::vector<double>& values) {
  const TensorInfo info{.dtype = dtype, .shape = shape};
  std::vector<std::byte> bytes(info.bytes());
  for (size_t i = 0; i < values.size(); ++i)
    store_element(bytes.data(), dtype, static_cast<int64_t>(i), values[i]);
  return c.emit.constant(info, Blob::own(std::move(bytes)));
}

// --- transforms
// -----------------------------------------------------------------------------------------------

/// y[k] = sum over n < samples of x[n] exp(-+ 2 pi i n k / length); x and y are complex, or real.
struct Transform {
  int64_t samples = -1, length = -1, bins = -1;  ///< -1: unknown while importing
  int64_t parts_in = 2, parts_out = 2;           ///< 1: real
  bool inverse = false;
  bool half_spectrum = false;  ///< x is the first half of a conjugate-symmetric spectrum

  /// Factor of sample n.
  double weight(int64_t n) const {
    const double mirrored = half_spectrum && n != 0 && 2 * n != length ? 2 : 1;
    return inverse ? mirrored / static_cast<double>(length) : 1;
  }
  double angle(int64_t n, int64_t k) const {
    const double turn = static_cast<double>(n * k % length) / static_cast<double>(length);
    return (inverse ? 2 : -2) * std::numbers::pi * turn;
  }
  /// The coefficient of part `in` of x[n] in part `out` of y[k].
  double entry(int64_t n, int64_t in, int64_t k, int64_t out) const {
    const double at = angle(n, k);
    const double value = in == out ? std::cos(at) : in == 0 ? std::sin(at) : -std::sin(at);
    return value * weight(n);
  }
};

/// [samples parts_in, bins parts_out]
Result<ValueId> known_matrix(NodeContext& c, DType dtype, const Transform& t) {
  if (t.length <= 0) return invalid_model("expected a transform of 1 or more, found ", t.length);
  if (t.samples > kMostElements || t.bins > kMostElements ||
      t.samples * t.bins > kMostElements / (t.parts_in * t.parts_out))
    return cannot("a transform of length ", t.length, " as a matrix is too large");
  std::vector<double> values;
  values.reserve(static_cast<size_t>(t.samples * t.parts_in * t.bins * t.parts_out));
  for (int64_t n = 0; n < t.samples; ++n)
    for (int64_t in = 0; in < t.parts_in; ++in)
      for (int64_t k = 0; k < t.bins; ++k)
        for (int64_t out = 0; out < t.parts_out; ++out) values.push_back(t.entry(n, in, k, out));
  return real_constant(c, dtype, {t.samples * t.parts_in, t.bins * t.parts_out}, values);
}

ValueId counted(NodeContext& c, ValueId limit, std::initializer_list<int64_t> extents) {
  const ValueId numbers =
      c.emit.emit(op::RangeAttributes{}, {c.emit.scalar(0, DType::I64), limit, c.emit.scalar(1, DType::I64)});
  return reshape_to(c.emit, numbers, extents);
}

/// The same for extents known only at run time, i64 vectors of one element: n k mod length exactly, then the
/// angle.
ValueId open_matrix(NodeContext& c, DType dtype, const Transform& t, ValueId samples, ValueId length,
                    bool onesided) {
  Emitter& e = c.emit;
  const auto whole = [&](int number) { return e.scalar(number, DType::I64); };
  length = reshape_to(e, length, {});
  ValueId bins = length;
  if (onesided && !t.inverse) bins = e.add(e.div(length, whole(2)), whole(1));
  const ValueId n = counted(c, reshape_to(e, samples, {}), {-1, 1, 1, 1});
  const ValueId products = e.mul(n, counted(c, bins, {1, 1, -1, 1}));
  const ValueId turns = e.cast(e.emit(op::ModAttributes{}, {products, length}), dtype);
  const ValueId one_turn =
      e.div(e.scalar((t.inverse ? 2 : -2) * std::numbers::pi, dtype), e.cast(length, dtype));
  const ValueId angles = e.mul(turns, one_turn);  // [n, 1, k, 1]
  const ValueId cosines = e.emit(op::CosAttributes{}, {angles}),
                sines = e.emit(op::SinAttributes{}, {angles});
  ValueId matrix;
  if (t.half_spectrum) {
    // All but the first bin, and the last of an even length, stand for two.
    const auto equal = [&](ValueId a, ValueId b) { return e.emit(op::EqualAttributes{}, {a, b}); };
    const ValueId alone = e.emit(op::OrAttributes{}, {equal(n, whole(0)), equal(e.mul(n, whole(2)), length)});
    matrix = e.mul(concat(e, std::array{cosines, e.neg(sines)}, 1),
                   e.emit(op::WhereAttributes{}, {alone, e.scalar(1, dtype), e.scalar(2, dtype)}));
  } else {
    matrix = concat(e, std::array{cosines, sines}, 3);
    if (t.parts_in == 2)
      matrix = concat(e, std::array{matrix, concat(e, std::array{e.neg(sines), cosines}, 3)}, 1);
  }
  if (t.inverse) matrix = e.div(matrix, e.cast(length, dtype));
  const ValueId columns = e.mul(bins, whole(static_cast<int>(t.parts_out)));
  return e.reshape(matrix, concat_values(e, {e.ints(std::array{int64_t{-1}}), as_vector(e, columns)}));
}

/// The permutation that moves the axis next to last, and its inverse.
std::vector<int64_t> axis_to_end(int rank, int axis) {
  std::vector<int64_t> permutation;
  for (int i = 0; i < rank - 1; ++i)
    if (i != axis) permutation.push_back(i);
  permutation.push_back(axis);
  permutation.push_back(rank - 1);
  return permutation;
}
std::vector<int64_t> inverse_of(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return inverse;
}

struct DftOptions {
  int axis = 0;
  bool inverse = false, onesided = false;
  int64_t length = -1;             ///< -1: not given, or
  ValueId open_length = kNoValue;  ///< known only at run time
};

/// The transform as far as it is known from x [.., samples, parts].
Result<Transform> describe(const DftOptions& options, int64_t extent, int64_t parts) {
  if (parts != 1 && parts != 2)
    return cannot("the last axis must be 1 (real) or 2 (complex), and known; found ", parts);
  Transform t;
  t.inverse = options.inverse;
  t.parts_in = parts;
  t.half_spectrum = options.inverse && options.onesided;
  t.length = options.length;
  if (t.half_spectrum) {
    if (parts != 2) return invalid_model("the inverse of a half spectrum needs complex input");
    t.parts_out = 1;
    if (t.length < 0 && extent >= 0) t.length = 2 * (extent - 1);
    if (t.length >= 0) t.samples = t.length / 2 + 1;
    t.bins = t.length;
  } else {
    if (t.length < 0) t.length = extent;
    t.samples = t.length;
    if (t.length >= 0) t.bins = options.onesided ? t.length / 2 + 1 : t.length;
  }
  if (extent >= 0 && t.samples >= 0) t.samples = std::min(t.samples, extent);
  return t;
}

/// Pads the end of an axis with `count` zeros, so that a slice to `count` is possible for any extent.
ValueId padded(Emitter& e, ValueId x, int axis, int64_t count) {
  const auto rank = static_cast<size_t>(e.value(x).rank());
  std::vector<int64_t> pads(2 * rank, 0);
  pads[rank + static_cast<size_t>(axis)] = count;
  return e.emit(op::PadAttributes{}, {x, e.ints(pads)});
}

/// The axis cut, or filled up with zeros, to a count known only at run time.
ValueId fitted(Emitter& e, ValueId x, int axis, ValueId count) {
  const auto rank = static_cast<size_t>(e.value(x).rank()), at = static_cast<size_t>(axis);
  const std::vector<int64_t> before(rank + at, 0), after(rank - at - 1, 0);
  std::vector<ValueId> pads{e.ints(before), count};
  if (!after.empty()) pads.push_back(e.ints(after));
  const ValueId longer = e.emit(op::PadAttributes{}, {x, concat_values(e, std::move(pads))});
  return slice_between(e, longer, axis, e.ints(std::array{int64_t{0}}), count);
}

/// Whether x is proven to be the axis's extent.
bool is_extent(const NodeContext& c, ValueId x, int axis) {
  const compiler::Known& known = c.emit.known(x);
  return known.has_elements && known.elements.size() == 1 &&
         known.elements[0] == c.emit.known(c.inputs[0]).dims[static_cast<size_t>(axis)];
}

Status dft(NodeContext& c, DftOptions options) {
  Emitter& e = c.emit;
  const int rank = c.rank();
  if (options.axis == rank - 1)
    return invalid_model("axis ", options.axis, " is that of real and imaginary parts");
  const std::vector<int64_t> order = axis_to_end(rank, options.axis);
  ValueId x = e.transpose(c.input(0), order);
  const bool half = options.inverse && options.onesided;
  if (options.open_length != kNoValue && !half && is_extent(c, options.open_length, options.axis))
    options.open_length = kNoValue;
  const bool is_open = options.open_length != kNoValue;
  const int64_t extent = is_open ? -1 : c.extent(0, options.axis);
  RT_ASSIGN(const Transform t, describe(options, extent, c.extent(0, rank - 1)));
  ValueId matrix;
  if (t.length < 0) {
    const auto number = [&](int64_t value) { return e.ints({&value, 1}); };
    ValueId samples = dims_product(e, x, rank - 2, rank - 1);
    ValueId length = is_open ? options.open_length : samples;
    if (half && !is_open) length = e.mul(e.sub(samples, number(1)), number(2));
    if (is_open) {
      samples = half ? e.add(e.div(length, number(2)), number(1)) : length;
      x = fitted(e, x, rank - 2, samples);
    }
    matrix = open_matrix(c, c.dtype(), t, samples, length, options.onesided);
  } else {
    RT_ASSIGN(matrix, known_matrix(c, c.dtype(), t));
    if (extent < 0) x = padded(e, x, rank - 2, t.samples);
    if (extent < 0 || extent > t.samples) x = slice(e, x, rank - 2, 0, t.samples);
  }
  // [.., samples, parts] as rows
  std::vector<Extent> rows = extents_of(e, x);
  rows.resize(static_cast<size_t>(rank - 2));
  std::vector<Extent> result = rows;
  rows.push_back(Extent::of(t.length >= 0 ? t.samples * t.parts_in : -1));
  const ValueId flat = e.reshape(x, shape_vector(e, rows));
  const ValueId matmul = e.emit(op::MatMulAttributes{}, {flat, matrix});
  result.push_back(Extent::of(t.bins));
  result.push_back(Extent::of(t.parts_out));
  const ValueId y = e.reshape(matmul, shape_vector(e, result));
  return c.result(e.transpose(y, inverse_of(order)));
}

Status read_length(NodeContext& c, DftOptions& options) {
  options.inverse = c.integer("inverse", 0) != 0;
  options.onesided = c.integer("onesided", 0) != 0;
  if (!c.has(1)) return {};
  auto known = c.known_integers(1, "dft_length");
  if (!known.ok() && known.status().code() == Code::Unsupported) {
    options.open_length = reshape_to(c.emit, c.input(1), {1});
    if (c.dtype(1) != DType::I64) options.open_length = c.emit.cast(options.open_length, DType::I64);
    return {};
  }
  RT_ASSIGN(const auto length, std::move(known));
  if (length.size() != 1 || length[0] <= 0) return invalid_model("dft_length: expected one number above 0");
  options.length = length[0];
  return {};
}

Status dft_axis_attribute(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 2));
  DftOptions options;
  RT_TRY(read_length(c, options));
  RT_ASSIGN(options.axis, c.axis(c.integer("axis", 1), c.rank()));
  return dft(c, options);
}

Status dft_axis_input(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 3));
  DftOptions options;
  RT_TRY(read_length(c, options));
  int64_t axis = -2;
  if (c.has(2)) {
    RT_ASSIGN(const auto known, c.known_integers(2, "axis"));
    if (known.size() != 1) return invalid_model("axis: expected one number, found ", known.size());
    axis = known[0];
  }
  RT_ASSIGN(options.axis, c.axis(axis, c.rank()));
  return dft(c, options);
}

// --- STFT: a convolution with the windowed cosines and sines, frame_step apart
// -----------------------------------------------------------------------------------------------

Result<int64_t> known_number(NodeContext& c, size_t i, std::string_view what) {
  RT_ASSIGN(const auto numbers, c.known_integers(i, what));
  if (numbers.size() != 1 || numbers[0] <= 0) return invalid_model(what, ": expected one number above 0");
  return numbers[0];
}

Status stft(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 4));
  Emitter& e = c.emit;
  RT_ASSIGN(const int64_t step, known_number(c, 1, "frame_step"));
  const bool onesided = c.integer("onesided", 1) != 0;
  int64_t frame = c.has(2) ? c.extent(2, 0) : -1;
  if (c.has(3)) {
    RT_ASSIGN(const int64_t length, known_number(c, 3, "frame_length"));
    if (frame >= 0 && frame != length)
      return invalid_model("the window has ", frame, " elements, a frame ", length);
    frame = length;
  }
  if (frame <= 0) return cannot("the frame's length is unknown; frame_length must be given");
  ValueId x = c.input(0);
  const int channel_axis[] = {2};
  if (c.rank() == 2) x = unsqueeze(e, x, channel_axis);
  if (e.value(x).rank() != 3)
    return invalid_model("expected a signal [batch, length, 1 or 2], found rank ", c.rank());
  DftOptions options;
  options.onesided = onesided;
  options.length = frame;
  RT_ASSIGN(const Transform t, describe(options, frame, e.value(x).dims[2].extent));
  RT_ASSIGN(const ValueId matrix, known_matrix(c, c.dtype(), t));
  // [frame, parts, outputs] -> [outputs, frame, parts]
  ValueId weight = reshape_to(e, matrix, {frame, t.parts_in, t.bins * t.parts_out});
  if (c.has(2)) weight = e.mul(weight, reshape_to(e, c.input(2), {-1, 1, 1}));
  weight = e.transpose(weight, {2, 0, 1});
  op::ConvAttributes conv;
  conv.strides = {step};
  conv.pads = {0, 0};
  conv.dilations = {1};
  const ValueId frames = e.emit(conv, {x, weight});
  const std::vector<Extent> shape{Extent::dim(e, frames, 0), Extent::dim(e, frames, 1), Extent::of(t.bins),
                                  Extent::of(t.parts_out)};
  return c.result(e.reshape(frames, shape_vector(e, shape)));
}

// --- windows
// -----------------------------------------------------------------------------------------------

struct Window {
  double constant, first, second;  ///< constant - first cos(2 pi n / N) + second cos(4 pi n / N)
};

ValueId open_window(NodeContext& c, const Window& window, bool periodic) {
  Emitter& e = c.emit;
  const ValueId size = e.cast(c.input(0), DType::F32), one = e.scalar(1, DType::F32);
  const ValueId count = reshape_to(e, c.input(0), {});
  const ValueId n = e.cast(
      counting(c.emit, e.value(count).dtype == DType::I64 ? count : e.cast(count, DType::I64)), DType::F32);
  const ValueId period = periodic ? size : e.sub(size, one);
  const ValueId angle = e.div(e.mul(n, e.scalar(2 * std::numbers::pi, DType::F32)), period);
  const auto cosine = [&](ValueId at, double factor) {
    return e.mul(e.emit(op::CosAttributes{}, {at}), e.scalar(factor, DType::F32));
  };
  const ValueId y = e.sub(e.scalar(window.constant, DType::F32), cosine(angle, window.first));
  return window.second == 0 ? y : e.add(y, cosine(e.add(angle, angle), window.second));
}

template <const Window& kWindow>
Status window(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const bool periodic = c.integer("periodic", 1) != 0;
  RT_ASSIGN(const OnnxType type, onnx_type(c.integer("output_datatype", 1)));
  const auto known = c.known_integers(0, "size");
  if (!known.ok()) return c.result(c.emit.cast(open_window(c, kWindow, periodic), type.dtype));
  const int64_t size = known->size() == 1 ? (*known)[0] : -1;
  if (size < 0 || size > kMostElements)
    return invalid_model("size: expected one number of 0 or more, found ",
                         known->size() == 1 ? text(size) : text(known->size(), " numbers"));
  std::vector<double> values;
  for (int64_t n = 0; n < size; ++n) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(periodic ? size : size - 1);
    values.push_back(kWindow.constant - kWindow.first * std::cos(angle) +
                     kWindow.second * std::cos(2 * angle));
  }
  return c.result(c.emit.cast(real_constant(c, DType::F64, {size}, values), type.dtype));
}

constexpr Window kHann{0.5, 0.5, 0};
constexpr Window kHamming{25.0 / 46, 21.0 / 46, 0};
constexpr Window kBlackman{0.42, 0.5, 0.08};

// --- MelWeightMatrix
// -----------------------------------------------------------------------------------------------

/// Bins of the spectrum at which triangles begin, peak and end: equally spaced in mel.
std::vector<int64_t> mel_bins(int64_t filters, int64_t length, int64_t rate, double low, double high) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(low), step = (mel(high) - first) / static_cast<double>(filters + 2);
  std::vector<int64_t> bins;
  for (int64_t i = 0; i < filters + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (first + static_cast<double>(i) * step) / 2595) - 1);
    bins.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  return bins;
}

Status mel_weight_matrix(NodeContext& c) {
  RT_TRY(c.expect_inputs(5, 5));
  RT_ASSIGN(const int64_t filters, known_number(c, 0, "num_mel_bins"));
  RT_ASSIGN(const int64_t length, known_number(c, 1, "dft_length"));
  RT_ASSIGN(const int64_t rate, known_number(c, 2, "sample_rate"));
  RT_ASSIGN(const auto low, c.known_reals(3, "lower_edge_hertz"));
  RT_ASSIGN(const auto high, c.known_reals(4, "upper_edge_hertz"));
  RT_ASSIGN(const OnnxType type, onnx_type(c.integer("output_datatype", 1)));
  if (low.size() != 1 || high.size() != 1) return invalid_model("expected one lower and one upper edge");
  const int64_t spectrum = length / 2 + 1;
  if (filters > kMostElements / spectrum)
    return cannot("a matrix of ", spectrum, " by ", filters, " is too large");
  const std::vector<int64_t> bins = mel_bins(filters, length, rate, low[0], high[0]);
  std::vector<double> values(static_cast<size_t>(spectrum * filters));
  for (int64_t i = 0; i < filters; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t begin = bins[at], peak = bins[at + 1], end = bins[at + 2];
    const auto set = [&](int64_t bin, double value) {
      if (bin >= 0 && bin < spectrum) values[static_cast<size_t>(bin * filters + i)] = value;
    };
    if (peak == begin) set(peak, 1);
    for (int64_t bin = begin; peak > begin && bin <= peak; ++bin)
      set(bin, static_cast<double>(bin - begin) / static_cast<double>(peak - begin));
    for (int64_t bin = peak; bin < end; ++bin)
      set(bin, static_cast<double>(end - bin) / static_cast<double>(end - peak));
  }
  return c.result(c.emit.cast(real_constant(c, DType::F64, {spectrum, filters}, values), type.dtype));
}

constexpr ImportRow kSignalRows[] = {
    {"", "DFT", 17, 19, dft_axis_attribute},
    {"", "DFT", 20, kNewestOpset, dft_axis_input},
    {"", "STFT", 17, kNewestOpset, stft},
    {"", "HannWindow", 17, kNewestOpset, window<kHann>},
    {"", "HammingWindow", 17, kNewestOpset, window<kHamming>},
    {"", "BlackmanWindow", 17, kNewestOpset, window<kBlackman>},
    {"", "MelWeightMatrix", 17, kNewestOpset, mel_weight_matrix},
};

}  // namespace

std::span<const ImportRow> rows_signal() {
  return kSignalRows;
}

}  // namespace librt::onnx
