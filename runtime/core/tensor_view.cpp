#include "runtime/core/tensor_view.h"

#include "runtime/core/text.h"

namespace librt {

void append(std::string& out, const TensorInfo& info) {
  append(out, name_of(info.dtype));
  append(out, info.shape);
}

}  // namespace librt
