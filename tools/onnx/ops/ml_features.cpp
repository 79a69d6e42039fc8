// Preprocessing of features and output of labels (ai.onnx.ml): scalers, encoders, selections.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "runtime/core/element.h"
#include "tools/onnx/ml.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// One value for all features or one for each, as an operand that broadcasts to x.
Result<ValueId> per_feature(NodeContext& c, std::string_view name, std::span<const double> numbers,
                            DType dtype) {
  const int64_t features = c.rank() > 0 ? c.extent(0, c.rank() - 1) : 1;
  const auto count = static_cast<int64_t>(numbers.size());
  if (count == 1) return c.emit.scalar(numbers[0], dtype);
  if (c.rank() == 0 || count == 0 || (features >= 0 && features != count))
    return invalid_model(name, ": expected one entry, or one for each of the ", features, " features, found ",
                         count);
  return constant_reals(c.emit, dtype, numbers, {count});
}

std::vector<double> as_reals(const std::vector<float>& numbers) {
  return {numbers.begin(), numbers.end()};
}

Status ml_scaler(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const std::vector<double> offset = as_reals(c.reals("offset")), scale = as_reals(c.reals("scale"));
  const DType dtype = c.dtype() == DType::F64 ? DType::F64 : DType::F32;
  ValueId x = as_type(c.emit, c.input(0), dtype);
  if (!offset.empty()) {
    RT_ASSIGN(const ValueId by, per_feature(c, "offset", offset, dtype));
    x = c.emit.sub(x, by);
  }
  if (!scale.empty()) {
    RT_ASSIGN(const ValueId by, per_feature(c, "scale", scale, dtype));
    x = c.emit.mul(x, by);
  }
  return c.result(as_type(c.emit, x, DType::F32));
}

