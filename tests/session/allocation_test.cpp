// After the first run of a shape, and the second of a training step, run() allocates nothing on the cpu
// backend. A separate program, because it counts malloc. Allocations inside oneDNN's dnnl_primitive_execute
// (a table of arguments per call) are counted separately: no user of oneDNN can prevent them.
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/backend/registry.h"
#include "runtime/session/session.h"
#include "tests/session/cached_decoder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/train_entry.h"
#include "tools/compiler/zoo/zoo.h"

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {
std::atomic<long> allocations{0};
std::atomic<long> onednn_allocations{0};
std::atomic<bool> counting{false};
std::atomic<bool> inside_onednn{false};  // also covers its worker threads; nothing else runs meanwhile
void count() {
  if (!counting.load(std::memory_order_relaxed)) return;
  (inside_onednn ? onednn_allocations : allocations).fetch_add(1, std::memory_order_relaxed);
}

using Execute = int (*)(const void* primitive, void* stream, int count, const void* arguments);
Execute find_execute() {
  for (const char* library : {"libdnnl.so.2", "libdnnl.so.3", "libdnnl.so.3.6"})  // of Debian 12, others, 13
    if (void* loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD); loaded != nullptr)
      return reinterpret_cast<Execute>(dlsym(loaded, "dnnl_primitive_execute"));
  return nullptr;
}
}  // namespace

// Exported, so that librt's modules and their libraries use these too.
#define EXPORTED extern "C" __attribute__((visibility("default")))
EXPORTED void* malloc(size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
EXPORTED void* calloc(size_t number, size_t bytes) {
  count();
  return __libc_calloc(number, bytes);
}
EXPORTED void* realloc(void* memory, size_t bytes) {
  count();
  return __libc_realloc(memory, bytes);
}
EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
EXPORTED int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  count();
  *memory = __libc_memalign(alignment, bytes);
  return *memory != nullptr ? 0 : 12;
}
/// Overrides oneDNN's own: symbols of the program take precedence.
EXPORTED int dnnl_primitive_execute(const void* primitive, void* stream, int number, const void* arguments) {
  static const Execute execute = find_execute();
  if (execute == nullptr) {
    std::printf("oneDNN's dnnl_primitive_execute was not found\n");
    std::exit(1);
  }
  inside_onednn = true;
  const int result = execute(primitive, stream, number, arguments);
  inside_onednn = false;
  return result;
}

