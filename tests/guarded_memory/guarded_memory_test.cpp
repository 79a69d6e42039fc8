// The guarded CPU backend notices what it is for: an operator that accesses what is not its own.
#include <gtest/gtest.h>

#include "rt/custom.hpp"
#include "tests/support/loaded_model.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;

/// y f32[16] = x f32[16], by an operator of the application; the operand before it is a result.
rt::Model model() {
  ModelGraph made;
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &made.states);
  const ValueId x = build.input("x", DType::F32, {{.extent = 16}});
  op::CustomAttributes attributes;
  attributes.domain = "com.example";
  attributes.name = "Copy";
  attributes.outputs = {RT_F32, 1, 16};
  build.set_scope("copying");
  build.output(build.neg(build.emit(attributes, {build.neg(x)})));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  made.entries.push_back({"infer", std::move(graph)});
  return test::loaded_model(made);
}

/// Runs the model with access(x, y) instead of the copy, and returns the result's message; "" for success.
template <class Access>
std::string message_of(const Access& access) {
  const rt::CustomOperator custom("com.example", "Copy", [&](const rt::CustomCall& call) {
    const rt::Tensor x = call.input(0);
    rt::Tensor y = call.output();
    access(x.values<float>().data(), y.values<float>().data());
    return rt::Status();
  });
  rt::SessionOptions options;
  options.backend = "cpu";
  const auto operators = rt::handles_of(custom);
  options.custom_operators = operators;
  auto session = rt::Session::create(model(), options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  rt::Tensor x(rt::DType::F32, {16});
  for (float& value : x.values<float>()) value = 1;
  rt::Status status = session->set_input(0, x);
  if (status) status = session->run();
  return std::string(status.message());
}

/// An address that the compiler knows nothing of.
template <class T>
T* at(T* base, ptrdiff_t index) {
  T* volatile address = base;
  return address + index;
}

TEST(GuardedMemory, LeavesWhatIsRightAlone) {
  EXPECT_EQ(message_of([](const float* x, float* y) { std::copy(x, x + 16, y); }), "");
}

TEST(GuardedMemory, ReportsWritesBeforeABlock) {
  const std::string message = message_of([](const float*, float* y) { *at(y, -1) = 1; });
  EXPECT_NE(message.find("kernel custom writes byte -4 of the 64 of output 0"), std::string::npos) << message;
}

TEST(GuardedMemory, ReportsResultsThatWereNotWritten) {
  bool nan = false;
  EXPECT_EQ(message_of([&](const float*, float* y) { nan = *at(y, 5) != *at(y, 5); }), "");
  EXPECT_TRUE(nan);
}

TEST(GuardedMemoryDeathTest, EndsTheProgramAtAccessesAfterABlock) {
  EXPECT_DEATH(message_of([](const float*, float* y) { *at(y, 16) = 1; }),
               "kernel custom reads or writes byte 64 of the 64 of output 0");
  EXPECT_DEATH(message_of([](const float* x, float* y) { *y = *at(x, 20); }),
               "kernel custom reads or writes byte 80 of the 64 of input 0");
}

}  // namespace
}  // namespace librt
