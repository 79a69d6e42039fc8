#include "tools/shaders/interface.h"

#include <algorithm>
#include <map>
#include <vector>

#include "tools/shaders/spirv.h"

namespace librt::spirv {
namespace {

enum Op : uint32_t {
  OpCapability = 17,
  OpTypeInt = 21,
  OpTypeFloat = 22,
  OpTypeVector = 23,
  OpTypeArray = 28,
  OpTypeStruct = 30,
  OpTypePointer = 32,
  OpConstant = 43,
  OpVariable = 59,
  OpDecorate = 71,
  OpMemberDecorate = 72,
};
constexpr uint32_t kPushConstant = 9;  // storage class
constexpr uint32_t kShader = 1;        // capability
constexpr uint32_t kSpecId = 1, kArrayStride = 6, kBinding = 33, kOffset = 35;

class Reader {
 public:
  explicit Reader(std::span<const uint32_t> words) : words_(words) {}

  Interface run(std::string& error) {
    if (!is_module(words_)) return fail(error, "expected a SPIR-V module");
    for (size_t at = kHeaderWords; at < words_.size();) {
      const uint32_t count = words_[at] >> 16, op = words_[at] & 0xffff;
      if (count == 0 || count > words_.size() - at) return fail(error, "an instruction is cut off");
      read(op, words_.subspan(at + 1, count - 1));
      at += count;
    }
    if (const auto pointer = types_.find(block_); block_ != 0 && pointer != types_.end())
      if (!add_members(pointer->second.operands[1], 0))
        return fail(error, "push constants of an unknown type");
    std::ranges::sort(result_.capabilities);
    return std::move(result_);
  }

 private:
  struct Type {
    uint32_t op = 0;
    std::vector<uint32_t> operands;
  };

  static Interface fail(std::string& error, const char* why) {
    error = why;
    return {};
  }

  void read(uint32_t op, std::span<const uint32_t> operands) {
    switch (op) {
      case OpCapability:
        if (operands[0] != kShader) result_.capabilities.push_back(operands[0]);
        break;
      case OpTypeInt:
      case OpTypeFloat:
      case OpTypeVector:
      case OpTypeArray:
      case OpTypeStruct:
      case OpTypePointer: types_[operands[0]] = {op, {operands.begin() + 1, operands.end()}}; break;
      case OpConstant: values_[operands[1]] = operands[2]; break;
      case OpVariable:
        if (operands[2] == kPushConstant) block_ = operands[0];
        break;
      case OpDecorate:
        if (operands[1] == kSpecId) result_.constants = std::max(result_.constants, operands[2] + 1);
        if (operands[1] == kArrayStride) strides_[operands[0]] = operands[2];
        if (operands[1] == kBinding && operands[2] < 32) result_.bindings |= 1u << operands[2];
        break;
      case OpMemberDecorate:
        if (operands[2] == kOffset) offsets_[{operands[0], operands[1]}] = operands[3];
        break;
      default: break;
    }
  }

  /// Writes the letters of a value of this type, `offset` bytes from the start.
  bool add_members(uint32_t type, uint32_t offset) {
    const auto found = types_.find(type);
    if (found == types_.end()) return false;
    const auto& [op, operands] = found->second;
    switch (op) {
      case OpTypeInt:
      case OpTypeFloat:
        if (operands[0] != 32 || offset % 4 != 0) return false;
        if (result_.push.size() <= offset / 4) result_.push.resize(offset / 4 + 1, '.');
        result_.push[offset / 4] = op == OpTypeFloat ? 'f' : 'i';
        return true;
      case OpTypeVector:
      case OpTypeArray: {
        const uint32_t count = op == OpTypeVector ? operands[1] : values_[operands[1]];
        const uint32_t stride = op == OpTypeVector ? 4 : strides_[type];
        for (uint32_t i = 0; i < count; ++i)
          if (!add_members(operands[0], offset + i * stride)) return false;
        return true;
      }
      case OpTypeStruct:
        for (uint32_t i = 0; i < operands.size(); ++i)
          if (!add_members(operands[i], offset + offsets_[{type, i}])) return false;
        return true;
      default: return false;
    }
  }

  std::span<const uint32_t> words_;
  std::map<uint32_t, Type> types_;       // by id: the operands after it
  std::map<uint32_t, uint32_t> values_;  // of constants
  std::map<uint32_t, uint32_t> strides_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> offsets_;
  uint32_t block_ = 0;  // type of the pointer to the push constants
  Interface result_;
};

}  // namespace

Interface interface_of(std::span<const uint32_t> words, std::string& error) {
  return Reader(words).run(error);
}

}  // namespace librt::spirv
