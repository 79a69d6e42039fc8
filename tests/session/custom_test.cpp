// Operators of the application: kernels in host memory on every backend, on CUDA's stream, attributes,
// failures, what is refused. argv[1]: the backend; then --validation or nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "rt/custom.hpp"
#include "rt/memory.hpp"
#include "runtime/geometry/custom.h"
#include "tests/session/outcome.h"
#include "tests/session/shared_device.h"
#include "tests/support/backend_main.h"
#include "tests/support/loaded_model.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;
using test::says;
using Floats = std::vector<float>;

using test::backend_name, test::validation;

constexpr int64_t kF32 = RT_F32, kI64 = RT_I64;

/// Scale(x f32[rows,4], factors f32[4], left out) -> f32[rows,4], i64[2], whose second the model does not
/// use.
op::CustomAttributes scale() {
  op::CustomAttributes attributes;
  attributes.domain = "com.example";
  attributes.name = "Scale";
  attributes.outputs = {kF32, 2, custom_extent_of(0, 0), custom_extent_of(1, 0), kI64, 1, 2};
  attributes.attributes = "axis:i1 weights:f2 mode:s4 sizes:i3 none:i0";
  attributes.ints = {-1, 5, 6, 7};
  attributes.floats = {0.5f, 2.5f};
  attributes.text = "fast";
  return attributes;
}

/// y = -Scale(x + x, [1, 2, 3, 4]), with these attributes in the file.
rt::Model model(const op::CustomAttributes& attributes = scale()) {
  ModelGraph made;
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &made.states);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("rows")}, {.extent = 4}});
  const float factors[] = {1, 2, 3, 4};
  const ValueId constant = build.constant({DType::F32, {4}}, Blob::copy_of(factors, sizeof factors));
  const ValueId twice = build.add(x, x);
  build.set_scope("scaling");
  const auto results = build.emit_many(make_op(scale()), std::array{twice, constant, kNoValue}, 2);
  build.output(build.neg(results[0]));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  graph[graph.outputs[0]].name = "y";
  for (Node& node : graph.nodes)
    if (node.kind() == OpKind::Custom) node.op = make_op(attributes);
  made.entries.push_back({"infer", std::move(graph)});
  return test::loaded_model(made);
}

rt::Result<rt::Session> open(const rt::CustomOperator& custom, rt::SessionOptions options = {}) {
  const auto operators = rt::handles_of(custom);
  options.backend = backend_name;
  options.validation = validation;
  options.custom_operators = operators;
  return rt::Session::create(model(), options);
}

rt::Status scale_on_host(const rt::CustomCall& call) {
  const rt::Tensor x = call.input(0), factors = call.input(1);
  rt::Tensor y = call.output();
  const auto from = x.values<float>(), by = factors.values<float>();
  for (size_t i = 0; i < from.size(); ++i) y.values<float>()[i] = from[i] * by[i % by.size()];
  return {};
}

Floats run(rt::Session& session, int64_t rows, float first = 1) {
  rt::Tensor x(rt::DType::F32, {rows, 4});
  for (float& value : x.values<float>()) value = first++;
  rt::Status status = session.set_input(0, x);
  if (status) status = session.run();
  EXPECT_TRUE(status.ok()) << status.message();
  const auto y = session.output(0);
  return y ? Floats(y->values<float>().begin(), y->values<float>().end()) : Floats();
}

Floats expected(int64_t rows, float first = 1) {
  Floats all;
  for (int64_t i = 0; i < 4 * rows; ++i)
    all.push_back(-2 * (first + static_cast<float>(i)) * static_cast<float>(i % 4 + 1));
  return all;
}

