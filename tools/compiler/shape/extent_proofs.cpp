// ExtentTable: bounds of expressions, proofs that they are not negative, and equations solved for a symbol.
#include <algorithm>
#include <array>
#include <numeric>

#include "tools/compiler/shape/extent_table.h"
#include "tools/compiler/shape/saturating.h"

namespace librt::compiler {
namespace {

/// Nesting depth of case distinctions.
constexpr int kMostCases = 4;
constexpr size_t kMostAssumptions = 256;
/// Polynomials visited per proof; what takes more is not proven.
constexpr size_t kMostProofSteps = 1000;

}  // namespace

ExtentTable::Range ExtentTable::range_of(const Polynomial& terms) const {
  Range sum{0, 0};
  for (const Monomial& term : terms) {
    Range product{term.coefficient, term.coefficient};
    for (const int32_t id : term.atoms) {
      const Atom& atom = atoms_[static_cast<size_t>(id)];
      const std::array<int64_t, 4> corners = {
          saturated_multiply(product.low, atom.low), saturated_multiply(product.low, atom.high),
          saturated_multiply(product.high, atom.low), saturated_multiply(product.high, atom.high)};
      product = {*std::min_element(corners.begin(), corners.end()),
                 *std::max_element(corners.begin(), corners.end())};
    }
    sum = {add_lower(sum.low, product.low), add_upper(sum.high, product.high)};
  }
  return sum;
}

ExtentTable::Range ExtentTable::range_of(Extent a) const {
  if (a.is_unknown()) return {-kInfinity, kInfinity};
  return range_of(polynomial(a));
}

void ExtentTable::assume_nonnegative(Extent a) {
  if (a.is_unknown() || nonnegative_.size() >= kMostAssumptions || is_nonnegative(a)) return;
  nonnegative_.push_back(polynomial(a));
}

bool ExtentTable::follows_from_assumptions(const Polynomial& terms) const {
  for (const Polynomial& known : nonnegative_) {
    Polynomial rest = terms;
    for (Monomial term : known) {
      term.coefficient = -term.coefficient;
      rest.push_back(std::move(term));
    }
    bool overflow = false;
    collect(rest, overflow);
    if (!overflow && range_of(rest).low >= 0) return true;
  }
  return false;
}

bool ExtentTable::proves_nonnegative(Extent a, int depth) const {
  if (a.is_unknown()) return false;
  if (a.is_constant()) return a.constant >= 0;
  return proves_nonnegative(polynomial(a), depth);
}

bool ExtentTable::proves_nonnegative(const Polynomial& terms, int depth) const {
  if (depth == 0) proof_steps_ = 0;
  if (++proof_steps_ > kMostProofSteps) return false;
  if (range_of(terms).low >= 0) return true;
  if (follows_from_assumptions(terms)) return true;
  if (depth >= kMostCases) return false;
  // scale times the polynomial, with `factor` times p + constant in place of `atom`, which is in no product.
  const auto replaced = [&](int32_t atom, int64_t scale, Extent p, int64_t factor,
                            int64_t constant) -> std::optional<Polynomial> {
    Polynomial result;
    bool overflow = false;
    for (const Monomial& term : terms) {
      if (term.atoms == std::vector<int32_t>{atom}) {
        for (Monomial part : polynomial(p)) {
          overflow |= __builtin_mul_overflow(part.coefficient, factor, &part.coefficient);
          overflow |= __builtin_mul_overflow(part.coefficient, term.coefficient, &part.coefficient);
          result.push_back(std::move(part));
        }
        int64_t added = 0;
        overflow |= __builtin_mul_overflow(constant, term.coefficient, &added);
        result.push_back({{}, added});
      } else {
        result.push_back(term);
        overflow |= __builtin_mul_overflow(term.coefficient, scale, &result.back().coefficient);
      }
    }
    collect(result, overflow);
    if (overflow) return std::nullopt;
    return result;
  };
  for (const Monomial& term : terms) {
    if (term.atoms.size() != 1) continue;
    const int32_t id = term.atoms[0];
    const Atom& atom = atoms_[static_cast<size_t>(id)];
    if (atom.kind != Kind::Positive && atom.kind != Kind::Floor) continue;
    const bool alone = std::none_of(terms.begin(), terms.end(), [&](const Monomial& other) {
      return other.atoms.size() > 1 && std::binary_search(other.atoms.begin(), other.atoms.end(), id);
    });
    if (!alone) continue;
    if (atom.kind == Kind::Positive) {
      // max(p, 0) is p or 0, and at least either.
      const auto kept = replaced(id, 1, atom.a, 1, 0), dropped = replaced(id, 1, number(0), 1, 0);
      const bool first = kept && proves_nonnegative(*kept, depth + 1);
      if (first && term.coefficient > 0) return true;
      if (!first && term.coefficient < 0) continue;
      if (dropped && proves_nonnegative(*dropped, depth + 1)) return true;
    } else if (atom.b.is_constant() && atom.b.constant > 0) {
      // m floor(p / m) lies in [p - m + 1, p].
      const int64_t m = atom.b.constant;
      const auto bound = replaced(id, m, atom.a, 1, term.coefficient > 0 ? 1 - m : 0);
      if (bound && proves_nonnegative(*bound, depth + 1)) return true;
    }
  }
  return false;
}

std::optional<int32_t> ExtentTable::as_symbol(Extent a) const {
  if (a.polynomial < 0) return std::nullopt;
  const Polynomial& terms = polynomials_[static_cast<size_t>(a.polynomial)];
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].atoms.size() != 1) return std::nullopt;
  const Atom& atom = atoms_[static_cast<size_t>(terms[0].atoms[0])];
  if (atom.kind != Kind::Symbol) return std::nullopt;
  return atom.symbol;
}

