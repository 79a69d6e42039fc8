// Adjacent optimizer steps of one command list, which a backend may launch together, against the same steps
// in lists of their own: the same bits, on the device of the backend argv[1]. Counts launches where the
// backend can be asked.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "runtime/backend/kernel_table.h"
#include "runtime/backend/registry.h"
#include "runtime/core/element.h"
#include "runtime/geometry/step_form.h"
#include "tests/support/backend_main.h"

namespace librt {
namespace {

using test::backend_name;
Device* device = nullptr;

/// Whether launches are counted when they run, as the emulated CUDA device does, or when they are recorded,
/// as a layer of Vulkan does whose library RT_TEST_DISPATCHES names.
bool counts_runs() {
  return backend_name == "cuda_emu";
}
bool counts_records() {
  return std::getenv("RT_TEST_DISPATCHES") != nullptr;
}

/// Of this process so far.
uint64_t launches() {
  std::string path;
  if (counts_records()) {
    path = std::getenv("RT_TEST_DISPATCHES");
  } else {
    const char* const folders = std::getenv("RT_MODULE_PATH");
    path = folders != nullptr ? folders : "";
    path = path.substr(0, path.find(':')) + "/librt_cuda_emu.so";
  }
  void* const library = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  const auto count = reinterpret_cast<uint64_t (*)()>(
      library != nullptr ? dlsym(library, counts_records() ? "recorded_dispatches" : "cuda_emulator_launches")
                         : nullptr);
  if (library != nullptr) dlclose(library);
  EXPECT_NE(count, nullptr) << path << " counts nothing";
  return count != nullptr ? count() : 0;
}

/// Values in one slab, which steps share or have for themselves.
class Memory {
 public:
  BufferRef add(DType type, int64_t count, double low, double high) {
    const size_t bytes = size_of(type) * static_cast<size_t>(count);
    const BufferRef ref{0, bytes_.size(), bytes};
    bytes_.resize((bytes_.size() + bytes + 255) / 256 * 256);
    std::uniform_real_distribution<double> numbers(low, high);
    for (int64_t i = 0; i < count; ++i) store_element(&bytes_[ref.offset], type, i, numbers(random_));
    return ref;
  }
  BufferRef add(const std::vector<float>& values) {
    const BufferRef ref = add(DType::F32, static_cast<int64_t>(values.size()), 0, 1);
    std::memcpy(&bytes_[ref.offset], values.data(), ref.bytes);
    return ref;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::mt19937 random_{7};
  std::vector<std::byte> bytes_;
};

struct Recorded {
  KernelPtr kernel;
  std::vector<BufferRef> inputs, outputs;
};

/// A copy that comes after the step of this index.
struct Copy {
  size_t after;
  BufferRef to, from;
};

class Steps {
 public:
  Memory memory;
  std::vector<Copy> copies;
  bool skipped = false;
  bool two_passes = false;  ///< each step is two launches

  size_t count() const { return steps_.size(); }
  const BufferRef& parameter(size_t step) const { return steps_[step].outputs[0]; }

