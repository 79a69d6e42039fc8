/** @file
 * Collectives for distributed training, provided by the application in rt_session_options. librt does no
 * networking; rttrain implements this over MPI. */
#ifndef RT_COMMUNICATOR_H
#define RT_COMMUNICATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Collectives between the processes of a training. The processes are ranks 0 to ranks - 1; all start the
 * same operations in the same order. Opening a session starts some too: all ranks open their sessions in the
 * same order. Functions are called by the thread that opens or runs the session. They return NULL, or an
 * error text that lives as long as the communicator; then the run fails, and memory of pending operations may
 * still be written to, so the process should exit.
 *
 * Operations are asynchronous: each owns `data` from its start until wait(), which is called once for it. */
typedef struct rt_communicator {
  size_t struct_size; /**< sizeof of this struct */
  void* user;         /**< first argument of the functions */
  int32_t rank;       /**< number of this process, from 0 */
  int32_t ranks;      /**< number of processes */
  /** Starts an in-place sum of `count` elements over all ranks. The result is bitwise equal on all ranks.
   * dtype: RT_F32 or RT_F64. */
  const char* (*all_reduce)(void* user, void* data, size_t count, int32_t dtype);
  /** Starts to fill each part r of `data` from rank r. data: `ranks` parts of `bytes` bytes; the local part
   * is already in place. */
  const char* (*all_gather)(void* user, void* data, size_t bytes);
  /** Waits for the operation on `data`. */
  const char* (*wait)(void* user, void* data);
  /** Non-blocking health check: NULL while the ranks can go on, as far as is known, else an error text.
   * Called by any thread while devices communicate without this communicator. The function may be NULL. */
  const char* (*check)(void* user);
} rt_communicator;

#ifdef __cplusplus
}
#endif
#endif
