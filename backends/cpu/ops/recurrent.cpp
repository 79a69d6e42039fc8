// LSTM, GRU and RNN: the whole sequence in one call. The GEMMs with w are made for many steps at once; then
// each step is a GEMM with r, whose packed panels stay in cache, followed by the gates.
//
// Threads split directions and rows, which are independent; where there are few rows and r is large, they
// split the hidden units instead, with a barrier after every step: each keeps its part of r in its own cache.
#include <atomic>
#include <cstring>

#include "backends/cpu/support/recurrent_weights.h"
#include "runtime/core/exception.h"

namespace librt::cpu {
namespace {

constexpr int64_t kUnits = RecurrentLoops::kUnits;
/// Rows of x per GEMM with w: enough to amortize reading w, few enough to stay in cache.
constexpr int64_t kChunkRows = 96;
/// Multiply-adds per thread that are worth a barrier (some 300 ns between two cores).
constexpr int64_t kBarrierWork = 30'000;
/// Up to so many rows threads split the units: splitting the rows, each would read all of r for a few of
/// them.
constexpr int64_t kFewRows = 16;

struct Recurrence {
  RecurrentGeometry g;
  RecurrentWeights weights;
  const RecurrentLoops& loops;
  std::array<CellParameters, 2> numbers;
  bool has_lengths = false;
  int64_t chunk = 1;  ///< steps of a chunk

  Recurrence(const RecurrentGeometry& geometry, const Simd& simd, bool lengths)
      : g(geometry), weights(geometry), loops(simd.loops<RecurrentLoops>()), has_lengths(lengths) {
    for (int64_t d = 0; d < 2; ++d) numbers[static_cast<size_t>(d)] = cell_parameters(g, d);
    chunk = std::max<int64_t>(1, kChunkRows / std::max<int64_t>(1, g.batch));
  }
  /// How many threads split the hidden units; 1: they split directions and rows.
  int unit_parts() const noexcept {
    const int threads = max_threads();
    // A single row of each direction is bound by reading r, however it is split.
    if (threads < 2 || g.batch > kFewRows || (threads <= g.directions && g.batch == 1)) return 1;
    const int64_t barriers = g.kind == CellKind::GRU && !g.linear_before_reset ? 2 : 1;
    const int64_t work = g.gates * g.hidden * g.hidden * g.batch;
    return static_cast<int>(
        std::clamp<int64_t>(work / (barriers * kBarrierWork), 1, std::min<int64_t>(threads, weights.panels)));
  }
  // Scratch of one direction, in floats.
  int64_t gates_floats() const noexcept { return chunk * g.batch * weights.panels * weights.width; }
  int64_t state_floats() const noexcept { return g.batch * weights.padded_hidden(); }
  int64_t gathered_floats() const noexcept { return has_lengths ? chunk * g.batch * g.input : 0; }
  int64_t direction_floats() const noexcept {
    return gates_floats() + 5 * state_floats() + (gathered_floats() + kUnits - 1) / kUnits * kUnits;
  }
};

/// The threads that walk over the panels of one direction together, until one of them is left without a core:
/// from then on a single one walks over all panels, instead of waiting at every step.
class Crew {
 public:
  /// Waits for the others before step `s`. The part that goes on alone from this step on, or -1. All parts
  /// get the same answer, because a part decides between two barriers, for the steps after the second.
  int meet(int64_t s) noexcept {
    Team& team = *current_team();
    const int64_t late = team.barrier();
    const int64_t decided = decided_.load(std::memory_order_acquire);
    if (decided != kNobody && decided >> kPartBits <= s) return static_cast<int>(decided & kPartMask);
    if (late > 0) {
      team.set_busy(late);
      int64_t nobody = kNobody;
      decided_.compare_exchange_strong(nobody, (s + 1) << kPartBits | Team::place().part,
                                       std::memory_order_release);
    }
    return -1;
  }

