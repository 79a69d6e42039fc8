// A task is a block of tiles times a part of the channels of the result: the tiles' patches are transformed
// to v [16][tile][C], multiplied with the weights u [16][C, O] to m [16][tile][chunk of O], transformed to
// sums, and requantized. v and m of a block stay in L2.
//
// Sums of products are exact modulo 2^32. So are the transforms, which add. That of the results divides by 4:
// four times a result is within 32 bits where 9 C products of 255 and 128 are within 29 (kMostChannels).
#include "backends/cpu/support/integer_winograd.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/simd/integer_winograd.h"
#include "backends/cpu/support/integer_gemm.h"
#include "backends/cpu/support/packing_kernel.h"
#include "backends/cpu/support/winograd_tiling.h"

namespace librt::cpu {
namespace {

using Loops = IntegerWinogradLoops;
constexpr int64_t kPoints = Loops::kPoints, kTile = Loops::kTile, kPatch = Loops::kPatch;
constexpr int64_t kMostChannels = (int64_t{1} << 29) / (9 * 255 * 128) / Loops::kChannels * Loops::kChannels;
/// Fewer do not pay for reading 3.6 times as many bytes of weights.
constexpr int64_t kLeastTiles = 12, kLeastChannels = 32;
/// Channels of the result at a time; bytes of v and m of a block; its panels of tiles.
constexpr int64_t kChunk = 128, kBlockBytes = 512 * 1024, kLeastPanels = 4, kMostPanels = 16;

struct Convolution {
  IntegerConv conv;
  const Loops* loops;
  const IntegerTile* tile;
  const GemmLoops* words;
  BlockRequantizer requantizer;
  int64_t c, o;
  WinogradTiling tiling;
  int64_t tiles, chunk;
  int64_t block;  ///< tiles, a multiple of the panels' rows

  Convolution(const CpuDevice& device, const IntegerConv& of)
      : conv(of),
        loops(&device.simd().loops<Loops>()),
        tile(&device.simd().loops<IntegerGemmLoops>().wide_pairs),
        words(&device.simd().loops<GemmLoops>()),
        requantizer(device.simd(), *of.requantization,
                    sums_at_zero_point(device.simd(), of, of.known_x_zero)),
        c(of.g.input_channels),
        o(of.g.output_channels),
        tiling(of.g, kTile),
        tiles(tiling.count),
        chunk(std::min(o, kChunk)) {
    const int64_t panels = kBlockBytes / (kPoints * (2 * c + 4 * chunk)) / tile->rows;
    const int64_t needed = (tiles + tile->rows - 1) / tile->rows;
    block = std::min(std::clamp(panels, kLeastPanels, kMostPanels), needed) * tile->rows;
  }

  /// Elements between points, padded: powers of two would map to the same cache sets.
  int64_t v_step() const noexcept { return block * c + 32; }
  int64_t m_step() const noexcept { return block * chunk + 16; }
  int64_t width() const noexcept { return tile->columns; }
  int64_t column_panels() const noexcept { return (o + width() - 1) / width(); }
  int64_t packed_step() const noexcept { return column_panels() * width() * c; }
  int64_t packed() const noexcept { return kPoints * packed_step() * 2; }
  // A thread's workspace in bytes: m, sums of a tile, v, and a row of x's zero point.
  int64_t sums_at() const noexcept { return kPoints * m_step() * 4; }
  int64_t v_at() const noexcept { return sums_at() + kTile * kTile * chunk * 4; }
  int64_t outside_at() const noexcept { return v_at() + kPoints * v_step() * 2; }
  int64_t workspace() const noexcept { return (outside_at() + c + 63) / 64 * 64; }

  /// u [point][panel][pair of channels][column][2]
  void pack(const int8_t* weight, int16_t* u) const noexcept {
    parallel_for(column_panels(), width() * c * kPoints, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t panel = begin; panel < end; ++panel)
        for (int64_t first = 0; first < c; first += Loops::kChannels) {
          alignas(4) int16_t points[kPoints][IntegerGemmLoops::kMostColumns * Loops::kChannels] = {};
          const int64_t count = std::min(width(), o - panel * width());
          for (int64_t j = 0; j < count; ++j)
            loops->weights(weight + (panel * width() + j) * 9 * c + first, c,
                           points[0] + j * Loops::kChannels, std::size(points[0]));
          for (int64_t p = 0; p < kPoints; ++p) {
            const float* columns[IntegerGemmLoops::kMostColumns];
            for (int64_t j = 0; j < width(); ++j)
              columns[j] = reinterpret_cast<const float*>(points[p] + j * Loops::kChannels);
            words->gather(columns, Loops::kChannels / 2,
                          reinterpret_cast<float*>(u + p * packed_step() + (panel * c + first) * width()),
                          width());
          }
        }
    });
  }

