// Tensor-core matmuls, asynchronous copies and warp operations against plain loops. Runs on the emulator and,
// linked with CUDA's own runtime, on a GPU: equal results show that the emulator's register layouts match the
// hardware.
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "cuda_emulator/ptx_kernels.h"
#include "runtime/core/half.h"

namespace librt::cuda::test {
namespace {

/// Device memory initialized from host values.
template <class T>
class Buffer {
 public:
  explicit Buffer(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cudaMalloc(&memory_, count_ * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(memory_); }
  T* get() const { return static_cast<T*>(memory_); }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), memory_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  void* memory_ = nullptr;
  size_t count_;
};

/// Small integers, exact in every format and summation order.
int small(size_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 2654435761u;
  x ^= x >> 15;
  return static_cast<int>(x % 15) - 7;
}
template <class T, class F>
std::vector<T> make_values(size_t count, size_t seed, F convert) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = convert(small(seed + i));
  return values;
}

/// d[i][j] + sum over k of a(i, k) b(k, j).
template <class Sum, class A, class B>
std::vector<Sum> reference_mma(const std::vector<Sum>& d, size_t depth, A a, B b) {
  std::vector<Sum> result = d;
  for (size_t i = 0; i < 16; ++i)
    for (size_t j = 0; j < 8; ++j)
      for (size_t k = 0; k < depth; ++k) result[i * 8 + j] += static_cast<Sum>(a(i, k) * b(k, j));
  return result;
}

class Ptx : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(error);
  }
};

TEST_F(Ptx, MmaF16AndBf16) {
  for (const bool bfloat : {false, true})
    for (const bool by_rows : {false, true}) {
      const auto convert = [&](int x) {
        return bfloat ? float_to_bf16(static_cast<float>(x)) : float_to_half(static_cast<float>(x));
      };
      const Buffer<uint16_t> a(make_values<uint16_t>(256, 1, convert)),
          b(make_values<uint16_t>(128, 2000, convert));
      const auto start = make_values<float>(128, 5000, [](int x) { return static_cast<float>(x); });
      const Buffer<float> d(start);
      ASSERT_EQ(mma_16(bfloat, by_rows, a.get(), b.get(), d.get(), nullptr), cudaSuccess);
      const auto want = reference_mma(
          start, 16, [](size_t i, size_t k) { return small(1 + i * 16 + k); },
          [&](size_t k, size_t j) { return small(2000 + (by_rows ? k * 8 + j : j * 16 + k)); });
      EXPECT_EQ(d.read(), want) << "bf16 " << bfloat << ", b by rows " << by_rows;
    }
}

TEST_F(Ptx, MmaTf32) {
  const auto convert = [](int x) { return static_cast<float>(x) * (1 + 0x1p-20f); };  // rounds to x
  const Buffer<float> a(make_values<float>(128, 1, convert)), b(make_values<float>(64, 900, convert));
  const auto start = make_values<float>(128, 5000, [](int x) { return static_cast<float>(x); });
  const Buffer<float> d(start);
  ASSERT_EQ(mma_tf32(a.get(), b.get(), d.get(), nullptr), cudaSuccess);
  EXPECT_EQ(d.read(), reference_mma(
                          start, 8, [](size_t i, size_t k) { return small(1 + i * 8 + k); },
                          [](size_t k, size_t j) { return small(900 + k * 8 + j); }));
}

TEST_F(Ptx, MmaInt8) {
  const auto convert = [](int x) { return static_cast<int8_t>(x * 18); };
  const Buffer<int8_t> a(make_values<int8_t>(512, 1, convert)), b(make_values<int8_t>(256, 900, convert));
  const auto start = make_values<int>(128, 5000, [](int x) { return x; });
  const Buffer<int> d(start);
  ASSERT_EQ(mma_s8(a.get(), b.get(), d.get(), nullptr), cudaSuccess);
  EXPECT_EQ(d.read(), reference_mma(
                          start, 32, [](size_t i, size_t k) { return small(1 + i * 32 + k) * 18; },
                          [](size_t k, size_t j) { return small(900 + j * 32 + k) * 18; }));
}

TEST_F(Ptx, AsynchronousCopies) {
  std::vector<uint32_t> in(256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint32_t>(i) * 2654435761u;
  const Buffer<uint32_t> from(in), to(std::vector<uint32_t>(256, 1));
  ASSERT_EQ(copies(from.get(), to.get(), nullptr), cudaSuccess);
  std::vector<uint32_t> want = in;
  for (size_t i = 0; i < 128; ++i)
    if (i % 4 >= i / 4 % 5) want[i] = 0;  // beyond the lane's bytes
  EXPECT_EQ(to.read(), want);
}

TEST_F(Ptx, WarpOperations) {
  std::vector<uint32_t> in(32);
  for (size_t i = 0; i < in.size(); ++i) in[i] = (static_cast<uint32_t>(i) + 3) * 2654435761u;
  const Buffer<uint32_t> from(in), to(std::vector<uint32_t>(32 * 12, 1));
  ASSERT_EQ(warp_operations(from.get(), to.get(), nullptr), cudaSuccess);
  const auto got = to.read();
  uint32_t odd = 0;
  for (uint32_t i = 0; i < 32; ++i) odd |= (in[i] & 1u) << i;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t want[12] = {
        in[5],
        in[i / 8 * 8 + i * 3 % 8],
        in[i >= 3 ? i - 3 : i],
        in[i % 16 >= 3 ? i - 3 : i],
        in[i + 9 < 32 ? i + 9 : i],
        in[i % 16 + 9 < 16 ? i + 9 : i],
        in[i ^ 11u],
        in[i ^ 3u],
        odd,
        3,
        static_cast<uint32_t>(std::popcount(in[i])) | static_cast<uint32_t>(std::countl_zero(in[i])) << 8,
        in[i ^ (i < 16 ? 1u : 2u)],
    };
    for (size_t k = 0; k < 12; ++k) EXPECT_EQ(got[i * 12 + k], want[k]) << "lane " << i << " operation " << k;
  }
}

}  // namespace
}  // namespace librt::cuda::test