 private:
  static constexpr int kPartBits = 16;
  static constexpr int64_t kPartMask = (int64_t{1} << kPartBits) - 1, kNobody = -1;
  static_assert(kMostThreads <= 1 << kPartBits);
  std::atomic<int64_t> decided_{kNobody};  ///< step << kPartBits | part
};

/// Rows and panels of one direction, from the first step to the last.
class Walk {
 public:
  Walk(const Recurrence& recurrence, const Call& call, const float* packed, float* scratch, int64_t direction)
      : net_(recurrence),
        g_(recurrence.g),
        direction_(direction),
        lengths_(recurrence.has_lengths ? call.in<int32_t>(4) : nullptr),
        x_(call.in<float>(0)),
        y_(call.out<float>(0)),
        last_h_(call.out<float>(1) + direction * g_.batch * g_.hidden),
        weights_(packed + direction * recurrence.weights.direction),
        h0_(state_in(call, 5)),
        hidden_stride_(recurrence.weights.padded_hidden()) {
    if (g_.kind == CellKind::LSTM) {
      c0_ = state_in(call, 6);
      last_c_ = call.out<float>(2) + direction * g_.batch * g_.hidden;
    }
    scratch += direction * recurrence.direction_floats();
    gates_ = scratch;
    h_[0] = gates_ + recurrence.gates_floats();
    h_[1] = h_[0] + recurrence.state_floats();
    c_ = h_[1] + recurrence.state_floats();
    reset_ = c_ + recurrence.state_floats();
    matmul_ = reset_ + recurrence.state_floats();
    gathered_ = matmul_ + recurrence.state_floats();
  }

  void rows(int64_t begin, int64_t end) noexcept {
    row_begin_ = begin;
    row_end_ = end;
  }
  void panels(int64_t begin, int64_t end) noexcept {
    panel_begin_ = begin;
    panel_end_ = end;
  }

  /// Where `crew` is not null, other threads walk over the other panels.
  void run(Crew* crew = nullptr) noexcept {
    begin_states();
    for (int64_t first = 0; first < g_.steps; first += net_.chunk) {
      const int64_t last = std::min(first + net_.chunk, g_.steps);
      project(first, last);
      for (int64_t s = first; s < last; ++s) {
        if (crew != nullptr) {
          // All of h must be written before any thread multiplies with it.
          const int walker = crew->meet(s);
          if (walker >= 0) {
            if (walker != Team::place().part) return;
            crew = nullptr;
            panels(0, net_.weights.panels);
          }
        }
        step(s, gates_ + (in_time_order() ? s - first : last - 1 - s) * g_.batch * row_floats(), crew);
      }
    }
    end_states();
  }

 private:
  const float* state_in(const Call& call, size_t i) const noexcept {
    const float* state = call.in<float>(i);
    return state == nullptr ? nullptr : state + direction_ * g_.batch * g_.hidden;
  }
  int64_t row_floats() const noexcept { return net_.weights.panels * net_.weights.width; }
  int64_t length(int64_t n) const noexcept {
    return lengths_ == nullptr ? g_.steps : std::clamp<int64_t>(lengths_[n], 0, g_.steps);
  }
  /// Whether the rows of a chunk are stored in the order of the steps; else in reverse.
  bool in_time_order() const noexcept { return !g_.reversed(direction_) || lengths_ != nullptr; }
  int64_t first_unit(int64_t panel) const noexcept { return panel * net_.weights.units; }
  int64_t units_of(int64_t panel) const noexcept {
    return std::min(net_.weights.units, g_.hidden - first_unit(panel));
  }

  /// Every other step goes through the panels from the last one: where r is about as large as the L2 cache, a
  /// step begins with what the one before left there. In the same order at every step, each panel would have
  /// been evicted by those after it.
  int64_t panel_at(int64_t s, int64_t i) const noexcept {
    return (s & 1) != 0 ? panel_begin_ + panel_end_ - 1 - i : i;
  }

  void begin_states() noexcept {
    const int64_t begin = first_unit(panel_begin_), end = first_unit(panel_end_);
    const auto fill = [&](float* state, const float* from) {
      for (int64_t n = row_begin_; n < row_end_; ++n)
        for (int64_t j = begin; j < end; ++j)
          state[n * hidden_stride_ + j] = from != nullptr && j < g_.hidden ? from[n * g_.hidden + j] : 0.0f;
    };
    fill(h_[0], h0_);
    if (c0_ != nullptr || last_c_ != nullptr) fill(c_, c0_);
  }

