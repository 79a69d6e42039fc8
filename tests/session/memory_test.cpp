// Memory of a session that cycles through 50 shapes on the backend argv[1], with a plan cache that holds them
// all and one that does not: constant after the first rounds. A separate program, because it measures the
// whole process.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/backend/registry.h"
#include "runtime/session/session.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"

namespace {

using namespace librt;

constexpr int64_t kShapes = 50;

/// x [n,8,8,16] -> the samples with a positive sum, after a convolution and a matmul.
std::shared_ptr<const ModelGraph> model() {
  auto made = std::make_shared<ModelGraph>();
  Graph graph;
  graph.name = "infer";
  compiler::Builder build(graph);
  const ValueId x = build.input(
      "x", DType::F32, {{.symbol = graph.symbol("n")}, {.extent = 8}, {.extent = 8}, {.extent = 16}});
  const std::vector<float> numbers(16 * 3 * 3 * 16, 0.01f);
  const ValueId filter =
      build.constant({DType::F32, {16, 3, 3, 16}}, Blob::copy_of(numbers.data(), numbers.size() * 4));
  const ValueId weight = build.constant({DType::F32, {16, 16}}, Blob::copy_of(numbers.data(), 16 * 16 * 4));
  op::ConvAttributes conv;
  conv.strides = {1, 1};
  conv.pads = {1, 1, 1, 1};
  conv.dilations = {1, 1};
  const ValueId features = build.emit(std::move(conv), {x, filter});
  const ValueId sums = build.reduce_sum(features, {1, 2, 3}, false);
  const int64_t all = -1;
  const ValueId places =
      build.reshape(build.emit(op::NonZeroAttributes{},
                               {build.emit(op::GreaterAttributes{}, {sums, build.scalar(0, DType::F32)})}),
                    build.ints({&all, 1}));
  const ValueId kept = build.emit(op::GatherAttributes{}, {features, places});
  build.output(build.emit(op::MatMulAttributes{}, {kept, weight}));
  if (!build.status().ok()) std::printf("%s\n", build.status().message().c_str());
  made->entries.push_back({"infer", std::move(graph)});
  if (const Status status = compiler::optimize(*made, {}, nullptr); !status.ok())
    std::printf("%s\n", status.message().c_str());
  return made;
}

struct Used {
  size_t heap = 0, resident = 0;
};

Used used() {
  malloc_trim(0);
  const struct mallinfo2 heap = mallinfo2();
  size_t pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    // NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers
    if (std::fscanf(file, "%zu %zu", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return {heap.uordblks + heap.hblkhd, resident * static_cast<size_t>(sysconf(_SC_PAGESIZE))};
}

Status round(Session& session) {
  static std::vector<float> x(kShapes * 8 * 8 * 16);
  for (int64_t n = 1; n <= kShapes; ++n) {
    // Half of the samples are positive.
    for (size_t i = 0; i < x.size(); ++i) x[i] = i / (8 * 8 * 16) % 2 == 0 ? 1.0f : -1.0f;
    const ConstTensorView view{x.data(), {DType::F32, {n, 8, 8, 16}}};
    RT_TRY(session.set_input(0, view, x.size() * sizeof(float)));
    RT_TRY(session.run());
    RT_ASSIGN(const TensorView y, session.output(0));
    if (y.info.shape[0] != (n + 1) / 2)
      return internal_error("expected ", (n + 1) / 2, " samples, found ", y.info);
  }
  return {};
}

int check(const char* backend, uint64_t plan_cache_bytes) {
  auto session =
      Session::create(model(), {.backend = backend, .threads = 1, .plan_cache_bytes = plan_cache_bytes});
  if (!session.ok()) {
    std::printf("%s\n", session.status().message().c_str());
    return 1;
  }
  Used before;
  for (int i = 0; i < 6; ++i) {
    if (const Status status = round(**session); !status.ok()) {
      std::printf("%s\n", status.message().c_str());
      return 1;
    }
    const Used now = used();
    std::printf("round %d: heap %zu KB, resident %zu KB, %d plans\n", i, now.heap >> 10, now.resident >> 10,
                static_cast<int>((*session)->memory().plans));
    if (i == 1) before = now;  // by then, oneDNN's cache of primitives is full
    constexpr size_t kHeapSlack = 256 << 10, kResidentSlack = 2 << 20;
    if (i > 1 && (now.heap > before.heap + kHeapSlack || now.resident > before.resident + kResidentSlack))
      return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const backend = argc > 1 ? argv[1] : "cpu";
  if (const auto found = open_device(backend, {}); !found.ok()) {
    std::printf("skipped: %s\n", found.status().message().c_str());
    return 77;
  }
  return check(backend, 0) + check(backend, 100'000);
}