  void transform(const uint8_t* x, int64_t begin, int64_t end, const uint8_t* outside,
                 int16_t* v) const noexcept {
    const WindowAxis &rows = conv.g.axes[0], &columns = conv.g.axes[1];
    for (int64_t t = begin; t < end; ++t) {
      const WinogradTiling::Place at = tiling.place(t);
      const uint8_t* elements[kPoints];
      for (int64_t i = 0; i < kPatch; ++i) {
        const int64_t row = at.row - rows.pad_begin + i;
        for (int64_t k = 0; k < kPatch; ++k) {
          const int64_t column = at.column - columns.pad_begin + k;
          const bool inside = row >= 0 && row < rows.input && column >= 0 && column < columns.input;
          elements[i * kPatch + k] =
              inside ? x + ((at.sample * rows.input + row) * columns.input + column) * c : outside;
        }
      }
      loops->patch[conv.x_signed ? 0 : 1](elements, c, v + (t - begin) * c, v_step());
    }
  }

  /// Tiles [begin, end), at most a block, and channels of the result.
  void run_block(const Call& call, const int16_t* u, int64_t begin, int64_t end, Range channels,
                 std::byte* workspace) const noexcept {
    const WindowAxis &rows = conv.g.axes[0], &columns = conv.g.axes[1];
    auto* const m = reinterpret_cast<int32_t*>(workspace);
    auto* const sums = reinterpret_cast<int32_t*>(workspace + sums_at());
    auto* const v = reinterpret_cast<int16_t*>(workspace + v_at());
    auto* const outside = reinterpret_cast<uint8_t*>(workspace + outside_at());
    std::memset(outside, conv.known_x_zero, static_cast<size_t>(c));
    transform(call.in<uint8_t>(0), begin, end, outside, v);
    const auto bytes = static_cast<int64_t>(size_of(conv.requantization->y_type));
    const int64_t count = end - begin;
    for (int64_t first = channels.begin; first < channels.end; first += chunk) {
      const int64_t n = std::min(chunk, channels.end - first);
      for (int64_t p = 0; p < kPoints; ++p)
        for (int64_t j = 0; j < n; j += width())
          for (int64_t i = 0; i < count; i += tile->rows)
            tile->run(reinterpret_cast<const uint8_t*>(v + p * v_step() + i * c), 2 * c,
                      reinterpret_cast<const uint8_t*>(u + p * packed_step() + (first + j) * c), c / 2,
                      m + p * m_step() + i * n + j, n, std::min(tile->rows, count - i),
                      std::min(width(), n - j));
      for (int64_t t = begin; t < end; ++t) {
        loops->results(m + (t - begin) * n, m_step(), n, sums);
        const WinogradTiling::Place at = tiling.place(t);
        const int64_t across = std::min(kTile, columns.output - at.column);
        for (int64_t i = 0; i < std::min(kTile, rows.output - at.row); ++i) {
          const int64_t point = (at.sample * rows.output + at.row + i) * columns.output + at.column;
          requantizer.run(sums + i * kTile * n, across, {first, first + n},
                          call.out<std::byte>() + (point * o + first) * bytes, o);
        }
      }
    }
  }

  void run(const Call& call, const int16_t* u, std::byte* workspaces) const noexcept {
    const int64_t parts = max_threads(), least = (tiles + block - 1) / block;
    const bool few = tiles < parts * kLeastPanels * tile->rows;
    const int64_t blocks = few ? least : std::min(tiles, (least + parts - 1) / parts * parts);
    const int64_t splits = few ? std::min((parts + least - 1) / least, column_panels()) : 1;
    parallel_for(
        blocks * splits, kPoints * block * c * o / splits / 32, 1, [&](int64_t begin, int64_t end) noexcept {
          std::byte* const workspace = workspaces + thread_index() * this->workspace();
          for (int64_t task = begin; task < end; ++task) {
            const Range range = part_of(tiles, task / splits, blocks);
            run_block(call, u, range.begin, range.end, part_of(o, task % splits, splits, width()), workspace);
          }
        });
  }
};

}  // namespace

Status supports_integer_winograd(const CpuDevice& device, const ConvGeometry& g) {
  if (device.simd().dot_products) return unsupported("Winograd is not faster than dot products of bytes");
  RT_TRY(supports_winograd_windows(g));
  const auto fits = [](int64_t channels) {
    return channels % Loops::kChannels == 0 && channels >= kLeastChannels;
  };
  if (!fits(g.input_channels) || !fits(g.output_channels) || g.input_channels > kMostChannels)
    return unsupported("channels must be multiples of 16, from 32 to ", kMostChannels, ", not ",
                       g.input_channels, " and ", g.output_channels);
  const int64_t tiles = WinogradTiling(g, kTile).count;
  if (tiles < kLeastTiles) return unsupported("Winograd is not faster for ", tiles, " tiles of 2x2 results");
  return {};
}

KernelPtr make_integer_winograd(const CpuDevice& device, const IntegerConv& of) {
  const auto conv = std::make_shared<const Convolution>(device, of);
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(device.info().threads * conv->workspace());
  const PackedOperand weights(of.constant_weight, static_cast<size_t>(conv->packed()), 0x77696e3800ull, 1,
                              requirements);
  auto body = [=](const Call& call) noexcept {
    conv->run(call, call.packed<int16_t>(), call.scratch<std::byte>());
  };
  const auto pack = [=](float* to) noexcept {
    conv->pack(static_cast<const int8_t*>(of.constant_weight), reinterpret_cast<int16_t*>(to));
  };
  return make_packing_kernel(device, pack, std::move(body), requirements);
}

}  // namespace librt::cpu
