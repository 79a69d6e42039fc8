// The components of rttrain: data sets, the loader, augmentation, metrics, event files.
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tools/rttrain/arrays.h"
#include "tools/rttrain/data.h"
#include "tools/rttrain/event_file.h"
#include "tools/rttrain/loader.h"
#include "tools/rttrain/metrics.h"
#include "tools/rttrain/text.h"

namespace rt::train {
namespace {

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
 protected:
  Folder() {
    std::string name = (fs::temp_directory_path() / "rttrain-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~Folder() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  std::string write_gz(const std::string& name, const std::string& text) const {
    std::string path = (folder_ / name).string();
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return path;
  }

  // All pixels of one grey value.
  void write_png(const std::string& name, uint8_t value, unsigned width = 4, unsigned height = 3) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    png_image png = {};
    png.version = PNG_IMAGE_VERSION;
    png.width = width;
    png.height = height;
    png.format = PNG_FORMAT_GRAY;
    const std::vector<uint8_t> pixels(size_t{width} * height, value);
    ASSERT_NE(png_image_write_to_file(&png, path.c_str(), 0, pixels.data(), 0, nullptr), 0);
  }

  fs::path folder_;
};

rt::TensorSpec spec(const char* name, rt::DType dtype, std::vector<int64_t> dims) {
  rt::TensorSpec result{name, dtype, {}};
  for (int64_t dim : dims) result.dims.push_back({.extent = dim});
  return result;
}

const rt::TensorSpec kLabels = spec("labels", rt::DType::I64, {-1});

// Every sample of one column as values.
template <class T>
std::vector<T> all_of(const Source& source, size_t column) {
  std::vector<T> numbers;
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> targets;
  for (const Column& each : source.columns()) targets.push_back(memory.emplace_back(each.bytes).data());
  for (size_t i = 0; i < source.size(); ++i) {
    const rt::Status status = source.read(i, targets);
    EXPECT_TRUE(status) << status.message();
    const auto* first = reinterpret_cast<const T*>(targets[column]);
    numbers.insert(numbers.end(), first, first + source.columns()[column].elements());
  }
  return numbers;
}

rt::Result<SourcePtr> open(const DataFiles& files, const DataOptions& options,
                           const std::vector<rt::TensorSpec>& inputs, int64_t classes, DataFacts& facts) {
  return open_source(files, options, {}, inputs, classes, facts);
}

std::string error_of(const rt::Result<SourcePtr>& result) {
  return result ? "" : result.status().message();
}

// --- tables

using Tables = Folder;

TEST_F(Tables, NumbersAndNamedClasses) {
  const std::string path = write(
      "data.csv", "width,\"the \"\"height\"\"\",class\r\n1,2,dog\r\n3, 4.5 ,\"cat\"\r\n\r\n5,-6e1,dog\r\n");
  const std::vector<rt::TensorSpec> inputs = {spec("x", rt::DType::F32, {-1, 2}), kLabels};
  DataFacts facts;
  const auto source = open({{path}, {}}, {}, inputs, 2, facts);
  ASSERT_TRUE(source) << error_of(source);
  EXPECT_EQ((*source)->size(), 3u);
  EXPECT_EQ(all_of<float>(**source, 0), (std::vector<float>{1, 2, 3, 4.5f, 5, -60}));
  EXPECT_EQ(all_of<int64_t>(**source, 1), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ((*source)->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(facts.features, (std::vector<std::string>{"width", "the \"height\""}));
  // Validation data uses the training data's classes.
  const std::string more = write("more.csv", "width,height,class\n1,2,dog\n");
  const auto second = open({{more}, {}}, {}, inputs, 2, facts);
  ASSERT_TRUE(second) << error_of(second);
  EXPECT_EQ(all_of<int64_t>(**second, 1), (std::vector<int64_t>{1}));
  const std::string unknown = write("unknown.csv", "width,height,class\n1,2,cow\n");
  EXPECT_NE(error_of(open({{unknown}, {}}, {}, inputs, 2, facts)).find("line 2, column 'class': class 'cow'"),
            std::string::npos);
}

TEST_F(Tables, ErrorsNameTheLocation) {
  const std::vector<rt::TensorSpec> inputs = {spec("x", rt::DType::F32, {-1, 2}), kLabels};
  const auto message = [&](const std::string& text, const DataOptions& options = {}) {
    DataFacts facts;
    return error_of(open({{write("bad.csv", text)}, {}}, options, inputs, 3, facts));
  };
  EXPECT_NE(message("a,b,label\n1,2,0\n1,two,0\n").find("line 3, column 'b': expected a number, found 'two'"),
            std::string::npos);
  EXPECT_NE(message("a,b,label\n1,2\n").find("line 2: expected 3 fields, found 2"), std::string::npos);
  EXPECT_NE(message("a,b,label\n1,,0\n").find("line 2, column 'b': the field is empty"), std::string::npos);
  EXPECT_NE(message("a,b,label\n1,\"2,0\n").find("line 2: a quoted field has no end"), std::string::npos);
  EXPECT_NE(message("a,b,c\n1,2,0\n").find("--label-column"), std::string::npos);
  EXPECT_NE(message("a,b,label\n1,2,3\n").find("label 3, the model has 3 classes"), std::string::npos);
  EXPECT_NE(message("a,label\n1,0\n").find("samples of [2]"), std::string::npos);
  EXPECT_NE(message("").find("has no rows"), std::string::npos);
  EXPECT_EQ(message("a,b,label\n1,2,-5\n1,2,0\n", {.ignored_label = -5}), "");
  EXPECT_EQ(message("a,b,label\n1,,0\n1,2,0\n", {.skip_missing = true}), "");
}

TEST_F(Tables, StandardizesByTheTrainingData) {
  const std::vector<rt::TensorSpec> inputs = {spec("x", rt::DType::F32, {-1, 2}), kLabels};
  DataFacts facts;
  const DataOptions options{.standardize = true};
  const auto source = open({{write("a.csv", "a,b,y\n1,7,0\n3,7,1\n")}, {}}, options, inputs, 2, facts);
  ASSERT_TRUE(source) << error_of(source);
  EXPECT_EQ(all_of<float>(**source, 0), (std::vector<float>{-1, 0, 1, 0}));
  const auto more = open({{write("b.csv", "a,b,y\n5,8,0\n")}, {}}, options, inputs, 2, facts);
  ASSERT_TRUE(more) << error_of(more);
  EXPECT_EQ(all_of<float>(**more, 0), (std::vector<float>{3, 1}));
}

TEST_F(Tables, TextsBecomeTokens) {
  const std::string path = write("sms.tsv", "ham\tHi \"you\nspam\tWIN!!\n");
  const std::vector<rt::TensorSpec> inputs = {spec("ids", rt::DType::I64, {-1, 4}), kLabels};
  DataFacts facts;
  const auto source = open({{path}, {}}, {.header = false, .label_column = "0"}, inputs, 2, facts);
  ASSERT_TRUE(source) << error_of(source);
  EXPECT_EQ(all_of<int64_t>(**source, 0), (std::vector<int64_t>{'H', 'i', ' ', '"', 'W', 'I', 'N', '!'}));
  EXPECT_EQ(all_of<int64_t>(**source, 1), (std::vector<int64_t>{0, 1}));
}

// --- IDX

using Idx = Folder;

TEST_F(Idx, PartsOneAfterAnother) {
  const std::string head("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02", 16);
  const std::string labels_head("\0\0\x08\x01\0\0\0\x04", 8);
  const DataFiles files{{write("a", head + "abcd"), write_gz("b.gz", head + "efgh")},
                        write_gz("labels.gz", labels_head + std::string("\1\0\2\1", 4))};
  const std::vector<rt::TensorSpec> inputs = {spec("image", rt::DType::F32, {-1, 1, 2, 1}), kLabels};
  DataFacts facts;
  const auto source = open(files, {}, inputs, 3, facts);
  ASSERT_TRUE(source) << error_of(source);
  EXPECT_EQ(all_of<float>(**source, 0), (std::vector<float>{97, 98, 99, 100, 101, 102, 103, 104}));
  EXPECT_EQ(all_of<int64_t>(**source, 1), (std::vector<int64_t>{1, 0, 2, 1}));
  EXPECT_NE(error_of(open(files, {}, inputs, 2, facts)).find("sample 2: label 2, the model has 2 classes"),
            std::string::npos);
  const DataFiles cut{{write("cut", head + "abc")}, files.labels};
  EXPECT_NE(error_of(open(cut, {}, inputs, 3, facts)).find("expected 4 bytes of data, found 3"),
            std::string::npos);
  EXPECT_NE(error_of(open({{files.paths[0]}, {}}, {}, inputs, 3, facts)).find("--labels"), std::string::npos);
  const std::string unequal = error_of(open({{files.paths[0]}, files.labels}, {}, inputs, 3, facts));
  EXPECT_NE(unequal.find("samples as in the other arrays, found 4"), std::string::npos) << unequal;
  const auto why_not = [](const std::string& name, std::vector<rt::Dim> dims) {
    return column_for({.name = name, .dims = std::move(dims)}, {}).status().message();
  };
  EXPECT_NE(why_not("rate", {}).find("rtconvert --constant rate=FILE"), std::string::npos);
  EXPECT_NE(why_not("x", {{.extent = -1}, {.extent = 0}}).find("axis 1 is empty"), std::string::npos);
}

TEST_F(Idx, NumbersThatAreNotFiniteAreRefused) {
  const std::string head("\0\0\x0d\x02\0\0\0\x02\0\0\0\x02", 12), one("\x3f\x80\0\0", 4);
  const std::string labels = write("labels", std::string("\0\0\x08\x01\0\0\0\x02\1\0", 10));
  const std::vector<rt::TensorSpec> inputs = {spec("x", rt::DType::F32, {-1, 2}), kLabels};
  DataFacts facts;
  const auto with = [&](const std::string& number, bool allowed) {
    DataOptions options;
    options.allow_nonfinite = allowed;
    return open({{write("x", head + one + one + one + number)}, labels}, options, inputs, 2, facts);
  };
  const std::string nan("\x7f\xc0\0\0", 4), infinity("\xff\x80\0\0", 4), largest("\x7f\x7f\xff\xff", 4);
  for (const std::string& number : {nan, infinity}) {
    const std::string error = error_of(with(number, false));
    EXPECT_NE(error.find("'x', sample 1, element 1: expected a finite number"), std::string::npos) << error;
    EXPECT_TRUE(with(number, true));
  }
  EXPECT_TRUE(with(largest, false));
}

TEST_F(Idx, GrayPicturesAreScaledToTheInput) {
  const std::string head("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02", 16);
  const std::string labels_head("\0\0\x08\x01\0\0\0\x02", 8);
  const DataFiles files{{write("a", head + "aacc")}, write("labels", labels_head + std::string("\1\0", 2))};
  const std::vector<rt::TensorSpec> inputs = {spec("image", rt::DType::F32, {-1, 3, 2, 2}), kLabels};
  DataFacts facts;
  const auto source = open(files, {}, inputs, 2, facts);
  ASSERT_TRUE(source) << error_of(source);
  std::vector<float> expected(12, 97);
  expected.insert(expected.end(), 12, 99);
  EXPECT_EQ(all_of<float>(**source, 0), expected);
  EXPECT_EQ(all_of<int64_t>(**source, 1), (std::vector<int64_t>{1, 0}));
  EXPECT_NE(error_of(open(files, {}, inputs, 1, facts)).find("sample 0: label 1, the model has 1 classes"),
            std::string::npos);
}

// --- labels

TEST(Labels, ClassesAndTheIgnoredOne) {
  EXPECT_EQ(label_problem(9, 10, {}), "");
  EXPECT_EQ(label_problem(10, 10, {}), "label 10, the model has 10 classes");
  EXPECT_EQ(label_problem(255, 10, 255), "");
  EXPECT_EQ(label_problem(-100, 10, -100), "");
  EXPECT_NE(label_problem(-100, 10, -1).find("--ignore-index -100"), std::string::npos);
  EXPECT_NE(label_problem(-1, 0, {}).find("expected a class, counted from 0"), std::string::npos);
}

librt::tools::Array whole_numbers(const char* name, std::vector<int64_t> dims,
                                  const std::vector<int64_t>& values) {
  librt::tools::Array array{.name = name, .type = librt::DType::I64, .dims = std::move(dims), .bytes = {}};
  array.bytes.resize(values.size() * sizeof(int64_t));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

TEST(Labels, PaddingOfSequences) {
  const std::vector<rt::TensorSpec> inputs = {spec("labels", rt::DType::I64, {-1, 3}),
                                              spec("label_lengths", rt::DType::I64, {-1})};
  const auto error = [&](const std::vector<int64_t>& labels, const std::vector<int64_t>& lengths) {
    return error_of(
        source_of({whole_numbers("labels", {2, 3}, labels), whole_numbers("label_lengths", {2}, lengths)},
                  "data", inputs, {.class_count = 5}));
  };
  EXPECT_EQ(error({1, 2, -1, 4, -1, 99}, {2, 1}), "");
  EXPECT_NE(error({1, 2, -1, 4, -1, 99}, {2, 2}).find("sample 1, position 1: label -1"), std::string::npos);
  EXPECT_NE(error({1, 2, -1, 4, -1, 99}, {2, 4}).find("a length from 0 to 3, found 4"), std::string::npos);
}

// --- images

using Pictures = Folder;

TEST_F(Pictures, AFolderForEachClass) {
  write_png("set/dog/1.png", 10);
  write_png("set/cat/2.PNG", 20);
  write_png("set/cat/1.png", 30, 8, 6);  // scaled down
  write("set/cat/notes.txt", "not a picture");
  const std::vector<rt::TensorSpec> inputs = {spec("image", rt::DType::F32, {-1, 3, 4, 1}), kLabels};
  const DataFiles files{{(folder_ / "set").string()}, {}};
  for (size_t cache : {size_t{0}, size_t{100}, size_t{1} << 20}) {
    DataFacts facts;
    const auto source = open(files, {.cache_bytes = cache}, inputs, 2, facts);
    ASSERT_TRUE(source) << error_of(source);
    EXPECT_EQ(facts.classes, (std::vector<std::string>{"cat", "dog"}));
    for (int pass = 0; pass < 2; ++pass) {  // decoded, then from the cache
      const auto values = all_of<float>(**source, 0);
      ASSERT_EQ(values.size(), 36u);
      EXPECT_FLOAT_EQ(values[0], 30);
      EXPECT_FLOAT_EQ(values[12], 20);
      EXPECT_FLOAT_EQ(values[24], 10);
      EXPECT_EQ(all_of<int64_t>(**source, 1), (std::vector<int64_t>{0, 0, 1}));
    }
  }
  DataFacts facts;
  EXPECT_NE(error_of(open(files, {}, inputs, 1, facts)).find("has 2 classes, the model 1"),
            std::string::npos);
  write("set/dog/broken.png", "\x89PNG\r\n\x1a\n");
  const auto source = open(files, {}, inputs, 2, facts);
  ASSERT_TRUE(source) << error_of(source);
  // The digest follows names and sizes.
  const auto again = open({{(folder_ / "." / "set").string()}, {}}, {}, inputs, 2, facts);
  ASSERT_TRUE(again) << error_of(again);
  EXPECT_EQ((*source)->digest().text(), (*again)->digest().text());
  const std::string before = (*source)->digest().text();
  write("set/dog/broken.png", "\x89PNG\r\n\x1a\n\n");
  EXPECT_NE((*source)->digest().text(), before);
  std::vector<std::byte> image(48), label(8);
  std::byte* targets[] = {image.data(), label.data()};
  EXPECT_NE((*source)->read(3, targets).message().find("dog/broken.png"), std::string::npos);
}

// --- texts

using Texts = Folder;

TEST_F(Texts, WindowsAndWhatFollows) {
  const std::string path = write("book.txt", "abcdefgh");
  const std::vector<rt::TensorSpec> inputs = {spec("ids", rt::DType::I64, {-1, -1}),
                                              spec("labels", rt::DType::I64, {-1, -1})};
  DataFacts facts;
  const auto source = open({{path}, {}}, {.sequence = 3}, inputs, 256, facts);
  ASSERT_TRUE(source) << error_of(source);
  EXPECT_EQ(all_of<int64_t>(**source, 0), (std::vector<int64_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  EXPECT_EQ(all_of<int64_t>(**source, 1), (std::vector<int64_t>{'b', 'c', 'd', 'e', 'f', 'g'}));
  const auto dense = open({{path}, {}}, {.sequence = 3, .stride = 1}, inputs, 256, facts);
  ASSERT_TRUE(dense) << error_of(dense);
  EXPECT_EQ((*dense)->size(), 5u);
  const auto tail = open_source({{path}, {}}, {.sequence = 3}, {0.5, 1, 0}, inputs, 256, facts);
  ASSERT_TRUE(tail) << error_of(tail);
  EXPECT_EQ(all_of<int64_t>(**tail, 0), (std::vector<int64_t>{'e', 'f', 'g'}));
  EXPECT_NE(error_of(open({{path}, {}}, {}, inputs, 256, facts)).find("--sequence"), std::string::npos);
  EXPECT_NE(
      error_of(open({{path}, {}}, {.sequence = 8}, inputs, 256, facts)).find("8 tokens; a window takes 9"),
      std::string::npos);
}

// --- digests

using Digests = Folder;

TEST_F(Digests, EqualForEqualSamplesOnly) {
  const auto digest = [&](const std::string& name, const std::string& content,
                          const std::vector<rt::TensorSpec>& inputs, const DataOptions& options = {},
                          const Part& part = {}) {
    DataFacts facts;
    const auto source = open_source({{write(name, content)}, {}}, options, part, inputs, 256, facts);
    EXPECT_TRUE(source) << error_of(source);
    return source ? (*source)->digest().text() : "";
  };
  const std::vector<rt::TensorSpec> numbers = {spec("x", rt::DType::F32, {-1, 1}), kLabels};
  const std::string table = digest("table.csv", "a,label\n1,0\n2,1\n", numbers);
  EXPECT_EQ(table, digest("same.csv", "a,label\n1.0,0\n2e0,1\n", numbers));
  EXPECT_NE(table, digest("value.csv", "a,label\n1,0\n3,1\n", numbers));
  EXPECT_NE(table, digest("label.csv", "a,label\n1,0\n2,0\n", numbers));
  EXPECT_NE(table, digest("fewer.csv", "a,label\n1,0\n", numbers));
  const std::string four = "a,label\n1,0\n2,1\n3,0\n4,1\n";
  EXPECT_EQ(digest("four.csv", four, numbers, {}, {0, 0.5, 7}),
            digest("four.csv", four, numbers, {}, {0, 0.5, 7}));
  EXPECT_NE(digest("four.csv", four, numbers, {}, {0, 0.5, 7}),
            digest("four.csv", four, numbers, {}, {0.5, 1, 7}));
  const std::vector<rt::TensorSpec> words = {spec("ids", rt::DType::I64, {-1, -1}),
                                             spec("labels", rt::DType::I64, {-1, -1})};
  const std::string text = digest("text.txt", "abcdefgh", words, {.sequence = 3});
  EXPECT_EQ(text, digest("same.txt", "abcdefgh", words, {.sequence = 3}));
  EXPECT_NE(text, digest("other.txt", "abcdefgi", words, {.sequence = 3}));
  EXPECT_NE(text, digest("text.txt", "abcdefgh", words, {.sequence = 2}));
  EXPECT_NE(text, digest("text.txt", "abcdefgh", words, {.sequence = 3, .stride = 1}));
}

// --- batches

using Batches = Folder;

struct Seen {
  std::vector<float> inputs;
  std::vector<int64_t> labels;
  std::vector<size_t> sizes;
  bool operator==(const Seen&) const = default;
};

Seen run(const Source& source, const Transform& transform, const LoaderOptions& options) {
  Seen seen;
  Loader loader(source, transform, options);
  for (uint64_t i = options.first; i < options.end; ++i) {
    const auto batch = loader.next();
    if (!batch) {
      ADD_FAILURE() << batch.status().message();
      return seen;
    }
    const auto inputs = (*batch)->tensors[0].values<float>();
    const auto labels = (*batch)->tensors[1].values<int64_t>();
    seen.inputs.insert(seen.inputs.end(), inputs.begin(), inputs.end());
    seen.labels.insert(seen.labels.end(), labels.begin(), labels.end());
    seen.sizes.push_back((*batch)->samples);
  }
  return seen;
}

TEST_F(Batches, DoNotDependOnThreads) {
  std::string pixels("\0\0\x08\x03\0\0\0\x0b\0\0\0\x05\0\0\0\x05", 16);
  std::string labels("\0\0\x08\x01\0\0\0\x0b", 8);
  for (int i = 0; i < 11 * 25; ++i) pixels.push_back(static_cast<char>(i * 37 + 1));
  for (int i = 0; i < 11; ++i) labels.push_back(static_cast<char>(i));
  const std::vector<rt::TensorSpec> inputs = {spec("image", rt::DType::F32, {-1, 5, 5, 1}), kLabels};
  DataFacts facts;
  const auto source = open({{write("images", pixels)}, write("labels", labels)}, {}, inputs, 11, facts);
  ASSERT_TRUE(source) << error_of(source);
  const auto transform = Transform::create(
      (*source)->columns(), {.scale = 0.5, .mean = {3}, .deviation = {2}}, {.flip = true, .crop = 2});
  ASSERT_TRUE(transform) << transform.status().message();
  const LoaderOptions options{.batch = 4, .seed = 7, .workers = 0, .end = 9};
  const Seen alone = run(**source, *transform, options);
  EXPECT_EQ(alone.sizes, (std::vector<size_t>{4, 4, 3, 4, 4, 3, 4, 4, 3}));
  for (unsigned workers : {1u, 2u, 7u})
    for (size_t prefetch : {size_t{1}, size_t{3}, size_t{20}}) {
      LoaderOptions other = options;
      other.workers = workers;
      other.prefetch = prefetch;
      EXPECT_EQ(run(**source, *transform, other), alone) << workers << " workers";
    }
  // Each epoch has every sample once, in a different order and with different shifts.
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> part(alone.labels.begin() + epoch * 11, alone.labels.begin() + (epoch + 1) * 11);
    EXPECT_EQ(std::equal(part.begin(), part.end(), alone.labels.begin()), epoch == 0);
    std::sort(part.begin(), part.end());
    for (int64_t i = 0; i < 11; ++i) EXPECT_EQ(part[static_cast<size_t>(i)], i);
  }
  // Starting in the middle gives the same batches.
  LoaderOptions rest = options;
  rest.first = 4;
  rest.workers = 3;
  const Seen tail = run(**source, *transform, rest);
  EXPECT_TRUE(std::equal(tail.labels.begin(), tail.labels.end(), alone.labels.begin() + 15));
  EXPECT_TRUE(std::equal(tail.inputs.begin(), tail.inputs.end(), alone.inputs.begin() + 15 * 25));
  // Each rank has a part of every batch; in the last batch, of 3 samples, one of 4 ranks has none.
  std::vector<Seen> parts;
  for (size_t rank = 0; rank < 4; ++rank) {
    LoaderOptions part = options;
    part.rank = rank;
    part.shares = Shares(4);
    part.workers = 2;
    parts.push_back(run(**source, *transform, part));
  }
  EXPECT_EQ(parts[0].sizes, (std::vector<size_t>{1, 1, 0, 1, 1, 0, 1, 1, 0}));
  std::vector<int64_t> together;
  std::vector<size_t> taken(4);
  for (size_t batch = 0; batch < 9; ++batch)
    for (size_t rank = 0; rank < 4; ++rank)
      for (size_t i = 0; i < parts[rank].sizes[batch]; ++i)
        together.push_back(parts[rank].labels[taken[rank]++]);
  EXPECT_EQ(together, alone.labels);
  LoaderOptions seeded = options;
  seeded.seed = 8;
  EXPECT_NE(run(**source, *transform, seeded), alone);
}

TEST_F(Batches, RanksTakeTurnsInSlices) {
  DataFacts facts;
  const auto source = open({{write("rows.csv", "a,label\n0,0\n1,1\n2,2\n3,3\n4,4\n5,5\n6,6\n7,7\n")}, {}}, {},
                           {spec("x", rt::DType::F32, {-1, 1}), kLabels}, 8, facts);
  ASSERT_TRUE(source) << error_of(source);
  const auto transform = Transform::create((*source)->columns(), {}, {});
  ASSERT_TRUE(transform) << transform.status().message();
  LoaderOptions options{
      .batch = 8, .shuffle = false, .workers = 0, .end = 1, .shares = Shares(2), .slice = 2};
  EXPECT_EQ(run(**source, *transform, options).labels, (std::vector<int64_t>{0, 1, 4, 5}));
  options.rank = 1;
  EXPECT_EQ(run(**source, *transform, options).labels, (std::vector<int64_t>{2, 3, 6, 7}));
  options.slice = 3;  // equal parts of at most 3 are of 2
  EXPECT_EQ(run(**source, *transform, options).labels, (std::vector<int64_t>{2, 3, 6, 7}));
  options.slice = 0;
  EXPECT_EQ(run(**source, *transform, options).labels, (std::vector<int64_t>{4, 5, 6, 7}));
}

TEST_F(Batches, RanksHaveUnequalShares) {
  DataFacts facts;
  const auto source = open({{write("rows.csv", "a,label\n0,0\n1,1\n2,2\n3,3\n4,4\n5,5\n6,6\n7,7\n")}, {}}, {},
                           {spec("x", rt::DType::F32, {-1, 1}), kLabels}, 8, facts);
  ASSERT_TRUE(source) << error_of(source);
  const auto transform = Transform::create((*source)->columns(), {}, {});
  ASSERT_TRUE(transform) << transform.status().message();
  // Batches of 5, and a last one of 3.
  LoaderOptions options{.batch = 5, .shuffle = false, .workers = 0, .end = 2, .shares = Shares({4, 1})};
  const Seen most = run(**source, *transform, options);
  EXPECT_EQ(most.sizes, (std::vector<size_t>{3, 2}));
  EXPECT_EQ(most.labels, (std::vector<int64_t>{0, 1, 2, 5, 6}));
  options.rank = 1;
  EXPECT_EQ(run(**source, *transform, options).labels, (std::vector<int64_t>{3, 4, 7}));
}

TEST_F(Batches, AugmentationMovesAndMirrors) {
  const Column column{.input = "image", .dims = {2, 3, 1}, .bytes = 24};
  const auto transform = Transform::create({column}, {}, {.flip = true, .crop = 1});
  ASSERT_TRUE(transform) << transform.status().message();
  const std::vector<float> original = {1, 2, 3, 4, 5, 6};
  std::vector<std::vector<float>> expected;
  for (bool mirror : {false, true})
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        std::vector<float> moved;
        for (int y = 0; y < 2; ++y)
          for (int x = 0; x < 3; ++x) {
            const int from_y = y + dy, from_x = (mirror ? 2 - x : x) + dx;
            const bool inside = from_y >= 0 && from_y < 2 && from_x >= 0 && from_x < 3;
            moved.push_back(inside ? original[static_cast<size_t>(from_y * 3 + from_x)] : 0);
          }
        expected.push_back(moved);
      }
  std::vector<bool> seen(expected.size());
  std::vector<float> scratch;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::vector<float> values = original;
    std::byte* targets[] = {reinterpret_cast<std::byte*>(values.data())};
    transform->apply(seed, targets, scratch);
    const auto found = std::find(expected.begin(), expected.end(), values);
    ASSERT_NE(found, expected.end());
    seen[static_cast<size_t>(found - expected.begin())] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(seen.size()));
  EXPECT_FALSE(parse_augmentation({"rotate"}));
  EXPECT_FALSE(parse_augmentation({"crop=-1"}));
  EXPECT_FALSE(Transform::create({Column{.input = "x", .dims = {7}, .bytes = 28}}, {}, {.flip = true}));
}

TEST_F(Batches, NormalizesByChannel) {
  const auto check = [](std::vector<int64_t> dims, std::vector<float> values,
                        const std::vector<float>& expected) {
    const Column column{.input = "image", .dims = std::move(dims), .bytes = values.size() * sizeof(float)};
    const auto transform =
        Transform::create({column}, {.scale = 0.1, .mean = {1, 2, 3}, .deviation = {1, 2, 4}}, {});
    ASSERT_TRUE(transform) << transform.status().message();
    std::byte* targets[] = {reinterpret_cast<std::byte*>(values.data())};
    std::vector<float> scratch;
    transform->apply(0, targets, scratch);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_FLOAT_EQ(values[i], expected[i]) << i;
  };
  check({1, 2, 3}, {10, 20, 30, 20, 40, 70}, {0, 0, 0, 1, 1, 1});
  check({3, 1, 2}, {10, 20, 20, 40, 30, 70}, {0, 1, 0, 1, 0, 1});
}

// --- metrics

double value_of(const Metrics& metrics, const std::string& name) {
  for (const Measured& measured : metrics.results())
    if (measured.name == name) return measured.value;
  ADD_FAILURE() << "no metric " << name;
  return std::nan("");
}

TEST(MetricsTest, Classes) {
  Metrics metrics({.top_k = 2});
  const std::vector<float> scores = {2, 1, 0, 0, 1, 2, 1, 3, 2, 5, 5, 5};
  const std::vector<int64_t> labels = {0, 0, 2, 1};
  metrics.add(std::span(scores).first(6), std::span(labels).first(2));
  metrics.add(std::span(scores).subspan(6), std::span(labels).subspan(2));
  const std::vector<int64_t> ignored = {-100};
  metrics.add(std::span(scores).first(3), ignored);
  EXPECT_DOUBLE_EQ(value_of(metrics, "accuracy"), 0.25);
  EXPECT_DOUBLE_EQ(value_of(metrics, "top2"), 0.75);  // among equal scores the lower class ranks first
  // Class 0: 1 hit, 2 labelled, 2 predicted; class 1: 0, 1, 1; class 2: 0, 1, 1.
  EXPECT_DOUBLE_EQ(value_of(metrics, "f1_macro"), (0.5 + 0 + 0) / 3);
  const double e = std::exp(1.0);
  const double first = -std::log(e * e / (e * e + e + 1)), second = -std::log(1 / (e * e + e + 1)),
               third = -std::log(e / (1 + e + e * e)), fourth = std::log(3.0);
  const double loss = (first + second + third + fourth) / 4;
  EXPECT_NEAR(value_of(metrics, "loss"), loss, 1e-12);
  EXPECT_NEAR(value_of(metrics, "perplexity"), std::exp(loss), 1e-12);
}

TEST(MetricsTest, ProbabilitiesAndNumbers) {
  Metrics classes({.probabilities = true});
  const std::vector<float> probabilities = {0.25f, 0.75f};
  const std::vector<int64_t> label = {1};
  classes.add(probabilities, label);
  EXPECT_NEAR(value_of(classes, "loss"), -std::log(0.75), 1e-7);
  Metrics numbers({});
  const std::vector<float> values = {1, 2}, targets = {0, 4};
  numbers.add(values, targets);
  EXPECT_DOUBLE_EQ(value_of(numbers, "mse"), 2.5);
  EXPECT_DOUBLE_EQ(value_of(numbers, "mae"), 1.5);
  Metrics binary({.binary = true}), sigmoid({.probabilities = true, .binary = true});
  const std::vector<float> logits = {0, 1, -2, 3}, sides = {0.5f, 0.7310586f, 0.1192029f, 0.9525741f},
                           truth = {1, 1, 0, 0};
  binary.add(logits, truth);
  sigmoid.add(sides, truth);
  const double loss =
      -(std::log(0.5) + std::log(0.7310586) + std::log(1 - 0.1192029) + std::log(1 - 0.9525741)) / 4;
  EXPECT_NEAR(value_of(binary, "loss"), loss, 1e-6);
  EXPECT_NEAR(value_of(sigmoid, "loss"), loss, 1e-6);
  EXPECT_DOUBLE_EQ(value_of(binary, "accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(value_of(sigmoid, "accuracy"), 0.5);
  EXPECT_TRUE(larger_is_better("top5") && larger_is_better("accuracy") && !larger_is_better("perplexity"));
}

TEST(MetricsTest, ClassesBeforeOtherAxes) {
  Metrics metrics({.ignored = 2});
  // [1, 3 classes, 4 positions]
  const std::vector<float> scores = {5, 0, 0, 9, 1, 7, 0, 0, 0, 0, 6, 0};
  const std::vector<int64_t> labels = {0, 1, 0, 2};
  metrics.add(scores, labels, 4);
  EXPECT_DOUBLE_EQ(value_of(metrics, "accuracy"), 2.0 / 3);  // the last position is ignored
  const double e = std::exp(1.0);
  EXPECT_NEAR(value_of(metrics, "loss"),
              (std::log(std::pow(e, 5) + e + 1) - 5 + std::log(std::pow(e, 7) + 2) - 7 +
               std::log(std::pow(e, 6) + 2)) /
                  3,
              1e-12);
}

TEST(MetricsTest, NamesAreThoseOfTheResults) {
  const auto names_of = [](const Metrics& metrics) {
    std::vector<std::string> names;
    for (const Measured& measured : metrics.results()) names.push_back(measured.name);
    return names;
  };
  const std::vector<float> values = {1, 2, 0.5f};
  const std::vector<int64_t> label = {1};
  for (size_t top_k : {size_t{2}, size_t{3}}) {
    const Scoring scoring{.top_k = top_k};
    Metrics classes(scoring);
    classes.add(values, label);
    EXPECT_EQ(metric_names(scoring, true, 3), names_of(classes));
  }
  for (const Scoring& scoring : {Scoring{}, Scoring{.binary = true}}) {
    Metrics numbers(scoring);
    numbers.add(values, values);
    EXPECT_EQ(metric_names(scoring, false, 0), names_of(numbers));
  }
  const Scoring sequences{.blank = 0};
  EXPECT_EQ(metric_names(sequences, true, 3), names_of(Metrics(sequences)));
}

// --- sequences

TEST(Sequences, TheBestPathDropsRepeatsAndBlanks) {
  // Steps: 1 1 blank 1 2 2 blank, as [steps, 3 classes] with another sequence between.
  const std::vector<size_t> best = {1, 1, 0, 1, 2, 2, 0};
  std::vector<float> values(best.size() * 6, 9);
  for (size_t step = 0; step < best.size(); ++step)
    for (size_t c = 0; c < 3; ++c) values[step * 6 + c] = c == best[step] ? 1.0f : -1.0f;
  StepScores scores{.values = values, .stride = 6, .steps = best.size(), .classes = 3};
  EXPECT_EQ(best_path(scores), (std::vector<int64_t>{1, 1, 2}));
  scores.steps = 2;
  EXPECT_EQ(best_path(scores), (std::vector<int64_t>{1}));
  scores.blank = 1;
  EXPECT_EQ(best_path(scores), std::vector<int64_t>());
}

TEST(Sequences, EditDistance) {
  const std::vector<int64_t> kitten = {1, 2, 3, 3, 4, 5}, sitting = {6, 2, 3, 3, 2, 5, 7}, none;
  EXPECT_EQ(edit_distance(kitten, sitting), 3u);
  EXPECT_EQ(edit_distance(sitting, kitten), 3u);
  EXPECT_EQ(edit_distance(kitten, kitten), 0u);
  EXPECT_EQ(edit_distance(kitten, none), 6u);
  EXPECT_EQ(edit_distance(none, kitten), 6u);
}

// The sum over all paths, enumerated.
TEST(Sequences, TheLossIsThatOfAllPathsTogether) {
  constexpr size_t kSteps = 5, kClasses = 3;
  std::vector<float> logits(kSteps * kClasses), probabilities(kSteps * kClasses);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(3.0f * static_cast<float>(i));
  for (size_t step = 0; step < kSteps; ++step) {
    float sum = 0;
    for (size_t c = 0; c < kClasses; ++c) sum += std::exp(logits[step * kClasses + c]);
    for (size_t c = 0; c < kClasses; ++c)
      probabilities[step * kClasses + c] = std::exp(logits[step * kClasses + c]) / sum;
  }
  for (const size_t blank : {0u, 2u})
    for (const std::vector<int64_t>& labels : std::vector<std::vector<int64_t>>{{}, {1}, {1, 1}, {1, 1, 1}}) {
      double all = 0;
      for (size_t path = 0; path < 243; ++path) {
        double product = 1;
        std::vector<float> taken(kSteps * kClasses, 0);
        for (size_t step = 0, rest = path; step < kSteps; ++step, rest /= kClasses) {
          product *= static_cast<double>(probabilities[step * kClasses + rest % kClasses]);
          taken[step * kClasses + rest % kClasses] = 1;
        }
        const StepScores spelled{
            .values = taken, .stride = kClasses, .steps = kSteps, .classes = kClasses, .blank = blank};
        if (best_path(spelled) == labels) all += product;
      }
      StepScores scores{
          .values = logits, .stride = kClasses, .steps = kSteps, .classes = kClasses, .blank = blank};
      EXPECT_NEAR(ctc_loss(scores, labels), -std::log(all), 1e-6) << labels.size() << " labels";
      scores.values = probabilities;
      scores.probabilities = true;
      EXPECT_NEAR(ctc_loss(scores, labels), -std::log(all), 1e-6);
    }
  const StepScores scores{.values = logits, .stride = kClasses, .steps = 4, .classes = kClasses};
  EXPECT_EQ(ctc_loss(scores, std::vector<int64_t>{1, 1, 1}), std::numeric_limits<double>::infinity());
}

TEST(MetricsTest, Sequences) {
  Metrics metrics({.blank = 0});
  const std::vector<float> values = {0, 5, 0, 5, 0, 0, 0, 0, 5};  // 1 blank 2
  const StepScores scores{.values = values, .stride = 3, .steps = 3, .classes = 3};
  metrics.add(scores, std::vector<int64_t>{1, 2});
  metrics.add(scores, std::vector<int64_t>{1, 1, 2, 2});  // more labels than steps
  EXPECT_DOUBLE_EQ(value_of(metrics, "label_error_rate"), 2.0 / 6);
  EXPECT_DOUBLE_EQ(value_of(metrics, "sequence_accuracy"), 0.5);
  EXPECT_NEAR(value_of(metrics, "loss"), ctc_loss(scores, std::vector<int64_t>{1, 2}) / 2 / 2, 1e-12);
  EXPECT_TRUE(larger_is_better("sequence_accuracy") && !larger_is_better("label_error_rate"));
}

// --- event files

uint32_t crc_of(const std::string& text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(EventFileTest, Crc32c) {
  EXPECT_EQ(crc_of("123456789"), 0xe3069283u);              // the check value in the CRC catalogue
  EXPECT_EQ(crc_of(std::string(32, '\0')), 0x8a9136aau);    // RFC 3720, B.4
  EXPECT_EQ(crc_of(std::string(32, '\xff')), 0x62a8ab43u);  // RFC 3720, B.4
}

using EventFiles = Folder;

TEST_F(EventFiles, RecordsOfScalars) {
  const std::string folder = (folder_ / "events").string();
  {
    auto events = EventFile::create(folder);
    ASSERT_TRUE(events) << events.status().message();
    ASSERT_TRUE(events->scalar("train/loss", 0.5, 300));
    ASSERT_TRUE(events->flush());
  }
  const fs::path path = fs::directory_iterator(folder)->path();
  EXPECT_TRUE(path.filename().string().starts_with("events.out.tfevents."));
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto take = [&](size_t count) {
    std::string part = bytes.substr(0, count);
    bytes.erase(0, count);
    return part;
  };
  const auto number = [](const std::string& text, auto value) {
    std::memcpy(&value, text.data(), sizeof value);
    return value;
  };
  const auto masked = [](uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; };
  std::vector<std::string> events;
  while (!bytes.empty()) {
    const std::string length = take(8);
    EXPECT_EQ(number(take(4), uint32_t{}), masked(crc_of(length)));
    events.push_back(take(number(length, uint64_t{})));
    EXPECT_EQ(number(take(4), uint32_t{}), masked(crc_of(events.back())));
  }
  ASSERT_EQ(events.size(), 2u);
  EXPECT_NE(events[0].find("brain.Event:2"), std::string::npos);
  // wall_time, step 300, summary { value { tag: "train/loss" simple_value: 0.5 } }
  EXPECT_EQ(events[1].substr(0, 1), "\x09");
  EXPECT_EQ(events[1].substr(9),
            std::string("\x10\xac\x02\x2a\x13\x0a\x11\x0a\x0atrain/loss\x15\0\0\0\x3f", 24));
}

}  // namespace
}  // namespace rt::train
