/* librt: runs and trains one compiled model (.rt) on CPU, CUDA and Vulkan. The stable C interface.
 *
 * Conventions
 *   - A function that can fail returns rt_status*: NULL is success, anything else is an error that the caller
 * frees with rt_status_free(). Messages read "where: what was expected, what was found; what to do".
 *   - Handles are opaque and freed by their own function, which accepts NULL. A session keeps what it needs
 * of its model alive: the model's handle may be freed first.
 *   - Structs begin with `struct_size`; set it to sizeof of the struct (or use the _INIT macro). Fields added
 * later are then left alone, so programs built against an older header keep working. Zero always means the
 * default.
 *   - Strings are UTF-8. Strings and arrays handed out belong to the object they come from and live as long
 * as it does, unless said otherwise.
 *   - Tensors are dense and row-major. Dimensions that depend on the run are -1 in specs.
 *   - A session is used by one thread at a time; different sessions may run in parallel, unless they share
 * states.
 *   - Nothing throws, aborts or prints.
 */
#ifndef RT_RT_H
#define RT_RT_H

#include <stddef.h>
#include <stdint.h>

#include "communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RT_API __attribute__((visibility("default")))

#define RT_VERSION_MAJOR 0
#define RT_VERSION_MINOR 1
#define RT_VERSION_PATCH 0
#define RT_MAX_RANK 8

/* --- status
 * ------------------------------------------------------------------------------------------------- */

typedef enum rt_code {
  RT_OK = 0,
  RT_INVALID_ARGUMENT = 1, /* the caller's mistake: a wrong shape, name, option */
  RT_INVALID_MODEL = 2,    /* a file that is damaged, hostile or inconsistent */
  RT_UNSUPPORTED = 3,      /* a valid request that this build, backend or device cannot do */
  RT_NOT_FOUND = 4,        /* no such file, device, entry, value */
  RT_OUT_OF_MEMORY = 5,    /* an allocation failed or a memory limit would be exceeded */
  RT_DEVICE = 6,           /* the driver or device reported an error */
  RT_IO = 7,               /* reading or writing a file failed */
  RT_INTERNAL = 8          /* a mistake of librt */
} rt_code;

typedef struct rt_status rt_status;

/* RT_OK for NULL. */
RT_API rt_code rt_status_code(const rt_status* status);
/* "" for NULL. */
RT_API const char* rt_status_message(const rt_status* status);
RT_API void rt_status_free(rt_status* status);
/* "invalid model" and the like. */
RT_API const char* rt_code_name(rt_code code);

/* "0.1.0" of the library that is loaded, which may be newer than RT_VERSION_*. */
RT_API const char* rt_version(void);

/* --- tensors
 * ------------------------------------------------------------------------------------------------ */

typedef enum rt_dtype {
  RT_F32 = 0,
  RT_F16 = 1,
  RT_BF16 = 2,
  RT_F64 = 3,
  RT_I8 = 4,
  RT_U8 = 5,
  RT_I16 = 6,
  RT_U16 = 7,
  RT_I32 = 8,
  RT_U32 = 9,
  RT_I64 = 10,
  RT_U64 = 11,
  RT_BOOL = 12 /* one byte, 0 or 1 */
} rt_dtype;

/* Bytes of one element; 0 for a number that is no dtype. */
RT_API size_t rt_dtype_size(rt_dtype dtype);
/* "f32", "i64", "bool"; "" for a number that is no dtype. */
RT_API const char* rt_dtype_name(rt_dtype dtype);

/* A dense tensor in host memory. Does not own data. data may be NULL only when the tensor has no elements. */
typedef struct rt_tensor {
  size_t struct_size;
  rt_dtype dtype;
  int32_t rank;
  int64_t dims[RT_MAX_RANK];
  void* data;
  size_t bytes; /* of data: at least elements x element size */
} rt_tensor;

/* What a model says of an input, output or state. */
typedef struct rt_tensor_spec {
  size_t struct_size;
  const char* name;
  rt_dtype dtype;
  int32_t rank;
  int64_t dims[RT_MAX_RANK];        /* -1: known when inputs are */
  const char* symbols[RT_MAX_RANK]; /* "batch", or NULL; equal symbols mean equal extents */
  int64_t bounds[RT_MAX_RANK];      /* largest extent allowed, 0: none */
} rt_tensor_spec;

