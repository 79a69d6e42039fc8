/** @file
 * librt: runs and trains one compiled model (.rt) on CPU, CUDA and Vulkan. The stable C API.
 *
 * Conventions:
 *   - A function that can fail returns rt_status*: NULL is success, anything else is an error that the
 *     caller frees with rt_status_free(). Messages read "where: what was expected, what was found; what to
 *     do".
 *   - Handles are opaque and freed by their own function, which accepts NULL. A session keeps the parts of
 *     its model that it uses alive: the model handle may be freed first.
 *   - Structs begin with `struct_size`; set it to sizeof of the struct (or use the _INIT macro). Fields added
 *     in later versions are then left untouched, so programs built against an older header keep working.
 *     Zero always means the default.
 *   - Strings are UTF-8. Returned strings and arrays are owned by the object they come from and live as long
 *     as it does, unless stated otherwise.
 *   - Tensors are dense and row-major. Dynamic dimensions are -1 in specs.
 *   - A session is used by one thread at a time; different sessions may run in parallel, unless they share
 *     states. A call while another thread's call on the session is running does nothing and returns the error
 *     "session ... is in use by another thread" (RT_INVALID_ARGUMENT); functions that return no status return
 *     0 or NULL then. Freeing a session that is in use is not detected.
 *     rt_session_cancel and rt_session_uncancel may be called at any time by any thread.
 *   - Nothing throws, aborts or prints: messages go to rt_session_options.log.
 */
#ifndef RT_RT_H
#define RT_RT_H

#include <stddef.h>
#include <stdint.h>

#include "communicator.h"
#include "custom.h"
#include "dtype.h"
#include "hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @cond */
#define RT_API __attribute__((visibility("default")))
/** @endcond */

#define RT_VERSION_MAJOR 0 /**< Of this header; rt_version() is the library's. */
#define RT_VERSION_MINOR 1 /**< See RT_VERSION_MAJOR. */
#define RT_VERSION_PATCH 0 /**< See RT_VERSION_MAJOR. */
#define RT_MAX_RANK 8      /**< Most dimensions of a tensor. */

/* --- status ------------------------------------------------------------------------------------------- */
/** @defgroup c_status Status
 * @{ */

/** What kind of error a status is. */
typedef enum rt_code {
  RT_OK = 0,               /**< success */
  RT_INVALID_ARGUMENT = 1, /**< caller error: a wrong shape, name, option */
  RT_INVALID_MODEL = 2,    /**< a damaged, malicious or inconsistent file */
  RT_UNSUPPORTED = 3,      /**< a valid request that this build, backend or device does not support */
  RT_NOT_FOUND = 4,        /**< no such file, entry, value */
  RT_OUT_OF_MEMORY = 5,    /**< an allocation failed or a memory limit would be exceeded */
  RT_DEVICE = 6,           /**< no such backend or device here, an error of its driver or of a disk */
  RT_IO = 7,               /**< reading or writing a file failed */
  RT_INTERNAL = 8,         /**< a bug in librt */
  RT_CANCELLED = 9,        /**< the run was stopped by rt_session_cancel */
  RT_LIMIT_EXCEEDED = 10,  /**< the run reached a limit on its work: iterations of loops, time */
  RT_DEVICE_LOST = 11      /**< the device stopped working, and its memory is lost: make a new session */
} rt_code;

/** An error: a code and a message. NULL is success. */
typedef struct rt_status rt_status;

/** The code of a status; RT_OK for NULL. */
RT_API rt_code rt_status_code(const rt_status* status);
/** The message of a status; "" for NULL. Lives as long as the status. */
RT_API const char* rt_status_message(const rt_status* status);
/** Frees the status; NULL is allowed. */
RT_API void rt_status_free(rt_status* status);
/** A code in words: "invalid model" for RT_INVALID_MODEL. */
RT_API const char* rt_code_name(rt_code code);

/** Version of the library that is loaded, "0.1.0", which may be newer than RT_VERSION_*. */
RT_API const char* rt_version(void);

/** @} */

/* --- tensors ------------------------------------------------------------------------------------------ */
/** @defgroup c_tensors Tensors
 * @{ */

/** Bytes of one element; 0 if dtype is not a valid rt_dtype. */
RT_API size_t rt_dtype_size(rt_dtype dtype);
/** Name of an element type: "f32", "i64", "bool"; "" if dtype is not a valid rt_dtype. */
RT_API const char* rt_dtype_name(rt_dtype dtype);

/** A range of memory that a device uses in place: see rt_memory_create. */
typedef struct rt_memory rt_memory;

/** A dense tensor in host memory (data), or in memory of a device (memory). Owns neither. data may be NULL
 * only if the tensor has no elements, or is in memory of a device. */
typedef struct rt_tensor {
  size_t struct_size;        /**< sizeof of this struct */
  rt_dtype dtype;            /**< element type */
  int32_t rank;              /**< number of dimensions */
  int64_t dims[RT_MAX_RANK]; /**< extents, the first `rank` are used */
  void* data;                /**< elements, dense and row-major */
  size_t bytes;              /**< size of data: at least elements x element size */
  rt_memory* memory;         /**< where the elements are instead of data, for rt_session_bind_*; else NULL */
  uint64_t offset;           /**< of the first element in memory, in bytes; bytes 0 then is the rest of it */
} rt_tensor;

