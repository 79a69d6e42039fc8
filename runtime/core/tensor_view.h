// Views of dense tensors in host memory, and tensor metadata.
#pragma once

#include <cstddef>
#include <type_traits>

#include "runtime/core/dtype.h"
#include "runtime/core/shape.h"

namespace librt {

/// Element type and shape: all that planning needs of a tensor.
struct TensorInfo {
  DType dtype = DType::F32;
  Shape shape;

  int64_t elements() const noexcept { return shape.elements(); }
  size_t bytes() const noexcept { return static_cast<size_t>(elements()) * size_of(dtype); }
  bool operator==(const TensorInfo&) const noexcept = default;
};
/// "f32[1,3,224,224]"
void append(std::string& out, const TensorInfo& info);

/// Non-owning view of a dense, row-major tensor in host memory.
template <class Void>
struct BasicTensorView {
  Void* data = nullptr;
  TensorInfo info;

  template <class T>
  auto* as() const noexcept {
    return static_cast<std::conditional_t<std::is_const_v<Void>, const T, T>*>(data);
  }
  operator BasicTensorView<const void>() const noexcept {  // NOLINT: implicit on purpose
    return {data, info};
  }
};
using TensorView = BasicTensorView<void>;
using ConstTensorView = BasicTensorView<const void>;

}  // namespace librt
