// DLPack: tensors of other libraries as inputs and outputs, and the other way; what is refused; who owns
// what. argv[1]: the backend; then --validation or nothing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <optional>
#include <thread>

#include "rt/dlpack.hpp"
#include "tests/session/outcome.h"
#include "tests/session/shared_device.h"
#include "tests/support/backend_main.h"
#include "tests/support/loaded_model.h"
#include "tools/compiler/builder.h"

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
// The structs are those of the standard's header; a release without the version has only the older ones.
static_assert(sizeof(rt_dlpack_tensor) == sizeof(DLTensor));
static_assert(offsetof(rt_dlpack_tensor, device_type) == offsetof(DLTensor, device));
static_assert(offsetof(rt_dlpack_tensor, ndim) == offsetof(DLTensor, ndim));
static_assert(offsetof(rt_dlpack_tensor, code) == offsetof(DLTensor, dtype));
static_assert(offsetof(rt_dlpack_tensor, lanes) == offsetof(DLTensor, dtype) + offsetof(DLDataType, lanes));
static_assert(offsetof(rt_dlpack_tensor, shape) == offsetof(DLTensor, shape));
static_assert(offsetof(rt_dlpack_tensor, strides) == offsetof(DLTensor, strides));
static_assert(offsetof(rt_dlpack_tensor, byte_offset) == offsetof(DLTensor, byte_offset));
static_assert(sizeof(rt_dlpack_unversioned) == sizeof(DLManagedTensor));
static_assert(offsetof(rt_dlpack_unversioned, owner) == offsetof(DLManagedTensor, manager_ctx));
static_assert(offsetof(rt_dlpack_unversioned, deleter) == offsetof(DLManagedTensor, deleter));
static_assert(RT_DLPACK_CUDA_HOST == int{kDLCUDAHost} && RT_DLPACK_CUDA_MANAGED == int{kDLCUDAManaged});
static_assert(RT_DLPACK_BFLOAT == int{kDLBfloat} && RT_DLPACK_FLOAT == int{kDLFloat});
#if DLPACK_MAJOR_VERSION >= 1
static_assert(sizeof(rt_dlpack) == sizeof(DLManagedTensorVersioned));
static_assert(offsetof(rt_dlpack, flags) == offsetof(DLManagedTensorVersioned, flags));
static_assert(offsetof(rt_dlpack, tensor) == offsetof(DLManagedTensorVersioned, dl_tensor));
#endif
#endif

namespace librt {
namespace {

using compiler::Builder;
using test::says;
using Floats = std::vector<float>;

using test::backend_name, test::validation;
bool has_host_memory = false;

/// y = x + x, f32[rows,4].
rt::Session open(rt::SessionOptions options = {}) {
  ModelGraph made;
  Graph graph;
  graph.name = "infer";
  Builder build(graph, &made.states);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("rows")}, {.extent = 4}});
  build.output(build.add(x, x));
  graph[graph.outputs[0]].name = "y";
  made.entries.push_back({"infer", std::move(graph)});
  options.backend = backend_name;
  options.validation = validation;
  auto session = rt::Session::create(test::loaded_model(made), options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return std::move(*session);
}

/// A tensor of another library, [rows,4], which counts how often it is deleted.
struct Foreign {
  explicit Foreign(void* data, int64_t rows = 2, int32_t device = RT_DLPACK_CPU) : shape{rows, 4} {
    managed.major = 1;
    managed.minor = 3;
    managed.owner = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Foreign*>(reinterpret_cast<rt_dlpack*>(self)->owner)->deleted;
    };
    managed.tensor = {data, device, 0, 2, RT_DLPACK_FLOAT, 32, 1, shape, nullptr, 0};
  }
  DLManagedTensorVersioned* get() { return reinterpret_cast<DLManagedTensorVersioned*>(&managed); }
  rt::Dlpack take() { return rt::Dlpack(get()); }
  rt::Status view() {
    rt_tensor seen = RT_TENSOR_INIT;
    return rt::Status::take(rt_dlpack_view(get(), &seen, nullptr));
  }
  int64_t shape[2];
  int64_t strides[2] = {4, 1};
  rt_dlpack managed{};
  int deleted = 0;
};

