// What a plan executes: the graph at concrete shapes, flattened into steps with kernels and values with
// storage.
//
// Knows: the data that the session's passes hand to each other. legalize() creates it, assign_storage() plans
// its memory, Plan records and runs it. Must not know: how any of them works.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/kernel_table.h"
#include "runtime/ops/page.h"
#include "runtime/session/device/device_set.h"
#include "runtime/session/memory/memory.h"

namespace librt {

/// Index into Program::values.
using Ref = uint32_t;
inline constexpr uint32_t kNone = 0xffffffffu;

enum class ValueSource : uint8_t {
  Input,     ///< index: of the graph's inputs
  Constant,  ///< host bytes, from the file or computed while planning
  State,     ///< index: of the model's states
  Step,      ///< index: of the step that writes it
  Alias,     ///< index: the value whose bytes, or a part of them, it shares under another shape
};

struct PlanValue {
  std::string name;
  TensorInfo info;
  ValueSource source = ValueSource::Step;
  uint32_t index = 0;
  uint8_t space = 0;    ///< not for constants: they are placed on each device that reads them
  uint32_t device = 0;  ///< that wrote it and defines its layout
  LayoutId layout = kDense;
  size_t bytes = 0;                 ///< in its layout
  const std::byte* host = nullptr;  ///< Constant: the bytes
  bool stable = false;              ///< Constant: the bytes live as long as the session
  /// Constant: the model's bytes that these are, or from which they were converted; null: they were computed.
  const std::byte* origin = nullptr;
  uint32_t storage = kNone;
  size_t offset = 0;  ///< where it begins: Alias: in the value that it shares, Step: in its storage
};

enum class StepKind : uint8_t { Kernel, Reorder, Copy, Transfer };

struct Step {
  StepKind kind = StepKind::Kernel;
  const Node* node = nullptr;  ///< Kernel
  std::string name;
  std::vector<Ref> inputs;  ///< kNone for an absent input
  std::vector<Ref> outputs;
  uint32_t device = 0;
  std::vector<const KernelRow*> candidates;  ///< Kernel, before one is chosen
  const KernelRow* row = nullptr;
  std::string choice;    ///< how the row was chosen, for plan texts
  std::string fallback;  ///< why the chosen device does not run this node; empty if it does
  KernelPtr kernel;      ///< Kernel, Reorder
  Requirements needs;
  uint32_t scratch = kNone;  ///< index of its storage
  uint32_t packed = kNone;   ///< index into Plan's packed locations
  ops::Cost cost;
  bool in_place = false;
};

/// A range of memory shared by one or more values. Those without a pin are in their space's arena.
struct Storage {
  enum class Pin : uint8_t { None, Input, Output, State };
  Pin pin = Pin::None;
  uint32_t index = 0;  ///< of the pinned input, output or state
  uint8_t space = 0;
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;  ///< live range, in steps
  uint64_t offset = 0;           ///< in the arena
};

struct Program {
  std::vector<PlanValue> values;
  std::vector<Step> steps;
  std::vector<Ref> inputs_used;  ///< ValueSource::Input values that live in a device's arena
  std::vector<Ref> outputs;      ///< for each graph output; dense
  struct Update {
    uint32_t state = 0;
    Ref value = kNone;
    bool in_place = false;
  };
  std::vector<Update> updates;
  std::vector<Storage> storages;
  std::vector<uint64_t> arena_bytes;  ///< for each space: the planned peak
  std::vector<uint64_t> naive_bytes;
  std::array<std::unique_ptr<Node>, kDTypeCount> casts;  ///< nodes of float conversion steps, by type
  std::vector<std::unique_ptr<Node>> joins;              ///< nodes that no graph has (slice_batch.h)
  std::vector<AlignedBytes> computed;                    ///< bytes of constants owned by this program
  size_t folded_nodes = 0;                               ///< nodes evaluated while planning
  size_t dead_nodes = 0;
  ops::Cost total;
  size_t fallbacks = 0;
};

/// The value that owns the storage: follows aliases.
inline Ref root_of(const Program& program, Ref value) noexcept {
  while (program.values[value].source == ValueSource::Alias) value = program.values[value].index;
  return value;
}

/// Where the value begins in the storage of its root.
inline size_t offset_of(const Program& program, Ref value) noexcept {
  size_t offset = program.values[value].offset;
  while (program.values[value].source == ValueSource::Alias) {
    value = program.values[value].index;
    offset += program.values[value].offset;
  }
  return offset;
}

/// Bit i: the kernel's factory read input i's value, so it is not bound when the kernel is recorded.
inline uint32_t unbound_inputs(const Step& step) noexcept {
  uint32_t mask = step.needs.replaced_inputs;
  if (step.node != nullptr)
    if (const ops::Page* page = ops::page_of(step.node->kind())) mask |= page->shape_operands;
  return mask;
}

}  // namespace librt
