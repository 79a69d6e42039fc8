// Integer expressions over the symbols of a graph, in canonical form: equal ones have the same index.
//
// Knows: simplification by rules that hold for all integers (or for all extents that symbols may have), and
// how to prove that an expression is never negative. Must not know: operators, nodes, probes.
//
// An expression is a polynomial with integer coefficients over atoms: symbols, floor(a / b), max(a, 0), and
// the truth values a = 0 and a < 0 as 0 or 1. Minimum, maximum, ceiling division, remainder and selection are
// written with these: max(a, b) = b + max(a - b, 0); floor((3 n + 4) / 3) = n + 1 + floor(1 / 3) = n + 1.
// Polynomials and atoms are interned, so that comparing two expressions is comparing two indices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/extent.h"
#include "runtime/graph/graph.h"

namespace librt::compiler {

/// An expression of an ExtentTable: a constant, a polynomial of the table, or something that cannot be
/// expressed. Cheap to copy; == of two that can be expressed means equal for all symbols.
struct Extent {
  int64_t constant = 0;
  int32_t polynomial = -1;  ///< index in the table; -1: `constant`; kUnknown: not expressible

  static constexpr int32_t kUnknown = -2;
  static constexpr Extent unknown() noexcept { return {0, kUnknown}; }
  constexpr bool is_constant() const noexcept { return polynomial == -1; }
  constexpr bool is_unknown() const noexcept { return polynomial == kUnknown; }
  constexpr bool is_constant(int64_t number) const noexcept { return is_constant() && constant == number; }
  constexpr bool operator==(const Extent&) const noexcept = default;
};
constexpr Extent number(int64_t value) noexcept {
  return {value, -1};
}

/// What is not expressible, too long, or beyond int64 gives Extent::unknown(), and so does everything made
/// of it. Not thread safe.
class ExtentTable {
 public:
  /// The extent of a symbol: not negative, at most `bound` if that is above 0.
  Extent symbol(int32_t index, int64_t bound = 0);

  Extent add(Extent a, Extent b);
  Extent subtract(Extent a, Extent b) { return add(a, scale(b, -1)); }
  Extent scale(Extent a, int64_t factor);
  Extent multiply(Extent a, Extent b);
  /// floor(a / b). Where b divides a as a polynomial, the quotient: callers know that b is not 0.
  Extent floor_divide(Extent a, Extent b);
  Extent ceil_divide(Extent a, Extent b) {
    // ceil(a / m) = floor((a + m - 1) / m), the form that counting windows gives as well.
    if (b.is_constant() && b.constant > 0) return floor_divide(add(a, number(b.constant - 1)), b);
    return scale(floor_divide(scale(a, -1), b), -1);
  }
  /// a / b rounded towards zero.
  Extent truncated_divide(Extent a, Extent b);
  Extent maximum(Extent a, Extent b) { return add(b, positive_part(subtract(a, b))); }
  Extent minimum(Extent a, Extent b) { return subtract(a, positive_part(subtract(a, b))); }
  Extent clamp(Extent a, Extent low, Extent high) { return minimum(maximum(a, low), high); }
  /// 0 or 1.
  Extent is_zero(Extent a);
  Extent is_negative(Extent a);
  Extent negate(Extent truth) { return subtract(number(1), truth); }
  /// a where truth is 1, b where it is 0.
  Extent select(Extent truth, Extent a, Extent b) { return add(b, multiply(truth, subtract(a, b))); }
  /// What two extents broadcast to, if they do.
  Extent broadcast(Extent a, Extent b);

  /// Whether a is proven to be at least 0, for all symbols.
  bool is_nonnegative(Extent a) const { return proves_nonnegative(a, 0); }
  bool is_at_least(Extent a, int64_t least) { return is_nonnegative(add(a, number(-least))); }
  /// From now on taken to be at least 0: the extent of a value.
  void assume_nonnegative(Extent a);

  /// The index of the symbol, if the expression is a symbol.
  std::optional<int32_t> as_symbol(Extent a) const;
  /// Solves a = 0 for one of the symbols for which `may_change` is true: that symbol and the expression that
  /// it must equal.
  std::optional<std::pair<int32_t, Extent>> solve(Extent a, const std::function<bool(int32_t)>& may_change);
  /// `a` without common factors: 0 for the same symbols, if these factors are not 0.
  Extent primitive(Extent a);
  /// "h*w = 96", of an expression that is 0.
  std::string equation_text(Extent a, std::span<const Symbol> names) const;
  /// The symbols that the expression depends on.
  std::vector<int32_t> symbols_of(Extent a) const;
  /// How long it is: of two that are equal, the shorter one is preferred.
  size_t length(Extent a) const;

