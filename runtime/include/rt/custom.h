/** @file
 * Operators of the application: a kernel for each, given to a session (rt_session_options.custom_operators).
 * A model refers to them by domain and name; rtconvert keeps such nodes with --custom-domain. */
#ifndef RT_CUSTOM_H
#define RT_CUSTOM_H

#include <stddef.h>
#include <stdint.h>

#include "dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An operand or result of one call: dense and row-major. */
typedef struct rt_custom_tensor {
  rt_dtype dtype;      /**< element type */
  int32_t rank;        /**< number of dimensions; -1: an input that the node leaves out */
  const int64_t* dims; /**< extents */
  /** Elements, in the memory that the function works on; NULL for an input that is left out, for a result
   * that the model does not use, and possibly without elements. */
  void* data;
} rt_custom_tensor;

/** Kinds of attributes. */
typedef enum rt_custom_kind {
  RT_CUSTOM_INTS = 0,   /**< ONNX: int, ints */
  RT_CUSTOM_FLOATS = 1, /**< ONNX: float, floats */
  RT_CUSTOM_TEXT = 2    /**< ONNX: string */
} rt_custom_kind;

/** An attribute of the node. */
typedef struct rt_custom_attribute {
  const char* name;    /**< as in the ONNX model */
  rt_custom_kind kind; /**< which of the following is set */
  size_t count;        /**< number of values; of a text its bytes */
  const int64_t* ints; /**< RT_CUSTOM_INTS */
  const float* floats; /**< RT_CUSTOM_FLOATS */
  const char* text;    /**< RT_CUSTOM_TEXT: with a zero after it */
} rt_custom_attribute;

/** What a kernel gets. Valid during the call, except what `data` points to on a CUDA device. */
typedef struct rt_custom_call {
  size_t struct_size;                    /**< sizeof of this struct, of librt */
  const char* node;                      /**< name of the node */
  const rt_custom_tensor* inputs;        /**< not to be written to */
  size_t input_count;                    /**< of the node, with those that are left out */
  const rt_custom_tensor* outputs;       /**< to be written; types and shapes are as converted */
  size_t output_count;                   /**< of the node */
  const rt_custom_attribute* attributes; /**< of the node */
  size_t attribute_count;                /**< of the node */
  void* stream;                          /**< run_cuda: the cudaStream_t to launch on; else NULL */
  char* message;                         /**< receives the reason of a failure, ended by a zero */
  size_t message_bytes;                  /**< room at `message`, at least 256 */
} rt_custom_call;

/** Computes the outputs from the inputs. Returns 0, or an rt_code that becomes the status of the run, whose
 * message names the operator, the node and call->message. Must not throw or jump.
 *
 * Called once in each run, unless the node has nothing but empty results, by the thread that runs or submits
 * the session; by several at once where several sessions have the operator. It may use threads of its own.
 * Functions of rt.h on this session return the error "in use" meanwhile. After a failure the session can run
 * again, but states, and outputs that are bound, may have been written by nodes before. */
typedef int (*rt_custom_function)(void* user, const rt_custom_call* call);

/** An operator with its kernels, of which at least one must be set. */
typedef struct rt_custom_operator {
  size_t struct_size; /**< sizeof of this struct */
  const char* domain; /**< ONNX domain, "com.example" */
  const char* name;   /**< ONNX op_type */
  void* user;         /**< first argument of the functions; must outlive the sessions that it is given to */
  /** In host memory: on the CPU and the reference backend, and, with copies, for sessions on any other device
   * where that has no kernel (not with `strict`). */
  rt_custom_function run;
  /** In memory of the CUDA device: launches on call->stream, and neither waits nor returns a failure for what
   * it has launched. NULL: `run` is called. */
  rt_custom_function run_cuda;
} rt_custom_operator;

/** Initial value of an rt_custom_operator. */
#define RT_CUSTOM_OPERATOR_INIT \
  { sizeof(rt_custom_operator), NULL, NULL, NULL, NULL, NULL }

/** What a shared library exports, as RT_CUSTOM_OPERATORS_FUNCTION, for `--operators` of rtrun, rtbench and
 * rttrain: its operators, in memory that stays. *count receives their number. */
typedef const rt_custom_operator* (*rt_custom_operators_function)(size_t* count);

/** Name of the function that a library of operators exports, with C linkage. */
#define RT_CUSTOM_OPERATORS_FUNCTION "rt_custom_operators"

#ifdef __cplusplus
}
#endif
#endif
