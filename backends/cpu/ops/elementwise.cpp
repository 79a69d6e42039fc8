// Chains of element-wise operators: blocks of elements go through all steps while they are in L1.
//
// Steps are the vector loops of the single operators, from block to block; booleans are bytes, 16-bit floats
// are widened, and each step's result is rounded, as between nodes. A value that is the same along a run of
// the result is computed once per block.
#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/geometry/elementwise.h"

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/binary.h"
#include "backends/cpu/simd/select.h"
#include "backends/cpu/simd/unary.h"
#include "backends/cpu/support/elementwise_layouts.h"
#include "backends/cpu/support/function_work.h"
#include "backends/cpu/support/widen_blocks.h"
#include "runtime/geometry/broadcast.h"
#include "runtime/geometry/in_place.h"

namespace librt::cpu {
namespace {

using Form = ElementwiseStep::Form;

/// An operand or the result of a step within a block: `advances`, or one element for all of it.
struct BlockValue {
  const std::byte* data = nullptr;
  bool advances = false;
};

constexpr size_t kMostInputs = kMostElementwiseInputs, kMostValues = kMostInputs + kMostElementwiseSteps;
/// Rows shorter than this go through the steps several at a time.
constexpr int64_t kLongRow = kWideBlock / 2;

/// How an input lies in a run of the result, which is a row or, where rows are short, several rows of `row`
/// elements.
struct RunInput {
  bool advances = false;  ///< else it is one element
  /// Its rows are copied into a buffer, since it is not dense: step is 1, or 0 if the row repeats an element;
  /// row_stride is 0 if all rows are the same.
  bool copied = false;
  int64_t step = 0, row_stride = 0;
};

/// The loops of a chain's steps, chosen for which of its values advance.
struct ChainLoops {
  ElementwiseProgram program;
  DType dtype = DType::F32;
  const Simd* simd = nullptr;
  int64_t row = 0;
  std::array<RunInput, kMostInputs> inputs{};
  std::array<bool, kMostValues> advances{}, is_bool{};

