// Einsum, as diagonals, sums, matmuls and elementwise products.
//
// Every axis has a label: a letter's code, or for the axes of an ellipsis an index counted from the last one,
// which is how they broadcast. Operands are contracted from left to right; a label that only the two current
// operands have, and not the result, is summed by a matmul.
#include <algorithm>

#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

using Labels = std::vector<int>;
constexpr int kEllipsis = 256;  ///< the label of an ellipsis' last axis; the one before it is kEllipsis + 1

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::string name_of_label(int label) {
  return label >= kEllipsis ? std::string("of the ellipsis") : std::string(1, static_cast<char>(label));
}

struct Operand {
  ValueId value = kNoValue;
  Labels labels;
};

/// One term of an equation with `ellipsis` axes for the dots.
Result<Labels> parse_term(std::string_view term, int ellipsis, std::string_view equation) {
  Labels labels;
  bool dots = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const auto letter = static_cast<unsigned char>(term[i]);
    if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) {
      labels.push_back(letter);
    } else if (!dots && term.substr(i, 3) == "...") {
      dots = true;
      i += 2;
      for (int k = ellipsis - 1; k >= 0; --k) labels.push_back(kEllipsis + k);
    } else {
      return invalid_model("equation '", std::string(equation),
                           "': expected letters and at most one ellipsis in each term, found '",
                           std::string(term), "'");
    }
  }
  return labels;
}

struct Equation {
  std::vector<Labels> terms;
  Labels result;
};

/// Without "->": the ellipsis, then the letters that occur once, in the order of their codes.
Labels implicit_result(const std::vector<Labels>& terms, int ellipsis) {
  Labels result;
  for (int k = ellipsis - 1; k >= 0; --k) result.push_back(kEllipsis + k);
  for (int letter = 'A'; letter <= 'z'; ++letter) {
    ptrdiff_t count = 0;
    for (const Labels& term : terms) count += std::count(term.begin(), term.end(), letter);
    if (count == 1) result.push_back(letter);
  }
  return result;
}

Status check_result(const Equation& equation, std::string_view text) {
  for (size_t i = 0; i < equation.result.size(); ++i) {
    const int label = equation.result[i];
    const bool known = std::any_of(equation.terms.begin(), equation.terms.end(),
                                   [&](const Labels& term) { return contains(term, label); });
    const bool twice = std::count(equation.result.begin(), equation.result.end(), label) > 1;
    if (!known || twice)
      return invalid_model("equation '", std::string(text), "': expected each label of the result once and ",
                           "in an operand, found ", name_of_label(label));
  }
  return {};
}

Result<Equation> parse(const NodeContext& c, std::string text) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  const std::string_view all(text);
  std::vector<std::string_view> terms;
  for (std::string_view left = all.substr(0, arrow);;) {
    const size_t comma = left.find(',');
    terms.push_back(left.substr(0, comma));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (terms.size() != c.inputs.size())
    return invalid_model("equation '", text, "': expected ", c.inputs.size(), " terms, one an input, found ",
                         terms.size());
  Equation equation;
  int widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto letters = std::count_if(terms[i].begin(), terms[i].end(), [](char x) { return x != '.'; });
    const bool dots = terms[i].find('.') != std::string_view::npos;
    const int ellipsis = dots ? c.rank(i) - static_cast<int>(letters) : 0;
    if (ellipsis < 0 || (!dots && letters != c.rank(i)))
      return invalid_model("equation '", text, "': term '", std::string(terms[i]), "' has ", letters,
                           " letters, input ", i, " has rank ", c.rank(i));
    RT_ASSIGN(Labels labels, parse_term(terms[i], ellipsis, text));
    equation.terms.push_back(std::move(labels));
    widest = std::max(widest, ellipsis);
  }
  if (arrow == std::string::npos) {
    equation.result = implicit_result(equation.terms, widest);
  } else {
    RT_ASSIGN(equation.result, parse_term(all.substr(arrow + 2), widest, text));
  }
  RT_TRY(check_result(equation, text));
  return equation;
}

class Contraction {
 public:
  Contraction(NodeContext& c, Equation equation) : c_(c), emit_(c.emit), equation_(std::move(equation)) {}