  /// A step that updates `count` elements in place, or not; with these instead of a new weight and gradient.
  struct How {
    DType type = DType::F32;
    bool in_place = true;
    std::optional<BufferRef> parameter = {}, grad = {};
  };
  /// False: the backend has no kernel for it.
  template <class Attributes>
  bool add(Attributes attributes, int64_t count, How how) {
    if (!rate_.present()) {
      rate_ = memory.add({0.01f});
      scale_ = memory.add({0.5f});
      step_ = memory.add(DType::I32, 1, 3.2, 3.4);
      skip_ = memory.add(DType::Bool, 1, skipped ? 1 : 0, skipped ? 1 : 0);
      books_[0] = memory.add(ascending(-1));
      books_[1] = memory.add(ascending(0));
    }
    Node node;
    node.op = make_op(attributes);
    const bool blocks = node.kind() == OpKind::BlockwiseStep;
    const size_t operands = blocks ? 14 : 9;
    std::vector<Operand> inputs(operands);
    std::vector<BufferRef> refs(operands);
    std::vector<TensorInfo> outputs;
    std::vector<BufferRef> results;
    const auto bind = [&](size_t i, DType type, const Shape& shape, const BufferRef& ref) {
      inputs[i] = {.present = true, .info = {.dtype = type, .shape = shape}, .value = nullptr};
      refs[i] = ref;
    };
    const auto result = [&](size_t i) {
      outputs.push_back(inputs[i].info);
      results.push_back(how.in_place ? refs[i]
                                     : memory.add(inputs[i].info.dtype, inputs[i].info.elements(), 0, 1));
    };
    const Shape shape = {count};
    bind(0, how.type, shape, how.parameter ? *how.parameter : memory.add(how.type, count, -1, 1));
    bind(1, how.type, shape, how.grad ? *how.grad : memory.add(how.type, count, -1, 1));
    result(0);
    // Operands by the tables of schema/ops.fbs: all states, then the scalars.
    const StepRule rule = rule_of(node);
    const std::vector<size_t> states = rule == StepRule::Sgd    ? std::vector<size_t>{2}
                                       : rule == StepRule::Lion ? std::vector<size_t>{2}
                                                                : std::vector<size_t>{2, 3};
    const size_t shift = blocks ? 5 : 0;
    for (size_t s = 0; s < states.size(); ++s) {
      if (!blocks) {
        bind(states[s], DType::F32, shape, memory.add(DType::F32, count, 0, 1));
        result(states[s]);
        continue;
      }
      bind(shift + states[s], DType::U8, shape, memory.add(DType::U8, count, 0, 255));
      result(shift + states[s]);
      const bool negative = s == 0;
      bind(negative ? 2 : 3, DType::F32, {256}, books_[negative ? 0 : 1]);
    }
    for (size_t s = 0; blocks && s < states.size(); ++s) {
      const int64_t scales = (count + 255) / 256;
      bind(4 + s, DType::F32, {scales}, memory.add(DType::F32, scales, 0.1, 1));
      result(4 + s);
    }
    const bool adam = rule == StepRule::Adam || rule == StepRule::Lamb;
    if (adam) bind(shift + 4, DType::I32, {}, step_);
    bind(shift + (adam ? 5 : 3), DType::F32, {}, rate_);
    const size_t scale = rule == StepRule::Sgd    ? 5
                         : rule == StepRule::Adam ? 7
                         : rule == StepRule::Lamb ? 6
                                                  : 4;
    bind(shift + scale, DType::F32, {}, scale_);
    bind(shift + scale + 1, DType::Bool, {}, skip_);
    const NodeView view{node, inputs, outputs};
    const auto rows = device->kernels().candidates(*device, view);
    if (!rows.ok()) return false;
    auto kernel = rows->at(0)->create(*device, view, std::vector<LayoutId>(operands, kDense));
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    if (kernel.ok()) steps_.push_back({std::move(*kernel), refs, results});
    return true;
  }

  /// The memory after two submissions, with all steps in one list or each in one of its own.
  std::vector<std::byte> run(bool together, uint64_t& launched) {
    std::vector<std::byte> after(memory.bytes().size());
    size_t scratch = 0;
    for (const Recorded& step : steps_) scratch = std::max(scratch, step.kernel->requirements().scratch);
    auto values = device->allocate(after.size()), shared = device->allocate(std::max<size_t>(scratch, 256));
    EXPECT_TRUE(values.ok() && shared.ok());
    EXPECT_TRUE(device->upload(**values, 0, memory.bytes()).ok());
    Slab* const slots[] = {values->get(), shared->get()};
    std::vector<CommandListPtr> lists;
    const uint64_t before_recording = counts_records() ? launches() : 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (i == 0 || !together) {
        auto list = device->begin({.slots = slots, .spans = static_cast<uint32_t>(steps_.size())});
        EXPECT_TRUE(list.ok()) << list.status().message();
        if (!list.ok()) return {};
        lists.push_back(std::move(*list));
      }
      EXPECT_TRUE(lists.back()->mark(static_cast<uint32_t>(i)).ok());
      const Recorded& step = steps_[i];
      Bindings bindings{.inputs = step.inputs, .outputs = step.outputs, .scratch = {}, .packed = {}};
      const size_t own = step.kernel->requirements().scratch;
      if (own > 0) bindings.scratch = {1, 0, own};
      const Status recorded = step.kernel->record(*lists.back(), bindings);
      EXPECT_TRUE(recorded.ok()) << recorded.message();
      for (const Copy& copy : copies)
        if (copy.after == i) {
          EXPECT_TRUE(lists.back()->copy(copy.to, copy.from).ok());
        }
    }
    for (const CommandListPtr& list : lists) EXPECT_TRUE(list->finish().ok());
    if (counts_records()) launched = launches() - before_recording;
    for (int round = 0; round < 2; ++round) {
      const uint64_t before = counts_runs() ? launches() : 0;
      for (const CommandListPtr& list : lists) {
        const Status submitted = list->submit();
        EXPECT_TRUE(submitted.ok()) << submitted.message();
        EXPECT_TRUE(list->wait().ok());
      }
      if (counts_runs()) launched = launches() - before;
    }
    EXPECT_TRUE(device->download(**values, 0, after).ok());
    lists.clear();
    return after;
  }

