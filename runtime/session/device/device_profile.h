// Performance of a device: measured by rtbench and kept in the cache folder, or typical for its type.
//
// Knows: the values and their file. Must not know: how they are measured, how they predict
// (prepare/cost_model.h).
#pragma once

#include <array>
#include <string>

#include "runtime/backend/backend.h"

namespace librt {

/// Nodes whose time follows from one measured curve. Its work is flops up to Recurrent, except Depthwise, and
/// of ConvDirect, else bytes. The names in the file are in kFamilyNames, in this order: append only.
enum class Family : uint8_t {
  Matmul,        ///< of two matrices
  Conv1x1,       ///< over all input channels
  Conv,          ///< 3x3 without stride, which have faster algorithms (Winograd)
  ConvNarrow,    ///< fewer than 8 input channels for each output: first layers
  Depthwise,     ///< one input channel for each output
  Attention,     ///< fused
  Recurrent,     ///< LSTM, GRU, RNN: sequential
  MatrixVector,  ///< at most two rows
  Elementwise,   ///< also optimizer steps: its curve is the memory's
  Reduction,     ///< normalization, softmax, sums
  Pool,          ///< windows
  Movement,      ///< transposition, concatenation, slices
  Gather,        ///< by index; resizing, sampling
  ConvDirect,    ///< other kernels than 1x1 and 3x3, and 3x3 with a stride
  Weights,       ///< no node's: by how many bytes of weights matmuls of few rows read in a run
};
constexpr bool is_bound_by_flops(Family family) noexcept {
  return (family <= Family::Recurrent && family != Family::Depthwise) || family == Family::ConvDirect;
}
inline constexpr size_t kFamilies = 15;
inline constexpr std::array<const char*, kFamilies> kFamilyNames{
    "matmul",    "conv1x1",   "conv",          "conv_narrow", "depthwise",
    "attention", "recurrent", "matrix_vector", "elementwise", "reduction",
    "pool",      "movement",  "gather",        "conv_direct", "weights"};

/// Seconds of a node by its work, at a few sizes.
struct TimeCurve {
  static constexpr size_t kMost = 6;
  struct Point {
    float work = 0, seconds = 0;
  };
  std::array<Point, kMost> points{};  ///< by ascending work
  size_t count = 0;

  /// Interpolated between the logarithms; below the first point its time, above the last in proportion to
  /// work.
  double at(double work) const noexcept;
};

struct DeviceProfile {
  double flops_f32 = 0;           ///< matmul throughput, operations per second
  double memory_bandwidth = 0;    ///< bytes per second
  double transfer_bandwidth = 0;  ///< host to device, bytes per second
  double launch_seconds = 0;      ///< fixed overhead of a node
  double submit_seconds = 0;      ///< fixed overhead of a run
  double watts = 0;               ///< under load
  double rate_16bit = 1;          ///< throughput of matmuls in f16 or bf16 / f32
  double rate_8bit = 1;           ///< of integer matmuls / f32
  bool measured = false;          ///< rates; `watts` and curves may still be missing
  bool measured_watts = false;
  int scaled_from = 0;                        ///< threads that were measured, if not those asked for
  std::array<TimeCurve, kFamilies> curves{};  ///< empty: from the rates
  Status problem{};                           ///< why the file is not used
};

/// Typical values for devices of this type.
DeviceProfile typical_profile(const DeviceInfo& info);
/// From the cache folder, else typical values. The number of threads is part of a CPU's identity: where only
/// all_threads (0: none) were measured, theirs is scaled to info.threads. What a file of an earlier version
/// lacks is typical.
DeviceProfile read_profile(const std::string& folder, const DeviceInfo& info, int all_threads = 0);
Status write_profile(const std::string& folder, const DeviceInfo& info, const DeviceProfile& profile);

/// The median seconds of measured runs, by device. work: a hash of the model's nodes at their shapes and of
/// the precision. 0: none is remembered.
double read_run(const std::string& folder, uint64_t work, const DeviceInfo& info);
Status write_run(const std::string& folder, uint64_t work, const DeviceInfo& info, double seconds);

}  // namespace librt
