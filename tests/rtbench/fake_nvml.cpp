// A library with NVML's functions, for tests: two GPUs. The first counts millijoules, 5000 more at each call;
// the second reports a power of 75 W only.
namespace {
unsigned long long counter = 1000;
void* const kFirst = &counter;
}  // namespace

#pragma GCC visibility push(default)  // the project's default is hidden
extern "C" {
int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = index == 0 ? kFirst : nullptr;
  return 0;
}
static int copy(const char* from, char* to, unsigned size) {
  for (unsigned i = 0; i < size; ++i)
    if ((to[i] = from[i]) == '\0') return 0;
  return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
}
int nvmlDeviceGetName(void* device, char* name, unsigned size) {
  return copy(device == kFirst ? "NVIDIA Test" : "NVIDIA Old", name, size);
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  return copy(device == kFirst ? "GPU-1111" : "GPU-2222", uuid, size);
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (device != kFirst) return 3;  // NVML_ERROR_NOT_SUPPORTED
  *millijoules = counter += 5000;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 75000;
  return 0;
}
const char* nvmlErrorString(int) {
  return "Not Supported";
}
}
#pragma GCC visibility pop
