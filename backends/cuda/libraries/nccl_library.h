// The part of NCCL's interface that is used, by the names after `nccl` in nccl.h, which is not needed to
// build this.
//
// Since 2.14, which introduced non-blocking communicators. tests/cuda_emulator compares with nccl.h.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/libraries/library.h"

namespace librt::cuda::nccl {

/// An error, or that an operation is in progress.
enum Result : int { kSuccess = 0, kRemoteError = 6, kInProgress = 7 };
enum DataType : int { kInt8 = 0, kFloat32 = 7, kFloat64 = 8 };
enum Operation : int { kSum = 0 };

struct Communicator;  // the library's own

struct UniqueId {
  char bytes[128];
};

/// As of 2.14; newer versions accept it.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};
inline constexpr int kOldestVersion = 21400;

struct Functions {
  Result (*GetVersion)(int* version);
  Result (*GetUniqueId)(UniqueId* id);
  Result (*CommInitRankConfig)(Communicator** made, int ranks, UniqueId id, int rank, Config* config);
  Result (*CommFinalize)(Communicator* communicator);
  Result (*CommDestroy)(Communicator* communicator);
  Result (*CommAbort)(Communicator* communicator);
  Result (*CommGetAsyncError)(Communicator* communicator, Result* error);
  const char* (*GetErrorString)(Result result);
  Result (*AllReduce)(const void* from, void* to, size_t count, DataType type, Operation operation,
                      Communicator* communicator, cudaStream_t stream);
  Result (*AllGather)(const void* from, void* to, size_t count, DataType type, Communicator* communicator,
                      cudaStream_t stream);
};
#define RT_NCCL(X)      \
  X(GetVersion)         \
  X(GetUniqueId)        \
  X(CommInitRankConfig) \
  X(CommFinalize)       \
  X(CommDestroy)        \
  X(CommAbort)          \
  X(CommGetAsyncError)  \
  X(GetErrorString)     \
  X(AllReduce)          \
  X(AllGather)

struct Library {
  LibraryHandle handle;
  Functions call{};
  int version = 0;

  std::string version_text() const;
};

/// libnccl.so.2. Fails with a message: not found, functions missing, too old.
librt::Result<Library> load();

}  // namespace librt::cuda::nccl