TEST(Custom, RunsInHostMemoryOnEveryBackend) {
  std::atomic<int> calls = 0;
  const rt::CustomOperator custom("com.example", "Scale", [&](const rt::CustomCall& call) {
    ++calls;
    EXPECT_EQ(call.stream(), nullptr);
    return scale_on_host(call);
  });
  auto session = open(custom);
  ASSERT_OK(session);
  for (const int64_t rows : {2, 5, 2, 2}) EXPECT_EQ(run(*session, rows), expected(rows));
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(session->fallback_count(), backend_name == "cpu" || backend_name == "reference" ? 0u : 1u);
  EXPECT_NE(session->plan_text()->find("'scaling'"), std::string::npos) << *session->plan_text();
  EXPECT_EQ(run(*session, 0), Floats());
  EXPECT_EQ(calls, 4);
  for (int i = 0; i < 2; ++i) ASSERT_OK(session->submit());
  for (int i = 0; i < 2; ++i) ASSERT_OK(session->wait());
  rt::SessionOptions strict;
  strict.strict = true;
  const auto refused = open(custom, strict);
  if (!refused.ok()) {
    EXPECT_TRUE(says(refused, "node 'scaling'"));
    return;
  }
  auto strictly = open(custom, strict);
  rt::Tensor x(rt::DType::F32, {1, 4});
  ASSERT_OK(strictly->set_input(0, x));
  const rt::Status ran = strictly->run();
  if (backend_name == "cpu" || backend_name == "reference")
    ASSERT_OK(ran);
  else
    EXPECT_TRUE(says(ran, "node 'scaling'"));
}

TEST(Custom, GetsOperandsAndAttributes) {
  bool called = false;
  const rt::CustomOperator custom("com.example", "Scale", [&](const rt::CustomCall& call) {
    called = true;
    EXPECT_STREQ(call.handle().node, "scaling");
    EXPECT_GE(call.handle().struct_size, sizeof(rt_custom_call));
    EXPECT_EQ(call.input_count(), 3u);
    EXPECT_EQ(call.output_count(), 2u);
    EXPECT_TRUE(call.has(1));
    EXPECT_FALSE(call.has(2));
    EXPECT_FALSE(call.has(9));
    EXPECT_EQ(call.input(0).dims()[0], 3);
    EXPECT_EQ(call.input(0).dims()[1], 4);
    EXPECT_EQ(call.output(0).dims()[0], 3);
    EXPECT_EQ(call.output(1).dtype(), rt::DType::I64);
    EXPECT_EQ(call.output(1).dims().size(), 1u);
    EXPECT_EQ(call.integer("axis", 0), -1);
    EXPECT_EQ(call.integer("missing", 9), 9);
    EXPECT_EQ(call.integer("weights", 9), 9);  // of another kind
    EXPECT_EQ(call.real("weights", 0), 0.5f);
    EXPECT_EQ(call.reals("weights")[1], 2.5f);
    EXPECT_EQ(call.text("mode"), "fast");
    EXPECT_EQ(call.text("mode").data()[4], 0);
    EXPECT_EQ(call.integers("sizes").size(), 3u);
    EXPECT_EQ(call.integers("sizes")[2], 7);
    EXPECT_TRUE(call.integers("none").empty());
    return scale_on_host(call);
  });
  auto session = open(custom);
  ASSERT_OK(session);
  EXPECT_EQ(run(*session, 3), expected(3));
  EXPECT_TRUE(called);
}

TEST(Custom, FailuresAreTheRuns) {
  int mode = 0;
  const rt::CustomOperator custom("com.example", "Scale", [&](const rt::CustomCall& call) -> rt::Status {
    if (mode == 1) return {rt::Code::LimitExceeded, "too many rows"};
    if (mode == 2) throw std::runtime_error("thrown");
    if (mode == 3) throw 3;
    if (mode == 4) return {rt::Code::Cancelled, std::string(1000, 'x')};
    return scale_on_host(call);
  });
  auto session = open(custom);
  ASSERT_OK(session);
  ASSERT_OK(session->set_input(0, rt::Tensor(rt::DType::F32, {2, 4})));
  for (int repeat = 0; repeat < 2; ++repeat) {
    mode = 1;
    const rt::Status limit = session->run();
    EXPECT_EQ(limit.code(), rt::Code::LimitExceeded);
    EXPECT_TRUE(says(limit, "operator 'Scale' of the domain 'com.example', node 'scaling': too many rows"));
    mode = 2;
    EXPECT_TRUE(says(session->run(), "thrown"));
    mode = 3;
    EXPECT_TRUE(says(session->run(), "no std::exception"));
    mode = 4;
    EXPECT_EQ(session->run().code(), rt::Code::Cancelled);
    mode = 0;
    EXPECT_EQ(run(*session, 2), expected(2));
  }
}

