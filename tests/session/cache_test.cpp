// A key/value cache in states: one plan for all steps, updated in place without a second copy. argv[1]: the
// backend.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/session/session.h"
#include "tests/session/cached_decoder.h"
#include "tests/support/backend_main.h"

namespace librt {
namespace {

using test::backend_name;

std::unique_ptr<Session> open(const std::string& backend, int64_t capacity) {
  auto model = test::cached_decoder(capacity);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return nullptr;
  auto session = Session::create(*model, {.backend = backend, .strict = true});
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? std::move(*session) : nullptr;
}

/// The output of step `step`.
std::vector<float> run(Session& session, int step) {
  std::vector<float> x(32);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::cos(static_cast<float>(step * 32) + static_cast<float>(i));
  Status status = session.set_input(0, {x.data(), {DType::F32, {1, 1, 32}}}, x.size() * sizeof(float));
  if (status.ok()) status = session.run();
  EXPECT_TRUE(status.ok()) << status.message();
  const auto y = session.output(0);
  EXPECT_TRUE(y.ok());
  if (!y.ok()) return std::vector<float>(32);
  return {y->as<float>(), y->as<float>() + 32};
}

std::vector<std::byte> state(Session& session, std::string_view name) {
  const auto index = session.states().find(name);
  EXPECT_TRUE(index.ok());
  std::vector<std::byte> bytes(session.states().state(*index).info.bytes());
  EXPECT_TRUE(session.states().read(*index, bytes).ok());
  return bytes;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want) {
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << "element " << i;
}

TEST(CachedDecoder, OnePlanServesAllStepsInPlace) {
  constexpr int64_t kCapacity = 4096;
  constexpr size_t kCacheBytes = kCapacity * 2 * 8 * sizeof(float);
  const auto session = open(backend_name, kCapacity), reference = open("reference", kCapacity);
  ASSERT_TRUE(session != nullptr && reference != nullptr);
  std::vector<float> first;
  for (int step = 0; step < 20; ++step) {
    const std::vector<float> y = run(*session, step);
    expect_near(y, run(*reference, step));
    if (step == 0) first = y;
  }
  EXPECT_EQ(session->memory().plans, 1u);
  EXPECT_GE(session->memory().states, 2 * kCacheBytes);
  EXPECT_LT(session->memory().peak_planned, kCacheBytes);
  size_t written = 0;
  for (const Step& step : session->plan()->program().steps) {
    const bool scatters = step.node != nullptr && step.node->kind() == OpKind::TensorScatter;
    written += scatters && step.in_place;
    if (scatters || step.kind == StepKind::Kernel) continue;
    for (const Ref output : step.outputs)
      EXPECT_LT(session->plan()->program().values[output].bytes, kCacheBytes)
          << "'" << step.name << "' copies a cache";
  }
  EXPECT_EQ(written, 2u);

  ASSERT_TRUE(session->states().reset().ok());
  expect_near(run(*session, 0), first);
}

TEST(CachedDecoder, NothingIsWrittenPastTheCapacity) {
  const auto session = open(backend_name, 3);
  ASSERT_TRUE(session != nullptr);
  for (int step = 0; step < 3; ++step) run(*session, step);
  const auto keys = state(*session, "past_key"), values = state(*session, "past_value");
  for (int step = 3; step < 6; ++step) run(*session, step);
  EXPECT_EQ(keys, state(*session, "past_key"));
  EXPECT_EQ(values, state(*session, "past_value"));
  int64_t length = 0;
  std::memcpy(&length, state(*session, compiler::kCacheLengthState).data(), sizeof length);
  EXPECT_EQ(length, 6);
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv);
}
