#include "tools/rttrain/arrays.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>

#include "tools/data/compare.h"

namespace rt::train {
namespace {

using librt::tools::Array;

template <class T>
void store(std::byte* target, size_t i, T value) noexcept {
  std::memcpy(target + i * sizeof(T), &value, sizeof(T));
}

/// For inputs without samples.
std::string constant_hint(const std::string& input) {
  return "; what is the same for all samples is made a constant by rtconvert --constant " + input + "=FILE";
}

class ArraySource final : public Source {
 public:
  ArraySource(const ValueRules& rules, bool are_sequences) : rules_(rules), are_sequences_(are_sequences) {}

  size_t size() const noexcept override { return size_; }

  rt::Status read(size_t index, std::span<std::byte* const> targets) const override {
    for (size_t c = 0; c < columns_.size(); ++c) convert(*arrays_[c], columns_[c], index, targets[c]);
    return {};
  }

  librt::tools::Digest digest() const override {
    librt::tools::Digest digest;
    for (size_t c = 0; c < columns_.size(); ++c) {
      digest.add(columns_[c].input);
      digest.add(static_cast<int>(arrays_[c]->type));
      digest.add(std::span<const std::byte>(arrays_[c]->bytes));
    }
    return digest;
  }

  rt::Status add(std::shared_ptr<const Array> shared, Column column, const std::string& where) {
    const Array& array = *shared;
    const auto rows = static_cast<size_t>(array.dims[0]);
    if (!columns_.empty() && rows != size_)
      return bad_data(where + ": array '" + array.name + "': expected " + std::to_string(size_) +
                      " samples as in the other arrays, found " + std::to_string(rows) +
                      (column.is_label ? "" : constant_hint(column.input)));
    size_ = rows;
    if (rt::Status status = check(array, column, where); !status) return status;
    arrays_.push_back(std::move(shared));
    columns_.push_back(std::move(column));
    return {};
  }

  // Labels of sequences, as far as label_lengths says; what comes after that is padding.
  rt::Status check_sequences(const std::string& where) const {
    const auto labels = index_of("labels"), lengths = index_of("label_lengths");
    if (!labels || !lengths) return {};
    const size_t most = columns_[*labels].elements();
    for (size_t i = 0; i < size_; ++i) {
      const std::string at = where + ": array '" + arrays_[*labels]->name + "', sample " + std::to_string(i);
      const double count = librt::tools::element_of(*arrays_[*lengths], i);
      if (count < 0 || count > static_cast<double>(most))
        return bad_data(at + ": expected a length from 0 to " + std::to_string(most) + ", found " +
                        std::to_string(static_cast<int64_t>(count)));
      for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
        const auto label = static_cast<int64_t>(librt::tools::element_of(*arrays_[*labels], i * most + k));
        if (const std::string problem = label_problem(label, rules_.class_count, {}); !problem.empty())
          return bad_data(at + ", position " + std::to_string(k) + ": " + problem);
      }
    }
    return {};
  }

  void set_classes(std::vector<std::string> classes) { classes_ = std::move(classes); }

 private:
  // Checks that give clearer errors here than while reading: values outside the input type's range, labels
  // out of range.
  rt::Status check(const Array& array, const Column& column, const std::string& where) const {
    const bool integers = column.dtype == rt::DType::I64 || column.dtype == rt::DType::I32;
    if (column.dtype != rt::DType::F32 && !integers &&
        static_cast<int>(array.type) != static_cast<int>(column.dtype))
      return {rt::Code::Unsupported, where + ": input '" + column.input + "' has type " +
                                         std::string(rt::name_of(column.dtype)) + ", array '" + array.name +
                                         "' " + std::string(librt::name_of(array.type)) +
                                         "; convert the data"};
    if (!integers) return rules_.allow_nonfinite ? rt::Status() : check_finite(array, column, where);
    const size_t elements = column.elements();
    const size_t count = static_cast<size_t>(array.dims[0]) * elements;
    const auto at = [&](size_t i) {
      return where + ": array '" + array.name + "', sample " + std::to_string(i / elements) + ": ";
    };
    for (size_t i = 0; i < count; ++i) {
      const double value = librt::tools::element_of(array, i);
      if (!std::isfinite(value) || value != std::floor(value))
        return bad_data(at(i) + "expected a whole number for input '" + column.input + "', found " +
                        std::to_string(value));
      if (!column.is_label || are_sequences_) continue;
      const std::string problem =
          label_problem(static_cast<int64_t>(value), rules_.class_count, rules_.ignored_label);
      if (!problem.empty()) return bad_data(at(i) + problem);
    }
    return {};
  }

  static rt::Status check_finite(const Array& array, const Column& column, const std::string& where) {
    const size_t elements = column.elements();
    const auto place = librt::tools::first_nonfinite(array.type, array.bytes.data(),
                                                     static_cast<size_t>(array.dims[0]) * elements);
    if (!place) return {};
    return bad_data(where + ": array '" + array.name + "', sample " + std::to_string(*place / elements) +
                    ", element " + std::to_string(*place % elements) + ": expected a finite number, found " +
                    std::to_string(librt::tools::element_of(array, *place)) +
                    "; correct the data, or go on with --allow-nonfinite");
  }

