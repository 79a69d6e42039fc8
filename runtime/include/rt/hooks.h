/** @file
 * What an application can put in the place of librt's own, or hear of: messages, progress, host memory,
 * threads. All are members of rt_session_options; their functions must not throw or jump. */
#ifndef RT_HOOKS_H
#define RT_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How important a message is. A session logs those up to rt_session_options.log_level. */
typedef enum rt_log_level {
  RT_LOG_WARNING = 0, /**< not as requested: nodes that another device runs, a cache that cannot be used */
  RT_LOG_INFO = 1,    /**< the chosen device, and why */
  RT_LOG_DEBUG = 2    /**< each plan that is built */
} rt_log_level;

/** Receives one message, a line of text without line feed that is valid during the call. Called by the thread
 * that is in a function of rt.h on the session, so never by two threads at once for one session; sessions of
 * different threads call it in parallel. It may call functions of rt.h on other sessions; on this one they
 * return the error "in use". librt itself writes nothing to stdout or stderr. */
typedef void (*rt_log_callback)(void* user, rt_log_level level, const char* text);

/** What takes time before the first run, in this order for each plan. */
typedef enum rt_stage {
  RT_STAGE_OPEN = 0,    /**< the device is chosen and opened, states are initialized */
  RT_STAGE_KERNELS = 1, /**< for each node: choosing a device and, with tuning, timing kernels */
  RT_STAGE_CREATE = 2,  /**< for each node: its kernel is created */
  RT_STAGE_WEIGHTS = 3, /**< for each weight: rearranged for its kernel, copied to the device */
  RT_STAGE_READY = 4    /**< the plan is recorded and can run; called once, fraction 1 */
} rt_stage;

/** Progress of rt_session_create, and of rt_session_prepare, run or submit while they build a plan. fraction:
 * of the stage, 0 to 1, not decreasing within it. A value other than 0 stops the call, which returns
 * RT_CANCELLED: rt_session_create then has created nothing; after the others the session can be used as
 * before, and builds the plan at the next call. Threads and reentrancy: as for rt_log_callback;
 * rt_session_cancel may be called. A run with a plan that exists calls nothing. */
typedef int (*rt_progress_callback)(void* user, rt_stage stage, double fraction);

/** Host memory from the application, for a session on the CPU: weights and their rearranged copies, states,
 * the working memory of plans, and the session's copies of inputs and outputs. On another device: only the
 * copies of inputs and outputs. Not covered: the model (rt_model_load_from_memory takes memory of the
 * application), constants that are computed or converted while planning, values on the host in models whose
 * shapes depend on data, and what describes plans: kernels, tables, texts.
 *
 * The functions are called by threads that are in functions of rt.h on the session; free also in
 * rt_session_free, and in rt_memory_free for memory that outlives its session. They must be as thread-safe as
 * the sessions that they are given to. The struct is copied; `user` must outlive the session and its memory.
 */
typedef struct rt_allocator {
  size_t struct_size; /**< sizeof of this struct */
  void* user;         /**< first argument of the functions */
  /** `bytes` bytes (more than 0) at a multiple of `alignment` (a power of two, at least 64); NULL if there
   * are none, which is RT_OUT_OF_MEMORY. */
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  /** Frees what allocate has returned; bytes and alignment are those of that call. Never with NULL. */
  void (*free)(void* user, void* memory, size_t bytes, size_t alignment);
} rt_allocator;

/** Initial value of an rt_allocator. */
#define RT_ALLOCATOR_INIT \
  { sizeof(rt_allocator), NULL, NULL, NULL }

/** The application's threads, for the CPU instead of librt's own. */
typedef struct rt_parallel {
  size_t struct_size; /**< sizeof of this struct */
  void* user;         /**< first argument of run */
  int32_t threads;    /**< threads that run() uses, the caller's included: 1 to 4096 */
  /** Calls task(task_user, i) once for each i from 0 to count - 1, and returns when all have returned. count
   * is at most `threads`. All calls must be able to run at the same time, each on a thread of its own (the
   * caller's may be one): tasks wait for each other at barriers, so that a pool that starts a task only when
   * another one has returned never comes to an end. Tasks do not call run. A run() that returns without
   * having made each call once makes the run of the session fail with RT_INVALID_ARGUMENT. Called by threads
   * that are in functions of rt.h on the session, by several at once if several sessions have this pool. */
  void (*run)(void* user, int32_t count, void (*task)(void* task_user, int32_t index), void* task_user);
} rt_parallel;

/** Initial value of an rt_parallel. */
#define RT_PARALLEL_INIT \
  { sizeof(rt_parallel), NULL, 0, NULL }

#ifdef __cplusplus
}
#endif
#endif
