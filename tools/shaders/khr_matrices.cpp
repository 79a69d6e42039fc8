#include "tools/shaders/khr_matrices.h"

#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "tools/shaders/spirv.h"

namespace librt::spirv {
namespace {

constexpr size_t kBoundWord = 3;

enum Op : uint32_t {
  OpExtension = 10,
  OpCapability = 17,
  OpTypeInt = 21,
  OpConstantTrue = 41,
  OpConstantFalse = 42,
  OpConstant = 43,
  OpTypeCooperativeMatrixKHR = 4456,
  OpCooperativeMatrixLoadKHR = 4457,
  OpCooperativeMatrixStoreKHR = 4458,
  OpCooperativeMatrixMulAddKHR = 4459,
  OpCooperativeMatrixLengthKHR = 4460,
  OpTypeCooperativeMatrixNV = 5358,
  OpCooperativeMatrixLoadNV = 5359,
  OpCooperativeMatrixStoreNV = 5360,
  OpCooperativeMatrixMulAddNV = 5361,
  OpCooperativeMatrixLengthNV = 5362,
};
constexpr uint32_t kCapabilityNV = 5357, kCapabilityKHR = 6022;

/// Opcode and operands.
using Instruction = std::vector<uint32_t>;

enum Use : uint32_t { kFactorA, kFactorB, kSum, kUses };

std::string_view string_of(const Instruction& instruction) {
  const auto* text = reinterpret_cast<const char*>(instruction.data() + 1);
  return {text, strnlen(text, (instruction.size() - 1) * sizeof(uint32_t))};
}

Instruction extension(std::string_view name) {
  Instruction instruction(1 + name.size() / sizeof(uint32_t) + 1, 0);
  instruction[0] = OpExtension;
  std::memcpy(instruction.data() + 1, name.data(), name.size());
  return instruction;
}

class Rewriter {
 public:
  explicit Rewriter(std::span<const uint32_t> words) : words_(words) {}

  std::vector<uint32_t> run(std::string& error) {
    if (!split() || !look()) {
      error = error_;
      return {};
    }
    std::vector<uint32_t> out(words_.begin(), words_.begin() + kHeaderWords);
    out[kBoundWord] = bound_;
    for (const Instruction& instruction : instructions_) {
      append(out, rewritten(instruction));
      // The constants for uses and layouts, right after their type.
      if (instruction[0] == OpTypeInt && instruction[1] == uint_)
        for (uint32_t value = 0; value < kUses; ++value)
          append(out, {OpConstant, uint_, constants_[value], value});
    }
    return out;
  }

 private:
  bool fail(const char* why) {
    error_ = why;
    return false;
  }

  bool split() {
    if (!is_module(words_)) return fail("expected a SPIR-V module");
    bound_ = words_[kBoundWord];
    for (size_t at = kHeaderWords; at < words_.size();) {
      const size_t length = words_[at] >> 16;
      if (length == 0 || length > words_.size() - at) return fail("an instruction has a wrong length");
      Instruction& instruction = instructions_.emplace_back(
          words_.begin() + static_cast<ptrdiff_t>(at), words_.begin() + static_cast<ptrdiff_t>(at + length));
      instruction[0] &= 0xffff;
      at += length;
    }
    return true;
  }

  /// Finds the types and the use of each.
  bool look() {
    for (const Instruction& i : instructions_) {
      switch (i[0]) {
        case OpTypeInt:
          signed_.emplace(i[1], i[3] != 0);
          if (i[2] == 32 && i[3] == 0) uint_ = i[1];
          break;
        case OpConstantTrue: true_.insert(i[2]); break;
        case OpTypeCooperativeMatrixNV:
          if (uint_ == 0) return fail("a matrix type comes before the type uint");
          component_.emplace(i[1], i[2]);
          break;
        default: break;
      }
      // Where the words are not a result type and id, the entry is never looked up.
      if (i.size() > 2) type_.emplace(i[2], i[1]);
    }
    if (component_.empty()) return fail("the module has no cooperative matrices");
    for (const Instruction& i : instructions_) {
      if (i[0] != OpCooperativeMatrixMulAddNV) continue;
      const std::array<uint32_t, 4> types{type_.at(i[3]), type_.at(i[4]), type_.at(i[5]), i[1]};
      for (uint32_t operand = 0; operand < types.size(); ++operand) {
        const uint32_t use = operand < kUses ? operand : uint32_t{kSum};
        if (use_.emplace(types[operand], use).first->second != use)
          return fail("a matrix type takes two parts in multiplications");
      }
    }
    for (uint32_t& constant : constants_) constant = bound_++;
    return true;
  }

