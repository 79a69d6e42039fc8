// A folder of JPEG pictures by class, as a user has one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/status.h"

namespace librt::bench {

/// FOLDER/CLASS/N.jpg: `count` seeded pictures of smooth colours, spread over the classes. Ends before that
/// once go_on(pictures written so far) is false. The number of pictures.
Result<int64_t> write_jpeg_folder(const std::string& folder, int64_t count, int classes, int width,
                                  int height, uint64_t seed, const std::function<bool(int64_t)>& go_on);

}  // namespace librt::bench