/** Declaration of an input, output or state in the model. */
typedef struct rt_tensor_spec {
  size_t struct_size;               /**< sizeof of this struct */
  const char* name;                 /**< name in the model */
  rt_dtype dtype;                   /**< element type */
  int32_t rank;                     /**< number of dimensions */
  int64_t dims[RT_MAX_RANK];        /**< -1: dynamic, known once the inputs are */
  const char* symbols[RT_MAX_RANK]; /**< "batch", or NULL; dimensions with equal symbols have equal extents */
  int64_t bounds[RT_MAX_RANK];      /**< upper bound of the extent, 0: none */
} rt_tensor_spec;

/** Initial value of an rt_tensor: struct_size is set, all else is zero. */
#define RT_TENSOR_INIT \
  { sizeof(rt_tensor), RT_F32, 0, {0}, NULL, 0, NULL, 0 }
/** Initial value of an rt_tensor_spec. */
#define RT_TENSOR_SPEC_INIT                                 \
  {                                                         \
    sizeof(rt_tensor_spec), NULL, RT_F32, 0, {0}, {NULL}, { \
      0                                                     \
    }                                                       \
  }

/** @} */

/* --- models ------------------------------------------------------------------------------------------- */
/** @defgroup c_models Models
 * @{ */

/** A loaded model: its entries, states and metadata. */
typedef struct rt_model rt_model;

/** Options of loading a model. What exceeds a limit is RT_INVALID_MODEL; the defaults fit every legitimate
 * model, an application that opens untrusted files lowers them. */
typedef struct rt_model_options {
  size_t struct_size; /**< sizeof of this struct */
  /** 1: librt has the bytes in memory of its own. 0: a file is mapped and must not be overwritten or
   * truncated until the model and its sessions are freed (a read past its new end is the signal SIGBUS);
   * bytes in memory belong to the caller, who keeps them alive and unchanged for as long. */
  int32_t copy;
  /** 1: the checksums of the weights are not compared. 0: each when a session first uses the weight; a
   * difference is RT_INVALID_MODEL from the call that does (rt_session_create, rt_session_prepare, the first
   * run). Those of the header and the graphs always are, at the load. */
  int32_t skip_checksums;
  uint64_t max_nodes;       /**< nodes of all graphs, with bodies; 0: 1,000,000 */
  uint64_t max_values;      /**< values of all graphs, with bodies; 0: 4,000,000 */
  uint64_t max_graph_bytes; /**< memory of everything except tensors; 0: 1 GiB */
  uint64_t max_data_bytes;  /**< one value of known shape; all states together; 0: 64 GiB */
} rt_model_options;

/** Initial value of an rt_model_options. */
#define RT_MODEL_OPTIONS_INIT \
  { sizeof(rt_model_options), 0, 0, 0, 0, 0, 0 }

/** Maps the file and validates its structure completely; weights are read on demand. */
RT_API rt_status* rt_model_load(const char* path, rt_model** model);
/** The same with options; NULL: the defaults. */
RT_API rt_status* rt_model_load_with(const char* path, const rt_model_options* options, rt_model** model);
/** A model file in memory. copy: see rt_model_options. Borrowed bytes should be aligned to 64 bytes. */
RT_API rt_status* rt_model_load_from_memory(const void* data, size_t bytes, int copy, rt_model** model);
/** The same with options; NULL: the defaults, which do not copy. */
RT_API rt_status* rt_model_load_from_memory_with(const void* data, size_t bytes,
                                                 const rt_model_options* options, rt_model** model);
/** Reads `bytes` bytes at `offset` into `destination`; 0 is success. Called only during the load. */
typedef int (*rt_read_callback)(void* user, uint64_t offset, void* destination, size_t bytes);
/** A model of `total_bytes` bytes that `read` fetches; `user` is passed on to it. */
RT_API rt_status* rt_model_load_from_callback(rt_read_callback read, void* user, uint64_t total_bytes,
                                              rt_model** model);
/** The same with options, of which `copy` has no effect; NULL: the defaults. */
RT_API rt_status* rt_model_load_from_callback_with(rt_read_callback read, void* user, uint64_t total_bytes,
                                                   const rt_model_options* options, rt_model** model);
/** Frees the model; NULL is allowed. */
RT_API void rt_model_free(rt_model* model);

/** Name and version of the program that wrote the file. */
RT_API const char* rt_model_producer(const rt_model* model);
/** Number of entries (graphs that can be run). */
RT_API size_t rt_model_entry_count(const rt_model* model);
/** Name of an entry, "infer" or "train_step"; NULL past the end. */
RT_API const char* rt_model_entry_name(const rt_model* model, size_t index);
/** Number of inputs of an entry, 0 if there is no such entry. entry NULL: "infer", or the model's only one.
 */
RT_API size_t rt_model_input_count(const rt_model* model, const char* entry);
/** Number of outputs of an entry, as for rt_model_input_count. */
RT_API size_t rt_model_output_count(const rt_model* model, const char* entry);
/** Declaration of input `index` of an entry. */
RT_API rt_status* rt_model_input(const rt_model* model, const char* entry, size_t index,
                                 rt_tensor_spec* spec);
