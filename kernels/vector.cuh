// Vector loads and stores. Operands of kernels are aligned to 256 bytes, so 16-byte accesses at multiples of
// 16 bytes from their start are aligned.
#pragma once

#include "kernels/port.cuh"

namespace librt::cuda {

template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) Vector {
  T values[kWidth];
  RT_DEVICE T& operator[](int i) { return values[i]; }
  RT_DEVICE const T& operator[](int i) const { return values[i]; }
};

/// The number of elements in 16 bytes.
template <class T>
inline constexpr int kVectorWidth = static_cast<int>(16 / sizeof(T));

template <int kWidth, class T>
RT_DEVICE Vector<T, kWidth> load_vector(const T* from) {
  return *reinterpret_cast<const Vector<T, kWidth>*>(from);
}
/// To global memory. An assignment would often be compiled to a store per element.
template <class T, int kWidth>
RT_DEVICE void store_vector(T* to, const Vector<T, kWidth>& vector) {
#if !defined(RT_CUDA_EMULATED)
  constexpr size_t kBytes = sizeof vector;
  if constexpr (kBytes % 16 == 0 || kBytes == 8 || kBytes == 4) {
    using Word =
        std::conditional_t<kBytes % 16 == 0, uint4, std::conditional_t<kBytes == 8, uint2, unsigned>>;
    Word words[kBytes / sizeof(Word)];
    memcpy(words, &vector, kBytes);
    RT_UNROLL
    for (size_t i = 0; i < kBytes / sizeof(Word); ++i) __stwb(reinterpret_cast<Word*>(to) + i, words[i]);
    return;
  }
#endif
  *reinterpret_cast<Vector<T, kWidth>*>(to) = vector;
}

/// A vector as loaded: in 32-bit words where its size allows. A load into 8-bit or 16-bit elements is
/// unpacked at once, so that the next load waits for it; a load into words is not.
template <class T, int kWidth>
using Packed = std::conditional_t<sizeof(T) * kWidth % 4 == 0, Vector<uint32_t, sizeof(T) * kWidth / 4>,
                                  Vector<T, kWidth>>;
template <int kWidth, class T>
RT_DEVICE Packed<T, kWidth> load_packed(const T* from) {
  return *reinterpret_cast<const Packed<T, kWidth>*>(from);
}
template <class T, int kWidth>
RT_DEVICE Vector<T, kWidth> unpacked(const Packed<T, kWidth>& packed) {
  Vector<T, kWidth> vector;
  memcpy(&vector, &packed, sizeof vector);
  return vector;
}

template <class T, int kWidth>
RT_DEVICE Packed<T, kWidth> packed(const Vector<T, kWidth>& vector) {
  Packed<T, kWidth> packed;
  memcpy(&packed, &vector, sizeof packed);
  return packed;
}

/// load_packed() of the elements before `count`; the rest is T{}. `first` is a multiple of kWidth.
template <int kWidth, class T>
RT_DEVICE Packed<T, kWidth> load_packed_before(const T* from, int64_t first, int64_t count) {
  if (first + kWidth <= count) return load_packed<kWidth>(from + first);
  Vector<T, kWidth> vector{};
  for (int i = 0; i < kWidth; ++i)
    if (first + i < count) vector[i] = from[first + i];
  return packed(vector);
}
template <int kWidth, class T>
RT_DEVICE Vector<T, kWidth> load_before(const T* from, int64_t first, int64_t count) {
  return unpacked<T, kWidth>(load_packed_before<kWidth>(from, first, count));
}
template <class T, int kWidth>
RT_DEVICE void store_before(T* to, const Vector<T, kWidth>& vector, int64_t first, int64_t count) {
  if (first + kWidth <= count) {
    store_vector(to + first, vector);
    return;
  }
  for (int i = 0; i < kWidth; ++i)
    if (first + i < count) to[first + i] = vector[i];
}

}  // namespace librt::cuda
