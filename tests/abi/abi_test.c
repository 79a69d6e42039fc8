/* A C11 user: the header compiles as C, errors have messages, misuse does not crash. */
#include <stdio.h>
#include <string.h>

#include "rt/rt.h"
#include "tests/abi/expect.h"

static int fail_to_read(void* user, uint64_t offset, void* destination, size_t bytes) {
  (void)user, (void)offset, (void)destination, (void)bytes;
  return 42;
}

static void test_constants(void) {
  EXPECT(strcmp(rt_version(), "0.1.0") == 0);
  EXPECT(rt_dtype_size(RT_BF16) == 2 && rt_dtype_size((rt_dtype)99) == 0);
  EXPECT(strcmp(rt_dtype_name(RT_I64), "i64") == 0);
  EXPECT(rt_status_code(NULL) == RT_OK && strcmp(rt_status_message(NULL), "") == 0);
  rt_status_free(NULL);
}

static void test_models(void) {
  rt_model* model = NULL;
  const char garbage[100] = "this is no model";
  EXPECT_CODE(rt_model_load("/no/such/file.rt", &model), RT_NOT_FOUND, "/no/such/file.rt");
  EXPECT(model == NULL);
  EXPECT_CODE(rt_model_load_from_memory(garbage, sizeof garbage, 1, &model), RT_INVALID_MODEL, "");
  EXPECT_CODE(rt_model_load_from_memory(garbage, sizeof garbage, 0, &model), RT_INVALID_MODEL, "");
  EXPECT_CODE(rt_model_load_from_callback(fail_to_read, NULL, 1000, &model), RT_IO, "42");
  rt_model_options options = RT_MODEL_OPTIONS_INIT;
  options.copy = 1;
  EXPECT_CODE(rt_model_load_with("/no/such/file.rt", &options, &model), RT_NOT_FOUND, "/no/such/file.rt");
  EXPECT_CODE(rt_model_load_with("/", &options, &model), RT_IO, "not a regular file");
  EXPECT_CODE(rt_model_load_from_memory_with(garbage, sizeof garbage, NULL, &model), RT_INVALID_MODEL, "");
  EXPECT_CODE(rt_model_load_from_callback_with(fail_to_read, NULL, 1000, &options, &model), RT_IO, "42");
  options.struct_size = 0;
  EXPECT_CODE(rt_model_load_with("/", &options, &model), RT_INVALID_ARGUMENT, "struct_size");
  EXPECT_CODE(rt_model_load(NULL, &model), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_model_load("x", NULL), RT_INVALID_ARGUMENT, "null");
  EXPECT(rt_model_entry_count(NULL) == 0 && rt_model_entry_name(NULL, 0) == NULL);
  EXPECT(rt_model_input_count(NULL, NULL) == 0 && rt_model_state_count(NULL) == 0);
  rt_model_free(NULL);
}

static void test_sessions(void) {
  rt_session* session = NULL;
  rt_trainer* trainer = NULL;
  rt_session_options options = RT_SESSION_OPTIONS_INIT;
  EXPECT_CODE(rt_session_create(NULL, &options, &session), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_session_run(NULL), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_session_submit(NULL), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_session_wait(NULL), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_trainer_submit(NULL), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_trainer_wait(NULL, NULL), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_session_set_input(NULL, 0, NULL), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_trainer_create(NULL, NULL, &trainer), RT_INVALID_ARGUMENT, "null");
  EXPECT(rt_session_input_count(NULL) == 0 && rt_session_profile_count(NULL) == 0);
  rt_memory* memory = NULL;
  rt_memory_options in_memory = RT_MEMORY_OPTIONS_INIT;
  rt_sync point = RT_SYNC_INIT;
  rt_native_handles handles = RT_NATIVE_HANDLES_INIT;
  EXPECT_CODE(rt_memory_create(NULL, &in_memory, &memory), RT_INVALID_ARGUMENT, "the session is null");
  EXPECT_CODE(rt_memory_read(NULL, 0, NULL, 0), RT_INVALID_ARGUMENT, "the memory is null");
  EXPECT_CODE(rt_memory_write(NULL, 0, NULL, 0), RT_INVALID_ARGUMENT, "the memory is null");
  EXPECT_CODE(rt_memory_export_fd(NULL, NULL, NULL, NULL), RT_INVALID_ARGUMENT, "the memory is null");
  EXPECT_CODE(rt_session_wait_for(NULL, &point), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_session_signal(NULL, &point), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_session_native(NULL, &handles), RT_INVALID_ARGUMENT, "null");
  EXPECT(rt_memory_bytes(NULL) == 0 && rt_memory_pointer(NULL) == NULL);
  rt_memory_free(NULL);
  rt_session_cancel(NULL);
  rt_session_uncancel(NULL);
  EXPECT(strcmp(rt_code_name(RT_CANCELLED), "cancelled") == 0);
  EXPECT(strcmp(rt_code_name(RT_LIMIT_EXCEEDED), "limit exceeded") == 0);
  rt_session_free(NULL);
  rt_trainer_free(NULL);
}