  int64_t size_of_input(size_t i) const noexcept {
    return is_bool[i] ? 1 : static_cast<int64_t>(size_of(dtype));
  }
  /// By step: its loop, by form, and the buffer of its result, which is none of its operands'.
  struct Step {
    UnaryLoops::Unary unary = nullptr;
    BinaryLoops::Binary binary = nullptr;
    BinaryLoops::Compare compare = nullptr;
    uint8_t buffer = 0;
  };
  std::array<Step, kMostElementwiseSteps> steps{};
};

Advance advance_of(bool first, bool second) noexcept {
  return first == second ? Advance::Both : first ? Advance::First : Advance::Second;
}

/// Reuses the buffers of values that no later step reads.
void assign_buffers(ChainLoops& chain) {
  const auto all = chain.program.all();
  const auto last_reader = chain.program.last_readers();
  uint32_t taken = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    chain.steps[i].buffer = static_cast<uint8_t>(std::countr_one(taken));
    taken |= 1u << chain.steps[i].buffer;
    // Not those of this step's operands: a loop may read an operand again after it has written a result.
    for (size_t j = 0; j < i; ++j)
      if (last_reader[j] == i) taken &= ~(1u << chain.steps[j].buffer);
  }
}

using Plan = BroadcastPlan<kMostElementwiseInputs>;

/// Makes short rows, with the axis around them, the runs of the plan; sets the chain's inputs and row.
void choose_runs(ChainLoops& chain, Plan& plan) {
  const auto last = static_cast<size_t>(plan.rank - 1);
  chain.row = plan.inner();
  const bool several = plan.rank > 1 && chain.row < kLongRow;
  for (size_t i = 0; i < kMostInputs; ++i) {
    RunInput& input = chain.inputs[i];
    input.step = plan.stride[i][last];
    input.row_stride = several ? plan.stride[i][last - 1] : 0;
    input.advances = input.step != 0 || input.row_stride != 0;
    input.copied = several && input.advances && (input.step == 0 || input.row_stride != chain.row);
    chain.advances[i] = input.advances;
    plan.stride[i][several ? last - 1 : last] = 0;  // the position in the run says it
  }
  if (!several) return;
  plan.extent[last - 1] *= chain.row;
  --plan.rank;
}

ChainLoops loops_of(const CpuDevice& device, const NodeView& node, const ElementwiseProgram& program,
                    Plan& plan) {
  ChainLoops chain{.program = program, .dtype = node.dtype(0), .simd = &device.simd()};
  const auto inputs = static_cast<size_t>(program.inputs);
  choose_runs(chain, plan);
  for (size_t i = 0; i < inputs; ++i) chain.is_bool[i] = node.dtype(i) == DType::Bool;
  const auto& unary = device.simd().loops<UnaryLoops>();
  const auto& binary = device.simd().loops<BinaryLoops>();
  for (size_t i = 0; i < program.all().size(); ++i) {
    const ElementwiseStep& step = program.steps[i];
    const bool a = chain.advances[step.operands[0]];
    const bool b = step.operand_count() > 1 && chain.advances[step.operands[1]];
    const bool c = step.operand_count() > 2 && chain.advances[step.operands[2]];
    chain.advances[inputs + i] = a || b || c;
    chain.is_bool[inputs + i] = step.gives_bool();
    const auto advance = static_cast<size_t>(advance_of(a, b));
    ChainLoops::Step& loops = chain.steps[i];
    if (step.form == Form::Unary) loops.unary = unary.unary[step.function];
    if (step.form == Form::Binary) loops.binary = binary.binary[step.function][advance];
    if (step.form == Form::Compare) loops.compare = binary.compare[step.function][advance];
  }
  assign_buffers(chain);
  return chain;
}

/// And, Or and Not of bytes; b: that of Not is its operand.
void logic(const ElementwiseStep& step, const BlockValue& a, const BlockValue& b, uint8_t* y,
           int64_t n) noexcept {
  const auto *first = reinterpret_cast<const uint8_t*>(a.data),
             *second = reinterpret_cast<const uint8_t*>(b.data);
  const int64_t step_a = a.advances ? 1 : 0, step_b = b.advances ? 1 : 0;
  const bool is_not = step.form == Form::Unary;
  const bool is_and = !is_not && static_cast<BinaryFunction>(step.function) == BinaryFunction::And;
  for (int64_t i = 0; i < n; ++i) {
    const bool x = first[i * step_a] != 0, z = second[i * step_b] != 0;
    y[i] = is_not ? !x : is_and ? x && z : x || z;
  }
}

/// One condition for all n elements.
void select_one(bool yes, const BlockValue& a, const BlockValue& b, float* y, int64_t n) noexcept {
  const BlockValue& from = yes ? a : b;
  if (from.advances)
    std::memmove(y, from.data, static_cast<size_t>(n) * sizeof(float));
  else
    std::fill_n(y, n, *reinterpret_cast<const float*>(from.data));
}

void run_step(const ChainLoops& chain, size_t index, const std::array<BlockValue, kMostValues>& values,
              void* result, int64_t n) noexcept {
  const ElementwiseStep& step = chain.program.steps[index];
  const ChainLoops::Step& loops = chain.steps[index];
  const BlockValue &a = values[step.operands[0]], &b = values[step.operands[1]],
                   &c = values[step.operands[2]];
  const auto* first = reinterpret_cast<const float*>(a.data);
  const auto* second = reinterpret_cast<const float*>(b.data);
  auto* y = static_cast<float*>(result);
  if (step.gives_bool() && step.form != Form::Compare)
    return logic(step, a, b, static_cast<uint8_t*>(result), n);
  switch (step.form) {
    case Form::Unary:
      if (chain.is_bool[step.operands[0]])  // a Cast
        for (int64_t i = 0; i < n; ++i) y[i] = a.data[a.advances ? i : 0] != std::byte{0} ? 1.0f : 0.0f;
      else
        loops.unary(first, y, n, step.alpha, step.beta);
      return;
    case Form::Binary: return loops.binary(first, second, y, n);
    case Form::Compare: return loops.compare(first, second, static_cast<uint8_t*>(result), n);
    case Form::Select: {
      const auto* condition = reinterpret_cast<const uint8_t*>(a.data);
      if (!a.advances) return select_one(*condition != 0, b, c, y, n);
      chain.simd->loops<SelectLoops>().select[2](condition, b.data, c.data, result, n, b.advances,
                                                 c.advances);
    }
  }
}

/// Elements [at, at + n) of a run of an input whose rows are at `from`, one after the other.
template <class T>
void copy_rows(const RunInput& input, int64_t row, const std::byte* from, std::byte* to, int64_t at,
               int64_t n) noexcept {
  const auto* elements = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  int64_t column = at % row;
  for (const T* x = elements + at / row * input.row_stride; n > 0; x += input.row_stride, column = 0) {
    const int64_t count = std::min(row - column, n);
    if (input.step == 0) {
      const T element = *x;
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) y[i] = element;
    } else {
      std::copy_n(x + column, count, y);
    }
    y += count;
    n -= count;
  }
}

void copy_rows(const ChainLoops& chain, size_t input, const std::byte* from, std::byte* to, int64_t at,
               int64_t n) noexcept {
  switch (chain.size_of_input(input)) {
    case 1: return copy_rows<uint8_t>(chain.inputs[input], chain.row, from, to, at, n);
    case 2: return copy_rows<uint16_t>(chain.inputs[input], chain.row, from, to, at, n);
    default: return copy_rows<uint32_t>(chain.inputs[input], chain.row, from, to, at, n);
  }
}

/// The buffers of a thread, which stay in L1: 2 KB for each value that a chain has at a time.
struct ChainBuffers {
  alignas(64) float results[kMostElementwiseSteps][kWideBlock];
  alignas(64) float widened[kMostInputs][kWideBlock];
  alignas(64) std::byte rows[kMostInputs][(kWideBlock + kLongRow) * sizeof(float)];
  alignas(64) uint16_t rounded[kWideBlock];
};

