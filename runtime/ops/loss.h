// Labels of classes, as losses read them.
#pragma once

#include "runtime/graph/emitter.h"

namespace librt::ops {

/// Bools: whether each label is in [0, classes) and not ignore_index, which may be no class.
ValueId labels_that_count(Emitter& emit, ValueId labels, int64_t classes, int64_t ignore_index);

}  // namespace librt::ops
