// A CUDA runtime on the host, linked instead of cudart: the real signatures, devices, streams that run
// eagerly or lazily, events, capture and replay of graphs, pinned and pageable memory. Calls that the backend
// does not use are missing: using one is a link error. Calls that CUDA forbids during stream capture fail
// with CUDA's error, in the capturing thread (the backend's capture mode) and inside a step; so does work for
// a stream of a device other than the calling thread's current one.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "cuda_emulator/device.h"
#include "cuda_emulator/kernel_names.h"
#include "support/device_fault.h"

namespace {

using Work = std::function<void()>;
using Clock = std::chrono::steady_clock;

struct EventState {
  uint64_t recorded = 0, done = 0;
  Clock::time_point time;
  CUstream_st* stream = nullptr;
  CUgraph_st* capture = nullptr;  ///< recorded during the capture of this graph
  size_t position = 0;            ///< in that graph
};
using EventPtr = std::shared_ptr<EventState>;

struct Operation {
  enum class Kind { Run, Record, Wait } kind;
  Work work;
  EventPtr event;
  uint64_t generation = 0;
};

}  // namespace

struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};
namespace {
// Per thread, as in CUDA.
thread_local int current_device = 0;
thread_local int captures = 0, steps = 0;
thread_local cudaError_t last_error = cudaSuccess;
}  // namespace
struct CUevent_st {
  EventPtr state = std::make_shared<EventState>();
  int device = current_device;
};
struct CUstream_st {
  int device = current_device;
  const int* capturer = nullptr;  ///< `captures` of the capturing thread
  std::deque<Operation> queue;
  bool blocking = true;
  CUgraph_st* capture = nullptr;
  bool origin = false, invalid = false;
  size_t position = 0, joined = 0;  ///< in the captured graph: own work, and work joined by the origin
};

namespace {

struct Allocation {
  size_t bytes;
  bool pinned;  ///< host memory; else device memory
  int device = current_device;
};

struct Runtime {
  std::recursive_mutex mutex;
  std::map<uintptr_t, Allocation> allocations;
  std::set<CUstream_st*> streams;
  std::map<const void*, unsigned> dynamic_shared_limits;
  CUstream_st null_stream;
  cudaError_t sticky = cudaSuccess;
  size_t bytes = 0;
  bool only_counts = false;  ///< launches are counted and not run
  std::map<const void*, uint64_t> counted;
};
Runtime& runtime() {
  static auto* const instance = new Runtime;
  return *instance;
}

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// RT_TEST_FAULT=N:lost: the Nth call fails, and all after it, as after a faulty kernel; N:once is the same
/// here. N:memory: the Nth finds no memory.
cudaError_t next_fault() {
  const std::string kind = librt::test::device_fault([](const std::string&) { return true; });
  if (kind.empty()) return cudaSuccess;
  if (kind == "memory") return cudaErrorMemoryAllocation;
  return runtime().sticky = cudaErrorLaunchFailure;
}

#define RT_LOCKED                                                       \
  const std::lock_guard rt_lock(runtime().mutex);                       \
  if (runtime().sticky != cudaSuccess) return result(runtime().sticky); \
  if (const cudaError_t rt_fault = next_fault(); rt_fault != cudaSuccess) return result(rt_fault)

cudaError_t refuse_while_capturing() {
  for (CUstream_st* stream : runtime().streams)
    if (stream->capture != nullptr && stream->capturer == &captures) stream->invalid = true;
  return result(cudaErrorStreamCaptureUnsupported);
}
/// Follows the body of a function that may allocate on the host; tests make that fail.
#define RT_OR_OUT_OF_MEMORY                   \
  catch (const std::bad_alloc&) {             \
    return result(cudaErrorMemoryAllocation); \
  }
#define RT_NOT_WHILE_CAPTURING \
  if (captures > 0 || steps > 0) return refuse_while_capturing()

/// RT_EMULATOR_CAPTURE=begin, step, end or instantiate: captures are refused there, as a driver or a library
/// may do.
bool refuses_capture(std::string_view where) {
  const char* refused = std::getenv("RT_EMULATOR_CAPTURE");
  return refused != nullptr && refused == where;
}
/// RT_EMULATOR_MULTIPROCESSORS, by which kernels choose tiles and splits; 4.
int multiprocessors() {
  const char* count = std::getenv("RT_EMULATOR_MULTIPROCESSORS");
  return count != nullptr ? static_cast<int>(std::strtol(count, nullptr, 10)) : 4;
}
/// RT_EMULATOR_BROKEN=I: device I does not answer.
bool is_broken(int device) {
  const char* broken = std::getenv("RT_EMULATOR_BROKEN");
  return broken != nullptr && std::strtol(broken, nullptr, 10) == device;
}
bool is_device(int device) {
  return device >= 0 && device < cuda_emulator::options().devices;
}

const Allocation* find(const void* address, uintptr_t* base = nullptr) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  auto found = runtime().allocations.upper_bound(number);
  if (found == runtime().allocations.begin()) return nullptr;
  --found;
  if (number >= found->first + std::max<size_t>(found->second.bytes, 1)) return nullptr;
  if (base != nullptr) *base = found->first;
  return &found->second;
}
bool on_device(const void* address, size_t bytes) {
  uintptr_t base = 0;
  const Allocation* allocation = find(address, &base);
  return allocation != nullptr && !allocation->pinned &&
         reinterpret_cast<uintptr_t>(address) + bytes <= base + allocation->bytes;
}