/** Declaration of output `index` of an entry. */
RT_API rt_status* rt_model_output(const rt_model* model, const char* entry, size_t index,
                                  rt_tensor_spec* spec);

/** Kinds of states. States are tensors that persist across runs and are shared by the entries. */
typedef enum rt_state_kind {
  RT_PARAMETER = 0, /**< a trained weight */
  RT_STATISTIC = 1, /**< any other value that persists: running means of batch norm, key-value caches */
  RT_OPTIMIZER = 2, /**< kept by the optimizer, such as moments */
  RT_COUNTER = 3    /**< counts, such as training steps */
} rt_state_kind;
/** Number of states. */
RT_API size_t rt_model_state_count(const rt_model* model);
/** Declaration and kind of state `index`. kind may be NULL. */
RT_API rt_status* rt_model_state(const rt_model* model, size_t index, rt_tensor_spec* spec,
                                 rt_state_kind* kind);

/** Number of key-value pairs that the converter has written. */
RT_API size_t rt_model_metadata_count(const rt_model* model);
/** Key of pair `index`; NULL past the end. */
RT_API const char* rt_model_metadata_key(const rt_model* model, size_t index);
/** Value of a key; NULL if the key is absent. */
RT_API const char* rt_model_metadata_value(const rt_model* model, const char* key);

/** @} */

/* --- devices ------------------------------------------------------------------------------------------ */
/** @defgroup c_devices Devices
 * @{ */

/** The devices of this machine, as rt_devices_list has found them. */
typedef struct rt_device_list rt_device_list;

/** Types of devices. */
typedef enum rt_device_type {
  RT_CPU = 0,            /**< the CPU of this machine */
  RT_INTEGRATED_GPU = 1, /**< a GPU that shares the host's memory */
  RT_DISCRETE_GPU = 2,   /**< a GPU with memory of its own */
  RT_VIRTUAL_GPU = 3,    /**< a GPU of a virtual machine, or of a type that its driver does not state */
  RT_SOFTWARE_GPU = 4    /**< a GPU that the CPU emulates */
} rt_device_type;

/** Properties of a device. Strings live as long as the list, or the session, that they come from. */
typedef struct rt_device_info {
  size_t struct_size;    /**< sizeof of this struct */
  const char* backend;   /**< "cpu", "vulkan", "cuda", "reference" */
  int32_t index;         /**< position among the backend's devices */
  rt_device_type type;   /**< CPU, or what kind of GPU */
  const char* name;      /**< the model of the CPU or GPU */
  const char* uuid;      /**< "" if there is none */
  const char* driver;    /**< driver or library that runs it, with its version */
  const char* features;  /**< separated by spaces */
  uint64_t memory_bytes; /**< size of the device's memory */
  int32_t host_memory;   /**< 1: bound inputs and outputs are used in place */
  int32_t threads;       /**< of a CPU device: number of threads */
  int32_t asynchronous;  /**< 1: runs asynchronously to the caller, see rt_session_submit */
} rt_device_info;

/** Initial value of an rt_device_info. */
#define RT_DEVICE_INFO_INIT \
  { sizeof(rt_device_info), NULL, 0, RT_CPU, NULL, NULL, NULL, NULL, 0, 0, 0, 0 }

/** Queries every backend module for its devices. A backend without devices is not an error: see
 * rt_backend_reason. */
RT_API rt_status* rt_devices_list(rt_device_list** list);
/** Frees the list; NULL is allowed. */
RT_API void rt_device_list_free(rt_device_list* list);
/** Number of devices. */
RT_API size_t rt_device_list_count(const rt_device_list* list);
/** Properties of device `index`. */
RT_API rt_status* rt_device_list_get(const rt_device_list* list, size_t index, rt_device_info* info);
/** Number of backends known to librt, with or without devices. */
RT_API size_t rt_backend_count(const rt_device_list* list);
/** Name of a backend: "cpu", "vulkan"; NULL past the end. */
RT_API const char* rt_backend_name(const rt_device_list* list, size_t index);
/** Why this backend has no device, in one sentence; "" if it has one, NULL past the end. */
RT_API const char* rt_backend_reason(const rt_device_list* list, size_t index);

/** Cost model of `backend = "auto"`. Stored in the cache folder; defaults by device type until measured. */
typedef struct rt_device_profile {
  size_t struct_size;        /**< sizeof of this struct */
  double flops_f32;          /**< matmul throughput, operations per second */
  double memory_bandwidth;   /**< bytes per second */
  double transfer_bandwidth; /**< host to device, bytes per second */
  double launch_seconds;     /**< fixed overhead of one node */
  double submit_seconds;     /**< fixed overhead of one run */
  int32_t measured;          /**< out: 0 for defaults */
} rt_device_profile;

/** Initial value of an rt_device_profile. */
#define RT_DEVICE_PROFILE_INIT \
  { sizeof(rt_device_profile), 0, 0, 0, 0, 0, 0 }

/** Reads a device's profile. info: from rt_device_list_get. cache_folder NULL: the user's default
 * (XDG_CACHE_HOME/librt). */
