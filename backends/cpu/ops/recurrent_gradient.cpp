// Gradients of LSTM, GRU and RNN. y gives every h, so that all gates are recomputed with large GEMMs; then
// one backward pass over the steps, each a GEMM with r after the gates' derivatives. Threads split directions
// and rows.
#include <cstring>

#include "backends/cpu/support/recurrent_weights.h"

namespace librt::cpu {
namespace {

constexpr int64_t kUnits = RecurrentLoops::kUnits;

/// Offsets of the scratch regions of one direction, in floats; rows are [steps][batch] in time.
struct Regions {
  int64_t gates = 0, before = 0, candidate = 0, reset = 0, matmul = 0, c = 0;
  int64_t c0 = 0, grad_h = 0, grad_c = 0, through = 0, grad_block = 0;
  int64_t floats = 0;
};

struct Gradient {
  RecurrentGeometry g;
  RecurrentWeights weights;
  TransposedWeights transposed;
  const RecurrentLoops& loops;
  std::array<CellParameters, 2> numbers;
  Regions at;
  int64_t padded;         ///< hidden, rounded up to whole panels of both kinds
  int64_t peepholes = 0;  ///< floats of one part's accumulators
  int parts;              ///< of the rows of one direction

  Gradient(const RecurrentGeometry& geometry, const Simd& simd)
      : g(geometry), weights(geometry), transposed(geometry), loops(simd.loops<RecurrentLoops>()) {
    for (int64_t d = 0; d < 2; ++d) numbers[static_cast<size_t>(d)] = cell_parameters(g, d);
    parts = static_cast<int>(std::clamp<int64_t>(max_threads(), 1, std::max<int64_t>(1, g.batch)));
    padded = std::max(weights.padded_hidden(), transposed.panels * TransposedWeights::kColumns);
    peepholes = g.kind == CellKind::LSTM ? weights.panels * 3 * kUnits : 0;
    const int64_t rows = g.steps * g.batch;
    const auto book = [&](int64_t count) {
      const int64_t first = at.floats;
      at.floats += (count + kUnits - 1) / kUnits * kUnits;
      return first;
    };
    at.gates = book(rows * weights.panels * weights.width);
    at.before = book(rows * padded);
    if (g.kind == CellKind::GRU) {
      at.candidate = book(rows * padded);
      at.reset = book(rows * padded);
      at.matmul = book(rows * padded);
    }
    if (g.kind == CellKind::LSTM) {
      at.c = book(rows * padded);
      at.c0 = book(g.batch * padded);
    }
    at.grad_h = book(g.batch * padded);
    at.grad_c = book(g.batch * padded);
    at.through = book(g.batch * padded);
    at.grad_block = book(g.batch * g.gates * padded);
  }
};

struct Buffers {
  const float *packed, *transposed;
  float *scratch, *peepholes;
};

/// Rows [begin, end) of one direction.
class Back {
 public:
  Back(const Gradient& net, const Call& call, const Buffers& buffers, int64_t direction, Range rows, int part)
      : net_(net),
        g_(net.g),
        call_(call),
        direction_(direction),
        begin_(rows.begin),
        end_(rows.end),
        lengths_(call.in<int32_t>(5)),
        weights_(buffers.packed + direction * net.weights.direction),
        transposed_(buffers.transposed + direction * net.transposed.floats()),
        base_(buffers.scratch + direction * net.at.floats),
        peepholes_(buffers.peepholes + (direction * net.parts + part) * net.peepholes) {}

  void run() noexcept {
    std::fill(peepholes_, peepholes_ + net_.peepholes, 0.0f);
    find_before();
    project();
    if (g_.kind == CellKind::GRU) find_candidates();
    if (g_.kind == CellKind::LSTM) find_states();
    begin_gradients();
    for (int64_t s = g_.steps; s-- > 0;) step(s);
    end_gradients();
  }

