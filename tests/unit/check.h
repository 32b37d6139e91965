/*
 * Checks for the unit tests: each prints both values and the place, counts,
 * and goes on; main() ends with `return check_done();`.
 */
#ifndef PF_CHECK_H
#define PF_CHECK_H

#include <stdio.h>
#include <string.h>

static int check_failures;
static int check_count;

static inline void check_fail(const char *file, int line, const char *what) {
  check_failures++;
  (void)printf("%s:%d: failed: %s\n", file, line, what);
}

#define CHECK(condition)                                                      \
  do {                                                                        \
    check_count++;                                                            \
    if (!(condition))                                                         \
      check_fail(__FILE__, __LINE__, #condition);                             \
  } while (0)

/* Integers of any width up to 64 bits, signed. */
#define CHECK_INT(a, b)                                                       \
  do {                                                                        \
    long long check_a = (long long)(a), check_b = (long long)(b);             \
    check_count++;                                                            \
    if (check_a != check_b) {                                                 \
      check_fail(__FILE__, __LINE__, #a " == " #b);                           \
      (void)printf("  %lld != %lld\n", check_a, check_b);                     \
    }                                                                         \
  } while (0)

#define CHECK_STR(a, b)                                                       \
  do {                                                                        \
    const char *check_a = (a), *check_b = (b);                                \
    check_count++;                                                            \
    if (!check_a || !check_b || strcmp(check_a, check_b) != 0) {              \
      check_fail(__FILE__, __LINE__, #a " == " #b);                           \
      (void)printf("  \"%s\" != \"%s\"\n", check_a ? check_a : "(null)",      \
                   check_b ? check_b : "(null)");                             \
    }                                                                         \
  } while (0)

static inline int check_done(void) {
  (void)printf("%d checks, %d failed\n", check_count, check_failures);
  return check_failures ? 1 : 0;
}

#endif