RT_API rt_status* rt_device_profile_read(const rt_device_info* info, const char* cache_folder,
                                         rt_device_profile* profile);
/** Stores measured values as the device's profile; `measured` is ignored. */
RT_API rt_status* rt_device_profile_write(const rt_device_info* info, const char* cache_folder,
                                          const rt_device_profile* profile);

/** @} */

/* --- sessions ----------------------------------------------------------------------------------------- */
/** @defgroup c_sessions Sessions
 * @{ */

/** One entry of a model, prepared for one device, with its inputs, outputs and states. */
typedef struct rt_session rt_session;

/** Options of rt_session_create. */
typedef struct rt_session_options {
  size_t struct_size;  /**< sizeof of this struct */
  const char* backend; /**< "cpu", "vulkan", "cuda", "reference" (slow, exact), "auto" = NULL */
  const char* device;  /**< index, part of the name, or UUID; NULL: chosen by the backend */
  const char* entry;   /**< NULL: "infer", or the model's only entry */
  /** Precision of matmuls and convolutions: "fp32", "tf32", "fp16", "bf16"; NULL: as in the file. */
  const char* precision;
  /** CPU threads, the caller's included; 0: as allowed by cgroup and affinity. At most 4096. */
  int32_t threads;
  int32_t strict;        /**< 1: nodes that the device does not support are an error that lists all of them */
  int32_t profile;       /**< 1: time every node, see rt_session_profile */
  int32_t validation;    /**< 1: Vulkan validation layers; their messages make runs fail */
  int32_t deterministic; /**< 1: reproducible results from run to run on this device (disables tuning) */
  int32_t tuning;        /**< 1: time alternative kernels when a plan is built, cache the fastest on disk */
  int32_t tuning_ms;     /**< time limit per plan; 0: 500 ms */
  /** Limit of this session's memory in bytes, 0: what the machine has. Weights, states, working memory,
   * tables of kernels, and copies of inputs, outputs and intermediate values on the host count, before they
   * are allocated; values on the host that take less than 1 MiB together do not. */
  uint64_t memory_limit;
  uint64_t plan_cache_bytes;     /**< plans of earlier shapes are cached up to this size; 0: 256 MiB */
  const char* cache_folder;      /**< an absolute path; NULL: the user's (XDG_CACHE_HOME/librt) */
  rt_session* share_states_with; /**< share the states of this session (same model, same device) */
  uint64_t loop_limit;           /**< maximum iterations of all Loops of a run together; 0: a million */
  /** The ranks of distributed training (rtconvert --train --data-parallel); NULL: this process only. Must
   * outlive the session. */
  const rt_communicator* communicator;
  /** Maximum time of a run or submit on the host in milliseconds, planning included; 0: none. Checked where a
   * run can be cancelled (rt_session_cancel): a node that has begun, or work that a GPU was given, is
   * completed, and the run exceeds the limit by that. */
  uint64_t time_limit_ms;
  /** What "auto" minimizes: "latency" = NULL, the time of a run; "throughput", that of a run at batch 32,
   * where the batch is free; "energy", time x power. With another backend it is RT_INVALID_ARGUMENT. */
  const char* prefer;
  /** 1: a GPU's work is launched anew in each run, to see what replaying recorded work saves: CUDA launches
   * kernel by kernel instead of a graph, Vulkan records a new command buffer (and runs are then synchronous).
   * Slower. RT_UNSUPPORTED on devices that replay nothing. */
  int32_t no_replay;
  /** A cudaStream_t of the session's device, which must outlive the session: its work is enqueued there.
   * NULL: a stream of its own. With a device other than CUDA it is RT_UNSUPPORTED. */
  void* cuda_stream;
  /** Use the device that this session has opened, and its stream: then both can use the same rt_memory, also
   * with Vulkan, and are used by one thread at a time. Models may differ. */
  rt_session* share_device_with;
  rt_log_callback log;    /**< receives messages; NULL: there are none */
  void* log_user;         /**< first argument of log */
  rt_log_level log_level; /**< messages up to this level are logged; 0: warnings */
  rt_progress_callback
      progress;        /**< hears of what takes long before a run, and can stop it; NULL: nothing is */
  void* progress_user; /**< first argument of progress */
  const rt_allocator* allocator; /**< host memory, see rt_allocator; NULL: malloc. Copied */
  /** The application's threads for the CPU; NULL: librt's own. Copied; `user` must outlive the session. With
   * `threads`, `cpus` or `priority` it is RT_INVALID_ARGUMENT. */
  const rt_parallel* parallel;
  /** CPUs on which librt's own threads of this session may run, by the numbers that Linux gives them. The
   * thread that calls rt_session_run works, too, and stays where the application has put it. NULL: all that
   * the process may use. */
  const int32_t* cpus;
  size_t cpu_count; /**< number of cpus */
  /** Nice value, -20 to 19, that librt's own threads of this session have; less than the process's takes a
   * privilege, and is RT_DEVICE without it. 0: that of the thread that creates the session. */
  int32_t priority;
  /** Kernels for operators of the application that the model contains. Copied, with their names; each `user`
   * must outlive the session. */
  const rt_custom_operator* custom_operators;
  size_t custom_operator_count; /**< number of custom_operators */
  /** Memory of the application for what an rt_allocator would be asked for, in the place of one; it must
   * outlive the session and its rt_memory, which one thread uses at a time. Too little is RT_OUT_OF_MEMORY;
   * `rtconvert --memory-report` says how much a session takes. NULL: none. */
  void* arena;
  size_t arena_bytes; /**< size of arena */
} rt_session_options;