 private:
  int64_t length(int64_t n) const noexcept {
    return lengths_ == nullptr ? g_.steps : std::clamp<int64_t>(lengths_[n], 0, g_.steps);
  }
  /// The time at which row n makes step s; steps past its length keep their index, where everything is zero.
  int64_t time(int64_t s, int64_t n) const noexcept {
    return s < length(n) && g_.reversed(direction_) ? length(n) - 1 - s : s;
  }
  const CellParameters& numbers() const noexcept { return net_.numbers[static_cast<size_t>(direction_)]; }
  float* row(int64_t region, int64_t t, int64_t n) const noexcept {
    return base_ + region + (t * g_.batch + n) * net_.padded;
  }
  int64_t gate_floats() const noexcept { return net_.weights.panels * net_.weights.width; }
  float* gates(int64_t t, int64_t n) const noexcept {
    return base_ + net_.at.gates + (t * g_.batch + n) * gate_floats();
  }
  /// Row of an output [d,T,N,columns].
  float* result(size_t output, int64_t t, int64_t n, int64_t columns) const noexcept {
    return call_.out<float>(output) + ((direction_ * g_.steps + t) * g_.batch + n) * columns;
  }
  const float* state(size_t input, int64_t n) const noexcept {
    const float* all = call_.in<float>(input);
    return all == nullptr ? nullptr : all + (direction_ * g_.batch + n) * g_.hidden;
  }
  const float* sequence(size_t input, int64_t t, int64_t n) const noexcept {
    const float* all = call_.in<float>(input);
    return all == nullptr ? nullptr : all + ((t * g_.directions + direction_) * g_.batch + n) * g_.hidden;
  }
  /// Loads a row of `hidden` values, padded with zeros; all zeros where `from` is null.
  void load(float* to, const float* from) const noexcept {
    std::memset(to, 0, static_cast<size_t>(net_.padded) * sizeof(float));
    if (from != nullptr) std::memcpy(to, from, static_cast<size_t>(g_.hidden) * sizeof(float));
  }
  void store(float* to, const float* from) const noexcept {
    std::memcpy(to, from, static_cast<size_t>(g_.hidden) * sizeof(float));
  }

  void find_before() noexcept {
    for (int64_t n = begin_; n < end_; ++n)
      for (int64_t s = 0; s < g_.steps; ++s) {
        const int64_t t = time(s, n);
        const float* from = s >= length(n) ? nullptr : s == 0 ? state(6, n) : sequence(3, time(s - 1, n), n);
        load(row(net_.at.before, t, n), from);
        store(result(1, t, n, g_.hidden), row(net_.at.before, t, n));
      }
  }

  /// Adds `region` times groups [first, first + count) of r to the gates of all steps.
  void multiply(int64_t region, int64_t first, int64_t count) noexcept {
    const int64_t width = net_.weights.width;
    for (int64_t panel = 0; panel < net_.weights.panels; ++panel)
      for (int64_t t = 0; t < g_.steps; ++t)
        net_.loops.matmul(row(region, t, begin_), net_.padded,
                          weights_ + net_.weights.r + panel * g_.hidden * width + first * kUnits, width,
                          g_.hidden, gates(t, begin_) + panel * width + first * kUnits, gate_floats(),
                          end_ - begin_, count);
  }

  void project() noexcept {
    const int64_t width = net_.weights.width;
    const float* x = call_.in<float>(0);
    for (int64_t panel = 0; panel < net_.weights.panels; ++panel)
      for (int64_t t = 0; t < g_.steps; ++t) {
        for (int64_t n = begin_; n < end_; ++n)
          std::memcpy(gates(t, n) + panel * width, weights_ + net_.weights.bias + panel * width,
                      static_cast<size_t>(width) * sizeof(float));
        net_.loops.matmul(x + (t * g_.batch + begin_) * g_.input, g_.input,
                          weights_ + net_.weights.w + panel * g_.input * width, width, g_.input,
                          gates(t, begin_) + panel * width, gate_floats(), end_ - begin_,
                          net_.weights.groups);
      }
    multiply(net_.at.before, 0, g_.kind == CellKind::GRU ? 2 : net_.weights.groups);
  }