void ExtentTable::add_symbols(Extent a, std::vector<bool>& seen) const {
  if (a.polynomial < 0) return;
  for (const Monomial& term : polynomials_[static_cast<size_t>(a.polynomial)])
    for (const int32_t id : term.atoms) {
      const Atom& atom = atoms_[static_cast<size_t>(id)];
      if (atom.kind != Kind::Symbol) {
        add_symbols(atom.a, seen);
        add_symbols(atom.b, seen);
        continue;
      }
      const auto index = static_cast<size_t>(atom.symbol);
      if (seen.size() <= index) seen.resize(index + 1);
      seen[index] = true;
    }
}

std::vector<int32_t> ExtentTable::symbols_of(Extent a) const {
  std::vector<bool> seen;
  add_symbols(a, seen);
  std::vector<int32_t> symbols;
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i]) symbols.push_back(static_cast<int32_t>(i));
  return symbols;
}

size_t ExtentTable::length(Extent a) const {
  if (a.is_constant()) return 0;
  std::vector<ExtentTerm> out;
  return a.is_unknown() || !append_terms(a, out) ? kMostExtentTerms + 1 : out.size();
}

Extent ExtentTable::primitive(Extent a) {
  if (a.polynomial < 0) return a;
  Polynomial terms = polynomial(a);
  std::vector<int32_t> shared = terms[0].atoms;
  int64_t factor = 0;
  for (const Monomial& term : terms) {
    factor = std::gcd(factor, term.coefficient);
    std::vector<int32_t> both;
    std::set_intersection(shared.begin(), shared.end(), term.atoms.begin(), term.atoms.end(),
                          std::back_inserter(both));
    shared = std::move(both);
  }
  // Only symbols: a derived expression may well be 0.
  std::erase_if(shared, [&](int32_t id) { return atoms_[static_cast<size_t>(id)].kind != Kind::Symbol; });
  for (Monomial& term : terms) {
    std::vector<int32_t> left;
    std::set_difference(term.atoms.begin(), term.atoms.end(), shared.begin(), shared.end(),
                        std::back_inserter(left));
    term.atoms = std::move(left);
    term.coefficient /= factor;
  }
  return intern(std::move(terms));
}

std::optional<std::pair<int32_t, Extent>> ExtentTable::solve(Extent a,
                                                             const std::function<bool(int32_t)>& may_change) {
  if (a.polynomial < 0) return std::nullopt;
  std::optional<std::pair<int32_t, Extent>> best;
  const Polynomial terms = polynomial(a);
  for (const Monomial& term : terms) {
    if (term.atoms.size() != 1) continue;
    const Atom& atom = atoms_[static_cast<size_t>(term.atoms[0])];
    if (atom.kind != Kind::Symbol || !may_change(atom.symbol)) continue;
    const int32_t symbol = atom.symbol;
    Polynomial rest;
    bool divides = true;
    for (const Monomial& other : terms) {
      if (other == term) continue;
      divides = divides && other.coefficient % term.coefficient == 0;
      rest.push_back({other.atoms, -(other.coefficient / term.coefficient)});
    }
    if (!divides) continue;
    const Extent solution = intern(std::move(rest));
    if (solution.is_unknown()) continue;
    const std::vector<int32_t> others = symbols_of(solution);
    if (std::find(others.begin(), others.end(), symbol) != others.end()) continue;
    // A constant is preferred; of two symbols the earlier one stays.
    if (best && !solution.is_constant() && symbol < best->first) continue;
    best = {symbol, solution};
    if (solution.is_constant()) break;
  }
  return best;
}

}  // namespace librt::compiler
