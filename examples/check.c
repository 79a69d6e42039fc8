/* Lists every node of an ONNX model that librt cannot run; where there is none, compiles the model and prints its inputs.
 *
 *   check MODEL.onnx
 *
 * Exit codes: 0 all is supported, 1 something is not, 2 any other error. */
#include <rt/compiler.h>
#include <stdio.h>

/* 1 for success; prints and frees an error. */
static int good(rt_status* status) {
  if (status == NULL) return 1;
  fprintf(stderr, "check: %s: %s\n", rt_code_name(rt_status_code(status)), rt_status_message(status));
  rt_status_free(status);
  return 0;
}

/* Stops where the user has waited long enough; here never. */
static int on_progress(void* user, const char* stage, uint64_t done, uint64_t total) {
  (void)stage, (void)done, (void)total;
  ++*(size_t*)user;
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "check: MODEL.onnx\n");
    return 2;
  }
  size_t steps = 0;
  rt_compiler_options options = RT_COMPILER_OPTIONS_INIT;
  options.progress = on_progress;
  options.progress_user = &steps;
  rt_compilation* made = NULL;
  const int compiled = good(rt_compile_file(argv[1], &options, &made));
  const size_t unsupported = rt_compilation_unsupported_count(made);
  for (size_t i = 0; i < unsupported; ++i) {
    rt_unsupported_node node = RT_UNSUPPORTED_NODE_INIT;
    if (!good(rt_compilation_unsupported(made, i, &node))) break;
    printf("%s '%s' (%s %lld): %s\n", node.op, node.name, node.domain, (long long)node.opset, node.reason);
  }
  rt_model* model = NULL;
  const int loaded = compiled && good(rt_compilation_load(made, &model));
  if (loaded) {
    printf("compiled in %zu steps\n%s", steps, rt_compilation_text(made));
    for (size_t i = 0; i < rt_model_input_count(model, NULL); ++i) {
      rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
      if (good(rt_model_input(model, NULL, i, &spec))) printf("input %s: %s\n", spec.name, rt_dtype_name(spec.dtype));
    }
  }
  rt_model_free(model);
  rt_compilation_free(made);
  return loaded ? 0 : unsupported > 0 ? 1 : 2;
}
