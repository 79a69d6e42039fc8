/* How processes that train together talk to each other: what an application hands to librt in
 * rt_session_options. librt has no network of its own; rttrain implements this over MPI. */
#ifndef RT_COMMUNICATOR_H
#define RT_COMMUNICATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The processes are ranks 0 to ranks - 1; all of them begin the same operations in the same order. Opening a
 * session begins some too: ranks open theirs in the same order. Functions are called by the thread that opens
 * or runs the session. They return NULL, or what went wrong: a text that lives as long as the communicator;
 * then the run fails, and memory of operations that were not waited for may still be written to, so that the
 * process should end.
 *
 * begin ... wait: what lies between runs at the same time as the operation, which owns `data` until then.
 * Each operation is waited for once. */
typedef struct rt_communicator {
  size_t struct_size;
  void* user; /* the first argument of the functions */
  int32_t rank;
  int32_t ranks;
  /* Begins to replace `count` elements by their sums over all ranks. The sums are the same bits on all of
   * them. dtype: RT_F32 or RT_F64. */
  const char* (*all_reduce)(void* user, void* data, size_t count, int32_t dtype);
  /* data: ranks parts of `bytes` bytes. Begins to fill part r with that of rank r; the own one is there. */
  const char* (*all_gather)(void* user, void* data, size_t bytes);
  /* Waits for the operation on `data`. */
  const char* (*wait)(void* user, void* data);
  /* Without waiting: NULL while the ranks can go on, as far as is known. Called by any thread, while devices
   * talk to each other without this communicator. NULL where nothing is known. */
  const char* (*check)(void* user);
} rt_communicator;

#ifdef __cplusplus
}
#endif
#endif