  Result<ValueId> run() {
    for (size_t i = 0; i < c_.inputs.size(); ++i) operands_.push_back({c_.input(i), equation_.terms[i]});
    for (Operand& operand : operands_) RT_TRY(take_diagonals(operand));
    RT_TRY(drop_repeated_ones());
    for (size_t i = 0; i < operands_.size(); ++i) {
      Labels single;
      for (int label : operands_[i].labels)
        if (!needed_besides(label, i, i)) single.push_back(label);
      sum(operands_[i], single);
    }
    Operand total = operands_[0];
    for (size_t i = 1; i < operands_.size(); ++i) total = concat_values(total, operands_[i], i);
    return arranged(total, equation_.result);
  }

 private:
  static int axis_of(const Operand& operand, int label) {
    return static_cast<int>(std::find(operand.labels.begin(), operand.labels.end(), label) -
                            operand.labels.begin());
  }
  int64_t extent_of(const Operand& operand, int label) const {
    return emit_.value(operand.value).dims[static_cast<size_t>(axis_of(operand, label))].extent;
  }

  /// Whether the result or an operand outside [first, last] has the label.
  bool needed_besides(int label, size_t first, size_t last) const {
    if (contains(equation_.result, label)) return true;
    for (size_t i = 0; i < operands_.size(); ++i)
      if ((i < first || i > last) && contains(operands_[i].labels, label)) return true;
    return false;
  }

  /// Zeroes x except where two axes with one label agree, then sums over the second: the diagonal.
  Status take_diagonals(Operand& operand) {
    for (size_t i = 0; i < operand.labels.size(); ++i)
      for (size_t j = operand.labels.size() - 1; j > i; --j) {
        if (operand.labels[i] != operand.labels[j] || operand.value == kNoValue) continue;
        const auto& dims = emit_.value(operand.value).dims;
        if (dims[i].is_known() && dims[j].is_known() && dims[i].extent != dims[j].extent)
          return disagree(operand.labels[i], dims[i].extent, dims[j].extent);
        const auto counted = [&](size_t axis) {
          const auto place = static_cast<int>(axis);
          const ValueId limit = reshape_to(emit_, dims_product(emit_, operand.value, place, place + 1), {});
          const ValueId range = emit_.emit(op::RangeAttributes{},
                                           {emit_.scalar(0, DType::I64), limit, emit_.scalar(1, DType::I64)});
          std::vector<int64_t> shape(operand.labels.size() - axis, 1);
          shape[0] = -1;
          return emit_.reshape(range, emit_.ints(shape));
        };
        const ValueId same = emit_.emit(op::EqualAttributes{}, {counted(i), counted(j)});
        const ValueId kept =
            emit_.emit(op::WhereAttributes{}, {same, operand.value, emit_.scalar_like(0, operand.value)});
        operand.value = emit_.reduce_sum(kept, {static_cast<int64_t>(j)}, false);
        operand.labels.erase(operand.labels.begin() + static_cast<ptrdiff_t>(j));
      }
    return {};
  }

  static Status disagree(int label, int64_t one, int64_t other) {
    return invalid_model("the extents along ", name_of_label(label), " disagree: ", one, " and ", other);
  }

  /// An extent of 1 broadcasts: it is squeezed where another operand has more along the label. Other extents
  /// that disagree are an error.
  Status drop_repeated_ones() {
    Labels all;
    for (const Operand& operand : operands_)
      for (int label : operand.labels)
        if (!contains(all, label)) all.push_back(label);
    for (int label : all) {
      int64_t extent = 1;
      bool larger = false;
      for (const Operand& operand : operands_) {
        if (!contains(operand.labels, label)) continue;
        const int64_t own = extent_of(operand, label);
        larger = larger || own != 1;
        if (own < 0 || own == 1) continue;
        if (extent != 1 && extent != own) return disagree(label, extent, own);
        extent = own;
      }
      for (Operand& operand : operands_) {
        if (!larger || !contains(operand.labels, label) || extent_of(operand, label) != 1) continue;
        const int axis = axis_of(operand, label);
        operand.value = squeeze(emit_, operand.value, {{axis}});
        operand.labels.erase(operand.labels.begin() + axis);
      }
    }
    return {};
  }

  void sum(Operand& operand, const Labels& over) {
    if (over.empty()) return;
    std::vector<int64_t> axes;
    for (int label : over) axes.push_back(axis_of(operand, label));
    operand.value = emit_.reduce_sum(operand.value, axes, false);
    std::erase_if(operand.labels, [&](int label) { return contains(over, label); });
  }