CUstream_st* real(cudaStream_t stream) {
  const bool null = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  return null ? &runtime().null_stream : stream;
}

bool step(CUstream_st* stream);
void drain(const EventPtr& event, uint64_t generation) {
  while (event->done < generation && event->stream != nullptr && step(event->stream)) {
  }
}
void complete(EventState& event, uint64_t generation) {
  event.done = std::max(event.done, generation);
  event.time = Clock::now();
}
/// Runs the next operation of a stream; false when there is none.
bool step(CUstream_st* stream) {
  if (stream->queue.empty()) return false;
  const Operation operation = std::move(stream->queue.front());
  stream->queue.pop_front();
  switch (operation.kind) {
    case Operation::Kind::Run: operation.work(); break;
    case Operation::Kind::Record: complete(*operation.event, operation.generation); break;
    case Operation::Kind::Wait: drain(operation.event, operation.generation); break;
  }
  return true;
}
void drain(CUstream_st* stream) {
  while (step(stream)) {
  }
}
void drain_all() {
  for (CUstream_st* stream : runtime().streams) drain(stream);
  drain(&runtime().null_stream);
}

cudaError_t push(CUstream_st* stream, Operation operation) {
  if (stream->capture != nullptr) {
    if (operation.kind == Operation::Kind::Run) stream->capture->work.push_back(std::move(operation.work));
    stream->position = stream->capture->work.size();
    return cudaSuccess;
  }
  CUstream_st* const null = &runtime().null_stream;
  if (stream == null)
    for (CUstream_st* other : runtime().streams)
      if (other->blocking) drain(other);
  if (stream->blocking && stream != null) drain(null);
  stream->queue.push_back(std::move(operation));
  if (!cuda_emulator::options().lazy_streams) drain(stream);
  return runtime().sticky;
}
cudaError_t push_work(cudaStream_t stream, Work work) {
  return push(real(stream), {Operation::Kind::Run, std::move(work), nullptr, 0});
}

cudaError_t allocate(void** pointer, size_t bytes, bool pinned) {
  Runtime& r = runtime();
  if (!pinned && r.bytes + bytes > cuda_emulator::options().memory_bytes) return cudaErrorMemoryAllocation;
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, std::max<size_t>(bytes, 1)) != 0) return cudaErrorMemoryAllocation;
  std::memset(memory, 0xff, bytes);  // NaN in every format of floats
  try {
    r.allocations[reinterpret_cast<uintptr_t>(memory)] = {bytes, pinned};
  } catch (const std::bad_alloc&) {
    std::free(memory);
    throw;
  }
  if (!pinned) r.bytes += bytes;
  *pointer = memory;
  return cudaSuccess;
}
cudaError_t release(void* pointer, bool pinned) {
  if (pointer == nullptr) return cudaSuccess;
  Runtime& r = runtime();
  const auto found = r.allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == r.allocations.end() || found->second.pinned != pinned) return cudaErrorInvalidValue;
  if (!pinned) r.bytes -= found->second.bytes;
  r.allocations.erase(found);
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t copy_now(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const Allocation *target = find(to), *source = find(from);
  const bool to_device = target != nullptr && !target->pinned,
             from_device = source != nullptr && !source->pinned;
  if ((to_device && !on_device(to, bytes)) || (from_device && !on_device(from, bytes)))
    return cudaErrorInvalidValue;
  if (kind == cudaMemcpyHostToDevice && (!to_device || from_device)) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyDeviceToHost && (to_device || !from_device)) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyDeviceToDevice && !(to_device && from_device)) return cudaErrorInvalidValue;
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

}  // namespace