  /// The reset gate, and the operand of r's third block; with linear_before_reset also their product.
  void find_candidates() noexcept {
    const bool linear = g_.linear_before_reset;
    for (int64_t t = 0; t < g_.steps; ++t)
      for (int64_t n = begin_; n < end_; ++n) {
        float *reset = row(net_.at.reset, t, n), *candidate = row(net_.at.candidate, t, n);
        const float* before = row(net_.at.before, t, n);
        for (int64_t panel = 0; panel < net_.weights.panels; ++panel)
          net_.loops.gru_reset(numbers(), gates(t, n) + panel * net_.weights.width + kUnits,
                               reset + panel * kUnits);
        for (int64_t j = 0; j < net_.padded; ++j)
          candidate[j] = j >= g_.hidden ? 0.0f : linear ? before[j] : reset[j] * before[j];
        store(result(4, t, n, g_.hidden), candidate);
      }
    if (!linear) return multiply(net_.at.candidate, 2, 1);
    const int64_t width = net_.weights.width;
    for (int64_t panel = 0; panel < net_.weights.panels; ++panel)
      for (int64_t t = 0; t < g_.steps; ++t) {
        for (int64_t n = begin_; n < end_; ++n)
          std::memcpy(row(net_.at.matmul, t, n) + panel * kUnits,
                      weights_ + net_.weights.recurrent_bias + panel * kUnits, kUnits * sizeof(float));
        net_.loops.matmul(row(net_.at.before, t, begin_), net_.padded,
                          weights_ + net_.weights.r + panel * g_.hidden * width + 2 * kUnits, width,
                          g_.hidden, row(net_.at.matmul, t, begin_) + panel * kUnits, net_.padded,
                          end_ - begin_, 1);
      }
  }

  const float* c_before(int64_t s, int64_t n) const noexcept {
    return s == 0 ? row(net_.at.c0, 0, n) : row(net_.at.c, time(s - 1, n), n);
  }
  const float* peepholes(int64_t panel) const noexcept {
    return weights_ + net_.weights.peepholes + panel * 3 * kUnits;
  }

  void find_states() noexcept {
    for (int64_t n = begin_; n < end_; ++n) {
      load(row(net_.at.c0, 0, n), state(9, n));
      for (int64_t s = 0; s < length(n); ++s) {
        float* c = row(net_.at.c, time(s, n), n);
        std::memcpy(c, c_before(s, n), static_cast<size_t>(net_.padded) * sizeof(float));
        for (int64_t panel = 0; panel < net_.weights.panels; ++panel) {
          CellBack block;
          block.pre = gates(time(s, n), n) + panel * net_.weights.width;
          net_.loops.lstm_state(numbers(), block, peepholes(panel), c + panel * kUnits);
        }
      }
    }
  }

  void begin_gradients() noexcept {
    for (int64_t n = begin_; n < end_; ++n) {
      load(row(net_.at.grad_h, 0, n), state(8, n));
      load(row(net_.at.grad_c, 0, n), g_.kind == CellKind::LSTM ? state(11, n) : nullptr);
    }
  }
  void end_gradients() noexcept {
    for (int64_t n = begin_; n < end_; ++n) {
      store(call_.out<float>(2) + (direction_ * g_.batch + n) * g_.hidden, row(net_.at.grad_h, 0, n));
      if (g_.kind == CellKind::LSTM)
        store(call_.out<float>(3) + (direction_ * g_.batch + n) * g_.hidden, row(net_.at.grad_c, 0, n));
    }
  }

  float* grad_block(int64_t n) const noexcept {
    return base_ + net_.at.grad_block + n * g_.gates * net_.padded;
  }

  /// Copies the gradients of one row's gates from its block to the output.
  void store_gates(int64_t s, int64_t n) noexcept {
    float* to = result(0, time(s, n), n, g_.gates * g_.hidden);
    for (int64_t gate = 0; gate < g_.gates; ++gate)
      store(to + gate * g_.hidden, grad_block(n) + gate * net_.padded);
  }
  void clear_row(int64_t s, int64_t n) noexcept {
    std::memset(grad_block(n), 0, static_cast<size_t>(g_.gates * net_.padded) * sizeof(float));
    store_gates(s, n);
    if (g_.kind == CellKind::GRU)
      std::memset(result(3, s, n, g_.hidden), 0, static_cast<size_t>(g_.hidden) * sizeof(float));
  }