#define RT_TENSOR_INIT \
  { sizeof(rt_tensor), RT_F32, 0, {0}, NULL, 0 }
#define RT_TENSOR_SPEC_INIT                                 \
  {                                                         \
    sizeof(rt_tensor_spec), NULL, RT_F32, 0, {0}, {NULL}, { \
      0                                                     \
    }                                                       \
  }

/* --- models
 * ------------------------------------------------------------------------------------------------- */

typedef struct rt_model rt_model;

/* Maps the file and checks all of it that can do harm; weights are read when they are needed. */
RT_API rt_status* rt_model_load(const char* path, rt_model** model);
/* A model file in memory. copy != 0: librt copies the bytes. copy == 0: the caller keeps the bytes unchanged
 * until the model and all its sessions are freed; they should be aligned to 64 bytes. */
RT_API rt_status* rt_model_load_from_memory(const void* data, size_t bytes, int copy, rt_model** model);
/* Reads `bytes` bytes at `offset` into `destination`; 0 is success. Called during the load only. */
typedef int (*rt_read_callback)(void* user, uint64_t offset, void* destination, size_t bytes);
RT_API rt_status* rt_model_load_from_callback(rt_read_callback read, void* user, uint64_t total_bytes,
                                              rt_model** model);
RT_API void rt_model_free(rt_model* model);

/* Name and version of the program that wrote the file. */
RT_API const char* rt_model_producer(const rt_model* model);
/* Graphs that can be run: "infer", "train_step", ... NULL past the end. */
RT_API size_t rt_model_entry_count(const rt_model* model);
RT_API const char* rt_model_entry_name(const rt_model* model, size_t index);
/* entry NULL: "infer", or the model's only entry. 0 when there is no such entry. */
RT_API size_t rt_model_input_count(const rt_model* model, const char* entry);
RT_API size_t rt_model_output_count(const rt_model* model, const char* entry);
RT_API rt_status* rt_model_input(const rt_model* model, const char* entry, size_t index,
                                 rt_tensor_spec* spec);
RT_API rt_status* rt_model_output(const rt_model* model, const char* entry, size_t index,
                                  rt_tensor_spec* spec);

/* Tensors that outlive a run and are shared by the entries: weights under training, optimizer moments,
 * counters. */
typedef enum rt_state_kind {
  RT_PARAMETER = 0,
  RT_STATISTIC = 1,
  RT_OPTIMIZER = 2,
  RT_COUNTER = 3
} rt_state_kind;
RT_API size_t rt_model_state_count(const rt_model* model);
/* kind may be NULL. */
RT_API rt_status* rt_model_state(const rt_model* model, size_t index, rt_tensor_spec* spec,
                                 rt_state_kind* kind);

/* Key and value pairs that the converter put into the file. */
RT_API size_t rt_model_metadata_count(const rt_model* model);
RT_API const char* rt_model_metadata_key(const rt_model* model, size_t index);
/* NULL when the key is absent. */
RT_API const char* rt_model_metadata_value(const rt_model* model, const char* key);

/* --- devices
 * ------------------------------------------------------------------------------------------------ */

typedef struct rt_device_list rt_device_list;

typedef enum rt_device_type {
  RT_CPU = 0,
  RT_INTEGRATED_GPU = 1,
  RT_DISCRETE_GPU = 2,
  RT_VIRTUAL_GPU = 3,
  RT_SOFTWARE_GPU = 4
} rt_device_type;

typedef struct rt_device_info {
  size_t struct_size;
  const char* backend; /* "cpu", "vulkan", "cuda", "reference" */
  int32_t index;       /* position among the backend's devices */
  rt_device_type type;
  const char* name;
  const char* uuid; /* "" if there is none */
  const char* driver;
  const char* features; /* separated by spaces */
  uint64_t memory_bytes;
  int32_t host_memory;  /* bound inputs and outputs are used where they lie */
  int32_t threads;      /* of a CPU */
  int32_t asynchronous; /* computes while the caller goes on: rt_session_submit */
} rt_device_info;

#define RT_DEVICE_INFO_INIT \
  { sizeof(rt_device_info), NULL, 0, RT_CPU, NULL, NULL, NULL, NULL, 0, 0, 0, 0 }

/* Asks every backend module for its devices. A backend that cannot offer any is no error: see
 * rt_backend_reason. */