  /// The operand's axes in the order of `labels`, which are all of them.
  ValueId arranged(const Operand& operand, const Labels& labels) {
    std::vector<int64_t> permutation;
    for (int label : labels) permutation.push_back(axis_of(operand, label));
    if (std::is_sorted(permutation.begin(), permutation.end())) return operand.value;
    return emit_.transpose(operand.value, permutation);
  }

  Operand concat_values(const Operand& a, const Operand& b, size_t last) {
    Labels batch, rows, columns, summed;
    for (int label : a.labels)
      (!contains(b.labels, label) ? rows : needed_besides(label, 0, last) ? batch : summed).push_back(label);
    for (int label : b.labels)
      if (!contains(a.labels, label)) columns.push_back(label);
    Labels labels = batch;
    labels.insert(labels.end(), rows.begin(), rows.end());
    labels.insert(labels.end(), columns.begin(), columns.end());
    if (summed.empty()) return {multiplied(a, b, labels), labels};
    if (!is_float(emit_.value(a.value).dtype)) {
      Labels wide = labels;
      wide.insert(wide.end(), summed.begin(), summed.end());
      Operand product{multiplied(a, b, wide), wide};
      sum(product, summed);
      return product;
    }
    return {matmul_of(a, b, batch, rows, columns, summed), labels};
  }

  /// Elementwise, each operand with extents of 1 along the labels that it does not have.
  ValueId multiplied(const Operand& a, const Operand& b, const Labels& labels) {
    const auto spread = [&](const Operand& operand) {
      Labels own;
      std::vector<int> missing;
      for (size_t i = 0; i < labels.size(); ++i) {
        if (contains(operand.labels, labels[i]))
          own.push_back(labels[i]);
        else
          missing.push_back(static_cast<int>(i));
      }
      const ValueId value = arranged(operand, own);
      return missing.empty() ? value : unsqueeze(emit_, value, missing);
    };
    return emit_.mul(spread(a), spread(b));
  }

  ValueId matmul_of(const Operand& a, const Operand& b, const Labels& batch, const Labels& rows,
                    const Labels& columns, const Labels& summed) {
    const auto count = [](const Labels& labels) { return static_cast<int>(labels.size()); };
    const auto concatenated = [](Labels first, const Labels& second, const Labels& third) {
      first.insert(first.end(), second.begin(), second.end());
      first.insert(first.end(), third.begin(), third.end());
      return first;
    };
    const ValueId left = arranged(a, concatenated(batch, rows, summed));
    const ValueId right = arranged(b, concatenated(batch, summed, columns));
    if (left == kNoValue || right == kNoValue) return kNoValue;
    if (rows.size() == 1 && columns.size() == 1 && summed.size() == 1)
      return emit_.emit(op::MatMulAttributes{}, {left, right});
    const auto folded = [&](ValueId x, int first, int second) {
      const int end = emit_.value(x).rank();
      return emit_.reshape(
          x, concatenate_parts({dims_product(emit_, x, 0, first), dims_product(emit_, x, first, second),
                                dims_product(emit_, x, second, end)}));
    };
    const ValueId result =
        emit_.emit(op::MatMulAttributes{}, {folded(left, count(batch), count(batch) + count(rows)),
                                            folded(right, count(batch), count(batch) + count(summed))});
    std::vector<Extent> extents;
    for (int i = 0; i < count(batch) + count(rows); ++i) extents.push_back(Extent::dim(emit_, left, i));
    for (int i = 0; i < count(columns); ++i)
      extents.push_back(Extent::dim(emit_, right, count(batch) + count(summed) + i));
    return reshape_to(emit_, result, extents);
  }
  ValueId concatenate_parts(std::vector<ValueId> parts) {
    return librt::onnx::concat_values(emit_, std::move(parts));
  }

  NodeContext& c_;
  compiler::Builder& emit_;
  Equation equation_;
  std::vector<Operand> operands_;
};

Status einsum(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, c.inputs.size()));
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (!c.has(i)) return invalid_model("input ", i, " is absent");
  RT_ASSIGN(Equation equation, parse(c, c.string("equation", "")));
  RT_ASSIGN(const ValueId y, Contraction(c, std::move(equation)).run());
  return c.result(y);
}

constexpr ImportRow kEinsumRows[] = {{"", "Einsum", 12, kNewestOpset, einsum}};

}  // namespace

std::span<const ImportRow> rows_einsum() {
  return kEinsumRows;
}

}  // namespace librt::onnx