  void step(int64_t s) noexcept {
    for (int64_t n = begin_; n < end_; ++n) {
      if (s >= length(n)) {
        clear_row(s, n);
        continue;
      }
      const float* from = sequence(7, time(s, n), n);
      float* grad_h = row(net_.at.grad_h, 0, n);
      for (int64_t j = 0; from != nullptr && j < g_.hidden; ++j) grad_h[j] += from[j];
      gate_gradients(s, n);
    }
    if (g_.kind == CellKind::GRU) return gru_step(s);
    for (int64_t n = begin_; n < end_; ++n) {
      if (s >= length(n)) continue;
      store_gates(s, n);
      std::memset(row(net_.at.grad_h, 0, n), 0, static_cast<size_t>(net_.padded) * sizeof(float));
    }
    add_matmuls(s, g_.gates);
  }

  CellBack block(int64_t s, int64_t n, int64_t panel) const noexcept {
    const int64_t unit = panel * net_.weights.units;
    CellBack made;
    made.pre = gates(time(s, n), n) + panel * net_.weights.width;
    made.grad = grad_block(n) + unit;
    made.stride = net_.padded;
    made.grad_h = row(net_.at.grad_h, 0, n) + unit;
    made.before =
        g_.kind == CellKind::LSTM ? c_before(s, n) + unit : row(net_.at.before, time(s, n), n) + unit;
    return made;
  }
  /// Null unless the reset gate scales the product itself (linear_before_reset).
  const float* linear_matmul(int64_t t, int64_t n, int64_t unit) const noexcept {
    return g_.linear_before_reset ? row(net_.at.matmul, t, n) + unit : nullptr;
  }

  void gate_gradients(int64_t s, int64_t n) noexcept {
    const int64_t t = time(s, n);
    for (int64_t panel = 0; panel < net_.weights.panels; ++panel) {
      const CellBack here = block(s, n, panel);
      const int64_t unit = panel * net_.weights.units;
      if (g_.kind == CellKind::LSTM)
        net_.loops.lstm_back(numbers(), here, peepholes(panel), row(net_.at.c, t, n) + unit,
                             row(net_.at.grad_c, 0, n) + unit, peepholes_ + panel * 3 * kUnits);
      else if (g_.kind == CellKind::GRU)
        net_.loops.gru_back(numbers(), here, linear_matmul(t, n, unit), row(net_.at.reset, t, n) + unit,
                            row(net_.at.grad_c, 0, n) + unit);
      else
        net_.loops.rnn_back(numbers(), here.pre, here.grad_h, here.grad, net_.weights.units);
    }
  }

  /// grad_c holds the gradient of the product with r's third block here.
  void gru_step(int64_t s) noexcept {
    for (int64_t n = begin_; n < end_; ++n) {
      if (s < length(n)) store(result(3, time(s, n), n, g_.hidden), row(net_.at.grad_c, 0, n));
      std::memset(row(net_.at.through, 0, n), 0, static_cast<size_t>(net_.padded) * sizeof(float));
    }
    for (int64_t n = begin_; n < end_; ++n)
      if (s < length(n))
        multiply_back(result(3, time(s, n), n, g_.hidden), row(net_.at.through, 0, n), 2 * g_.hidden,
                      g_.hidden, 1);
    for (int64_t n = begin_; n < end_; ++n) {
      if (s >= length(n)) continue;
      const int64_t t = time(s, n);
      for (int64_t panel = 0; panel < net_.weights.panels; ++panel) {
        const int64_t unit = panel * kUnits;
        net_.loops.gru_reset_back(numbers(), block(s, n, panel), linear_matmul(t, n, unit),
                                  row(net_.at.reset, t, n) + unit, row(net_.at.through, 0, n) + unit);
      }
      store_gates(s, n);
    }
    add_matmuls(s, 2);
  }