  void end_states() noexcept {
    const int64_t begin = first_unit(panel_begin_),
                  count = std::min(first_unit(panel_end_), g_.hidden) - begin;
    const auto store = [&](const float* state, float* to) {
      for (int64_t n = row_begin_; n < row_end_; ++n)
        std::memcpy(to + n * g_.hidden + begin, state + n * hidden_stride_ + begin,
                    static_cast<size_t>(count) * sizeof(float));
    };
    store(h_[g_.steps & 1], last_h_);
    if (last_c_ != nullptr) store(c_, last_c_);
  }

  /// Pre-activations of the gates of steps [first, last): bias plus x times w.
  void project(int64_t first, int64_t last) noexcept {
    const int64_t rows = row_end_ - row_begin_, width = net_.weights.width;
    const float* from = x_ + (g_.reversed(direction_) ? g_.steps - last : first) * g_.batch * g_.input;
    if (lengths_ != nullptr && g_.reversed(direction_)) from = gather(first, last);
    for (int64_t panel = panel_begin_; panel < panel_end_; ++panel) {
      const float* bias = weights_ + net_.weights.bias + panel * width;
      const float* w = weights_ + net_.weights.w + panel * g_.input * width;
      const auto matmul = [&](int64_t row, int64_t count) {
        float* gates = gates_ + row * row_floats() + panel * width;
        for (int64_t i = 0; i < count; ++i)
          std::memcpy(gates + i * row_floats(), bias, static_cast<size_t>(width) * sizeof(float));
        net_.loops.matmul(from + row * g_.input, g_.input, w, width, g_.input, gates, row_floats(), count,
                          net_.weights.groups);
      };
      if (rows == g_.batch)
        matmul(0, (last - first) * rows);
      else
        for (int64_t s = 0; s < last - first; ++s) matmul(s * g_.batch + row_begin_, rows);
    }
  }

  /// Gathers rows that run backwards from their own ends into the order of the steps.
  const float* gather(int64_t first, int64_t last) noexcept {
    for (int64_t s = first; s < last; ++s)
      for (int64_t n = row_begin_; n < row_end_; ++n) {
        const int64_t t = std::max<int64_t>(0, length(n) - 1 - s);
        std::memcpy(gathered_ + ((s - first) * g_.batch + n) * g_.input, x_ + (t * g_.batch + n) * g_.input,
                    static_cast<size_t>(g_.input) * sizeof(float));
      }
    return gathered_;
  }

  void step(int64_t s, float* gates, const Crew* crew) noexcept {
    const float* before = h_[s & 1];
    if (g_.kind == CellKind::GRU && !g_.linear_before_reset) {
      for (int64_t i = panel_begin_; i < panel_end_; ++i) {
        const int64_t panel = panel_at(s, i);
        multiply(before, gates, panel, 0, 2);
        for (int64_t n = row_begin_; n < row_end_; ++n) {
          const int64_t at = n * hidden_stride_ + first_unit(panel);
          net_.loops.gru_gates(numbers(), block(gates, panel, n), before + at, reset_ + at);
        }
      }
      if (crew != nullptr) current_team()->barrier();
    }
    for (int64_t i = panel_begin_; i < panel_end_; ++i) {
      const int64_t panel = panel_at(s, i);
      if (g_.kind != CellKind::GRU)
        multiply(before, gates, panel, 0, net_.weights.groups);
      else if (g_.linear_before_reset)
        multiply_linear(before, gates, panel);
      else
        multiply(reset_, gates, panel, 2, 1);
      for (int64_t n = row_begin_; n < row_end_; ++n) finish(s, gates, panel, n);
    }
  }

  const CellParameters& numbers() const noexcept { return net_.numbers[static_cast<size_t>(direction_)]; }
  CellBlock block(float* gates, int64_t panel, int64_t n) const noexcept {
    return {gates + n * row_floats() + panel * net_.weights.width, kUnits};
  }