  /// The same bits, with so many launches, and on Vulkan dispatches, two for a group, where they are counted.
  void check(uint64_t cuda_launches, uint64_t dispatches) {
    uint64_t launched = 0, launched_single = 0;
    const std::vector<std::byte> single = run(false, launched_single), together = run(true, launched);
    ASSERT_EQ(single.size(), together.size());
    EXPECT_NE(single, memory.bytes()) << "nothing was computed";
    for (size_t i = 0; i < single.size(); ++i)
      ASSERT_EQ(single[i], together[i]) << "byte " << i << " of " << single.size();
    if (!counts_runs() && !counts_records()) return;
    EXPECT_EQ(launched, counts_runs() ? cuda_launches : dispatches);
    EXPECT_EQ(launched_single, (counts_records() || two_passes ? 2 : 1) * steps_.size());
  }

 private:
  using StepRule = op::StepRule;
  static StepRule rule_of(const Node& node) {
    switch (node.kind()) {
      case OpKind::SgdStep: return StepRule::Sgd;
      case OpKind::LionStep: return StepRule::Lion;
      case OpKind::LambStep: return StepRule::Lamb;
      case OpKind::BlockwiseStep: return node.as<op::BlockwiseStepAttributes>().step;
      default: return StepRule::Adam;
    }
  }
  static std::vector<float> ascending(float low) {
    std::vector<float> values(256);
    for (size_t i = 0; i < values.size(); ++i) values[i] = low + (1 - low) * static_cast<float>(i) / 255;
    return values;
  }
  std::vector<Recorded> steps_;
  BufferRef rate_, scale_, step_, skip_, books_[2];
};

op::SgdStepAttributes sgd() {
  op::SgdStepAttributes attributes;
  attributes.momentum = 0.9f;
  return attributes;
}
op::AdamStepAttributes adam(float decay = 0) {
  op::AdamStepAttributes attributes;
  attributes.weight_decay = decay;
  attributes.decoupled = true;
  return attributes;
}
op::BlockwiseStepAttributes blockwise() {
  op::BlockwiseStepAttributes attributes;
  attributes.step = op::StepRule::Adam;
  attributes.beta1 = 0.9f;
  attributes.beta2 = 0.999f;
  attributes.epsilon = 1e-8f;
  return attributes;
}

const int64_t kCounts[] = {1, 3, 64, 1023, 1024, 1025, 4, 7000};

TEST(StepGroups, WeightsOfOneFormAreOneLaunch) {
  Steps steps;
  for (const int64_t count : kCounts) ASSERT_TRUE(steps.add(adam(), count, {}));
  steps.check(1, 2);
}

TEST(StepGroups, MoreThanATableHolds) {
  Steps steps;
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(steps.add(sgd(), 1 + i * 7 % 90, {}));
  steps.check(3, 4);
}

TEST(StepGroups, MixedOptimizersAndDecays) {
  Steps steps;
  for (const int64_t count : kCounts) {
    steps.add(adam(0.1f), count, {});
    steps.add(adam(), count + 1, {});
    steps.add(sgd(), count, {});
    steps.add(op::LionStepAttributes{}, count, {});
  }
  steps.check(4, 8);
}

TEST(StepGroups, EachElementType) {
  Steps steps;
  for (const int64_t count : kCounts)
    for (const DType type : {DType::F32, DType::F16, DType::BF16}) steps.add(adam(), count, {.type = type});
  steps.check(3, 2);
}

TEST(StepGroups, QuantizedStates) {
  Steps steps;
  for (const int64_t count : {256, 1, 4096, 5000, 255})
    if (!steps.add(blockwise(), count, {}))
      GTEST_SKIP() << backend_name << " has no kernel for quantized states";
  steps.check(1, 10);
}

TEST(StepGroups, LambIsTwoLaunches) {
  Steps steps;
  for (const int64_t count : kCounts)
    if (!steps.add(op::LambStepAttributes{}, count, {}))
      GTEST_SKIP() << backend_name << " has no kernel for Lamb";
  steps.two_passes = true;
  steps.check(2, 2 * std::size(kCounts));
}

TEST(StepGroups, LambOutOfPlaceAndSkipped) {
  for (const bool skipped : {false, true}) {
    Steps steps;
    steps.skipped = skipped;
    steps.two_passes = true;
    for (const int64_t count : kCounts)
      for (const bool in_place : {true, false})
        if (!steps.add(op::LambStepAttributes{}, count, {.in_place = in_place}))
          GTEST_SKIP() << backend_name << " has no kernel for Lamb";
    steps.check(4, 4 * std::size(kCounts));
  }
}

TEST(StepGroups, OutOfPlace) {
  Steps steps;
  for (const int64_t count : kCounts) {
    ASSERT_TRUE(steps.add(adam(), count, {.in_place = false}));
    ASSERT_TRUE(steps.add(adam(), count, {}));
  }
  steps.check(2, 32);
}

TEST(StepGroups, AStepThatReadsAnEarlierResultComesAfterIt) {
  Steps steps;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(steps.add(adam(), 1000, {}));
    ASSERT_TRUE(steps.add(adam(), 1000, {.grad = steps.parameter(steps.count() - 1)}));
    ASSERT_TRUE(steps.add(adam(), 1000, {.parameter = steps.parameter(steps.count() - 2)}));
  }
  // 1 | 2 | 3 and 4 | 5 | 6 and 7 | 8 | 9
  steps.check(7, 14);
}

TEST(StepGroups, WhatReadsAnEarlierWeightSeesTheStepBefore) {
  Steps steps;
  for (const int64_t count : kCounts) {
    ASSERT_TRUE(steps.add(sgd(), count, {}));
    const BufferRef weight = steps.parameter(steps.count() - 1);
    const BufferRef kept = steps.memory.add(DType::F32, count, 0, 1);
    steps.copies.push_back({steps.count() - 1, kept, weight});
  }
  steps.check(std::size(kCounts), 2 * std::size(kCounts));
}

TEST(StepGroups, ASkippedStepKeepsEverything) {
  Steps steps;
  steps.skipped = true;
  for (const int64_t count : kCounts) {
    ASSERT_TRUE(steps.add(adam(), count, {}));
    steps.add(blockwise(), count, {});
  }
  // Out of place: something to see.
  ASSERT_TRUE(steps.add(adam(), 1000, {.in_place = false}));
  steps.check(3, 34);
}

TEST(StepGroups, TheNormOfAllGradientsIsTwoLaunches) {
  if (!counts_runs()) GTEST_SKIP() << "not on the emulated CUDA device";
  Memory memory;
  Recorded norm;
  std::vector<Operand> inputs;
  for (int64_t i = 0; i < 150; ++i) {
    inputs.push_back(
        {.present = true, .info = {.dtype = DType::F32, .shape = {1 + i * 131}}, .value = nullptr});
    norm.inputs.push_back(memory.add(DType::F32, 1 + i * 131, -1, 1));
  }
  norm.outputs.push_back(memory.add(DType::F32, 1, 0, 0));
  Node node;
  node.op = make_op(op::GlobalNormAttributes{});
  const TensorInfo scalar{.dtype = DType::F32, .shape = {}};
  const NodeView view{node, inputs, std::span(&scalar, 1)};
  const auto rows = device->kernels().candidates(*device, view);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  auto kernel = rows->at(0)->create(*device, view, std::vector<LayoutId>(inputs.size(), kDense));
  ASSERT_TRUE(kernel.ok());
  const size_t scratch = (*kernel)->requirements().scratch;
  auto values = device->allocate(memory.bytes().size()), partial = device->allocate(scratch);
  ASSERT_TRUE(values.ok() && partial.ok());
  ASSERT_TRUE(device->upload(**values, 0, memory.bytes()).ok());
  Slab* const slots[] = {values->get(), partial->get()};
  auto list = device->begin({.slots = slots, .spans = 1});
  ASSERT_TRUE(list.ok());
  ASSERT_TRUE((*kernel)->record(**list, {norm.inputs, norm.outputs, {1, 0, scratch}, {}}).ok());
  ASSERT_TRUE((*list)->finish().ok());
  const uint64_t before = launches();
  ASSERT_TRUE((*list)->submit().ok());
  ASSERT_TRUE((*list)->wait().ok());
  EXPECT_EQ(launches() - before, 2u);
  double sum = 0;
  for (const BufferRef& ref : norm.inputs)
    for (size_t i = 0; i < ref.bytes / sizeof(float); ++i) {
      float x = 0;
      std::memcpy(&x, &memory.bytes()[ref.offset + i * sizeof x], sizeof x);
      sum += static_cast<double>(x) * static_cast<double>(x);
    }
  float found = 0;
  ASSERT_TRUE(
      device->download(**values, norm.outputs[0].offset, std::as_writable_bytes(std::span(&found, 1))).ok());
  EXPECT_NEAR(static_cast<double>(found), std::sqrt(sum), 1e-6 * std::sqrt(sum));
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv, [](librt::Device& device) { librt::device = &device; });
}
