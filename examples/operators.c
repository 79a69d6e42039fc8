/* Operators of the application in a shared library, for rtrun, rtbench and rttrain.
 *
 *   cc -shared -fPIC operators.c $(pkg-config --cflags librt) -lm -o operators.so
 *   rtconvert custom.onnx -o custom.rt --custom-domain com.example
 *   rtrun custom.rt --random-input --operators operators.so */
#include <math.h>
#include <rt/custom.h>
#include <rt/rt.h>
#include <stdio.h>
#include <string.h>

/* y = limit tanh(x / limit) */
static int softcap(void* user, const rt_custom_call* call) {
  (void)user;
  const rt_custom_tensor* x = &call->inputs[0];
  float limit = 1;
  for (size_t i = 0; i < call->attribute_count; ++i) {
    const rt_custom_attribute* attribute = &call->attributes[i];
    if (strcmp(attribute->name, "limit") == 0 && attribute->kind == RT_CUSTOM_FLOATS && attribute->count == 1)
      limit = attribute->floats[0];
  }
  if (x->dtype != RT_F32 || !(limit > 0)) {
    snprintf(call->message, call->message_bytes, "expected f32 and a positive limit");
    return RT_INVALID_ARGUMENT;
  }
  size_t count = 1;
  for (int32_t axis = 0; axis < x->rank; ++axis) count *= (size_t)x->dims[axis];
  const float* from = x->data;
  float* to = call->outputs[0].data;
  for (size_t i = 0; i < count; ++i) to[i] = limit * tanhf(from[i] / limit);
  return 0;
}

const rt_custom_operator* rt_custom_operators(size_t* count);
const rt_custom_operator* rt_custom_operators(size_t* count) {
  static const rt_custom_operator operators[] = {
      {sizeof(rt_custom_operator), "com.example", "Softcap", NULL, softcap, NULL}};
  *count = sizeof operators / sizeof operators[0];
  return operators;
}