const rt_dlpack& layout(const rt::Dlpack& tensor) {
  return *reinterpret_cast<const rt_dlpack*>(tensor.get());
}

TEST(Dlpack, HostTensorsAreInputs) {
  auto session = open();
  alignas(64) float values[12] = {9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8};
  Foreign foreign(values);
  foreign.managed.tensor.byte_offset = 16;
  foreign.managed.tensor.strides = foreign.strides;
  foreign.managed.flags = RT_DLPACK_READ_ONLY;
  {
    const rt::Dlpack owned = foreign.take();
    const auto view = rt::view_of_dlpack(owned);
    ASSERT_OK(view);
    EXPECT_EQ(view->data(), values + 4);
    EXPECT_EQ(view->dims()[0], 2);
    EXPECT_EQ(view->bytes(), 32u);
    ASSERT_OK(session.set_input(0, *view));
  }
  EXPECT_EQ(foreign.deleted, 1);
  ASSERT_OK(session.run());
  EXPECT_EQ(session.output(0)->values<float>()[7], 16);
}

TEST(Dlpack, HostTensorsAreMemory) {
  if (!has_host_memory || backend_name == "vulkan") GTEST_SKIP() << "no host memory of any address";
  alignas(64) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  alignas(64) float y[8] = {};
  Foreign input(x), output(y);
  input.managed.flags = RT_DLPACK_READ_ONLY;
  {
    auto session = open();
    {
      auto from = rt::from_dlpack(session, input.take()), to = rt::from_dlpack(session, output.take());
      ASSERT_OK(from);
      ASSERT_OK(to);
      EXPECT_TRUE(says(session.bind_output(0, from->tensor), "read-only"));
      ASSERT_OK(session.bind_input(0, from->tensor));
      ASSERT_OK(session.bind_output(0, to->tensor));
      ASSERT_OK(session.run());
      EXPECT_EQ(y[7], 16);
      EXPECT_EQ(input.deleted + output.deleted, 0);
    }
    EXPECT_TRUE(says(session.run(), "has been freed"));
  }
  EXPECT_EQ(input.deleted, 1);
  EXPECT_EQ(output.deleted, 1);
}

TEST(Dlpack, CudaTensorsAreMemory) {
  const test::CudaRuntime cuda;
  if (!backend_name.starts_with("cuda")) GTEST_SKIP() << "no CUDA";
  if (!cuda) GTEST_SKIP() << "no libcudart to allocate memory with";
  auto session = open();
  void* data = nullptr;
  ASSERT_EQ(cuda.call("cudaSetDevice", session.native().cuda_device), 0);
  ASSERT_EQ(cuda.call("cudaMalloc", &data, size_t{512}), 0);
  const Floats ones(128, 1);
  ASSERT_EQ(cuda.call("cudaMemcpy", data, static_cast<const void*>(ones.data()), size_t{512}, 1), 0);
  Foreign foreign(data, 2, RT_DLPACK_CUDA);
  foreign.managed.tensor.byte_offset = 256;
  foreign.managed.tensor.device_id = session.native().cuda_device;
  EXPECT_TRUE(says(foreign.view(), "expected memory of the host"));
  // Refused: another device, an odd address, memory of the host that calls itself CUDA's.
  Foreign other(data, 2, RT_DLPACK_CUDA), odd(data, 2, RT_DLPACK_CUDA), host(nullptr, 2, RT_DLPACK_CUDA);
  other.managed.tensor.device_id = session.native().cuda_device + 1;
  EXPECT_TRUE(says(rt::from_dlpack(session, other.take()), "expected a tensor of CUDA device"));
  odd.managed.tensor.byte_offset = 64;
  EXPECT_TRUE(says(rt::from_dlpack(session, odd.take()), "multiple of 256"));
  alignas(256) float on_host[8] = {};
  host.managed.tensor.data = on_host;
  EXPECT_TRUE(says(rt::from_dlpack(session, host.take()), "memory that CUDA does not know"));
  host.managed.tensor.device_type = RT_DLPACK_CPU;
  EXPECT_TRUE(says(rt::from_dlpack(session, host.take()), "do not use host memory"));
  EXPECT_EQ(other.deleted + odd.deleted + host.deleted, 4);  // each by its rt::Dlpack
  {
    auto input = rt::from_dlpack(session, foreign.take());
    ASSERT_OK(input);
    EXPECT_EQ(input->memory.pointer(), static_cast<std::byte*>(data) + 256);
    ASSERT_OK(session.bind_input(0, input->tensor));
    ASSERT_OK(session.run());
    EXPECT_EQ(session.output(0)->values<float>()[7], 2);
    ASSERT_OK(session.set_input(0, rt::Tensor(rt::DType::F32, {1, 4})));
  }
  EXPECT_EQ(foreign.deleted, 1);
  cuda.call("cudaFree", data);
}