  /// Adds `operand` times groups [group, group + count) of r's panel to the gates.
  void multiply(const float* operand, float* gates, int64_t panel, int64_t group, int64_t count) noexcept {
    const int64_t width = net_.weights.width;
    net_.loops.matmul(operand + row_begin_ * hidden_stride_, hidden_stride_,
                      weights_ + net_.weights.r + panel * g_.hidden * width + group * kUnits, width,
                      g_.hidden, gates + row_begin_ * row_floats() + panel * width + group * kUnits,
                      row_floats(), row_end_ - row_begin_, count);
  }

  /// All three GEMMs at once; the third gate's result is kept apart, with its own bias.
  void multiply_linear(const float* before, float* gates, int64_t panel) noexcept {
    const int64_t width = net_.weights.width, unit = first_unit(panel);
    const float* bias = weights_ + net_.weights.recurrent_bias + panel * kUnits;
    multiply(before, gates, panel, 0, 2);
    for (int64_t n = row_begin_; n < row_end_; ++n)
      std::memcpy(matmul_ + n * hidden_stride_ + unit, bias, kUnits * sizeof(float));
    net_.loops.matmul(before + row_begin_ * hidden_stride_, hidden_stride_,
                      weights_ + net_.weights.r + panel * g_.hidden * width + 2 * kUnits, width, g_.hidden,
                      matmul_ + row_begin_ * hidden_stride_ + unit, hidden_stride_, row_end_ - row_begin_, 1);
    for (int64_t n = row_begin_; n < row_end_; ++n) {
      const int64_t at = n * hidden_stride_ + unit;
      net_.loops.gru_gates(numbers(), block(gates, panel, n), before + at, reset_ + at);
    }
  }

  /// One row's h after the step, and y; past the row's length the old state, and zeros.
  void finish(int64_t s, float* gates, int64_t panel, int64_t n) noexcept {
    const int64_t at = n * hidden_stride_ + first_unit(panel), steps = length(n);
    const float* before = h_[s & 1] + at;
    float* after = h_[(s + 1) & 1] + at;
    const auto bytes = static_cast<size_t>(units_of(panel)) * sizeof(float);
    const int64_t t = s < steps && g_.reversed(direction_) ? steps - 1 - s : s;
    float* y = y_ + ((t * g_.directions + direction_) * g_.batch + n) * g_.hidden + first_unit(panel);
    if (s >= steps) {
      std::memcpy(after, before, static_cast<size_t>(net_.weights.units) * sizeof(float));
      std::memset(y, 0, bytes);
      return;
    }
    const CellBlock here = block(gates, panel, n);
    if (g_.kind == CellKind::RNN)
      net_.loops.rnn(numbers(), here.pre, after, net_.weights.units);
    else if (g_.kind == CellKind::GRU)
      net_.loops.gru(numbers(), here, g_.linear_before_reset ? matmul_ + at : nullptr, before, after);
    else
      net_.loops.lstm(numbers(), here, weights_ + net_.weights.peepholes + panel * 3 * kUnits, c_ + at,
                      after);
    std::memcpy(y, after, bytes);
  }

  const Recurrence& net_;
  const RecurrentGeometry& g_;
  int64_t direction_;
  const int32_t* lengths_;
  const float* x_;
  float *y_, *last_h_, *last_c_ = nullptr;
  const float *weights_, *h0_, *c0_ = nullptr;
  int64_t hidden_stride_;
  float *gates_, *h_[2], *c_, *reset_, *matmul_, *gathered_;
  int64_t row_begin_ = 0, row_end_ = 0, panel_begin_ = 0, panel_end_ = 0;
};

/// On a busy machine, where a barrier may wait for a thread that has no core, as one part: with the same
/// bits.
void run_split_units(const Recurrence& net, int most, const Call& call, const float* packed,
                     float* scratch) noexcept {
  for (int64_t d = 0; d < net.g.directions; ++d) {
    Crew crew;
    parallel_region(current_team()->busy() ? 1 : most, [&](int part, int parts) noexcept {
      Walk walk(net, call, packed, scratch, d);
      const Range range = part_of(net.weights.panels, part, parts);
      walk.rows(0, net.g.batch);
      walk.panels(range.begin, range.end);
      walk.run(parts > 1 ? &crew : nullptr);
    });
  }
}

void run_split_rows(const Recurrence& net, const Call& call, const float* packed, float* scratch) noexcept {
  const int64_t work = net.g.steps * net.g.gates * net.g.hidden * (net.g.hidden + net.g.input);
  parallel_for(net.g.directions * net.g.batch, work, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t d = 0; d < net.g.directions; ++d) {
      const int64_t first = std::max(begin - d * net.g.batch, int64_t{0}),
                    last = std::min(end - d * net.g.batch, net.g.batch);
      if (first >= last) continue;
      Walk walk(net, call, packed, scratch, d);
      walk.rows(first, last);
      walk.panels(0, net.weights.panels);
      walk.run();
    }
  });
}