/** Initial value of an rt_session_options. */
#define RT_SESSION_OPTIONS_INIT                                                                             \
  {                                                                                                         \
    sizeof(rt_session_options), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, NULL, 0,  \
        NULL, 0, NULL, NULL, NULL, NULL, RT_LOG_WARNING, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, 0, NULL, \
        0                                                                                                   \
  }

/** Opens the device and prepares the entry. Planned immediately if all inputs have static shapes, else at the
 * first run. options may be NULL. */
RT_API rt_status* rt_session_create(const rt_model* model, const rt_session_options* options,
                                    rt_session** session);
/** Frees the session; NULL is allowed. */
RT_API void rt_session_free(rt_session* session);

/** Number of inputs of the entry. */
RT_API size_t rt_session_input_count(const rt_session* session);
/** Number of outputs of the entry. */
RT_API size_t rt_session_output_count(const rt_session* session);
/** Declaration of input `index` in the model. */
RT_API rt_status* rt_session_input_spec(const rt_session* session, size_t index, rt_tensor_spec* spec);
/** Declaration of output `index` in the model. */
RT_API rt_status* rt_session_output_spec(const rt_session* session, size_t index, rt_tensor_spec* spec);
/** Index of the input of this name; RT_NOT_FOUND if there is none. */
RT_API rt_status* rt_session_find_input(const rt_session* session, const char* name, size_t* index);
/** Index of the output of this name; RT_NOT_FOUND if there is none. */
RT_API rt_status* rt_session_find_output(const rt_session* session, const char* name, size_t* index);

/** Copies the tensor into input `index`. The value is kept for subsequent runs. With a new shape the next run
 * builds a plan (or reuses the plan of an earlier run with these shapes). */
RT_API rt_status* rt_session_set_input(rt_session* session, size_t index, const rt_tensor* tensor);
/** Uses the caller's memory until the input is bound or set again: read at every run, in place if the device
 * has host_memory (and the memory is aligned to 16 bytes), else copied to the device at each run. A tensor
 * with `memory` is read in place by the device: see rt_memory_create. */
RT_API rt_status* rt_session_bind_input(rt_session* session, size_t index, const rt_tensor* tensor);
/** Every run writes this output to the caller's memory, in place if the device has host_memory and the memory
 * is aligned to 64 bytes. tensor->bytes must suffice for the output's size at each run, dtype must match the
 * output's; rank and dims are ignored. A tensor with `memory` is written in place by the device: see
 * rt_memory_create. NULL unbinds. */
RT_API rt_status* rt_session_bind_output(rt_session* session, size_t index, const rt_tensor* tensor);

/** Optional: plans and allocates now, for the shapes of the inputs, or for `shapes` (one per input, data
 * ignored) if given, in which case the inputs need not be set yet, except those that are shape operands. */
RT_API rt_status* rt_session_prepare(rt_session* session, const rt_tensor* shapes, size_t count);
/** Runs once, synchronously. After the first run with given shapes a run on the CPU allocates nothing. */
RT_API rt_status* rt_session_run(rt_session* session);
/** Starts an asynchronous run, so that the next inputs are transferred while this run computes:
 * submit; then repeatedly: set the next inputs, submit, wait, use the outputs.
 *
 * The run uses the inputs as they are set. When the call returns, the memory of inputs, including bound ones,
 * may be reused by the caller. Two runs may be in flight, a third is an error; they execute one after the
 * other in submission order, also with runs of sessions that share states with this one. If the device is
 * asynchronous (rt_device_info.asynchronous), all nodes run on it and profile = 0, the call returns
 * immediately; else it returns when the run has completed. Inputs and outputs in flight take extra device
 * memory. States read or written while runs are in flight are those after all submitted runs.
 */
RT_API rt_status* rt_session_submit(rt_session* session);
/** Waits for the oldest submitted run; rt_session_output then refers to that run, and the outputs bound when
 * it was submitted are written. A failed run counts as waited for. */
RT_API rt_status* rt_session_wait(rt_session* session);
/** Stops the run, submit or prepare in progress: it returns RT_CANCELLED, and the session can be used as
 * before. If none is in progress, the next one is stopped. May be called from any thread and from signal
 * handlers, while the session is in use; not during or after rt_session_free.
 *
 * A run is stopped between two nodes on the CPU, between the parts that run on different devices, between the
 * parts and host nodes of a model whose shapes depend on data, between iterations of a Loop, and between
 * nodes while it is planned. Not within a node, whose time depends on the shapes (a product of two matrices
 * of 8192 rows takes seconds on one thread), nor within the work that a GPU was given at once: that is the
 * whole of a model that runs on it alone, without Loops. A run that writes states is stopped before the first
 * write, or completes: a training step has taken place whole, or, if it returns RT_CANCELLED or
 * RT_LIMIT_EXCEEDED, not at all. Bound outputs may be partly written. A submitted run that an asynchronous
 * device executes completes, and rt_session_wait returns it; the request then stops the next run or submit.
 * Ranks of distributed training wait for each other: cancel none or all. */
