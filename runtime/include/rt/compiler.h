/** @file
 * librt_compiler: compiles ONNX models for librt within a program. The stable C API; compiler.hpp is a C++
 * wrapper.
 *
 * The conventions are those of rt.h, which this header includes: rt_status*, opaque handles, structs with
 * struct_size. A program that only runs models needs neither this header nor the library. It is what
 * rtconvert is made of, and its options are rtconvert's.
 *
 *     rt_compilation* made = NULL;
 *     rt_status* status = rt_compile_memory(onnx, bytes, NULL, &made);
 *     if (status == NULL) status = rt_compilation_load(made, &model);
 */
#ifndef RT_COMPILER_H
#define RT_COMPILER_H

#include "rt.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup c_compiler Compiler
 * @{ */

/** An array for an input by name. */
typedef struct rt_named_tensor {
  const char* name;        /**< name of the input */
  const rt_tensor* tensor; /**< its value, in host memory */
} rt_named_tensor;

/** Fetches rows of calibration data, called for batch 0, 1, .. until there are no more. `inputs` has a tensor
 * for each input of the model, in the order of `specs`: set dtype, rank, dims, data and bytes. The first axis
 * counts rows, which are divided among runs: each takes as many as the input's first axis has, or one where
 * it is dynamic. A scalar, and an input that has the whole shape of the model's, is for every run of the
 * batch. The data must stay valid until the next call, or until the function that calls returns. Returns 1: a
 * batch is there; 0: there are no more; anything else: failed, and the compilation returns
 * RT_INVALID_ARGUMENT. */
typedef int (*rt_calibration_callback)(void* user, size_t batch, const rt_tensor_spec* const* specs,
                                       rt_tensor* const* inputs, size_t count);

/** Called while a compilation goes on, from its thread: `done` of `total` steps of a stage (total 0: not
 * known). Stages: "import" (a step: a node), "optimize" (a pass), "calibrate" (a run on a batch of rows),
 * "measure" (a node in another precision), "verify" (a set of extents), "write"; some come several times.
 * Returns 0 to go on; anything else stops the compilation, which returns RT_CANCELLED: between two steps, not
 * within one. No file is left half written. */
typedef int (*rt_compiler_progress_callback)(void* user, const char* stage, uint64_t done, uint64_t total);

/** Options of a compilation. Zero, or NULL, always means the default. */
typedef struct rt_compiler_options {
  size_t struct_size; /**< sizeof of this struct */
  /** File to write, replaced once it is complete; NULL: the model stays in memory (rt_compilation_bytes).
   * Models larger than memory need a file. */
  const char* output;
  /** "fp32", "fp16", "bf16", "int8", "int8-weights", "int4-weights". */
  const char* precision;
  int32_t train;         /**< 1: adds the entry "train_step": loss, backward pass, optimizer */
  int32_t check_only;    /**< 1: only imports, to find out what is unsupported; there is no model then */
  const char* loss;      /**< with train: "cross_entropy" (default), "nll", "bce_with_logits", "mse", ... */
  const char* optimizer; /**< with train: "sgd" (default), "adam", "adamw", ... */
  /** Shell patterns over names of weights: those that are trained. None: all, or the adapters of `lora`. */
  const char* const* trainable;
  size_t trainable_count; /**< number of patterns */
  const char* lora;       /**< low-rank adapters: "rank=8,alpha=16,targets=*.q" */
  /** Every other option of rtconvert by its long name without dashes ("dim", "label-smoothing"; _ may stand
   * for -), and its value ("batch=8", "0.1"); NULL, "" or "1" for a flag. What may be given several times
   * occurs several times. `rtconvert --help-all` describes them. */
  const char* const* names;
  const char* const* values; /**< one for each of `names` */
  size_t count;              /**< number of names */
  /** Folder with the external data of an ONNX model in memory; NULL: external data is refused. */
  const char* external_folder;
  const rt_named_tensor* constants;    /**< inputs that become constants */
  size_t constant_count;               /**< number of constants */
  rt_calibration_callback calibration; /**< data for "int8", and for ranges of quantization-aware training */
  void* calibration_user;              /**< passed to `calibration` */
  rt_compiler_progress_callback progress; /**< sees, and may stop, the compilation */
  void* progress_user;                    /**< passed to `progress` */
} rt_compiler_options;

/** Initial value of an rt_compiler_options. */
#define RT_COMPILER_OPTIONS_INIT                                                                            \
  {                                                                                                         \
    sizeof(rt_compiler_options), NULL, NULL, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, 0, \
        NULL, NULL, NULL, NULL                                                                              \
  }

/** The result of a compilation: a model, and what is to be said about it. Not changed by any function, so
 * threads may share it. */
typedef struct rt_compilation rt_compilation;

/** Compiles MODEL.onnx, a compiled MODEL.rt (to quantize it, or with a checkpoint), or a network of the zoo
 * ("zoo:resnet18"). options may be NULL. *compilation is also set after a failure, unless an argument is
 * wrong or there is no memory, with what is known: unsupported nodes, warnings. The caller frees it.
 * Different threads may compile at the same time. */
RT_API rt_status* rt_compile_file(const char* path, const rt_compiler_options* options,
                                  rt_compilation** compilation);
/** The same of the bytes of an ONNX or compiled model. They are used during the call only. */
RT_API rt_status* rt_compile_memory(const void* data, size_t bytes, const rt_compiler_options* options,
                                    rt_compilation** compilation);
/** Frees the compilation; NULL is allowed. */
RT_API void rt_compilation_free(rt_compilation* compilation);

/** The compiled model, as in a .rt file: owned by the compilation, aligned to 64 bytes. RT_NOT_FOUND if it
 * failed, was written to a file, or was only a check. */
RT_API rt_status* rt_compilation_bytes(const rt_compilation* compilation, const void** data, size_t* bytes);
/** Loads these bytes. The model has a copy: the compilation may be freed before it. */
RT_API rt_status* rt_compilation_load(const rt_compilation* compilation, rt_model** model);

/** The report as one JSON object, the same as of `rtconvert --json`; after a failure {"error", "code",
 * "unsupported"}.
 * "" after a successful check. */
RT_API const char* rt_compilation_json(const rt_compilation* compilation);
/** The report as lines of text; after a failure the table of unsupported nodes. */
RT_API const char* rt_compilation_text(const rt_compilation* compilation);
/** The optimization passes with nodes and times, as a table. */
RT_API const char* rt_compilation_passes(const rt_compilation* compilation);
/** The graphs of the compiled model as text, with the option "inspect"; else "". */
RT_API const char* rt_compilation_graph(const rt_compilation* compilation);
/** Number of warnings. */
RT_API size_t rt_compilation_warning_count(const rt_compilation* compilation);
/** A warning, one sentence; NULL past the end. */
RT_API const char* rt_compilation_warning(const rt_compilation* compilation, size_t index);

/** A node of the ONNX model that cannot be compiled. Strings live as long as the compilation. */
typedef struct rt_unsupported_node {
  size_t struct_size; /**< sizeof of this struct */
  const char* name;   /**< of the node; made from operator and position if it has none */
  const char* op;     /**< "Conv"; "(input)" or "(initializer)" for a value that librt cannot represent */
  const char* domain; /**< "ai.onnx" for the default domain */
  int64_t opset;      /**< version of the domain */
  const char* dtype;  /**< of the first input, or "-" */
  const char* reason; /**< why */
  const char* help;   /**< what would make it work; "" if nothing is known */
} rt_unsupported_node;
/** Initial value of an rt_unsupported_node. */
#define RT_UNSUPPORTED_NODE_INIT \
  { sizeof(rt_unsupported_node), NULL, NULL, NULL, 0, NULL, NULL, NULL }
/** Number of nodes that cannot be compiled: all of them, not only the first. */
RT_API size_t rt_compilation_unsupported_count(const rt_compilation* compilation);
/** Unsupported node `index`. */
RT_API rt_status* rt_compilation_unsupported(const rt_compilation* compilation, size_t index,
                                             rt_unsupported_node* node);

/** The numbers of a report. */
typedef struct rt_compiler_report {
  size_t struct_size;        /**< sizeof of this struct */
  uint64_t onnx_nodes;       /**< of the ONNX model; 0 for other sources */
  uint64_t nodes_before;     /**< after the import */
  uint64_t nodes_after;      /**< of the compiled model's first entry */
  uint64_t parameters;       /**< elements of weights */
  uint64_t parameter_bytes;  /**< as stored */
  double flops;              /**< of a run; dynamic dimensions as the JSON's "extents" says */
  uint64_t working_bytes;    /**< memory of a run on the CPU, without weights; 0: no plan was possible */
  uint64_t file_bytes;       /**< of the compiled model */
  uint64_t trained_weights;  /**< weights that "train_step" changes */
  uint64_t trained_elements; /**< elements of these */
  uint64_t adapted_weights;  /**< weights with low-rank adapters */
  uint64_t quantized_nodes;  /**< matmuls and convolutions in 8-bit integers, or with 8- or 4-bit weights */
  double
      output_error;   /**< of the outputs by the precision, relative to the largest; negative: not measured */
  uint64_t compared;  /**< outputs that "verify" compared with the original's */
  uint64_t different; /**< of these, those that differ */
} rt_compiler_report;
/** Initial value of an rt_compiler_report. */
#define RT_COMPILER_REPORT_INIT \
  { sizeof(rt_compiler_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/** The numbers of a compilation; what a failure has prevented is 0. */
RT_API rt_status* rt_compilation_report(const rt_compilation* compilation, rt_compiler_report* report);

/** rt_session_load_adapter(), also from a file that ends in ".safetensors", with exactly the parameters and
 * statistics of the session's model by name: `rtconvert --save-adapter` writes them. On an error the states
 * are unchanged. */
RT_API rt_status* rt_compiler_load_adapter(rt_session* session, const char* path);

/** Writes which operators and element types the compiled models need, in all their entries, to a file: a
 * build of librt with -DRT_TRIM=FILE holds nothing else (docs/small_builds.md). models: paths of .rt files.
 * path: replaced once it is complete. report: set on success to a result without a model, whose JSON is the
 * list; the caller frees it. */
RT_API rt_status* rt_compiler_trim(const char* const* models, size_t count, const char* path,
                                   rt_compilation** report);

/** The ONNX operators that can be imported, as a JSON list of {"domain", "op", "first_opset", "last_opset"}
 * (null: and later). Valid for as long as the library is loaded; NULL if there is no memory for it. */
RT_API const char* rt_compiler_operators(void);
/** The optimization passes in their order, as a JSON list of {"pass", "summary"}; otherwise as above. */
RT_API const char* rt_compiler_passes(void);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