/// Constant weights are packed once, others at every run.
class RecurrentKernel final : public Kernel {
 public:
  RecurrentKernel(const CpuDevice& device, const NodeView& node, const RecurrentGeometry& g)
      : net_(std::make_shared<const Recurrence>(g, device.simd(),
                                                node.has(static_cast<size_t>(g.operands.lengths)))) {
    const size_t packed = net_->weights.bytes(g);
    requirements_.scratch = static_cast<size_t>(g.directions * net_->direction_floats()) * sizeof(float);
    constant_ = true;
    for (const size_t i : {1u, 2u, 3u, 7u}) {
      if (!node.has(i)) continue;
      sources_[i] = static_cast<const float*>(node.inputs[i].value);
      constant_ = constant_ && sources_[i] != nullptr;
    }
    if (!constant_) {
      packed_in_scratch_ = requirements_.scratch;
      requirements_.scratch += packed;
      return;
    }
    requirements_.packed = packed;
    requirements_.packed_key =
        0x7265637572ull + static_cast<uint64_t>(g.kind) * 2 + (g.linear_before_reset ? 1 : 0);
    for (const size_t i : {1u, 2u, 3u, 7u})
      if (node.has(i)) requirements_.replaced_inputs |= 1u << i;
  }

  Requirements requirements() const noexcept override { return requirements_; }

  Status pack(std::span<std::byte> bytes) noexcept override {
    if (!constant_) return {};
    if (bytes.size() < requirements_.packed)
      return internal_error("packing ", requirements_.packed, " bytes into ", bytes.size());
    net_->weights.pack(net_->g, sources_[1], sources_[2], sources_[3], sources_[7],
                       reinterpret_cast<float*>(bytes.data()));
    return {};
  }

  Status record(CommandList& commands, const Bindings& bindings) noexcept override {
    auto body = [net = net_, constant = constant_, at = packed_in_scratch_](const Call& call) noexcept {
      const float* packed = call.packed<float>();
      if (!constant) {
        auto* target = reinterpret_cast<float*>(call.scratch<std::byte>() + at);
        net->weights.pack(net->g, call.in<float>(1), call.in<float>(2), call.in<float>(3), call.in<float>(7),
                          target);
        packed = target;
      }
      if (const int parts = net->unit_parts(); parts > 1)
        run_split_units(*net, parts, call, packed, call.scratch<float>());
      else
        run_split_rows(*net, call, packed, call.scratch<float>());
    };
    RT_ATTEMPT {
      auto shared = std::make_shared<const decltype(body)>(std::move(body));
      return static_cast<Commands&>(commands).add(
          std::make_unique<FunctionTask<decltype(body)>>(std::move(shared), bindings));
    }
    RT_CAUGHT {
      return caught_exception("recording a kernel");
    }
  }

 private:
  std::shared_ptr<const Recurrence> net_;
  Requirements requirements_;
  std::array<const float*, 8> sources_{};
  bool constant_ = false;
  size_t packed_in_scratch_ = 0;
};

Status supports(const CpuDevice&, const NodeView& node) {
  return recurrent_geometry(node).status();
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  return KernelPtr(std::make_unique<RecurrentKernel>(device, node, g));
}

}  // namespace

std::span<const KernelRow> rows_recurrent();
std::span<const KernelRow> rows_recurrent() {
  static constexpr KernelRow kRows[] = {
      row<create, supports>(OpKind::LSTM, "lstm", DTypeSet{DType::F32}),
      row<create, supports>(OpKind::GRU, "gru", DTypeSet{DType::F32}),
      row<create, supports>(OpKind::RNN, "rnn", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