RT_API void rt_session_cancel(rt_session* session);
/** Withdraws a request of rt_session_cancel that has not stopped anything yet. */
RT_API void rt_session_uncancel(rt_session* session);
/** Output `index` after a run, or after rt_session_wait. data is valid, and may be modified, until the next
 * run, submit, prepare or free of this session. If the output is bound to memory of a device, data is NULL
 * (unless the host addresses it), memory and offset are those of the binding; memory is NULL, too, if it has
 * been freed since. */
RT_API rt_status* rt_session_output(rt_session* session, size_t index, rt_tensor* tensor);

/** @} */

/* --- memory of devices -------------------------------------------------------------------------------- */
/** @defgroup c_memory Memory of devices
 * Inputs and outputs that stay on a device, between sessions or between librt and other code of the
 * application. @{ */

/** Where an rt_memory comes from. */
typedef enum rt_memory_kind {
  RT_MEMORY_DEVICE = 0,    /**< made by librt */
  RT_MEMORY_HOST = 1,      /**< host memory of the caller: pointer. CPU; Vulkan where the driver imports it */
  RT_MEMORY_CUDA = 2,      /**< a CUDA pointer to memory of the session's device: pointer */
  RT_MEMORY_VULKAN_FD = 3, /**< exported by another VkDevice of the same driver and GPU, as an opaque fd */
  RT_MEMORY_VULKAN_BUFFER = 4 /**< a VkBuffer of the session's VkDevice (rt_session_native): vk_buffer */
} rt_memory_kind;

/** Options of rt_memory_create. */
typedef struct rt_memory_options {
  size_t struct_size;  /**< sizeof of this struct */
  rt_memory_kind kind; /**< where the memory comes from */
  int32_t read_only;   /**< 1: may be bound to inputs only */
  size_t bytes;        /**< size. Vulkan: a multiple of 16, unless librt makes it */
  void* pointer;       /**< RT_MEMORY_HOST, RT_MEMORY_CUDA: its first byte */
  /** RT_MEMORY_VULKAN_BUFFER: the handle. Usage storage buffer, uniform texel buffer, transfer source and
   * destination; as large as `bytes`. */
  uint64_t vk_buffer;
  uint64_t offset;           /**< RT_MEMORY_VULKAN_FD: of the first byte in the allocation */
  uint64_t allocation_bytes; /**< RT_MEMORY_VULKAN_FD: VkMemoryAllocateInfo::allocationSize of the exporter */
  uint32_t memory_type; /**< RT_MEMORY_VULKAN_FD: VkMemoryAllocateInfo::memoryTypeIndex of the exporter */
  int32_t fd;           /**< RT_MEMORY_VULKAN_FD: the descriptor, which stays the caller's */
  int32_t exportable;   /**< RT_MEMORY_DEVICE: 1: rt_memory_export_fd can be called */
  /** Called once when librt does not use the memory any more: after rt_memory_free, and once no session has
   * it bound and no run is in flight with it. By any thread. NULL: nothing is called. */
  void (*release)(void* user);
  void* user; /**< passed to release */
} rt_memory_options;

/** Initial value of an rt_memory_options: RT_MEMORY_DEVICE, all else is zero. */
#define RT_MEMORY_OPTIONS_INIT \
  { sizeof(rt_memory_options), RT_MEMORY_DEVICE, 0, 0, NULL, 0, 0, 0, 0, -1, 0, NULL, NULL }

/** Makes memory that the session's device uses in place, or takes the caller's. The caller's must stay
 * allocated until `release` is called.
 *
 * Tensors with this memory can be bound to inputs and outputs (rt_session_bind_input, rt_session_bind_output)
 * of the session, of sessions that share its device (rt_session_options.share_device_with), of other sessions
 * on the same CUDA GPU, and, if the host addresses it, of sessions on the CPU. Addresses must be multiples of
 * 64 bytes, 256 with CUDA, of what the device asks with Vulkan (at most 256). The range of an output must not
 * overlap those of other outputs or of inputs. An input whose values determine shapes, and entries whose
 * shapes depend on data, need host memory.
 *
 * A run reads and writes the memory between its start and its end: after rt_session_run it is complete, after
 * rt_session_submit at the rt_session_wait, or on the device in the order of its stream or queue. A binding
 * with another address is recorded once; the last four of each part of a plan are kept, so buffers can take
 * turns. Does not count in memory_limit. */
RT_API rt_status* rt_memory_create(rt_session* session, const rt_memory_options* options, rt_memory** memory);
/** Frees the handle; NULL is allowed. Runs with the memory are errors from now on, until other memory is
 * bound; a run in flight completes. The session may be freed before or after. */