// L1 and L2 are norms, of magnitudes; MAX divides by the largest value, as in ONNX's text and ONNX Runtime.
Status ml_normalizer(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const std::string norm = c.string("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return invalid_model("norm: expected MAX, L1 or L2, found ", norm);
  if (c.rank() != 1 && c.rank() != 2)
    return invalid_model("expected rows of features [N,F], found a tensor of rank ", c.rank());
  const ValueId x = as_type(c.emit, c.input(0), DType::F32);
  const int64_t axis = c.rank() - 1;
  ValueId by = kNoValue;
  if (norm == "MAX") {
    op::ReduceMaxAttributes reduce;
    reduce.axes = {axis};
    by = c.emit.emit(std::move(reduce), {x});
  } else if (norm == "L1") {
    by = c.emit.reduce_sum(c.emit.emit(op::AbsAttributes{}, {x}), {axis});
  } else {
    by = c.emit.emit(op::SqrtAttributes{}, {c.emit.reduce_sum(c.emit.mul(x, x), {axis})});
  }
  const ValueId zero = c.emit.emit(op::EqualAttributes{}, {by, c.emit.scalar_like(0, by)});
  by = c.emit.emit(op::WhereAttributes{}, {zero, c.emit.scalar_like(1, by), by});
  return c.result(c.emit.div(x, by));
}

Status ml_imputer(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const DType dtype = c.dtype();
  const ValueId x = c.input(0);
  const std::vector<double> reals = as_reals(c.reals("imputed_value_floats"));
  const std::vector<int64_t> integers = c.integers("imputed_value_int64s");
  const float replaced_real = c.real("replaced_value_float", 0);
  const int64_t replaced_integer = c.integer("replaced_value_int64", 0);
  if (!is_float(dtype)) {
    const auto count = static_cast<int64_t>(integers.size());
    const int64_t features = c.rank() > 0 ? c.extent(0, c.rank() - 1) : 1;
    if (count == 0 || (count > 1 && features >= 0 && features != count))
      return invalid_model("imputed_value_int64s: expected one entry, or one for each feature, found ",
                           count);
    const auto of_type = [&](std::vector<int64_t> numbers) {
      return as_type(c.emit, c.emit.ints(numbers), dtype);
    };
    const ValueId found = c.emit.emit(op::EqualAttributes{}, {x, of_type({replaced_integer})});
    return c.result(c.emit.emit(op::WhereAttributes{}, {found, of_type(integers), x}));
  }
  RT_ASSIGN(const ValueId with, per_feature(c, "imputed_value_floats", reals, dtype));
  const ValueId found = std::isnan(replaced_real)
                            ? c.emit.emit(op::NotAttributes{}, {c.emit.emit(op::EqualAttributes{}, {x, x})})
                            : c.emit.emit(op::EqualAttributes{}, {x, c.emit.scalar(replaced_real, dtype)});
  return c.result(c.emit.emit(op::WhereAttributes{}, {found, with, x}));
}

Status ml_binarizer(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const ValueId x = c.input(0);
  const float threshold = c.real("threshold", 0);
  // x > t of integers is x > floor(t).
  const double limit = is_float(c.dtype()) ? threshold : std::floor(threshold);
  const ValueId above = c.emit.emit(op::GreaterAttributes{}, {x, c.emit.scalar_like(limit, x)});
  return c.result(c.emit.cast(above, c.dtype()));
}

Status ml_array_feature_extractor(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  if (c.rank() < 1) return invalid_model("a scalar has no features");
  op::GatherAttributes attributes;
  attributes.axis = c.rank() - 1;
  ValueId y = c.emit.emit(attributes, {c.input(0), as_vector(c.emit, c.input(1))});
  if (c.rank() == 1) y = unsqueeze(c.emit, y, {{0}});
  if (const StringList list = c.strings(0)) c.set_strings(y, list);
  return c.result(y);
}

Status ml_one_hot_encoder(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  std::vector<int64_t> categories = c.integers("cats_int64s");
  const std::vector<std::string> names = c.texts("cats_strings");
  if (categories.empty() == names.empty())
    return invalid_model("expected one of cats_int64s and cats_strings");
  const StringList list = c.strings(0);
  if ((list == nullptr) != names.empty())
    return invalid_model("expected cats_strings for strings and cats_int64s for numbers");
  for (const std::string& name : names) {
    const auto found = std::find(list->begin(), list->end(), name);
    categories.push_back(found == list->end() ? -1 : found - list->begin());
  }
  if (c.integer("zeros", 1) == 0)
    c.warn(
        "OneHotEncoder: a category that is not in the list gives zeros, where the model asks for an error");
  const int axis = c.rank();
  const ValueId x = unsqueeze(c.emit, as_type(c.emit, c.input(0), DType::I64), {&axis, 1});
  const ValueId same = c.emit.emit(op::EqualAttributes{}, {x, c.emit.ints(categories)});
  return c.result(c.emit.cast(same, DType::F32));
}

Status ml_feature_vectorizer(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, std::numeric_limits<size_t>::max()));
  const std::vector<int64_t> extents = c.integers("inputdimensions");
  if (!extents.empty() && extents.size() != c.inputs.size())
    return invalid_model("inputdimensions: expected ", c.inputs.size(), " entries, found ", extents.size());
  std::vector<ValueId> parts;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const int rank = c.rank(i);
    if (rank != 1 && rank != 2) return invalid_model("input ", i, ": expected [N,F], found rank ", rank);
    const int64_t features = c.extent(i, rank - 1);
    if (!extents.empty() && features >= 0 && features != extents[i])
      return invalid_model("inputdimensions: expected ", features, " for input ", i, ", found ", extents[i]);
    const ValueId x = as_type(c.emit, c.input(i), DType::F32);
    parts.push_back(rank == 2 ? x : unsqueeze(c.emit, x, {{0}}));
  }
  return c.result(parts.size() == 1 ? parts[0] : concat(c.emit, parts, 1));
}

Status ml_zip_map(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const ClassLabels labels, class_labels(c, "classlabels_int64s"));
  RT_ASSIGN(const ValueId rows, feature_rows(c, std::nullopt));
  RT_TRY(expect_features(c, rows, labels.count()));
  const std::string& name = c.node.output(0);
  const std::string key = "classes." + name;
  c.add_metadata(key, labels.strings != nullptr ? json_list(*labels.strings) : json_list(labels.numbers));
  c.warn(text("'", name, "': the maps are returned as one tensor [N,", labels.count(),
              "]; the columns' classes are in the file's metadata, key ", key));
  return c.result(c.emit.emit(op::IdentityAttributes{}, {rows}));
}

