/* A library with cuDNN's name and functions, of a future version. */
#include <stddef.h>

size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void) {
  return 100200;
}
#define FUNCTION(name) \
  void name(void);     \
  void name(void) {}
FUNCTION(cudnnGetErrorString)
FUNCTION(cudnnGetLastErrorString)
FUNCTION(cudnnCreate)
FUNCTION(cudnnDestroy)
FUNCTION(cudnnSetStream)
FUNCTION(cudnnBackendCreateDescriptor)
FUNCTION(cudnnBackendDestroyDescriptor)
FUNCTION(cudnnBackendSetAttribute)
FUNCTION(cudnnBackendGetAttribute)
FUNCTION(cudnnBackendFinalize)
FUNCTION(cudnnBackendExecute)