static void ignore(void* user, rt_log_level level, const char* text) {
  (void)user, (void)level, (void)text;
}
static int go_on(void* user, rt_stage stage, double fraction) {
  (void)user, (void)stage, (void)fraction;
  return 0;
}

/* The model is looked at first; what hooks are refused for is in tests/session/hooks_test.cpp. */
static void test_hooks(void) {
  rt_session* session = NULL;
  rt_allocator allocator = RT_ALLOCATOR_INIT;
  rt_parallel parallel = RT_PARALLEL_INIT;
  const int32_t cpus[] = {0};
  rt_session_options options = RT_SESSION_OPTIONS_INIT;
  EXPECT(options.log == NULL && options.progress == NULL && options.allocator == NULL && options.parallel == NULL);
  EXPECT(options.cpus == NULL && options.cpu_count == 0 && options.priority == 0);
  EXPECT(options.log_level == RT_LOG_WARNING);
  options.log = ignore;
  options.log_level = RT_LOG_DEBUG;
  options.progress = go_on;
  options.allocator = &allocator;
  options.parallel = &parallel;
  options.cpus = cpus;
  options.cpu_count = 1;
  EXPECT_CODE(rt_session_create(NULL, &options, &session), RT_INVALID_ARGUMENT, "null");
  EXPECT(session == NULL);
}

static void test_devices(void) {
  rt_device_list* list = NULL;
  EXPECT_CODE(rt_devices_list(&list), RT_OK, "");
  size_t reference = 0;
  for (size_t i = 0; i < rt_device_list_count(list); ++i) {
    rt_device_info info = RT_DEVICE_INFO_INIT;
    EXPECT_CODE(rt_device_list_get(list, i, &info), RT_OK, "");
    if (strcmp(info.backend, "reference") == 0) ++reference;
    rt_device_profile profile = RT_DEVICE_PROFILE_INIT;
    EXPECT_CODE(rt_device_profile_read(&info, NULL, &profile), RT_OK, "");
    EXPECT(profile.flops_f32 > 0);
  }
  EXPECT(reference == 1);
  for (size_t i = 0; i < rt_backend_count(list); ++i)
    if (*rt_backend_reason(list, i) != 0) printf("%s: %s\n", rt_backend_name(list, i), rt_backend_reason(list, i));
  EXPECT(rt_backend_name(list, rt_backend_count(list)) == NULL);

  /* A caller built against a shorter struct gets no more than its size. */
  struct {
    size_t struct_size;
    const char* backend;
    int32_t index;
    int32_t guard;
  } old = {2 * sizeof(size_t) + sizeof(int32_t), NULL, -1, 1234};
  EXPECT_CODE(rt_device_list_get(list, 0, (rt_device_info*)(void*)&old), RT_OK, "");
  EXPECT(old.backend != NULL && old.index >= 0 && old.guard == 1234);
  old.struct_size = 0;
  EXPECT_CODE(rt_device_list_get(list, 0, (rt_device_info*)(void*)&old), RT_INVALID_ARGUMENT, "struct_size");
  rt_device_list_free(list);
}

int main(void) {
  test_constants();
  test_models();
  test_sessions();
  test_hooks();
  test_devices();
  if (failures == 0) printf("fine\n");
  return failures != 0;
}
