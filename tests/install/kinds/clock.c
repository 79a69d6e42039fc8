/* A program that links glibc's librt with -lrt, as many do for clocks and asynchronous I/O. */
#include <stdio.h>
#include <time.h>

int main(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 1;
  return puts("a clock of glibc") < 0;
}