  /// symbols: extents; nullopt as in librt::evaluate().
  std::optional<int64_t> evaluate(Extent a, std::span<const int64_t> symbols) const;
  /// Postfix terms, for a symbol's definition; empty when it has too many.
  std::vector<ExtentTerm> terms(Extent a) const;
  /// of_symbol: the replacement of each symbol.
  template <class OfSymbol>
  Extent from_terms(std::span<const ExtentTerm> terms, OfSymbol&& of_symbol);
  /// "min(n, 16)", "floor((n - 1) / 2) + 1"
  std::string text_of(Extent a, std::span<const Symbol> names) const;

 private:
  enum class Kind : uint8_t { Symbol, Floor, Positive, IsZero, IsNegative };
  struct Atom {
    Kind kind = Kind::Symbol;
    int32_t symbol = -1;
    Extent a, b;
    int64_t low = 0, high = 0;  ///< it is in [low, high]
    size_t size = 1;            ///< terms when written out
  };
  /// coefficient times the product of the atoms, which are sorted.
  struct Monomial {
    std::vector<int32_t> atoms;
    int64_t coefficient = 0;
    bool operator==(const Monomial&) const = default;
  };
  using Polynomial = std::vector<Monomial>;  ///< sorted by atoms: the constant term comes first
  struct Range {
    int64_t low = 0, high = 0;
  };

  static constexpr int64_t kMostSymbols = int64_t{1} << 31;

  Polynomial polynomial(Extent a) const;
  /// Unknown where it is too long: parts are shared, so a full traversal would take exponential time.
  Extent intern(Polynomial terms);
  size_t size_of(const Polynomial& terms) const;
  Extent atom(Kind kind, Extent a, Extent b, Range range);
  /// nullopt where it is not kept: too many factors, or beyond int64.
  std::optional<Monomial> product(const Monomial& a, const Monomial& b) const;
  static void collect(Polynomial& terms, bool& overflow);
  static int64_t constant_of(const Polynomial& terms);
  static int64_t common_factor(const Polynomial& terms);

  Extent positive_part(Extent a);
  Extent floor_by(Extent a, int64_t divisor);
  std::optional<Extent> quotient(Extent a, Extent b);
  Range range_of(Extent a) const;
  Range range_of(const Polynomial& terms) const;
  bool proves_nonnegative(Extent a, int depth) const;
  bool proves_nonnegative(const Polynomial& terms, int depth) const;
  bool follows_from_assumptions(const Polynomial& terms) const;
  std::optional<int64_t> evaluate_atom(const Atom& atom, std::span<const int64_t> symbols) const;
  bool append_terms(Extent a, std::vector<ExtentTerm>& out) const;
  void add_symbols(Extent a, std::vector<bool>& seen) const;
  std::string atom_text(int32_t id, std::span<const Symbol> names, int& budget) const;
  std::string sum_text(const Polynomial& terms, std::span<const Symbol> names, int& budget) const;

  mutable size_t proof_steps_ = 0;  ///< of the proof at hand
  std::vector<Polynomial> polynomials_;
  std::map<std::vector<int64_t>, int32_t> polynomial_ids_;
  std::vector<Atom> atoms_;
  std::map<std::vector<int64_t>, int32_t> atom_ids_;
  std::vector<Polynomial> nonnegative_;  ///< arguments of assume_nonnegative()
};

template <class OfSymbol>
Extent ExtentTable::from_terms(std::span<const ExtentTerm> terms, OfSymbol&& of_symbol) {
  std::vector<Extent> stack;
  for (const ExtentTerm& term : terms) {
    Extent b;
    if (operands_of(term.op) == 2) {
      b = stack.back();
      stack.pop_back();
    }
    switch (term.op) {
      case ExtentOp::Constant: stack.push_back(number(term.value)); break;
      case ExtentOp::Symbol: stack.push_back(of_symbol(static_cast<int32_t>(term.value))); break;
      case ExtentOp::Add: stack.back() = add(stack.back(), b); break;
      case ExtentOp::Multiply: stack.back() = multiply(stack.back(), b); break;
      case ExtentOp::FloorDivide: stack.back() = floor_divide(stack.back(), b); break;
      case ExtentOp::Maximum: stack.back() = maximum(stack.back(), b); break;
      case ExtentOp::IsZero: stack.back() = is_zero(stack.back()); break;
      case ExtentOp::IsNegative: stack.back() = is_negative(stack.back()); break;
    }
  }
  return stack.empty() ? Extent::unknown() : stack.back();
}

}  // namespace librt::compiler