TEST(Custom, PlainFunctions) {
  static int result = 0;
  rt_custom_operator c = RT_CUSTOM_OPERATOR_INIT;
  std::string domain = "com.example", name = "Scale";
  c.domain = domain.c_str();
  c.name = name.c_str();
  c.run = [](void*, const rt_custom_call* call) -> int {
    if (result == 98) throw std::runtime_error("a function of C that throws");
    std::memset(call->outputs[0].data, 0, static_cast<size_t>(16 * call->outputs[0].dims[0]));
    return result;
  };
  rt::SessionOptions options{.backend = backend_name, .validation = validation};
  options.custom_operators = {&c, 1};
  auto session = rt::Session::create(model(), options);
  ASSERT_OK(session);
  domain = "overwritten";  // copied
  name.clear();
  ASSERT_OK(session->set_input(0, rt::Tensor(rt::DType::F32, {2, 4})));
  ASSERT_OK(session->run());
  struct Failure {
    int returned;
    rt::Code code;
    const char* words;
  };
  for (const auto& [returned, code, words] :
       {Failure{RT_IO, rt::Code::Io, "its kernel returned 7"}, Failure{99, rt::Code::Internal, "returned 99"},
        Failure{-1, rt::Code::Internal, "returned -1"},
        Failure{98, rt::Code::Internal, "a function of C that throws"}}) {
    result = returned;
    const rt::Status status = session->run();
    EXPECT_EQ(status.code(), code);
    EXPECT_TRUE(says(status, words));
  }
}

TEST(Custom, MayNotUseItsSession) {
  rt_session* itself = nullptr;
  std::string message;
  const rt::CustomOperator custom("com.example", "Scale", [&](const rt::CustomCall& call) {
    message = rt::Status::take(rt_session_run(itself)).message();
    return scale_on_host(call);
  });
  auto session = open(custom);
  ASSERT_OK(session);
  itself = session->handle();
  EXPECT_EQ(run(*session, 2), expected(2));
  EXPECT_NE(message.find("in use"), std::string::npos) << message;
}

TEST(Custom, MissingOnesAreNamed) {
  const rt::CustomOperator other("com.example", "Shift", scale_on_host),
      stranger("org", "Scale", scale_on_host);
  for (const auto* custom : {&other, &stranger}) {
    const auto refused = open(*custom);
    EXPECT_EQ(refused.status().code(), rt::Code::Unsupported);
    EXPECT_TRUE(says(refused,
                     "node 'scaling' (Scale): expected a kernel for the operator 'Scale' of the domain "
                     "'com.example'"));
    EXPECT_TRUE(says(refused, "rt_session_options.custom_operators"));
  }
  rt::SessionOptions options{.backend = backend_name};
  EXPECT_TRUE(says(rt::Session::create(model(), options), "expected a kernel for the operator 'Scale'"));
}

TEST(Custom, WrongRegistrationsAreRefused) {
  const rt::CustomOperator custom("com.example", "Scale", scale_on_host);
  const auto refused = [&](std::vector<rt_custom_operator> all, std::string_view words) {
    rt::SessionOptions options{.backend = backend_name};
    options.custom_operators = all;
    EXPECT_TRUE(says(rt::Session::create(model(), options), words));
  };
  refused(rt::handles_of(custom, custom), "'Scale' of 'com.example' is there twice");
  rt_custom_operator one = custom.handle();
  one.run = nullptr;
  refused({one}, "rt_custom_operator 0: expected a name, and run or run_cuda");
  one = custom.handle();
  one.name = nullptr;
  refused({custom.handle(), one}, "rt_custom_operator 1");
  one = custom.handle();
  one.struct_size = 0;
  refused({one}, "struct_size");
  rt_session_options c = RT_SESSION_OPTIONS_INIT;
  c.custom_operator_count = 1;
  rt_session* session = nullptr;
  const rt::Model loaded = model();
  EXPECT_TRUE(
      says(rt::Status::take(rt_session_create(loaded.handle(), &c, &session)), "the pointer is null"));
}