namespace {

using namespace librt;

std::shared_ptr<const ModelGraph> model() {
  auto made = std::make_shared<ModelGraph>();
  Graph graph;
  graph.name = "infer";
  compiler::Builder build(graph);
  const int32_t batch = graph.symbol("batch");
  const ValueId x = build.input("x", DType::F32, {{.symbol = batch}, {.extent = 64}});
  std::vector<float> weights(64 * 64, 0.01f);
  const ValueId w = build.constant({DType::F32, {64, 64}}, Blob::copy_of(weights.data(), weights.size() * 4));
  ValueId y = x;
  for (int i = 0; i < 4; ++i) {
    const ValueId matmul = build.emit(op::MatMulAttributes{}, {y, w});
    y = build.emit(op::ReluAttributes{}, {build.add(matmul, x)});
  }
  build.output(build.emit(op::SoftmaxAttributes{}, {y}));
  if (!build.status().ok()) std::printf("%s\n", build.status().message().c_str());
  made->entries.push_back({"infer", std::move(graph)});
  return made;
}

int check(const Status& status) {
  if (!status.ok()) std::printf("%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

int several_shapes() {
  auto session = Session::create(model(), {.backend = "cpu", .strict = true});
  if (!session.ok()) return check(session.status());
  alignas(64) static float x[8 * 64];
  for (float& value : x) value = 0.5f;
  for (const int64_t rows : {8, 3, 8}) {
    const ConstTensorView view{x, {DType::F32, {rows, 64}}};
    if (check((*session)->bind_input(0, view, sizeof x)) != 0) return 1;
    if (check((*session)->run()) != 0) return 1;
    allocations = 0;
    counting = true;
    Status status;
    for (int i = 0; i < 5 && status.ok(); ++i) {
      x[0] = static_cast<float>(i);
      status = (*session)->run();
    }
    counting = false;
    if (check(status) != 0) return 1;
    std::printf("batch %d: %ld allocations in 5 runs; %ld inside oneDNN\n", static_cast<int>(rows),
                allocations.load(), onednn_allocations.exchange(0));
    if (allocations != 0) return 1;
  }
  return 0;
}

/// Training steps: forward, backward and Adam, of convolutions, batch normalization, pools and matmuls.
int training_steps() {
  auto net = compiler::build_zoo_model("resnet18_mnist");
  if (!net.ok()) return check(net.status());
  compiler::TrainOptions training;
  training.loss.class_axis = -1;
  training.optimizer.optimizer.optimizer = compiler::Optimizer::Adam;
  if (check(compiler::add_train_entry(*net, training, nullptr)) != 0) return 1;
  if (check(compiler::optimize(*net, {}, nullptr)) != 0) return 1;
  auto session = Session::create(std::make_shared<ModelGraph>(std::move(*net)),
                                 {.backend = "cpu", .entry = "train_step", .strict = true});
  if (!session.ok()) return check(session.status());
  constexpr int64_t kBatch = 2;
  alignas(64) static float pictures[kBatch * 28 * 28], rate[16] = {1e-3f};
  alignas(64) static int64_t labels[8] = {3, 1};
  const ConstTensorView inputs[] = {{pictures, {DType::F32, {kBatch, 28, 28, 1}}},
                                    {labels, {DType::I64, {kBatch}}},
                                    {rate, {DType::F32, {}}}};
  const size_t bytes[] = {sizeof pictures, sizeof labels, sizeof rate};
  for (size_t i = 0; i < 3; ++i)
    if (check((*session)->bind_input(i, inputs[i], bytes[i])) != 0) return 1;
  Status status = (*session)->run();
  if (status.ok()) status = (*session)->run();
  allocations = 0;
  counting = true;
  for (int i = 0; i < 4 && status.ok(); ++i) {
    pictures[i] = 1;
    status = (*session)->run();
  }
  counting = false;
  if (check(status) != 0) return 1;
  std::printf("training: %ld allocations in 4 steps; %ld inside oneDNN\n", allocations.load(),
              onednn_allocations.exchange(0));
  return allocations == 0 ? 0 : 1;
}

/// Each run is submitted before the previous one is waited for.
int submitted_runs() {
  auto session = Session::create(model(), {.backend = "cpu", .strict = true});
  if (!session.ok()) return check(session.status());
  alignas(64) static float x[8 * 64];
  if (check((*session)->bind_input(0, {x, {DType::F32, {8, 64}}}, sizeof x)) != 0) return 1;
  Status status = (*session)->submit();
  for (int i = 0; i < 8 && status.ok(); ++i) {
    if (i == 2) allocations = 0;
    counting = i >= 2;
    x[i] = 1;
    status = (*session)->submit();
    if (status.ok()) status = (*session)->wait();
  }
  counting = false;
  if (check(status) != 0) return 1;
  std::printf("submitted: %ld allocations in 6 runs; %ld inside oneDNN\n", allocations.load(),
              onednn_allocations.exchange(0));
  return allocations == 0 ? 0 : 1;
}

/// Generation steps: the cache grows, memory does not.
int cached_steps() {
  const auto decoder = test::cached_decoder(64);
  if (!decoder.ok()) return check(decoder.status());
  auto session = Session::create(*decoder, {.backend = "cpu", .strict = true});
  if (!session.ok()) return check(session.status());
  alignas(64) static float x[32];
  if (check((*session)->bind_input(0, {x, {DType::F32, {1, 1, 32}}}, sizeof x)) != 0) return 1;
  if (check((*session)->run()) != 0) return 1;
  allocations = 0;
  counting = true;
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) {
    x[i] = 1;
    status = (*session)->run();
  }
  counting = false;
  if (check(status) != 0) return 1;
  const auto plans = static_cast<int>((*session)->memory().plans);
  std::printf("cache: %ld allocations in 20 runs, %d plan(s)\n", allocations.load(), plans);
  return allocations == 0 && plans == 1 ? 0 : 1;
}

}  // namespace

int main() {
  if (const auto found = open_device("cpu", {}); !found.ok()) {
    std::printf("skipped: %s\n", found.status().message().c_str());
    return 77;
  }
  return several_shapes() == 0 && training_steps() == 0 && submitted_runs() == 0 && cached_steps() == 0 ? 0
                                                                                                        : 1;
}
