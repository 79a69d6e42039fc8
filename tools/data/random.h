// librt::split_mix for the programs, which use only librt's public headers and this directory.
#pragma once

#include "runtime/core/random.h"