TEST(Custom, HostileResultsAreErrorsWhenShapesAreKnown) {
  const rt::CustomOperator custom("com.example", "Scale", scale_on_host);
  const auto refused = [&](std::vector<int64_t> outputs, std::string_view words) {
    op::CustomAttributes attributes = scale();
    attributes.outputs = std::move(outputs);
    const auto operators = rt::handles_of(custom);
    auto session =
        rt::Session::create(model(attributes), {.backend = backend_name, .custom_operators = operators});
    ASSERT_OK(session);
    ASSERT_OK(session->set_input(0, rt::Tensor(rt::DType::F32, {2, 4})));
    EXPECT_TRUE(says(session->run(), words));
  };
  refused({kF32, 2, custom_extent_of(0, 0), custom_extent_of(1, 0)}, "output");
  refused({kF32, 2, 2, 4, kI64, 1, 2, kF32, 0}, "output");
  refused({kF32, 2, custom_extent_of(2, 0), 4, kI64, 1, 2}, "an operand 2 with an axis 0");
  refused({kF32, 2, custom_extent_of(7, 0), 4, kI64, 1, 2}, "an operand 7");
  refused({kF32, 2, custom_extent_of(0, 1), 4, kI64, 1, 2}, "[4,4]");  // the file says [rows,4]
}

TEST(Custom, KeepsItsTypes) {
  // 16-bit floats, which devices without kernels for them compute in 32 bits: not here.
  ModelGraph made;
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &made.states);
  const ValueId x = build.input("x", DType::F16, {{.extent = 4}});
  op::CustomAttributes attributes = scale();
  attributes.outputs = {RT_F16, 1, 4};
  const ValueId exponential = build.emit(op::ExpAttributes{}, {x});
  build.output(build.emit(op::ExpAttributes{}, {build.emit(attributes, {exponential})}));
  ASSERT_TRUE(build.status().ok()) << build.status().message();
  graph[graph.outputs[0]].name = "y";
  made.entries.push_back({"infer", std::move(graph)});
  const rt::Model loaded = test::loaded_model(made);
  const rt::CustomOperator custom("com.example", "Scale", [](const rt::CustomCall& call) -> rt::Status {
    if (call.input(0).dtype() != rt::DType::F16 || call.output().dtype() != rt::DType::F16)
      return {rt::Code::InvalidArgument, "another type"};
    rt::Tensor y = call.output();
    for (uint16_t& bits : y.values<uint16_t>()) bits = 0;
    return {};
  });
  const auto operators = rt::handles_of(custom);
  for (const char* precision : {"", "fp32", "bf16"}) {
    auto session = rt::Session::create(
        loaded, {.backend = backend_name, .precision = precision, .custom_operators = operators});
    if (!session.ok()) continue;  // no matmul that could be computed in it
    ASSERT_OK(session->set_input(0, rt::Tensor(rt::DType::F16, {4})));
    ASSERT_OK(session->run());
    EXPECT_EQ(session->output(0)->values<uint16_t>()[3], 0x3c00);
  }
}

TEST(Custom, BelongToTheDevice) {
  const rt::CustomOperator custom("com.example", "Scale", scale_on_host);
  auto first = open(custom);
  ASSERT_OK(first);
  rt::SessionOptions options{.backend = backend_name, .validation = validation, .share_device_with = &*first};
  auto second = rt::Session::create(model(), options);
  ASSERT_OK(second);
  EXPECT_EQ(run(*second, 2), expected(2));
  const auto operators = rt::handles_of(custom);
  options.custom_operators = operators;
  EXPECT_TRUE(says(rt::Session::create(model(), options), "custom_operators are the other session's"));
}