  static void convert(const Array& array, const Column& column, size_t index, std::byte* target) noexcept {
    const size_t count = column.elements();
    const size_t first = index * count;
    if (static_cast<int>(array.type) == static_cast<int>(column.dtype)) {
      std::memcpy(target, array.bytes.data() + first * librt::size_of(array.type), column.bytes);
      return;
    }
    if (column.dtype == rt::DType::F32 && array.type == librt::DType::U8) {  // images
      const std::byte* bytes = array.bytes.data() + first;
      for (size_t i = 0; i < count; ++i)
        store(target, i, static_cast<float>(std::to_integer<unsigned>(bytes[i])));
      return;
    }
    for (size_t i = 0; i < count; ++i) {
      const double value = librt::tools::element_of(array, first + i);
      if (column.dtype == rt::DType::F32)
        store(target, i, static_cast<float>(value));
      else if (column.dtype == rt::DType::I64)
        store(target, i, static_cast<int64_t>(value));
      else
        store(target, i, static_cast<int32_t>(value));
    }
  }

  std::optional<size_t> index_of(std::string_view input) const {
    for (size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].input == input) return c;
    return std::nullopt;
  }

  size_t size_ = 0;
  const ValueRules rules_;
  const bool are_sequences_;                          ///< labels have lengths, and padding after them
  std::vector<std::shared_ptr<const Array>> arrays_;  ///< one per column; columns may share one
};

using SharedArray = std::shared_ptr<const Array>;

SharedArray find_array(const std::vector<SharedArray>& arrays, const std::string& input) {
  for (const SharedArray& array : arrays)
    if (array->name == input) return array;
  static constexpr std::array<std::string_view, 6> kData = {"inputs", "input", "x",
                                                            "images", "data",  "features"};
  static constexpr std::array<std::string_view, 6> kLabels = {"labels",  "label",  "y",
                                                              "targets", "target", "classes"};
  for (std::string_view name : is_label_name(input) ? kLabels : kData)
    for (const SharedArray& array : arrays)
      if (array->name == name) return array;
  return nullptr;
}

}  // namespace

std::string label_problem(int64_t label, int64_t class_count, const std::optional<int64_t>& ignored) {
  if (label == ignored || (label >= 0 && (class_count == 0 || label < class_count))) return {};
  std::string out = "label " + std::to_string(label);
  out += class_count > 0 ? ", the model has " + std::to_string(class_count) + " classes"
                         : ", expected a class, counted from 0";
  if (label < 0)
    out += "; to leave such samples out of the loss, compile with rtconvert --train --ignore-index " +
           std::to_string(label);
  return out;
}

rt::Result<Column> column_for(const rt::TensorSpec& input, const std::vector<int64_t>& dims) {
  if (input.dims.empty())
    return bad_data("input '" + input.name +
                    "' is a scalar; data is fed to inputs whose first axis counts samples" +
                    constant_hint(input.name));
  Column column{.input = input.name, .dtype = input.dtype, .is_label = is_label_name(input.name)};
  size_t elements = 1;
  for (size_t axis = 1; axis < input.dims.size(); ++axis) {
    int64_t extent = input.dims[axis].extent;
    if (extent < 0 && axis < dims.size()) extent = dims[axis];
    if (extent == 0)
      return bad_data("input '" + input.name + "': axis " + std::to_string(axis) +
                      " is empty; there is nothing to train on");
    if (extent < 0)
      return bad_data("input '" + input.name + "': the data does not say how long axis " +
                      std::to_string(axis) + " is; fix it with rtconvert --dim");
    column.dims.push_back(extent);
    elements *= static_cast<size_t>(extent);
  }
  column.bytes = elements * rt::size_of(input.dtype);
  return column;
}

rt::Result<rt::TensorSpec> only_data_input(const std::vector<rt::TensorSpec>& inputs, const char* kind) {
  std::vector<rt::TensorSpec> data;
  std::string names;
  for (const rt::TensorSpec& input : inputs) {
    if (is_label_name(input.name)) continue;
    data.push_back(input);
    names += (names.empty() ? "" : ", ") + input.name;
  }
  if (data.size() == 1) return data[0];
  return bad_data(std::string(kind) + " feed one input, the model has " + std::to_string(data.size()) + ": " +
                  names + "; give a .npz with one array for each");
}

rt::Result<SourcePtr> source_of(std::vector<librt::tools::Array> arrays, const std::string& where,
                                const std::vector<rt::TensorSpec>& inputs, const ValueRules& rules,
                                std::vector<std::string> classes) {
  auto source = std::make_unique<ArraySource>(
      rules, std::any_of(inputs.begin(), inputs.end(),
                         [](const rt::TensorSpec& input) { return input.name == "label_lengths"; }));
  std::vector<SharedArray> shared;
  for (Array& array : arrays) shared.push_back(std::make_shared<const Array>(std::move(array)));
  for (const rt::TensorSpec& input : inputs) {
    const SharedArray array = find_array(shared, input.name);
    if (array == nullptr) {
      std::string names;
      for (const SharedArray& other : shared) names += (names.empty() ? "" : ", ") + other->name;
      return bad_data(where + ": no array for input '" + input.name + "'; name one '" + input.name +
                      "'; there are: " + names);
    }
    auto column = column_for(input, array->dims);
    if (!column) return bad_data(where + ": " + column.status().message());
    const size_t elements = array->bytes.size() / librt::size_of(array->type);
    if (array->dims.empty() || array->dims[0] <= 0 ||
        elements != static_cast<size_t>(array->dims[0]) * column->elements())
      return bad_data(where + ": array '" + array->name + "' is " + shape_text(array->dims) + ", input '" +
                      input.name + "' expects samples of " + shape_text(column->dims));
    if (rt::Status status = source->add(array, std::move(*column), where); !status) return status;
  }
  if (rt::Status status = source->check_sequences(where); !status) return status;
  source->set_classes(std::move(classes));
  return SourcePtr(std::move(source));
}

}  // namespace rt::train
