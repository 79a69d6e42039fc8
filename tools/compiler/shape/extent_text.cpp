// ExtentTable: expressions as postfix terms for files, as values, and as text.
#include <algorithm>

#include "runtime/core/status.h"
#include "tools/compiler/shape/extent_table.h"

namespace librt::compiler {
namespace {

/// Parts are shared, so a text in full can be exponentially long; it stops after this many.
constexpr int kMostTextParts = 48;

}  // namespace

bool ExtentTable::append_terms(Extent a, std::vector<ExtentTerm>& out) const {
  if (a.is_unknown() || out.size() > kMostExtentTerms) return false;
  if (a.is_constant()) {
    out.push_back({ExtentOp::Constant, a.constant});
    return true;
  }
  bool first = true;
  for (const Monomial& term : polynomials_[static_cast<size_t>(a.polynomial)]) {
    bool empty = true;
    if (term.coefficient != 1 || term.atoms.empty()) {
      out.push_back({ExtentOp::Constant, term.coefficient});
      empty = false;
    }
    for (const int32_t id : term.atoms) {
      const Atom& atom = atoms_[static_cast<size_t>(id)];
      if (atom.kind != Kind::Symbol && !append_terms(atom.a, out)) return false;
      switch (atom.kind) {
        case Kind::Symbol: out.push_back({ExtentOp::Symbol, atom.symbol}); break;
        case Kind::Floor:
          if (!append_terms(atom.b, out)) return false;
          out.push_back({ExtentOp::FloorDivide, 0});
          break;
        case Kind::Positive:
          out.push_back({ExtentOp::Constant, 0});
          out.push_back({ExtentOp::Maximum, 0});
          break;
        case Kind::IsZero: out.push_back({ExtentOp::IsZero, 0}); break;
        case Kind::IsNegative: out.push_back({ExtentOp::IsNegative, 0}); break;
      }
      if (!empty) out.push_back({ExtentOp::Multiply, 0});
      empty = false;
    }
    if (!first) out.push_back({ExtentOp::Add, 0});
    first = false;
  }
  return out.size() <= kMostExtentTerms;
}

std::vector<ExtentTerm> ExtentTable::terms(Extent a) const {
  std::vector<ExtentTerm> out;
  if (!append_terms(a, out) || !is_expression(out, static_cast<size_t>(kMostSymbols))) return {};
  return out;
}

std::optional<int64_t> ExtentTable::evaluate(Extent a, std::span<const int64_t> symbols) const {
  if (a.is_constant()) return a.constant;
  if (a.is_unknown()) return std::nullopt;
  int64_t sum = 0;
  for (const Monomial& term : polynomials_[static_cast<size_t>(a.polynomial)]) {
    int64_t product = term.coefficient;
    for (const int32_t id : term.atoms) {
      const auto factor = evaluate_atom(atoms_[static_cast<size_t>(id)], symbols);
      if (!factor || __builtin_mul_overflow(product, *factor, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<int64_t> ExtentTable::evaluate_atom(const Atom& atom, std::span<const int64_t> symbols) const {
  if (atom.kind == Kind::Symbol) {
    const auto index = static_cast<size_t>(atom.symbol);
    if (index >= symbols.size() || symbols[index] < 0) return std::nullopt;
    return symbols[index];
  }
  const auto a = evaluate(atom.a, symbols);
  if (!a) return std::nullopt;
  switch (atom.kind) {
    case Kind::Floor: {
      const auto b = evaluate(atom.b, symbols);
      if (!b || *b == 0) return std::nullopt;
      return librt::floor_divide(*a, *b);
    }
    case Kind::Positive: return std::max<int64_t>(*a, 0);
    case Kind::IsZero: return *a == 0;
    case Kind::IsNegative: return *a < 0;
    case Kind::Symbol: break;
  }
  return std::nullopt;
}

std::string ExtentTable::atom_text(int32_t id, std::span<const Symbol> names, int& budget) const {
  const Atom& atom = atoms_[static_cast<size_t>(id)];
  switch (atom.kind) {
    case Kind::Symbol: {
      const auto index = static_cast<size_t>(atom.symbol);
      return index < names.size() ? names[index].name : text('?', index);
    }
    case Kind::Floor: {
      const std::string a = sum_text(polynomial(atom.a), names, budget),
                        b = sum_text(polynomial(atom.b), names, budget);
      return text("floor(", polynomial(atom.a).size() > 1 ? text('(', a, ')') : a, " / ",
                  polynomial(atom.b).size() > 1 ? text('(', b, ')') : b, ')');
    }
    case Kind::Positive: return text("max(", sum_text(polynomial(atom.a), names, budget), ", 0)");
    case Kind::IsZero: return text('(', sum_text(polynomial(atom.a), names, budget), " = 0)");
    case Kind::IsNegative: return text('(', sum_text(polynomial(atom.a), names, budget), " < 0)");
  }
  return {};
}

std::string ExtentTable::sum_text(const Polynomial& terms, std::span<const Symbol> names, int& budget) const {
  if (budget-- <= 0) return "...";
  // p - max(p - q, 0) is min(p, q), and q + max(p - q, 0) is max(p, q).
  for (const Monomial& term : terms) {
    if (term.atoms.size() != 1 || (term.coefficient != 1 && term.coefficient != -1)) continue;
    const Atom& atom = atoms_[static_cast<size_t>(term.atoms[0])];
    if (atom.kind != Kind::Positive || terms.size() == 1) continue;
    Polynomial rest = terms;
    std::erase(rest, term);
    Polynomial other = rest;
    for (Monomial part : polynomial(atom.a)) {
      part.coefficient *= term.coefficient;
      other.push_back(std::move(part));
    }
    bool overflow = false;
    collect(other, overflow);
    if (overflow) continue;
    const std::string first = sum_text(rest, names, budget), second = sum_text(other, names, budget);
    return text(term.coefficient < 0 ? "min(" : "max(", first, ", ", second, ')');
  }
  if (terms.empty()) return "0";
  // The constant comes last.
  Polynomial sorted = terms;
  if (sorted.size() > 1 && sorted[0].atoms.empty())
    std::rotate(sorted.begin(), sorted.begin() + 1, sorted.end());
  std::string out;
  for (const Monomial& term : sorted) {
    const bool negative = term.coefficient < 0;
    if (!out.empty())
      out += negative ? " - " : " + ";
    else if (negative)
      out += "-";
    const int64_t size = negative ? -term.coefficient : term.coefficient;
    std::string product = size != 1 || term.atoms.empty() ? text(size) : std::string();
    for (const int32_t id : term.atoms)
      append(product, product.empty() ? "" : "*", atom_text(id, names, budget));
    out += product;
  }
  return out;
}

std::string ExtentTable::equation_text(Extent a, std::span<const Symbol> names) const {
  if (a.is_unknown()) return "?";
  Polynomial left, right;
  for (Monomial term : polynomial(a)) {
    const bool negative = term.coefficient < 0;
    if (negative) term.coefficient = -term.coefficient;
    (negative ? right : left).push_back(std::move(term));
  }
  // A constant goes on the right.
  if (right.empty() || (!left.empty() && left.back().atoms.empty())) std::swap(left, right);
  int budget = kMostTextParts;
  const std::string first = sum_text(left, names, budget);
  return text(first, " = ", sum_text(right, names, budget));
}

std::string ExtentTable::text_of(Extent a, std::span<const Symbol> names) const {
  int budget = kMostTextParts;
  return a.is_unknown() ? "?" : sum_text(polynomial(a), names, budget);
}

}  // namespace librt::compiler
