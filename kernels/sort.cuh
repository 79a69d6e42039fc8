// Sort entries: an element's key and its position, so that no two are equal.
#pragma once

#include "kernels/port.cuh"

namespace librt::cuda {

/// Keys of at most 32 bits, above the 32-bit position.
struct NarrowEntry {
  using Key = uint32_t;
  uint64_t bits;
  RT_DEVICE static NarrowEntry of(Key key, uint32_t position) {
    return {static_cast<uint64_t>(key) << 32 | position};
  }
  RT_DEVICE static NarrowEntry last() { return {~uint64_t{0}}; }
  RT_DEVICE bool before(const NarrowEntry& other) const { return bits < other.bits; }
  RT_DEVICE uint32_t position() const { return static_cast<uint32_t>(bits); }
  RT_DEVICE Key key() const { return static_cast<uint32_t>(bits >> 32); }
};

struct WideEntry {
  using Key = uint64_t;
  uint64_t bits;
  uint32_t at;
  RT_DEVICE static WideEntry of(Key key, uint32_t position) { return {key, position}; }
  RT_DEVICE static WideEntry last() { return {~uint64_t{0}, ~uint32_t{0}}; }
  RT_DEVICE bool before(const WideEntry& other) const {
    return bits != other.bits ? bits < other.bits : at < other.at;
  }
  RT_DEVICE uint32_t position() const { return at; }
  RT_DEVICE Key key() const { return bits; }
};

}  // namespace librt::cuda
