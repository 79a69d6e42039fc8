/* A library with cuBLASLt's name and one of its functions. */
#include <stddef.h>

size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void) {
  return 130000;
}