TEST(Dlpack, MemoryIsExported) {
  std::optional<rt::Dlpack> left;
  {
    auto session = open();
    auto memory = rt::Memory::create(session, 256 + 32);
    ASSERT_OK(memory);
    const rt::Tensor tensor = memory->tensor(rt::DType::F32, {2, 4}, 256);
    auto exported = rt::to_dlpack(memory->tensor(rt::DType::F32, {2, 4}, 256));
    if (memory->pointer() == nullptr) {
      EXPECT_TRUE(says(exported, "rt_memory_export_fd"));
      return;
    }
    ASSERT_OK(exported);
    const rt_dlpack& seen = layout(*exported);
    EXPECT_EQ(seen.major, 1u);
    EXPECT_EQ(seen.flags, 0u);
    EXPECT_EQ(seen.tensor.data, static_cast<std::byte*>(memory->pointer()) + 256);
    EXPECT_EQ(seen.tensor.device_type, backend_name.starts_with("cuda") ? RT_DLPACK_CUDA : RT_DLPACK_CPU);
    EXPECT_EQ(seen.tensor.ndim, 2);
    EXPECT_EQ(seen.tensor.shape[0], 2);
    EXPECT_EQ(seen.tensor.strides[0], 4);
    EXPECT_EQ(seen.tensor.strides[1], 1);
    ASSERT_OK(session.set_input(0, rt::Tensor::of<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})));
    ASSERT_OK(session.bind_output(0, tensor));
    ASSERT_OK(session.run());
    if (backend_name == "vulkan") {  // whose memory the host sees
      const auto view = rt::view_of_dlpack(*exported);
      ASSERT_OK(view);
      EXPECT_EQ(view->values<float>()[7], 16);
      return;
    }
    // What is exported can be imported: here into another session.
    auto second = open({.share_device_with = &session});
    auto imported = rt::from_dlpack(second, std::move(*exported));
    ASSERT_OK(imported);
    ASSERT_OK(second.bind_input(0, imported->tensor));
    ASSERT_OK(second.run());
    EXPECT_EQ(second.output(0)->values<float>()[7], 32);
    EXPECT_TRUE(
        says(rt::to_dlpack(memory->tensor(rt::DType::F32, {5, 4}, 256)), "expected 80 bytes from 256 on"));
    auto again = rt::to_dlpack(memory->tensor(rt::DType::F32, {8}, 256), true);
    ASSERT_OK(again);
    EXPECT_EQ(layout(*again).flags, RT_DLPACK_READ_ONLY);
    left = std::move(*again);
  }
  // Outlives its rt_memory and the session.
  if (has_host_memory) {
    EXPECT_EQ(static_cast<const float*>(layout(*left).tensor.data)[7], 16);
  }
  std::thread([&] { left.reset(); }).join();
}