RT_API rt_status* rt_devices_list(rt_device_list** list);
RT_API void rt_device_list_free(rt_device_list* list);
RT_API size_t rt_device_list_count(const rt_device_list* list);
RT_API rt_status* rt_device_list_get(const rt_device_list* list, size_t index, rt_device_info* info);
/* Every backend librt knows of, with or without devices. NULL past the end. */
RT_API size_t rt_backend_count(const rt_device_list* list);
RT_API const char* rt_backend_name(const rt_device_list* list, size_t index);
/* Why this backend offers no device, in one sentence; "" when it does. */
RT_API const char* rt_backend_reason(const rt_device_list* list, size_t index);

/* What `backend = "auto"` predicts with. Stored in the cache folder; defaults by device type until measured.
 */
typedef struct rt_device_profile {
  size_t struct_size;
  double flops_f32;          /* matrix product, operations per second */
  double memory_bandwidth;   /* bytes per second */
  double transfer_bandwidth; /* host to device, bytes per second */
  double launch_seconds;     /* fixed cost of one node */
  double submit_seconds;     /* fixed cost of one run */
  int32_t measured;          /* out: 0 when these are defaults */
} rt_device_profile;

#define RT_DEVICE_PROFILE_INIT \
  { sizeof(rt_device_profile), 0, 0, 0, 0, 0, 0 }

/* info: from rt_device_list_get. cache_folder NULL: the user's (XDG_CACHE_HOME/librt). */
RT_API rt_status* rt_device_profile_read(const rt_device_info* info, const char* cache_folder,
                                         rt_device_profile* profile);
RT_API rt_status* rt_device_profile_write(const rt_device_info* info, const char* cache_folder,
                                          const rt_device_profile* profile);

/* --- sessions
 * ----------------------------------------------------------------------------------------------- */

typedef struct rt_session rt_session;

typedef struct rt_session_options {
  size_t struct_size;
  const char* backend; /* "cpu", "vulkan", "cuda", "reference" (slow, exact), "auto" = NULL */
  const char* device;  /* index, part of the name, or UUID; NULL: the backend's choice */
  const char* entry;   /* NULL: "infer", or the model's only entry */
  const char*
      precision; /* of products: "fp32", "tf32", "fp16", "bf16", or a reason; NULL: the types of the file */
  /* CPU threads; 0: what cgroup and affinity allow. They are OpenMP's: on a machine shared with other
   * programs start yours with GOMP_SPINCOUNT=4000 in the environment, or they waste what they wait for. */
  int32_t threads;
  int32_t strict;        /* 1: a node the device cannot run is an error that lists all such nodes */
  int32_t profile;       /* 1: time every node, see rt_session_profile */
  int32_t validation;    /* 1: Vulkan validation layers, whose complaints make runs fail */
  int32_t deterministic; /* 1: equal results from run to run on this device (turns tuning off) */
  int32_t tuning;        /* 1: time alternative kernels when a plan is built, remember the winners on disk */
  int32_t tuning_ms;     /* time limit per plan; 0: 500 ms */
  uint64_t
      memory_limit; /* bytes this session may take on the device, 0: no limit; checked before allocating */
  uint64_t plan_cache_bytes;     /* plans of earlier shapes are kept up to this size; 0: 256 MiB */
  const char* cache_folder;      /* NULL: the user's (XDG_CACHE_HOME/librt) */
  rt_session* share_states_with; /* use the states of this session (same model, same device) */
  uint64_t loop_limit; /* a Loop that goes on for longer is stopped with an error; 0: a million iterations */
  /* The ranks that train this model together (rtconvert --train --data-parallel); NULL: only this process. It
   * must outlive the session. */
  const rt_communicator* communicator;
} rt_session_options;

#define RT_SESSION_OPTIONS_INIT \
  { sizeof(rt_session_options), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, NULL }

/* Opens the device and prepares the entry. Shapes are planned now when all inputs have fixed shapes, else at
 * the first run. options may be NULL. */
RT_API rt_status* rt_session_create(const rt_model* model, const rt_session_options* options,
                                    rt_session** session);
RT_API void rt_session_free(rt_session* session);

/* The entry's inputs and outputs, as the model declares them. */
RT_API size_t rt_session_input_count(const rt_session* session);
RT_API size_t rt_session_output_count(const rt_session* session);
RT_API rt_status* rt_session_input_spec(const rt_session* session, size_t index, rt_tensor_spec* spec);
RT_API rt_status* rt_session_output_spec(const rt_session* session, size_t index, rt_tensor_spec* spec);
/* Position by name. */
RT_API rt_status* rt_session_find_input(const rt_session* session, const char* name, size_t* index);
RT_API rt_status* rt_session_find_output(const rt_session* session, const char* name, size_t* index);

