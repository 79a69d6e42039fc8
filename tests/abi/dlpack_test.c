/* DLPack from C11: a tensor of the application's goes through a session and out again. argv[1]: a model of
 * one input, of floats, and one output. */
#include <stdlib.h>

#include "rt/dlpack.h"
#include "tests/abi/expect.h"

static int released = 0;
static void release(void* user) {
  ++released;
  free(user);
}

int main(int argc, char** argv) {
  rt_model* model = NULL;
  rt_session* session = NULL;
  rt_session_options options = RT_SESSION_OPTIONS_INIT;
  rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
  if (argc < 2) return 2;
  options.backend = "cpu";
  EXPECT_CODE(rt_model_load(argv[1], &model), RT_OK, "");
  EXPECT_CODE(rt_session_create(model, &options, &session), RT_OK, "");
  EXPECT_CODE(rt_session_input_spec(session, 0, &spec), RT_OK, "");
  if (failures != 0) return 1;

  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.dtype = spec.dtype;
  tensor.rank = spec.rank;
  tensor.bytes = rt_dtype_size(spec.dtype);
  for (int i = 0; i < spec.rank; ++i) {
    tensor.dims[i] = spec.dims[i] < 0 ? 2 : spec.dims[i];
    tensor.bytes *= (size_t)tensor.dims[i];
  }
  tensor.data = aligned_alloc(64, (tensor.bytes + 63) / 64 * 64);
  memset(tensor.data, 0, tensor.bytes);

  struct DLManagedTensorVersioned* exported = NULL;
  EXPECT_CODE(rt_tensor_to_dlpack(NULL, 0, NULL, NULL, &exported), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_tensor_to_dlpack(&tensor, 0, NULL, NULL, NULL), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_tensor_to_dlpack(&tensor, 1, release, tensor.data, &exported), RT_OK, "");
  rt_dlpack* layout = (rt_dlpack*)exported;
  EXPECT(layout->major == 1 && layout->flags == RT_DLPACK_READ_ONLY);
  EXPECT(layout->tensor.device_type == RT_DLPACK_CPU && layout->tensor.ndim == spec.rank);

  rt_memory* memory = NULL;
  rt_tensor bound = RT_TENSOR_INIT;
  EXPECT_CODE(rt_memory_from_dlpack(session, exported, &memory, &bound), RT_OK, "");
  EXPECT(bound.memory == memory && rt_memory_pointer(memory) == tensor.data);
  EXPECT_CODE(rt_session_bind_output(session, 0, &bound), RT_INVALID_ARGUMENT, "read-only");
  EXPECT_CODE(rt_session_bind_input(session, 0, &bound), RT_OK, "");
  EXPECT_CODE(rt_session_run(session), RT_OK, "");
  rt_tensor output = RT_TENSOR_INIT;
  EXPECT_CODE(rt_session_output(session, 0, &output), RT_OK, "");

  struct DLManagedTensor* older = NULL;
  struct DLManagedTensorVersioned* newer = NULL;
  EXPECT_CODE(rt_dlpack_from_unversioned(NULL, &newer), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_dlpack_to_unversioned(NULL, &older), RT_INVALID_ARGUMENT, "null");
  EXPECT_CODE(rt_dlpack_to_unversioned(exported, &older), RT_UNSUPPORTED, "read-only");
  EXPECT_CODE(rt_tensor_to_dlpack(&output, 0, NULL, NULL, &newer), RT_OK, "");
  EXPECT_CODE(rt_dlpack_to_unversioned(newer, &older), RT_OK, "");
  EXPECT(((rt_dlpack_unversioned*)older)->tensor.data == output.data);
  ((rt_dlpack_unversioned*)older)->deleter(older);

  rt_memory_free(memory);
  EXPECT(released == 0); /* bound to the session */
  rt_session_free(session);
  EXPECT(released == 1);
  rt_model_free(model);
  return failures != 0;
}
