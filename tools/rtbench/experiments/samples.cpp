#include "tools/rtbench/experiments/samples.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>

#include "tools/data/file.h"
#include "tools/data/npz.h"
#include "tools/data/random.h"

namespace librt::bench {
namespace {

/// Random numbers of a sample, the same whatever range it is written in.
class Numbers {
 public:
  Numbers(uint64_t seed, uint64_t stream) : state_(seed) { state_ = split_mix(state_) ^ stream; }
  /// In [-1, 1).
  float next() { return static_cast<float>(split_mix(state_) >> 40) * 0x1p-23f - 1.0f; }
  uint64_t below(uint64_t end) { return split_mix(state_) % end; }

 private:
  uint64_t state_;
};

constexpr uint64_t kTeacher = uint64_t{1} << 63;  ///< streams of what is to be learned begin here

uint64_t stream_of(int64_t sample) {
  return static_cast<uint64_t>(sample);
}

tools::Array array_of(const char* name, DType type, std::vector<int64_t> dims, const void* data,
                      size_t bytes) {
  tools::Array array{.name = name, .type = type, .dims = std::move(dims), .bytes = {}};
  array.bytes.resize(bytes);
  std::memcpy(array.bytes.data(), data, bytes);
  return array;
}

/// An f32 array "input" of samples with these dims, and their "labels". fill(numbers, sample): writes a
/// sample from its own random numbers, and returns its label.
template <class Fill>
Status write_arrays(const std::string& path, SampleRange range, std::vector<int64_t> dims, uint64_t seed,
                    Fill fill) {
  int64_t size = 1;
  for (const int64_t dim : dims) size *= dim;
  std::vector<float> values(static_cast<size_t>(range.count * size));
  std::vector<int64_t> labels(static_cast<size_t>(range.count));
  for (int64_t i = 0; i < range.count; ++i) {
    Numbers numbers(seed, stream_of(range.first + i));
    labels[static_cast<size_t>(i)] = fill(numbers, values.data() + i * size);
  }
  dims.insert(dims.begin(), range.count);
  std::vector<tools::Array> arrays;
  arrays.push_back(
      array_of("input", DType::F32, std::move(dims), values.data(), values.size() * sizeof(float)));
  arrays.push_back(
      array_of("labels", DType::I64, {range.count}, labels.data(), labels.size() * sizeof(int64_t)));
  return tools::write_npz(path, arrays);
}

Status write_text(const std::string& path, const std::string& text) {
  return tools::write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace

Status write_planes(const std::string& path, SampleRange range, int64_t features, uint64_t seed) {
  std::vector<float> plane(static_cast<size_t>(features));
  Numbers teacher(seed, kTeacher);
  for (float& weight : plane) weight = teacher.next();
  return write_arrays(path, range, {features}, seed, [&](Numbers& numbers, float* row) -> int64_t {
    double sum = 0;
    for (size_t k = 0; k < plane.size(); ++k) {
      row[k] = numbers.next();
      sum += static_cast<double>(row[k]) * static_cast<double>(plane[k]);
    }
    return sum > 0 ? 1 : 0;
  });
}

Status write_pictures(const std::string& path, SampleRange range, int64_t size, int64_t classes, double noise,
                      uint64_t seed) {
  constexpr int64_t kSquare = 4;
  const int64_t squares = (size + kSquare - 1) / kSquare;
  std::vector<float> colours(static_cast<size_t>(classes * squares * squares));
  Numbers teacher(seed, kTeacher);
  for (float& colour : colours) colour = teacher.next();
  return write_arrays(path, range, {size, size, 1}, seed, [&](Numbers& numbers, float* picture) {
    const auto label = static_cast<int64_t>(numbers.below(static_cast<uint64_t>(classes)));
    for (int64_t k = 0; k < size * size; ++k) {
      const int64_t square = k / size / kSquare * squares + k % size / kSquare;
      const float colour = colours[static_cast<size_t>(label * squares * squares + square)];
      picture[k] = colour + static_cast<float>(noise) * numbers.next();
    }
    return label;
  });
}

Status write_table(const std::string& path, SampleRange range, int64_t features, uint64_t seed) {
  std::string text;
  for (int64_t k = 0; k < features; ++k) text += "feature" + std::to_string(k) + ",";
  text += "label\n";
  Numbers teacher(seed, kTeacher);
  std::vector<float> one(static_cast<size_t>(features)), other(one.size()), scale(one.size());
  for (size_t k = 0; k < one.size(); ++k) {
    one[k] = teacher.next();
    other[k] = teacher.next();
    scale[k] = std::pow(10.0f, 3 * teacher.next());
  }
  for (int64_t i = 0; i < range.count; ++i) {
    Numbers numbers(seed, stream_of(range.first + i));
    float a = 0, b = 0;
    for (size_t k = 0; k < one.size(); ++k) {
      const float value = numbers.next();
      a += value * one[k];
      b += value * other[k];
      char cell[32];
      std::snprintf(cell, sizeof cell, "%.6g,", static_cast<double>(value * scale[k]));
      text += cell;
    }
    // Not linear: two of the three classes differ by the sign of a product.
    text += a > 0.7f ? "high\n" : a * b > 0 ? "even\n" : "odd\n";
  }
  return write_text(path, text);
}

Status write_messages(const std::string& path, SampleRange range, uint64_t seed) {
  constexpr uint64_t kWords = 400, kCommon = 250;
  constexpr int64_t kLetters = 26;
  std::vector<std::string> words(2 * kWords);
  Numbers teacher(seed, kTeacher);
  for (std::string& word : words)
    for (uint64_t letters = 3 + teacher.below(6); letters > 0; --letters)
      word += static_cast<char>('a' + static_cast<int64_t>(teacher.below(kLetters)));
  std::string text;
  for (int64_t i = 0; i < range.count; ++i) {
    Numbers numbers(seed, stream_of(range.first + i));
    const bool is_spam = numbers.below(100) < 13;  // the share in the SMS Spam Collection
    text += is_spam ? "spam\t" : "ham\t";
    for (uint64_t left = 6 + numbers.below(14); left > 0; --left) {
      // The first kCommon words are in both vocabularies.
      const uint64_t word = numbers.below(kWords);
      text += words[is_spam && word >= kCommon ? kWords + word : word] + (left > 1 ? " " : "\n");
    }
  }
  return write_text(path, text);
}

}  // namespace librt::bench
