# Filled by the install rules: librt in a directory of its own, its modules, headers, programs, CMake and pkg-config.
