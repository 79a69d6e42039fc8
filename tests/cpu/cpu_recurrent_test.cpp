// Recurrent nets on several threads: the same bits however many threads walk over the units, also while other
// threads take their cores away.
#include <atomic>
#include <cstring>
#include <thread>

#include "backends/cpu/device/parallel.h"
#include "tests/cpu/cpu_support.h"

namespace librt::test {
namespace {

/// Threads that compute nothing, without a pause.
class Load {
 public:
  explicit Load(int threads) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this] {
        while (!ends_.load(std::memory_order_relaxed)) {
        }
      });
  }
  ~Load() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

template <class Attributes>
Node recurrent(int64_t hidden, op::Direction direction) {
  Attributes attributes;
  attributes.hidden = hidden;
  attributes.direction = direction;
  return make_node(attributes, 3, std::is_same_v<Attributes, op::LSTMAttributes> ? 3 : 2);
}

bool same_bits(const NodeRun& a, const NodeRun& b) {
  bool same = a.outputs.size() == b.outputs.size();
  for (size_t i = 0; same && i < a.outputs.size(); ++i)
    same = a.outputs[i].bytes.size() == b.outputs[i].bytes.size() &&
           std::memcmp(a.outputs[i].bytes.data(), b.outputs[i].bytes.data(), a.outputs[i].bytes.size()) == 0;
  return same;
}

template <class Attributes>
void check(int64_t gates, int64_t batch, op::Direction direction) {
  constexpr int64_t kSteps = 40, kInput = 24, kHidden = 208;  // 13 blocks of units: unequal shares
  const int64_t directions = direction == op::Direction::Bidirectional ? 2 : 1;
  const Node node = recurrent<Attributes>(kHidden, direction);
  const NodeInputs inputs{f32({kSteps, batch, kInput}),
                          f32({directions, gates * kHidden, kInput}, -0.2, 0.2, 2),
                          f32({directions, gates * kHidden, kHidden}, -0.2, 0.2, 3)};
  std::vector<DevicePtr> devices;
  for (const int threads : {1, 2, 5}) {
    DeviceOptions options;
    options.threads = threads;
    auto opened = cpu::open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    devices.push_back(std::move(opened).value());
  }
  RunNodeOptions once;
  once.constants = 6;
  once.runs = 1;
  auto first = run_node(*devices[1], node, inputs, once);
  ASSERT_TRUE(first.ok()) << first.status().message();
  auto reference = reference_node(node, inputs);
  ASSERT_TRUE(reference.ok()) << reference.status().message();
  for (size_t i = 0; i < reference.value().size(); ++i)
    EXPECT_TRUE(near(first.value().outputs[i], reference.value()[i], {1e-4, 1e-4})) << "output " << i;
  const Load load(4);
  for (int run = 0; run < 10; ++run)
    for (size_t d = 0; d < devices.size(); ++d) {
      auto again = run_node(*devices[d], node, inputs, once);
      ASSERT_TRUE(again.ok()) << again.status().message();
      EXPECT_TRUE(same_bits(first.value(), again.value())) << "device " << d << ", run " << run;
    }
}

TEST(Recurrent, BitsDoNotDependOnThreadsOrLoad) {
  check<op::GRUAttributes>(3, 1, op::Direction::Forward);
  check<op::GRUAttributes>(3, 8, op::Direction::Bidirectional);
  check<op::LSTMAttributes>(4, 5, op::Direction::Reverse);
  check<op::RNNAttributes>(1, 16, op::Direction::Forward);
}

TEST(Team, IsBusyForAWhileAfterALateBarrier) {
  const cpu::ThreadScope scope(7);  // no other test's team
  cpu::Team& team = *cpu::current_team();
  EXPECT_FALSE(team.busy());
  team.set_busy(100'000'000);
  EXPECT_TRUE(team.busy());
}

}  // namespace
}  // namespace librt::test
