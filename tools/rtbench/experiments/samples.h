// Data that experiments train on: generated, seeded, and such that a network can learn it.
//
// Knows: the formats that rttrain reads. Must not know: any experiment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace librt::bench {

/// `count` samples with the first one's number `first`: parts of one data set that do not overlap.
struct SampleRange {
  int64_t first = 0, count = 0;
};

/// .npz with `input` f32 [count,features], uniform in [-1,1), and `labels` i64: on which side of a seeded
/// plane a sample lies.
Status write_planes(const std::string& path, SampleRange range, int64_t features, uint64_t seed);

/// .npz with `input` f32 [count,size,size,1] and `labels`: each class has a seeded picture of squares, to
/// which a sample adds `noise` times uniform noise.
Status write_pictures(const std::string& path, SampleRange range, int64_t size, int64_t classes, double noise,
                      uint64_t seed);

/// .csv with a head: `features` numbers of different scales and the column `label`, three classes.
Status write_table(const std::string& path, SampleRange range, int64_t features, uint64_t seed);

/// .tsv without a head, "label TAB text": short messages of words from two overlapping vocabularies.
Status write_messages(const std::string& path, SampleRange range, uint64_t seed);

}  // namespace librt::bench
