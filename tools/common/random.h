// rt::split_mix for the programs, which see of librt only its public headers and this folder.
#pragma once

#include "runtime/core/random.h"