RT_API void rt_memory_free(rt_memory* memory);
/** Size in bytes: at least as requested; 0 for NULL. */
RT_API size_t rt_memory_bytes(const rt_memory* memory);
/** The CUDA pointer, or the host address where there is one; else NULL. */
RT_API void* rt_memory_pointer(const rt_memory* memory);
/** Copies from host memory, after all work of the session that was submitted before. */
RT_API rt_status* rt_memory_write(rt_memory* memory, uint64_t offset, const void* data, size_t bytes);
/** Copies to host memory, after all work of the session that was submitted before. */
RT_API rt_status* rt_memory_read(rt_memory* memory, uint64_t offset, void* data, size_t bytes);
/** An opaque file descriptor for VkImportMemoryFdInfoKHR, which the caller closes or gives to Vulkan, with
 * the size and the type of the allocation, whose first byte is the memory's. Memory made with `exportable`.
 */
RT_API rt_status* rt_memory_export_fd(rt_memory* memory, int* fd, uint64_t* allocation_bytes,
                                      uint32_t* memory_type);

/** What work on a device can wait for. */
typedef enum rt_sync_kind {
  RT_CUDA_EVENT = 0,     /**< a cudaEvent_t of the session's device */
  RT_VULKAN_TIMELINE = 1 /**< a timeline VkSemaphore of the session's VkDevice, at a value */
} rt_sync_kind;

/** An event, or a point of a timeline. */
typedef struct rt_sync {
  size_t struct_size; /**< sizeof of this struct */
  rt_sync_kind kind;  /**< what handle is */
  uint64_t handle;    /**< (uint64_t)(uintptr_t) of the cudaEvent_t or VkSemaphore */
  uint64_t value;     /**< of the timeline */
} rt_sync;

/** Initial value of an rt_sync. */
#define RT_SYNC_INIT \
  { sizeof(rt_sync), RT_CUDA_EVENT, 0, 0 }

/** The device starts work that is submitted from now on when the point has been reached. The call does not
 * wait. Sessions on the CPU: RT_UNSUPPORTED. */
RT_API rt_status* rt_session_wait_for(rt_session* session, const rt_sync* point);
/** The device reaches the point when all work that was submitted until now is complete. The call does not
 * wait. */
RT_API rt_status* rt_session_signal(rt_session* session, const rt_sync* point);

/** Handles of the session's device for other code that uses it; they live as long as the session. */
typedef struct rt_native_handles {
  size_t struct_size;       /**< sizeof of this struct */
  int32_t cuda_device;      /**< the CUDA ordinal; -1 without CUDA */
  uint32_t vk_queue_family; /**< of vk_queue */
  void* cuda_stream;        /**< the cudaStream_t that the session's work is enqueued on */
  void* vk_instance;        /**< the VkInstance; NULL without Vulkan */
  void* vk_physical_device; /**< the VkPhysicalDevice */
  void* vk_device;          /**< the VkDevice, with timeline semaphores where the driver has them */
  void* vk_queue;           /**< the VkQueue: submit to it while no function of rt.h works on the session */
} rt_native_handles;

/** Initial value of an rt_native_handles. */
#define RT_NATIVE_HANDLES_INIT \
  { sizeof(rt_native_handles), -1, 0, NULL, NULL, NULL, NULL, NULL }

/** The handles of the session's device; all NULL on the CPU. */
RT_API rt_status* rt_session_native(rt_session* session, rt_native_handles* handles);

/** @} */

/* --- states and checkpoints */
/** @defgroup c_states States and checkpoints
 * @{ */

/** Number of states of the model. */
RT_API size_t rt_session_state_count(const rt_session* session);
/** Declaration and kind of state `index`. kind may be NULL. */
RT_API rt_status* rt_session_state_spec(const rt_session* session, size_t index, rt_tensor_spec* spec,
                                        rt_state_kind* kind);
/** Copies the state to tensor->data, of tensor->bytes bytes; sets dtype, rank and dims. data NULL: only
 * queries dtype, rank, dims and the size in bytes. */
RT_API rt_status* rt_session_read_state(rt_session* session, const char* name, rt_tensor* tensor);
/** Copies the tensor to the state. dtype and shape must match the state's. */
RT_API rt_status* rt_session_write_state(rt_session* session, const char* name, const rt_tensor* tensor);
/** Resets the states to the model's initial values. */
RT_API rt_status* rt_session_reset_states(rt_session* session);

/** Writes all states and the given key-value pairs to a file, atomically (the old file is replaced once the
 * new one is complete). RT_INVALID_ARGUMENT if the file is a model's, which is never replaced. */
RT_API rt_status* rt_session_save_checkpoint(rt_session* session, const char* path, const char* const* keys,
                                             const char* const* values, size_t count);
/** Restores all states; on error they are unchanged. Works across backends. */
RT_API rt_status* rt_session_load_checkpoint(rt_session* session, const char* path);
/** Loads only the parameters and statistics, from a file with exactly those of this model: a checkpoint of
 * this model, or an adapter saved by rtconvert. Plans are kept, so adapters can be swapped between runs; on
 * error the states are unchanged. */
RT_API rt_status* rt_session_load_adapter(rt_session* session, const char* path);
/** A value saved with the checkpoint loaded last; NULL if absent. */
RT_API const char* rt_session_checkpoint_value(const rt_session* session, const char* key);

/** @} */