TEST(Custom, SessionsOfSeveralThreads) {
  std::atomic<int> calls = 0;
  const rt::CustomOperator custom("com.example", "Scale", [&](const rt::CustomCall& call) {
    ++calls;
    return scale_on_host(call);
  });
  const auto work = [&](int64_t rows) {
    auto session = open(custom);
    ASSERT_OK(session);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(run(*session, rows, static_cast<float>(i)), expected(rows, static_cast<float>(i)));
  };
  std::thread other(work, 3);
  work(4);
  other.join();
  EXPECT_EQ(calls, 40);
}

TEST(Custom, WorksInMemoryOfTheDevice) {
  const rt::CustomOperator custom("com.example", "Scale", scale_on_host);
  auto session = open(custom);
  ASSERT_OK(session);
  auto x = rt::Memory::create(*session, 32), y = rt::Memory::create(*session, 32);
  ASSERT_OK(x);
  ASSERT_OK(y);
  const Floats values{1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_OK(x->write<float>(values));
  ASSERT_OK(session->bind_input(0, x->tensor(rt::DType::F32, {2, 4})));
  ASSERT_OK(session->bind_output(0, y->tensor(rt::DType::F32, {2, 4})));
  for (int i = 0; i < 3; ++i) ASSERT_OK(session->run());
  Floats result(8);
  ASSERT_OK(y->read<float>(result));
  EXPECT_EQ(result, expected(2));
}

TEST(Custom, LaunchesOnTheStreamOfCuda) {
  const test::CudaRuntime cuda;
  if (!backend_name.starts_with("cuda")) GTEST_SKIP() << "no CUDA";
  if (!cuda) GTEST_SKIP() << "no libcudart to copy with";
  int on_host = 0, on_device = 0;
  bool fails = false;
  void* stream = nullptr;
  const rt::CustomOperator custom(
      "com.example", "Scale",
      [&](const rt::CustomCall& call) {
        ++on_host;
        return scale_on_host(call);
      },
      [&](const rt::CustomCall& call) -> rt::Status {
        ++on_device;
        stream = call.stream();
        if (fails) return {rt::Code::LimitExceeded, "not now"};
        rt::Tensor y = call.output();
        // What a kernel would launch: y = x.
        if (cuda.call("cudaMemcpyAsync", y.data(), call.input(0).data(), y.bytes(), 3, call.stream()) != 0)
          return {rt::Code::Device, "cudaMemcpyAsync"};
        return {};
      });
  rt::SessionOptions strict;
  strict.strict = true;
  auto session = open(custom, strict);
  ASSERT_OK(session);
  for (int repeat = 1; repeat <= 4; ++repeat) {
    EXPECT_EQ(run(*session, 2, static_cast<float>(repeat)).back(), -2 * static_cast<float>(repeat + 7));
    EXPECT_EQ(on_device, repeat);  // in each run, not only in the one that is captured
  }
  EXPECT_EQ(on_host, 0);
  EXPECT_EQ(stream, session->native().cuda_stream);
  EXPECT_EQ(session->fallback_count(), 0u);
  fails = true;
  const rt::Status failed = session->run();
  EXPECT_EQ(failed.code(), rt::Code::LimitExceeded);
  EXPECT_TRUE(says(failed, "node 'scaling': not now"));
  fails = false;
  EXPECT_EQ(run(*session, 1).back(), -8);
  // Without a kernel for the host, such a session is needed.
  const rt::CustomOperator only("com.example", "Scale", nullptr,
                                [](const rt::CustomCall&) { return rt::Status(); });
  ASSERT_OK(open(only));
}

TEST(Custom, NeedsAKernelForTheBackend) {
  const rt::CustomOperator only("com.example", "Scale", nullptr,
                                [](const rt::CustomCall&) { return rt::Status(); });
  if (backend_name.starts_with("cuda")) GTEST_SKIP() << "this backend calls it";
  auto session = open(only);
  ASSERT_OK(session);
  ASSERT_OK(session->set_input(0, rt::Tensor(rt::DType::F32, {2, 4})));
  EXPECT_TRUE(says(session->run(), "the operator 'Scale' has no kernel `run`"));
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv);
}
