/** @file
 * DLPack: tensors from and for other libraries in one process, without copies. In memory of the CPU and of
 * CUDA; memory of Vulkan has no address that another library could use (rt_memory_export_fd shares it).
 *
 * The structs have the layout of DLPack 1 and names of librt's own, so that DLPack's header may be included
 * beside this one. The functions take pointers to its structs; without that header cast them to rt_dlpack.
 *
 * A DLPack tensor belongs to whoever has it, and is given back by its deleter, once. Functions that return an
 * error have not taken it. librt calls a deleter on any thread, and its own may be called on any.
 *
 * Streams. The structs say nothing about work in progress. Before a tensor is imported, what writes it must
 * be complete, or the session waits for it (rt_session_wait_for), or both use one CUDA stream
 * (rt_session_options.cuda_stream). An exported tensor is complete after rt_session_run and rt_session_wait;
 * after rt_session_submit alone the consumer waits for an event (rt_session_signal), or uses that stream.
 */
#ifndef RT_DLPACK_H
#define RT_DLPACK_H

#include "rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- DLPack ------------------------------------------------------------------------------------------- */
/** @defgroup c_dlpack DLPack
 * @{ */

struct DLManagedTensorVersioned;
struct DLManagedTensor;

/** Kinds of memory that librt imports or exports: DLDeviceType. */
typedef enum rt_dlpack_device_type {
  RT_DLPACK_CPU = 1,          /**< of the host */
  RT_DLPACK_CUDA = 2,         /**< of a CUDA device */
  RT_DLPACK_CUDA_HOST = 3,    /**< of the host, pinned by CUDA: taken as memory of the CPU */
  RT_DLPACK_CUDA_MANAGED = 13 /**< of host and CUDA device: taken as memory of CUDA */
} rt_dlpack_device_type;

/** Kinds of elements: DLDataTypeCode. */
typedef enum rt_dlpack_type_code {
  RT_DLPACK_INT = 0,    /**< signed integers */
  RT_DLPACK_UINT = 1,   /**< unsigned integers */
  RT_DLPACK_FLOAT = 2,  /**< IEEE floats */
  RT_DLPACK_BFLOAT = 4, /**< bfloat16 */
  RT_DLPACK_BOOL = 6    /**< 0 or 1, a byte each */
} rt_dlpack_type_code;

#define RT_DLPACK_READ_ONLY 1u /**< Flag: nobody may write to the elements. */

/** What and where the elements are: DLTensor. */
typedef struct rt_dlpack_tensor {
  void* data;           /**< address; may be NULL without elements */
  int32_t device_type;  /**< rt_dlpack_device_type, or another of DLPack */
  int32_t device_id;    /**< ordinal of the device; 0 for the host */
  int32_t ndim;         /**< number of axes */
  uint8_t code;         /**< rt_dlpack_type_code, or another of DLPack */
  uint8_t bits;         /**< of one element */
  uint16_t lanes;       /**< elements of a vector; 1 */
  int64_t* shape;       /**< extents */
  int64_t* strides;     /**< from one element of an axis to the next, in elements; NULL: dense, row-major */
  uint64_t byte_offset; /**< from data to the first element */
} rt_dlpack_tensor;

/** A tensor with its owner: DLManagedTensorVersioned. If `major` is not 1, only the members up to `deleter`
 * are known. */
typedef struct rt_dlpack {
  uint32_t major; /**< of DLPack: 1 */
  uint32_t minor; /**< of DLPack: any; 0 when librt exports */
  void* owner;    /**< the exporter's: manager_ctx */
  /** Called once with this struct, which it frees; NULL: nothing is to be freed. */
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;          /**< RT_DLPACK_READ_ONLY, or others of DLPack */
  rt_dlpack_tensor tensor; /**< the elements */
} rt_dlpack;

/** The same before version 1: DLManagedTensor. It cannot say that it is read-only. */
typedef struct rt_dlpack_unversioned {
  rt_dlpack_tensor tensor;                       /**< the elements */
  void* owner;                                   /**< the exporter's: manager_ctx */
  void (*deleter)(struct DLManagedTensor* self); /**< as in rt_dlpack */
} rt_dlpack_unversioned;

/** Describes a tensor in host memory, which stays the caller's: *view refers to its memory, for
 * rt_session_set_input (afterwards the tensor may be deleted) and rt_session_bind_input. If it is read-only,
 * nothing may be written to view->data, which librt does to an output that is bound to it.
 *
 * strides NULL: a tensor that is not dense and row-major is an error. Else strides[0] to strides[rank-1]
 * receive the strides in elements, whatever they are, and view->bytes is what a dense copy takes.
 *
 * Errors: RT_UNSUPPORTED for another version of DLPack, memory of a device, and element types that librt does
 * not have (complex numbers, floats and integers of less than 8 bits, vectors); RT_INVALID_ARGUMENT for what
 * no tensor is: extents below 0, more bytes than an address has, NULL where elements should be. */
RT_API rt_status* rt_dlpack_view(const struct DLManagedTensorVersioned* from, rt_tensor* view,
                                 int64_t* strides);

/** Makes memory of the session's device of a tensor, which it takes: the deleter is called when
 * rt_memory_free has been called, and no session and no exported tensor uses the memory any more. *tensor is
 * the same tensor in that memory, for rt_session_bind_input and, unless it is read-only, _bind_output.
 *
 * Sessions on CUDA take memory of their device, sessions on the CPU (and on Vulkan, where the driver imports
 * host memory) that of the host. The first element must be aligned as rt_memory_create says. Tensors must be
 * dense and row-major, and have an element. On an error the tensor stays the caller's. */
RT_API rt_status* rt_memory_from_dlpack(rt_session* session, struct DLManagedTensorVersioned* from,
                                        rt_memory** memory, rt_tensor* tensor);

/** Exports a tensor, whose consumer deletes *to.
 *   - In an rt_memory: of CUDA, or one that the host addresses. The memory lives on until the consumer is
 *     done, whatever is freed before. Sessions may still write to it: it is one memory.
 *   - In host memory (`data`): the caller keeps it until `release` is called. Outputs of a session are
 *     overwritten by its next run, unless they are bound to memory of the caller's.
 *
 * read_only: nobody may write to it through *to; always set for read-only memory. release (may be NULL) is
 * called with `user` when the consumer is done, on its thread; not after an error. */
RT_API rt_status* rt_tensor_to_dlpack(const rt_tensor* tensor, int32_t read_only, void (*release)(void* user),
                                      void* user, struct DLManagedTensorVersioned** to);

/** Wraps a tensor of the time before version 1, and takes it: *to calls its deleter. */
RT_API rt_status* rt_dlpack_from_unversioned(struct DLManagedTensor* from,
                                             struct DLManagedTensorVersioned** to);
/** Wraps a tensor for consumers that know nothing newer, and takes it. A read-only one is RT_UNSUPPORTED. */
RT_API rt_status* rt_dlpack_to_unversioned(struct DLManagedTensorVersioned* from,
                                           struct DLManagedTensor** to);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
