#include "runtime/graph/extent.h"

#include <algorithm>
#include <array>
#include <limits>

namespace librt {

bool is_expression(std::span<const ExtentTerm> terms, size_t symbols) noexcept {
  if (terms.empty() || terms.size() > kMostExtentTerms) return false;
  size_t depth = 0;
  for (const ExtentTerm& term : terms) {
    if (static_cast<int>(term.op) >= kExtentOps) return false;
    if (term.op == ExtentOp::Symbol && (term.value < 0 || static_cast<uint64_t>(term.value) >= symbols))
      return false;
    const auto operands = static_cast<size_t>(operands_of(term.op));
    if (depth < operands) return false;
    depth += 1 - operands;
    if (depth > kMostExtentDepth) return false;
  }
  return depth == 1;
}

std::optional<int64_t> evaluate(std::span<const ExtentTerm> terms,
                                std::span<const int64_t> symbols) noexcept {
  std::array<int64_t, kMostExtentDepth + 2> stack;
  size_t depth = 0;
  for (const ExtentTerm& term : terms) {
    if (operands_of(term.op) == 2) --depth;
    int64_t* const a = depth > 0 ? &stack[depth - 1] : stack.data();
    const int64_t b = stack[depth];  // of operators with two operands
    switch (term.op) {
      case ExtentOp::Constant: stack[depth++] = term.value; break;
      case ExtentOp::Symbol:
        if (symbols[static_cast<size_t>(term.value)] < 0) return std::nullopt;
        stack[depth++] = symbols[static_cast<size_t>(term.value)];
        break;
      case ExtentOp::Add:
        if (__builtin_add_overflow(*a, b, a)) return std::nullopt;
        break;
      case ExtentOp::Multiply:
        if (__builtin_mul_overflow(*a, b, a)) return std::nullopt;
        break;
      case ExtentOp::FloorDivide:
        if (b == 0 || (b == -1 && *a == std::numeric_limits<int64_t>::min())) return std::nullopt;
        *a = floor_divide(*a, b);
        break;
      case ExtentOp::Maximum: *a = std::max(*a, b); break;
      case ExtentOp::IsZero: *a = *a == 0; break;
      case ExtentOp::IsNegative: *a = *a < 0; break;
    }
  }
  return stack[0];
}

}  // namespace librt