namespace cuda_emulator {

cudaError_t launch(Work body, const void* symbol, dim3 grid, dim3 block, unsigned shared_bytes,
                   cudaStream_t stream) try {
  RT_LOCKED;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const auto found = runtime().dynamic_shared_limits.find(symbol);
  const unsigned limit = found != runtime().dynamic_shared_limits.end() ? found->second : 48u << 10;
  if (threads == 0 || threads > 1024 || block.z > 64 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    return result(cudaErrorInvalidConfiguration);
  if (shared_bytes > limit) return result(cudaErrorInvalidValue);
  if (real(stream) != &runtime().null_stream && stream->device != current_device)
    return result(cudaErrorInvalidResourceHandle);
  if (!reserve_stacks()) return result(cudaErrorMemoryAllocation);
  if (real(stream)->capture != nullptr && refuses_capture("step")) return refuse_while_capturing();
  return result(push_work(stream, [body = std::move(body), symbol, grid, block, shared_bytes] {
    if (runtime().only_counts)
      ++runtime().counted[symbol];
    else if (runtime().sticky == cudaSuccess && !run_grid(body, grid, block, shared_bytes))
      runtime().sticky = cudaErrorLaunchFailure;
  }));
}
RT_OR_OUT_OF_MEMORY

StepScope::StepScope() noexcept {
  ++steps;
}
StepScope::~StepScope() {
  --steps;
}

void reset_runtime() {
  const std::lock_guard lock(runtime().mutex);
  runtime().sticky = last_error = cudaSuccess;
}
size_t device_bytes() {
  return runtime().bytes;
}

}  // namespace cuda_emulator

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = cuda_emulator::options().devices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (!is_device(device)) return result(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorLaunchFailure:
      return *cuda_emulator::error_text() != 0 ? cuda_emulator::error_text() : "unspecified launch failure";
    default: return "emulated CUDA error";
  }
}
cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return last_error;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  RT_LOCKED;
  const CUstream_st* const own = real(stream);
  *status = own->capture == nullptr ? cudaStreamCaptureStatusNone
            : own->invalid          ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

static int shared_memory_limit() {
  const int architecture = cuda_emulator::options().compute_capability;
  if (architecture == 75) return 64 << 10;
  if (architecture == 80 || architecture == 87) return 163 << 10;
  return architecture >= 90 && architecture < 120 ? 227 << 10 : 99 << 10;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!is_device(device)) return result(cudaErrorInvalidDevice);
  if (is_broken(device)) return result(cudaErrorECCUncorrectable);
  *properties = {};
  const int architecture = cuda_emulator::options().compute_capability;
  std::strcpy(properties->name, "CUDA emulated on the CPU");
  for (int i = 0; i < 16; ++i) properties->uuid.bytes[i] = static_cast<char>(i);
  properties->uuid.bytes[0] = static_cast<char>(device);
  properties->totalGlobalMem = cuda_emulator::options().memory_bytes;
  properties->major = architecture / 10;
  properties->minor = architecture % 10;
  properties->multiProcessorCount = multiprocessors();
  properties->warpSize = 32;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = static_cast<size_t>(shared_memory_limit());
  properties->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!is_device(device)) return result(cudaErrorInvalidDevice);
  const int architecture = cuda_emulator::options().compute_capability;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = architecture / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = architecture % 10; break;
    case cudaDevAttrMultiProcessorCount: *value = multiprocessors(); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = shared_memory_limit(); break;
    case cudaDevAttrWarpSize: *value = 32; break;
    default: return result(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  RT_LOCKED;
  *total = cuda_emulator::options().memory_bytes;
  *free_bytes = *total - runtime().bytes;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) try {
  RT_LOCKED;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > shared_memory_limit())
    return result(cudaErrorInvalidValue);
  runtime().dynamic_shared_limits[function] = static_cast<unsigned>(value);
  return cudaSuccess;
}
RT_OR_OUT_OF_MEMORY

