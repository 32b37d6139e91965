/*
 * What a test asks of the stand-in driver; found with dlsym(), so that the
 * same test runs on a card, where these are missing.
 */
#ifndef FAKECUDA_CONTROL_H
#define FAKECUDA_CONTROL_H

#include <stddef.h>

#include "plateflow/error.h"

/* How many accesses no event ordered, so far; and what number `i` was, NULL
 * past the end or the first 32. */
PF_API int fakecuda_violations(void);
PF_API const char *fakecuda_violation(int i);
/* Forget them: the test made them on purpose. */
PF_API void fakecuda_forget(void);

/* What is not freed: allocations on all devices, pinned ones, events. */
PF_API int fakecuda_n_allocations(void);
PF_API int fakecuda_n_pinned(void);
PF_API int fakecuda_n_events(void);

/* Fail the n-th call from now on that asks for memory (1: the next; 0: none);
 * with `for_good` all that follow too. Returns how many calls it counted since
 * the last time. */
PF_API int fakecuda_fail(int n, int for_good);
/* The n-th launch from now on loses its device's context (0: none). */
PF_API void fakecuda_lose(int n);
/* Least and most microseconds that an operation is late: 0 and 200 by default.
 */
PF_API void fakecuda_set_delay(unsigned least, unsigned most);

#endif
