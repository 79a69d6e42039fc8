#include "tools/rttrain/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "tools/data/delimited.h"
#include "tools/data/public_status.h"
#include "tools/rttrain/arrays.h"
#include "tools/rttrain/text.h"

namespace rt::train {
namespace {

using librt::tools::Array;
using librt::tools::DelimitedTable;
using librt::tools::in_quotes;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <class T>
std::optional<T> number(std::string_view text) {
  text = trimmed(text);
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

template <class T>
Array array_of(const std::string& name, librt::DType type, std::vector<int64_t> dims,
               const std::vector<T>& values) {
  Array array{.name = name, .type = type, .dims = std::move(dims), .bytes = {}};
  array.bytes.resize(values.size() * sizeof(T));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

class TableReader {
 public:
  TableReader(std::string path, const DataOptions& options, const std::vector<rt::TensorSpec>& inputs,
              DataFacts& facts)
      : path_(std::move(path)), options_(options), inputs_(inputs), facts_(facts) {}

  rt::Result<SourcePtr> run(char delimiter, int64_t class_count) {
    auto table = librt::tools::read_delimited(
        path_, {.delimiter = delimiter, .header = options_.header, .quotes = delimiter != '\t'});
    if (!table) return as_public(table.status());
    table_ = std::move(*table);
    auto input = only_data_input(inputs_, "tables");
    if (!input) return input.status();
    std::vector<Array> arrays;
    for (auto step : {&TableReader::find_label, &TableReader::choose_columns, &TableReader::drop_missing})
      if (rt::Status status = (this->*step)(*input); !status) return status;
    auto data = reads_text(*input) ? tokens(*input) : features(*input);
    if (!data) return data.status();
    auto labels = read_labels();
    if (!labels) return labels.status();
    arrays.push_back(std::move(*data));
    arrays.push_back(std::move(*labels));
    return source_of(std::move(arrays), path_, inputs_,
                     {class_count, options_.ignored_label, options_.allow_nonfinite}, facts_.classes);
  }

 private:
  static bool reads_text(const rt::TensorSpec& input) { return input.dtype != rt::DType::F32; }

  std::string at(size_t row, size_t column) const {
    return path_ + ": line " + std::to_string(table_.lines[row]) + ", column " +
           in_quotes(table_.names[column]);
  }

  rt::Result<size_t> find(const std::string& column) const {
    if (const auto found = table_.find(column)) return *found;
    std::string names;
    for (const std::string& name : table_.names) names += (names.empty() ? "" : ", ") + name;
    return bad_data(path_ + ": there is no column '" + column + "'; there are " + names);
  }

  rt::Status find_label(const rt::TensorSpec&) {
    if (!options_.label_column.empty()) {
      const auto found = find(options_.label_column);
      if (found) label_ = *found;
      return found.status();
    }
    for (const char* name : {"label", "labels", "target", "class", "y"}) {
      const auto found = std::find(table_.names.begin(), table_.names.end(), name);
      if (found == table_.names.end()) continue;
      label_ = static_cast<size_t>(found - table_.names.begin());
      return {};
    }
    return bad_data(path_ +
                    ": no column is named label, labels, target, class or y; name it with "
                    "--label-column");
  }

  rt::Status choose_columns(const rt::TensorSpec& input) {
    std::vector<std::string> wanted = options_.columns;
    if (reads_text(input) && !options_.text_column.empty()) wanted = {options_.text_column};
    for (const std::string& name : wanted) {
      const auto found = find(name);
      if (!found) return found.status();
      chosen_.push_back(*found);
    }
    for (size_t i = 0; wanted.empty() && i < table_.names.size(); ++i)
      if (i != label_ && (chosen_.empty() || !reads_text(input))) chosen_.push_back(i);
    if (chosen_.empty()) return bad_data(path_ + ": has no column besides the label");
    return {};
  }

  rt::Status drop_missing(const rt::TensorSpec& input) {
    std::vector<size_t> needed = chosen_;
    needed.push_back(label_);
    for (size_t row = 0; row < table_.rows.size(); ++row) {
      const auto empty = std::find_if(needed.begin(), needed.end(), [&](size_t column) {
        return trimmed(table_.rows[row][column]).empty();
      });
      const bool text = empty != needed.end() && reads_text(input) && *empty != label_;  // may be empty
      if (empty == needed.end() || text)
        rows_.push_back(row);
      else if (!options_.skip_missing)
        return bad_data(at(row, *empty) + ": the field is empty; --skip-missing leaves such rows out");
    }
    if (rows_.empty()) return bad_data(path_ + ": no row is complete");
    return {};
  }

  rt::Result<Array> features(const rt::TensorSpec& input) {
    std::vector<double> values;
    values.reserve(rows_.size() * chosen_.size());
    for (size_t row : rows_)
      for (size_t column : chosen_) {
        const auto value = number<double>(table_.rows[row][column]);
        if (!value || !std::isfinite(static_cast<float>(*value)))
          return bad_data(at(row, column) + ": expected a number, found " +
                          in_quotes(table_.rows[row][column]) +
                          "; choose the numeric columns with --columns");
        values.push_back(*value);
      }
    if (options_.standardize) standardize(values);
    std::vector<float> floats(values.begin(), values.end());
    if (facts_.features.empty())
      for (size_t column : chosen_) facts_.features.push_back(table_.names[column]);
    return array_of(input.name, librt::DType::F32,
                    {static_cast<int64_t>(rows_.size()), static_cast<int64_t>(chosen_.size())}, floats);
  }

  // Uses the training data's statistics, which validation data takes from the facts. A constant column stays
  // 0.
  void standardize(std::vector<double>& values) {
    const size_t width = chosen_.size();
    const auto count = static_cast<double>(rows_.size());
    if (facts_.mean.size() != width) {
      facts_.mean.assign(width, 0);
      facts_.deviation.assign(width, 0);
      for (size_t i = 0; i < values.size(); ++i) facts_.mean[i % width] += values[i] / count;
      for (size_t i = 0; i < values.size(); ++i) {
        const double difference = values[i] - facts_.mean[i % width];
        facts_.deviation[i % width] += difference * difference / count;
      }
      for (double& deviation : facts_.deviation) deviation = deviation > 0 ? std::sqrt(deviation) : 1;
    }
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = (values[i] - facts_.mean[i % width]) / facts_.deviation[i % width];
  }

  rt::Result<Array> tokens(const rt::TensorSpec& input) {
    auto length = sequence_length(input, options_);
    if (!length) return length.status();
    auto encoder = Encoder::create(options_.tokenizer);
    if (!encoder) return encoder.status();
    std::vector<int64_t> ids;
    ids.reserve(rows_.size() * static_cast<size_t>(*length));
    for (size_t row : rows_) {
      std::vector<int64_t> sample = encoder->encode(table_.rows[row][chosen_[0]]);
      sample.resize(static_cast<size_t>(*length), options_.padding);
      ids.insert(ids.end(), sample.begin(), sample.end());
    }
    return array_of(input.name, librt::DType::I64, {static_cast<int64_t>(rows_.size()), *length}, ids);
  }

  rt::Result<Array> read_labels() {
    const auto spec = std::find_if(inputs_.begin(), inputs_.end(),
                                   [](const rt::TensorSpec& input) { return is_label_name(input.name); });
    if (spec == inputs_.end()) return bad_data("the model takes no labels");
    const auto rows = static_cast<int64_t>(rows_.size());
    if (spec->dtype == rt::DType::F32) {
      std::vector<float> values;
      for (size_t row : rows_) {
        const auto value = number<double>(table_.rows[row][label_]);
        if (!value || !std::isfinite(static_cast<float>(*value)))
          return bad_data(at(row, label_) + ": expected a number, found " +
                          in_quotes(table_.rows[row][label_]));
        values.push_back(static_cast<float>(*value));
      }
      return array_of(spec->name, librt::DType::F32, {rows, 1}, values);
    }
    std::vector<int64_t> labels;
    const bool numbers = facts_.classes.empty() && std::all_of(rows_.begin(), rows_.end(), [&](size_t row) {
                           const auto value = number<int64_t>(table_.rows[row][label_]);
                           return value && (*value >= 0 || *value == options_.ignored_label);
                         });
    if (!numbers && facts_.classes.empty()) {
      std::set<std::string> names;
      for (size_t row : rows_) names.insert(table_.rows[row][label_]);
      facts_.classes.assign(names.begin(), names.end());
    }
    for (size_t row : rows_) {
      const std::string& field = table_.rows[row][label_];
      if (numbers) {
        labels.push_back(*number<int64_t>(field));
        continue;
      }
      const auto label = class_of(field, facts_.classes);
      if (!label) return bad_data(at(row, label_) + ": " + label.status().message());
      labels.push_back(*label);
    }
    return array_of(spec->name, librt::DType::I64, {rows}, labels);
  }

  const std::string path_;
  const DataOptions& options_;
  const std::vector<rt::TensorSpec>& inputs_;
  DataFacts& facts_;
  DelimitedTable table_;
  size_t label_ = 0;
  std::vector<size_t> chosen_;  ///< columns of the data input
  std::vector<size_t> rows_;    ///< complete rows
};

}  // namespace

rt::Result<int64_t> class_of(const std::string& name, const std::vector<std::string>& classes) {
  const auto found = std::lower_bound(classes.begin(), classes.end(), name);
  if (found != classes.end() && *found == name) return static_cast<int64_t>(found - classes.begin());
  std::string names;
  for (const std::string& known : classes) {
    if (names.size() > 200) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + known;
  }
  return bad_data("class " + in_quotes(name) + " is not among those of the training data: " + names);
}

rt::Result<SourcePtr> open_table(const std::string& path, const DataOptions& options, char delimiter,
                                 const std::vector<rt::TensorSpec>& inputs, int64_t class_count,
                                 DataFacts& facts) {
  return TableReader(path, options, inputs, facts).run(delimiter, class_count);
}

}  // namespace rt::train