  /// grad_h += gradients of the first `count` gates times r.
  void add_matmuls(int64_t s, int64_t count) noexcept {
    const int64_t columns = g_.gates * g_.hidden, k = count * g_.hidden;
    if (lengths_ == nullptr)  // rows of one time are contiguous
      return multiply_back(result(0, time(s, begin_), begin_, columns), row(net_.at.grad_h, 0, begin_), 0, k,
                           end_ - begin_);
    for (int64_t n = begin_; n < end_; ++n)
      if (s < length(n)) multiply_back(result(0, time(s, n), n, columns), row(net_.at.grad_h, 0, n), 0, k, 1);
  }
  void multiply_back(const float* from, float* to, int64_t first_row, int64_t k, int64_t rows) noexcept {
    constexpr int64_t kColumns = TransposedWeights::kColumns;
    for (int64_t panel = 0; panel < net_.transposed.panels; ++panel)
      net_.loops.matmul(from, g_.gates * g_.hidden,
                        transposed_ + (panel * net_.transposed.rows + first_row) * kColumns, kColumns, k,
                        to + panel * kColumns, net_.padded, rows, kColumns / kUnits);
  }

  const Gradient& net_;
  const RecurrentGeometry& g_;
  const Call& call_;
  int64_t direction_, begin_, end_;
  const int32_t* lengths_;
  const float *weights_, *transposed_;
  float *base_, *peepholes_;
};

/// Sums the parts in order.
void store_peepholes(const Gradient& net, const float* parts, float* to) noexcept {
  const RecurrentGeometry& g = net.g;
  for (int64_t d = 0; d < g.directions; ++d)
    for (int64_t gate = 0; gate < 3; ++gate)
      for (int64_t j = 0; j < g.hidden; ++j) {
        float sum = 0;
        for (int part = 0; part < net.parts; ++part)
          sum +=
              parts[(d * net.parts + part) * net.peepholes + (j / kUnits * 3 + gate) * kUnits + j % kUnits];
        to[(d * 3 + gate) * g.hidden + j] = sum;
      }
}

Status supports(const CpuDevice&, const NodeView& node) {
  return recurrent_geometry(node).status();
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(const RecurrentGeometry g, recurrent_geometry(node));
  const auto net = std::make_shared<const Gradient>(g, device.simd());
  const int64_t transposed = net->weights.direction * g.directions,
                peepholes = transposed + net->transposed.floats() * g.directions,
                rest =
                    peepholes + (g.directions * net->parts * net->peepholes + kUnits - 1) / kUnits * kUnits;
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(rest + net->at.floats * g.directions) * sizeof(float);
  return make_kernel(
      [=](const Call& call) noexcept {
        float* scratch = call.scratch<float>();
        net->weights.pack(net->g, call.in<float>(1), call.in<float>(2), call.in<float>(4), call.in<float>(10),
                          scratch);
        net->transposed.pack(net->g, call.in<float>(2), scratch + transposed);
        const Buffers buffers{scratch, scratch + transposed, scratch + rest, scratch + peepholes};
        parallel_parts(static_cast<int>(net->g.directions) * net->parts, [&](int part) noexcept {
          const Range rows = part_of(net->g.batch, part % net->parts, net->parts);
          Back(*net, call, buffers, part / net->parts, rows, part % net->parts).run();
        });
        if (net->g.kind == CellKind::LSTM) store_peepholes(*net, scratch + peepholes, call.out<float>(4));
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_recurrent_gradient();
std::span<const KernelRow> rows_recurrent_gradient() {
  static constexpr KernelRow kRows[] = {
      row<create, supports>(OpKind::LSTMGrad, "lstm_grad", DTypeSet{DType::F32}),
      row<create, supports>(OpKind::GRUGrad, "gru_grad", DTypeSet{DType::F32}),
      row<create, supports>(OpKind::RNNGrad, "rnn_grad", DTypeSet{DType::F32}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