// --- LabelEncoder

/// Values of one type, in the file's order.
struct Column {
  DType dtype = DType::I64;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  bool given = false;
  size_t size() const { return is_float(dtype) ? reals.size() : integers.size(); }
  double real(size_t i) const { return is_float(dtype) ? reals[i] : static_cast<double>(integers[i]); }
};

ValueId constant_column(Emitter& emit, const Column& column, Shape shape) {
  if (is_float(column.dtype)) return constant_reals(emit, column.dtype, column.reals, shape);
  const TensorInfo info{.dtype = column.dtype, .shape = shape};
  std::vector<std::byte> bytes(info.bytes());
  for (size_t i = 0; i < column.integers.size(); ++i)
    store_integer(bytes.data(), column.dtype, static_cast<int64_t>(i), column.integers[i]);
  return emit.constant(info, Blob::own(std::move(bytes)));
}

Status fill(NodeContext& c, const rt_onnx::TensorProto& proto, Column& column) {
  RT_ASSIGN(const ValueId id, c.constant_of(proto));
  const auto known = c.emit.known_value(id);
  if (!known) return invalid_model("expected a list of numbers");
  column.dtype = known->info.dtype;
  column.given = true;
  for (int64_t i = 0; i < known->info.elements(); ++i) {
    if (is_float(column.dtype))
      column.reals.push_back(load_element(known->data, column.dtype, i));
    else
      column.integers.push_back(load_integer(known->data, column.dtype, i));
  }
  return {};
}

Result<Column> column_of(NodeContext& c, const std::string& prefix) {
  Column column;
  if (const auto* proto = c.tensor(prefix + "_tensor"); proto != nullptr && proto->data_type() != 8) {
    RT_TRY(fill(c, *proto, column));
    return column;
  }
  const std::vector<float> reals = c.reals(prefix + "_floats");
  column.integers = c.integers(prefix + "_int64s");
  column.given = !reals.empty() || !column.integers.empty();
  if (reals.empty()) return column;
  column.dtype = DType::F32;
  column.integers.clear();
  column.reals.assign(reals.begin(), reals.end());
  return column;
}

std::vector<std::string> strings_of(NodeContext& c, const std::string& prefix) {
  if (const auto* proto = c.tensor(prefix + "_tensor"); proto != nullptr && proto->data_type() == 8)
    return {proto->string_data().begin(), proto->string_data().end()};
  return c.texts(prefix + "_strings");
}

/// What keys are mapped to: values, or indices into a list of strings.
struct Targets {
  Column values;     ///< by key
  Column otherwise;  ///< one entry
  StringList strings;
};

Result<Targets> encoder_targets(NodeContext& c) {
  Targets targets;
  const std::vector<std::string> names = strings_of(c, "values");
  RT_ASSIGN(targets.values, column_of(c, "values"));
  const auto* fallback = c.tensor("default_tensor");
  const std::string default_name = c.string("default_string", "_Unused");
  const int64_t default_integer = c.integer("default_int64", -1);
  const float default_real = c.real("default_float", -0.0F);
  if (names.empty() == !targets.values.given) return invalid_model("expected one list of values");
  if (!names.empty()) {
    auto list = std::make_shared<std::vector<std::string>>(names);
    list->push_back(fallback != nullptr && fallback->string_data_size() == 1 ? fallback->string_data(0)
                                                                             : default_name);
    targets.values.integers.resize(names.size());
    std::iota(targets.values.integers.begin(), targets.values.integers.end(), int64_t{0});
    targets.otherwise.integers = {static_cast<int64_t>(names.size())};
    targets.strings = std::move(list);
    return targets;
  }
  targets.otherwise.dtype = targets.values.dtype;
  if (fallback != nullptr) {
    RT_TRY(fill(c, *fallback, targets.otherwise));
    if (targets.otherwise.dtype != targets.values.dtype || targets.otherwise.size() != 1)
      return invalid_model("default_tensor: expected one element of the values' type");
  } else {
    targets.otherwise.integers = {default_integer};
    targets.otherwise.reals = {default_real};
  }
  return targets;
}

