// A folder of JPEG pictures by class, as a user has one.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/status.h"

namespace librt::bench {

/// FOLDER/CLASS/N.jpg: `count` seeded pictures of smooth colours, spread over the classes.
Status write_jpeg_folder(const std::string& folder, int64_t count, int classes, int width, int height,
                         uint64_t seed);

}  // namespace librt::bench
