/* A C11 user of rt/compiler.h: misuse is an error with a message, older structs work, errors belong to librt. */
#include <stdio.h>
#include <string.h>

#include "rt/compiler.h"
#include "tests/abi/expect.h"

static int no_rows(void* user, size_t batch, const rt_tensor_spec* const* specs, rt_tensor* const* inputs, size_t count) {
  (void)user, (void)batch, (void)specs, (void)inputs, (void)count;
  return -3;
}

/* One batch without data, or of no valid shape. */
static int bad_rows(void* user, size_t batch, const rt_tensor_spec* const* specs, rt_tensor* const* inputs, size_t count) {
  (void)specs, (void)count;
  inputs[0]->rank = *(const int*)user;
  for (int i = 0; i < 4; ++i) inputs[0]->dims[i] = 1;
  return batch == 0;
}

static void test_statuses(void) {
  EXPECT(rt_status_create(RT_OK, "ignored") == NULL);
  EXPECT_CODE(rt_status_create(RT_IO, "a disk"), RT_IO, "a disk");
  EXPECT_CODE(rt_status_create(RT_INTERNAL, NULL), RT_INTERNAL, "");
}

static void test_misuse(void) {
  rt_compilation* made = NULL;
  rt_compiler_options options = RT_COMPILER_OPTIONS_INIT;
  EXPECT_CODE(rt_compile_file(NULL, &options, &made), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_compile_file("", &options, &made), RT_INVALID_ARGUMENT, "empty");
  EXPECT_CODE(rt_compile_file("zoo:mlp", &options, NULL), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_compile_memory(NULL, 10, &options, &made), RT_INVALID_ARGUMENT, "no bytes");
  EXPECT_CODE(rt_compile_memory("", 0, &options, &made), RT_INVALID_ARGUMENT, "no bytes");
  EXPECT_CODE(rt_compile_memory("\x8dLRT", 4, &options, &made), RT_INVALID_MODEL, "");
  rt_compilation_free(made);
  options.count = 1;
  EXPECT_CODE(rt_compile_file("zoo:mlp", &options, &made), RT_INVALID_ARGUMENT, "names or values is null");
  EXPECT(made == NULL);
  const char* names[] = {NULL};
  options.names = options.values = names;
  EXPECT_CODE(rt_compile_file("zoo:mlp", &options, &made), RT_INVALID_ARGUMENT, "name 0 is null");
  options.count = 0;
  options.trainable_count = 2;
  EXPECT_CODE(rt_compile_file("zoo:mlp", &options, &made), RT_INVALID_ARGUMENT, "trainable is null");
  options.trainable_count = 0;
  options.constant_count = 1;
  EXPECT_CODE(rt_compile_file("zoo:mlp", &options, &made), RT_INVALID_ARGUMENT, "constants is null");
  rt_tensor tensor = RT_TENSOR_INIT;
  rt_named_tensor constant = {NULL, &tensor};
  options.constants = &constant;
  EXPECT_CODE(rt_compile_file("zoo:mlp", &options, &made), RT_INVALID_ARGUMENT, "constant 0: the name or the tensor is null");
  constant.name = "input";
  constant.tensor = NULL;
  EXPECT_CODE(rt_compile_file("zoo:mlp", &options, &made), RT_INVALID_ARGUMENT, "constant 0: the name or the tensor");
  constant.tensor = &tensor;
  tensor.rank = 99;
  EXPECT_CODE(rt_compile_file("zoo:mlp", &options, &made), RT_INVALID_ARGUMENT, "rank");
  options.constant_count = 0;
  options.precision = "int8";
  options.calibration = no_rows;
  EXPECT_CODE(rt_compile_file("zoo:lenet5", &options, &made), RT_INVALID_ARGUMENT, "returned -3 for batch 0");
  rt_compilation_free(made);
  options.calibration = bad_rows;
  for (int rank = -1; rank < 11; rank += 1) {
    options.calibration_user = &rank;
    EXPECT_CODE(rt_compile_file("zoo:lenet5", &options, &made), RT_INVALID_ARGUMENT, "calibration");
    rt_compilation_free(made);
  }
  options.struct_size = 0;
  EXPECT_CODE(rt_compile_file("zoo:mlp", &options, &made), RT_INVALID_ARGUMENT, "struct_size");
}

static void test_null_results(void) {
  const void* data = NULL;
  size_t bytes = 0;
  rt_model* model = NULL;
  rt_compiler_report report = RT_COMPILER_REPORT_INIT;
  rt_unsupported_node node = RT_UNSUPPORTED_NODE_INIT;
  rt_compilation_free(NULL);
  EXPECT_CODE(rt_compilation_bytes(NULL, &data, &bytes), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_compilation_load(NULL, &model), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_compilation_report(NULL, &report), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_compilation_unsupported(NULL, 0, &node), RT_INVALID_ARGUMENT, "has 0");
  EXPECT(strcmp(rt_compilation_json(NULL), "") == 0 && strcmp(rt_compilation_text(NULL), "") == 0);
  EXPECT(strcmp(rt_compilation_passes(NULL), "") == 0 && strcmp(rt_compilation_graph(NULL), "") == 0);
  EXPECT(rt_compilation_warning_count(NULL) == 0 && rt_compilation_warning(NULL, 0) == NULL);
  EXPECT(rt_compilation_unsupported_count(NULL) == 0);
}

/* A program built against an older header: its structs end earlier. */
static void test_older_structs(void) {
  struct {
    size_t struct_size;
    const char* output;
    const char* precision;
    uint64_t guard;
  } options = {3 * sizeof(size_t), NULL, "bf16", ~0ull};
  rt_compilation* made = NULL;
  EXPECT_CODE(rt_compile_file("zoo:mlp", (const rt_compiler_options*)(const void*)&options, &made), RT_OK, "");
  struct {
    size_t struct_size;
    uint64_t onnx_nodes, nodes_before, guard;
  } report = {3 * sizeof(size_t), 9, 0, 1234};
  EXPECT_CODE(rt_compilation_report(made, (rt_compiler_report*)(void*)&report), RT_OK, "");
  EXPECT(report.onnx_nodes == 0 && report.nodes_before > 0 && report.guard == 1234);
  rt_model* model = NULL;
  EXPECT_CODE(rt_compilation_load(made, &model), RT_OK, "");
  rt_compilation_free(made); /* the model has a copy */
  EXPECT(rt_model_entry_count(model) == 1);
  rt_model_free(model);

  /* A program built against a newer header, which sets a field that this library does not know. */
  struct {
    rt_compiler_options known;
    size_t later;
  } newer = {RT_COMPILER_OPTIONS_INIT, 1};
  newer.known.struct_size = sizeof newer;
  EXPECT_CODE(rt_compile_file("zoo:mlp", &newer.known, &made), RT_UNSUPPORTED, "update librt");
}

int main(void) {
  test_statuses();
  test_misuse();
  test_null_results();
  test_older_structs();
  if (failures == 0) printf("fine\n");
  return failures != 0;
}
