// Memory of the application on a device whose memory the host does not address, with nodes that another
// device runs: what is recorded when, and what is copied.
#include <gtest/gtest.h>

#include "runtime/session/session.h"
#include "tests/session/far_device.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;
using Floats = std::vector<float>;

#define ASSERT_OK(expression)                                       \
  do {                                                              \
    const Status asserted_status = (expression);                    \
    ASSERT_TRUE(asserted_status.ok()) << asserted_status.message(); \
  } while (0)

/// x f32[rows,4]; outputs relu(x + x), -x, and the shape of x as floats.
std::shared_ptr<const ModelGraph> model() {
  auto made = std::make_shared<ModelGraph>();
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &made->states);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("rows")}, {.extent = 4}});
  build.output(build.emit(op::ReluAttributes{}, {build.add(x, x)}));
  build.output(build.neg(x));
  build.output(build.cast(build.shape_of(x), DType::F32));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  made->entries.push_back({"infer", std::move(graph)});
  return made;
}

struct Far {
  test::FarDevice* device = nullptr;
  std::unique_ptr<Session> session;
};

Far open_far(const std::set<OpKind>& operators, const std::set<OpKind>& in_place = {}) {
  auto device = std::make_unique<test::FarDevice>(operators, in_place);
  Far far{.device = device.get(), .session = nullptr};
  auto session = Session::create_on(DeviceSet::adopt(std::move(device)).value(), model(), {});
  EXPECT_TRUE(session.ok()) << session.status().message();
  far.session = std::move(session).value();
  return far;
}

class Buffer {
 public:
  explicit Buffer(Session& session, const Floats& values = Floats(64)) {
    auto made = DeviceMemory::create(session.shared_devices(), {.request = {.bytes = 256}});
    EXPECT_TRUE(made.ok()) << made.status().message();
    memory = std::move(made).value();
    memory->note_handle(this);
    EXPECT_TRUE(memory->block().upload(0, std::as_bytes(std::span(values))).ok());
  }
  Floats values(size_t count) const {
    Floats read(count);
    EXPECT_TRUE(memory->block().download(0, std::as_writable_bytes(std::span(read))).ok());
    return read;
  }
  std::shared_ptr<DeviceMemory> memory;
};

TEST(External, IsRecordedOncePerMemory) {
  for (const bool in_place : {false, true}) {
    const std::set<OpKind> all{OpKind::Add, OpKind::Relu, OpKind::Neg, OpKind::Cast};
    Far far = open_far(all, in_place ? std::set{OpKind::Relu, OpKind::Neg} : std::set<OpKind>{});
    Session& session = *far.session;
    const Buffer a(session, Floats(8, 1)), b(session, Floats(8, 2)), y(session), z(session);
    const TensorInfo two_rows{DType::F32, {2, 4}};
    int expected = 0;
    const auto run = [&](const Buffer& from, const Buffer& to, float value, int recorded) {
      ASSERT_OK(session.bind_input(0, two_rows, from.memory, 0));
      ASSERT_OK(session.bind_output(0, 256, to.memory, 0));
      ASSERT_OK(session.run());
      EXPECT_EQ(to.values(8), Floats(8, 2 * value));
      EXPECT_EQ(from.values(8), Floats(8, value));
      EXPECT_EQ(session.output(1)->as<float>()[7], -value);
      EXPECT_EQ(far.device->recordings, expected += recorded);
    };
    run(a, y, 1, 1);
    run(a, y, 1, 0);
    run(b, y, 2, 1);
    run(a, z, 1, 1);
    run(b, z, 2, 1);
    run(a, y, 1, 0);
    run(b, y, 2, 0);
    ASSERT_OK(session.bind_output(0, nullptr, 0));
    ASSERT_OK(session.run());  // the fifth takes the place of one
    EXPECT_EQ(session.output(0)->as<float>()[7], 4);
    EXPECT_EQ(far.device->recordings, expected += 1);
    run(b, y, 2, 0);
    run(a, z, 1, 1);
  }
}

TEST(External, IsCopiedToNodesOfOtherDevices) {
  Far far = open_far({OpKind::Add});
  Session& session = *far.session;
  const Buffer x(session, Floats(8, 3)), y(session), negated(session), shape(session);
  ASSERT_OK(session.bind_input(0, {DType::F32, {2, 4}}, x.memory, 0));
  ASSERT_OK(session.bind_output(0, 256, y.memory, 0));
  ASSERT_OK(session.bind_output(1, 256, negated.memory, 0));
  ASSERT_OK(session.bind_output(2, 256, shape.memory, 0));
  for (int run = 0; run < 4; ++run) {
    if (run < 2) {
      ASSERT_OK(session.run());
    } else {
      ASSERT_OK(session.submit());
      ASSERT_OK(session.wait());
    }
    EXPECT_EQ(y.values(8), Floats(8, 6));
    EXPECT_EQ(negated.values(8), Floats(8, -3));
    EXPECT_EQ(shape.values(2), (Floats{2, 4}));
    EXPECT_EQ(session.output(0)->data, nullptr);
    EXPECT_EQ(session.output_place(1).memory.lock(), negated.memory);
  }
  EXPECT_GT(session.plan()->program().fallbacks, 0u);
}

}  // namespace
}  // namespace librt