/* --- introspection and profiling */
/** @defgroup c_introspection Introspection and profiling
 * Texts are valid until the next call on the session. @{ */

/** The device that the session runs on. */
RT_API rt_status* rt_session_device(const rt_session* session, rt_device_info* info);
/** Why this device was chosen: the predictions of "auto", or "requested". */
RT_API const char* rt_session_device_reason(const rt_session* session);
/** The library for collectives between devices: "NCCL 2.28.9". "" if the communicator is used instead, in
 * host memory; then *reason (may be NULL) explains why, or is "". */
RT_API const char* rt_session_collectives(const rt_session* session, const char** reason);
/** The plan: every node with kernel, device, shapes, layout, alias, arena offset; copies, fallbacks and
 * totals. "" before the first plan. */
RT_API rt_status* rt_session_plan_text(rt_session* session, const char** text);
/** Nodes that the chosen device does not support and another device runs; 0 before the first plan. */
RT_API size_t rt_session_fallback_count(const rt_session* session);

/** Memory of a session, in bytes, and the number of its plans. */
typedef struct rt_memory_stats {
  size_t struct_size;    /**< sizeof of this struct */
  uint64_t states;       /**< bytes of the states on the device */
  uint64_t weights;      /**< constants held for the device (not counting a mapped file used in place) */
  uint64_t packed;       /**< constants in the layouts of kernels, also what sessions of the model share */
  uint64_t arena;        /**< arena allocated: of the largest plan so far */
  uint64_t peak_planned; /**< arena the current plan needs, as computed by its memory planner */
  uint64_t naive;        /**< the same without memory reuse between values */
  uint64_t staging;      /**< host copies of inputs and outputs */
  uint64_t plans;        /**< cached plans */
} rt_memory_stats;
/** Initial value of an rt_memory_stats. */
#define RT_MEMORY_STATS_INIT \
  { sizeof(rt_memory_stats), 0, 0, 0, 0, 0, 0, 0, 0 }
/** Memory that the session uses now. */
RT_API rt_status* rt_session_memory(const rt_session* session, rt_memory_stats* stats);

/** Time and cost of one node, or of copying inputs or outputs between host and device. */
typedef struct rt_profile_entry {
  size_t struct_size;     /**< sizeof of this struct */
  const char* name;       /**< of the node; "inputs", "outputs" */
  const char* op;         /**< "Conv"; "Copy", "Reorder" and "Transfer" for what the plan inserts */
  const char* kernel;     /**< "conv.winograd" */
  const char* device;     /**< "cpu", "vulkan" */
  uint64_t nanoseconds;   /**< total of all runs since the last reset */
  double flops;           /**< of one run */
  double bytes;           /**< of one run, all operands and results */
  uint64_t live_bytes;    /**< planned memory of values between nodes while it runs, on all devices */
  uint64_t scratch_bytes; /**< planned memory of its own while it runs */
} rt_profile_entry;
/** Initial value of an rt_profile_entry. */
#define RT_PROFILE_ENTRY_INIT \
  { sizeof(rt_profile_entry), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0 }
/** Number of entries for the current plan. Requires rt_session_options.profile, else 0. */
RT_API size_t rt_session_profile_count(const rt_session* session);
/** Entry `index` of the current plan, in execution order. */
RT_API rt_status* rt_session_profile(const rt_session* session, size_t index, rt_profile_entry* entry);
/** Runs of the current plan since the last reset. */
RT_API uint64_t rt_session_profile_runs(const rt_session* session);
/** Sets times and number of runs to 0. */
RT_API rt_status* rt_session_profile_reset(rt_session* session);

/** @} */

/* --- training ----------------------------------------------------------------------------------------- */
/** @defgroup c_training Training
 * @{ */

/** A session on the entry "train_step" with its conventional inputs and outputs: the scalar input
 * "learning_rate" (f32) and the scalar output "loss". Anything else goes through rt_trainer_session(). */
typedef struct rt_trainer rt_trainer;

/** Creates a trainer. options may be NULL; entry NULL: "train_step". */
RT_API rt_status* rt_trainer_create(const rt_model* model, const rt_session_options* options,
                                    rt_trainer** trainer);
/** Frees the trainer and its session; NULL is allowed. */
RT_API void rt_trainer_free(rt_trainer* trainer);
/** The session, owned by the trainer: set inputs, read states, checkpoints, profile. */
RT_API rt_session* rt_trainer_session(rt_trainer* trainer);
/** Sets the learning rate. Kept until set again. An error if the entry has no learning rate. */
RT_API rt_status* rt_trainer_set_learning_rate(rt_trainer* trainer, float learning_rate);
/** Runs one step. loss may be NULL. */
RT_API rt_status* rt_trainer_step(rt_trainer* trainer, float* loss);
/** Submits a step, see rt_session_submit. */
RT_API rt_status* rt_trainer_submit(rt_trainer* trainer);
/** Waits for the oldest submitted step. loss may be NULL. */
RT_API rt_status* rt_trainer_wait(rt_trainer* trainer, float* loss);
/** A session on another entry ("infer" when NULL) that shares the trainer's states, on the same device. */
RT_API rt_status* rt_trainer_open(rt_trainer* trainer, const char* entry, rt_session** session);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