  uint32_t use_of(uint32_t type) const {
    const auto found = use_.find(type);
    return constants_[found == use_.end() ? uint32_t{kSum} : found->second];
  }
  /// Layout of a matrix in memory: 0 row-major, 1 column-major.
  uint32_t layout(uint32_t column_major) const { return constants_[true_.contains(column_major) ? 1 : 0]; }
  bool has_sign(uint32_t type) const {
    const auto found = signed_.find(component_.at(type));
    return found != signed_.end() && found->second;
  }

  Instruction rewritten(Instruction i) const {
    const auto with_rest = [&](Instruction head, size_t from) {
      head.insert(head.end(), i.begin() + static_cast<ptrdiff_t>(from), i.end());
      return head;
    };
    switch (i[0]) {
      case OpCapability:
        if (i[1] == kCapabilityNV) i[1] = kCapabilityKHR;
        return i;
      case OpExtension:
        if (string_of(i) == "SPV_NV_cooperative_matrix") return extension("SPV_KHR_cooperative_matrix");
        return i;
      case OpTypeCooperativeMatrixNV:
        i[0] = OpTypeCooperativeMatrixKHR;
        i.push_back(use_of(i[1]));
        return i;
      // Pointer, stride, column major become pointer, layout, stride; memory operands follow.
      case OpCooperativeMatrixLoadNV:
        return with_rest({OpCooperativeMatrixLoadKHR, i[1], i[2], i[3], layout(i[5]), i[4]}, 6);
      case OpCooperativeMatrixStoreNV:
        return with_rest({OpCooperativeMatrixStoreKHR, i[1], i[2], layout(i[4]), i[3]}, 5);
      case OpCooperativeMatrixMulAddNV: {
        i[0] = OpCooperativeMatrixMulAddKHR;
        uint32_t operands = 0;  // a bit for each matrix of signed integers: A, B, C, result
        for (uint32_t n = 0; n < kUses; ++n)
          if (has_sign(type_.at(i[3 + n]))) operands |= 1u << n;
        if (has_sign(i[1])) operands |= 8;
        if (operands != 0) i.push_back(operands);
        return i;
      }
      case OpCooperativeMatrixLengthNV: i[0] = OpCooperativeMatrixLengthKHR; return i;
      default: return i;
    }
  }

  static void append(std::vector<uint32_t>& out, const Instruction& instruction) {
    out.push_back(static_cast<uint32_t>(instruction.size() << 16) | instruction[0]);
    out.insert(out.end(), instruction.begin() + 1, instruction.end());
  }

  std::span<const uint32_t> words_;
  std::vector<Instruction> instructions_;
  std::string error_;
  uint32_t bound_ = 0, uint_ = 0;
  std::array<uint32_t, kUses> constants_{};
  std::map<uint32_t, uint32_t> type_;       ///< by result id
  std::map<uint32_t, uint32_t> component_;  ///< by matrix type
  std::map<uint32_t, uint32_t> use_;        ///< by matrix type
  std::map<uint32_t, bool> signed_;         ///< by integer type
  std::set<uint32_t> true_;
};

}  // namespace

std::vector<uint32_t> khr_matrices(std::span<const uint32_t> words, std::string& error) {
  return Rewriter(words).run(error);
}

}  // namespace librt::spirv