// --- memory

cudaError_t cudaMalloc(void** pointer, size_t bytes) try {
  RT_LOCKED;
  RT_NOT_WHILE_CAPTURING;
  return result(allocate(pointer, bytes, false));
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaFree(void* pointer) {
  RT_LOCKED;
  RT_NOT_WHILE_CAPTURING;
  drain_all();
  return result(release(pointer, false));
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  RT_LOCKED;
  const Allocation* const found = find(pointer);
  *attributes = {};
  attributes->type = found == nullptr ? cudaMemoryTypeUnregistered
                     : found->pinned  ? cudaMemoryTypeHost
                                      : cudaMemoryTypeDevice;
  attributes->device = found != nullptr ? found->device : -2;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) try {
  RT_LOCKED;
  RT_NOT_WHILE_CAPTURING;
  return result(allocate(pointer, bytes, true));
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaFreeHost(void* pointer) {
  RT_LOCKED;
  RT_NOT_WHILE_CAPTURING;
  drain_all();
  return result(release(pointer, true));
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) try {
  RT_LOCKED;
  CUstream_st* const own = real(stream);
  const auto run = [=](const void* source) {
    if (const cudaError_t error = copy_now(to, source, bytes, kind); error != cudaSuccess)
      runtime().sticky = error;
  };
  if ((own->capture != nullptr || steps > 0) && (find(from) == nullptr || find(to) == nullptr)) {
    own->invalid = true;
    return result(cudaErrorStreamCaptureUnsupported);
  }
  if (find(from) == nullptr) {  // pageable: CUDA stages it before it returns
    const auto* first = static_cast<const char*>(from);
    auto staged = std::make_shared<std::vector<char>>(first, first + bytes);
    return result(push_work(stream, [=] { run(staged->data()); }));
  }
  const cudaError_t error = push_work(stream, [=] { run(from); });
  if (find(to) == nullptr) drain(own);  // pageable: CUDA waits
  return result(error != cudaSuccess ? error : runtime().sticky);
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  RT_LOCKED;
  RT_NOT_WHILE_CAPTURING;
  for (CUstream_st* stream : runtime().streams)
    if (stream->blocking) drain(stream);
  drain(&runtime().null_stream);
  return result(copy_now(to, from, bytes, kind));
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) try {
  RT_LOCKED;
  return result(push_work(stream, [=] {
    if (on_device(to, bytes))
      std::memset(to, value, bytes);
    else
      runtime().sticky = cudaErrorInvalidValue;
  }));
}
RT_OR_OUT_OF_MEMORY

// --- streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) try {
  RT_LOCKED;
  *stream = new CUstream_st;
  (*stream)->blocking = (flags & cudaStreamNonBlocking) == 0;
  runtime().streams.insert(*stream);
  return cudaSuccess;
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  drain(stream);
  runtime().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  RT_LOCKED;
  RT_NOT_WHILE_CAPTURING;
  drain(real(stream));
  return result(runtime().sticky);
}
cudaError_t cudaDeviceSynchronize() {
  RT_LOCKED;
  RT_NOT_WHILE_CAPTURING;
  drain_all();
  return result(runtime().sticky);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) try {
  *event = new CUevent_st;
  return cudaSuccess;
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) try {
  RT_LOCKED;
  CUstream_st* const own = real(stream);
  const EventPtr& state = event->state;
  if (own != &runtime().null_stream && own->device != event->device)
    return result(cudaErrorInvalidResourceHandle);
  if (own->capture != nullptr && flags == cudaEventRecordExternal) {  // a node of the graph
    return push(own, {Operation::Kind::Run, [state] { complete(*state, ++state->recorded); }, nullptr, 0});
  }
  if (own->capture != nullptr) {
    state->capture = own->capture;
    state->stream = own;
    state->position = own->position;
    return cudaSuccess;
  }
  state->capture = nullptr;
  state->stream = own;
  return result(push(own, {Operation::Kind::Record, {}, state, ++state->recorded}));
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) try {
  RT_LOCKED;
  CUstream_st* const own = real(stream);
  const EventPtr& state = event->state;
  if (state->capture != nullptr) {
    if (own->capture == nullptr) {  // fork: this stream takes part in the capture
      own->capture = state->capture;
      own->position = own->joined = own->capture->work.size();
      own->capturer = state->stream->capturer;
    } else {  // join
      state->stream->joined = std::max(state->stream->joined, state->position);
    }
    return cudaSuccess;
  }
  if (own->capture != nullptr) {
    own->invalid = true;
    return result(cudaErrorStreamCaptureIsolation);
  }
  return result(push(own, {Operation::Kind::Wait, {}, state, state->recorded}));
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  RT_LOCKED;
  RT_NOT_WHILE_CAPTURING;
  drain(event->state, event->state->recorded);
  return result(runtime().sticky);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  RT_LOCKED;
  RT_NOT_WHILE_CAPTURING;
  if (event->state->done < event->state->recorded) step(event->state->stream);
  return event->state->done < event->state->recorded ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  RT_LOCKED;
  if (start->device != end->device) return result(cudaErrorInvalidResourceHandle);
  if (start->state->done == 0 || end->state->done == 0) return result(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(end->state->time - start->state->time).count();
  return cudaSuccess;
}

// --- graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) try {
  RT_LOCKED;
  if (real(stream) == &runtime().null_stream || refuses_capture("begin"))
    return result(cudaErrorStreamCaptureUnsupported);
  if (stream->capture != nullptr) return result(cudaErrorIllegalState);
  stream->capture = new CUgraph_st;
  stream->origin = true;
  stream->invalid = false;
  stream->position = 0;
  stream->capturer = &captures;
  ++captures;
  return cudaSuccess;
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) try {
  RT_LOCKED;
  if (stream->capture == nullptr || !stream->origin) return result(cudaErrorIllegalState);
  if (stream->capturer != &captures) return result(cudaErrorStreamCaptureWrongThread);
  CUgraph_st* const captured = stream->capture;
  bool invalid = refuses_capture("end"), unjoined = false;
  for (CUstream_st* other : runtime().streams) {
    if (other->capture != captured) continue;
    invalid = invalid || other->invalid;
    if (other != stream && other->position > other->joined) unjoined = true;
    other->capture = nullptr;
    other->origin = other->invalid = false;
  }
  --captures;
  *graph = nullptr;
  if (invalid || unjoined) {
    delete captured;
    return result(unjoined ? cudaErrorStreamCaptureUnjoined : cudaErrorStreamCaptureInvalidated);
  }
  *graph = captured;
  return cudaSuccess;
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) try {
  RT_LOCKED;
  if (refuses_capture("instantiate")) return result(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) try {
  RT_LOCKED;
  return result(push_work(stream, [executable] {
    for (const Work& work : executable->work) work();
  }));
}
RT_OR_OUT_OF_MEMORY
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

// Not CUDA, for tests that have loaded the module.

/// The launches of this process that were run.
uint64_t cuda_emulator_launches();
uint64_t cuda_emulator_launches() {
  const std::lock_guard lock(runtime().mutex);
  return cuda_emulator::counts().launches;
}
/// From now on launches are counted and not run, so that results are undefined and large nets take no time;
/// or they are run again.
void cuda_emulator_only_count(int only_count);
void cuda_emulator_only_count(int only_count) {
  const std::lock_guard lock(runtime().mutex);
  drain_all();
  runtime().only_counts = only_count != 0;
  runtime().counted.clear();
}
/// What was counted since then: lines like "softmax_rows 3" by kernel. Valid until the next call.
const char* cuda_emulator_counted_launches();
const char* cuda_emulator_counted_launches() {
  const std::lock_guard lock(runtime().mutex);
  drain_all();
  std::map<std::string, uint64_t> by_name;
  for (const auto& [kernel, count] : runtime().counted) by_name[cuda_emulator::kernel_name(kernel)] += count;
  static std::string text;
  text.clear();
  for (const auto& [name, count] : by_name) text += name + " " + std::to_string(count) + "\n";
  return text.c_str();
}

}  // extern "C"