/// Elements [at, at + n) of an input in a run; first_block: of those that the caller computes one by one.
BlockValue block_of_input(const ChainLoops& chain, ChainBuffers& buffers, size_t index, const std::byte* from,
                          int64_t at, int64_t n, bool first_block) noexcept {
  const RunInput& input = chain.inputs[index];
  const int64_t size = chain.size_of_input(index);
  BlockValue value{from, input.advances};
  if (input.copied && input.row_stride == 0) {
    // Equal rows: copied once, as many as a block has wherever it begins; later ones are not longer.
    if (first_block) copy_rows(chain, index, from, buffers.rows[index], 0, n + chain.row);
    value.data = buffers.rows[index] + at % chain.row * size;
  } else if (input.copied) {
    copy_rows(chain, index, from, buffers.rows[index], at, n);
    value.data = buffers.rows[index];
  } else if (input.advances) {
    value.data += at * size;
  }
  if (size != sizeof(uint16_t)) return value;
  widen_block(*chain.simd, chain.dtype, reinterpret_cast<const uint16_t*>(value.data), buffers.widened[index],
              input.advances ? n : 1);
  value.data = reinterpret_cast<const std::byte*>(buffers.widened[index]);
  return value;
}

/// n results from position `at` of a run on, whose inputs begin at `from`, by way of blocks that fit L1.
void run_chain(const ChainLoops& chain, const std::array<const std::byte*, kMostInputs>& from, std::byte* y,
               int64_t at, int64_t n) noexcept {
  ChainBuffers buffers;
  const auto inputs = static_cast<size_t>(chain.program.inputs);
  const size_t count = chain.program.all().size();
  const bool halves = chain.dtype != DType::F32;
  const auto size = static_cast<int64_t>(size_of(chain.dtype));
  std::array<BlockValue, kMostValues> values;
  for (int64_t done = 0; done < n; done += kWideBlock) {
    const int64_t block = std::min(kWideBlock, n - done);
    for (size_t i = 0; i < inputs; ++i)
      values[i] = block_of_input(chain, buffers, i, from[i], at + done, block, done == 0);
    for (size_t i = 0; i < count; ++i) {
      const size_t value = inputs + i;
      const bool last = i + 1 == count;
      const int64_t length = chain.advances[value] ? block : 1;
      std::byte* const to = y + done * size;
      void* result = last && !halves ? static_cast<void*>(to) : buffers.results[chain.steps[i].buffer];
      run_step(chain, i, values, result, length);
      values[value] = {static_cast<const std::byte*>(result), chain.advances[value]};
      if (!halves || chain.is_bool[value]) continue;
      uint16_t* const narrow = last ? reinterpret_cast<uint16_t*>(to) : buffers.rounded;
      narrow_block(*chain.simd, chain.dtype, static_cast<const float*>(result), narrow, length);
      if (!last) widen_block(*chain.simd, chain.dtype, narrow, static_cast<float*>(result), length);
    }
  }
}

int64_t chain_work(const ElementwiseProgram& program) noexcept {
  int64_t work = 0;
  for (const ElementwiseStep& step : program.all())
    work += step.form == Form::Unary ? work_of(static_cast<Function>(step.function))
            : step.form == Form::Binary && step.function == static_cast<uint8_t>(BinaryFunction::Pow) ? 8
                                                                                                      : 1;
  return work;
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers producers) {
  RT_ASSIGN(const ElementwiseProgram program, elementwise_program(node));
  std::array<Shape, kMostElementwiseInputs> shapes;
  for (size_t i = 0; i < node.input_count(); ++i) shapes[i] = node.shape(i);
  Plan plan = broadcast_plan<kMostElementwiseInputs>(node.output(0).shape, shapes);
  const ChainLoops chain = loops_of(device, node, program, plan);
  Requirements requirements;
  if (const auto operand = operand_like_result(node)) requirements = in_place(*operand);
  const Layouts layouts = node.dtype(0) == DType::F32 ? elementwise_layouts(node, producers) : Layouts{};
  return make_kernel(
      [=, n = node.output(0).elements(), work = chain_work(program)](const Call& call) noexcept {
        const auto size = static_cast<int64_t>(size_of(chain.dtype));
        parallel_for(n, work, 64, [&](int64_t begin, int64_t end) noexcept {
          for_each_run(plan, begin, end,
                       [&](int64_t first, const std::array<int64_t, kMostInputs>& offset, int64_t count) {
                         std::array<const std::byte*, kMostInputs> from{};
                         for (size_t i = 0; i < static_cast<size_t>(chain.program.inputs); ++i)
                           from[i] = call.in<std::byte>(i) + offset[i] * chain.size_of_input(i);
                         run_chain(chain, from, call.out<std::byte>() + first * size, first % plan.inner(),
                                   count);
                       });
        });
      },
      requirements, layouts);
}

Status supports(const CpuDevice&, const NodeView& node) {
  return elementwise_program(node).status();
}

}  // namespace

std::span<const KernelRow> rows_elementwise();
std::span<const KernelRow> rows_elementwise() {
  static constexpr KernelRow kRows[] = {
      row<create, supports>(OpKind::Elementwise, "elementwise", kHalves | DTypeSet{DType::F32})};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