TEST(Dlpack, HostTensorsAreExported) {
  rt::Tensor tensor = rt::Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const void* data = tensor.data();
  auto exported = rt::to_dlpack(std::move(tensor));
  ASSERT_OK(exported);
  EXPECT_EQ(layout(*exported).tensor.data, data);
  EXPECT_EQ(static_cast<const float*>(layout(*exported).tensor.data)[3], 4);
  // As the older form and back; each wrapper deletes what is in it.
  DLManagedTensor* older = nullptr;
  ASSERT_EQ(rt_dlpack_to_unversioned(exported->release(), &older), nullptr);
  EXPECT_EQ(reinterpret_cast<rt_dlpack_unversioned*>(older)->tensor.data, data);
  DLManagedTensorVersioned* newer = nullptr;
  ASSERT_EQ(rt_dlpack_from_unversioned(older, &newer), nullptr);
  const auto view = rt::view_of_dlpack(rt::Dlpack(newer));
  ASSERT_OK(view);
  EXPECT_EQ(view->dims().size(), 2u);
  auto fixed = rt::to_dlpack(rt::Tensor(rt::DType::I8, {0, 3}), true);
  ASSERT_OK(fixed);
  EXPECT_TRUE(says(rt::Status::take(rt_dlpack_to_unversioned(fixed->get(), &older)), "read-only"));
  ASSERT_OK(rt::view_of_dlpack(*fixed));
  // Too small for its shape, and no tensor.
  rt_tensor small = RT_TENSOR_INIT;
  float one = 1;
  small.data = &one;
  small.bytes = 4;
  small.rank = 1;
  small.dims[0] = 2;
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  newer = nullptr;
  EXPECT_TRUE(says(rt::Status::take(rt_tensor_to_dlpack(&small, 0, release, &released, &newer)),
                   "expected 8 bytes, found 4"));
  small.dims[0] = -1;
  EXPECT_TRUE(says(rt::Status::take(rt_tensor_to_dlpack(&small, 0, release, &released, &newer)), "-1"));
  EXPECT_EQ(released, 0);
  small.dims[0] = 1;
  ASSERT_EQ(rt_tensor_to_dlpack(&small, 0, release, &released, &newer), nullptr);
  rt::Dlpack(newer).reset();
  EXPECT_EQ(released, 1);
}

TEST(Dlpack, EveryElementType) {
  for (int i = RT_F32; i <= RT_BOOL; ++i) {
    const auto dtype = static_cast<rt::DType>(i);
    auto exported = rt::to_dlpack(rt::Tensor(dtype, {3}));
    ASSERT_OK(exported);
    EXPECT_EQ(layout(*exported).tensor.bits, 8 * rt::size_of(dtype));
    const auto view = rt::view_of_dlpack(*exported);
    ASSERT_OK(view);
    EXPECT_EQ(view->dtype(), dtype);
  }
}

