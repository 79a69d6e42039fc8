/* A fake library with the driver's name that reports a version (RT_VERSION, 13000 is 13.0), and a result of
   cuInit (RT_INIT, a CUresult). With RT_NO_FUNCTIONS it has none of a driver's functions. It has no
   device. */
#include <string.h>

#if defined(RT_NO_FUNCTIONS)
int nothing(void);
int nothing(void) {
  return 0;
}
#else
int cuInit(unsigned flags);
int cuInit(unsigned flags) {
  (void)flags;
  return RT_INIT;
}
int cuDriverGetVersion(int* version);
int cuDriverGetVersion(int* version) {
  *version = RT_VERSION;
  return 0;
}
int cuDeviceGetCount(int* count);
int cuDeviceGetCount(int* count) {
  *count = 0;
  return 0;
}
int cuGetExportTable(const void** table, const void* id);
int cuGetExportTable(const void** table, const void* id) {
  (void)table, (void)id;
  return 1; /* CUDA_ERROR_INVALID_VALUE */
}
typedef void (*Function)(void);
/* The runtime gets all functions through this one. */
int cuGetProcAddress_v2(const char* name, Function* function, int version, unsigned long long flags,
                        int* found);
int cuGetProcAddress_v2(const char* name, Function* function, int version, unsigned long long flags,
                        int* found) {
  (void)version, (void)flags;
  static const struct {
    const char* name;
    Function function;
  } functions[] = {{"cuInit", (Function)&cuInit},
                   {"cuDriverGetVersion", (Function)&cuDriverGetVersion},
                   {"cuDeviceGetCount", (Function)&cuDeviceGetCount},
                   {"cuGetExportTable", (Function)&cuGetExportTable},
                   {"cuGetProcAddress", (Function)&cuGetProcAddress_v2}};
  *function = 0;
  for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
    if (strcmp(name, functions[i].name) == 0) *function = functions[i].function;
  if (found != 0) *found = *function == 0; /* CU_GET_PROC_ADDRESS_SUCCESS, _SYMBOL_NOT_FOUND */
  return *function != 0 ? 0 : 500;         /* CUDA_ERROR_NOT_FOUND */
}
#endif
