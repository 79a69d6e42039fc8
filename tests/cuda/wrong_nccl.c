/* A library with NCCL's name and one of its functions, which says that it is too old. */
int ncclGetVersion(int* version);
int ncclGetVersion(int* version) {
  *version = 21003;
  return 0;
}
