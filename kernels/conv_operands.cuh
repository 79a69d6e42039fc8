// The operands of implicit GEMMs: elements of images addressed by (pixel, tap, channel). See gemm.cuh for
// the operand concept and conv.h for the forms.
#pragma once

#include "kernels/conv.h"
#include "kernels/gemm.cuh"

namespace librt::cuda {

/// Maps pixels of one side of a convolution to pixels of the other.
struct ConvSide {
  Divisor pixel[3];  ///< extents of the side that is iterated over
  int extent[3];     ///< extents of the side that is read
  Divisor kernel[3], stride[3];
  int pad[3], dilation[3];
  int pixels;    ///< of the side that is iterated over, in all samples
  int channels;  ///< elements from one read pixel to the next
};

struct Position {
  int sample, at[3];
};
RT_DEVICE Position pixel_position(const ConvSide& side, int pixel) {
  const QuotientRemainder x = divide(pixel, side.pixel[2]);
  const QuotientRemainder y = divide(x.quotient, side.pixel[1]);
  const QuotientRemainder z = divide(y.quotient, side.pixel[0]);
  return {z.quotient, {z.remainder, y.remainder, x.remainder}};
}
RT_DEVICE Position tap_position(const ConvSide& side, int tap) {
  const QuotientRemainder x = divide(tap, side.kernel[2]);
  const QuotientRemainder y = divide(x.quotient, side.kernel[1]);
  return {0, {y.quotient, y.remainder, x.remainder}};
}

/// The offset of the read pixel for an iterated pixel and a tap, or -1. kData: the output pixel whose window
/// has the input pixel at this tap; else the input pixel at this tap of the output pixel's window.
template <bool kData>
RT_DEVICE int64_t read_offset(const ConvSide& side, const Position& pixel, const Position& tap) {
  int64_t offset = pixel.sample;
  bool inside = true;
  RT_UNROLL
  for (int i = 0; i < 3; ++i) {
    int at;
    if constexpr (kData) {
      const int reach = pixel.at[i] + side.pad[i] - tap.at[i] * side.dilation[i];
      const QuotientRemainder window = divide(reach < 0 ? 0 : reach, side.stride[i]);
      inside = inside && reach >= 0 && window.remainder == 0;
      at = window.quotient;
    } else {
      at = pixel.at[i] * static_cast<int>(side.stride[i].value) - side.pad[i] + tap.at[i] * side.dilation[i];
      inside = inside && at >= 0;
    }
    inside = inside && at < side.extent[i];
    offset = offset * side.extent[i] + at;
  }
  return inside ? offset * side.channels : -1;
}

/// Rows are pixels, k indexes (tap, channel of the group).
template <class T, bool kData>
struct WindowOperand {
  using Element = T;
  static constexpr bool kAlongK = true;
  struct Cursor {
    Position pixel;  ///< sample -1: outside
  };
  const T* base;
  ConvSide side;
  Divisor depth;  ///< channels of a group

  RT_DEVICE void start(int64_t offset) { base += offset; }
  RT_DEVICE Cursor cursor(int row) const {
    Cursor cursor{pixel_position(side, row < side.pixels ? row : 0)};
    if (row >= side.pixels) cursor.pixel.sample = -1;
    return cursor;
  }
  RT_DEVICE const T* at(const Cursor& cursor, int k) const {
    if (cursor.pixel.sample < 0) return nullptr;
    const QuotientRemainder tap = divide(k, depth);
    const int64_t offset = read_offset<kData>(side, cursor.pixel, tap_position(side, tap.quotient));
    return offset < 0 ? nullptr : base + offset + tap.remainder;
  }
};

/// Rows index (tap, channel of the group), k indexes output pixels: the operand of the weight gradient.
template <class T>
struct TapOperand {
  using Element = T;
  static constexpr bool kAlongK = false;
  struct Cursor {
    Position tap;  ///< sample -1: outside
    int channel;
  };
  const T* base;
  ConvSide side;
  Divisor depth;
  int rows;

  RT_DEVICE void start(int64_t offset) { base += offset; }
  RT_DEVICE Cursor cursor(int row) const {
    const QuotientRemainder tap = divide(row < rows ? row : 0, depth);
    Cursor cursor{tap_position(side, tap.quotient), tap.remainder};
    if (row >= rows) cursor.tap.sample = -1;
    return cursor;
  }
  RT_DEVICE const T* at(const Cursor& cursor, int k) const {
    if (cursor.tap.sample < 0) return nullptr;
    const int64_t offset = read_offset<false>(side, pixel_position(side, k), cursor.tap);
    return offset < 0 ? nullptr : base + offset + cursor.channel;
  }
};

/// The weight operand of the data gradient: rows are input channels of the group, k indexes (tap, output
/// channel of the group).
template <class T>
struct WeightOperand {
  using Element = T;
  static constexpr bool kAlongK = false;
  struct Cursor {
    const T* column;  ///< null: outside
  };
  const T* base;
  Divisor depth;   ///< output channels of a group
  int64_t filter;  ///< elements of one output channel's filter
  int rows;        ///< input channels of a group

  RT_DEVICE void start(int64_t offset) { base += offset; }
  RT_DEVICE Cursor cursor(int row) const { return {row < rows ? base + row : nullptr}; }
  RT_DEVICE const T* at(const Cursor& cursor, int k) const {
    if (cursor.column == nullptr) return nullptr;
    const QuotientRemainder tap = divide(k, depth);
    return cursor.column + tap.remainder * filter + static_cast<int64_t>(tap.quotient) * rows;
  }
};

/// Iterates over output pixels (Forward, Weight) or input pixels (Data).
inline ConvSide conv_side(const ConvWindows& w, bool data) {
  ConvSide side{};
  for (int i = 0; i < 3; ++i) {
    side.pixel[i] = Divisor(data ? w.input[i] : w.output[i]);
    side.extent[i] = data ? w.output[i] : w.input[i];
    side.kernel[i] = Divisor(w.kernel[i]);
    side.stride[i] = Divisor(w.stride[i]);
    side.pad[i] = w.pad[i];
    side.dilation[i] = w.dilation[i];
  }
  side.pixels = static_cast<int>(data ? w.input_pixels() : w.output_pixels());
  side.channels = data ? w.output_channels : w.input_channels;
  return side;
}

}  // namespace librt::cuda
