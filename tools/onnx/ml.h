// Shared by the importers of ai.onnx.ml: rows of features, class labels, score transforms.
//
// Knows: the attributes that several of these operators have, and how their results are written. Must not
// know: the operators (ops/ml_*.cpp).
#pragma once

#include <span>
#include <vector>

#include "tools/onnx/node.h"

namespace librt::onnx {

/// A constant of `dtype` with these values, rounded to it.
ValueId constant_reals(Emitter& emit, DType dtype, std::span<const double> numbers, Shape shape);
ValueId constant_reals(Emitter& emit, std::span<const float> numbers, Shape shape);
ValueId constant_i32(Emitter& emit, std::span<const int32_t> numbers, Shape shape);
ValueId constant_bools(Emitter& emit, std::span<const uint8_t> flags);

/// Input 0 as rows [N,F] of `dtype`, or of its own type if that is nullopt; a vector is one row.
Result<ValueId> feature_rows(NodeContext& c, std::optional<DType> dtype = DType::F32);
/// Fails unless the rows have that many features, or a dynamic number of them.
Status expect_features(NodeContext& c, ValueId rows, size_t features);

enum class PostTransform { None, Softmax, Logistic, SoftmaxZero, Probit };
Result<PostTransform> post_transform(std::string_view name);
/// The transform of scores [N,C].
ValueId transformed(Emitter& emit, PostTransform transform, ValueId scores);

struct ClassLabels {
  std::vector<int64_t> numbers;
  StringList strings;  ///< null where the labels are integers
  size_t count() const { return strings != nullptr ? strings->size() : numbers.size(); }
};
/// Reads the attributes classlabels_strings and `numbers`.
Result<ClassLabels> class_labels(NodeContext& c, std::string_view numbers);
/// The labels at positions [N], i64.
ValueId labels_at(NodeContext& c, const ClassLabels& labels, ValueId positions);
/// The argmax of each row of scores, [N].
ValueId largest_of_rows(Emitter& emit, ValueId scores);
/// 1 where the scores [N,1] are above the threshold, else 0: [N].
ValueId above(Emitter& emit, ValueId scores, double threshold);
/// For the model's metadata.
std::string json_list(const std::vector<std::string>& strings);
std::string json_list(const std::vector<int64_t>& numbers);
/// Concatenates along an axis.
ValueId columns(Emitter& emit, ValueId first, ValueId second, int64_t axis = 1);

}  // namespace librt::onnx