ValueId encoded(NodeContext& c, ValueId y, const Targets& targets) {
  if (targets.strings != nullptr) c.set_strings(y, targets.strings);
  return y;
}

// String keys: maps each string of the input's list.
Result<ValueId> encode_strings(NodeContext& c, const std::vector<std::string>& keys, const Targets& targets) {
  const StringList list = c.strings(0);
  if (list == nullptr) return invalid_model("keys are strings, the input has numbers");
  std::map<std::string_view, size_t> key_positions;
  for (size_t i = 0; i < keys.size(); ++i) key_positions[keys[i]] = i;  // the last of equal keys
  Column table;
  table.dtype = targets.values.dtype;
  for (const std::string& name : *list) {
    const auto found = key_positions.find(name);
    const Column& from = found != key_positions.end() ? targets.values : targets.otherwise;
    const size_t at = found != key_positions.end() ? found->second : 0;
    if (is_float(table.dtype))
      table.reals.push_back(from.reals[at]);
    else
      table.integers.push_back(from.integers[at]);
  }
  const ValueId values = constant_column(c.emit, table, {static_cast<int64_t>(table.size())});
  return encoded(c, c.emit.emit(op::GatherAttributes{}, {values, c.input(0)}), targets);
}

/// Positions of the keys in ascending order, the last of equal ones; `nan`: that of a NaN key, or -1.
std::vector<size_t> sorted_keys(const Column& keys, int64_t& nan) {
  std::vector<size_t> order;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (is_float(keys.dtype) && std::isnan(keys.reals[i]))
      nan = static_cast<int64_t>(i);
    else
      order.push_back(i);
  }
  const auto less = [&](size_t a, size_t b) {
    return is_float(keys.dtype) ? keys.reals[a] < keys.reals[b] : keys.integers[a] < keys.integers[b];
  };
  std::stable_sort(order.begin(), order.end(), less);
  std::vector<size_t> unique;
  for (size_t i : order) {
    if (!unique.empty() && !less(unique.back(), i)) unique.pop_back();
    unique.push_back(i);
  }
  return unique;
}

Column picked(const Column& column, std::span<const size_t> order) {
  Column result;
  result.dtype = column.dtype;
  for (size_t i : order) {
    if (is_float(column.dtype))
      result.reals.push_back(column.reals[i]);
    else
      result.integers.push_back(column.integers[i]);
  }
  return result;
}

// Binary search: the last key that is not above x, in a table padded to a power of two by repeating the last
// key.
ValueId position_of(Emitter& emit, ValueId x, ValueId table, size_t count) {
  ValueId position = kNoValue;
  const auto gather = [&](ValueId at) { return emit.emit(op::GatherAttributes{}, {table, at}); };
  for (size_t step = count / 2; step > 0; step /= 2) {
    const ValueId ahead = emit.scalar(static_cast<double>(step), DType::I64);
    const ValueId zero = emit.scalar(0, DType::I64);
    const ValueId next = position == kNoValue ? ahead : emit.add(position, ahead);
    const ValueId beyond = emit.emit(op::GreaterOrEqualAttributes{}, {x, gather(next)});
    position = emit.emit(op::WhereAttributes{}, {beyond, next, position == kNoValue ? zero : position});
  }
  return position;
}

