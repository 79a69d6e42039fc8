// ExtentTable: polynomials, atoms and their rules. See extent_table.h for the form.
#include "tools/compiler/shape/extent_table.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tools/compiler/shape/saturating.h"

namespace librt::compiler {
namespace {

/// Longer ones are not worth keeping: nobody can use them, and a hostile model could make them grow.
constexpr size_t kMostMonomials = 48;
constexpr size_t kMostFactors = 8;

}  // namespace

// --- the form

ExtentTable::Polynomial ExtentTable::polynomial(Extent a) const {
  if (!a.is_constant()) return polynomials_[static_cast<size_t>(a.polynomial)];
  if (a.constant == 0) return {};
  return {Monomial{{}, a.constant}};
}

int64_t ExtentTable::constant_of(const Polynomial& terms) {
  return !terms.empty() && terms[0].atoms.empty() ? terms[0].coefficient : 0;
}

int64_t ExtentTable::common_factor(const Polynomial& terms) {
  int64_t factor = 0;
  for (const Monomial& term : terms)
    if (!term.atoms.empty()) factor = std::gcd(factor, term.coefficient);
  return factor;
}

void ExtentTable::collect(Polynomial& terms, bool& overflow) {
  std::sort(terms.begin(), terms.end(),
            [](const Monomial& a, const Monomial& b) { return a.atoms < b.atoms; });
  Polynomial sum;
  for (Monomial& term : terms) {
    if (sum.empty() || sum.back().atoms != term.atoms)
      sum.push_back(std::move(term));
    else
      overflow |= __builtin_add_overflow(sum.back().coefficient, term.coefficient, &sum.back().coefficient);
    if (sum.back().coefficient == 0) sum.pop_back();
  }
  terms = std::move(sum);
}

size_t ExtentTable::size_of(const Polynomial& terms) const {
  size_t size = 0;
  for (const Monomial& term : terms) {
    size += 1;
    for (const int32_t id : term.atoms) size += atoms_[static_cast<size_t>(id)].size;
  }
  return size;
}

Extent ExtentTable::intern(Polynomial terms) {
  bool overflow = false;
  collect(terms, overflow);
  constexpr int64_t kMostCoefficient = int64_t{1} << 62;
  for (const Monomial& term : terms)
    overflow |= term.coefficient > kMostCoefficient || term.coefficient < -kMostCoefficient;
  if (overflow || terms.size() > kMostMonomials || size_of(terms) > kMostExtentTerms)
    return Extent::unknown();
  if (terms.empty()) return number(0);
  if (terms.size() == 1 && terms[0].atoms.empty()) return number(terms[0].coefficient);
  std::vector<int64_t> key;
  for (const Monomial& term : terms) {
    key.push_back(term.coefficient);
    key.push_back(static_cast<int64_t>(term.atoms.size()));
    key.insert(key.end(), term.atoms.begin(), term.atoms.end());
  }
  const auto [entry, fresh] =
      polynomial_ids_.try_emplace(std::move(key), static_cast<int32_t>(polynomials_.size()));
  if (fresh) polynomials_.push_back(std::move(terms));
  return {0, entry->second};
}

Extent ExtentTable::atom(Kind kind, Extent a, Extent b, Range range) {
  std::vector<int64_t> key{static_cast<int64_t>(kind), a.constant, a.polynomial, b.constant, b.polynomial};
  const auto [entry, fresh] = atom_ids_.try_emplace(std::move(key), static_cast<int32_t>(atoms_.size()));
  if (fresh)
    atoms_.push_back({.kind = kind,
                      .symbol = -1,
                      .a = a,
                      .b = b,
                      .low = range.low,
                      .high = range.high,
                      .size = 1 + size_of(polynomial(a)) + size_of(polynomial(b))});
  return intern({Monomial{{entry->second}, 1}});
}

Extent ExtentTable::symbol(int32_t index, int64_t bound) {
  const Extent extent = atom(Kind::Symbol, number(index), number(0), {0, bound > 0 ? bound : kMostExtent});
  Atom& own = atoms_[static_cast<size_t>(polynomials_[static_cast<size_t>(extent.polynomial)][0].atoms[0])];
  own.symbol = index;
  return extent;
}

// --- sums and products

Extent ExtentTable::add(Extent a, Extent b) {
  if (a.is_unknown() || b.is_unknown()) return Extent::unknown();
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  Polynomial sum = polynomial(a);
  const Polynomial other = polynomial(b);
  sum.insert(sum.end(), other.begin(), other.end());
  return intern(std::move(sum));
}

Extent ExtentTable::scale(Extent a, int64_t factor) {
  if (a.is_unknown()) return a;
  if (factor == 1) return a;
  Polynomial terms = polynomial(a);
  for (Monomial& term : terms)
    if (__builtin_mul_overflow(term.coefficient, factor, &term.coefficient)) return Extent::unknown();
  return intern(std::move(terms));
}

std::optional<ExtentTable::Monomial> ExtentTable::product(const Monomial& a, const Monomial& b) const {
  Monomial result;
  if (__builtin_mul_overflow(a.coefficient, b.coefficient, &result.coefficient)) return std::nullopt;
  std::merge(a.atoms.begin(), a.atoms.end(), b.atoms.begin(), b.atoms.end(),
             std::back_inserter(result.atoms));
  // A truth value times itself is itself.
  const auto last = std::unique(result.atoms.begin(), result.atoms.end(), [&](int32_t x, int32_t y) {
    const Kind kind = atoms_[static_cast<size_t>(x)].kind;
    return x == y && (kind == Kind::IsZero || kind == Kind::IsNegative);
  });
  result.atoms.erase(last, result.atoms.end());
  // (p = 0) p is 0.
  for (const int32_t id : result.atoms) {
    const Atom& atom = atoms_[static_cast<size_t>(id)];
    if (atom.kind != Kind::IsZero) continue;
    const Polynomial& zero = polynomials_[static_cast<size_t>(atom.a.polynomial)];
    if (zero.size() == 1 &&
        std::includes(result.atoms.begin(), result.atoms.end(), zero[0].atoms.begin(), zero[0].atoms.end()))
      result.coefficient = 0;
  }
  if (result.atoms.size() > kMostFactors) return std::nullopt;
  return result;
}

Extent ExtentTable::multiply(Extent a, Extent b) {
  if (a.is_constant(0) || b.is_constant(0)) return number(0);
  if (a.is_unknown() || b.is_unknown()) return Extent::unknown();
  if (a.is_constant()) return scale(b, a.constant);
  if (b.is_constant()) return scale(a, b.constant);
  const Polynomial x = polynomial(a), y = polynomial(b);
  if (x.size() * y.size() > kMostMonomials * 4) return Extent::unknown();
  Polynomial result;
  for (const Monomial& left : x)
    for (const Monomial& right : y) {
      auto term = product(left, right);
      if (!term) return Extent::unknown();
      result.push_back(std::move(*term));
    }
  return intern(std::move(result));
}

// --- division

std::optional<Extent> ExtentTable::quotient(Extent a, Extent b) {
  // Long division by the last monomial; exact or not at all.
  const Polynomial divisor = polynomial(b);
  if (divisor.empty()) return std::nullopt;
  const Monomial& lead = divisor.back();
  Polynomial rest = polynomial(a), result;
  for (size_t step = 0; !rest.empty() && step < kMostMonomials; ++step) {
    const Monomial& top = rest.back();
    if (top.coefficient % lead.coefficient != 0 ||
        !std::includes(top.atoms.begin(), top.atoms.end(), lead.atoms.begin(), lead.atoms.end()))
      return std::nullopt;
    Monomial factor{{}, top.coefficient / lead.coefficient};
    std::set_difference(top.atoms.begin(), top.atoms.end(), lead.atoms.begin(), lead.atoms.end(),
                        std::back_inserter(factor.atoms));
    for (const Monomial& term : divisor) {
      auto part = product(factor, term);
      if (!part) return std::nullopt;
      part->coefficient = -part->coefficient;
      rest.push_back(std::move(*part));
    }
    bool overflow = false;
    collect(rest, overflow);
    if (overflow) return std::nullopt;
    result.push_back(std::move(factor));
  }
  if (!rest.empty()) return std::nullopt;
  return intern(std::move(result));
}

Extent ExtentTable::floor_by(Extent a, int64_t divisor) {
  if (a.is_unknown()) return a;
  if (a.is_constant()) return number(librt::floor_divide(a.constant, divisor));
  // floor((m q + r) / m) = q + floor(r / m), with coefficients of r in [0, m).
  Polynomial whole, rest;
  for (const Monomial& term : polynomial(a)) {
    const int64_t part = librt::floor_divide(term.coefficient, divisor);
    if (part != 0) whole.push_back({term.atoms, part});
    if (const int64_t left = term.coefficient - part * divisor; left != 0) rest.push_back({term.atoms, left});
  }
  const Extent outside = intern(std::move(whole));
  // floor((g p + c) / (g m)) = floor((p + floor(c / g)) / m)
  if (const int64_t factor = std::gcd(common_factor(rest), divisor); factor > 1) {
    for (Monomial& term : rest) term.coefficient = librt::floor_divide(term.coefficient, factor);
    divisor /= factor;
    if (divisor == 1) return add(outside, intern(std::move(rest)));
    return add(outside, floor_by(intern(std::move(rest)), divisor));
  }
  const Extent inside = intern(rest);
  if (inside.is_unknown()) return inside;
  if (inside.is_constant()) return add(outside, number(librt::floor_divide(inside.constant, divisor)));
  // floor((floor(p / k) + c) / m) = floor((p + c k) / (k m))
  const int64_t constant = constant_of(rest);
  if (rest.size() == (constant != 0 ? 2u : 1u) && rest.back().coefficient == 1 &&
      rest.back().atoms.size() == 1) {
    const Atom inner = atoms_[static_cast<size_t>(rest.back().atoms[0])];
    int64_t shift = 0, both = 0;
    if (inner.kind == Kind::Floor && inner.b.is_constant() && inner.b.constant > 0 &&
        !__builtin_mul_overflow(constant, inner.b.constant, &shift) &&
        !__builtin_mul_overflow(divisor, inner.b.constant, &both) && both < (int64_t{1} << 62))
      return add(outside, floor_by(add(inner.a, number(shift)), both));
  }
  const Range range = range_of(rest);
  if (range.low >= 0 && range.high < divisor) return outside;
  const auto bound = [&](int64_t edge) {
    return edge <= -kInfinity || edge >= kInfinity ? edge : librt::floor_divide(edge, divisor);
  };
  return add(outside, atom(Kind::Floor, inside, number(divisor), {bound(range.low), bound(range.high)}));
}

Extent ExtentTable::floor_divide(Extent a, Extent b) {
  if (a.is_unknown() || b.is_unknown() || b.is_constant(0)) return Extent::unknown();
  if (b.is_constant() && b.constant > 0) return floor_by(a, b.constant);
  if (b.is_constant())
    return b.constant == std::numeric_limits<int64_t>::min() ? Extent::unknown()
                                                             : floor_by(scale(a, -1), -b.constant);
  if (auto exact = quotient(a, b)) return *exact;
  const Range x = range_of(a), y = range_of(b);
  if (x.low < 0 || y.low < 0) return atom(Kind::Floor, a, b, {-kInfinity, kInfinity});
  return atom(Kind::Floor, a, b, {0, x.high});
}

Extent ExtentTable::truncated_divide(Extent a, Extent b) {
  if (is_nonnegative(a) && is_nonnegative(b)) return floor_divide(a, b);
  if (is_nonnegative(scale(a, -1)) && is_nonnegative(b)) return ceil_divide(a, b);
  if (!is_nonnegative(b)) return Extent::unknown();
  return subtract(floor_divide(positive_part(a), b), floor_divide(positive_part(scale(a, -1)), b));
}

// --- maxima and truth values

Extent ExtentTable::positive_part(Extent a) {
  if (a.is_unknown()) return a;
  if (a.is_constant()) return number(std::max<int64_t>(a.constant, 0));
  if (is_nonnegative(a)) return a;
  if (is_nonnegative(scale(a, -1))) return number(0);
  Polynomial terms = polynomial(a);
  const int64_t constant = constant_of(terms);
  // max(g p, 0) = g max(p, 0)
  if (const int64_t factor = std::gcd(common_factor(terms), constant); factor > 1) {
    for (Monomial& term : terms) term.coefficient /= factor;
    return scale(positive_part(intern(std::move(terms))), factor);
  }
  // max(p, 0) = p + max(-p, 0): the sign of the last term decides which of the two is kept.
  if (terms.back().coefficient < 0) return add(a, positive_part(scale(a, -1)));
  // max(max(p, 0) - c, 0) = max(p - c, 0) for c >= 0
  if (terms.size() == (constant != 0 ? 2u : 1u) && terms.back().coefficient == 1 &&
      terms.back().atoms.size() == 1 && constant <= 0) {
    const Atom inner = atoms_[static_cast<size_t>(terms.back().atoms[0])];
    if (inner.kind == Kind::Positive) return positive_part(add(inner.a, number(constant)));
  }
  return atom(Kind::Positive, a, number(0), {0, std::max<int64_t>(range_of(terms).high, 0)});
}

Extent ExtentTable::is_zero(Extent a) {
  if (a.is_unknown()) return a;
  if (a.is_constant()) return number(a.constant == 0);
  if (is_at_least(a, 1) || is_at_least(scale(a, -1), 1)) return number(0);
  Polynomial terms = polynomial(a);
  const int64_t factor = common_factor(terms);
  if (constant_of(terms) % factor != 0) return number(0);
  const int64_t sign = terms.back().coefficient < 0 ? -factor : factor;
  if (sign != 1) {
    for (Monomial& term : terms) term.coefficient /= sign;
    return is_zero(intern(std::move(terms)));
  }
  return atom(Kind::IsZero, a, number(0), {0, 1});
}

Extent ExtentTable::is_negative(Extent a) {
  if (a.is_unknown()) return a;
  if (a.is_constant()) return number(a.constant < 0);
  if (is_nonnegative(a)) return number(0);
  if (is_at_least(scale(a, -1), 1)) return number(1);
  Polynomial terms = polynomial(a);
  if (const int64_t factor = common_factor(terms); factor > 1) {
    for (Monomial& term : terms) term.coefficient = librt::floor_divide(term.coefficient, factor);
    return is_negative(intern(std::move(terms)));
  }
  // a < 0 is not (-a - 1 < 0)
  if (terms.back().coefficient < 0) return negate(is_negative(subtract(number(-1), a)));
  return atom(Kind::IsNegative, a, number(0), {0, 1});
}

Extent ExtentTable::broadcast(Extent a, Extent b) {
  if (a == b || b.is_constant(1)) return a;
  if (a.is_constant(1)) return b;
  // The other one is this, or 1.
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  if (is_at_least(a, 2)) return a;
  if (is_at_least(b, 2)) return b;
  return select(is_zero(add(b, number(-1))), a, b);
}

}  // namespace librt::compiler
