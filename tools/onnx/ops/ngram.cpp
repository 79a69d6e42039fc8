// TfIdfVectorizer over integers: every window of the text is compared with every n-gram of the pool.
#include <algorithm>
#include <limits>

#include "tools/onnx/node.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// The n-grams of one length in the pool.
struct Pool {
  int64_t length = 1;
  int64_t first = 0;  ///< among all n-grams
  int64_t count = 0;
  std::vector<int64_t> words;  ///< n-gram by n-gram
};

struct Vectorizer {
  std::vector<Pool> pools;
  std::vector<int64_t> columns;  ///< of the result, by n-gram
  std::vector<float> weights;    ///< empty: all 1
  std::string mode;
  int64_t skips = 0;
};

Result<Vectorizer> read_vectorizer(NodeContext& c) {
  Vectorizer v;
  v.mode = c.string("mode", "");
  if (v.mode != "TF" && v.mode != "IDF" && v.mode != "TFIDF")
    return invalid_model("mode: expected TF, IDF or TFIDF, found ", v.mode);
  if (c.attribute("pool_strings") != nullptr) return cannot("n-grams of strings; use numbers for words");
  v.columns = c.integers("ngram_indexes");
  v.weights = c.reals("weights");
  v.skips = c.integer("max_skip_count", 0);
  const std::vector<int64_t> words = c.integers("pool_int64s"), starts = c.integers("ngram_counts");
  const int64_t least = c.integer("min_gram_length", 1), most = c.integer("max_gram_length", 1);
  constexpr int64_t kMostSkips = 64;
  if (least < 1 || most < least || v.skips < 0)
    return invalid_model("expected gram lengths from 1 and skips from 0, found ", least, " to ", most,
                         " and ", v.skips);
  if (v.skips > kMostSkips) return cannot("more than ", kMostSkips, " skips are not supported");
  int64_t grams = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto size = static_cast<int64_t>(words.size()), length = static_cast<int64_t>(i) + 1;
    const int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : size;
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0)
      return invalid_model("ngram_counts: entry ", i, " does not fit a pool of ", size);
    Pool pool{.length = length, .first = grams, .count = (end - begin) / length};
    pool.words.assign(words.begin() + begin, words.begin() + end);
    grams += pool.count;
    if (length >= least && length <= most && pool.count > 0) v.pools.push_back(std::move(pool));
  }
  if (static_cast<int64_t>(v.columns.size()) != grams ||
      (!v.weights.empty() && v.weights.size() != v.columns.size()))
    return invalid_model("expected ", grams, " ngram_indexes and as many weights, found ", v.columns.size(),
                         " and ", v.weights.size());
  constexpr int64_t kWidest = int64_t{1} << 28;
  for (const int64_t column : v.columns)
    if (column < 0 || column > kWidest) return invalid_model("ngram_indexes: found ", column);
  return v;
}

/// How often each n-gram of the pool is in each row of x [N,C], with `step` - 1 words between its words: f32
/// [N,count].
ValueId count_grams(NodeContext& c, ValueId x, const Pool& pool, int64_t step) {
  ValueId found = kNoValue;
  const int last[] = {2};
  for (int64_t word = 0; word < pool.length; ++word) {
    const int64_t trailing = (pool.length - 1 - word) * step;
    const ValueId words =
        slice(c.emit, x, 1, word * step, trailing > 0 ? -trailing : std::numeric_limits<int64_t>::max());
    std::vector<int64_t> wanted;
    for (int64_t gram = 0; gram < pool.count; ++gram)
      wanted.push_back(pool.words[static_cast<size_t>(gram * pool.length + word)]);
    const ValueId same =
        c.emit.emit(op::EqualAttributes{}, {unsqueeze(c.emit, words, last), c.emit.ints(wanted)});
    found = word == 0 ? same : c.emit.emit(op::AndAttributes{}, {found, same});
  }
  return c.emit.reduce_sum(c.emit.cast(found, DType::F32), {1}, false);
}

/// counts [N,K] of the n-grams with these columns, as [N,width].
ValueId spread_columns(NodeContext& c, ValueId counts, std::span<const int64_t> columns, int64_t width) {
  const ValueId rows = dims_product(c.emit, counts, 0, 1);
  op::ScatterAddAttributes attributes;
  attributes.axis = 1;
  const ValueId shape = concat_values(c.emit, {rows, c.emit.ints({&width, 1})});
  return c.emit.emit(attributes, {shape, c.emit.ints(columns), counts});
}

Status tf_idf_vectorizer(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const Vectorizer v, read_vectorizer(c));
  if (c.rank() > 2) return invalid_model("expected an input [C] or [N,C], found rank ", c.rank());
  if (!is_integer(c.dtype()))
    return cannot("elements of type ", name_of(c.dtype()), "; words must be integers");
  ValueId x = c.dtype() == DType::I64 ? c.input(0) : c.emit.cast(c.input(0), DType::I64);
  if (c.rank() < 2) x = reshape_to(c.emit, x, {1, -1});
  const int64_t width = v.columns.empty() ? 0 : *std::max_element(v.columns.begin(), v.columns.end()) + 1;
  ValueId y = kNoValue;
  for (const Pool& pool : v.pools) {
    ValueId counts = kNoValue;
    // A single word has nothing to skip.
    for (int64_t step = 1; step <= (pool.length > 1 ? v.skips : 0) + 1; ++step) {
      const ValueId more = count_grams(c, x, pool, step);
      counts = counts == kNoValue ? more : c.emit.add(counts, more);
    }
    if (v.mode == "IDF")
      counts = c.emit.emit(op::MinimumAttributes{}, {counts, c.emit.scalar(1, DType::F32)});
    if (v.mode != "TF" && !v.weights.empty())
      counts =
          c.emit.mul(counts, c.emit.constant({.dtype = DType::F32, .shape = {pool.count}},
                                             Blob::copy_of(v.weights.data() + pool.first,
                                                           static_cast<size_t>(pool.count) * sizeof(float))));
    const auto columns =
        std::span(v.columns).subspan(static_cast<size_t>(pool.first), static_cast<size_t>(pool.count));
    const ValueId part = spread_columns(c, counts, columns, width);
    y = y == kNoValue ? part : c.emit.add(y, part);
  }
  if (y == kNoValue) {  // no n-gram of the requested lengths
    const ValueId shape = concat_values(c.emit, {dims_product(c.emit, x, 0, 1), c.emit.ints({&width, 1})});
    op::ConstantOfShapeAttributes zeros;
    zeros.dtype = static_cast<uint8_t>(DType::F32);
    y = c.emit.emit(zeros, {shape});
  }
  return c.result(c.rank() < 2 ? reshape_to(c.emit, y, {width}) : y);
}

constexpr ImportRow kNgramRows[] = {
    {"", "TfIdfVectorizer", 9, kNewestOpset, tf_idf_vectorizer},
};

}  // namespace

std::span<const ImportRow> rows_ngram() {
  return kNgramRows;
}

}  // namespace librt::onnx