/* Copies the tensor. The value stays for the following runs. A new shape makes the next run plan (or find the
 * plan of an earlier run with these shapes). */
RT_API rt_status* rt_session_set_input(rt_session* session, size_t index, const rt_tensor* tensor);
/* Uses the caller's memory until it is bound or set anew: read at every run, in place where the device has
 * host_memory (and the memory is aligned to 64 bytes), else copied to the device at each run. */
RT_API rt_status* rt_session_bind_input(rt_session* session, size_t index, const rt_tensor* tensor);
/* Every run writes this output to the caller's memory, under the same rules. tensor->bytes must suffice for
 * the output's size at each run, dtype must be the output's; rank and dims are ignored. NULL unbinds. */
RT_API rt_status* rt_session_bind_output(rt_session* session, size_t index, const rt_tensor* tensor);

/* Optional: plans and allocates for the inputs' shapes now. With shapes, for these (one per input, data
 * ignored), which need not be set yet; inputs that are shape operands must be set. */
RT_API rt_status* rt_session_prepare(rt_session* session, const rt_tensor* shapes, size_t count);
/* Runs once and waits. After the first run of a set of shapes a run on the CPU allocates nothing. */
RT_API rt_status* rt_session_run(rt_session* session);
/* The same in two halves, so that the next run's inputs travel to the device while this one computes:
 *   submit;  then again and again: set the next inputs, submit, wait, use the outputs.
 * rt_session_submit begins a run of the inputs as they are set. When it returns, the memory of inputs is the
 * caller's again, bound inputs too. Two runs may be under way, a third is an error; they compute one behind
 * the other, in the order in which they were submitted, and so do those of sessions that share states with
 * this one. Where the device computes asynchronously (rt_device_info.asynchronous), where all nodes run on it
 * and profile = 0, the call returns at once; else it returns when the run is over. Inputs and outputs under
 * way take device memory of their own. States read or written meanwhile are those behind all submitted runs.
 */
RT_API rt_status* rt_session_submit(rt_session* session);
/* Waits for the run submitted first and not waited for; then rt_session_output is about that run, and the
 * outputs that were bound when it was submitted are written. A failed run is over, too. */
RT_API rt_status* rt_session_wait(rt_session* session);
/* After a run, or rt_session_wait. data is valid until the next run, submit, prepare or free of this session,
 * and may be written to. */
RT_API rt_status* rt_session_output(rt_session* session, size_t index, rt_tensor* tensor);

/* --- states and checkpoints */

RT_API size_t rt_session_state_count(const rt_session* session);
RT_API rt_status* rt_session_state_spec(const rt_session* session, size_t index, rt_tensor_spec* spec,
                                        rt_state_kind* kind);
/* tensor->data with tensor->bytes receives the state's bytes; dtype, rank and dims are filled in. data NULL:
 * only dtype, rank, dims and the bytes needed are filled in. */
RT_API rt_status* rt_session_read_state(rt_session* session, const char* name, rt_tensor* tensor);
/* dtype and shape must be the state's. */
RT_API rt_status* rt_session_write_state(rt_session* session, const char* name, const rt_tensor* tensor);
/* States back to the model's initial values. */
RT_API rt_status* rt_session_reset_states(rt_session* session);

/* Writes all states and the given pairs to a file, atomically (a new file replaces the old one when
 * complete). */
RT_API rt_status* rt_session_save_checkpoint(rt_session* session, const char* path, const char* const* keys,
                                             const char* const* values, size_t count);
/* Restores all states; errors leave them as they are. Works across backends. */
RT_API rt_status* rt_session_load_checkpoint(rt_session* session, const char* path);
/* Writes the parameters and statistics alone, from a file that holds these of the model and no others: a
 * checkpoint of this model, or an adapter saved by rtconvert. Plans stay as they are, so adapters can be
 * swapped between two runs; errors leave the states as they are. */
RT_API rt_status* rt_session_load_adapter(rt_session* session, const char* path);
/* A pair of the checkpoint loaded last; NULL when absent. */
RT_API const char* rt_session_checkpoint_value(const rt_session* session, const char* key);

