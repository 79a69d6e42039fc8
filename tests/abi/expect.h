/* How the C tests of the public headers report what differs: EXPECT and EXPECT_CODE count in `failures`. */
#ifndef RT_TESTS_ABI_EXPECT_H
#define RT_TESTS_ABI_EXPECT_H

#include <stdio.h>
#include <string.h>

#include "rt/rt.h"

static int failures = 0;
#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

static void expect_code(rt_status* status, rt_code code, const char* word, int line) {
  if (rt_status_code(status) != code || strstr(rt_status_message(status), word) == NULL) {
    fprintf(stderr, "line %d: expected %s with '%s', found %s: %s\n", line, rt_code_name(code), word,
            rt_code_name(rt_status_code(status)), rt_status_message(status));
    ++failures;
  }
  rt_status_free(status);
}
#define EXPECT_CODE(call, code, word) expect_code((call), (code), (word), __LINE__)

#endif
