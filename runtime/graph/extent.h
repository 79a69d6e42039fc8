// The extent of a symbolic dimension as a function of other dimensions: sums, products, floor division,
// maxima and comparisons, as strides, clamped slices and padding need them.
//
// Knows: how to evaluate and verify such an expression. Must not know: how expressions are simplified or
// proven equal (tools/compiler/shape).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace librt {

/// Stored in files: append only.
enum class ExtentOp : uint8_t {
  Constant = 0,     ///< value
  Symbol = 1,       ///< extent of the graph's symbol number `value`
  Add = 2,          ///< a + b
  Multiply = 3,     ///< a b
  FloorDivide = 4,  ///< floor(a / b)
  Maximum = 5,      ///< max(a, b)
  IsZero = 6,       ///< 1 where a = 0, else 0
  IsNegative = 7,   ///< 1 where a < 0, else 0
};
inline constexpr int kExtentOps = 8;

/// One step of an expression in postfix order: operands come first, the last term is the result.
struct ExtentTerm {
  ExtentOp op = ExtentOp::Constant;
  int64_t value = 0;

  bool operator==(const ExtentTerm&) const noexcept = default;
};

/// Limits of an expression: its number of terms, and the depth of the operand stack.
inline constexpr size_t kMostExtentTerms = 512;
inline constexpr size_t kMostExtentDepth = 32;

/// Number of operands that an operator pops from the stack.
constexpr int operands_of(ExtentOp op) noexcept {
  if (op == ExtentOp::Constant || op == ExtentOp::Symbol) return 0;
  return op == ExtentOp::IsZero || op == ExtentOp::IsNegative ? 1 : 2;
}

/// Whether the terms are one expression within the limits, whose symbols are below `symbols`.
bool is_expression(std::span<const ExtentTerm> terms, size_t symbols) noexcept;

/// The expression's value. symbols: extents, negative where one is not known. nullopt where a symbol is not
/// known, a divisor is 0, or a result exceeds int64. Only for terms that is_expression() accepts.
std::optional<int64_t> evaluate(std::span<const ExtentTerm> terms, std::span<const int64_t> symbols) noexcept;

/// floor(a / b) for b other than 0, and not the smallest int64 over -1.
constexpr int64_t floor_divide(int64_t a, int64_t b) noexcept {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

}  // namespace librt