ValueId encode_numeric(NodeContext& c, const Column& keys, const Targets& targets) {
  Emitter& emit = c.emit;
  const ValueId x = c.input(0);
  int64_t nan = -1;
  std::vector<size_t> order = sorted_keys(keys, nan);
  ValueId y = constant_column(emit, targets.otherwise, {});
  if (!order.empty()) {
    order.resize(std::bit_ceil(std::max<size_t>(order.size(), 2)), order.back());
    const auto count = static_cast<int64_t>(order.size());
    const ValueId table = constant_column(emit, picked(keys, order), {count});
    const ValueId values = constant_column(emit, picked(targets.values, order), {count});
    const ValueId position = position_of(emit, x, table, order.size());
    const ValueId key = emit.emit(op::GatherAttributes{}, {table, position});
    const ValueId value = emit.emit(op::GatherAttributes{}, {values, position});
    y = emit.emit(op::WhereAttributes{}, {emit.emit(op::EqualAttributes{}, {key, x}), value, y});
  }
  if (nan >= 0) {
    const size_t at[] = {static_cast<size_t>(nan)};
    const ValueId number = emit.emit(op::EqualAttributes{}, {x, x});
    y = emit.emit(op::WhereAttributes{}, {number, y, constant_column(emit, picked(targets.values, at), {})});
  }
  return encoded(c, y, targets);
}

Status ml_label_encoder(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const std::vector<std::string> names = strings_of(c, "keys");
  RT_ASSIGN(const Column keys, column_of(c, "keys"));
  RT_ASSIGN(const Targets targets, encoder_targets(c));
  if (names.empty() == !keys.given) return invalid_model("expected one list of keys");
  const size_t count = names.empty() ? keys.size() : names.size();
  if (count != targets.values.size())
    return invalid_model("expected as many values as keys, found ", targets.values.size(), " and ", count);
  if (!names.empty()) {
    RT_ASSIGN(const ValueId y, encode_strings(c, names, targets));
    return c.result(y);
  }
  if (keys.dtype != c.dtype())
    return invalid_model("keys are ", name_of(keys.dtype), ", the input is ", name_of(c.dtype()));
  return c.result(encode_numeric(c, keys, targets));
}

// Version 1: a list of strings, indexed by integers or searched for strings.
Status ml_label_encoder_list(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const std::vector<std::string> classes = c.texts("classes_strings");
  const std::string default_name = c.string("default_string", "_Unused");
  const int64_t default_integer = c.integer("default_int64", -1);
  if (classes.empty()) return invalid_model("classes_strings: expected at least one, found none");
  Targets targets;
  Column positions;
  positions.integers.resize(classes.size());
  std::iota(positions.integers.begin(), positions.integers.end(), int64_t{0});
  targets.values = positions;
  if (c.strings(0) != nullptr) {
    targets.otherwise.integers = {default_integer};
    RT_ASSIGN(const ValueId y, encode_strings(c, classes, targets));
    return c.result(y);
  }
  auto list = std::make_shared<std::vector<std::string>>(classes);
  list->push_back(default_name);
  targets.strings = std::move(list);
  targets.otherwise.integers = {static_cast<int64_t>(classes.size())};
  if (c.dtype() != DType::I64) return invalid_model("expected strings or i64, found ", name_of(c.dtype()));
  return c.result(encode_numeric(c, positions, targets));
}

constexpr ImportRow kFeatureRows[] = {
    {"ai.onnx.ml", "Scaler", 1, kNewestOpset, ml_scaler},
    {"ai.onnx.ml", "Normalizer", 1, kNewestOpset, ml_normalizer},
    {"ai.onnx.ml", "Imputer", 1, kNewestOpset, ml_imputer},
    {"ai.onnx.ml", "Binarizer", 1, kNewestOpset, ml_binarizer},
    {"ai.onnx.ml", "ArrayFeatureExtractor", 1, kNewestOpset, ml_array_feature_extractor},
    {"ai.onnx.ml", "OneHotEncoder", 1, kNewestOpset, ml_one_hot_encoder},
    {"ai.onnx.ml", "FeatureVectorizer", 1, kNewestOpset, ml_feature_vectorizer},
    {"ai.onnx.ml", "ZipMap", 1, kNewestOpset, ml_zip_map},
    {"ai.onnx.ml", "LabelEncoder", 1, 1, ml_label_encoder_list},
    {"ai.onnx.ml", "LabelEncoder", 2, kNewestOpset, ml_label_encoder},
};

}  // namespace

std::span<const ImportRow> rows_ml_features() {
  return kFeatureRows;
}

}  // namespace librt::onnx
