/* Loads a model from memory with the C API, prints its inputs and outputs, and runs it on zeros.
 *
 *   memory digits.rt [BACKEND] */
#include <rt/rt.h>
#include <stdio.h>
#include <stdlib.h>

/* 1 for success; prints and frees an error. */
static int good(rt_status* status) {
  if (status == NULL) return 1;
  fprintf(stderr, "memory: %s: %s\n", rt_code_name(rt_status_code(status)), rt_status_message(status));
  rt_status_free(status);
  return 0;
}

/* The file in memory aligned to 64 bytes; NULL if it cannot be read. */
static void* read_file(const char* path, size_t* bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  const long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  void* data = size > 0 ? aligned_alloc(64, ((size_t)size + 63) / 64 * 64) : NULL;
  rewind(file);
  if (data != NULL && fread(data, 1, (size_t)size, file) != (size_t)size) free(data), data = NULL;
  fclose(file);
  *bytes = (size_t)size;
  return data;
}

static void print_spec(const char* kind, const rt_tensor_spec* spec) {
  printf("%s %s: %s [", kind, spec->name, rt_dtype_name(spec->dtype));
  for (int32_t i = 0; i < spec->rank; ++i) {
    const char* symbol = spec->symbols[i] != NULL ? spec->symbols[i] : "";
    printf("%s%lld%s%s", i > 0 ? ", " : "", (long long)spec->dims[i], *symbol != 0 ? " " : "", symbol);
  }
  printf("]\n");
}

/* Sets the input to zeros; dynamic dimensions are 1. */
static int set_zeros(rt_session* session, size_t index) {
  rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
  if (!good(rt_session_input_spec(session, index, &spec))) return 0;
  print_spec("input", &spec);
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.dtype = spec.dtype;
  tensor.rank = spec.rank;
  tensor.bytes = rt_dtype_size(spec.dtype);
  for (int32_t i = 0; i < spec.rank; ++i) {
    tensor.dims[i] = spec.dims[i] >= 0 ? spec.dims[i] : 1;
    tensor.bytes *= (size_t)tensor.dims[i];
  }
  tensor.data = calloc(tensor.bytes > 0 ? tensor.bytes : 1, 1);
  const int set = tensor.data != NULL && good(rt_session_set_input(session, index, &tensor));
  free(tensor.data); /* rt_session_set_input copies */
  return set;
}

static int print_output(rt_session* session, size_t index) {
  rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
  rt_tensor tensor = RT_TENSOR_INIT;
  if (!good(rt_session_output_spec(session, index, &spec))) return 0;
  print_spec("output", &spec);
  if (!good(rt_session_output(session, index, &tensor))) return 0;
  const size_t count = tensor.dtype == RT_F32 ? tensor.bytes / sizeof(float) : 0;
  for (size_t i = 0; i < count && i < 5; ++i) printf(" %g", (double)((const float*)tensor.data)[i]);
  printf("\n");
  return 1;
}

int main(int argc, char** argv) {
  size_t bytes = 0;
  void* data = argc == 2 || argc == 3 ? read_file(argv[1], &bytes) : NULL;
  if (data == NULL) {
    fprintf(stderr, "memory: expected MODEL.rt [BACKEND], with a model that can be read\n");
    return 2;
  }
  rt_model* model = NULL;
  rt_session* session = NULL;
  rt_session_options options = RT_SESSION_OPTIONS_INIT;
  options.backend = argc == 3 ? argv[2] : "auto";
  int ok = good(rt_model_load_from_memory(data, bytes, 0, &model)) &&
           good(rt_session_create(model, &options, &session));
  for (size_t i = 0; ok && i < rt_session_input_count(session); ++i) ok = set_zeros(session, i);
  ok = ok && good(rt_session_run(session));
  for (size_t i = 0; ok && i < rt_session_output_count(session); ++i) ok = print_output(session, i);
  rt_session_free(session);
  rt_model_free(model);
  free(data); /* copy = 0: the bytes outlive model and session */
  return ok ? 0 : 2;
}
