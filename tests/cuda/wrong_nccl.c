/* A library with NCCL's name and one of its functions, which reports a version that is too old. */
int ncclGetVersion(int* version);
int ncclGetVersion(int* version) {
  *version = 21003;
  return 0;
}