/* --- what happened, for people and tools. Texts are valid until the next call on the session. */

RT_API rt_status* rt_session_device(const rt_session* session, rt_device_info* info);
/* Why this device: the predictions of "auto", or "requested". */
RT_API const char* rt_session_device_reason(const rt_session* session);
/* What carries sums over the ranks from device to device: "NCCL 2.28.9". "" where the communicator does, in
 * host memory; then *reason (may be NULL) says why, "" where there is no more to say. */
RT_API const char* rt_session_collectives(const rt_session* session, const char** reason);
/* Every node with kernel, device, shapes, layout, alias, arena offset; copies, fallbacks and totals. ""
 * before the first plan. */
RT_API rt_status* rt_session_plan_text(rt_session* session, const char** text);
/* Nodes that the chosen device cannot run and another does; 0 before the first plan. */
RT_API size_t rt_session_fallback_count(const rt_session* session);

typedef struct rt_memory_stats {
  size_t struct_size;
  uint64_t states;       /* bytes of the states on the device */
  uint64_t weights;      /* constants held for the device (not counting a mapped file used in place) */
  uint64_t packed;       /* constants as kernels want them */
  uint64_t arena;        /* working memory allocated: the largest plan so far */
  uint64_t peak_planned; /* working memory the current plan needs, as its planner computed it */
  uint64_t naive;        /* what that would be if no two values shared memory */
  uint64_t staging;      /* host copies of inputs and outputs */
  uint64_t plans;        /* cached plans */
} rt_memory_stats;
#define RT_MEMORY_STATS_INIT \
  { sizeof(rt_memory_stats), 0, 0, 0, 0, 0, 0, 0, 0 }
RT_API rt_status* rt_session_memory(const rt_session* session, rt_memory_stats* stats);

typedef struct rt_profile_entry {
  size_t struct_size;
  const char* name;     /* of the node */
  const char* op;       /* "Conv"; "Copy" and "Reorder" for what the plan added */
  const char* kernel;   /* "conv.winograd" */
  const char* device;   /* "cpu", "vulkan" */
  uint64_t nanoseconds; /* all runs since the last reset */
  double flops;         /* of one run */
  double bytes;         /* of one run, all operands and results */
} rt_profile_entry;
#define RT_PROFILE_ENTRY_INIT \
  { sizeof(rt_profile_entry), NULL, NULL, NULL, NULL, 0, 0, 0 }
/* Of the current plan, in execution order. Needs options.profile. */
RT_API size_t rt_session_profile_count(const rt_session* session);
RT_API rt_status* rt_session_profile(const rt_session* session, size_t index, rt_profile_entry* entry);
/* Runs of the current plan since the last reset. */
RT_API uint64_t rt_session_profile_runs(const rt_session* session);
RT_API rt_status* rt_session_profile_reset(rt_session* session);

/* --- training
 * ----------------------------------------------------------------------------------------------- */

/* A session on the entry "train_step" that knows the names of its inputs and outputs: the scalar input
 * "learning_rate" (f32) and the scalar output "loss". Everything else is done through rt_trainer_session().
 */
typedef struct rt_trainer rt_trainer;

/* options may be NULL; entry NULL means "train_step". */
RT_API rt_status* rt_trainer_create(const rt_model* model, const rt_session_options* options,
                                    rt_trainer** trainer);
RT_API void rt_trainer_free(rt_trainer* trainer);
/* Belongs to the trainer: set inputs, read states, checkpoints, profile. */
RT_API rt_session* rt_trainer_session(rt_trainer* trainer);
/* Holds until set anew. An error when the entry has no learning rate. */
RT_API rt_status* rt_trainer_set_learning_rate(rt_trainer* trainer, float learning_rate);
/* One step. loss may be NULL. */
RT_API rt_status* rt_trainer_step(rt_trainer* trainer, float* loss);
/* The same in two halves: begins a step; waits for the step submitted first. See rt_session_submit. */
RT_API rt_status* rt_trainer_submit(rt_trainer* trainer);
RT_API rt_status* rt_trainer_wait(rt_trainer* trainer, float* loss);
/* A session on another entry ("infer" when NULL) that sees the trainer's states at once, on the same device.
 */
RT_API rt_status* rt_trainer_open(rt_trainer* trainer, const char* entry, rt_session** session);

#ifdef __cplusplus
}
#endif
#endif