TEST(Dlpack, RefusesWhatIsNoTensorOfLibrt) {
  float values[8] = {};
  const auto refused = [&](auto change, std::string_view words) {
    Foreign foreign(values);
    foreign.managed.tensor.strides = foreign.strides;
    change(foreign.managed, foreign);
    EXPECT_TRUE(says(foreign.view(), words));
    auto session = open();
    rt_memory* memory = nullptr;
    rt_tensor tensor = RT_TENSOR_INIT;
    const auto imported =
        rt::Status::take(rt_memory_from_dlpack(session.handle(), foreign.get(), &memory, &tensor));
    EXPECT_TRUE(says(imported, words));
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(foreign.deleted, 0);
  };
  using M = rt_dlpack;
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  refused([](M& m, Foreign&) { m.major = 0; }, "found 0.3");
  refused([](M& m, Foreign&) { m = {2, 0, nullptr, nullptr, 0, {}}; },
          "expected a tensor of version 1, found 2.0");
  refused([](M& m, Foreign&) { m.tensor.ndim = -1; }, "found -1");
  refused([](M& m, Foreign&) { m.tensor.ndim = 9; }, "expected 0 to 8 axes, found 9");
  refused([](M& m, Foreign&) { m.tensor.shape = nullptr; }, "the shape of a tensor with 2 axes is null");
  refused([](M& m, Foreign&) { m.tensor.data = nullptr; }, "is null");
  refused([](M&, Foreign& f) { f.shape[0] = -1; }, "[-1,4]");
  refused([](M&, Foreign& f) { f.shape[0] = kMost; }, "fit in memory");
  refused([](M&, Foreign& f) { f.shape[0] = kMost / 8; }, "fit in memory");
  refused([](M&, Foreign& f) { f.strides[0] = 5; }, "axis 0 of [2,4] has stride 5 instead of 4");
  refused([](M&, Foreign& f) { f.strides[1] = -1; }, "axis 1 of [2,4] has stride -1 instead of 1");
  refused([](M&, Foreign& f) { f.strides[0] = 0; }, "has stride 0");
  refused([](M& m, Foreign&) { m.tensor.byte_offset = ~uint64_t{0}; }, "is too large");
  refused([](M& m, Foreign&) { m.tensor.byte_offset = -reinterpret_cast<uintptr_t>(m.tensor.data) - 1; },
          "is too large");
  refused([](M& m, Foreign&) { m.tensor.lanes = 4; }, "4 lanes");
  refused([](M& m, Foreign&) { m.tensor.lanes = 0; }, "0 lanes");
  refused([](M& m, Foreign&) { m.tensor.bits = 4, m.tensor.code = RT_DLPACK_INT; }, "type 0 of 4 bits");
  refused([](M& m, Foreign&) { m.tensor.bits = 0; }, "of 0 bits");
  refused([](M& m, Foreign&) { m.tensor.code = 5; }, "type 5 of 32 bits");
  refused([](M& m, Foreign&) { m.tensor.code = 10, m.tensor.bits = 8; }, "type 10 of 8 bits");
  refused([](M& m, Foreign&) { m.tensor.device_type = 7; }, "found DLPack device type 7");
  refused([](M& m, Foreign&) { m.tensor.device_type = -1; }, "found DLPack device type -1");
}

TEST(Dlpack, Misuse) {
  auto session = open();
  float values[8] = {};
  rt_memory* memory = nullptr;
  rt_tensor tensor = RT_TENSOR_INIT;
  Foreign foreign(values), empty(nullptr, 0);
  EXPECT_TRUE(says(rt::view_of_dlpack(nullptr), "the tensor is null"));
  const auto import = [&](rt_session* into, DLManagedTensorVersioned* from, rt_memory** made,
                          rt_tensor* seen) {
    return rt::Status::take(rt_memory_from_dlpack(into, from, made, seen));
  };
  EXPECT_TRUE(says(import(session.handle(), nullptr, &memory, &tensor), "the tensor is null"));
  EXPECT_TRUE(says(import(nullptr, foreign.get(), &memory, &tensor), "the session is null"));
  EXPECT_TRUE(says(import(session.handle(), foreign.get(), nullptr, &tensor), "a pointer is null"));
  EXPECT_TRUE(says(import(session.handle(), foreign.get(), &memory, nullptr), "null"));
  EXPECT_TRUE(says(import(session.handle(), empty.get(), &memory, &tensor), "at least one element"));
  tensor.struct_size = 0;
  EXPECT_TRUE(says(import(session.handle(), foreign.get(), &memory, &tensor), "struct_size"));
  foreign.managed.tensor.data = reinterpret_cast<std::byte*>(values) + 1;  // host memory of any address
  ASSERT_OK(foreign.view());
  tensor = RT_TENSOR_INIT;
  EXPECT_TRUE(says(import(session.handle(), foreign.get(), &memory, &tensor), "expected a first element at"));
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(foreign.deleted, 0);
  // Strides are the caller's business if it asks for them; one that cannot be deleted need not be.
  int64_t strides[RT_MAX_RANK] = {};
  foreign.managed.tensor.strides = foreign.strides;
  foreign.strides[0] = -7;
  ASSERT_EQ(rt_dlpack_view(foreign.get(), &tensor, strides), nullptr);
  EXPECT_EQ(strides[0], -7);
  EXPECT_EQ(strides[1], 1);
  foreign.managed.deleter = nullptr;
  foreign.take().reset();
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(
      argc, argv, [](librt::Device& device) { librt::has_host_memory = device.info().host_memory; });
}
